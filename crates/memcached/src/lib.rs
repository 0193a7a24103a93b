//! A memcached client for one thing: getting a value that an application put
//! there, in the text protocol
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).
//!
//! ```text
//! key         a key as nginx escapes it -> the command
//! exchange    one `get` and its answer over any stream
//!   response  bytes -> Event, without I/O
//! error       who did what wrong
//! ```
//!
//! Sibling of the `fastcgi` crate with the same shape: it opens no socket,
//! keeps no pool and sets no timer. It takes a connected stream and, when the
//! exchange ended cleanly, gives it back for the next request.

mod error;
mod exchange;
mod key;
mod response;

pub use error::{Error, Side};
pub use exchange::{Exchange, READ_BUFFER_BYTES, RequestSpec};
pub use key::escape_key;
pub use response::{Event, ResponseHead};

/// Reads `data` as an answer, whole and byte by byte, and asserts that the
/// pieces make no difference. For the fuzzer.
#[doc(hidden)]
pub fn fuzz_exchange(data: &[u8]) {
    response::fuzz(data);
}
