//! A site ready to serve: the configuration with everything that lives as long
//! as it is in force, or longer. A reload builds a new one and swaps a pointer;
//! what has the same name and shape (cache zones, limits, groups) is carried
//! over, so that nothing stored is lost.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_cache::{GroupLimits, Zone, ZoneConfig};
use parking_lot::Mutex;
use site::{
    BalanceMethod, CacheZone, Content, InFileOnly, NameResolution, Site, Template,
    UpstreamEndpoint, UpstreamGroup,
};
use upstream::{Endpoint, Group, GroupSpec, Keepalive, Method, QueueSpec, ServerSpec, SpecError};

use crate::access::{limit_conn, limit_req};
use crate::base::memory_limit::MemoryLimit;
use crate::exchange::compiled_location::CompiledLocations;
use crate::log::{access_log, error_log};
use crate::stats::Stats;
use crate::transport::body;
use crate::upstreams::health;
use crate::upstreams::naming::{Lookup, Names, NoResolver, plain_spec};
use crate::upstreams::upstream_tls;

/// Groups made at run time for addresses that come from variables.
const MAX_DYNAMIC_GROUPS: usize = 1000;
/// Requests that wait for a pool of our own, unless a `queue` says otherwise.
const OWN_POOL_QUEUE: usize = 10_000;
/// How long they wait: longer than any crowd should, shorter than browsers do.
const OWN_POOL_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Smallest share of memory a zone gets without `memory=`.
const LEAST_ZONE_BYTES: u64 = 8 << 20;

/// A configuration in force.
pub struct ActiveConfiguration {
    /// Another for each one built.
    pub serial: u64,
    pub site: Site,
    pub locations: CompiledLocations,
    pub zones: Vec<Arc<Zone>>,
    pub groups: Vec<Arc<Group>>,
    group_specs: Vec<GroupSpec>,
    pub names: Names,
    dynamic_groups: Mutex<HashMap<String, Arc<Group>>>,
    pub limit_req: Vec<Arc<limit_req::Zone>>,
    pub limit_conn: Vec<Arc<limit_conn::Zone>>,
    pub error_logs: error_log::Registry,
    pub access_logs: access_log::Registry,
    /// Made from the site's `charset_map` tables.
    pub charsets: crate::respond::charset::Conversions,
    pub hostname: String,
    pub stats: Arc<Stats>,
    /// By [`site::TlsId`].
    pub connectors: Vec<tls_client::Connector>,
    /// Groups whose kept connections would not be alike.
    pub mixed_groups: std::collections::HashSet<site::GroupId>,
}

/// A PHP pool of our own, as far as the server needs to know it.
#[derive(Debug, Clone)]
pub struct PoolAddress {
    pub socket: PathBuf,
    pub workers: usize,
}

/// What a configuration is made from beside the site.
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

/// A text that a variable made and that leads nowhere.
#[derive(Debug)]
pub enum NameError {
    NoPort,
    NoHost,
    NoResolver(NoResolver),
    Group(SpecError),
}

impl NameError {
    /// What the client is told.
    pub fn status(&self) -> u16 {
        match self {
            NameError::NoResolver(_) => 502,
            _ => 500,
        }
    }
}

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NameError::NoPort => f.write_str("no port in upstream"),
            NameError::NoHost => f.write_str("no host in upstream"),
            NameError::NoResolver(error) => error.fmt(f),
            NameError::Group(error) => error.fmt(f),
        }
    }
}

