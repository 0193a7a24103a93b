//! HTTP/1 without I/O, both sides: request heads in, response heads out for
//! clients; response heads in for upstreams; chunked bodies both ways; and what
//! the fields of a request mean (host, ranges, conditions, cookies, codings).
//!
//! Everything here is a function from bytes to values. Nothing opens a socket,
//! reads a clock or waits. Bytes of a peer lead to values or to an error that
//! names the offence, never to a panic, and every buffer and loop has a bound.
//!
//! Where nginx is lenient and leniency is harmless, so are we (bare LF line
//! ends in heads, raw request targets, HTTP/0.9); where RFC 9112 calls framing
//! ambiguous, we refuse.

pub mod accept_encoding;
pub mod chunked;
pub mod conditional;
pub mod cookie;
pub mod date;
mod error;
pub mod escape;
mod field_line;
mod fields;
mod framing;
mod fuzz;
mod head_writer;
mod host;
mod limits;
mod name;
mod presence;
pub mod range;
mod request;
mod request_line;
mod response;
mod scan;
mod span;
pub mod status;
mod target;

pub use error::{RequestError, ResponseError};
pub use fields::Fields;
pub use framing::{
    Framing, ResponseFraming, body_framing, expects_continue, framing_beside_host,
    response_framing, wants_keep_alive,
};
#[doc(hidden)]
pub use fuzz::{fuzz_chunked, fuzz_request_head, fuzz_response_head};
pub use head_writer::{FieldError, HeadWriter};
pub use host::{Host, parse_host, request_host};
pub use limits::HeadLimits;
pub use name::{is_spelt, same_name};
pub use presence::Presence;
pub use request::{Parsed, RequestHead, RequestView, parse_request, worth_parsing};
pub use request_line::{RequestLine, Version};
pub use response::{ResponseHead, take_response};
pub use span::{FieldSpan, Span};
pub use target::{Target, TargetForm, split_query};
