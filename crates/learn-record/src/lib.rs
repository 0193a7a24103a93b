//! The messages between the library that PHP loads and Mayfly about the making of a page.
//!
//! ```text
//! library ─► Mayfly   Hello                        once for each process, and again where something was not reported
//!                     Write, Written                    around each statement that may change data
//!                     RecordPart ... (is_last)     what a request read, before its END_REQUEST leaves
//!                     Doubt                        the library lets go of this process
//! Mayfly ─► library   Acknowledgement              answers a Write, a Written, and a Hello that comes again
//! ```
//!
//! Each message is one packet of a unix socket (SOCK_SEQPACKET), whose path PHP's master finds in the
//! variable [`CHANNEL_VARIABLE`]. A request carries its number in the FastCGI parameter [`FETCH_PARAMETER`].
//!
//! Decoding is total: bytes that do not fit are [`MalformedMessage`], and what a message can make its reader
//! hold is bounded by the `MOST_` constants. This crate does no I/O.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

mod assembly;
mod encoding;
mod entries;
mod limits;
mod made_of;
mod message;
mod writer;

pub use assembly::{Record, RecordParts};
pub use encoding::MalformedMessage;
pub use entries::{
    CacheKey, FileLook, FileState, FileUse, Incomplete, Input, InputKind, Outcome, Session,
    SessionFile, SqliteFile, Statement, StatementKind, Value,
};
pub use limits::*;
pub use made_of::{MadeOf, Script};
pub use message::{
    Acknowledgement, Doubt, DoubtReason, Hello, Message, RecordPart, Write, WriteOutcome,
};
pub use writer::RecordWriter;

/// The library's version of these messages; another one is not understood.
pub const VERSION: u16 = 10;

/// Holds the path of the socket. The library removes it from the environment of the process.
pub const CHANNEL_VARIABLE: &str = "MAYFLY_LEARN";

/// Holds the paths of the sockets of all servers to which a command reports its writes (`mayfly run`), between colons. It
/// stays in the environment, for the programs that the command starts.
pub const COMMAND_VARIABLE: &str = "MAYFLY_RUN";

/// The most servers to which a command reports its writes.
pub const MAX_SERVERS: usize = 8;

/// Holds the number of the fetch, in decimal digits. A request without it has no record.
pub const FETCH_PARAMETER: &str = "MAYFLY_FETCH";

/// The seed of the hashes of results, which the library and Mayfly make of the socket between them: when it was made, to the
/// nanosecond, and its number. It is not known to those who may write texts that a page shows.
pub fn result_seed(facts: &Metadata) -> u64 {
    let parts = [
        facts.dev(),
        facts.ino(),
        facts.mtime().cast_unsigned(),
        facts.mtime_nsec().cast_unsigned(),
    ];
    let mixed =
        |all: u64, part: u64| (all.rotate_left(23) ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    parts.into_iter().fold(0, mixed)
}

/// For the fuzzer: a message, and a record.
#[doc(hidden)]
pub fn fuzz_decoding(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(message) = Message::decode(bytes) {
        message.encode(&mut again);
        let second = Message::decode(&again).expect("what was encoded is decoded");
        let mut third = Vec::new();
        second.encode(&mut third);
        assert_eq!(again, third);
    }
    let mut parts = RecordParts::default();
    for piece in bytes.chunks(1000) {
        let part = RecordPart {
            fetch: 1,
            is_last: piece.len() < 1000,
            bytes: piece,
        };
        if let Ok(Some(_)) = parts.add(&part) {
            let _ = parts.record();
        }
    }
    let _ = Acknowledgement::decode(bytes);
    fuzz_made_of(bytes);
}

/// Decodes bytes as if their hash were right.
fn fuzz_made_of(bytes: &[u8]) {
    let hash = |_: &[u8]| 0;
    if let Some(made_of) = MadeOf::decode(bytes, hash) {
        let again = made_of.encode(hash);
        // Numbers may have been written in more bytes than they need.
        let again = again.expect("no longer than what was decoded");
        assert_eq!(MadeOf::decode(&again, hash), Some(made_of));
    }
}
