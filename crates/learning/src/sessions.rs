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
//! A time that a run writes into the session is no change for a page whose own run writes it under the same name; for
//! all other pages it is one. Requests are noted whether or not their session has copies yet: a copy that is made while
//! one of them runs waits for its end.
//!
//! A cookie's value is known here by its hash with a secret of this process, so that no visitor can aim at another's. Any
//! cookie of a request counts, whatever its name, so that other locations need no directive.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::files;
use crate::guest_sessions::GuestSessions;
use crate::record::{FileState, RunRecord, SeenSession};

/// Sessions with copies or with requests under way. Beyond it, those go that have neither, then an eighth of those without
/// requests.
const MAX_SESSIONS: usize = 20_000;

/// Cookies of a request that are looked at, and cookies that name the sessions of one copy.
const MAX_COOKIES: usize = 64;
const MAX_OF_COPY: usize = 4;

/// Names of times in one session. A further one counts as a change.
const MAX_TIMES: usize = 32;

/// A shorter value is no session that a stranger could not guess.
const MIN_BYTES: usize = 16;

/// The sessions of all pools.
#[derive(Default)]
pub struct Sessions {
    secret: foldhash::quality::RandomState,
    states: Mutex<StateTable>,
    /// Requests under way for which there was no room: no copy is made meanwhile.
    unnoted: Arc<AtomicU32>,
    guests: GuestSessions,
}

type StateTable = HashMap<u64, Arc<SessionState>, foldhash::fast::RandomState>;

/// One session, or another value of a cookie that tells visitors apart.
#[derive(Debug, Default)]
struct SessionState {
    changes: Mutex<SessionChanges>,
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

/// Events that may have changed what a visitor is shown, numbered in their order.
#[derive(Debug, Default)]
struct SessionChanges {
    count: u64,
    /// The number of the last one that concerns all copies.
    last: u64,
    /// Times that were written since: the number of the name, and of the event.
    times: Vec<(u64, u64)>,
}

impl SessionChanges {
    fn note(&mut self) {
        self.count += 1;
        self.last = self.count;
        self.times.clear();
    }

    fn note_time(&mut self, name: u64) {
        self.count += 1;
        self.times.retain(|(known, _)| *known != name);
        match self.times.len() < MAX_TIMES {
            true => self.times.push((name, self.count)),
            false => self.note(),
        }
    }

    /// Does one of them, after the number `begun`, concern a copy whose own run writes these times? `None`: its run is not
    /// known yet.
    fn concern(&self, begun: u64, own_times: Option<&[u64]>) -> bool {
        let is_change = |(name, at): &(u64, u64)| {
            *at > begun && own_times.is_some_and(|own_times| !own_times.contains(name))
        };
        self.last > begun || self.times.iter().any(is_change)
    }
}

impl SessionState {
    fn note_change(&self) {
        self.changes.lock().note();
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }
}

/// May the value of a cookie be a session by which copies are kept?
#[must_use]
pub fn may_be_session(value: &[u8]) -> bool {
    id_of(value).len() >= MIN_BYTES
}

/// The session that PHP reads from the value of a cookie: percent signs decoded, up to a NUL.
fn id_of(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'%') {
        return Cow::Borrowed(value);
    }
    let mut id = shared_request::php::decode(value, false);
    id.truncate(id.iter().position(|byte| *byte == 0).unwrap_or(id.len()));
    Cow::Owned(id)
}

impl Sessions {
    fn number(&self, value: &[u8]) -> u64 {
        let mut hasher = self.secret.build_hasher();
        hasher.write(value);
        hasher.finish()
    }

    /// The numbers of the sessions that these values of cookies may be, up to `most`.
    fn numbers<'v>(&self, values: impl Iterator<Item = &'v [u8]>, most: usize) -> Vec<u64> {
        let ids = values.map(id_of).filter(|id| id.len() >= MIN_BYTES);
        ids.take(most).map(|id| self.number(&id)).collect()
    }

    /// A request with these values of cookies is about to be sent to PHP. `None`: they name no session.
    pub fn visit<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<Visit> {
        let numbers = self.numbers(values, MAX_COOKIES);
        if numbers.is_empty() {
            return None;
        }
        let mut states = self.states.lock();
        let has_room = make_room(&mut states, numbers.len());
        let noted = numbers.iter().filter_map(|number| {
            let state = match has_room {
                true => states.entry(*number).or_default().clone(),
                false => states.get(number)?.clone(),
            };
            Some((*number, state))
        });
        let noted: Vec<_> = noted.collect();
        let lacks_some = noted.len() < numbers.len();
        let unnoted = lacks_some.then(|| UnnotedRequest::new(&self.unnoted));
        Some(Visit::of(noted, unnoted))
    }

    /// A copy is about to be made for the session with these values of cookies; `None`: they name none, or too many, or
    /// not all requests under way are known.
    pub fn enter<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<Visit> {
        let numbers = self.numbers(values, MAX_OF_COPY + 1);
        if numbers.is_empty() || numbers.len() > MAX_OF_COPY {
            return None;
        }
        let mut states = self.states.lock();
        let has_room = make_room(&mut states, numbers.len());
        if !has_room || self.unnoted.load(Ordering::Acquire) > 0 {
            return None;
        }
        let entered = numbers
            .into_iter()
            .map(|number| (number, states.entry(number).or_default().clone()));
        Some(Visit::of(entered.collect(), None))
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
        self.guests.is_somebodys(&id_of(value))
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
                match session.times_written(now).filter(|_| !is_other) {
                    None => state.note_change(),
                    Some(times) => {
                        let mut changes = state.changes.lock();
                        let names = times.iter().map(|name| self.number(name));
                        names.for_each(|name| changes.note_time(name));
                    }
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
            if state.is_running() {
                continue;
            }
            let count = state.changes.lock().count;
            let (path, known) = {
                let file = state.file.lock();
                (file.path.clone(), file.state)
            };
            if known.is_none() || files::state_of(&path) == known {
                continue;
            }
            let mut file = state.file.lock();
            let is_as_before =
                !state.is_running() && state.changes.lock().count == count && file.state == known;
            if is_as_before {
                *file = KnownContent::default();
                state.note_change();
            }
        }
    }
}

