//! Helpers for tests only: a running server, a scripted client, a fake PHP.

pub mod client;
pub mod fake_php;
pub mod running;
