//! HTTP/2 (RFC 9113): many requests on one connection. The codec is the crate `http2`; here
//! are the socket, the clock and the tasks.
//!
//! ```text
//!  socket ─► connection.rs ─► request.rs ─► service ─► respond.rs ─┐
//!     ▲            │  task of the connection   task of the request │
//!     └────────────┴──────────────── shared.rs ◄───────────────────┘
//! ```
//!
//! The task of the connection reads frames, begins requests and writes frames. A request whose
//! response is there at once is answered by that task, so that all answers of a turn leave in
//! one write; any other gets a task of its own. Between the two stands the codec, behind a lock
//! that no task holds while it waits.

mod connection;
mod fields;
mod request;
mod respond;
mod shared;

pub use connection::serve;
