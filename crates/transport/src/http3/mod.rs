//! HTTP/3 (RFC 9114) over QUIC (RFC 9000). QUIC is the crate `quinn`; the codec is the crate
//! `http3`; here are the UDP socket, the clock and the tasks.
//!
//! Between the socket and quinn, first_packets.rs bounds the packets that begin connections.
//!
//! ```text
//!  UDP socket ─► endpoint.rs ─► handshake.rs ─► connection.rs ─► request.rs ─► service
//!      ▲        one task for     TLS, chosen     task of the     task of the      │
//!      │        the socket       by the name     connection      request          ▼
//!      └──────────────── quinn ◄──── stream.rs ◄──── body.rs, respond.rs ◄────────┘
//! ```
//!
//! All packets of a socket are taken by one thread, and all its connections are served there:
//! a client that changes its address (connection migration, RFC 9000 §9) still reaches the
//! thread that knows its connection. Each request has a task of its own, which reads and writes
//! its stream by itself, since a stream of QUIC has its own windows.
//!
//! How much a client may be sent before it has shown that its address is its own (three times the
//! bytes it sent, RFC 9000 §8.1) is kept in `unproven.rs`.

mod body;
mod closed_peers;
mod closing;
mod connection;
mod endpoint;
mod field_tables;
mod fields;
mod first_packets;
mod handshake;
mod host_key;
mod request;
mod respond;
mod routing;
mod settings;
mod stream;
mod unproven;

pub use closing::last_words;
pub use endpoint::listen;
pub use host_key::HostKey;
pub use routing::{QuicEstate, end_of_other, hand_over, inherit, until_other_reads};
pub use settings::Settings;