impl ActiveConfiguration {
    /// Makes a site ready, carrying over from `previous` what stays the same.
    pub fn build(
        site: Site,
        resources: Resources,
        previous: Option<&ActiveConfiguration>,
    ) -> Result<Arc<ActiveConfiguration>, BuildError> {
        let http = &site.http;
        let default_memory = DefaultMemory::of(&site);
        let zones = http
            .cache_zones
            .iter()
            .map(|zone| cache_zone(zone, &site, default_memory.as_ref(), previous))
            .collect();
        let mut groups = Vec::with_capacity(http.groups.len());
        let mut group_specs = Vec::with_capacity(http.groups.len());
        for group in &http.groups {
            let spec = group_spec(group, &resources.pools)?;
            let kept = previous.and_then(|previous| {
                let groups = previous.group_specs.iter().zip(&previous.site.http.groups);
                let is_same = |(old, model): (&GroupSpec, &UpstreamGroup)| {
                    *old == spec && (!spec.is_dynamic || model.servers == group.servers)
                };
                let index = groups.into_iter().position(is_same)?;
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
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let names = Names::new(&site, previous.map(|previous| &previous.names));
        for followed in names.followed(&site, &groups) {
            followed.recall();
        }
        if previous.is_none() {
            sweep_bodies(&site);
        }
        // Last: from here on nothing fails, and the groups may serve already.
        let former = previous.map_or(&[][..], |previous| &previous.groups);
        health::watch(&site, &groups, former);
        Ok(Arc::new(ActiveConfiguration {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            locations: CompiledLocations::of(&site),
            names,
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
            charsets: crate::respond::charset::Conversions::new(&site.http.charset_maps),
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

    /// The group called `name`, or one for the address that `name` is, or one
    /// whose servers are still to be looked up.
    pub fn group_named(
        &self,
        name: &str,
        names: &NameResolution,
    ) -> Result<(Arc<Group>, Option<Lookup>), NameError> {
        if let Some(index) = self
            .site
            .http
            .groups
            .iter()
            .position(|group| group.name == name)
        {
            return Ok((self.groups[index].clone(), None));
        }
        let endpoint = match name.strip_prefix("unix:") {
            Some(path) => Endpoint::Unix(path.trim_end_matches(':').into()),
            None => match name.parse() {
                Ok(address) => Endpoint::Tcp(address),
                Err(_) => return self.group_to_look_up(name, names),
            },
        };
        let mut dynamic = self.dynamic_groups.lock();
        if let Some(group) = dynamic.get(name) {
            return Ok((group.clone(), None));
        }
        let spec = GroupSpec::single(name, endpoint);
        let group = Group::new(spec).map_err(NameError::Group)?;
        if dynamic.len() >= MAX_DYNAMIC_GROUPS {
            dynamic.clear();
        }
        dynamic.insert(name.to_owned(), group.clone());
        Ok((group, None))
    }

    /// A group for one request, whose servers are found by its name.
    fn group_to_look_up(
        &self,
        name: &str,
        names: &NameResolution,
    ) -> Result<(Arc<Group>, Option<Lookup>), NameError> {
        let (host, port) = name.rsplit_once(':').ok_or(NameError::NoPort)?;
        let port = port.parse().map_err(|_| NameError::NoPort)?;
        if host.is_empty() {
            return Err(NameError::NoHost);
        }
        let lookup = self
            .names
            .lookup(host, port, names)
            .map_err(NameError::NoResolver)?;
        let spec = GroupSpec {
            servers: Vec::new(),
            is_dynamic: true,
            ..GroupSpec::single(name, Endpoint::Unix(PathBuf::new()))
        };
        let group = Group::new(spec).map_err(NameError::Group)?;
        Ok((group, Some(lookup)))
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
    default_memory: Option<&DefaultMemory>,
    previous: Option<&ActiveConfiguration>,
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
            .or(default_memory.map(|memory| memory.bytes_each))
            .unwrap_or(LEAST_ZONE_BYTES),
        inactive: zone.inactive,
        group_limits: private_limits(site),
        ..ZoneConfig::default()
    })
}

/// Removes what an earlier process has left of clients' bodies.
fn sweep_bodies(site: &Site) {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let cleaned = locations
        .map(|location| &location.settings.body)
        .filter(|body| body.in_file_only == InFileOnly::Clean)
        .map(|body| &body.temp_path);
    for folder in cleaned.collect::<BTreeSet<_>>() {
        body::sweep(folder);
    }
}

/// What the zones that name no size may take: together a quarter of the memory there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultMemory {
    pub zones: usize,
    pub bytes_each: u64,
    /// `None` where the system does not tell.
    pub limit: Option<MemoryLimit>,
}

/// Taken for what there is where the system does not tell.
const ASSUMED_BYTES: u64 = 1 << 30;

impl DefaultMemory {
    /// For the zones of `site`; `None` where each names its size.
    pub fn of(site: &Site) -> Option<DefaultMemory> {
        let zones = &site.http.cache_zones;
        let zones = zones
            .iter()
            .filter(|zone| zone.memory_bytes.is_none())
            .count();
        let share = u64::try_from(zones).unwrap_or(u64::MAX);
        let limit = MemoryLimit::observe();
        let available = limit.as_ref().map_or(ASSUMED_BYTES, |limit| limit.bytes);
        (zones > 0).then(|| DefaultMemory {
            zones,
            bytes_each: (available / 4 / share).max(LEAST_ZONE_BYTES),
            limit,
        })
    }
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
        let endpoint = match &server.endpoint {
            UpstreamEndpoint::Tcp(address) => Endpoint::Tcp(*address),
            UpstreamEndpoint::Unix(path) => Endpoint::Unix(path.clone()),
            // Found at run time.
            UpstreamEndpoint::Name(_) => continue,
            UpstreamEndpoint::PhpPool(name) => {
                let pool = pools.get(name).ok_or_else(|| BuildError::Group {
                    name: group.name.clone(),
                    reason: format!("no php_pool \"{name}\" is running"),
                })?;
                if max_conns == 0 {
                    max_conns = pool.workers;
                }
                own_workers += pool.workers;
                Endpoint::Unix(pool.socket.clone())
            }
        };
        servers.push(ServerSpec {
            max_conns,
            ..plain_spec(server, endpoint)
        });
    }
    let keepalive = match &group.keepalive {
        Some(keepalive) if keepalive.connections == 0 => None,
        Some(keepalive) => Some(Keepalive {
            requests: u32::try_from(keepalive.requests).unwrap_or(u32::MAX),
            time: keepalive.time,
            timeout: keepalive.timeout,
            local: keepalive.local,
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
        is_dynamic: group
            .servers
            .iter()
            .any(|server| matches!(server.endpoint, UpstreamEndpoint::Name(_))),
    })
}
