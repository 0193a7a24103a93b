//! Sockets: bytes into requests, responses into bytes. Each protocol is a folder of its own.
//!
//! ```text
//! socket ─► opening (PROXY header, TLS) ─► http1 ─┐  a request   ┌─────────┐
//!                                      ├─► http2 ─┼─────────────►│ Service │
//! datagrams ──────────────────────────────► http3 ─┘◄─────────────└─────────┘
//!                                                     a response
//! ```
//!
//! In goes a connection ([`spawn`]) or a socket of QUIC ([`http3::listen`]), with a [`service`]
//! that answers. Out of the bytes comes a request with facts of its connection ([`facts`]) and a
//! way to its client ([`client`]); back comes a response whose body is there or is pulled
//! ([`outbound`]). Above, nothing knows how messages are framed; here, nothing knows a location
//! or how a response is made. A response that is there at once is sent without a
//! future ([`ready_or_pending`]).

pub mod body;
pub mod client;
mod connection_opening;
pub mod connections;
pub mod facts;
mod gathered;
pub mod handshake;
mod head;
mod held_files;
mod http1;
mod http2;
pub mod http3;
pub mod open_file;
mod opening;
pub mod outbound;
mod outflow;
mod pieces;
mod private_file;
pub mod proxy_protocol;
pub mod ready_or_pending;
pub mod request_body;
pub mod service;
pub mod spare_fields;
pub mod spool;
pub mod stream;
mod tls;
pub mod tunnel;
mod waiting_streams;

pub use connection_opening::ConnectionOpening;
pub use opening::spawn;
