//! Cache zones, and a location's rules for its use of the cache: `*_cache*` and `cache_*`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shared_request::{NameSet, Rules};

use super::failures::Failures;
use super::field_names::FieldNames;
use super::ids::{CacheZoneId, MapId, SlotId};
use super::template::Template;

/// The cookie of `cache_read_your_writes`: until when (unix milliseconds) its browser sees past the
/// cache. No page depends on it.
pub const WRITER_COOKIE: &[u8] = b"mayfly_writer";

/// `*_cache_path PATH keys_zone=NAME:SIZE ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheZone {
    pub name: String,
    pub path: PathBuf,
    /// `memory=SIZE`, else `max_size` for a path on tmpfs, else a share of the
    /// machine's memory (`None`: decided at start).
    pub memory_bytes: Option<u64>,
    pub inactive: Duration,
    /// The store of responses beside memory; `None` for a path on tmpfs, and with `disk=off`.
    pub disk: Option<CacheDisk>,
}

/// The part of a zone on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheDisk {
    /// A folder of its own, below the path of the zone: files of others there are left alone.
    pub folder: PathBuf,
    /// `max_size=SIZE`; `None`: a share of the file system, decided at start.
    pub max_bytes: Option<u64>,
    /// `min_free=SIZE`
    pub min_free_bytes: u64,
    /// `disk_timeout=TIME`: a request waits no longer for the disk.
    pub timeout: Duration,
}

/// The stale responses that are validated, instead of being fetched as a whole
/// (`*_cache_revalidate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revalidation {
    Off,
    /// Without the directive: those whose validator names one content without doubt.
    BeyondDoubt,
    /// All that have a validator.
    On,
}

/// How one location uses a cache zone.
// Large: each field is the value of a directive.
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
    /// `None`: not configured.
    pub use_stale: Option<Failures>,
    pub lock: bool,
    pub lock_timeout: Duration,
    pub lock_age: Duration,
    pub background_update: bool,
    pub revalidation: Revalidation,
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
    /// `cache_queue_stale N`: serve stale while more than N requests wait for PHP.
    pub queue_stale: Option<usize>,
    /// `cache_stale`; `None`: no limit.
    pub stale: Option<StaleTimes>,
    /// `cache_max_valid`; `None`: no limit.
    pub max_valid: Option<MaxValid>,
    /// `cache_heuristic`
    pub heuristic: bool,
    /// `cache_refill`: purged pages are fetched again.
    pub refill: bool,
    /// `cache_nodes_pages`: pages are shared with other machines.
    pub shares_pages: bool,
    /// `cache_learn`; `None`: nothing is learned.
    pub learn: Option<LearnRules>,
    /// `cache_tags`; `None`: responses have none.
    pub tags: Option<TagRules>,
    /// The directives that decided these rules, for people.
    pub lines: Vec<RuleLine>,
}

/// When pages are kept by their learned inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnMode {
    Watch,
    /// Once pages like them were made again often enough, and were the same.
    Auto,
    On,
}

impl LearnRules {
    /// May pages be kept by their learned inputs?
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.mode != LearnMode::Watch
    }
}

/// `cache_learn`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnRules {
    pub mode: LearnMode,
    /// `cache_learn_max`
    pub most: Duration,
    /// `cache_learn_replay`
    pub replays: bool,
    /// `cache_learn_binary_log`
    pub follows: bool,
    pub database: Option<LearnDatabase>,
    pub object_cache: Option<LearnDatabase>,
}

/// `cache_learn_database`, `cache_learn_object_cache`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnDatabase {
    /// `unix:PATH` or `IP:PORT`
    pub server: String,
    pub user: String,
    pub password: String,
}

/// `cache_max_valid`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxValid {
    pub time: Duration,
    pub lifted: LiftedByPurges,
}

/// Whether responses may live longer than `cache_max_valid` while the application's purges arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiftedByPurges {
    Never,
    /// `purges=seen`: once one has arrived.
    OnceSeen,
    /// `purges=expected`: from the start.
    FromStart,
}

/// A line of the configuration that affects storing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLine {
    /// Its directive.
    pub directive: Box<str>,
    /// The directive and its arguments.
    pub text: Box<str>,
    /// `FILE:LINE`, or the line in the output of the command that prints the configuration.
    pub at: Box<str>,
}

