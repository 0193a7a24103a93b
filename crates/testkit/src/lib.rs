//! Helpers for tests only: a running server (with a configuration, or by `serve`), a scripted client, a fake PHP, a fake
//! HTTP server and a fake name server.

pub mod client;
pub mod fake_dns;
pub mod fake_http;
pub mod fake_php;
pub mod origin;
pub mod running;
pub mod serving;
pub mod tls;
