//! A memcached client for one thing: getting a value that an application put
//! there, in the text protocol
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).
//!
//! ```text
//! key         a key as nginx escapes it -> the command
//! exchange    one `get` and what its answer is read against
//!   response  bytes -> Event
//! error       who did what wrong
//! ```
//!
//! Sibling of the `fastcgi` crate with the same shape: without I/O itself, and driven over any
//! stream by `upstream-exchange`.

mod error;
mod exchange;
mod key;
mod response;

pub use error::Error;
pub use exchange::{Exchange, RequestSpec};
pub use key::escape_key;
pub use response::{Event, ResponseHead};
pub use upstream_exchange::{NoBody, READ_BUFFER_BYTES, Side};

/// Reads `data` as an answer, whole and byte by byte, and asserts that the
/// pieces make no difference. For the fuzzer.
#[doc(hidden)]
pub fn fuzz_exchange(data: &[u8]) {
    response::fuzz(data);
}
