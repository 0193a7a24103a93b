//! Sockets: bytes into requests, responses into bytes.

pub mod body;
pub mod client;
pub mod connection;
pub mod connections;
pub mod facts;
pub mod gathered;
mod informational;
pub mod proxy_protocol;
pub mod stream;
pub mod tunnel;
