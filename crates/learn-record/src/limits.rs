//! How much one message, and one record, may hold.

pub const MOST_MESSAGE_BYTES: usize = 64 * 1024;

/// Bytes of an encoded record. A longer one is marked [`TooLong`](crate::Incomplete::TooLong) instead.
pub const MOST_RECORD_BYTES: usize = 256 * 1024;

pub const MOST_STATEMENTS: usize = 400;

/// Sessions of one record, of all its connections together.
pub const MOST_SESSIONS: usize = 64;

/// Statements of one session that changed its settings.
pub const MOST_SETTINGS: usize = 32;

pub const MOST_INPUTS: usize = 256;

pub const MOST_FILES: usize = 2048;

/// Keys of object caches that a request read.
pub const MOST_CACHE_KEYS: usize = 2048;

/// SQLite databases that a request had open.
pub const MOST_SQLITE_FILES: usize = 16;

/// Times that a request opened a session in a file.
pub const MOST_SESSION_FILES: usize = 4;

/// The content of a session that is reported; of a longer one, its hash alone is.
pub const MOST_SESSION_BYTES: usize = 4096;

/// The bytes of a session that are hashed. A longer one is not followed.
pub const MOST_HASHED_SESSION_BYTES: usize = 256 * 1024;

pub const MOST_DETAIL_BYTES: usize = 200;

/// Bytes of the inputs of a page, as they are kept beside the page.
pub const MOST_MADE_OF_BYTES: usize = 512 * 1024;

/// Scripts that a pool knows of.
pub const MOST_SCRIPTS: usize = 8192;
