//! The entries of a record: sessions, statements, other inputs, files.

use crate::encoding::{Decode, Encode, ListEntry, MalformedMessage, Reader, fields, numbered};
use crate::limits::{
    MAX_CACHE_KEYS, MAX_FILES, MAX_INPUTS, MAX_SESSION_FILES, MAX_SESSIONS, MAX_SETTINGS,
    MAX_SQLITE_FILES, MAX_STATEMENTS,
};

/// A connection to a database in one state: with these settings and this default database. A
/// connection whose state changes has another session from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session<'a> {
    /// The number of the connection in its process, from 1 on.
    pub connection: u32,
    /// The server's address: `unix:PATH` or `IP:PORT`.
    pub server: &'a [u8],
    pub server_version: &'a [u8],
    /// The server's number of the connection.
    pub identifier: u32,
    pub account: &'a [u8],
    /// The collation that the client named in the handshake.
    pub collation: u8,
    /// `None` where there is none or it is not known.
    pub database: Option<&'a [u8]>,
    /// Statements that changed the settings since the connection began, in order. One that is
    /// repeated stands at its last place only. `None` where they were too many.
    pub settings: Option<Vec<&'a [u8]>>,
}
fields!(Session<'a> {
    connection, server, server_version, identifier, account, collation, database, settings
});

#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'a> {
    /// The index of its session among those of the record.
    pub session: u16,
    pub kind: StatementKind,
    pub text: &'a [u8],
    /// Whether the text and the parameters are all of it.
    pub is_complete: bool,
    pub parameters: Vec<Value<'a>>,
    /// Empty where the answer did not come before the end of the request, and for PostgreSQL.
    pub outcomes: Vec<Outcome>,
    /// The server's status flags before and after (`SERVER_STATUS_`...): 1 is "within a transaction",
    /// 2 "autocommit".
    pub status_before: u16,
    pub status_after: u16,
    /// The number of its [`crate::Write`], or 0 where none was sent: a plain read.
    pub write: u64,
}
fields!(Statement<'a> {
    session, kind, text, is_complete, parameters, outcomes, status_before, status_after, write
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// One statement, or several, as text.
    Text,
    /// A prepared statement with parameters.
    Prepared,
    /// A statement that could not be prepared: the outcome is the error.
    Unprepared,
    /// A command that is no statement and reads or changes data; the text is the name of its object.
    Command,
    /// A command of an object cache; its keys are the parameters, and its database is that of the session. It stands in a
    /// [`crate::Write`] alone.
    Cache,
}
numbered!(StatementKind { Text = 1, Prepared = 2, Unprepared = 3, Command = 4, Cache = 5 });

/// A parameter of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    /// Text in the character set of the connection, or bytes.
    Bytes(&'a [u8]),
    /// A date or time in binary form, or a value that was not kept.
    Opaque,
}

impl Encode for Value<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(0),
            Self::Integer(value) => {
                out.push(1);
                value.put(out);
            }
            Self::Unsigned(value) => {
                out.push(2);
                value.put(out);
            }
            Self::Double(value) => {
                out.push(3);
                value.put(out);
            }
            Self::Bytes(value) => {
                out.push(4);
                value.put(out);
            }
            Self::Opaque => out.push(5),
        }
    }
}

impl<'a> Decode<'a> for Value<'a> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, MalformedMessage> {
        Ok(match reader.byte()? {
            0 => Self::Null,
            1 => Self::Integer(Decode::take(reader)?),
            2 => Self::Unsigned(Decode::take(reader)?),
            3 => Self::Double(Decode::take(reader)?),
            4 => Self::Bytes(Decode::take(reader)?),
            5 => Self::Opaque,
            _ => return Err(MalformedMessage),
        })
    }
}

/// The end of a statement; a text of several statements has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The hash is of the definitions of the columns and of the rows in order.
    Rows {
        rows: u64,
        bytes: u64,
        hash: u64,
    },
    Done {
        changed_rows: u64,
    },
    Failed {
        code: u16,
    },
}

impl Encode for Outcome {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Rows { rows, bytes, hash } => {
                out.push(1);
                rows.put(out);
                bytes.put(out);
                out.extend_from_slice(&hash.to_le_bytes());
            }
            Self::Done { changed_rows } => {
                out.push(2);
                changed_rows.put(out);
            }
            Self::Failed { code } => {
                out.push(3);
                code.put(out);
            }
        }
    }
}

impl Decode<'_> for Outcome {
    fn take(reader: &mut Reader<'_>) -> Result<Self, MalformedMessage> {
        Ok(match reader.byte()? {
            1 => Self::Rows {
                rows: Decode::take(reader)?,
                bytes: Decode::take(reader)?,
                hash: u64::from_le_bytes(reader.take(8)?.try_into().map_err(|_| MalformedMessage)?),
            },
            2 => Self::Done {
                changed_rows: Decode::take(reader)?,
            },
            3 => Self::Failed {
                code: Decode::take(reader)?,
            },
            _ => return Err(MalformedMessage),
        })
    }
}

