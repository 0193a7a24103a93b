//! The messages of one worker of PHP, packet by packet.
//!
//! Nothing here trusts it: packets, records, announced writes and open transactions are bounded, and a
//! packet that cannot be understood ends the connection. A write that was announced and not answered counts
//! as done then: the process may have been killed between the database's answer and its own message.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use learn_record::{
    Acknowledgement, DoubtReason, Message, RecordParts, StatementKind, Write, WriteOutcome,
};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::LearnedPool;
use crate::book::Book;
use crate::join::Join;
use crate::other_nodes::WrittenEntry;
use crate::record::{Reason, RunRecord, SentWrite, WhyNot};
use crate::{php_report, process, unix_seconds};

/// Writes that a process has announced and not ended: it waits for each.
const MAX_WRITES: usize = 64;

/// Writes of one transaction that are kept until its end.
const MAX_IN_TRANSACTION: usize = 256;

/// Connections of one process with an open transaction.
const MAX_TRANSACTIONS: usize = 64;

/// How long a process may take to end once it has closed its end.
const LOOKS_FOR_ITS_END: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(25);

static LAST_PROCESS: AtomicU64 = AtomicU64::new(0);

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The process is gone, or has closed its end.
    Closed,
    /// It sent what cannot be understood, or too much.
    Refused,
    /// The library does not see, or does not tell, all that the process does.
    Doubt(DoubtReason),
}

impl ConnectionEnd {
    /// Why the process is not heard any more. `None`: it need not be.
    fn why_unheard(self) -> Option<&'static str> {
        match self {
            ConnectionEnd::Closed => None,
            ConnectionEnd::Refused => Some("it said what cannot be understood"),
            ConnectionEnd::Doubt(DoubtReason::Acknowledgement) => {
                Some("it was not answered in time")
            }
            ConnectionEnd::Doubt(DoubtReason::Channel) => Some("it could not tell what it did"),
            ConnectionEnd::Doubt(DoubtReason::Missed) => Some(
                "another thread or a program that it started used its connections, or it has too many",
            ),
        }
    }
}

/// A process of PHP, and what it has announced.
pub struct Worker {
    pool: Arc<LearnedPool>,
    join: Arc<Mutex<Join>>,
    socket: Arc<UnixStream>,
    pid: u32,
    /// Tells it from others, also from one that had its process number.
    process: u64,
    has_greeted: bool,
    /// It belongs to a command, and makes no pages.
    is_command: bool,
    /// The process belongs to root, which may write what the pools of all accounts read.
    is_of_root: bool,
    /// Another Mayfly may know what its transactions have written so far.
    has_spoken_elsewhere: bool,
    /// Extensions whose reads the library cannot see.
    unseen: Option<String>,
    parts: RecordParts,
    writes: HashMap<u64, SentWrite>,
    transactions: HashMap<u32, Transaction>,
}

/// Writes, each with the tables that a pool which knows them has named; without names where one pool alone counts them.
struct WriteList {
    writes: Arc<[SentWrite]>,
    named: Vec<Option<Vec<SentWrite>>>,
}

/// The writes of an open transaction of a connection. With more, it may have written anything.
struct Transaction {
    writes: Vec<SentWrite>,
}

impl Worker {
    pub fn new(
        pool: Arc<LearnedPool>,
        join: Arc<Mutex<Join>>,
        socket: Arc<UnixStream>,
        (pid, account): (u32, u32),
    ) -> Worker {
        Worker {
            pool,
            join,
            socket,
            pid,
            process: LAST_PROCESS.fetch_add(1, Ordering::Relaxed),
            has_greeted: false,
            is_command: false,
            is_of_root: account == 0,
            has_spoken_elsewhere: false,
            unseen: None,
            parts: RecordParts::default(),
            writes: HashMap::new(),
            transactions: HashMap::new(),
        }
    }

    /// Hears it until it ends.
    pub async fn run(mut self) -> ConnectionEnd {
        // One byte more than a packet may have, so that a longer one is seen.
        let mut packet = vec![0; learn_record::MAX_MESSAGE_BYTES + 1];
        let ended = loop {
            if let Err(ended) = self.hear_next(&mut packet).await {
                break ended;
            }
            // Others of the pool have their turn.
            tokio::task::yield_now().await;
        };
        self.leave_writes_in_doubt();
        let ended = match ended {
            ConnectionEnd::Closed if goes_on(self.pid).await => {
                ConnectionEnd::Doubt(DoubtReason::Channel)
            }
            ended => ended,
        };
        self.end(ended);
        ended
    }

