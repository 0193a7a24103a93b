//! What may end a request before its content: addresses, passwords, other servers' word,
//! limits.

pub mod addresses;
pub mod auth_basic;
pub mod gate;
pub mod limit_conn;
pub mod limit_req;