/// Something else that the page may have been made from. Each is named once in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a> {
    pub kind: InputKind,
    /// At most [`crate::MAX_DETAIL_BYTES`]; what is longer is cut.
    pub detail: &'a [u8],
}
fields!(Input<'a> { kind, detail });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A connection to anything that did not turn out to be a database that is read. The detail is its
    /// address.
    Connection,
    /// A connection to a database that is not read; the detail is the reason (`tls`, `compression`).
    UnreadDatabase,
    /// A name was looked up.
    NameLookup,
    /// A program was started.
    Program,
    /// A lock in memory that processes share, as APCu has, was taken.
    SharedCache,
    /// A segment of shared memory or a message queue.
    SharedMemory,
    /// Random bytes. The clock has no place here: every request reads it.
    Random,
    /// An extension was loaded whose inputs the library cannot see.
    Extension,
    /// An object cache was asked for more than the values of keys, or did not answer, or with an error; the detail is the command.
    CacheState,
    /// An object cache was written to; the detail is the command and its first key.
    CacheWrite,
    /// A database did not answer a statement, or answered with an error that the statement and the tables alone do not
    /// cause; the detail is the statement. Or PHP did not get the lock of a file; the detail is its path.
    Unanswered,
}
numbered!(InputKind {
    Connection = 1, UnreadDatabase = 2, NameLookup = 3, Program = 4, SharedCache = 5, SharedMemory = 6,
    Random = 7, Extension = 8, CacheState = 9, CacheWrite = 10, Unanswered = 11,
});

impl InputKind {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::UnreadDatabase => "unread-database",
            Self::NameLookup => "name-lookup",
            Self::Program => "program",
            Self::SharedCache => "shared-cache",
            Self::SharedMemory => "shared-memory",
            Self::Random => "random",
            Self::Extension => "extension",
            Self::CacheState => "cache-state",
            Self::CacheWrite => "cache-write",
            Self::Unanswered => "unanswered",
        }
    }
}

/// A file, a folder, or the absence of one. What PHP keeps compiled in opcache is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLook<'a> {
    /// Absolute; not resolved.
    pub path: &'a [u8],
    pub by: FileUse,
    /// `None`: it was not there, or PHP was not let in.
    pub state: Option<FileState>,
}
fields!(FileLook<'a> { path, by, state });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileUse {
    /// Asked whether it is there, or for its time and size.
    Looked,
    /// Opened to be read.
    Opened,
    /// A folder was listed.
    Listed,
    /// Opened to be read and written, made, or renamed.
    Written,
    /// Opened to be written, so that nothing is read of it.
    WrittenOnly,
    /// The state is that of before.
    Removed,
}
numbered!(FileUse {
    Looked = 1, Opened = 2, Listed = 3, Written = 4, WrittenOnly = 5, Removed = 6
});

/// With 0 as its inode, PHP asked only whether the file is there, and the rest means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    pub is_folder: bool,
    pub modified_nanoseconds: i64,
    pub size: u64,
    pub inode: u64,
}
fields!(FileState {
    is_folder,
    modified_nanoseconds,
    size,
    inode
});

/// An SQLite database that was open while the request ran, also where an earlier one opened it. The rows that were read
/// are not known. Each is named once in a record, beside its [`FileLook`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteFile<'a> {
    /// Absolute, as it was opened.
    pub path: &'a [u8],
    /// The device of the file that is open: another one may have its path by now.
    pub device: u64,
    pub inode: u64,
    /// An earlier request opened it, and may have left a transaction open.
    pub is_from_before: bool,
}
fields!(SqliteFile<'a> {
    path,
    device,
    inode,
    is_from_before
});

/// A session of PHP in a file of its own, which the request has locked, and closed again. Each time is one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFile<'a> {
    /// Absolute, as it was opened.
    pub path: &'a [u8],
    /// Hashes of the content at the moment of the lock, and before the file was closed.
    pub hash_before: u64,
    pub hash_after: u64,
    /// At most [`crate::MAX_SESSION_BYTES`]. `None`: the content was longer, or is that of `after`.
    pub before: Option<&'a [u8]>,
    /// `None`: it was longer.
    pub after: Option<&'a [u8]>,
    /// Before the file was closed.
    pub state: FileState,
}
fields!(SessionFile<'a> {
    path, hash_before, hash_after, before, after, state
});

/// A key of an object cache that was read. Each is named once in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey<'a> {
    /// The server's address: `unix:PATH` or `IP:PORT`.
    pub server: &'a [u8],
    /// The number of the database there.
    pub database: u32,
    pub key: &'a [u8],
}
fields!(CacheKey<'a> {
    server,
    database,
    key
});

/// The reason for which a record has less than what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Incomplete {
    /// More than the limits allow.
    TooLong,
    /// The library missed something: another thread was at work, or a connection came from elsewhere.
    Missed,
}
numbered!(Incomplete { TooLong = 1, Missed = 2 });

impl ListEntry for Session<'_> {
    const MOST: usize = MAX_SESSIONS;
}
impl ListEntry for Statement<'_> {
    const MOST: usize = MAX_STATEMENTS;
}
impl ListEntry for Input<'_> {
    const MOST: usize = MAX_INPUTS;
}
impl ListEntry for FileLook<'_> {
    const MOST: usize = MAX_FILES;
}
impl ListEntry for CacheKey<'_> {
    const MOST: usize = MAX_CACHE_KEYS;
}
impl ListEntry for SqliteFile<'_> {
    const MOST: usize = MAX_SQLITE_FILES;
}
impl ListEntry for SessionFile<'_> {
    const MOST: usize = MAX_SESSION_FILES;
}
/// Settings of a session, and names of extensions.
impl ListEntry for &[u8] {
    const MOST: usize = MAX_SETTINGS;
}
impl ListEntry for Value<'_> {
    /// The bound of MySQL's protocol.
    const MOST: usize = 65_535;
}
impl ListEntry for Outcome {
    const MOST: usize = 64;
}
