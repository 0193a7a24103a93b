//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod early_hints;
pub mod fastcgi;
pub mod file_copy;
pub mod files;
mod filling_body;
pub mod memcached;
pub mod mirror;
pub mod pass;
pub mod policy;
pub mod proxy;
mod request_body;
mod shared;
pub mod slice;
pub mod small;
pub mod subrequest;
pub mod through_cache;
