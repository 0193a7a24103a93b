//! The ways in which an upstream can fail: the values of `*_next_upstream` and
//! `*_cache_use_stale`.

/// A set of ways to fail: `*_next_upstream` and `*_cache_use_stale`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    pub error: bool,
    pub timeout: bool,
    pub invalid_header: bool,
    /// Only of `*_cache_use_stale`.
    pub updating: bool,
    /// Only of `*_next_upstream`: requests that are not idempotent are repeated as well.
    pub non_idempotent: bool,
    pub http_500: bool,
    pub http_502: bool,
    pub http_503: bool,
    pub http_504: bool,
    pub http_403: bool,
    pub http_404: bool,
    pub http_429: bool,
}

impl Failures {
    /// Is a response with `status` one of the failures named?
    pub fn has_status(&self, status: u16) -> bool {
        match status {
            500 => self.http_500,
            502 => self.http_502,
            503 => self.http_503,
            504 => self.http_504,
            403 => self.http_403,
            404 => self.http_404,
            429 => self.http_429,
            _ => false,
        }
    }
}
