//! How a fetch differs from the client's own request. Each protocol's request is put
//! together accordingly.

use http_cache::StoredResponse;

use crate::base::deadline::SharedDeadline;

/// What a fetch is for.
#[derive(Default)]
pub struct FetchPurpose<'a> {
    /// For the cache: the client's conditions and ranges stay away.
    pub for_cache: bool,
    /// HEAD becomes GET, so that there is a body to store.
    pub as_get: bool,
    /// Validate this stored response.
    pub validating: Option<&'a StoredResponse>,
    /// The timer of whoever waits; otherwise the fetch has its own.
    pub deadline: Option<&'a SharedDeadline>,
}

/// Fields of the client's request that would make the response one for this
/// client alone.
pub const NOT_FOR_CACHE: [&str; 6] = [
    "if-modified-since",
    "if-unmodified-since",
    "if-none-match",
    "if-match",
    "range",
    "if-range",
];