    /// Hears one packet: PHP waits for the answer to some before it sends the next.
    async fn hear_next(&mut self, packet: &mut [u8]) -> Result<(), ConnectionEnd> {
        let received = self.socket.async_io(Interest::READABLE, || {
            let received = rustix::net::recv(&*self.socket, &mut *packet, RecvFlags::TRUNC);
            received.map(|(_, bytes)| bytes).map_err(io::Error::from)
        });
        match received.await {
            Err(_) | Ok(0) => Err(ConnectionEnd::Closed),
            Ok(bytes) => {
                let packet = packet.get(..bytes).ok_or(ConnectionEnd::Refused)?;
                self.hear(packet).await
            }
        }
    }

    async fn hear(&mut self, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        let message = Message::decode(bytes).map_err(|_| ConnectionEnd::Refused)?;
        match message {
            Message::Hello(hello) => {
                let is_out_of_place = self.has_greeted && !hello.is_again;
                if is_out_of_place || hello.version != learn_record::VERSION {
                    return Err(ConnectionEnd::Refused);
                }
                self.has_greeted = true;
                self.is_command = hello.is_command;
                let unseen = hello.unseen_extensions.iter();
                let unseen: Vec<_> = unseen.map(|name| php_report::shown(name)).collect();
                self.unseen = (!unseen.is_empty()).then(|| unseen.join(" "));
                if hello.is_again {
                    self.has_spoken_elsewhere = true;
                    for pool in self.reached() {
                        pool.change(|book| book.note_heard_again(self.pid, Instant::now()));
                    }
                    self.tell_nodes(Some(WrittenEntry::default())).await;
                }
                if hello.is_again || hello.wants_acknowledgement {
                    self.acknowledge(0)?;
                }
            }
            _ if !self.has_greeted => return Err(ConnectionEnd::Refused),
            Message::RecordPart(_) if self.is_command => return Err(ConnectionEnd::Refused),
            Message::RecordPart(part) => match self.parts.add(&part) {
                Ok(None) => {}
                Ok(Some(fetch)) => self.record(fetch)?,
                Err(_) => return Err(ConnectionEnd::Refused),
            },
            Message::Write(write) => self.announced(&write)?,
            Message::Written(written) => self.written(written).await?,
            Message::Doubt(doubt) => return Err(ConnectionEnd::Doubt(doubt.reason)),
        }
        Ok(())
    }

    fn record(&mut self, fetch: u64) -> Result<(), ConnectionEnd> {
        let record = self.parts.record().map_err(|_| ConnectionEnd::Refused)?;
        let mut run: RunRecord = php_report::run(&record, &|server| self.pool.modes(server));
        if let (Some(unseen), None) = (&self.unseen, &run.obstacle) {
            run.obstacle = Some(WhyNot::new(Reason::Extension, unseen.clone()));
        }
        if run.obstacle.is_none() && self.pool.lasts().is_some() {
            run.report = Some(self.parts.bytes().into());
        }
        let bytes = run.size_bytes();
        self.pool.sessions.recorded(&run, unix_seconds());
        self.parts.clear();
        let now = Instant::now();
        self.pool.change(|book| book.see_code(&run.files, now));
        if fetch == 0 {
            // No page: the record has scripts alone.
            return Ok(());
        }
        let joined = self.join.lock().record(fetch, (run, bytes), now);
        if let Some((end, record)) = joined {
            self.pool.learn(end, record);
        }
        Ok(())
    }

    fn announced(&mut self, write: &Write<'_>) -> Result<(), ConnectionEnd> {
        if self.writes.len() >= MAX_WRITES {
            return Err(ConnectionEnd::Refused);
        }
        let server = php_report::server_of(&write.session);
        let modes = self.pool.modes(&server);
        let is_command = write.kind == StatementKind::Command;
        let cache = (write.kind == StatementKind::Cache).then(|| php_report::cache_write(write));
        let sent = SentWrite {
            connection: write.session.connection,
            identifier: write.session.identifier,
            account: write.session.account.to_vec(),
            server,
            session: php_report::session_of(&write.session, &modes),
            text: write.text.to_vec(),
            parameters: write.parameters.iter().map(php_report::value_of).collect(),
            is_complete: write.is_complete && !is_command && !self.has_unknown_writes(write),
            rows_of: None,
            cache,
        };
        let mut meant = vec![sent.clone()];
        if may_end_transaction(&sent.text)
            && let Some(open) = self.transactions.get(&sent.connection)
        {
            meant.extend(open.writes.iter().cloned());
        }
        let meant: Arc<[SentWrite]> = meant.into();
        let number = (self.process, write.number);
        let now = Instant::now();
        let list = self.write_list(meant);
        for pool in self.reached() {
            pool.change(|book| {
                let counted = self.counted(book, &list);
                book.announced(number, &counted, now);
            });
        }
        self.writes.insert(write.number, sent);
        self.acknowledge(write.number)
    }

