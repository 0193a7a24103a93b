//! Requests in memcached's terms: a key, and the media type of its value
//! (<https://nginx.org/en/docs/http/ngx_http_memcached_module.html>).

use bytes::Bytes;
use site::{LogLevel, Memcached};

use crate::content::files;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::log::error_log;
use upstream_fetch::MemcachedRequest;

/// Creates the request for memcached; an error is the status to answer with.
pub fn upstream_request(request: &Request, memcached: &Memcached) -> Result<MemcachedRequest, u16> {
    let mut key = Vec::new();
    variable::write(request, &memcached.key, &mut key);
    if key.is_empty() {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!("the \"$memcached_key\" variable is not set"),
        );
        return Err(500);
    }
    let content_type = files::media_type(request, &request.route.path).to_vec();
    Ok(MemcachedRequest {
        key: ::memcached::escape_key(&key).into(),
        content_type: Bytes::from(content_type),
        gzip_flags: memcached.gzip_flags,
    })
}
