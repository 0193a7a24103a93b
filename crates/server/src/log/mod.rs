//! Logs of requests, errors and purges.

pub mod access_log;
pub mod error_log;
pub mod purge_log;
pub mod times;
pub mod traces;
