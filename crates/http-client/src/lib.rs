//! An HTTP/1 client for upstreams: one request and its response over a
//! connected stream.
//!
//! ```text
//! exchange    one request and what its response is read against
//!   request   head and body on their way out, framed and counted
//!   response  bytes -> Event: head, data, trailers, end
//! error       who did what wrong
//! ```
//!
//! Sibling of the `fastcgi` crate with the same shape: without I/O itself, and driven over any
//! stream by `upstream-exchange`.
//!
//! We are as lenient as nginx with upstreams if that is harmless: bare LF in heads, no reason
//! phrase, HTTP/1.0, no length, odd field names, more data than promised (dropped; the
//! connection is not used again). Heads that two readers could read differently are refused:
//! two lengths, a length beside a coding, a coding other than `chunked`, folded lines, bad
//! chunk sizes; and, unlike in nginx, an answer without a status line (HTTP/0.9), since any
//! service at all would look like a page. Interim responses are events, except 100, which is
//! between us and the upstream.
//!
//! The promise the rest rests on: [`Event::End`] means that the response is
//! complete. Only a body without a length ends where the connection does.

mod error;
mod exchange;
mod request;
mod response;
mod spare;

pub use error::Error;
pub use exchange::{Exchange, RequestSpec};
pub use http_semantics::Version;
pub use http1::{ResponseError as HeadFault, chunked::ChunkedError};
pub use request::BodyFraming;
pub use response::MAX_INTERIM_RESPONSES;
pub use spare::recycle;
pub use upstream_exchange::{
    BodySource, Event, ExcessData, NoBody, READ_BUFFER_BYTES, ResponseHead, Side, StreamError,
};

/// Reads `data` as a response, whole and in pieces, and asserts that the
/// pieces make no difference. For the fuzzer.
#[doc(hidden)]
pub fn fuzz_exchange(data: &[u8]) {
    response::fuzz(data);
}
