//! An HTTP/1 client for upstreams: one request and its response over a
//! connected stream.
//!
//! ```text
//! exchange    both directions at once, over any stream
//!   sender    head and body on their way out, framed and counted
//!   response  bytes -> Event, without I/O: head, data, trailers, end
//! error       who did what wrong
//! ```
//!
//! Sibling of the `fastcgi` crate with the same shape: it opens no socket,
//! keeps no pool and sets no timer. It takes a connected stream and, when the
//! exchange ended cleanly, gives it back for the next request.
//!
//! What upstreams send is read as nginx reads it where that is harmless: bare
//! LF in heads, no reason phrase, HTTP/1.0, no length, odd field names, more
//! data than promised (dropped; the connection is not used again). What two
//! readers could read differently is refused: two lengths, a length beside a
//! coding, a coding other than `chunked`, folded lines, bad chunk sizes; and,
//! unlike in nginx, an answer without a status line (HTTP/0.9), since any
//! service at all would look like a page. Interim responses are events, except
//! 100, which is between us and the upstream.
//!
//! The promise the rest rests on: [`Event::End`] means that the response is
//! complete. Only a body without a length ends where the connection does.

mod error;
mod exchange;
mod response;
mod sender;
mod spare;

pub use error::{Error, Side};
pub use exchange::{Exchange, READ_BUFFER_BYTES, RequestSpec};
pub use http_semantics::Version;
pub use http1::{ResponseError as HeadFault, chunked::ChunkedError};
pub use request_body::{BodySource, NoBody};
pub use response::{Event, MAX_INTERIM_RESPONSES, ResponseHead, Surplus};
pub use sender::BodyFraming;
pub use spare::recycle;

/// Reads `data` as a response, whole and in pieces, and asserts that the
/// pieces make no difference. For the fuzzer.
#[doc(hidden)]
pub fn fuzz_exchange(data: &[u8]) {
    response::fuzz(data);
}
