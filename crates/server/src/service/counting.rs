//! Each request of a client is counted once, when it has ended: where its line is written to the
//! access log, so that the two agree. A hit is counted in lines of memory of the thread's own.

use std::time::{Duration, Instant};

use http_cache::UpstreamCacheStatus;
use http_semantics::Version;

use crate::base::{clock, sampling};
use crate::exchange::request::Request;
use crate::live::stats::{EndedRequest, EndedRequests, OfThread};
use crate::service::masked_path;

use std::sync::atomic::Ordering::Relaxed;

/// Of a target, no more is looked at.
const MAX_NAMED_BYTES: usize = 300;
/// Where [`numbers::table::CACHE_STATUSES`] has `none`.
const NO_CACHE: usize = numbers::table::CACHE_STATUSES.len() - 1;

/// Counts a request that has ended.
#[inline]
pub fn count(request: &Request) {
    let outcome = request.cache.outcome.as_ref();
    let cache = outcome.and_then(|outcome| outcome.upstream_cache_status());
    let counts = request.configuration.live.stats.ended.of_thread();
    counts.note(EndedRequest {
        // The table has them in the order of the enum.
        cache: cache.map_or(NO_CACHE, |status| status as usize),
        status: request.status,
        sent_bytes: request.bytes_sent,
        received_bytes: request.received_bytes,
        spared_micros: request.cache.spared_micros,
    });
    use UpstreamCacheStatus as Status;
    match (cache, request.timed_from) {
        (Some(Status::Hit | Status::Stale | Status::Updating), Some(from)) => {
            note_hit(request, from, &counts);
        }
        (Some(Status::Hit | Status::Stale | Status::Updating) | None, _) => {}
        (Some(_), _) => note_miss(request, &counts),
    }
}

#[cold]
fn note_hit(request: &Request, from: Instant, counts: &OfThread<'_, EndedRequests>) {
    counts.note_hit(from.elapsed());
    // One in so many is looked at.
    let (name, now) = (page_name(request), request.now);
    let pages = request.configuration.live.stats.pages.of_thread();
    let mut pages = pages.counts.lock();
    pages.wanted.add(&name, sampling::MEAN_GAP, now);
}

#[cold]
fn note_miss(request: &Request, counts: &OfThread<'_, EndedRequests>) {
    let took = clock::now().saturating_sub(request.started_at);
    counts.note_miss(Duration::from_millis(took));
    let (mut name, now) = (page_name(request), request.now);
    let pages = request.configuration.live.stats.pages.of_thread();
    let mut pages = pages.counts.lock();
    pages.costly.add(&name, took, now);
    if let Some(reason) = request.cache.reason {
        name.extend_from_slice(b" (");
        name.extend_from_slice(reason.word().as_bytes());
        name.push(b')');
        pages.not_stored.add(&name, 1, now);
    }
}

/// Host and path of a page, with the names of its arguments. What they say may be a secret, as may a part of the path.
fn page_name(request: &Request) -> Vec<u8> {
    let target = request.received_target();
    let target = target.get(..MAX_NAMED_BYTES).unwrap_or(target);
    let (path, arguments) = match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &[][..]),
    };
    // Room for all of it: what stands for a value is no longer, but for a few bytes.
    let mut name = Vec::with_capacity(request.host.len() + target.len() + 32);
    name.extend_from_slice(&request.host);
    masked_path::put(path, path.len() == MAX_NAMED_BYTES, &mut name);
    for (at, argument) in arguments.split(|&byte| byte == b'&').enumerate() {
        let end = memchr::memchr(b'=', argument);
        let Some(end) = end.filter(|_| !arguments.is_empty()) else {
            // Without a value the whole may be one.
            name.extend_from_slice(match (at, arguments.is_empty()) {
                (_, true) => b"",
                (0, false) => b"?*",
                _ => b"&*",
            });
            continue;
        };
        name.push(if at == 0 { b'?' } else { b'&' });
        // Joomla has a token in the place of a name.
        masked_path::put(&argument[..end], false, &mut name);
        name.extend_from_slice(b"=*");
    }
    name
}

/// Counts a connection, with its first request.
#[cold]
pub fn count_connection(request: &Request) {
    let protocol = match request.head.version() {
        Version::Http2 => 1,
        Version::Http3 => 2,
        _ => 0,
    };
    request.configuration.live.stats.connections[protocol].fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_numbers_has_the_statuses_of_the_cache_in_their_order() {
        use UpstreamCacheStatus as Status;
        let all = [
            Status::Miss,
            Status::Bypass,
            Status::Expired,
            Status::Stale,
            Status::Updating,
            Status::Revalidated,
            Status::Hit,
        ];
        let words = all.map(|status| (status as usize, status.as_str()));
        let table: Vec<_> = numbers::table::CACHE_STATUSES[..NO_CACHE]
            .iter()
            .copied()
            .enumerate()
            .collect();
        assert_eq!(words.to_vec(), table);
    }
}
