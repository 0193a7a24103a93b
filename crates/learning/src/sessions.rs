//! Sessions of visitors who have copies of their own (`cache_private` with `cache_learn`): whether anything of a session
//! may have changed since a copy was made.
//!
//! ```text
//! copy is made ─► Sessions::enter ─► SessionState, by the value of the session's cookie
//! request that PHP runs ─► Visit: `running` until its record is known; then nothing, or `moved`
//! record, look at files ─► another content than the last one: `moved`
//! hit ─► SessionWatch: shown while nothing runs, and nothing has moved since the copy's own request was sent
//! ```
//!
//! A cookie's value is known here by its hash with a secret of this process, so that no visitor can aim at another's. Any
//! cookie of a request counts, whatever its name, so that other locations need no directive.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::files;
use crate::guest_sessions::GuestSessions;
use crate::record::{FileState, RunRecord, SeenSession};

/// Sessions with copies. Beyond it, those go that have none any more, then an eighth.
const MOST_SESSIONS: usize = 20_000;

/// Cookies of a request that are looked at, and cookies that name the sessions of one copy.
const MOST_COOKIES: usize = 64;
const MOST_OF_COPY: usize = 4;

/// A shorter value is no session that a stranger could not guess.
const LEAST_BYTES: usize = 16;

/// The sessions of all pools.
#[derive(Default)]
pub struct Sessions {
    secret: foldhash::quality::RandomState,
    states: Mutex<HashMap<u64, Arc<SessionState>, foldhash::fast::RandomState>>,
    guests: GuestSessions,
}

/// One session, or another value of a cookie that tells visitors apart.
#[derive(Debug, Default)]
struct SessionState {
    /// How often something happened that may have changed what its visitor is shown.
    moved: AtomicU64,
    /// Requests that PHP runs for it, and whose records are not known yet.
    running: AtomicU32,
    file: Mutex<KnownContent>,
}

/// The session's file, as the last record had it.
#[derive(Debug, Default)]
struct KnownContent {
    hash: Option<u64>,
    path: PathBuf,
    state: Option<FileState>,
}

impl SessionState {
    fn note_change(&self) {
        self.moved.fetch_add(1, Ordering::AcqRel);
    }
}

/// May the value of a cookie be a session by which copies are kept?
#[must_use]
pub fn may_be_session(value: &[u8]) -> bool {
    value.len() >= LEAST_BYTES
}

impl Sessions {
    fn number(&self, value: &[u8]) -> u64 {
        let mut hasher = self.secret.build_hasher();
        hasher.write(value);
        hasher.finish()
    }

    /// A request with these values of cookies is about to be sent to PHP. `None`: no copy depends on them.
    pub fn visit<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<Visit> {
        let states = self.states.lock();
        if states.is_empty() {
            return None;
        }
        let values = values.filter(|value| may_be_session(value));
        let known = values.take(MOST_COOKIES).filter_map(|value| {
            let number = self.number(value);
            Some((number, states.get(&number)?.clone()))
        });
        Visit::of(known.collect())
    }

    /// A copy is about to be made for the session with these values of cookies; `None`: they name none, or too many.
    pub fn enter<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<Visit> {
        let values = values.filter(|value| may_be_session(value));
        let numbers: Vec<u64> = values
            .take(MOST_OF_COPY + 1)
            .map(|it| self.number(it))
            .collect();
        if numbers.len() > MOST_OF_COPY {
            return None;
        }
        let mut states = self.states.lock();
        if states.len() + MOST_OF_COPY > MOST_SESSIONS {
            forget_unused(&mut states);
            // Many at once: the next ones find room without a look at all of them.
            let too_many = states.len().saturating_sub(MOST_SESSIONS / 8 * 7);
            let going: Vec<u64> = states.keys().take(too_many).copied().collect();
            for state in going.iter().filter_map(|number| states.remove(number)) {
                // Its copies are of no use: what becomes of it is not followed any more.
                state.note_change();
            }
        }
        let entered = numbers
            .into_iter()
            .map(|number| (number, states.entry(number).or_default().clone()));
        Visit::of(entered.collect())
    }

