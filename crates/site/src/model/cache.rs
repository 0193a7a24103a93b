//! Cache rules: `*_cache_*` and our own `cache_*`, whatever made the response.

use std::path::PathBuf;
use std::time::Duration;

use super::{CacheZoneId, Failures, Template};

/// `*_cache_path PATH keys_zone=NAME:SIZE ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheZone {
    pub name: String,
    pub path: PathBuf,
    /// `memory=SIZE`, else `max_size` for a path on tmpfs, else a share of the
    /// machine's memory (`None`: decided at start).
    pub memory_bytes: Option<u64>,
    pub inactive: Duration,
}

/// Everything that steers one location's use of a cache zone.
#[derive(Debug, Clone)]
pub struct CacheRules {
    pub zone: CacheZoneChoice,
    pub key: Template,
    pub valid: Vec<ValidRule>,
    pub methods: CacheMethods,
    pub min_uses: u32,
    /// Any value neither empty nor `0`: do not look up.
    pub bypass: Vec<Template>,
    /// Any value neither empty nor `0`: do not store.
    pub no_cache: Vec<Template>,
    pub use_stale: Failures,
    pub lock: bool,
    pub lock_timeout: Duration,
    pub lock_age: Duration,
    pub background_update: bool,
    pub revalidate: bool,
    pub max_range_offset: Option<u64>,
    pub convert_head: bool,
    /// `*_cache_purge`: any value neither empty nor `0` purges instead of fetching.
    pub purge: Vec<Template>,
    /// `cache_read_your_writes TIME`
    pub read_your_writes: Option<Duration>,
    /// `cache_private`
    pub private: Option<PrivateRule>,
    /// `cache_ignore_args`: globs of argument names left out of the key.
    pub ignored_arguments: Vec<Box<[u8]>>,
    /// `cache_ignore_cookies`: globs of cookie names that do not count.
    pub ignored_cookies: Vec<Box<[u8]>>,
    /// `cache_store_set_cookie`: store responses although they carry Set-Cookie
    /// (the field itself is removed from the stored response).
    pub stores_set_cookie: bool,
    /// `cache_store_authorized`: store responses to requests with Authorization.
    pub stores_authorized: bool,
    /// `cache_queue_stale N`: serve stale when so many requests wait for PHP.
    pub queue_stale: Option<usize>,
    /// `cache_stale`: none, no bound.
    pub stale: Option<StaleTimes>,
}

/// `cache_stale TIME [TIME]`: how long past its freshness a response is shown at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleTimes {
    pub while_renewed: Duration,
    pub while_failing: Duration,
}

impl CacheRules {
    /// Arguments or cookies of a request do not count.
    pub fn overlooks_something(&self) -> bool {
        !self.ignored_arguments.is_empty() || !self.ignored_cookies.is_empty()
    }
}

#[derive(Debug, Clone)]
pub enum CacheZoneChoice {
    Zone(CacheZoneId),
    /// The name of a zone, with variables; `off` or empty: no cache.
    Variable(Template),
}

/// `*_cache_valid [CODE ...] TIME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidRule {
    /// Empty: `any`.
    pub statuses: Vec<u16>,
    pub lifetime: Duration,
}

/// `*_cache_methods`; GET and HEAD always count, and there is no other (as in
/// nginx).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheMethods {
    pub post: bool,
}

/// `cache_private COOKIE ... [copies=N] [size=SIZE] [valid=TIME]`: a copy for
/// each session, told apart by the values of the named cookies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateRule {
    /// Globs of cookie names.
    pub cookies: Vec<Box<[u8]>>,
    pub copies: usize,
    pub size_bytes: u64,
}
