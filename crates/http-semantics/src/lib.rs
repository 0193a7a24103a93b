//! The semantics of HTTP messages (RFC 9110), whatever version carries them: the target and
//! the host, fields, their names and lists, conditions, ranges, cookies, content codings,
//! dates, status codes, escaping, excerpts for messages.
//!
//! Everything here is a function from values to values. Nothing knows how a message is
//! framed or parsed: that is the matter of a codec, such as `http1`. Nothing opens a
//! socket, reads a clock or waits, and bytes of a peer lead to values or to an error,
//! never to a panic.

pub mod accept_encoding;
pub mod conditional;
pub mod cookie;
pub mod date;
pub mod escape;
mod excerpt;
mod field_name;
mod fields;
mod host;
pub mod initiator;
mod list;
mod method;
mod presence;
pub mod range;
mod request;
mod span;
pub mod status;
mod target;

pub use excerpt::Excerpt;
pub use field_name::{is_spelt, same_name};
pub use fields::Fields;
pub use host::{Host, parse_host};
pub use initiator::Initiator;
pub use list::{has_member, list_members};
pub use method::Method;
pub use presence::Presence;
pub use request::{RequestHead, RequestLine, RequestView, Version, expects_continue};
pub use span::{FieldSpan, Span};
pub use target::{Target, TargetError, TargetForm, hex_pair, request_host, split_query};
