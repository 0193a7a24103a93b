//! A request to an upstream in its protocol's own terms, ready to be sent as often as it must.

use std::ops::Range;

use bytes::Bytes;
use fastcgi::Params;

/// A request in its protocol's own terms, ready to be sent as often as it must.
pub enum UpstreamRequest {
    FastCgi { params: Params, keep_conn: bool },
    Http(HttpRequest),
    Memcached(MemcachedRequest),
}

/// A key, and how the fields of a response are made: memcached has none.
#[derive(Clone)]
pub struct MemcachedRequest {
    /// The key as sent.
    pub key: Bytes,
    pub content_type: Bytes,
    /// Bits of a value's flags that mark it as compressed.
    pub gzip_flags: u32,
}

/// A rendered request.
pub struct HttpRequest {
    /// Request line, fields and empty line.
    pub head: Bytes,
    /// The range of the request target in `head`, for log lines.
    pub target: Range<usize>,
    pub framing: http_client::BodyFraming,
    pub keep_alive: bool,
    pub allow_upgrade: bool,
}

impl UpstreamRequest {
    /// Whether the connection may be one that served before, and serve again.
    pub fn keeps_connection(&self) -> bool {
        match self {
            UpstreamRequest::FastCgi { keep_conn, .. } => *keep_conn,
            UpstreamRequest::Http(request) => request.keep_alive,
            UpstreamRequest::Memcached(_) => true,
        }
    }
}
