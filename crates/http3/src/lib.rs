//! The HTTP/3 codec of a server (RFC 9114, QPACK of RFC 9204), without I/O: bytes of a
//! stream in, pieces of a request out; fields in, frames out. QUIC itself is elsewhere.
//!
//! The rules for fields are those of HTTP/2 word for word (RFC 9114 §4.2, §4.3; RFC 9113 §8.2,
//! §8.3), so are the Huffman code and the integers of QPACK those of HPACK: they are taken from
//! the crate `http2`. The client may fill a dynamic table, and its requests wait for the
//! insertions they refer to. Responses use none, so that they wait for no other stream.
//!
//! Nothing here opens a socket, reads a clock or waits. Bytes of a peer lead to pieces or to an
//! [`Error`] that names the offence, never to a panic, and every buffer has a bound.
//!
//! Not offered: server push, CONNECT and extended CONNECT, datagrams.

mod control;
mod error;
mod frame;
mod fuzz;
mod message;
mod qpack;
mod varint;

pub use control::{ControlFrame, ControlReader, DecoderReader, StreamKind};
pub use error::{Code, Error};
pub use frame::{MAX_BLOCKED_STREAMS, data_frame_head, decoder_stream, goaway_frame, settings};
#[doc(hidden)]
pub use fuzz::{fuzz_qpack, fuzz_streams};
pub use message::{MessageReader, Piece};
pub use qpack::{Block, DynamicTable, FieldBlock, read_request, read_trailers};
