//! Variables that describe the cache's part in a request.

use site::Builtin as B;

use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::value::{put, put_number};
use crate::exchange::variable_table::Value::Cache as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::CacheReason,
        Of(|cache, out| put(cache.reason.map(|it| it.word().as_bytes()), out)),
    ),
    (B::CacheStatus, Of(put_cache_status)),
    (
        B::UpstreamCacheAge,
        Of(|cache, out| cache.age.is_some_and(|age| put_number(age, out))),
    ),
    (
        B::UpstreamCacheKey,
        Of(|cache, out| {
            let key = Some(&cache.key[..]);
            put(key.filter(|key| !key.is_empty()), out)
        }),
    ),
    (
        B::UpstreamCacheLastModified,
        Of(|cache, out| put(cache.last_modified.as_deref(), out)),
    ),
    (B::UpstreamCacheStatus, Of(put_upstream_cache_status)),
];

fn put_cache_status(cache: &CacheFacts, out: &mut Vec<u8>) -> bool {
    let Some(outcome) = &cache.outcome else {
        return false;
    };
    out.extend_from_slice(
        outcome
            .cache_status("mayfly", cache.reason)
            .to_string()
            .as_bytes(),
    );
    true
}

fn put_upstream_cache_status(cache: &CacheFacts, out: &mut Vec<u8>) -> bool {
    let outcome = cache.outcome.as_ref();
    let status = outcome.and_then(|outcome| outcome.upstream_cache_status());
    put(status.map(|status| status.as_str().as_bytes()), out)
}
