//! A pool, and a process that speaks to it.

use std::collections::HashMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learn_record::{
    Acknowledgement, Hello, Message, RecordWriter, Session, StatementKind, Write, WriteOutcome,
};
use learning::{
    LearnedPool, Learning, PageMark, PageReport, PageVerdict, PoolRules, Reason, StoredPage,
};
use socket2::{Domain, SockAddr, Socket, Type};

pub struct Pool {
    pub folder: tempfile::TempDir,
    pub learning: Arc<Learning>,
    pub pool: Arc<LearnedPool>,
}

pub struct Worker(pub Socket);

impl Pool {
    pub fn begin() -> Pool {
        let [pool] = Pool::begin_all(["site"], [rustix::process::geteuid().as_raw()]);
        pool
    }

    /// Some that know each other.
    pub fn begin_all<const COUNT: usize>(
        names: [&str; COUNT],
        accounts: [u32; COUNT],
    ) -> [Pool; COUNT] {
        let folders = names.map(|_| tempfile::tempdir().unwrap());
        let mut sockets = HashMap::new();
        for ((folder, name), account) in folders.iter().zip(names).zip(accounts) {
            sockets.insert(name.to_owned(), listen(folder.path(), account));
        }
        let learning = Arc::new(Learning::renew(None, sockets, |_| rules()).unwrap());
        let mut folders = folders.into_iter();
        names.map(|name| Pool {
            folder: folders.next().unwrap(),
            pool: learning.pool(name).unwrap().clone(),
            learning: learning.clone(),
        })
    }

    pub fn connect(&self) -> Worker {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        let address = SockAddr::unix(self.folder.path().join("learn.sock")).unwrap();
        socket.connect(&address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Worker(socket)
    }

    pub fn worker(&self) -> Worker {
        let worker = self.connect();
        worker.say(&Message::Hello(hello()));
        worker
    }

    /// A page is made with this record, and stored.
    pub fn make(&self, worker: &Worker, record: impl FnOnce(&mut RecordWriter)) -> PageReport {
        let fetch = self.pool.begin(None);
        let number = fetch.number();
        let name = format!("page {number}");
        let mut writer = RecordWriter::default();
        record(&mut writer);
        assert!(writer.send(number, |packet| worker.0.send(packet).is_ok()));
        fetch.stored(StoredPage {
            keep: Some(Box::new(|time, _| Some(time))),
            ..page(&name)
        });
        wait(|| self.pool.page(name.as_bytes()))
    }
}

/// A page that is not kept.
pub fn page(name: &str) -> StoredPage {
    StoredPage {
        name: name.as_bytes().into(),
        key: Arc::default(),
        address: "http://a/".to_owned(),
        digest: Some(1),
        clients: Vec::new(),
        is_own: false,
        has_session: true,
        is_repeated: false,
        most: Duration::from_secs(3600),
        said_until: None,
        shape: None,
        keep: None,
        withdraw: Box::new(|_, _| ()),
    }
}

/// The socket of a pool whose PHP runs as this account.
fn listen(folder: &Path, account: u32) -> OwnedFd {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
    let path = folder.join("learn.sock");
    socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(16).unwrap();
    socket.set_nonblocking(true).unwrap();
    std::os::unix::fs::chown(&path, Some(account), None).unwrap();
    OwnedFd::from(socket)
}

/// Pages are kept.
pub fn rules() -> PoolRules {
    PoolRules {
        accounts: Vec::new(),
        cache_accounts: Vec::new(),
        keeps: true,
        replays: false,
        follows: false,
        lasts: None,
    }
}

pub fn hello() -> Hello<'static> {
    Hello {
        version: learn_record::VERSION,
        pid: std::process::id(),
        is_again: false,
        is_command: false,
        wants_acknowledgement: false,
        unseen_extensions: Vec::new(),
    }
}

impl Worker {
    pub fn say(&self, message: &Message<'_>) {
        let mut packet = Vec::new();
        message.encode(&mut packet);
        self.0.send(&packet).unwrap();
    }

    /// The acknowledgement that comes; `None` at the end of the connection.
    pub fn answer(&self) -> Option<u64> {
        let mut packet = [0; 64];
        let read = (&self.0).read(&mut packet).unwrap_or(0);
        let packet = packet.get(..read)?;
        Acknowledgement::decode(packet).ok().map(|it| it.number)
    }
}

pub fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn why(report: PageReport) -> Reason {
    match report {
        PageReport::NotLearned { why, .. } => why.reason,
        PageReport::Learned { .. } => panic!("it is learned"),
    }
}

pub fn write(number: u64) -> Message<'static> {
    write_to(number, b"unix:/run/mysqld/mysqld.sock")
}

pub fn write_to(number: u64, server: &'static [u8]) -> Message<'static> {
    statement_to(number, server, b"DELETE FROM post")
}

pub fn statement(number: u64, text: &'static [u8]) -> Message<'static> {
    statement_to(number, b"unix:/run/mysqld/mysqld.sock", text)
}

fn statement_to(number: u64, server: &'static [u8], text: &'static [u8]) -> Message<'static> {
    Message::Write(Write {
        number,
        fetch: 0,
        session: Session {
            connection: 1,
            server,
            server_version: b"10.11",
            identifier: 1,
            account: b"blog",
            collation: 45,
            database: Some(b"blog"),
            settings: Some(Vec::new()),
        },
        kind: StatementKind::Text,
        text,
        is_complete: true,
        parameters: Vec::new(),
        status_before: 2,
    })
}

pub fn written(number: u64) -> Message<'static> {
    outcome(number, false)
}

/// Within an open transaction, or not.
pub fn outcome(number: u64, is_open: bool) -> Message<'static> {
    Message::Written(WriteOutcome {
        number,
        error: None,
        status_after: if is_open { 3 } else { 2 },
    })
}

pub fn verdict(mark: &PageMark) -> PageVerdict {
    mark.verdict(clock::now())
}

/// Once the thread of the pool has looked at its sockets.
pub fn is_shown(mark: &PageMark) {
    wait(|| (verdict(mark) == PageVerdict::Good).then_some(()));
}
