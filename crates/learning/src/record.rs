//! One run of PHP, in the terms of `learned`.

use std::path::PathBuf;
use std::sync::Arc;

use learned::{Session, Value};

use crate::replay::ReplaySession;
use crate::session_data;

/// A database server, as PHP reached it. Each pool has few.
pub type ServerName = Arc<str>;

/// A statement with all that decides how it is read.
#[derive(Debug, Clone)]
pub struct SentStatement {
    pub server: ServerName,
    /// Tells the connections of one record apart.
    pub connection: u32,
    pub session: Session,
    pub text: Vec<u8>,
    pub parameters: Vec<Value>,
    /// Stands for what it returned.
    pub result: u64,
    /// It was prepared, and not sent as text.
    pub is_prepared: bool,
    /// The session in which it can be run again.
    pub again_in: Option<Arc<ReplaySession>>,
}

/// A write that was announced.
#[derive(Clone)]
pub struct SentWrite {
    pub connection: u32,
    /// The server's number of the connection.
    pub identifier: u32,
    pub account: Vec<u8>,
    pub server: ServerName,
    pub session: Session,
    pub text: Vec<u8>,
    pub parameters: Vec<Value>,
    /// Text and parameters are all of it.
    pub is_complete: bool,
    /// From the binary log: any rows of this table, by its database and name. The text is for people.
    pub rows_of: Option<(Arc<str>, Arc<str>)>,
    /// Of an object cache, and no statement. The text is for people.
    pub cache: Option<CacheWrite>,
}

/// A key in one database of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub database: u32,
    pub key: Arc<[u8]>,
}

/// The part of an object cache that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheWrite {
    /// These keys, in any of its databases.
    Keys(Arc<[Box<[u8]>]>),
    Everything,
}

impl SentWrite {
    /// An event of the binary log that may be anything.
    pub fn unknown(server: &ServerName) -> SentWrite {
        SentWrite {
            connection: 0,
            identifier: 0,
            account: Vec::new(),
            server: server.clone(),
            session: Session::new(None, 0),
            text: b"an event of the binary log that may write anything".to_vec(),
            parameters: Vec::new(),
            is_complete: false,
            rows_of: None,
            cache: None,
        }
    }
}

/// A file, as it was when PHP looked at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    pub path: PathBuf,
    /// `None`: there was none.
    pub state: Option<FileState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Unix nanoseconds.
    pub modified: i64,
    /// 0 for a folder.
    pub bytes: u64,
    /// 0: PHP asked for nothing but whether it is there.
    pub inode: u64,
}

impl FileState {
    /// PHP asked for nothing but whether it is there.
    pub const MERE_PRESENCE: FileState = FileState {
        modified: 0,
        bytes: 0,
        inode: 0,
    };

    /// Whether what PHP saw is still so.
    pub fn is_same(seen: Option<FileState>, now: Option<FileState>) -> bool {
        let is_mere_presence = |state: Option<FileState>| state.is_some_and(|it| it.inode == 0);
        match is_mere_presence(seen) || is_mere_presence(now) {
            true => seen.is_some() == now.is_some(),
            false => seen == now,
        }
    }
}

/// An SQLite database that PHP had open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDatabase {
    pub path: PathBuf,
    /// The device of the file that PHP reads.
    pub device: u64,
    pub inode: u64,
    /// An earlier page opened it, and may have left a transaction open.
    pub is_from_before: bool,
}

/// A session in a file that PHP had locked, and closed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSession {
    /// As the visitor's cookie has it.
    pub id: Vec<u8>,
    pub path: PathBuf,
    pub hash_before: u64,
    pub hash_after: u64,
    /// `None`: it was too long, or is that of `after`.
    pub before: Option<Vec<u8>>,
    /// `None`: it was too long.
    pub after: Option<Vec<u8>>,
    pub state: FileState,
}

impl SeenSession {
    /// Was there nothing in it?
    pub fn began_empty(&self) -> bool {
        match &self.before {
            Some(before) => before.is_empty(),
            None => {
                let is_empty = |after: &Vec<u8>| after.is_empty();
                self.hash_before == self.hash_after && self.after.as_ref().is_some_and(is_empty)
            }
        }
    }

    /// The names of the times that PHP has written; `None`: it has written something else. `now`: in Unix seconds.
    pub fn times_written(&self, now: i64) -> Option<Vec<Vec<u8>>> {
        if self.hash_before == self.hash_after {
            return Some(Vec::new());
        }
        let (before, after) = self.before.as_ref().zip(self.after.as_ref())?;
        session_data::times_set(before, after, now)
    }
}

