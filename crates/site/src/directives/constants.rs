//! The declarations of all directives that `lower` reads by a constant.

pub(crate) use super::{
    access::*, brotli::*, cache::*, core::*, esi::*, fastcgi::*, files::*, fragments::*, gzip::*,
    headers::*, http::*, http2::*, limits::*, memcached::*, otel::*, php_pool::*, proxy::*,
    purging::*, ssi::*, tls::*, upstream::*, zstd::*,
};
