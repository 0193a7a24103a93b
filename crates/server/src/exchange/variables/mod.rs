//! Variables whose facts are those of the request itself, its connection, or the process.

pub mod connection;
pub mod files;
pub mod process;
pub mod received;
pub mod sent;
pub mod tls;