/// Why nothing is learned of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyNot {
    pub reason: Reason,
    /// For people: the statement, the address, the file.
    pub detail: String,
}

impl WhyNot {
    pub fn new(reason: Reason, detail: impl Into<String>) -> WhyNot {
        WhyNot {
            reason,
            detail: detail.into(),
        }
    }

    pub fn unpolled(detail: impl Into<String>) -> WhyNot {
        WhyNot::new(Reason::Unpolled, detail)
    }
}

/// One run of PHP.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    pub statements: Vec<SentStatement>,
    pub files: Vec<SeenFile>,
    pub sqlite: Vec<OpenDatabase>,
    pub sessions: Vec<SeenSession>,
    /// Sessions of which it is not known what PHP did to them, as a visitor's cookie has them.
    pub doubtful_sessions: Vec<Vec<u8>>,
    /// The object cache, and what was read there.
    pub cache: Option<(ServerName, Vec<CacheKey>)>,
    /// The record of the library, if pages are written to disk.
    pub report: Option<Box<[u8]>>,
    /// The first input that cannot be learned.
    pub obstacle: Option<WhyNot>,
}

impl RunRecord {
    /// The database of addresses that PHP opened, or the statement that looks up the visitor's: the page may be for one
    /// network.
    pub fn address_database(&self) -> Option<&str> {
        let obstacle = self.obstacle.as_ref();
        let is_it = |why: &&WhyNot| why.reason == Reason::AddressDatabase;
        obstacle.filter(is_it).map(|why| &why.detail[..])
    }

    /// About how much memory it takes.
    pub fn size_bytes(&self) -> usize {
        let statements = self.statements.iter();
        let statements = statements.map(|it| 256 + it.text.len() + 64 * it.parameters.len());
        let files = self.files.iter().map(|it| 64 + it.path.as_os_str().len());
        let databases = self.sqlite.iter();
        let databases = databases.map(|it| 64 + it.path.as_os_str().len());
        let keys = self.cache.iter().flat_map(|(_, keys)| keys);
        let keys = keys.map(|it| 64 + it.key.len());
        let report = self.report.iter().map(|report| report.len());
        let sessions = self.sessions.iter().map(|it| {
            let contents = [&it.before, &it.after].into_iter().flatten();
            256 + contents.map(Vec::len).sum::<usize>()
        });
        let others = files
            .chain(databases)
            .chain(keys)
            .chain(report)
            .chain(sessions);
        statements.chain(others).sum()
    }
}

/// The reasons, each with its word for metrics and a sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The library in PHP reported nothing of the run.
    NoRecord,
    NotModified,
    /// A part of the report did not arrive.
    Incomplete,
    TooLong,
    Unreadable,
    Elsewhere,
    Program,
    Extension,
    SharedMemory,
    FileOutside,
    OwnFile,
    OwnSession,
    FileChanged,
    CodeChanged,
    NoSchema,
    SeveralServers,
    Statement,
    OwnWrite,
    Transaction,
    WrittenMeanwhile,
    TooManyPages,
    Unpolled,
    Differs,
    DatabaseFile,
    AddressDatabase,
    /// An object cache was asked for more than the values of keys, or did not answer.
    CacheState,
    /// Pages like it were not yet the same often enough (`cache_learn auto`).
    Unproven,
    /// A database or the lock of a file was refused for a moment.
    Unanswered,
}

