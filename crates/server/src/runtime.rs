//! A site ready to serve: the configuration with everything that lives as long
//! as it is in force, or longer. A reload builds a new one and swaps a pointer;
//! what has the same name and shape (cache zones, limits, groups) is carried
//! over, so that nothing stored is lost.

use std::collections::HashMap;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_cache::{GroupLimits, Zone, ZoneConfig};
use parking_lot::Mutex;
use site::{BalanceMethod, CacheZone, Content, Site, Template, UpstreamEndpoint, UpstreamGroup};
use upstream::{Endpoint, Group, GroupSpec, Keepalive, Method, QueueSpec, ServerSpec};

use crate::upstream_tls;
use crate::{access_log, error_log, limit_conn, limit_req};

/// Groups made at run time for addresses that come from variables.
const MAX_DYNAMIC_GROUPS: usize = 1000;
/// Requests that wait for a pool of our own, unless a `queue` says otherwise.
const OWN_POOL_QUEUE: usize = 10_000;
/// How long they wait: longer than any crowd should, shorter than browsers do.
const OWN_POOL_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Smallest and largest share of memory a zone gets without `memory=`.
const LEAST_ZONE_BYTES: u64 = 8 << 20;

/// A configuration in force.
pub struct Runtime {
    pub site: Site,
    pub zones: Vec<Arc<Zone>>,
    pub groups: Vec<Arc<Group>>,
    group_specs: Vec<GroupSpec>,
    dynamic_groups: Mutex<HashMap<String, Arc<Group>>>,
    pub limit_req: Vec<Arc<limit_req::Zone>>,
    pub limit_conn: Vec<Arc<limit_conn::Zone>>,
    pub error_logs: error_log::Registry,
    pub access_logs: access_log::Registry,
    /// Made from the site's `charset_map` tables.
    pub charsets: crate::charset::Conversions,
    pub hostname: String,
    pub stats: Arc<Stats>,
    /// By [`site::TlsId`].
    pub connectors: Vec<tls_client::Connector>,
    /// Groups whose kept connections would not be alike.
    pub mixed_groups: std::collections::HashSet<site::GroupId>,
}

/// Counters of the whole server: `stub_status`.
#[derive(Debug, Default)]
pub struct Stats {
    pub accepted: std::sync::atomic::AtomicU64,
    pub handled: std::sync::atomic::AtomicU64,
    pub requests: std::sync::atomic::AtomicU64,
    pub active: std::sync::atomic::AtomicU64,
    pub reading: std::sync::atomic::AtomicU64,
    pub writing: std::sync::atomic::AtomicU64,
    pub waiting: std::sync::atomic::AtomicU64,
}

/// A PHP pool of our own, as far as the server needs to know it.
#[derive(Debug, Clone)]
pub struct PoolAddress {
    pub socket: PathBuf,
    pub workers: usize,
}

/// What a runtime is made from beside the site.
pub struct Resources {
    pub error_logs: error_log::Registry,
    pub access_logs: access_log::Registry,
    /// By name.
    pub pools: HashMap<String, PoolAddress>,
}

/// A site that cannot be served.
#[derive(Debug)]
pub enum BuildError {
    /// An upstream group is impossible.
    Group { name: String, reason: String },
    /// A file of `proxy_ssl_*` cannot be used.
    Tls(String),
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Tls(reason) => f.write_str(reason),
            BuildError::Group { name, reason } => write!(f, "upstream \"{name}\": {reason}"),
        }
    }
}

impl std::error::Error for BuildError {}

