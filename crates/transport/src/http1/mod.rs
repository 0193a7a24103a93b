//! HTTP/1 (RFC 9112): heads in and out, framing, persistence, pipelining, the lingering close.

mod connection;
mod framing;
mod head;
mod informational;
mod input;
mod keep_alive;
mod pull;
mod reading;
mod respond;
mod send;

pub use connection::serve;
