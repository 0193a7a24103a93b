//! `Site` in, running server out: connections, routing, variables, handlers,
//! responses and logs.
//!
//! ```text
//! connection -> pipeline (route, rewrite, access, content) -> respond -> log
//!                             content: serve/{files, fastcgi, through_cache}
//!                             fetch: an upstream is asked, for one client or for the cache
//! ```
//!
//! Nothing here sees the configuration's syntax: `site` has made plain values
//! of it.

pub mod access;
pub mod access_log;
pub mod auth_basic;
mod background;
pub mod body;
pub mod charset;
pub mod client;
pub mod clock;
pub mod connection;
mod crew;
mod decimal;
pub mod error_log;
mod extras;
pub mod fetch;
pub mod gate;
mod gathered;
pub mod health;
pub mod in_force;
pub mod limit_conn;
pub mod limit_req;
mod lru;
mod may_wait;
pub mod memory_limit;
pub mod mirror;
pub mod naming;
pub mod open_file;
mod patience;
pub mod pattern;
pub mod pipeline;
mod place;
pub mod policy;
pub mod proxy_protocol;
pub mod random;
pub mod recode;
pub mod reply;
pub mod request;
pub mod respond;
pub mod rewrite;
pub mod route;
pub mod runtime;
pub mod serve;
mod shared;
pub mod spool;
pub mod ssi;
pub mod stats;
mod stream;
pub mod subrequest;
mod tunnel;
pub mod upstream_tls;
mod variable;
pub mod worker;
