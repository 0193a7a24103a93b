//! A whole configuration as one value: the process, and the `http` block with its servers.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use shared_request::NameSet;

use super::acme::Acme;
use super::cache::CacheZone;
use super::health::{HealthCheck, MatchRules};
use super::ids::SlotId;
use super::limits::{LimitConnZone, LimitReqZone};
use super::listener::{Listener, Server};
use super::log::{LogFormat, PurgeLog};
use super::maps::{Geo, Map, SplitClients};
use super::nodes::CacheNodes;
use super::otel::OtelExporter;
use super::pass::TlsSettings;
use super::process::Process;
use super::resolver::ResolverSettings;
use super::server_tls::ServerTls;
use super::settings::CharsetMap;
use super::template::Variable;
use super::upstream::UpstreamGroup;

/// A whole configuration, ready to be served.
#[derive(Debug)]
pub struct Site {
    pub process: Process,
    pub http: Http,
}

impl Site {
    /// Returns the folder in which programs leave purges while no server runs, one subfolder
    /// each, beside the pages that are kept on disk. `None` if no zone is on disk.
    #[must_use]
    pub fn left_purges(&self) -> Option<PathBuf> {
        let mut zones = self.http.cache_zones.iter();
        let zone = zones.find(|zone| zone.disk.is_some())?;
        Some(zone.path.join(LEFT_PURGES))
    }
}

/// The name of that folder. Folders of zones begin with another word.
const LEFT_PURGES: &str = "left-purges";

/// The `http` block: the settings that servers share, and the servers.
// Large: each field is a list of the declarations of blocks and directives of its level, or the value of one of them.
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
    /// Slots that `set` writes. They are empty, not missing, until it writes them.
    pub slots_of_set: HashSet<SlotId>,
    /// Variables that `map`, `geo` and `split_clients` define, by name.
    pub made_variables: HashMap<String, Variable>,
    /// `upstream` blocks first, then one implicit group for each address that
    /// a `*_pass` names literally.
    pub groups: Vec<UpstreamGroup>,
    /// Settings of TLS connections to upstreams, without duplicates.
    pub tls: Vec<TlsSettings>,
    /// Settings of TLS connections of clients, without duplicates.
    pub server_tls: Vec<ServerTls>,
    /// Certificates that come by themselves, and who issues them.
    pub acme: Acme,
    /// `otel_exporter`
    pub otel_exporter: Option<OtelExporter>,
    /// `http2_recv_buffer_size`
    pub http2_receive_buffer_bytes: usize,
    /// One for each `resolver` line that something refers to.
    pub resolvers: Vec<ResolverSettings>,
    pub health_checks: Vec<HealthCheck>,
    /// `match` blocks.
    pub matches: Vec<MatchRules>,
    pub cache_zones: Vec<CacheZone>,
    pub limit_req_zones: Vec<LimitReqZone>,
    pub limit_conn_zones: Vec<LimitConnZone>,
    pub log_formats: Vec<LogFormat>,
    /// `cache_show_args`: arguments whose values are shown to users who look at stored
    /// responses.
    pub shown_arguments: NameSet,
    /// `cache_nodes`
    pub cache_nodes: Option<CacheNodes>,
    /// `cache_nodes_lost stale=TIME`: how long stored responses are used without a lease.
    pub cache_nodes_lost: Option<Duration>,
    /// `cache_purge_again`: each purge is repeated after this time.
    pub purge_again: Option<Duration>,
    /// `cache_purge_log`
    pub purge_log: Option<PurgeLog>,
    /// Some value reads `$upstream_cache_last_modified`.
    pub uses_cache_last_modified: bool,
    /// Some value reads `$upstream_http_*` or `$upstream_cookie_*`, or may: the fields of
    /// upstreams' responses must be kept.
    pub uses_upstream_fields: bool,
    /// Some value reads `$request_body_file`: bodies in files have names.
    pub uses_request_body_file: bool,
}

impl Http {
    /// The variable of a name that is known only at run time, as in SSI.
    pub fn variable(&self, written: &str) -> Option<Variable> {
        let name = written.to_ascii_lowercase();
        let made = self.made_variables.get(&name).cloned();
        let slot = self.slots.iter().position(|slot| *slot == name).map(SlotId);
        Variable::named(written, made, slot)
    }
}
