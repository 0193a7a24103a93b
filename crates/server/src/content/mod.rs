//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod empty_gif;
pub mod fastcgi;
pub mod files;
pub mod memcached;
pub mod mirror;
pub mod pass;
pub mod proxy;
mod request_body;
pub mod slice;
pub mod ssi;
pub mod stub_status;
pub mod through_cache;
