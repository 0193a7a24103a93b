//! Each request of a client is counted once, when it has ended: where its line is written to the
//! access log, so that the two agree. A hit is counted in lines of memory of the thread's own.

use std::time::Duration;

use http_cache::UpstreamCacheStatus;
use http_semantics::Version;

use crate::exchange::page_name::write_page_name;
use crate::exchange::request::Request;
use live_state::stats::{EndedRequest, PagesOfThread};
use server_base::sampling::Sample;

use std::sync::atomic::Ordering::Relaxed;

/// The index of `none` in [`numbers::table::CACHE_STATUSES`].
const NO_CACHE: usize = numbers::table::CACHE_STATUSES.len() - 1;

/// Counts a request that has ended.
#[inline]
pub fn count(request: &Request) {
    let (cache, spared_micros) = request
        .cache
        .read(|notes| (notes.upstream_cache_status(), notes.spared_micros));
    request
        .configuration
        .live
        .stats
        .ended
        .of_thread()
        .note(EndedRequest {
            // The table has them in the order of the enum.
            cache: cache.map_or(NO_CACHE, |status| status as usize),
            status: request.delivery.status,
            sent_bytes: request.delivery.bytes_sent.load(Relaxed),
            received_bytes: request.received_bytes.load(Relaxed),
            spared_micros,
        });
    use UpstreamCacheStatus as Status;
    match (cache, request.received.sample()) {
        (Some(Status::Hit | Status::Stale | Status::Updating), Some(sample)) => {
            note_hit(request, sample);
        }
        (Some(Status::Hit | Status::Stale | Status::Updating) | None, _) => {}
        (Some(_), _) => note_miss(request),
    }
}

#[cold]
fn note_hit(request: &Request, sample: Sample) {
    let (took, weight) = (sample.from.elapsed(), u64::from(sample.weight));
    let stats = &request.configuration.live.stats;
    stats.ended.of_thread().note_hits(took, weight);
    let pages = stats.pages.of_thread();
    let PagesOfThread { wanted, name, .. } = &mut *pages.counts.lock();
    write_page_name(&request.received, name);
    wanted.add(name, weight, request.now());
}

#[cold]
fn note_miss(request: &Request) {
    let took = clock::now().saturating_sub(request.received.started_at());
    let stats = &request.configuration.live.stats;
    let waited = Duration::from_millis(took);
    stats.ended.of_thread().note_miss(waited);
    let pages = stats.pages.of_thread();
    let PagesOfThread {
        costly,
        not_stored,
        name,
        ..
    } = &mut *pages.counts.lock();
    write_page_name(&request.received, name);
    costly.add(name, took, request.now());
    if let Some(reason) = request.cache.reason() {
        name.extend_from_slice(b" (");
        name.extend_from_slice(reason.word().as_bytes());
        name.push(b')');
        not_stored.add(name, 1, request.now());
    }
}

/// Counts a connection, with its first request.
#[cold]
pub fn count_connection(request: &Request) {
    let protocol = match request.received.head().version() {
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