    /// The visitor with these values of cookies sends a write, or is sent a cookie.
    pub fn note_write<'v>(&self, values: impl Iterator<Item = &'v [u8]>) {
        if let Some(visit) = self.visit(values) {
            visit.note_write();
            visit.settle();
        }
    }

    /// Is this value of a cookie a session with more in it than a guest's has?
    pub fn is_somebodys(&self, value: &[u8]) -> bool {
        self.guests.is_somebodys(value)
    }

    /// Takes what a request did to sessions. Call it before anything is made of the rest of the record.
    pub(crate) fn recorded(&self, run: &RunRecord, now: i64) {
        self.guests.recorded(run, now);
        if run.sessions.is_empty() && run.doubtful_sessions.is_empty() {
            return;
        }
        let states = self.states.lock();
        let named = |id: &[u8]| states.get(&self.number(id));
        for session in &run.sessions {
            if let Some(state) = named(&session.id) {
                let mut file = state.file.lock();
                let is_other = file.hash.is_some_and(|hash| hash != session.hash_before);
                if is_other || session.is_changed(now) {
                    state.note_change();
                }
                *file = KnownContent {
                    hash: Some(session.hash_after),
                    path: session.path.clone(),
                    state: Some(session.state),
                };
            }
        }
        for id in &run.doubtful_sessions {
            if let Some(state) = named(id) {
                *state.file.lock() = KnownContent::default();
                state.note_change();
            }
        }
    }

    /// Looks at the files of all sessions with copies: other programs may have written or removed them. Blocks.
    pub(crate) fn look(&self) {
        let states: Vec<_> = {
            let mut states = self.states.lock();
            forget_unused(&mut states);
            states.values().cloned().collect()
        };
        for state in states {
            // A request that runs may touch the file; its record says what became of it.
            if state.running.load(Ordering::Acquire) > 0 {
                continue;
            }
            let moved = state.moved.load(Ordering::Acquire);
            let (path, known) = {
                let file = state.file.lock();
                (file.path.clone(), file.state)
            };
            if known.is_none() || files::state_of(&path) == known {
                continue;
            }
            let mut file = state.file.lock();
            let is_as_before = state.running.load(Ordering::Acquire) == 0
                && state.moved.load(Ordering::Acquire) == moved
                && file.state == known;
            if is_as_before {
                *file = KnownContent::default();
                state.note_change();
            }
        }
    }
}

/// Forgets sessions without copies and without requests.
fn forget_unused(states: &mut HashMap<u64, Arc<SessionState>, foldhash::fast::RandomState>) {
    states.retain(|_, state| Arc::strong_count(state) > 1);
}

/// A request of a visitor with copies, from before it is sent to PHP until its record is known.
#[derive(Debug)]
pub struct Visit {
    states: Vec<(u64, Arc<SessionState>)>,
    is_settled: AtomicBool,
}

impl Visit {
    fn of(states: Vec<(u64, Arc<SessionState>)>) -> Option<Visit> {
        for (_, state) in &states {
            state.running.fetch_add(1, Ordering::AcqRel);
        }
        (!states.is_empty()).then(|| Visit {
            states,
            is_settled: AtomicBool::new(false),
        })
    }

    /// The visitor writes, or is sent a cookie: no copy from before is shown any more.
    pub fn note_write(&self) {
        self.states
            .iter()
            .for_each(|(_, state)| state.note_change());
    }

    /// It is known what the request did; otherwise it counts as a write.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::Release);
    }

    fn has(&self, number: u64) -> bool {
        self.states.iter().any(|(known, _)| *known == number)
    }

    /// Watches the sessions for a copy that the request makes.
    #[must_use]
    pub fn watch(&self) -> SessionWatch {
        SessionWatch {
            states: self.states.iter().map(|(_, state)| state.clone()).collect(),
            begun: AtomicU64::new(u64::MAX),
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.is_settled.load(Ordering::Acquire) {
            self.note_write();
        }
        // Afterwards: who sees that nothing runs sees what has moved.
        for (_, state) in &self.states {
            state.running.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Why the sessions that a page has opened do not allow a copy of it; `None`: they do.
pub(crate) fn obstacle<'r>(
    sessions: &Sessions,
    visit: Option<&Visit>,
    run: &'r RunRecord,
    now: i64,
) -> Option<&'r SeenSession> {
    run.sessions.iter().find(|session| {
        let is_own = visit.is_some_and(|visit| visit.has(sessions.number(&session.id)));
        !is_own
            || session.is_changed(now)
            // A file whose state the server does not see may change unnoticed.
            || files::state_of(&session.path) != Some(session.state)
    })
}

/// Whether something may have changed in the sessions of a copy since its request was sent.
#[derive(Debug)]
pub struct SessionWatch {
    states: Vec<Arc<SessionState>>,
    /// The sum of `moved` when its request was sent.
    begun: AtomicU64,
}

impl SessionWatch {
    fn moved(&self) -> u64 {
        let moved = self.states.iter();
        moved.map(|it| it.moved.load(Ordering::Acquire)).sum()
    }

    /// The request of the copy is about to be sent.
    pub fn begin(&self) {
        self.begun.store(self.moved(), Ordering::Release);
    }

    /// Has nothing changed, and does nothing run that may change something?
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut states = self.states.iter();
        states.all(|it| it.running.load(Ordering::Acquire) == 0) && !self.has_moved()
    }

    /// Has something changed, for good?
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.moved() != self.begun.load(Ordering::Acquire)
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
