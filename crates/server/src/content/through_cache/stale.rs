//! Names a failed fetch for the rules by which a stale response may stand in for it.

use http_cache::StaleReason;

use upstream_fetch::FetchError;

/// Returns why a stale response is wanted after a fetch that failed like this.
pub fn stale_reason(error: FetchError) -> StaleReason {
    match error {
        FetchError::Timeout => StaleReason::Timeout,
        FetchError::InvalidHeader => StaleReason::InvalidHeader,
        FetchError::Overloaded(_) | FetchError::LeftOut => StaleReason::QueueFull,
        FetchError::Status(status) => StaleReason::Status(status),
        FetchError::Error
        | FetchError::NoLiveUpstreams
        | FetchError::Local
        | FetchError::Client(_) => StaleReason::Error,
    }
}
