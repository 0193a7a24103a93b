//! One line of a log, as far as advice needs it.

/// A request as logged. Texts are as logged, with their escapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'l> {
    /// When the request was logged, which is when it ended: milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The time is exact to the millisecond, not to the second.
    pub is_exact: bool,
    pub host: &'l [u8],
    pub method: &'l [u8],
    pub target: &'l [u8],
    pub status: u16,
    pub body_bytes: Option<u64>,
    pub user_agent: Option<&'l [u8]>,
    /// `$http_cookie`, where it is logged.
    pub cookies: Option<&'l [u8]>,
    pub cache_status: Option<CacheStatus>,
    /// `$request_time`
    pub request_ms: Option<u32>,
    /// `$upstream_response_time`
    pub upstream_ms: Option<u32>,
}

/// `$upstream_cache_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStatus {
    Miss,
    Bypass,
    Expired,
    Stale,
    Updating,
    Revalidated,
    Hit,
}

impl CacheStatus {
    /// The status of this word.
    #[must_use]
    pub fn of(word: &[u8]) -> Option<CacheStatus> {
        Some(match word {
            b"MISS" => CacheStatus::Miss,
            b"BYPASS" => CacheStatus::Bypass,
            b"EXPIRED" => CacheStatus::Expired,
            b"STALE" => CacheStatus::Stale,
            b"UPDATING" => CacheStatus::Updating,
            b"REVALIDATED" => CacheStatus::Revalidated,
            b"HIT" => CacheStatus::Hit,
            _ => return None,
        })
    }

    /// Whether the visitor got a stored response, without waiting for the application.
    #[must_use]
    pub fn is_from_memory(self) -> bool {
        matches!(
            self,
            CacheStatus::Hit | CacheStatus::Stale | CacheStatus::Updating
        )
    }
}

impl Entry<'_> {
    /// Returns how long the application worked, if the line has that.
    #[must_use]
    pub fn run_ms(&self) -> Option<u32> {
        match self.cache_status {
            Some(status) if status.is_from_memory() => None,
            _ => self.upstream_ms.or(self.request_ms),
        }
    }
}

/// The reason why a line is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The line does not have the form of `--format`.
    OtherFormat,
    NoTime,
    NoRequest,
    NoStatus,
    TooLong,
}

impl Fault {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Fault::OtherFormat => "not in the given format",
            Fault::NoTime => "without a time",
            Fault::NoRequest => "without a request such as \"GET / HTTP/1.1\"",
            Fault::NoStatus => "without a status",
            Fault::TooLong => "too long",
        }
    }
}
