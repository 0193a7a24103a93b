//! Names of upstreams that are looked up while serving: those that variables
//! make, one request at a time ([`Lookup`]), and those of `server NAME resolve`,
//! followed for as long as the configuration is in force ([`FollowedName`]).
//!
//! The last result survives a reload, so that a group whose name servers are
//! silent keeps its servers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dns::{Fault, ResolveError, Resolver};
use site::{
    ErrorLog, LogLevel, NameResolution, Site, UpstreamEndpoint, UpstreamName, UpstreamServer,
};
use upstream::{Endpoint, Group, GroupSpec, ServerSpec, SpecError};

use live_state::LiveState;
use live_state::error_log::ErrorLogs;
use live_state::names::{NameAnswers, Names, ResolvedServer, SrvTarget};
use live_state::upstream_groups::{GroupHandle, server_spec};
use server_base::random;

/// Between two questions about a followed name at least, whatever its TTL.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// SRV records of one name that are followed; each is a question of its own.
const MAX_SERVICES: usize = 100;

/// A text that a variable made and that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    #[error("no port in upstream")]
    NoPort,
    #[error("no host in upstream")]
    NoHost,
    #[error("{0}")]
    NoResolver(NoResolver),
    #[error("{0}")]
    Group(SpecError),
}

impl NameError {
    /// The status of the answer to the client.
    pub fn status(&self) -> u16 {
        match self {
            NameError::NoResolver(_) => 502,
            _ => 500,
        }
    }
}

/// The group called `name`, or one for the address that `name` is, or one
/// whose servers are still to be looked up.
///
/// # Errors
/// The text leads nowhere.
pub fn group_named(
    live: &LiveState,
    name: &str,
    names: &NameResolution,
) -> Result<(Arc<GroupHandle>, Option<Lookup>), NameError> {
    if let Some(handle) = live.groups.named(name) {
        return Ok((handle.clone(), None));
    }
    let endpoint = match name.strip_prefix("unix:") {
        Some(path) => Endpoint::Unix(path.trim_end_matches(':').into()),
        None => match name.parse() {
            Ok(address) => Endpoint::Tcp(address),
            Err(_) => return group_to_look_up(live, name, names),
        },
    };
    let handle = live.groups.at_address(name, endpoint);
    Ok((handle.map_err(NameError::Group)?, None))
}

/// A group for one request, whose servers are found by its name.
fn group_to_look_up(
    live: &LiveState,
    name: &str,
    names: &NameResolution,
) -> Result<(Arc<GroupHandle>, Option<Lookup>), NameError> {
    let (host, port) = name.rsplit_once(':').ok_or(NameError::NoPort)?;
    let port = port.parse().map_err(|_| NameError::NoPort)?;
    if host.is_empty() {
        return Err(NameError::NoHost);
    }
    let lookup = lookup(&live.names, host, port, names).map_err(NameError::NoResolver)?;
    let spec = GroupSpec {
        servers: Vec::new(),
        is_dynamic: true,
        ..GroupSpec::single(name, Endpoint::Unix(PathBuf::new()))
    };
    let group = Group::new(spec).map_err(NameError::Group)?;
    Ok((GroupHandle::unnamed(group), Some(lookup)))
}

/// How to look `host` up for one request.
///
/// # Errors
/// No `resolver` is there to ask.
fn lookup(
    known: &Names,
    host: &str,
    port: u16,
    names: &NameResolution,
) -> Result<Lookup, NoResolver> {
    let resolver = known.resolver(names).ok_or_else(|| NoResolver {
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
pub fn followed(site: &Site, groups: &[Arc<Group>], names: &Names) -> Vec<FollowedName> {
    let mut followed = Vec::new();
    for (model, group) in site.http.groups.iter().zip(groups) {
        let Some(resolver) = names.resolver(&model.names) else {
            continue;
        };
        for (source, server) in model.servers.iter().enumerate() {
            if let UpstreamEndpoint::Name(name) = &server.endpoint {
                followed.push(FollowedName {
                    group: group.clone(),
                    source,
                    name: name.clone(),
                    server: server.clone(),
                    resolver: resolver.clone(),
                    deadline: model.names.timeout,
                    answers: names.answers.clone(),
                });
            }
        }
    }
    followed
}

/// A name that only a `resolver` could look up.
#[derive(Debug, thiserror::Error)]
#[error("no resolver defined to resolve {host}")]
pub struct NoResolver {
    host: String,
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
pub struct FollowedName {
    group: Arc<Group>,
    /// The line's place in its group.
    source: usize,
    name: UpstreamName,
    server: UpstreamServer,
    resolver: Arc<Resolver>,
    deadline: Duration,
    answers: Arc<NameAnswers>,
}

impl FollowedName {
    /// Puts the servers found before a reload into a group that is new.
    pub fn recall(&self) {
        let known = self.answers.lock().get(&self.key()).cloned();
        if let Some(found) = known {
            self.apply(&found);
        }
    }

    /// Looks the name up again and again. Ends when it is dropped.
    /// Failures go to `logs`.
    pub async fn follow(self, error_logs: Arc<ErrorLogs>, logs: Vec<ErrorLog>) {
        loop {
            let began = clock::now();
            let pause = match self.find(began).await {
                Ok((found, valid_until)) => {
                    self.apply(&found);
                    self.answers.lock().insert(self.key(), found);
                    Duration::from_millis(valid_until.saturating_sub(clock::now()))
                }
                Err(error) => {
                    let message = format_args!("{error}");
                    let context = format!(", upstream: \"{}\"", self.group.name());
                    error_logs.write(&logs, LogLevel::Error, 0, message, &context);
                    // The name is gone: so are its servers. After any other
                    // failure the servers stay.
                    if error.fault == Fault::HostNotFound {
                        self.apply(&[]);
                        self.answers.lock().remove(&self.key());
                    }
                    self.deadline
                }
            };
            tokio::time::sleep(pause.max(MIN_PAUSE)).await;
        }
    }

    fn key(&self) -> (String, Option<String>) {
        (self.name.host.clone(), self.name.service.clone())
    }

    async fn find(&self, now: u64) -> Result<(Vec<ResolvedServer>, u64), ResolveError> {
        let Some(service) = &self.name.service else {
            let host = &self.name.host;
            let answer = self.resolver.resolve(host, self.deadline, now).await?;
            let found = answer.addresses.iter().map(|address| ResolvedServer {
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
            found.extend(addresses.addresses.iter().map(|address| ResolvedServer {
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

    fn apply(&self, found: &[ResolvedServer]) {
        let servers = found.iter().filter_map(|found| self.server_spec(found));
        let servers = servers.collect();
        self.group.set_resolved(self.source, servers, clock::now());
    }

    /// SRV records beyond the best priority are backups; where the line itself
    /// is one, they are nothing.
    fn server_spec(&self, found: &ResolvedServer) -> Option<ServerSpec> {
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
            ..server_spec(line, Endpoint::Tcp(SocketAddr::new(found.address, port)))
        })
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
