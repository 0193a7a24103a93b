//! Follows the writes to a memcached, which names no key that changes: the keys that pages were made of are asked for again and
//! again. With each write a key gets another number (`cas unique`), which no other write has.
//!
//! ```text
//! each half second: stats on a new connection    the address leads to the same server
//!                   mg KEY c t ... mn            the number of each key, and how long it lives
//! ```
//!
//! A page is kept only if all its keys were known before its fetch began: a key that is asked for the first time counts as
//! written. The connection itself shows that the server was not started anew, with which the numbers would begin again. What
//! PHP of the pool writes is announced, and waits for no question.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cache_wire::is_memcached_key;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::LearnedPool;
use crate::caches::{CacheState, Lifetime};
use crate::client::{self, DatabaseAccount, Stream};
use crate::poll;
use crate::record::{CacheKey, CacheWrite, ServerName};
use crate::tracker::{ASK_EVERY, WITHIN, note_state};

/// Keys that are asked for each time: some 200 KB of questions. Pages of further ones are not kept.
const MAX_FOLLOWED: usize = 4000;

/// Bytes of all answers to the questions of one time.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The clocks of the server and of its start are those of whole seconds.
const CLOCK_DIFFERENCE: u64 = 1;

/// The facts by which a server is known again.
#[derive(Debug, PartialEq, Eq)]
struct ServerFacts {
    process: u64,
    /// Unix seconds.
    started_at: u64,
}

impl ServerFacts {
    fn is_same(&self, other: &ServerFacts) -> bool {
        self.process == other.process
            && self.started_at.abs_diff(other.started_at) <= CLOCK_DIFFERENCE
    }
}

/// The value of a key, and how long it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyState {
    /// The number of its last write; `None`: the server has no such key.
    written: Option<u64>,
    lifetime: Lifetime,
}

/// Whether a server at the other end is a memcached.
pub async fn is_memcached(account: &DatabaseAccount) -> io::Result<bool> {
    let mut stream = client::connect(&account.server).await?;
    stream.write_all(b"version\r\n").await?;
    let mut lines = Lines::default();
    Ok(lines.next(&mut stream).await?.starts_with("VERSION "))
}

/// Follows a memcached until that fails, or until no page may be shown by what is known.
pub async fn follow(
    pool: &Weak<LearnedPool>,
    server: &ServerName,
    account: &DatabaseAccount,
) -> io::Result<()> {
    let mut connection = timeout(WITHIN, Connection::open(account)).await??;
    let facts = timeout(WITHIN, connection.facts()).await??;
    let mut asks = interval(ASK_EVERY);
    asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    match pool.upgrade() {
        Some(pool) => note_state(&pool, server, CacheState::Followed),
        None => return Ok(()),
    }
    let mut known: HashMap<CacheKey, Option<u64>> = HashMap::new();
    loop {
        asks.tick().await;
        let Some(pool) = pool.upgrade() else {
            return Ok(());
        };
        if !pool.marks.is_awake() || !pool.keeps() {
            return Ok(());
        }
        let now = clock::now();
        let again = async { Connection::open(account).await?.facts().await };
        if !timeout(WITHIN, again).await??.is_same(&facts) {
            return Err(io::Error::other("another server answers"));
        }
        ask_once(&pool, server, &mut connection, &mut known).await?;
        pool.marks.note_tracked(now + poll::holds());
    }
}

/// Asks for the keys that pages are made of.
async fn ask_once(
    pool: &Arc<LearnedPool>,
    server: &ServerName,
    connection: &mut Connection,
    known: &mut HashMap<CacheKey, Option<u64>>,
) -> io::Result<()> {
    let new = {
        let mut book = pool.book.lock();
        // Pages of today's keys are worth more than those of keys that no page reads.
        if known.len() >= MAX_FOLLOWED {
            book.forget_unread_keys(server);
        }
        known.retain(|key, _| book.knows_key(server, key));
        book.keys_to_ask(server, MAX_FOLLOWED)
    };
    // What is no key of memcached is never known, so that no page of it is kept.
    let is_new = |it: &CacheKey| is_memcached_key(&it.key) && !known.contains_key(it);
    let new = new.into_iter().filter(is_new);
    let keys: Vec<CacheKey> = known
        .keys()
        .cloned()
        .chain(new)
        .take(MAX_FOLLOWED)
        .collect();
    let began = Instant::now();
    let states = timeout(WITHIN, connection.states(&keys, began)).await??;
    let (mut changed, mut lifetimes) = (Vec::new(), Vec::new());
    for (key, state) in keys.into_iter().zip(states) {
        match known.insert(key.clone(), state.written) {
            Some(before) if before == state.written => lifetimes.push((key, state.lifetime)),
            _ => changed.push(Box::from(&*key.key)),
        }
    }
    if !changed.is_empty() {
        let write = CacheWrite::Keys(changed.into());
        pool.change(|book| book.cache_changed(server, &write));
    }
    pool.change(|book| {
        book.set_lifetimes(server, &lifetimes);
        book.cache_asked(began);
    });
    Ok(())
}

struct Connection {
    stream: Box<dyn Stream>,
    lines: Lines,
}