/// Makes room for this many sessions. Returns `false` where all others have requests under way.
fn make_room(states: &mut StateTable, count: usize) -> bool {
    if states.len() + count > MAX_SESSIONS {
        forget_unused(states);
        // Many at once: the next ones find room without a look at all of them.
        let too_many = states.len().saturating_sub(MAX_SESSIONS / 8 * 7);
        let idle = states.iter().filter(|(_, state)| !state.is_running());
        let going: Vec<u64> = idle.map(|(number, _)| *number).take(too_many).collect();
        for state in going.iter().filter_map(|number| states.remove(number)) {
            // Its copies are of no use: what becomes of it is not followed any more.
            state.note_change();
        }
    }
    states.len() + count <= MAX_SESSIONS
}

/// Forgets sessions without copies and without requests.
fn forget_unused(states: &mut StateTable) {
    states.retain(|_, state| Arc::strong_count(state) > 1);
}

/// Counts a request under way for which the table had no room.
#[derive(Debug)]
struct UnnotedRequest(Arc<AtomicU32>);

impl UnnotedRequest {
    fn new(count: &Arc<AtomicU32>) -> UnnotedRequest {
        count.fetch_add(1, Ordering::AcqRel);
        UnnotedRequest(count.clone())
    }
}

impl Drop for UnnotedRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request of a visitor with a session, from before it is sent to PHP until its record is known.
#[derive(Debug)]
pub struct Visit {
    states: Vec<(u64, Arc<SessionState>)>,
    is_settled: AtomicBool,
    /// The times that its run has written.
    own_times: Arc<OnceLock<Box<[u64]>>>,
    _unnoted: Option<UnnotedRequest>,
}

impl Visit {
    fn of(states: Vec<(u64, Arc<SessionState>)>, unnoted: Option<UnnotedRequest>) -> Visit {
        for (_, state) in &states {
            state.running.fetch_add(1, Ordering::AcqRel);
        }
        Visit {
            states,
            is_settled: AtomicBool::new(false),
            own_times: Arc::default(),
            _unnoted: unnoted,
        }
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
            sessions: self
                .states
                .iter()
                .map(|(_, state)| (state.clone(), AtomicU64::new(u64::MAX)))
                .collect(),
            own_times: self.own_times.clone(),
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

/// Why the sessions that a page has opened do not allow a copy of it; `None`: they do. The times that its run has written
/// do not end the copy.
pub(crate) fn obstacle<'r>(
    sessions: &Sessions,
    visit: Option<&Visit>,
    run: &'r RunRecord,
    now: i64,
) -> Option<&'r SeenSession> {
    if let Some(visit) = visit {
        let times = run.sessions.iter().filter_map(|it| it.times_written(now));
        let names = times.flatten().map(|name| sessions.number(&name));
        // It has one run.
        let _ = visit.own_times.set(names.collect());
    }
    run.sessions.iter().find(|session| {
        let is_own = visit.is_some_and(|visit| visit.has(sessions.number(&session.id)));
        !is_own
            || session.times_written(now).is_none()
            // A file whose state the server does not see may change unnoticed.
            || files::state_of(&session.path) != Some(session.state)
    })
}

/// Did the sessions of a run begin with it? Nothing was read in them but what the run itself has written, and no visitor has
/// one of them, if none was sent.
pub(crate) fn began_with(run: &RunRecord) -> bool {
    let mut left: Vec<(&Path, u64)> = Vec::new();
    run.sessions.iter().all(|session| {
        let is_as_left = match left.iter().rev().find(|(path, _)| *path == session.path) {
            Some((_, hash)) => *hash == session.hash_before,
            None => session.began_empty(),
        };
        left.push((&session.path, session.hash_after));
        is_as_left
    })
}

/// Whether something may have changed in the sessions of a copy since its request was sent.
#[derive(Debug)]
pub struct SessionWatch {
    /// With the number of their last change when its request was sent.
    sessions: Vec<(Arc<SessionState>, AtomicU64)>,
    own_times: Arc<OnceLock<Box<[u64]>>>,
}

impl SessionWatch {
    /// The request of the copy is about to be sent.
    pub fn begin(&self) {
        for (state, begun) in &self.sessions {
            begun.store(state.changes.lock().count, Ordering::Release);
        }
    }

    /// Has nothing changed, and does nothing run that may change something?
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut states = self.sessions.iter().map(|(state, _)| state);
        states.all(|state| !state.is_running()) && !self.has_moved()
    }

    /// Has something changed, for good?
    #[must_use]
    pub fn has_moved(&self) -> bool {
        let own_times = self.own_times.get().map(|times| &**times);
        self.sessions.iter().any(|(state, begun)| {
            let begun = begun.load(Ordering::Acquire);
            begun == u64::MAX || state.changes.lock().concern(begun, own_times)
        })
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
