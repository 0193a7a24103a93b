//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod early_hints;
pub mod fastcgi;
mod fetch_log;
pub mod file_copy;
pub mod files;
pub mod memcached;
pub mod mirror;
pub mod pass;
pub mod policy;
pub mod proxy;
mod shared;
pub mod slice;
pub mod small;
pub mod ssi;
pub mod subrequest;
pub mod through_cache;