    /// Whether the statement may end a transaction with writes that were not reported here.
    fn has_unknown_writes(&self, write: &Write<'_>) -> bool {
        self.has_spoken_elsewhere
            && write.status_before & php_report::WITHIN_TRANSACTION != 0
            && !self.transactions.contains_key(&write.session.connection)
    }

    /// PHP waits for it: with the statement that it has announced, or with what the server answered.
    fn acknowledge(&self, number: u64) -> Result<(), ConnectionEnd> {
        let acknowledgement = Acknowledgement {
            number,
            hold_milliseconds: self.pool.nodes.hold_milliseconds(),
        };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::send(&*self.socket, &acknowledgement.encode(), flags) {
            Ok(_) => Ok(()),
            // It was killed while it waited.
            Err(Errno::PIPE | Errno::CONNRESET) => Err(ConnectionEnd::Closed),
            // A process that does not read its answers does not get them.
            Err(_) => Err(ConnectionEnd::Refused),
        }
    }

    async fn written(&mut self, written: WriteOutcome) -> Result<(), ConnectionEnd> {
        let sent = self
            .writes
            .remove(&written.number)
            .ok_or(ConnectionEnd::Refused)?;
        // One that failed may have been done in part.
        let mut seen = vec![sent.clone()];
        let is_open = written.status_after & php_report::WITHIN_TRANSACTION != 0;
        let may_end = may_end_transaction(&sent.text);
        if let Some(open) = self.transactions.get(&sent.connection)
            && is_open
            && may_end
        {
            // It may have ended one transaction and begun the next.
            seen.extend(open.writes.iter().cloned());
        }
        seen.extend(self.follow_transaction(sent, is_open));
        let number = (self.process, written.number);
        let seen: Arc<[SentWrite]> = seen.into();
        let list = self.write_list(seen.clone());
        for pool in self.reached() {
            pool.change(|book| {
                let counted = self.counted(book, &list);
                book.answered(number, &counted);
            });
            pool.want_replays();
        }
        // Others see nothing of an open transaction.
        if may_end || !is_open {
            let entry = self.entry_of(&seen);
            self.tell_nodes(entry).await;
        }
        self.acknowledge(written.number)
    }

    /// Makes the entry that reports these writes to other nodes, as one of the pools understands them.
    fn entry_of(&self, writes: &[SentWrite]) -> Option<WrittenEntry> {
        self.pool.nodes.get()?;
        // The identity of the server is known while the thread of the pool is at work.
        self.pool.marks.wake();
        let now = Instant::now();
        let mut others = self.reached().into_iter();
        let knows = |pool: &Arc<LearnedPool>| pool.book.lock().knows_tables_of(writes);
        let pool = others.find(knows).unwrap_or_else(|| self.pool.clone());
        pool.change(|book| book.entry_of(writes, now))
    }

    /// Waits until the other nodes know.
    async fn tell_nodes(&self, entry: Option<WrittenEntry>) {
        let Some((nodes, entry)) = self.pool.nodes.get().zip(entry) else {
            return;
        };
        let know = nodes.tell(entry.encode());
        if let Some(news) = self.pool.nodes.wait(know, &self.socket).await {
            self.pool
                .change(|book| book.note(news.sentence().to_owned()));
        }
    }

    fn count(&self, sent: &SentWrite) {
        let list = self.write_list([sent.clone()].into());
        for pool in self.reached() {
            pool.change(|book| {
                let counted = self.counted(book, &list);
                counted.iter().for_each(|write| book.written(write));
            });
        }
    }

