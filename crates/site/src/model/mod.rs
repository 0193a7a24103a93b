//! The typed model of a site, cut along what a request meets: process,
//! listeners and servers, locations, rewriting, upstreams, cache rules, limits
//! and logs. Plain values; identifiers are indexes into the vectors of [`Http`].

use std::collections::HashMap;

mod builtin;
mod cache;
mod health;
mod limits;
mod listener;
mod location;
mod log;
mod pattern;
mod process;
mod resolver;
mod rewrite;
mod settings;
mod template;
mod upstream;

pub use builtin::*;
pub use cache::*;
pub use health::*;
pub use limits::*;
pub use listener::*;
pub use location::*;
pub use log::*;
pub use pattern::*;
pub use process::*;
pub use resolver::*;
pub use rewrite::*;
pub use settings::*;
pub use template::*;
pub use upstream::*;

/// Looked up with bytes that clients send. The entries come from the
/// configuration alone, so nobody outside can make them collide, and a hash
/// that is quick for short names will do.
pub type ByteMap<V> = std::collections::HashMap<Box<[u8]>, V, foldhash::fast::RandomState>;

/// A whole configuration, ready to be served.
#[derive(Debug)]
pub struct Site {
    pub process: Process,
    pub http: Http,
}

/// The `http` block: what servers share, and the servers.
#[derive(Debug, Default)]
pub struct Http {
    /// One for each distinct address that some server listens on.
    pub listeners: Vec<Listener>,
    pub servers: Vec<Server>,
    pub maps: Vec<Map>,
    pub geos: Vec<Geo>,
    pub split_clients: Vec<SplitClients>,
    pub charset_maps: Vec<CharsetMap>,
    /// Names of the request's writable variables: `set` and named captures.
    /// A request carries one slot for each.
    pub slots: Vec<String>,
    /// Those that `set` writes: they are empty where it did not, and not missing.
    pub slots_of_set: std::collections::HashSet<SlotId>,
    /// What `map`, `geo` and `split_clients` define, by name.
    pub made_variables: HashMap<String, Variable>,
    /// `upstream` blocks first, then one implicit group for each address that
    /// a `*_pass` names literally.
    pub groups: Vec<UpstreamGroup>,
    /// Settings of encrypted connections to upstreams, each once.
    pub tls: Vec<TlsSettings>,
    /// One for each `resolver` line that something refers to.
    pub resolvers: Vec<ResolverSettings>,
    pub health_checks: Vec<HealthCheck>,
    /// `match` blocks.
    pub matches: Vec<MatchRules>,
    pub cache_zones: Vec<CacheZone>,
    pub limit_req_zones: Vec<LimitReqZone>,
    pub limit_conn_zones: Vec<LimitConnZone>,
    pub log_formats: Vec<LogFormat>,
    /// Some value reads `$upstream_cache_last_modified`.
    pub uses_cache_last_modified: bool,
    /// Some value reads `$sent_http_*`: responses must stay inspectable.
    pub uses_sent_fields: bool,
    /// Some value reads `$upstream_http_*` or `$upstream_cookie_*`, or may: heads of
    /// upstreams' responses must stay inspectable.
    pub uses_upstream_fields: bool,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);
    )*};
}

ids! {
    /// Index into [`Http::listeners`].
    ListenerId,
    /// Index into [`Http::servers`].
    ServerId,
    /// Index into [`Server::locations`].
    LocationId,
    /// Index into [`Http::maps`].
    MapId,
    /// Index into [`Http::geos`].
    GeoId,
    /// Index into [`Http::split_clients`].
    SplitClientsId,
    /// Index into [`Http::slots`].
    SlotId,
    /// Index into [`Http::groups`].
    GroupId,
    /// Index into [`Http::tls`].
    TlsId,
    /// Index into [`Http::resolvers`].
    ResolverId,
    /// Index into [`Http::matches`].
    MatchId,
    /// Index into [`Http::cache_zones`].
    CacheZoneId,
    /// Index into [`Http::limit_req_zones`].
    LimitReqZoneId,
    /// Index into [`Http::limit_conn_zones`].
    LimitConnZoneId,
    /// Index into [`Http::log_formats`].
    LogFormatId,
}
