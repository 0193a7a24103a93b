//! Writes of processes that ended before they said what became of them.
//!
//! A server finishes a COMMIT whose client has died, at a time that nobody knows. As long as it lists the
//! connection, the write may still be done: no page that reads what it writes is learned.

use std::time::{Duration, Instant};

use crate::record::{SentWrite, ServerName};

/// Connections in doubt. With more, everything is, until Mayfly starts again.
const MOST_DOUBTS: usize = 64;

/// Writes of one connection. With more, it may write anything.
const MOST_WRITES: usize = 64;

/// Asks for the connections of a server, which shows those of other accounts to some only.
pub const QUESTIONS: [&str; 3] = [
    "SELECT id FROM information_schema.processlist",
    "SELECT SUBSTRING_INDEX(USER(), '@', 1)",
    "SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'
     AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
];

/// What a server said.
pub struct AskedServer<'a> {
    pub server: &'a str,
    /// Of the connections that it shows.
    pub identifiers: &'a [u32],
    /// Whose connections it shows.
    pub account: &'a [u8],
    /// It shows those of all accounts.
    pub shows_all: bool,
}

struct Doubt {
    number: u64,
    since: Instant,
    /// `None`: it never ends.
    connection: Option<u32>,
    writes: Vec<SentWrite>,
}

#[derive(Default)]
pub struct Doubts {
    all: Vec<Doubt>,
    last: u64,
}

impl Doubts {
    /// Takes the writes of one process.
    pub fn add(&mut self, mut writes: Vec<SentWrite>, now: Instant) {
        while let Some(first) = writes.first() {
            let (server, identifier) = (first.server.clone(), first.identifier);
            let is_other = |it: &SentWrite| it.server != server || it.identifier != identifier;
            let (others, of_it) = writes.into_iter().partition(is_other);
            writes = others;
            self.put(identifier, of_it, now);
        }
    }

    fn put(&mut self, identifier: u32, mut writes: Vec<SentWrite>, now: Instant) {
        let is_too_much = self.all.len() >= MOST_DOUBTS;
        if is_too_much || writes.len() > MOST_WRITES {
            writes.truncate(1);
            writes.iter_mut().for_each(|it| it.is_complete = false);
        }
        let server = writes.first().map(|it| it.server.clone());
        let is_endless = |it: &Doubt| {
            it.connection.is_none() && it.writes.first().map(|it| &it.server) == server.as_ref()
        };
        if is_too_much && self.all.iter().any(is_endless) {
            return;
        }
        self.last += 1;
        self.all.push(Doubt {
            number: self.last,
            since: now,
            connection: (!is_too_much).then_some(identifier),
            writes,
        });
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Is none of them younger than this?
    pub fn are_older_than(&self, age: Duration, now: Instant) -> bool {
        let mut since = self.all.iter().map(|it| it.since);
        since.all(|since| now.saturating_duration_since(since) >= age)
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn servers(&self) -> Vec<ServerName> {
        let ending = self.all.iter().filter(|it| it.connection.is_some());
        let mut servers: Vec<ServerName> = ending
            .filter_map(|it| Some(it.writes.first()?.server.clone()))
            .collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    pub fn writes(&self) -> impl Iterator<Item = &SentWrite> {
        self.all.iter().flat_map(|it| &it.writes)
    }

    /// The writes that are done or never will be, for the server has ended their connections. `asked` is
    /// the last doubt before it was asked.
    pub fn end(&mut self, asked: u64, listed: &AskedServer<'_>) -> Vec<SentWrite> {
        let is_over = |doubt: &mut Doubt| {
            let Some(first) = doubt.writes.first() else {
                return true;
            };
            let is_shown = listed.shows_all || first.account == listed.account;
            doubt.number <= asked
                && *first.server == *listed.server
                && is_shown
                && doubt
                    .connection
                    .is_some_and(|it| !listed.identifiers.contains(&it))
        };
        let over = self.all.extract_if(.., is_over);
        over.flat_map(|doubt| doubt.writes).collect()
    }
}
