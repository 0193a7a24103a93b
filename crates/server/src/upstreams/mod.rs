//! Upstreams: found by name, watched, asked.

pub mod fetch;
pub mod health;
pub mod naming;
