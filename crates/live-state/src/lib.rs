//! State that outlives a configuration: stored responses, upstream groups, the counts of limits, open log files,
//! statistics. A reload takes all of it over by one rule ([`registry::Registry`]): a part that is configured in the
//! same terms stays the same.
//!
//! Nothing here knows a request. Users of a zone or a group ask the configuration in force for it.

pub mod acme_answers;
pub mod acme_nodes;
pub mod applied_log;
mod build_error;
pub mod cache_zones;
pub mod client_table;
pub mod connectors;
pub mod crawler_checks;
pub mod disk_pages;
pub mod error_log;
pub mod evidence;
pub mod handshake_certificates;
mod kept_certificates;
mod learned_on_nodes;
pub mod learned_pools;
pub mod limit_conn;
pub mod limit_req;
pub mod log_sinks;
mod named_files;
pub mod names;
mod node_writes;
pub mod nodes;
mod php_identity;
pub mod quic_keys;
pub mod registry;
pub mod repeats;
pub mod server_tls;
pub mod shared_pages;
pub mod sibling;
pub mod stats;
pub mod tls_files;
pub mod traces;
pub mod upstream_groups;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use http_cache::Zone;
use site::{CacheZone, ErrorLog, LogLevel, Site, Template};

use acme_answers::AcmeAnswers;
use applied_log::AppliedLog;
pub use build_error::BuildError;
use cache_zones::AliveZones;
use error_log::ErrorLogs;
use log_sinks::LogSinks;
use names::Names;
use nodes::Nodes;
use registry::Registry;
use repeats::Repeats;
use server_tls::TlsResumption;
use sibling::Sibling;
use stats::Stats;
use tls_files::TlsFiles;
use traces::Traces;
use upstream_groups::{PoolAddress, UpstreamGroups};

/// The inputs of a configuration beside the site.
#[derive(Default)]
pub struct Resources {
    pub log_sinks: LogSinks,
    /// By name.
    pub pools: HashMap<String, PoolAddress>,
    /// The sockets to which libraries in PHP connect, by the names of their pools.
    pub learning: HashMap<String, OwnedFd>,
    pub tls_files: TlsFiles,
    /// Zones open their folders on disk; otherwise the configuration is only tested.
    pub keeps_on_disk: bool,
}

/// The identity of a `limit_req_zone`: its size may change.
#[derive(PartialEq)]
pub struct LimitReqSpec {
    name: String,
    key: Template,
    rate_per_1000s: u64,
}

/// The identity of a `limit_conn_zone`: its size may change.
#[derive(PartialEq)]
pub struct LimitConnSpec {
    name: String,
    key: Template,
}

/// The live state of a configuration: handles of its own, and of those before it.
pub struct LiveState {
    /// By [`site::CacheZoneId`].
    pub zones: Registry<CacheZone, Arc<Zone>>,
    /// The zones above, and those of earlier configurations whose requests are not over.
    pub alive_zones: Arc<AliveZones>,
    pub groups: UpstreamGroups,
    pub limit_req: Registry<LimitReqSpec, Arc<limit_req::Zone>>,
    pub limit_conn: Registry<LimitConnSpec, Arc<limit_conn::Zone>>,
    pub names: Names,
    /// The keys of tickets and the sessions of clients.
    pub tls_resumption: TlsResumption,
    /// The answers for issuers of certificates.
    pub acme_answers: Arc<AcmeAnswers>,
    /// The files of error logs and access logs.
    pub log_sinks: Arc<LogSinks>,
    pub error_logs: Arc<ErrorLogs>,
    pub stats: Arc<Stats>,
    /// Another process that serves the same site for a while.
    pub sibling: Arc<Sibling>,
    /// Other machines that share purges.
    pub nodes: Option<Arc<Nodes>>,
    /// The requests that applications want repeated.
    pub repeats: Arc<Repeats>,
    /// The exporter of traces.
    pub traces: Option<Arc<Traces>>,
}

