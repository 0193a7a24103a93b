//! Whose sessions they are, by their content: a guest's have nothing in them but what new sessions have.
//!
//! A session that begins is compared with others that began: a value that most have alike is a default of the application,
//! and a name that most have, with a token or a time in each, is a token's or a time's. Everything else is a log-in, a cart, a
//! choice: the session is somebody's, and stays so. What is not understood is somebody's, too.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::path::Path;

use parking_lot::Mutex;

use crate::record::{RunRecord, SeenSession};
use crate::session_data::{self, Leaf};

/// New sessions that have to agree.
const ENOUGH: u32 = 3;

/// Names and values of new sessions that are known, of all sites.
const MAX_FACTS: usize = 16_384;

/// Sessions that are known as somebody's: two halves of this size.
const MAX_SESSIONS: usize = 50_000;

/// Bytes of a token.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=128;

/// What new sessions have in them, and which sessions have more.
#[derive(Default)]
pub struct GuestSessions {
    secret: foldhash::quality::RandomState,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    /// A name, or a name with its value: how many new sessions had it, and the last of them.
    facts: HashMap<u64, (u32, u64), foldhash::fast::RandomState>,
    somebodys: HashSet<u64, foldhash::fast::RandomState>,
    before: HashSet<u64, foldhash::fast::RandomState>,
}

impl GuestSessions {
    /// Is the session with this name, as a cookie has it, known to be somebody's?
    pub fn is_somebodys(&self, id: &[u8]) -> bool {
        let number = self.number(&[id]);
        let tables = self.tables.lock();
        tables.somebodys.contains(&number) || tables.before.contains(&number)
    }

    /// Takes what a request left in sessions.
    pub(crate) fn recorded(&self, run: &RunRecord, now: i64) {
        if run.sessions.is_empty() && run.doubtful_sessions.is_empty() {
            return;
        }
        let mut tables = self.tables.lock();
        for session in &run.sessions {
            if !self.is_guests(session, now, &mut tables) {
                tables.note_somebodys(self.number(&[&session.id]));
            }
        }
        for id in &run.doubtful_sessions {
            tables.note_somebodys(self.number(&[id]));
        }
    }

    /// Has the session nothing in it but what new ones have? One that is new is one of these.
    fn is_guests(&self, session: &SeenSession, now: i64, tables: &mut Tables) -> bool {
        let values = session.after.as_deref().and_then(session_data::parse);
        let Some(values) = values else {
            return false;
        };
        let folder = session.path.parent().unwrap_or(Path::new(""));
        let folder = folder.as_os_str().as_encoded_bytes();
        let id = self.number(&[&session.id]);
        let begins = session.before.as_deref() == Some(b"");
        let all = self.number(&[folder]);
        if begins {
            tables.note_fact(all, id);
        }
        let begun = tables.count(all);
        let mut is_guests = true;
        for (path, leaf) in &values {
            let name = self.number(&[folder, path]);
            let value = self.number(&[folder, path, &text_of(leaf)]);
            if begins {
                tables.note_fact(name, id);
                tables.note_fact(value, id);
            }
            let is_default = tables.is_common(value, begun) || is_nothing(leaf);
            let is_own = tables.is_common(name, begun) && (is_token(leaf) || is_recent(leaf, now));
            is_guests &= is_default || is_own;
        }
        is_guests
    }

    fn number(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = self.secret.build_hasher();
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    }
}

impl Tables {
    fn note_somebodys(&mut self, id: u64) {
        if self.somebodys.len() >= MAX_SESSIONS {
            self.before = std::mem::take(&mut self.somebodys);
        }
        self.somebodys.insert(id);
    }

    fn note_fact(&mut self, fact: u64, id: u64) {
        if self.facts.len() >= MAX_FACTS && !self.facts.contains_key(&fact) {
            self.facts.retain(|_, (count, _)| *count >= ENOUGH);
            if self.facts.len() >= MAX_FACTS / 8 * 7 {
                // Begun anew: without evidence, a session is somebody's.
                self.facts.clear();
            }
        }
        let (count, last) = self.facts.entry(fact).or_insert((0, !id));
        if *last != id {
            (*count, *last) = (count.saturating_add(1), id);
        }
    }

    fn count(&self, fact: u64) -> u32 {
        self.facts.get(&fact).map_or(0, |(count, _)| *count)
    }

    /// Do most of the sessions that have begun have it?
    fn is_common(&self, fact: u64, begun: u32) -> bool {
        let count = self.count(fact);
        count >= ENOUGH && count > begun / 2
    }
}

/// A value in bytes, of another kind than those of all others.
fn text_of(leaf: &Leaf<'_>) -> Vec<u8> {
    match leaf {
        Leaf::Text(text) => [b"s", *text].concat(),
        other => format!("{other:?}").into_bytes(),
    }
}

