//! Helpers for tests only: a running server (with a configuration, or by `serve`), a scripted
//! client for each version of HTTP, a fake PHP, a fake HTTP server and a fake name server, Redis, MariaDB, processes, waiting
//! with a bound, and golden files.

pub mod client;
pub mod fake_dns;
pub mod fake_http;
pub mod fake_php;
pub mod golden;
pub mod http2;
pub mod http3;
pub mod mariadb;
pub mod origin;
pub mod pebble;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod running;
pub mod serving;
pub mod started;
pub mod tls;
pub mod tls_client;
pub mod tls_relay;
pub mod wait;
