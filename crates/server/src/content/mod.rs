//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod fastcgi;
pub mod files;
pub mod memcached;
pub mod mirror;
pub mod pass;
pub mod proxy;
mod request_body;
pub mod slice;
pub mod small;
pub mod ssi;
pub mod subrequest;
pub mod through_cache;
