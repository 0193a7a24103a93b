//! The HTTP/2 codec of a server (RFC 9113, HPACK of RFC 7541, priorities of RFC 9218),
//! without I/O: bytes of a client in, events out; responses in, frames out.
//!
//! A request comes in the terms that HTTP/1 has too ([`http_semantics::RequestView`]), so that the
//! server's code does not see a version. A response is a status, blocks of fields that may be kept
//! beside a stored response ([`FieldBlock`]), and pieces of a body that are sent without being
//! copied ([`Output`]).
//!
//! Nothing here opens a socket, reads a clock or waits; the time is an argument. Bytes of a peer
//! lead to events or to an error that names the offence, never to a panic. Every buffer and loop
//! has a bound, and frames that cost us more than the peer have an allowance (`bounds.rs`).
//!
//! Not offered, and refused where a client tries: server push (§8.4), CONNECT and extended
//! CONNECT (RFC 8441), the upgrade from HTTP/1.1. The priorities of RFC 7540 are ignored.
//!
//! A transport reads bytes, serves events, takes the output and writes it:
//!
//! ```
//! use std::time::Instant;
//! use http2::{Connection, Event, FieldBlock, HeadBuffer, Output, Settings};
//!
//! # let input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
//! #     \0\0\x0d\x01\x05\0\0\0\x01\x82\x84\x86\x41\x88\xaa\x69\xd2\x9a\xc4\xb9\xec\x9b";
//! # let mut socket = Vec::new();
//! let mut connection = Connection::new(Settings::default(), Instant::now());
//! let (mut head, mut output) = (HeadBuffer::new(), Output::new());
//!
//! // The block of a stored response's fields is kept.
//! let mut stored = FieldBlock::new();
//! stored.put("Content-Type", "text/plain")?;
//! let body = bytes::Bytes::from_static(b"hello\n");
//!
//! // Read bytes from the socket into `input`; then:
//! let mut at = 0;
//! loop {
//!     let received = connection.receive(&input[at..], &mut head, Instant::now())?;
//!     at += received.consumed;
//!     let Some(event) = received.event else { break };
//!     match event {
//!         Event::Request { stream, head, .. } => {
//!             assert_eq!(head.request_line(), b"GET / HTTP/2.0");
//!             let mut fields = FieldBlock::new();
//!             fields.put("Age", "1")?;
//!             connection.send_response(stream, 200, &[&stored, &fields], false)?;
//!             connection.send_body(stream, body.clone(), true)?;
//!         }
//!         Event::BadRequest { stream, error } => {
//!             connection.send_response(stream, error.status(), &[], true)?;
//!         }
//!         Event::Data { stream, data, .. } => {
//!             // Consume the data; then let the client send as much again.
//!             connection.release(stream, data.len());
//!         }
//!         Event::Trailers { .. } | Event::Reset { .. } | Event::GoAway { .. } => {}
//!     }
//! }
//! // What is left of `input` is a piece of a frame: keep it, and read more behind it.
//!
//! while connection.has_output() {
//!     connection.take_output(&mut output, Instant::now())?;
//!     while !output.is_empty() {
//!         // One vectored write of all slices.
//!         let written = output.slices().map(|slice| socket.extend_from_slice(slice)).count();
//! #       let written = { let _ = written; output.len() };
//!         output.advance(written);
//!     }
//! }
//! assert!(socket.ends_with(b"hello\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If a call fails with a [`ConnectionError`], the output has a GOAWAY frame that informs the
//! client; it is written before the socket is closed.

mod bounds;
mod connection;
mod encoded_fields;
mod error;
mod event;
mod field_block;
mod flow;
pub mod frame;
mod fuzz;
mod head;
pub mod hpack;
mod output;
mod preface;
mod priority;
mod progress;
mod request_error;
mod scheduler;
mod settings;
mod stream;

pub use bounds::Flood;
pub use connection::{Connection, SendError};
pub use encoded_fields::EncodedFields;
pub use error::{ConnectionError, ErrorCode, StreamError};
pub use event::{Event, Notice, ReceivedInput, ResetCause, TrailerView};
pub use field_block::{FieldBlock, FieldError, with_sendable};
pub use frame::{FrameKind, StreamId};
#[doc(hidden)]
pub use fuzz::{fuzz_connection, fuzz_frames, fuzz_hpack};
pub use head::{
    FieldSource, HeadBuffer, RequestFacts, max_block_bytes, read_head, read_trailer_fields,
    to_owned_head,
};
pub use output::Output;
pub use preface::{PREFACE, Preface, read_preface};
pub use priority::Priority;
pub use request_error::RequestError;
pub use settings::{HeadLimits, Settings};
