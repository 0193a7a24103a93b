//! What variables say of the cache's part in a request.

use site::Builtin as B;

use crate::exchange::request::Request;
use crate::exchange::value::{put, put_number};
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::CacheReason,
        Of(|request, out| put(request.cache.reason.map(|it| it.word().as_bytes()), out)),
    ),
    (B::CacheStatus, Of(put_cache_status)),
    (
        B::UpstreamCacheAge,
        Of(|request, out| request.cache.age.is_some_and(|age| put_number(age, out))),
    ),
    (
        B::UpstreamCacheKey,
        Of(|request, out| {
            let key = Some(&request.cache.key[..]);
            put(key.filter(|key| !key.is_empty()), out)
        }),
    ),
    (
        B::UpstreamCacheLastModified,
        Of(|request, out| put(request.cache.last_modified.as_deref(), out)),
    ),
    (B::UpstreamCacheStatus, Of(put_upstream_cache_status)),
];

fn put_cache_status(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let Some(outcome) = &request.cache.outcome else {
        return false;
    };
    out.extend_from_slice(
        outcome
            .cache_status("mayfly", request.cache.reason)
            .to_string()
            .as_bytes(),
    );
    true
}

fn put_upstream_cache_status(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let outcome = request.cache.outcome.as_ref();
    let status = outcome.and_then(|outcome| outcome.upstream_cache_status());
    put(status.map(|status| status.as_str().as_bytes()), out)
}
