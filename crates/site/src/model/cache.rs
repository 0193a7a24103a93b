//! Cache rules: `*_cache_*` and our own `cache_*`, whatever made the response.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shared_request::{NameSet, Rules};

use super::failures::Failures;
use super::ids::{CacheZoneId, MapId, SlotId};
use super::template::Template;

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
#[derive(Debug)]
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
    /// `*_cache_purge METHOD purge_all`: such a request removes all of the zone.
    pub purges_everything: bool,
    /// `cache_read_your_writes TIME`
    pub read_your_writes: Option<Duration>,
    /// `cache_private`
    pub private: Option<PrivateRule>,
    /// `cache_ignore_args`: arguments that are not in the key, and not sent by a fetch whose
    /// response is for the cache.
    pub ignored_arguments: NameSet,
    /// `cache_ignore_cookies`: cookies that are not in the key, and not sent by a fetch whose
    /// response is for the cache.
    pub ignored_cookies: NameSet,
    /// `cache_store_set_cookie`: store responses although they carry Set-Cookie
    /// (the field itself is removed from the stored response).
    pub stores_set_cookie: bool,
    /// `cache_store_authorized`: store responses to requests with Authorization.
    pub stores_authorized: bool,
    /// Parts of the key that are made from cookies.
    pub cookies_in_key: Vec<CookieInKey>,
    /// `cache_shared`
    pub shared: Option<Box<SharedRules>>,
    /// `cache_queue_stale N`: serve stale when so many requests wait for PHP.
    pub queue_stale: Option<usize>,
    /// `cache_stale`: none, no bound.
    pub stale: Option<StaleTimes>,
    /// `cache_max_valid`: none, no bound.
    pub max_valid: Option<Duration>,
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

/// A part of a cache key that tells visitors with different cookies apart.
#[derive(Debug, Clone)]
pub enum CookieInKey {
    /// `$http_cookie`: all of them.
    All,
    /// `$cookie_NAME`, or a `map` of nothing else.
    Named(Box<[u8]>),
    /// A `map` of all cookies: it picks one, and has its default where that is missing.
    Map(MapId),
    /// A variable that `set` or a named group has filled, perhaps from a cookie.
    Slot(SlotId),
}

/// `cache_shared` and the directives that go with it: a request whose answer may be shared is
/// written by the server itself.
#[derive(Debug, Clone)]
pub struct SharedRules {
    pub request: Arc<Rules>,
    /// `*_cache_key`, where it is given: in the key beside what is always there.
    pub key: Option<Template>,
    /// `cache_crawler_valid`: pages for crawlers are fresh for as long at least.
    pub crawler_lifetime: Option<Duration>,
    /// `cache_not_found`: how long answers are fresh that say that there is no such page.
    pub not_found: Option<Duration>,
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
    /// The cookies whose values identify a session.
    pub cookies: NameSet,
    pub copies: usize,
    pub size_bytes: u64,
}
