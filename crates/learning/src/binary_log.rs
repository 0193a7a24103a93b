//! Other programs' writes, read from the binary log (`cache_learn_binary_log`), beside the polls.
//!
//! ```text
//! event ─► announced: pages that it meets are not shown ─► barrier ─► counted: pages fetched meanwhile are not kept
//! ```
//!
//! An event is sent before others can see its write: MariaDB writes its log first, and commits in the
//! engine then. So what is read counts as under way until a snapshot contains it. MariaDB takes snapshots
//! between commits, in the order of the log, and reports up to which position of the log each one goes.
//!
//! Whatever goes wrong ends the following with a reason; the polls go on. The next try begins at the present end of the
//! log, and what was written before it may be anything.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use learned::Session;
use mysql_wire::{LogContent, LogEnd, LogEvent, LogReader, LogStatement};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::LearnedPool;
use crate::client::{Client, DatabaseAccount, TextRow};
use crate::digest::Digest;
use crate::log_state::LogState;
use crate::postgres;
use crate::record::{SentWrite, ServerName};

/// To log in and begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// The server sends a heartbeat this often, in nanoseconds, and is lost after [`SILENCE`].
const SETTINGS: &str = "SET @master_heartbeat_period = 500000000, @master_binlog_checksum = 'NONE', \
    @mariadb_slave_capability = 4, net_write_timeout = 60";
const SILENCE: Duration = Duration::from_secs(5);

/// The write of an event is seen by others within this time.
const VISIBLE_WITHIN: Duration = Duration::from_secs(10);
const BETWEEN_SNAPSHOTS: Duration = Duration::from_millis(1);

/// While no page could be shown by what is known, the log is followed for so long.
const IDLE: Duration = Duration::from_secs(20);

/// Between two tries, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

const READ_BYTES: usize = 1 << 16;

/// Different writes that are counted at a time. More are anything.
const MAX_WRITES: usize = 64;

const COLLATION: u8 = 45;

/// How often something was announced: by no process, as the writes of PHP are.
static ANNOUNCEMENTS: AtomicU64 = AtomicU64::new(0);

/// A place in the log: the number of the file, and the bytes before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LogPosition {
    file: u64,
    bytes: u64,
}

/// Why the log is not followed any more.
enum FollowEnd {
    /// There is no page that could be shown, or the configuration is another.
    NotWanted,
    Failed(String),
}

impl From<io::Error> for FollowEnd {
    fn from(error: io::Error) -> Self {
        FollowEnd::Failed(error.to_string())
    }
}

impl From<LogEnd> for FollowEnd {
    fn from(end: LogEnd) -> Self {
        FollowEnd::Failed(match end {
            LogEnd::Failed(why) => why,
            LogEnd::Ended => "the server has ended it".to_owned(),
            LogEnd::Nonsense => "what the server sends makes no sense".to_owned(),
        })
    }
}

enum Following {
    Now,
    Ended { at: Instant, pause: Duration },
}

/// The servers whose logs are followed, or were.
#[derive(Clone, Default)]
pub struct Followers(Arc<Mutex<HashMap<ServerName, Following>>>);

impl Followers {
    /// Follows the log of each server whose pages are kept, where it is not followed and may be tried again.
    pub fn begin(&self, pool: &Arc<LearnedPool>) {
        if !pool.follows() {
            return;
        }
        let servers = pool.change(|book| book.to_poll(Instant::now()));
        for (server, ..) in servers {
            let Some(account) = pool.account_of(&server) else {
                continue;
            };
            if postgres::parts(&server).is_some() {
                let why = "it is a PostgreSQL".into();
                pool.change(|book| book.note_log(&server, LogState::NotFollowed(why)));
                continue;
            }
            let pause = match self.0.lock().get(&server) {
                Some(Following::Now) => continue,
                Some(Following::Ended { at, pause }) if at.elapsed() < *pause => continue,
                Some(Following::Ended { pause, .. }) => (*pause * 2).min(MAX_PAUSE),
                None => FIRST_PAUSE,
            };
            self.0.lock().insert(server.clone(), Following::Now);
            let (pool, followers) = (Arc::downgrade(pool), self.clone());
            tokio::spawn(async move { followers.run(&pool, &server, &account, pause).await });
        }
    }

