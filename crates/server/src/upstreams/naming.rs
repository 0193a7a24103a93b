//! Names of upstreams that are looked up while serving: those that variables
//! make, one request at a time ([`Lookup`]), and those of `server NAME resolve`,
//! followed for as long as the configuration is in force ([`Followed`]).
//!
//! What was found last survives a reload, so that a group whose name servers
//! are silent keeps its servers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dns::{Fault, ResolveError, Resolver, ResolverSpec};
use parking_lot::Mutex;
use site::{
    LogLevel, NameResolution, ResolverSettings, Site, UpstreamEndpoint, UpstreamName,
    UpstreamServer,
};
use upstream::{Endpoint, Group, ServerSpec};

use crate::base::{clock, random};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::error_log;

/// Between two questions about a followed name at least, whatever its TTL.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// SRV records of one name that are followed; each is a question of its own.
const MAX_SERVICES: usize = 100;

/// The resolvers of a configuration, and what they last said of followed names.
pub struct Names {
    resolvers: Vec<Arc<Resolver>>,
    answers: Arc<Answers>,
}

/// What was found under each followed name, by its host and service.
type Answers = Mutex<HashMap<(String, Option<String>), Vec<Found>>>;

/// One server that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    address: IpAddr,
    /// What its SRV record says.
    service: Option<SrvTarget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SrvTarget {
    port: u16,
    weight: u16,
    /// Among the records of the best priority?
    is_first: bool,
}

impl Names {
    /// Resolvers that stay the same keep what they know.
    pub fn new(site: &Site, previous: Option<&Names>) -> Names {
        let mut left: Vec<Arc<Resolver>> =
            previous.map_or_else(Vec::new, |names| names.resolvers.clone());
        let resolvers = site.http.resolvers.iter().map(|settings| {
            let spec = resolver_spec(settings);
            match left.iter().position(|old| *old.spec() == spec) {
                Some(index) => left.remove(index),
                None => Resolver::new(spec),
            }
        });
        let resolvers = resolvers.collect();
        let answers = previous.map_or_else(HashMap::new, |names| names.answers.lock().clone());
        Names {
            resolvers,
            answers: Arc::new(Mutex::new(answers)),
        }
    }

    fn resolver(&self, names: &NameResolution) -> Option<Arc<Resolver>> {
        let id = names.resolver?;
        self.resolvers.get(id.0).cloned()
    }

    /// How to look `host` up for one request.
    ///
    /// # Errors
    /// No `resolver` is there to ask.
    pub fn lookup(
        &self,
        host: &str,
        port: u16,
        names: &NameResolution,
    ) -> Result<Lookup, NoResolver> {
        let resolver = self.resolver(names).ok_or_else(|| NoResolver {
            host: host.to_owned(),
        })?;
        Ok(Lookup {
            host: host.to_owned(),
            port,
            resolver,
            deadline: names.timeout,
        })
    }

    /// The names that `groups` follow.
    pub fn followed(&self, site: &Site, groups: &[Arc<Group>]) -> Vec<Followed> {
        let mut followed = Vec::new();
        for (model, group) in site.http.groups.iter().zip(groups) {
            let Some(resolver) = self.resolver(&model.names) else {
                continue;
            };
            for (source, server) in model.servers.iter().enumerate() {
                if let UpstreamEndpoint::Name(name) = &server.endpoint {
                    followed.push(Followed {
                        group: group.clone(),
                        source,
                        name: name.clone(),
                        server: server.clone(),
                        resolver: resolver.clone(),
                        deadline: model.names.timeout,
                        answers: self.answers.clone(),
                    });
                }
            }
        }
        followed
    }
}

fn resolver_spec(settings: &ResolverSettings) -> ResolverSpec {
    ResolverSpec {
        valid: settings.valid,
        ipv4: settings.ipv4,
        ipv6: settings.ipv6,
        ..ResolverSpec::new(settings.servers.clone())
    }
}

/// A name that only a `resolver` could look up.
#[derive(Debug)]
pub struct NoResolver {
    host: String,
}

impl std::fmt::Display for NoResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no resolver defined to resolve {}", self.host)
    }
}

/// A name to be looked up for one request.
#[derive(Debug)]
pub struct Lookup {
    host: String,
    port: u16,
    resolver: Arc<Resolver>,
    deadline: Duration,
}

impl Lookup {
    /// Makes the name's addresses the servers of `group`, which was made for
    /// this request. Each request begins with another address.
    pub async fn fill(self, group: &Arc<Group>) -> Result<(), ResolveError> {
        let now = clock::now();
        let found = self
            .resolver
            .resolve(&self.host, self.deadline, now)
            .await?;
        let [turn, ..] = random::bytes16();
        let name = format!("{}:{}", self.host, self.port);
        let servers = rotated(&found.addresses, usize::from(turn)).map(|address| ServerSpec {
            name: name.clone(),
            ..ServerSpec::new(Endpoint::Tcp(SocketAddr::new(address, self.port)))
        });
        group.set_resolved(0, servers.collect(), now);
        Ok(())
    }
}