fn is_nothing(leaf: &Leaf<'_>) -> bool {
    matches!(
        leaf,
        Leaf::Null | Leaf::Bool(false) | Leaf::Integer(0) | Leaf::EmptyArray | Leaf::Text(b"")
    )
}

fn is_token(leaf: &Leaf<'_>) -> bool {
    let Leaf::Text(text) = leaf else {
        return false;
    };
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte);
    TOKEN_BYTES.contains(&text.len())
        && text.iter().all(is_of_token)
        && text.iter().any(u8::is_ascii_digit)
}

/// A time of the last day.
fn is_recent(leaf: &Leaf<'_>, now: i64) -> bool {
    let time = leaf.as_time();
    time.is_some_and(|time| (now - 86_400..=now + 60).contains(&time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FileState;

    const NOW: i64 = 1_800_000_000;

    fn left(id: &str, before: &str, after: &str) -> RunRecord {
        let is_same = before == after;
        RunRecord {
            sessions: vec![SeenSession {
                id: id.as_bytes().to_vec(),
                path: format!("/srv/sessions/sess_{id}").into(),
                hash_before: 1,
                hash_after: u64::from(!is_same) + 1,
                before: (!is_same).then(|| before.as_bytes().to_vec()),
                after: Some(after.as_bytes().to_vec()),
                state: FileState::MERE_PRESENCE,
            }],
            ..RunRecord::default()
        }
    }

    fn fresh(nth: usize) -> String {
        format!("lang|s:2:\"en\";key|s:32:\"{nth:032}\";seen|i:{};", NOW - 5)
    }

    #[test]
    fn a_session_is_a_guests_while_it_has_what_new_sessions_have() {
        let sessions = GuestSessions::default();
        for nth in 0..4 {
            sessions.recorded(&left(&format!("new{nth}"), "", &fresh(nth)), NOW);
        }
        assert!(sessions.is_somebodys(b"new0"), "nothing to compare with");
        assert!(!sessions.is_somebodys(b"new3"));
        let before = fresh(9);
        for (id, more, expected) in [
            ("nothing", "", false),
            ("empty", "cart|a:0:{}flash|N;", false),
            ("user", "user|i:7;", true),
            ("cart", "cart|a:1:{i:0;s:4:\"book\";}", true),
            (
                "hash",
                "user|s:32:\"0123456789abcdef0123456789abcdef\";",
                true,
            ),
            ("object", "user|O:4:\"User\":0:{}", true),
        ] {
            let after = format!("{before}{more}");
            sessions.recorded(&left(id, &before, &after), NOW);
            assert_eq!(sessions.is_somebodys(id.as_bytes()), expected, "{id}");
        }
        let german = before.replace("en", "de");
        sessions.recorded(&left("german", &before, &german), NOW);
        assert!(sessions.is_somebodys(b"german"), "a choice");
        // For ever.
        sessions.recorded(&left("german", &german, &before), NOW);
        assert!(sessions.is_somebodys(b"german"));
        let whole = RunRecord {
            doubtful_sessions: vec![b"doubt".to_vec()],
            ..RunRecord::default()
        };
        sessions.recorded(&whole, NOW);
        assert!(sessions.is_somebodys(b"doubt"));
    }

    #[test]
    fn one_session_says_nothing_of_others_however_often_it_begins() {
        let sessions = GuestSessions::default();
        for _ in 0..10 {
            sessions.recorded(&left("one", "", "user|s:3:\"eve\";"), NOW);
        }
        sessions.recorded(&left("two", "", "user|s:3:\"eve\";"), NOW);
        assert!(sessions.is_somebodys(b"two"));
    }

    #[test]
    fn what_few_sessions_begin_with_is_no_default() {
        let sessions = GuestSessions::default();
        for nth in 0..10 {
            sessions.recorded(&left(&format!("new{nth}"), "", &fresh(nth)), NOW);
        }
        for nth in 0..4 {
            let (id, cart) = (format!("cart{nth}"), format!("{}cart|i:1;", fresh(nth)));
            sessions.recorded(&left(&id, "", &cart), NOW);
            assert!(sessions.is_somebodys(id.as_bytes()), "{nth}");
        }
    }

    #[test]
    fn what_is_known_is_bounded() {
        let sessions = GuestSessions::default();
        for nth in 0..2 * MAX_SESSIONS + 10 {
            sessions.recorded(&left(&nth.to_string(), "", &format!("n{nth}|i:7;")), NOW);
        }
        let tables = sessions.tables.lock();
        assert!(tables.facts.len() <= MAX_FACTS);
        assert!(tables.somebodys.len() <= MAX_SESSIONS);
        assert!(tables.before.len() <= MAX_SESSIONS);
    }
}