/// `cache_tags`: where responses name the data that they were made of.
#[derive(Debug, Clone)]
pub struct TagRules {
    /// The names of the fields that count, and of trailers.
    pub names: FieldNames,
    /// The fields with the separators of their tags.
    pub fields: Box<[TagField]>,
    /// Lines of the FastCGI error stream count too.
    pub from_stderr: bool,
    /// The fields go on to the client.
    pub are_sent: bool,
    /// `cache_tagged_control`: the value of `Cache-Control` for browsers on a response with tags;
    /// `None`: the application's own value.
    pub control: Option<Box<str>>,
}

/// A field that names tags.
#[derive(Debug, Clone)]
pub struct TagField {
    /// The name in lower case.
    pub name: Box<str>,
    pub separator: TagSeparator,
}

/// The separator of two tags in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagSeparator {
    Spaces,
    Commas,
    /// Blanks and commas.
    Both,
    /// A list of strings that name groups of one origin (RFC 9875 §2).
    Groups,
    /// Commas; in a response for one visitor, only those with `public:` in front are for all purges
    /// (`X-LiteSpeed-Tag`).
    LiteSpeed,
}

/// `cache_stale TIME [TIME]`: how long a response may be shown after its freshness lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleTimes {
    pub while_renewed: Duration,
    pub while_failing: Duration,
}

impl CacheRules {
    /// The lines of directives whose names end so: those of this protocol, or of all.
    pub fn lines_of<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a RuleLine> {
        let is_named = move |line: &&RuleLine| {
            let prefix = line.directive.strip_suffix(ending);
            // `_cache` is the end of `fastcgi_no_cache` too.
            prefix.is_some_and(|prefix| !prefix.contains('_'))
        };
        self.lines.iter().filter(is_named)
    }

    /// `cache_litespeed`
    pub fn speaks_litespeed(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.litespeed)
    }

    /// Does the cache ignore some arguments or cookies?
    pub fn overlooks_something(&self) -> bool {
        !self.ignored_arguments.is_empty() || !self.ignored_cookies.is_empty()
    }
}

/// A part of a cache key that differs for visitors with different cookies.
#[derive(Debug, Clone)]
pub enum CookieInKey {
    /// `$http_cookie`: all of them.
    All,
    /// `$cookie_NAME`, or a `map` of nothing else.
    Named(Box<[u8]>),
    /// A `map` of all cookies, which chooses a value by one of them.
    Map(MapId),
    /// A variable that `set` or a named group has filled, perhaps from a cookie.
    Slot(SlotId),
}

/// `cache_shared` and its directives: the server itself writes a request whose response may be
/// shared.
#[derive(Debug, Clone)]
pub struct SharedRules {
    pub request: Arc<Rules>,
    /// `*_cache_key`, if it is given: added to the usual parts of the key.
    pub key: Option<Template>,
    /// `cache_crawler_valid`: the shortest lifetime of pages for crawlers.
    pub crawler_lifetime: Option<Duration>,
    /// `cache_not_found`: the lifetime of responses 404 and 410.
    pub not_found: Option<Duration>,
    /// `cache_litespeed`: the application decides by LiteSpeed's fields who may share a page.
    pub litespeed: bool,
    /// `cache_guest_sessions`
    pub guest_sessions: GuestSessions,
}

/// Whether pages are shared although their responses say that they are private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestSessions {
    Off,
    /// That a page begins a session does not make it private.
    On,
    /// Caching fields that all pages of the site have alike are ignored, too.
    Uniform,
}

impl GuestSessions {
    #[must_use]
    pub fn are_shared(self) -> bool {
        self != GuestSessions::Off
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

/// `*_cache_methods`. GET and HEAD are always included, and POST is the only other one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheMethods {
    pub post: bool,
}

/// `cache_private COOKIE ... [copies=N] [size=SIZE]`: a stored copy for each session. The values
/// of the named cookies identify the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateRule {
    /// The cookies whose values identify a session.
    pub cookies: NameSet,
    pub copies: usize,
    pub size_bytes: u64,
}