impl Connection {
    async fn open(account: &DatabaseAccount) -> io::Result<Connection> {
        Ok(Connection {
            stream: client::connect(&account.server).await?,
            lines: Lines::default(),
        })
    }

    async fn facts(&mut self) -> io::Result<ServerFacts> {
        self.stream.write_all(b"stats\r\n").await?;
        let mut facts = HashMap::new();
        loop {
            let line = self.lines.next(&mut self.stream).await?;
            if line == "END" {
                break;
            }
            let stat = line.strip_prefix("STAT ").ok_or_else(|| unknown(&line))?;
            if stat.starts_with("proxy_") {
                return Err(io::Error::other("it passes keys on to other servers"));
            }
            if let Some((name, value)) = stat.split_once(' ')
                && let Ok(number) = value.parse::<u64>()
            {
                facts.insert(name.to_owned(), number);
            }
        }
        let fact = |name: &str| {
            let missing = || io::Error::other(format!("its statistics have no {name}"));
            facts.get(name).copied().ok_or_else(missing)
        };
        Ok(ServerFacts {
            process: fact("pid")?,
            started_at: fact("time")?.saturating_sub(fact("uptime")?),
        })
    }

    /// The states of these keys, each of which is one.
    async fn states(&mut self, keys: &[CacheKey], began: Instant) -> io::Result<Vec<KeyState>> {
        let mut questions = Vec::new();
        for key in keys {
            questions.extend_from_slice(b"mg ");
            questions.extend_from_slice(&key.key);
            questions.extend_from_slice(b" c t\r\n");
        }
        questions.extend_from_slice(b"mn\r\n");
        // The server stops reading where its answers are not read.
        let (mut from_server, mut to_server) = tokio::io::split(&mut self.stream);
        let send = async { to_server.write_all(&questions).await };
        let receive = async {
            let mut states = Vec::with_capacity(keys.len());
            for _ in keys {
                let line = self.lines.next(&mut from_server).await?;
                states.push(state(&line, began)?);
            }
            match &*self.lines.next(&mut from_server).await? {
                "MN" => Ok(states),
                line => Err(unknown(line)),
            }
        };
        let ((), states) = tokio::try_join!(send, receive)?;
        Ok(states)
    }
}

/// The state of a key, by an answer to a question of this time.
fn state(line: &str, asked: Instant) -> io::Result<KeyState> {
    let mut words = line.split(' ');
    match words.next() {
        Some("EN") => Ok(KeyState {
            written: None,
            lifetime: Lifetime::Unlimited,
        }),
        Some("HD") => {
            let (mut number, mut left) = (None, None);
            for word in words {
                match word.split_at_checked(1) {
                    Some(("c", text)) => number = text.parse::<u64>().ok(),
                    Some(("t", "-1")) => left = Some(None),
                    Some(("t", text)) => left = text.parse::<u64>().ok().map(Some),
                    // A client is to write it again, and was chosen for that here.
                    _ => return Err(io::Error::other(format!("{line}: a key that is stale"))),
                }
            }
            let number = number.filter(|it| *it != 0);
            let number = number.ok_or_else(|| io::Error::other("its keys have no numbers (-C)"))?;
            // A second that has begun counts as one that is left.
            let end = left
                .ok_or_else(|| unknown(line))?
                .and_then(|left| asked.checked_add(Duration::from_secs(left.saturating_sub(1))));
            Ok(KeyState {
                written: Some(number),
                lifetime: end.map_or(Lifetime::Unlimited, Lifetime::Until),
            })
        }
        _ => Err(unknown(line)),
    }
}

fn unknown(line: &str) -> io::Error {
    let line = crate::php_report::shown(line.as_bytes());
    io::Error::other(format!(
        "{line}: an answer that is not known (memcached 1.6 or later is)"
    ))
}

/// Lines of a server.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Bytes of lines that were given out.
    taken: usize,
}

impl Lines {
    async fn next(&mut self, stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<String> {
        loop {
            let rest = self.bytes.get(self.taken..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let line = String::from_utf8_lossy(line).into_owned();
                self.taken += end + 1;
                return Ok(line);
            }
            self.bytes.drain(..self.taken);
            self.taken = 0;
            if self.bytes.len() > MAX_ANSWER_BYTES {
                return Err(io::Error::other("it says more at once than is read"));
            }
            if stream.read_buf(&mut self.bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_the_last_write_and_the_end_of_a_key() {
        let now = Instant::now();
        let until = |seconds| Lifetime::Until(now + Duration::from_secs(seconds));
        for (line, written, lifetime) in [
            ("EN", None, Lifetime::Unlimited),
            ("HD c7 t-1", Some(7), Lifetime::Unlimited),
            ("HD t60 c18446744073709551615", Some(u64::MAX), until(59)),
            ("HD c7 t0", Some(7), until(0)),
        ] {
            let expected = KeyState { written, lifetime };
            assert_eq!(state(line, now).unwrap(), expected, "{line}");
        }
        for line in [
            "HD c0 t-1",
            "HD c7",
            "HD t-1",
            "HD c7 t-1 W",
            "HD c7 t-1 X Z",
            "HD c7 tx",
            "ERROR",
            "",
            "VA 2 c7 t-1",
        ] {
            assert!(state(line, now).is_err(), "{line}");
        }
    }
}
