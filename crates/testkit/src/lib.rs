//! Helpers for tests only: a running server, a scripted client, a fake PHP and
//! a fake HTTP server.

pub mod client;
pub mod fake_http;
pub mod fake_php;
pub mod running;