    /// Follows a log for as long as that goes.
    async fn run(
        &self,
        pool: &Weak<LearnedPool>,
        server: &ServerName,
        account: &DatabaseAccount,
        pause: Duration,
    ) {
        let began = Instant::now();
        let end = follow(pool, server, account).await;
        let at = Instant::now();
        // It may have worked for a while.
        let pause = match at.duration_since(began) > MAX_PAUSE {
            true => FIRST_PAUSE,
            false => pause,
        };
        let state = match end {
            FollowEnd::NotWanted => {
                self.0.lock().remove(server);
                LogState::Off
            }
            FollowEnd::Failed(why) => {
                let ended = Following::Ended { at, pause };
                self.0.lock().insert(server.clone(), ended);
                LogState::NotFollowed(why.into())
            }
        };
        if let Some(pool) = pool.upgrade() {
            pool.change(|book| book.note_log(server, state));
        }
    }
}

/// One follower of one log.
struct Follower<'a> {
    pool: &'a Weak<LearnedPool>,
    server: &'a ServerName,
    account: &'a DatabaseAccount,
    snapshots: Snapshots,
    reader: LogReader,
    /// Behind the last event.
    position: LogPosition,
    awake_at: Instant,
}

async fn follow(
    pool: &Weak<LearnedPool>,
    server: &ServerName,
    account: &DatabaseAccount,
) -> FollowEnd {
    let begun = timeout(BEGINS_WITHIN, begin(account)).await;
    let begun = begun.map_err(|_| FollowEnd::Failed("the server does not answer".to_owned()));
    let (mut log, snapshots, position) = match begun {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => return error.into(),
        Err(end) => return end,
    };
    let mut follower = Follower {
        pool,
        server,
        account,
        snapshots,
        reader: LogReader::default(),
        position,
        awake_at: Instant::now(),
    };
    let mut buffer = vec![0; READ_BYTES];
    let mut is_first = true;
    loop {
        let length = match timeout(SILENCE, log.read(&mut buffer)).await {
            Ok(Ok(length @ 1..)) => length,
            Ok(Ok(_)) => return FollowEnd::Failed("the connection was closed".to_owned()),
            Ok(Err(error)) => return error.into(),
            Err(_) => return FollowEnd::Failed("nothing was heard for five seconds".to_owned()),
        };
        let read = buffer.get(..length).unwrap_or_default();
        if let Err(end) = follower.take(read, std::mem::take(&mut is_first)).await {
            return end;
        }
    }
}

/// Asks for the log from a position on up to which all is seen by others.
async fn begin(account: &DatabaseAccount) -> io::Result<(Client, Snapshots, LogPosition)> {
    let mut snapshots = Snapshots(Client::open(account, COLLATION).await?);
    let mut log = Client::open(account, COLLATION).await?;
    log.query(SETTINGS).await?;
    let number = replica_number();
    let (file, position) = snapshots.next().await?;
    let registered = log.command(&mysql_wire::register_command(number)).await;
    registered
        .map_err(|error| io::Error::other(format!("{error} (it needs REPLICATION SLAVE)")))?;
    let bytes = u32::try_from(position.bytes).map_err(|_| too_long())?;
    let dump = mysql_wire::dump_command(number, &file, bytes);
    log.command_without_answer(&dump).await?;
    Ok((log, snapshots, position))
}

/// The server ends another replica of the same number: each try has its own, of the upper half.
fn replica_number() -> u32 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let [a, b, c, d, ..] = random.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) | 1 << 31
}