/// IPv4 before IPv6, each kind begun at its `turn`.
fn rotated(addresses: &[IpAddr], turn: usize) -> impl Iterator<Item = IpAddr> {
    let of_kind = |is_ipv4: bool| {
        let mut kind: Vec<IpAddr> = addresses.to_vec();
        kind.retain(|address| address.is_ipv4() == is_ipv4);
        if !kind.is_empty() {
            let start = turn % kind.len();
            kind.rotate_left(start);
        }
        kind
    };
    of_kind(true).into_iter().chain(of_kind(false))
}

/// A `server NAME resolve` line at work.
pub struct Followed {
    group: Arc<Group>,
    /// The line's place in its group.
    source: usize,
    name: UpstreamName,
    server: UpstreamServer,
    resolver: Arc<Resolver>,
    deadline: Duration,
    answers: Arc<Answers>,
}

impl Followed {
    /// Puts what was found before a reload into a group that is new.
    pub fn recall(&self) {
        let known = self.answers.lock().get(&self.key()).cloned();
        if let Some(found) = known {
            self.apply(&found);
        }
    }

    /// Looks the name up again and again. Ends when it is dropped.
    pub async fn follow(self, configuration: Weak<ActiveConfiguration>) {
        loop {
            let began = clock::now();
            let pause = match self.find(began).await {
                Ok((found, valid_until)) => {
                    self.apply(&found);
                    self.answers.lock().insert(self.key(), found);
                    Duration::from_millis(valid_until.saturating_sub(clock::now()))
                }
                Err(error) => {
                    if let Some(configuration) = configuration.upgrade() {
                        let logs = &configuration.site.process.error_logs;
                        let message = format_args!("{error}");
                        let context = format!(", upstream: \"{}\"", self.group.name());
                        error_log::write(
                            &configuration,
                            logs,
                            LogLevel::Error,
                            0,
                            message,
                            &context,
                        );
                    }
                    // The name is gone: so are its servers. Any other failure
                    // says nothing about them.
                    if error.fault == Fault::HostNotFound {
                        self.apply(&[]);
                        self.answers.lock().remove(&self.key());
                    }
                    self.deadline
                }
            };
            tokio::time::sleep(pause.max(LEAST_PAUSE)).await;
        }
    }

    fn key(&self) -> (String, Option<String>) {
        (self.name.host.clone(), self.name.service.clone())
    }

    async fn find(&self, now: u64) -> Result<(Vec<Found>, u64), ResolveError> {
        let Some(service) = &self.name.service else {
            let host = &self.name.host;
            let answer = self.resolver.resolve(host, self.deadline, now).await?;
            let found = answer.addresses.iter().map(|address| Found {
                address: *address,
                service: None,
            });
            return Ok((found.collect(), answer.valid_until));
        };
        let answer = self.resolver.services(service, self.deadline, now).await?;
        let best = answer.services.iter().map(|it| it.priority).min();
        let mut valid_until = answer.valid_until;
        let mut found = Vec::new();
        for record in answer.services.iter().take(MAX_SERVICES) {
            let target = &record.target;
            let addresses = match self.resolver.resolve(target, self.deadline, now).await {
                Ok(addresses) => addresses,
                // One machine less; the others are there.
                Err(error) if error.fault == Fault::HostNotFound => continue,
                Err(error) => return Err(error),
            };
            valid_until = valid_until.min(addresses.valid_until);
            found.extend(addresses.addresses.iter().map(|address| Found {
                address: *address,
                service: Some(SrvTarget {
                    port: record.port,
                    weight: record.weight,
                    is_first: Some(record.priority) == best,
                }),
            }));
        }
        Ok((found, valid_until))
    }

    fn apply(&self, found: &[Found]) {
        let servers = found.iter().filter_map(|found| self.server_spec(found));
        let servers = servers.collect();
        self.group.set_resolved(self.source, servers, clock::now());
    }

    /// SRV records beyond the best priority are backups; where the line itself
    /// is one, they are nothing.
    fn server_spec(&self, found: &Found) -> Option<ServerSpec> {
        let line = &self.server;
        let is_first = found.service.is_none_or(|srv| srv.is_first);
        if line.backup && !is_first {
            return None;
        }
        let port = found.service.map_or(self.name.port, |srv| srv.port);
        let weight = match found.service {
            Some(srv) if srv.weight > 0 => u32::from(srv.weight),
            _ => line.weight,
        };
        Some(ServerSpec {
            name: line.name.clone(),
            weight,
            backup: line.backup || !is_first,
            ..plain_spec(line, Endpoint::Tcp(SocketAddr::new(found.address, port)))
        })
    }
}

/// A server line's parameters for one address.
pub fn plain_spec(line: &UpstreamServer, endpoint: Endpoint) -> ServerSpec {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_begins_with_another_address_of_each_kind() {
        let text = ["10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.3"];
        let addresses = text.map(|it| it.parse().unwrap());
        let shown = |turn| {
            let turned = rotated(&addresses, turn);
            turned
                .map(|it| it.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(shown(0), "10.0.0.1 10.0.0.2 10.0.0.3 fd00::1");
        assert_eq!(shown(5), "10.0.0.3 10.0.0.1 10.0.0.2 fd00::1");
        assert_eq!(rotated(&[], 5).count(), 0);
    }
}
