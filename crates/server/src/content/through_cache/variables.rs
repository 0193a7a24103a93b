//! Variables that describe the cache's part in a request.

use site::Builtin as B;

use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::value::{put, put_number};
use crate::exchange::variable_table::Value::Cache as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::CacheReason,
        Of(|cache, out| put(cache.reason().map(|it| it.word().as_bytes()), out)),
    ),
    (B::CacheStatus, Of(put_cache_status)),
    (
        B::UpstreamCacheAge,
        Of(|cache, out| {
            let age = cache.read(|notes| notes.age);
            age.is_some_and(|age| put_number(age, out))
        }),
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
        Of(|cache, out| cache.read(|notes| put(notes.last_modified.as_deref(), out))),
    ),
    (B::UpstreamCacheStatus, Of(put_upstream_cache_status)),
];

fn put_cache_status(cache: &CacheFacts, out: &mut Vec<u8>) -> bool {
    cache.read(|notes| {
        let outcome = notes.outcome.as_ref();
        let text = outcome.map(|it| it.cache_status("mayfly", notes.reason).to_string());
        put(text.as_deref().map(str::as_bytes), out)
    })
}

fn put_upstream_cache_status(cache: &CacheFacts, out: &mut Vec<u8>) -> bool {
    let status = cache.read(|notes| notes.upstream_cache_status());
    put(status.map(|status| status.as_str().as_bytes()), out)
}
