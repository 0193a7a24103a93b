//! Writes of processes that ended before they reported the outcome.
//!
//! A server finishes a COMMIT whose client has died, at a time that nobody knows. As long as it lists the
//! connection, the write may still be done: no page that reads what it writes is learned.
//!
//! If the server does not show the connection, because the account may not see it or because it belongs to another
//! server, the doubt ends after a minute. A write that is done later is like one of another program, which the polls see:
//! no COMMIT has returned to anyone.

use std::time::{Duration, Instant};

use crate::record::{SentWrite, ServerName};

/// Connections in doubt. With more, everything is, for as long as of a connection that is not shown.
const MAX_DOUBTS: usize = 64;

/// For this long a write counts of which the server does not show whether it may still be done. MariaDB waits for a lock for
/// 50 seconds at most by default.
const UNSHOWN_LASTS: Duration = Duration::from_secs(60);

/// Writes of one connection. With more, it may write anything.
const MAX_WRITES: usize = 64;

/// Asks for the connections of a server, which shows those of other accounts to some only.
pub const QUESTIONS: [&str; 3] = [
    "SELECT id FROM information_schema.processlist",
    "SELECT SUBSTRING_INDEX(USER(), '@', 1)",
    "SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'
     AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
];

/// The same for a PostgreSQL, which shows the processes of all accounts.
pub const POSTGRES_QUESTIONS: [&str; 3] = [
    "SELECT pid FROM pg_stat_activity",
    "SELECT session_user",
    "SELECT 1",
];

/// The answer of a server to [`QUESTIONS`].
pub struct AskedServer<'a> {
    pub server: &'a str,
    /// The numbers of the connections that it shows.
    pub identifiers: &'a [u32],
    /// Whose connections it shows.
    pub account: &'a [u8],
    /// It shows those of all accounts.
    pub shows_all: bool,
}

struct Doubt {
    number: u64,
    since: Instant,
    /// `None`: more connections than are kept.
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
        let is_too_much = self.all.len() >= MAX_DOUBTS;
        if is_too_much || writes.len() > MAX_WRITES {
            writes.truncate(1);
            writes.iter_mut().for_each(|it| it.is_complete = false);
        }
        let server = writes.first().map(|it| it.server.clone());
        self.last += 1;
        let is_of_all = |it: &&mut Doubt| {
            it.connection.is_none() && it.writes.first().map(|it| &it.server) == server.as_ref()
        };
        if let Some(of_all) = self.all.iter_mut().find(is_of_all).filter(|_| is_too_much) {
            (of_all.number, of_all.since) = (self.last, now);
            return;
        }
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
        let servers = self.all.iter();
        let mut servers: Vec<ServerName> = servers
            .filter_map(|it| Some(it.writes.first()?.server.clone()))
            .collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    pub fn writes(&self) -> impl Iterator<Item = &SentWrite> {
        self.all.iter().flat_map(|it| &it.writes)
    }

    /// The writes that are done or never will be, for the server has ended their connections, and those that it does not
    /// show for long enough. `asked` is the last doubt before it was asked.
    pub fn end(&mut self, asked: u64, listed: &AskedServer<'_>, now: Instant) -> Vec<SentWrite> {
        let is_over = |doubt: &mut Doubt| {
            let Some(first) = doubt.writes.first() else {
                return true;
            };
            let is_shown = listed.shows_all || first.account == listed.account;
            doubt.number <= asked
                && *first.server == *listed.server
                && match doubt.connection.filter(|_| is_shown) {
                    Some(shown) => !listed.identifiers.contains(&shown),
                    None => now.saturating_duration_since(doubt.since) >= UNSHOWN_LASTS,
                }
        };
        let over = self.all.extract_if(.., is_over);
        over.flat_map(|doubt| doubt.writes).collect()
    }
}
