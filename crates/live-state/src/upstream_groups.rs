//! The upstream groups of a configuration: those it names, and those that variables lead
//! to while it serves.

use std::collections::HashMap;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fair_queue::Concurrency;
use parking_lot::Mutex;
use site::{
    BalanceMethod, GroupId, PhpConcurrency, Site, Template, Turns, UpstreamEndpoint, UpstreamGroup,
    UpstreamServer,
};
use upstream::{
    Endpoint, Group, GroupSpec, Keepalive, Method, QueueSpec, ServerSpec, SpecError, TurnsSpec,
};

use crate::build_error::BuildError;
use crate::client_table::ClientTable;
use crate::connectors::mixed_groups;
use crate::crawler_checks::CrawlerChecks;
use crate::learned_pools::LearnedPools;
use crate::registry::Registry;

/// Groups made at run time for addresses that come from variables.
const MAX_DYNAMIC_GROUPS: usize = 1000;
/// Requests that wait for a pool of our own or in turns, unless a `queue` sets another number.
const OWN_POOL_QUEUE: usize = 10_000;
/// How long they wait: longer than any crowd should, shorter than browsers do.
const OWN_POOL_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// A PHP pool of our own, as far as the server needs to know it.
#[derive(Debug, Clone)]
pub struct PoolAddress {
    pub socket: PathBuf,
    pub workers: usize,
}

/// A group, with the settings of the configuration in force for its use.
pub struct GroupHandle {
    pub group: Arc<Group>,
    /// The key of a group that balances by `hash`.
    pub hash_key: Option<Template>,
    /// Its servers are PHP pools that we run ourselves.
    pub is_own_pool: bool,
    /// It is spoken to in more than one way: its connections are not alike, and none is
    /// kept.
    pub is_mixed: bool,
}

impl GroupHandle {
    /// Makes the handle of a group that the configuration does not name.
    pub fn unnamed(group: Arc<Group>) -> Arc<GroupHandle> {
        Arc::new(GroupHandle {
            group,
            hash_key: None,
            is_own_pool: false,
            is_mixed: false,
        })
    }

    fn new(group: &Arc<Group>, model: &UpstreamGroup, is_mixed: bool) -> Arc<GroupHandle> {
        let is_pool =
            |server: &UpstreamServer| matches!(server.endpoint, UpstreamEndpoint::PhpPool(_));
        Arc::new(GroupHandle {
            group: group.clone(),
            hash_key: match &model.method {
                BalanceMethod::Hash { key, .. } => Some(key.clone()),
                _ => None,
            },
            is_own_pool: model.servers.iter().any(is_pool),
            is_mixed,
        })
    }
}

/// The identity of a group. Groups whose servers come from names also differ by the written names,
/// which the group itself does not know.
#[derive(PartialEq)]
struct Spec {
    group: GroupSpec,
    names: Vec<UpstreamServer>,
}

/// All groups, in the order of the configuration.
pub struct UpstreamGroups {
    registry: Registry<Spec, Arc<Group>>,
    handles: Vec<Arc<GroupHandle>>,
    by_name: HashMap<String, GroupId>,
    dynamic: Mutex<HashMap<String, Arc<GroupHandle>>>,
    /// The pools whose pages are learned; `None` if there are none.
    learned: Option<LearnedPools>,
    /// `None` if no group distinguishes turns.
    clients: Option<Arc<ClientTable>>,
    /// Likewise.
    crawler_checks: Option<Arc<CrawlerChecks>>,
}