impl Runtime {
    /// Makes a site ready, carrying over from `previous` what stays the same.
    pub fn build(
        site: Site,
        resources: Resources,
        previous: Option<&Runtime>,
    ) -> Result<Arc<Runtime>, BuildError> {
        let http = &site.http;
        let unsized_zones = http
            .cache_zones
            .iter()
            .filter(|zone| zone.memory_bytes.is_none())
            .count();
        let zones = http
            .cache_zones
            .iter()
            .map(|zone| cache_zone(zone, &site, unsized_zones, previous))
            .collect();
        let mut groups = Vec::with_capacity(http.groups.len());
        let mut group_specs = Vec::with_capacity(http.groups.len());
        for group in &http.groups {
            let spec = group_spec(group, &resources.pools)?;
            let kept = previous.and_then(|previous| {
                let index = previous.group_specs.iter().position(|old| *old == spec)?;
                Some(previous.groups[index].clone())
            });
            groups.push(match kept {
                Some(group) => group,
                None => Group::new(spec.clone()).map_err(|error| BuildError::Group {
                    name: group.name.clone(),
                    reason: error.to_string(),
                })?,
            });
            group_specs.push(spec);
        }
        let limit_req = http
            .limit_req_zones
            .iter()
            .map(|zone| {
                let same = previous.and_then(|previous| {
                    let zones = &previous.site.http.limit_req_zones;
                    let index = zones.iter().position(|old| {
                        old.name == zone.name
                            && old.key == zone.key
                            && old.rate_per_1000s == zone.rate_per_1000s
                    })?;
                    Some(previous.limit_req[index].clone())
                });
                same.unwrap_or_else(|| Arc::new(limit_req::Zone::new(zone)))
            })
            .collect();
        let limit_conn = http
            .limit_conn_zones
            .iter()
            .map(|zone| {
                let same = previous.and_then(|previous| {
                    let zones = &previous.site.http.limit_conn_zones;
                    let index = zones
                        .iter()
                        .position(|old| old.name == zone.name && old.key == zone.key)?;
                    Some(previous.limit_conn[index].clone())
                });
                same.unwrap_or_else(|| Arc::new(limit_conn::Zone::new(zone)))
            })
            .collect();
        Ok(Arc::new(Runtime {
            zones,
            groups,
            group_specs,
            dynamic_groups: Mutex::default(),
            limit_req,
            limit_conn,
            error_logs: resources.error_logs,
            access_logs: resources.access_logs,
            connectors: site
                .http
                .tls
                .iter()
                .map(upstream_tls::connector)
                .collect::<Result<_, _>>()?,
            mixed_groups: upstream_tls::mixed_groups(&site),
            charsets: crate::charset::Conversions::new(&site.http.charset_maps),
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .to_ascii_lowercase(),
            stats: previous.map_or_else(Arc::default, |previous| previous.stats.clone()),
            site,
        }))
    }

    /// The key template of a group that balances by `hash`.
    pub fn hash_key(&self, group: &Arc<Group>) -> Option<Template> {
        let index = self
            .groups
            .iter()
            .position(|other| Arc::ptr_eq(other, group))?;
        match &self.site.http.groups[index].method {
            BalanceMethod::Hash { key, .. } => Some(key.clone()),
            _ => None,
        }
    }

    /// Are its servers PHP pools that we run ourselves?
    pub fn is_own_pool(&self, group: &Arc<Group>) -> bool {
        let index = self
            .groups
            .iter()
            .position(|other| Arc::ptr_eq(other, group));
        index.is_some_and(|index| {
            self.site.http.groups[index]
                .servers
                .iter()
                .any(|server| matches!(server.endpoint, UpstreamEndpoint::PhpPool(_)))
        })
    }

    /// The group called `name`, or one for the address that `name` is.
    pub fn group_named(&self, name: &str) -> Result<Arc<Group>, io::Error> {
        if let Some(index) = self
            .site
            .http
            .groups
            .iter()
            .position(|group| group.name == name)
        {
            return Ok(self.groups[index].clone());
        }
        let mut dynamic = self.dynamic_groups.lock();
        if let Some(group) = dynamic.get(name) {
            return Ok(group.clone());
        }
        let endpoint = match name.strip_prefix("unix:") {
            Some(path) => Endpoint::Unix(path.trim_end_matches(':').into()),
            None => Endpoint::Tcp(
                name.to_socket_addrs()?
                    .next()
                    .ok_or(io::ErrorKind::NotFound)?,
            ),
        };
        let group = Group::new(GroupSpec::single(name, endpoint)).map_err(io::Error::other)?;
        if dynamic.len() >= MAX_DYNAMIC_GROUPS {
            dynamic.clear();
        }
        dynamic.insert(name.to_owned(), group.clone());
        Ok(group)
    }

    /// Housekeeping, about once a second: what nobody asked for in a while goes.
    pub fn sweep(&self, now: u64) {
        for zone in &self.zones {
            zone.sweep(http_cache::Millis(now), SWEEP_WORK);
        }
        for group in &self.groups {
            group.sweep(now);
        }
    }
}

/// Stored responses looked at in one sweep of a zone: well under a millisecond.
const SWEEP_WORK: usize = 4096;

