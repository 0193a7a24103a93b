//! When a stale response may stand in for a fetch.

use http_cache::{StaleInfo, StaleReason, UseStale, may_serve_stale};

use crate::upstreams::fetch::FetchError;

/// With `cache_stale`, an upstream that takes longer than others wait for a leader does not keep
/// up: may this copy be shown meanwhile?
pub fn stands_in_for_slow(allowed: &UseStale, info: &StaleInfo) -> bool {
    allowed.bounds.is_some() && may_serve_stale(StaleReason::Timeout, allowed, info)
}

/// Why a stale response is wanted after a fetch that failed like this.
pub fn stale_reason(error: FetchError) -> StaleReason {
    match error {
        FetchError::Timeout => StaleReason::Timeout,
        FetchError::InvalidHeader => StaleReason::InvalidHeader,
        FetchError::Overloaded | FetchError::LeftOut => StaleReason::QueueFull,
        FetchError::Status(status) => StaleReason::Status(status),
        FetchError::Error
        | FetchError::NoLiveUpstreams
        | FetchError::Local
        | FetchError::Client(_) => StaleReason::Error,
    }
}
