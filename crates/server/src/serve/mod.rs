//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod early_hints;
pub mod fastcgi;
pub mod file_copy;
pub mod files;
pub mod memcached;
pub mod pass;
pub mod proxy;
pub mod slice;
pub mod small;
pub mod through_cache;
