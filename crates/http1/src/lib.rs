//! The HTTP/1 codec without I/O, both sides: request heads in, response heads out for
//! clients; response heads in for upstreams; where bodies end, and chunked bodies both
//! ways. The meaning of a message's fields is the matter of `http-semantics`.
//!
//! Everything here is a function from bytes to values. Nothing opens a socket,
//! reads a clock or waits. Bytes of a peer lead to values or to an error that
//! names the offence, never to a panic, and every buffer and loop has a bound.
//!
//! We are lenient where nginx is and leniency is harmless (bare LF line ends in heads,
//! raw request targets, HTTP/0.9); framing that RFC 9112 calls ambiguous is refused.

pub mod chunked;
mod error;
mod field_line;
mod framing;
mod fuzz;
mod head_writer;
mod limits;
mod request;
mod request_line;
mod response;

pub use error::{RequestError, ResponseError};
pub use framing::{
    Framing, ResponseFraming, body_framing, framing_beside_host, response_framing, wants_keep_alive,
};
#[doc(hidden)]
pub use fuzz::{fuzz_chunked, fuzz_request_head, fuzz_response_head};
pub use head_writer::{FieldError, HeadWriter};
pub use limits::HeadLimits;
pub use request::{ParsedHead, parse_head, parse_request, worth_parsing};
pub use response::{ResponseHead, take_response};
