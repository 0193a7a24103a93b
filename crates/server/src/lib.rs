//! `Site` in, running server out: connections, routing, variables, handlers,
//! responses and logs.
//!
//! ```text
//! compose        tables of functions that lower floors call
//! worker         threads, listeners, the configuration in force; background
//! explain        foreseen requests and stored responses, for people
//! warming        pages that the server asks itself for
//! service        answers a transport: makes the request, runs the pipeline, writes the log
//! pipeline       the stages of a request, in their order
//! content  access  respond  route  log
//! exchange       requests, replies, templates: values that all of these share
//! ```
//!
//! Right below are the crates `upstream-fetch`, which asks other servers, and `live-state`, which
//! outlives a configuration. Nothing here sees the configuration's syntax: `site` has made plain
//! values of it.

pub mod access;
mod background;
pub mod compose;

pub mod content;
pub mod exchange;
pub mod explain;
pub mod log;
pub mod pipeline;
pub mod respond;
pub mod route;
mod service;
#[cfg(test)]
mod test_site;
pub mod warming;
pub mod worker;
