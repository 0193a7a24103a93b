//! Sockets: bytes into requests, responses into bytes. What is spoken on a connection is a
//! folder of its own; what all protocols hand over and take is [`service`] and [`outbound`].
//! Nothing here knows a location or how a response is made.

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
