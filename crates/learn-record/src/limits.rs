//! How much one message, and one record, may hold.

pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Bytes of an encoded record. A longer one is marked [`TooLong`](crate::Incomplete::TooLong) instead.
pub const MAX_RECORD_BYTES: usize = 256 * 1024;

pub const MAX_STATEMENTS: usize = 400;

/// Sessions of one record, of all its connections together.
pub const MAX_SESSIONS: usize = 64;

/// Statements of one session that changed its settings.
pub const MAX_SETTINGS: usize = 32;

pub const MAX_INPUTS: usize = 256;

pub const MAX_FILES: usize = 2048;

/// Keys of object caches that a request read.
pub const MAX_CACHE_KEYS: usize = 2048;

/// SQLite databases that a request had open.
pub const MAX_SQLITE_FILES: usize = 16;

/// Times that a request opened a session in a file.
pub const MAX_SESSION_FILES: usize = 4;

/// The content of a session that is reported; of a longer one, its hash alone is.
pub const MAX_SESSION_BYTES: usize = 4096;

/// The bytes of a session that are hashed. A longer one is not followed.
pub const MAX_HASHED_SESSION_BYTES: usize = 256 * 1024;

pub const MAX_DETAIL_BYTES: usize = 200;

/// Bytes of the inputs of a page, as they are kept beside the page.
pub const MAX_MADE_OF_BYTES: usize = 512 * 1024;

/// Scripts that a pool knows of.
pub const MAX_SCRIPTS: usize = 8192;