impl Reason {
    /// In the order of the variants.
    pub const ALL: [Reason; 28] = [
        Reason::NoRecord,
        Reason::NotModified,
        Reason::Incomplete,
        Reason::TooLong,
        Reason::Unreadable,
        Reason::Elsewhere,
        Reason::Program,
        Reason::Extension,
        Reason::SharedMemory,
        Reason::FileOutside,
        Reason::OwnFile,
        Reason::OwnSession,
        Reason::FileChanged,
        Reason::CodeChanged,
        Reason::NoSchema,
        Reason::SeveralServers,
        Reason::Statement,
        Reason::OwnWrite,
        Reason::Transaction,
        Reason::WrittenMeanwhile,
        Reason::TooManyPages,
        Reason::Unpolled,
        Reason::Differs,
        Reason::DatabaseFile,
        Reason::AddressDatabase,
        Reason::CacheState,
        Reason::Unproven,
        Reason::Unanswered,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Reason::NoRecord => "no-record",
            Reason::NotModified => "not-modified",
            Reason::Incomplete => "incomplete",
            Reason::TooLong => "too-long",
            Reason::Unreadable => "unreadable",
            Reason::Elsewhere => "elsewhere",
            Reason::Program => "program",
            Reason::Extension => "extension",
            Reason::SharedMemory => "shared-memory",
            Reason::FileOutside => "file-outside",
            Reason::OwnFile => "own-file",
            Reason::OwnSession => "own-session",
            Reason::FileChanged => "file-changed",
            Reason::CodeChanged => "code-changed",
            Reason::NoSchema => "no-schema",
            Reason::SeveralServers => "several-servers",
            Reason::Statement => "statement",
            Reason::OwnWrite => "own-write",
            Reason::Transaction => "transaction",
            Reason::WrittenMeanwhile => "written-meanwhile",
            Reason::TooManyPages => "too-many-pages",
            Reason::Unpolled => "unpolled",
            Reason::Differs => "differs",
            Reason::DatabaseFile => "database-file",
            Reason::AddressDatabase => "address-database",
            Reason::CacheState => "cache-state",
            Reason::Unproven => "unproven",
            Reason::Unanswered => "unanswered",
        }
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            Reason::NoRecord => {
                "The library in PHP reported nothing of this page: PHP did not load it."
            }
            Reason::NotModified => "PHP confirmed the page (304) and did not make it again.",
            Reason::Incomplete => "Some of what the library reported did not arrive.",
            Reason::TooLong => {
                "The page has more than 400 statements, more than 2,048 files or keys of an object cache, or more than 256 KB of them."
            }
            Reason::Unreadable => {
                "PHP speaks with the database in a way that cannot be read: TLS, compression, or a rare part of the protocol."
            }
            Reason::Elsewhere => {
                "PHP looked up a name, or connected to something that is no database: another server, an object cache by TLS or a binary protocol."
            }
            Reason::Program => "PHP started a program.",
            Reason::Extension => "PHP has an extension loaded whose reads cannot be seen.",
            Reason::SharedMemory => {
                "PHP read memory that its processes share, such as APCu: without APCu, many applications use a cache that can be followed."
            }
            Reason::FileOutside => {
                "PHP read a file in a folder whose files come and go (/tmp, /var/tmp, /run) or show no change (/proc, /sys, /dev): a site that lies there has to be moved."
            }
            Reason::OwnFile => {
                "PHP changed a file that it also read, renamed or removed: a cache in the database can be followed instead."
            }
            Reason::OwnSession => {
                "The page writes more than times to the visitor's session, or changes of its file cannot be seen."
            }
            Reason::FileChanged => "A file changed while the page was made, or just before.",
            Reason::CodeChanged => {
                "A script changed within the last two minutes, and PHP may still run the one from before."
            }
            Reason::NoSchema => {
                "The tables of the database are not known: not yet, or the account is missing or lacks a right."
            }
            Reason::SeveralServers => {
                "PHP asked several database servers or object caches, or one by several addresses."
            }
            Reason::Statement => {
                "A statement is not understood, or depends on more than tables: the clock, chance, variables, locks."
            }
            Reason::OwnWrite => {
                "The page itself writes to the database or the object cache, such as a counter of views; a page that filled the cache is learned when it is made again."
            }
            Reason::Transaction => "A transaction was open when PHP began the page.",
            Reason::WrittenMeanwhile => "The database was written while the page was made.",
            Reason::TooManyPages => "More pages are learned than are kept.",
            Reason::Differs => {
                "It was made again while nothing had changed that is seen, and was another. Comments, the number of the request and how long the run took do not count."
            }
            Reason::DatabaseFile => {
                "Changes of an SQLite database that PHP had open cannot be seen."
            }
            Reason::AddressDatabase => {
                "The page depends on the visitor's address: by a database of addresses, or by a statement that looks it up."
            }
            Reason::CacheState => {
                "PHP asked the object cache for more than values, such as a list of keys or a lifetime, or got an error or no answer."
            }
            Reason::Unanswered => {
                "The database did not answer or refused for a moment (a lock wait, a deadlock), or a file was locked: the page may lack something."
            }
            Reason::Unproven => {
                "Pages with such addresses are compared first when they are made again, and kept once enough of them were the same; a visitor's own copy, once it was the same in another second."
            }
            Reason::Unpolled => {
                "Writes of other programs to what it was made of cannot be seen, such as those to tables of engines other than InnoDB and MyISAM."
            }
        }
    }
}