    /// With the tables of each write, where a pool knows them.
    fn write_list(&self, writes: Arc<[SentWrite]>) -> WriteList {
        let pools = self.reached();
        let named = |write: &SentWrite| {
            let mut pools = pools.iter();
            pools.find_map(|pool| pool.book.lock().by_tables(write))
        };
        let named = match pools.len() {
            0 | 1 => Vec::new(),
            _ => writes.iter().map(named).collect(),
        };
        WriteList { writes, named }
    }

    /// The pools whose pages it can alter.
    fn reached(&self) -> Vec<Arc<LearnedPool>> {
        self.pool.reached(self.is_command && self.is_of_root)
    }

    /// Returns the writes that a pool counts: its account may not see the tables, and a command may reach the pool's database
    /// by another address.
    fn counted(&self, book: &mut Book, list: &WriteList) -> Arc<[SentWrite]> {
        let mut writes = list.writes.clone();
        if !list.named.is_empty() {
            let pairs = writes.iter().zip(&list.named);
            let understood = pairs.flat_map(|(write, named)| match named {
                Some(named) => book.understood(write, named),
                None => vec![write.clone()],
            });
            writes = understood.collect();
        }
        match self.is_command {
            true => book.of_known_servers(&writes),
            false => writes,
        }
    }

    /// Follows a transaction, whose writes others see at its end: returns all of them then.
    fn follow_transaction(&mut self, mut sent: SentWrite, is_open: bool) -> Vec<SentWrite> {
        let connection = sent.connection;
        if is_open {
            let is_new = !self.transactions.contains_key(&connection);
            if is_new && self.transactions.len() >= MAX_TRANSACTIONS {
                // Connections that ended within one roll back, and there is no message about that.
                let open = std::mem::take(&mut self.transactions).into_values();
                let writes = open.flat_map(|transaction| transaction.writes);
                writes.for_each(|sent| self.count(&sent));
            }
            let transaction = self.transactions.entry(connection);
            let transaction = transaction.or_insert_with(|| Transaction { writes: Vec::new() });
            if transaction.writes.len() >= MAX_IN_TRANSACTION {
                transaction.writes.clear();
                sent.is_complete = false;
            }
            transaction.writes.push(sent);
            return Vec::new();
        }
        let ended = self.transactions.remove(&connection);
        ended
            .map(|transaction| transaction.writes)
            .unwrap_or_default()
    }

    fn suspect_all(&self, why: &str) {
        let now = Instant::now();
        for pool in self.reached() {
            pool.change(|book| book.suspect_all(why, now, |_| true));
        }
    }

    fn leave_writes_in_doubt(&mut self) {
        let mut in_doubt: Vec<_> = std::mem::take(&mut self.writes).into_values().collect();
        for (connection, transaction) in std::mem::take(&mut self.transactions) {
            // Without an answer that is outstanding, the server takes it back.
            match in_doubt.iter().any(|it| it.connection == connection) {
                true => in_doubt.extend(transaction.writes),
                false => transaction.writes.iter().for_each(|it| self.count(it)),
            }
        }
        let list = self.write_list(in_doubt.into());
        for pool in self.reached() {
            let now = Instant::now();
            pool.change(|book| {
                let counted = self.counted(book, &list);
                book.left_in_doubt(self.process, counted.to_vec(), now);
            });
        }
    }

    fn end(&self, ended: ConnectionEnd) {
        if let Some(why) = ended.why_unheard() {
            self.suspect_all("a worker is not heard any more");
            let pid = self.pid;
            for pool in self.reached() {
                pool.change(|book| {
                    book.counts().refused += 1;
                    book.note_unheard(pid, why);
                });
            }
        }
    }
}

/// Whether a statement may end a transaction, however it is written.
fn may_end_transaction(text: &[u8]) -> bool {
    let word = text.split(|byte| !byte.is_ascii_alphabetic()).next();
    let word = word.unwrap_or_default().to_ascii_lowercase();
    let goes_on_within = matches!(
        &word[..],
        b"insert" | b"update" | b"delete" | b"replace" | b"select" | b"savepoint" | b"release"
    );
    !goes_on_within || text.contains(&b';')
}

/// Returns whether a process that has closed its end is still alive. It is not heard then, and the message about
/// that may have been lost. A process that ends closes its end a moment earlier.
async fn goes_on(pid: u32) -> bool {
    for _ in 0..LOOKS_FOR_ITS_END {
        if !process::is_alive(pid) {
            return false;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    true
}
