//! One request and its response over a connected stream to an upstream, whatever the protocol.
//!
//! ```text
//! body      where the body of a request comes from
//! protocol  the interface of a protocol: the bytes to write, the decoder of the bytes read
//! event     the events of a response that HTTP/1 and FastCGI share
//! exchange  writes the one while it reads the other
//! ```
//!
//! `fastcgi`, `http-client` and `memcached` are such protocols; an exchange of theirs is an
//! [`Exchange`]. The crate knows none of them, opens no socket, keeps no pool and sets no timer: it
//! takes a connected stream and, when the exchange ended cleanly, gives it back.

mod body;
mod event;
mod exchange;
mod protocol;
mod segments;

pub use body::{BodySource, NoBody};
pub use event::{Event, ExcessData, ResponseHead};
pub use exchange::{Exchange, FIRST_READ_BYTES, MIN_READ_BYTES, READ_BUFFER_BYTES, make_room};
pub use protocol::{DecodeResponse, EncodeRequest, Protocol, Side, StreamError};
pub use segments::Segments;