fn cache_zone(
    zone: &CacheZone,
    site: &Site,
    unsized_zones: usize,
    previous: Option<&Runtime>,
) -> Arc<Zone> {
    if let Some(previous) = previous
        && let Some(index) = previous
            .site
            .http
            .cache_zones
            .iter()
            .position(|old| old == zone)
    {
        return previous.zones[index].clone();
    }
    Zone::new(ZoneConfig {
        name: zone.name.clone(),
        memory_budget_bytes: zone
            .memory_bytes
            .unwrap_or_else(|| default_budget(unsized_zones)),
        inactive: zone.inactive,
        group_limits: private_limits(site),
        ..ZoneConfig::default()
    })
}

/// A quarter of what the machine or the cgroup has, shared by all zones that
/// name no size.
fn default_budget(zones: usize) -> u64 {
    let available = memory_limit().unwrap_or(1 << 30);
    (available / 4 / u64::try_from(zones.max(1)).unwrap_or(1)).max(LEAST_ZONE_BYTES)
}

fn memory_limit() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace()
            .nth(1)?
            .parse::<u64>()
            .ok()?
            .checked_mul(1024)
    });
    let cgroup = read("/sys/fs/cgroup/memory.max")
        .or_else(|| read("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
        .and_then(|text| text.trim().parse::<u64>().ok());
    machine.into_iter().chain(cgroup).min()
}

/// The most generous of all `cache_private` rules.
fn private_limits(site: &Site) -> Option<GroupLimits> {
    let settings = site
        .http
        .servers
        .iter()
        .flat_map(|server| &server.locations);
    settings
        .filter_map(|location| match &location.settings.content {
            Content::Pass(pass) => pass.cache.as_ref()?.private.as_ref(),
            _ => None,
        })
        .map(|private| GroupLimits {
            max_responses: private.copies,
            max_bytes: private.size_bytes,
        })
        .reduce(|one, other| GroupLimits {
            max_responses: one.max_responses.max(other.max_responses),
            max_bytes: one.max_bytes.max(other.max_bytes),
        })
}

fn group_spec(
    group: &UpstreamGroup,
    pools: &HashMap<String, PoolAddress>,
) -> Result<GroupSpec, BuildError> {
    let mut own_workers = 0;
    let mut servers = Vec::with_capacity(group.servers.len());
    for server in &group.servers {
        let mut max_conns = server.max_conns;
        let (endpoint, name) = match &server.endpoint {
            UpstreamEndpoint::Tcp(address) => (Endpoint::Tcp(*address), address.to_string()),
            UpstreamEndpoint::Unix(path) => (
                Endpoint::Unix(path.clone()),
                format!("unix:{}", path.display()),
            ),
            UpstreamEndpoint::PhpPool(name) => {
                let pool = pools.get(name).ok_or_else(|| BuildError::Group {
                    name: group.name.clone(),
                    reason: format!("no php_pool \"{name}\" is running"),
                })?;
                if max_conns == 0 {
                    max_conns = pool.workers;
                }
                own_workers += pool.workers;
                (Endpoint::Unix(pool.socket.clone()), format!("php:{name}"))
            }
        };
        servers.push(ServerSpec {
            endpoint,
            name,
            weight: server.weight,
            max_conns,
            max_fails: server.max_fails,
            fail_timeout: server.fail_timeout,
            backup: server.backup,
            down: server.down,
        });
    }
    let keepalive = match &group.keepalive {
        Some(keepalive) if keepalive.connections == 0 => None,
        Some(keepalive) => Some(Keepalive {
            requests: u32::try_from(keepalive.requests).unwrap_or(u32::MAX),
            time: keepalive.time,
            timeout: keepalive.timeout,
            ..Keepalive::new(keepalive.connections)
        }),
        // A pool of our own may keep a connection for each of its workers: nobody
        // else wants them.
        None if own_workers > 0 => Some(Keepalive {
            idle_counts: true,
            ..Keepalive::new(own_workers)
        }),
        None => None,
    };
    let queue = match &group.queue {
        Some(queue) => Some(QueueSpec {
            length: queue.length,
            timeout: queue.timeout,
        }),
        None if own_workers > 0 => Some(QueueSpec {
            length: OWN_POOL_QUEUE,
            timeout: OWN_POOL_QUEUE_TIMEOUT,
        }),
        None => None,
    };
    Ok(GroupSpec {
        name: group.name.clone(),
        servers,
        method: match &group.method {
            BalanceMethod::RoundRobin => Method::RoundRobin,
            BalanceMethod::LeastConn => Method::LeastConn,
            BalanceMethod::IpHash => Method::IpHash,
            BalanceMethod::Hash { consistent, .. } => Method::Hash {
                consistent: *consistent,
            },
            BalanceMethod::Random { two } => Method::Random { two: *two },
        },
        keepalive,
        queue,
        zone: None,
    })
}