impl LiveState {
    /// Builds the state for `site`; the parts that `site` has in common with the configuration of `previous` are taken
    /// over.
    ///
    /// # Errors
    /// An upstream group is impossible, or a certificate cannot be read.
    pub fn build(
        site: &Site,
        resources: Resources,
        previous: Option<&LiveState>,
    ) -> Result<LiveState, BuildError> {
        let http = &site.http;
        let log_sinks = Arc::new(resources.log_sinks);
        let limit_req = http.limit_req_zones.iter().map(|zone| {
            let spec = LimitReqSpec {
                name: zone.name.clone(),
                key: zone.key.clone(),
                rate_per_1000s: zone.rate_per_1000s,
            };
            (spec, || Arc::new(limit_req::Zone::new(zone)))
        });
        let limit_conn = http.limit_conn_zones.iter().map(|zone| {
            let spec = LimitConnSpec {
                name: zone.name.clone(),
                key: zone.key.clone(),
            };
            (spec, || Arc::new(limit_conn::Zone::new(zone)))
        });
        let before = previous.map(|live| &live.zones);
        let zones = cache_zones::build(site, before, resources.keeps_on_disk);
        let alive_zones: Arc<AliveZones> =
            previous.map_or_else(Arc::default, |live| live.alive_zones.clone());
        alive_zones.add(&zones);
        let sibling: Arc<Sibling> = previous.map_or_else(Arc::default, |live| live.sibling.clone());
        sibling.watch(&zones);
        let before = previous.and_then(|live| live.nodes.as_ref());
        let acme_answers: Arc<AcmeAnswers> =
            previous.map_or_else(Arc::default, |live| live.acme_answers.clone());
        let nodes = Nodes::build(
            site,
            &resources.tls_files,
            &alive_zones,
            &acme_answers,
            before,
        )?;
        let stats: Arc<Stats> = previous.map_or_else(Arc::default, |live| live.stats.clone());
        Ok(LiveState {
            zones,
            alive_zones,
            groups: UpstreamGroups::build(
                site,
                (&resources.pools, resources.learning),
                previous.map(|live| &live.groups),
            )?,
            limit_req: Registry::renew(previous.map(|live| &live.limit_req), limit_req),
            limit_conn: Registry::renew(previous.map(|live| &live.limit_conn), limit_conn),
            names: Names::build(site, previous.map(|live| &live.names)),
            tls_resumption: TlsResumption::renew(site, previous.map(|live| &live.tls_resumption)),
            acme_answers,
            sibling,
            nodes,
            repeats: previous.map_or_else(Arc::default, |live| live.repeats.clone()),
            error_logs: Arc::new(ErrorLogs::new(log_sinks.clone(), stats.clone())),
            log_sinks,
            traces: Traces::build(
                site,
                &resources.tls_files,
                &stats.spans,
                previous.and_then(|live| live.traces.as_ref()),
            )?,
            stats,
        })
    }

    /// Opens the folders that zones keep pages in. Blocks: the purges of earlier starts have to be known before
    /// the first request. Call it again, and those are tried that another process had.
    pub fn open_disk_pages(&self, logs: &[ErrorLog]) {
        let node = self.nodes.as_ref().and_then(|nodes| nodes.began_with());
        for (level, line) in disk_pages::open_all(&self.zones, &self.alive_zones.zones(), &node) {
            let message = format_args!("{line}");
            self.error_logs.write(logs, level, 0, message, "");
        }
    }

    /// Begins to share purges with other machines, or ends that. Call it when folders are open. `applied` is the
    /// position up to which their purges are applied to pages that another process has handed over.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn begin_nodes(
        &self,
        applied: Option<AppliedLog>,
        logs: &[ErrorLog],
    ) -> std::io::Result<()> {
        let zones = self.alive_zones.zones();
        nodes::attach(self.nodes.as_ref(), &zones);
        if let Some(learned) = self.groups.learned() {
            learned_on_nodes::share(self.nodes.as_ref(), learned.learning());
        }
        match &self.nodes {
            Some(nodes) => {
                let applied = disk_pages::applied_to_stored(&zones, applied);
                nodes.begin(&zones, applied, &self.error_logs, logs)
            }
            None => Ok(()),
        }
    }

    /// Leaves the other machines: nothing that is stored is used any more.
    pub fn leave_nodes(&self) {
        if let Some(nodes) = &self.nodes {
            nodes.leave();
        }
    }

    /// Writes pages that only memory has, for a bounded time, and closes the folders. Blocks.
    pub fn close_disk_pages(&self, logs: &[ErrorLog]) {
        let now = http_cache::Millis(clock::now());
        for line in disk_pages::close_all(&self.zones, now) {
            let message = format_args!("{line}");
            self.error_logs
                .write(logs, LogLevel::Notice, 0, message, "");
        }
    }

    /// Logs events of the zones' folders.
    pub fn log_disk_events(&self, logs: &[ErrorLog]) {
        disk_pages::log_events(&self.zones, logs, &self.error_logs);
    }

    /// Whether a zone waits for a folder that another process has.
    pub fn waits_for_disk(&self) -> bool {
        disk_pages::is_any_waiting(&self.zones)
    }

    /// Housekeeping, about once a second: removes entries that were not used for a while.
    pub fn sweep(&self, now: u64) -> LiveSweep {
        let mut swept = LiveSweep::default();
        for zone in self.zones.iter() {
            let of_zone = zone.sweep(http_cache::Millis(now), cache_zones::SWEEP_WORK);
            swept.has_removed |= of_zone.removed > 0;
            zone.tell_wanted(http_cache::Millis(now));
            swept.is_left |= zone.stats().responses > 0;
        }
        for handle in self.groups.iter() {
            swept.is_left |= handle.group.sweep(now);
        }
        swept
    }

    /// Frees the memory that tables have grown to beyond their content.
    pub fn shrink(&self) {
        self.zones.iter().for_each(|zone| zone.shrink());
    }
}

/// The result of a round of housekeeping.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveSweep {
    /// Entries are left that a later round will remove.
    pub is_left: bool,
    /// Stored responses were removed.
    pub has_removed: bool,
}