impl Follower<'_> {
    /// Takes bytes of the log. Their writes count once they are announced, and once more when others see them.
    async fn take(&mut self, bytes: &[u8], is_first: bool) -> Result<(), FollowEnd> {
        let (mut writes, mut end) = (WriteList::default(), None);
        let (mut last, mut last_written) = (self.position, self.position);
        // Events that frame a transaction may lie behind the end of each snapshot.
        self.reader.received(bytes, &mut |event| {
            match behind(last, event) {
                Ok(position) => last = position,
                Err(why) => end = Some(why),
            }
            if writes.add(self.server, &event.content) {
                last_written = last;
            }
        })?;
        if let Some(end) = end {
            return Err(end);
        }
        self.position = last;
        let pool = self.wanted_pool()?;
        if is_first {
            // The server has accepted. What was written before is in no event.
            pool.change(|book| book.log_begun(self.server));
        }
        let writes = writes.finish(self.server);
        if writes.is_empty() {
            return Ok(());
        }
        let number = (u64::MAX, ANNOUNCEMENTS.fetch_add(1, Ordering::Relaxed));
        if !pool.change(|book| book.announced(number, &writes, Instant::now())) {
            return Ok(());
        }
        drop(pool);
        let seen = timeout(VISIBLE_WITHIN, self.snapshots.until(last_written)).await;
        if let Some(pool) = self.pool.upgrade() {
            pool.change(|book| book.log_counted(number, &writes));
            pool.want_replays();
        }
        match seen {
            Ok(seen) => Ok(seen?),
            Err(_) => Err(FollowEnd::Failed(
                "what it tells is not seen in the database within ten seconds".to_owned(),
            )),
        }
    }

    /// The pool, if its log is still to be followed by this account.
    fn wanted_pool(&mut self) -> Result<Arc<LearnedPool>, FollowEnd> {
        let pool = self.pool.upgrade().ok_or(FollowEnd::NotWanted)?;
        if pool.marks.is_awake() {
            self.awake_at = Instant::now();
        }
        let is_same = pool.account_of(self.server).as_ref() == Some(self.account);
        match pool.follows() && is_same && self.awake_at.elapsed() < IDLE {
            true => Ok(pool),
            false => Err(FollowEnd::NotWanted),
        }
    }
}

/// The place behind an event.
fn behind(before: LogPosition, event: &LogEvent<'_>) -> Result<LogPosition, FollowEnd> {
    if let LogContent::File(name) = event.content {
        let file = file_number(name).ok_or(LogEnd::Nonsense)?;
        return match file {
            _ if file < before.file => Err(FollowEnd::Failed("the log has begun anew".to_owned())),
            _ if file == before.file => Ok(before),
            _ => Ok(LogPosition { file, bytes: 0 }),
        };
    }
    let bytes = match u64::from(event.end) {
        0 => before.bytes,
        bytes => bytes,
    };
    match bytes < before.bytes {
        true => Err(too_long().into()),
        false => Ok(LogPosition { bytes, ..before }),
    }
}

fn too_long() -> io::Error {
    io::Error::other("its file is longer than 4 GiB")
}

/// Returns the number of a file such as `mysqld-bin.000012`.
fn file_number(name: &[u8]) -> Option<u64> {
    let name = str::from_utf8(name).ok()?;
    name.rsplit_once('.')?.1.parse().ok()
}

/// A session that asks what others see.
struct Snapshots(Client);

impl Snapshots {
    /// Takes a snapshot, and returns the file and the place in the log up to which it goes.
    async fn next(&mut self) -> io::Result<(Vec<u8>, LogPosition)> {
        let client = &mut self.0;
        let begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
        client.query(begin).await?;
        let said = client.query("SHOW STATUS LIKE 'Binlog_snapshot_%'").await?;
        client.query("ROLLBACK").await?;
        position_of(&said)
    }

    async fn until(&mut self, wanted: LogPosition) -> io::Result<()> {
        while self.next().await?.1 < wanted {
            sleep(BETWEEN_SNAPSHOTS).await;
        }
        Ok(())
    }
}