impl UpstreamGroups {
    /// The groups of `site`; `pools` are its PHP pools by name, `learning` the sockets by which those
    /// whose pages are learned are heard.
    ///
    /// # Errors
    /// A group is impossible.
    pub fn build(
        site: &Site,
        (pools, learning): (&HashMap<String, PoolAddress>, HashMap<String, OwnedFd>),
        previous: Option<&UpstreamGroups>,
    ) -> Result<UpstreamGroups, BuildError> {
        let models = &site.http.groups;
        let mut wanted = Vec::with_capacity(models.len());
        for model in models {
            let spec = group_spec(model, pools)?;
            let make = {
                let spec = spec.clone();
                move || {
                    let name = spec.name.clone();
                    Group::new(spec).map_err(|error| BuildError::Group {
                        name,
                        reason: error.to_string(),
                    })
                }
            };
            let names = match spec.is_dynamic {
                true => model.servers.clone(),
                false => Vec::new(),
            };
            wanted.push((Spec { group: spec, names }, make));
        }
        let registry = Registry::try_renew(previous.map(|groups| &groups.registry), wanted)?;
        let mixed = mixed_groups(site);
        let handles = registry.iter().zip(models).enumerate();
        let handles = handles
            .map(|(at, (group, model))| {
                GroupHandle::new(group, model, mixed.contains(&GroupId(at)))
            })
            .collect();
        let mut by_name = HashMap::new();
        for (at, model) in models.iter().enumerate() {
            by_name.entry(model.name.clone()).or_insert(GroupId(at));
        }
        let before = previous.and_then(|groups| groups.clients.as_ref());
        let clients = ClientTable::renew(&registry, before);
        let before = previous.and_then(|groups| groups.crawler_checks.as_ref());
        let renew_checks = |_: &_| CrawlerChecks::renew(site, before);
        Ok(UpstreamGroups {
            registry,
            crawler_checks: clients.as_ref().map(renew_checks),
            clients,
            handles,
            by_name,
            dynamic: Mutex::default(),
            learned: LearnedPools::build(
                site,
                learning,
                previous.and_then(|groups| groups.learned.as_ref()),
            )?,
        })
    }

    /// The pools whose pages are learned, if there are any.
    pub fn learned(&self) -> Option<&LearnedPools> {
        self.learned.as_ref()
    }

    /// Returns the table of clients, if a group distinguishes their turns.
    pub fn clients(&self) -> Option<&Arc<ClientTable>> {
        self.clients.as_ref()
    }

    /// Returns the checks of crawlers' names, if a group distinguishes turns.
    pub fn crawler_checks(&self) -> Option<&Arc<CrawlerChecks>> {
        self.crawler_checks.as_ref()
    }

    /// The groups alone.
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.registry
    }

    /// The group that the configuration calls `name`.
    pub fn named(&self, name: &str) -> Option<&Arc<GroupHandle>> {
        self.by_name.get(name).map(|id| &self.handles[id.0])
    }

    /// A group for the address that `name` is: made when it is first asked for.
    ///
    /// # Errors
    /// The group is impossible.
    pub fn at_address(
        &self,
        name: &str,
        endpoint: Endpoint,
    ) -> Result<Arc<GroupHandle>, SpecError> {
        let mut dynamic = self.dynamic.lock();
        if let Some(handle) = dynamic.get(name) {
            return Ok(handle.clone());
        }
        let handle = GroupHandle::unnamed(Group::new(GroupSpec::single(name, endpoint))?);
        if dynamic.len() >= MAX_DYNAMIC_GROUPS {
            dynamic.clear();
        }
        dynamic.insert(name.to_owned(), handle.clone());
        Ok(handle)
    }
}

impl Deref for UpstreamGroups {
    /// By [`GroupId`].
    type Target = [Arc<GroupHandle>];

    #[inline]
    fn deref(&self) -> &[Arc<GroupHandle>] {
        &self.handles
    }
}

/// A server line's parameters for one address.
pub fn server_spec(line: &UpstreamServer, endpoint: Endpoint) -> ServerSpec {
    ServerSpec {
        endpoint,
        name: line.name.clone(),
        weight: line.weight,
        max_conns: line.max_conns,
        max_fails: line.max_fails,
        fail_timeout: line.fail_timeout,
        slow_start: line.slow_start,
        backup: line.backup,
        down: line.down,
    }
}

fn turns_spec(turns: &Turns) -> Option<TurnsSpec> {
    let concurrency = match turns.concurrency {
        PhpConcurrency::Off => return None,
        PhpConcurrency::Number(number) => Concurrency::Fixed(number),
        PhpConcurrency::Auto => Concurrency::Auto {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        },
    };
    Some(TurnsSpec {
        concurrency,
        crawler_share: turns.crawler_share,
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
            ..server_spec(server, endpoint)
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
        // A pool of our own may keep a connection for each of its workers: no other client uses
        // them.
        None if own_workers > 0 => Some(Keepalive {
            idle_counts: true,
            ..Keepalive::new(own_workers)
        }),
        None => None,
    };
    let turns = group.turns.as_ref().and_then(turns_spec);
    let queue = match &group.queue {
        Some(queue) => Some(QueueSpec {
            length: queue.length,
            timeout: queue.timeout,
        }),
        None if own_workers > 0 || turns.is_some() => Some(QueueSpec {
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
        turns,
        is_dynamic: group
            .servers
            .iter()
            .any(|server| matches!(server.endpoint, UpstreamEndpoint::Name(_))),
    })
}