fn position_of(said: &[TextRow]) -> io::Result<(Vec<u8>, LogPosition)> {
    let value = |name: &[u8]| {
        let mut rows = said.iter();
        rows.find_map(|row| match &row[..] {
            [Some(it), Some(value)] if it == name => Some(&value[..]),
            _ => None,
        })
    };
    let values = value(b"Binlog_snapshot_file").zip(value(b"Binlog_snapshot_position"));
    let Some((file, bytes)) = values else {
        let message = "the server does not say which writes a snapshot has, as MariaDB does";
        return Err(io::Error::other(message));
    };
    if file.is_empty() {
        let message = "the server writes none (log_bin is off)";
        return Err(io::Error::other(message));
    }
    let bytes = str::from_utf8(bytes).ok().and_then(|it| it.parse().ok());
    let position = file_number(file).zip(bytes);
    let (number, bytes) = position.ok_or_else(|| io::Error::other("its position is no number"))?;
    let position = LogPosition {
        file: number,
        bytes,
    };
    Ok((file.to_vec(), position))
}

/// The different writes of what was read at a time.
#[derive(Default)]
struct WriteList {
    all: HashMap<u64, SentWrite>,
    is_too_many: bool,
}

impl WriteList {
    /// Whether the event writes anything.
    fn add(&mut self, server: &ServerName, content: &LogContent<'_>) -> bool {
        let write = match content {
            LogContent::File(_) | LogContent::Nothing => return false,
            LogContent::Rows { database, table } => rows(server, database, table),
            LogContent::Statement(statement) if writes_nothing(statement.text) => return false,
            LogContent::Statement(statement) => logged(server, statement),
            LogContent::Unknown => SentWrite::unknown(server),
        };
        if self.all.len() >= MAX_WRITES {
            self.is_too_many = true;
            return true;
        }
        let mut digest = Digest::default();
        digest.read(
            write
                .session
                .database
                .as_deref()
                .unwrap_or_default()
                .as_bytes(),
        );
        digest.read(&[
            u8::from(write.is_complete),
            u8::from(write.rows_of.is_some()),
        ]);
        digest.read(&write.text);
        self.all.insert(digest.finish(), write);
        true
    }

    fn finish(self, server: &ServerName) -> Arc<[SentWrite]> {
        match self.is_too_many {
            true => Arc::new([SentWrite::unknown(server)]),
            false => self.all.into_values().collect(),
        }
    }
}

/// Returns whether a statement only frames the events of a transaction.
fn writes_nothing(text: &[u8]) -> bool {
    [&b"BEGIN"[..], b"COMMIT", b"ROLLBACK"].contains(&text)
}

/// Any rows of a table.
fn rows(server: &ServerName, database: &[u8], table: &[u8]) -> SentWrite {
    let names = str::from_utf8(database)
        .ok()
        .zip(str::from_utf8(table).ok());
    match names {
        Some((database, table)) => SentWrite {
            rows_of: Some((database.into(), table.into())),
            is_complete: true,
            text: format!("a write to {database}.{table} (binary log)").into_bytes(),
            ..SentWrite::unknown(server)
        },
        None => SentWrite::unknown(server),
    }
}

fn logged(server: &ServerName, statement: &LogStatement<'_>) -> SentWrite {
    let collation = statement.collation.and_then(|it| u8::try_from(it).ok());
    let database = str::from_utf8(statement.database).ok();
    let Some((collation, database)) = collation.zip(database) else {
        return SentWrite::unknown(server);
    };
    let database = Some(database).filter(|it| !it.is_empty());
    SentWrite {
        session: Session::new(database.map(str::to_owned), collation),
        text: statement.text.to_vec(),
        is_complete: statement.is_plain,
        ..SentWrite::unknown(server)
    }
}

#[cfg(test)]
#[path = "binary_log_tests.rs"]
mod tests;
