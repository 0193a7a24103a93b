//! Lowers `upstream` blocks, and makes a group for each address that a `*_pass` names directly.

use std::net::SocketAddr;
use std::path::PathBuf;

use nginx_conf::{Diagnostic, Word, did_you_mean};

use super::Lowering;
use super::level::Level;
use super::values::{parameter, seconds, to_u32, to_usize};
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// Idle connections that are kept for a group of HTTP servers, as in nginx since 1.29.7.
const HTTP_KEEPALIVE: usize = 32;

const SERVER_PARAMETERS: &str =
    "weight max_conns max_fails fail_timeout slow_start backup down resolve service";

impl Lowering<'_> {
    pub fn declare_groups(&mut self, level: &Level<'_>) {
        for node in level.own("upstream") {
            let name = node.arg(0);
            let id = GroupId(self.group_names.len());
            if self.group_names.contains_key(&name.text) {
                self.error(name.span, format!("duplicate upstream \"{name}\""));
            } else {
                self.group_names.insert(name.text.clone(), id);
            }
        }
    }

    pub fn upstream_groups(&mut self, level: &Level<'_>) {
        self.turns = self.turns_of(level, Turns::default());
        let mut seen = std::collections::HashSet::new();
        for node in level.own("upstream") {
            if seen.insert(node.arg(0).text.clone()) {
                let group = self.upstream_group(node, level);
                self.declared.groups.push(group);
            }
        }
    }

    fn upstream_group(&mut self, node: &Node<'_>, http: &Level<'_>) -> UpstreamGroup {
        let level = Level::new(&node.children, None);
        let names = self.group_names_of(&level, http);
        let servers: Vec<UpstreamServer> = level
            .own("server")
            .iter()
            .flat_map(|line| self.upstream_server(line, node.arg(0), &names))
            .collect();
        self.check_parameters_suit_method(&level);
        if level.own("server").is_empty() {
            self.refuse(
                node.span(),
                format!("no servers are inside upstream \"{}\"", node.arg(0)),
                "expected server ADDRESS;",
            );
        } else if !servers.is_empty() && servers.iter().all(|server| server.backup) {
            self.refuse(
                node.span(),
                format!("no servers in upstream \"{}\"", node.arg(0)),
                "expected at least one server that is not a backup",
            );
        }
        UpstreamGroup {
            name: node.arg(0).text.clone(),
            servers,
            method: self.balance_method(&level),
            keepalive: self.group_keepalive(&level),
            queue: self.group_queue(&level),
            turns: self.group_turns(&level),
            names,
        }
    }

    /// A `resolver` of the group's own, or that of `http`.
    fn group_names_of(&mut self, own: &Level<'_>, http: &Level<'_>) -> NameResolution {
        let outer = self.name_resolution(http);
        let inner = self.name_resolution(own);
        if own.find("resolver").is_some() {
            inner
        } else if own.find("resolver_timeout").is_some() {
            NameResolution {
                timeout: inner.timeout,
                ..outer
            }
        } else {
            outer
        }
    }

    /// `slow_start` works with round robin and `least_conn` only. `backup` is refused where nginx
    /// refuses it: after the line of a method without backup servers.
    fn check_parameters_suit_method(&mut self, level: &Level<'_>) {
        let nodes = level.list(&["least_conn", "ip_hash", "hash", "random"]);
        let Some(method) = nodes.last().filter(|node| node.name() != "least_conn") else {
            return;
        };
        let servers = level.own("server").iter().flat_map(|node| node.args());
        for word in servers {
            let is_behind = word.span.start > method.span().start;
            let name = match word.text.as_str() {
                "backup" if is_behind => "backup",
                text if text.starts_with("slow_start=") => "slow_start",
                _ => continue,
            };
            self.report(
                Diagnostic::error(
                    word.span,
                    format!("balancing method does not support parameter \"{name}\""),
                )
                .note_at(method.span(), "this is the method")
                .hint(format!(
                    "leave \"{name}\" out, or balance by least_conn or in turn"
                )),
            );
        }
    }

    fn upstream_server(
        &mut self,
        node: &Node<'_>,
        group: &Word,
        names: &NameResolution,
    ) -> Vec<UpstreamServer> {
        let mut server = plain_server(UpstreamEndpoint::Unix(PathBuf::new()), node.arg(0));
        let mut resolve_parameters = ResolveParameters::default();
        for word in node.args().iter().skip(1) {
            self.server_parameter(word, &mut server, &mut resolve_parameters);
        }
        if let Some(word) = resolve_parameters.resolve {
            return match self.run_time_name(
                node.arg(0),
                word,
                resolve_parameters.service,
                group,
                names,
            ) {
                Some(ResolvedServer::Name(name)) => vec![UpstreamServer {
                    endpoint: UpstreamEndpoint::Name(name),
                    ..server
                }],
                Some(ResolvedServer::Address(endpoint)) => {
                    vec![UpstreamServer { endpoint, ..server }]
                }
                None => Vec::new(),
            };
        }
        if let Some(word) = resolve_parameters.service {
            self.report(
                Diagnostic::error(
                    word.span,
                    format!(
                        "service upstream \"{}\" requires \"resolve\" parameter",
                        node.arg(0)
                    ),
                )
                .label("SRV records are looked up at run time only")
                .hint("add resolve"),
            );
        }
        // nginx's default port of a group's servers.
        self.endpoints(node.arg(0), Some(80))
            .into_iter()
            .map(|endpoint| UpstreamServer {
                endpoint,
                ..server.clone()
            })
            .collect()
    }

    fn server_parameter<'w>(
        &mut self,
        word: &'w Word,
        server: &mut UpstreamServer,
        resolve_parameters: &mut ResolveParameters<'w>,
    ) {
        if let Some(text) = parameter(word, "weight") {
            match self.number_in(word, text).map(to_u32) {
                Some(0) => self.invalid(word, "weight", "expected a number above 0"),
                Some(weight) => server.weight = weight,
                None => {}
            }
        } else if let Some(text) = parameter(word, "max_conns") {
            server.max_conns = self.number_in(word, text).map_or(0, to_usize);
        } else if let Some(text) = parameter(word, "max_fails") {
            server.max_fails = self.number_in(word, text).map_or(1, to_u32);
        } else if let Some(text) = parameter(word, "fail_timeout") {
            server.fail_timeout = self.duration_in(word, text).unwrap_or(server.fail_timeout);
        } else if let Some(text) = parameter(word, "slow_start") {
            server.slow_start = self.duration_in(word, text).unwrap_or(server.slow_start);
        } else if let Some(text) = parameter(word, "service") {
            if text.is_empty() {
                self.invalid(word, "service", "expected a name such as http");
            }
            resolve_parameters.service = Some(word);
        } else {
            match word.text.as_str() {
                "backup" => server.backup = true,
                "down" => server.down = true,
                "resolve" => resolve_parameters.resolve = Some(word),
                "drain" => self.unsupported_parameter(word),
                text if text.starts_with("route=") => self.unsupported_parameter(word),
                _ => self.unknown_parameter(word, word, "server", SERVER_PARAMETERS),
            }
        }
    }

    /// The meaning of a `server` line with `resolve`.
    fn run_time_name(
        &mut self,
        word: &Word,
        resolve: &Word,
        service: Option<&Word>,
        group: &Word,
        names: &NameResolution,
    ) -> Option<ResolvedServer> {
        let is_name = !word.starts_with("unix:") && self.pool_named_by(word).is_none();
        let Some((host, port)) = split_host(word).filter(|_| is_name) else {
            // Reports a mistake, or finds an address that needs no look-up.
            let endpoint = self.endpoints(word, Some(80)).pop()?;
            return Some(ResolvedServer::Address(endpoint));
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            let address = SocketAddr::new(address, port.unwrap_or(80));
            return Some(ResolvedServer::Address(UpstreamEndpoint::Tcp(address)));
        }
        if let Some(service) = service.filter(|_| port.is_some()) {
            self.report(
                Diagnostic::error(
                    word.span,
                    format!("service upstream \"{word}\" may not have port"),
                )
                .note_at(service.span, "SRV records name the port")
                .hint(format!("write {host} {service}")),
            );
            return None;
        }
        if names.resolver.is_none() {
            self.report(
                Diagnostic::error(
                    resolve.span,
                    format!(
                        "no resolver defined to resolve names at run time in upstream \"{group}\""
                    ),
                )
                .label("the name cannot be looked up without a resolver")
                .hint("write resolver ADDRESS; in this block or in http"),
            );
            return None;
        }
        let service = service.and_then(|service| parameter(service, "service"));
        Some(ResolvedServer::Name(UpstreamName {
            host: host.to_owned(),
            port: port.unwrap_or(80),
            service: service.map(|service| match service.contains('.') {
                true => format!("{service}.{host}"),
                false => format!("_{service}._tcp.{host}"),
            }),
        }))
    }

    pub(super) fn unsupported_parameter(&mut self, word: &Word) {
        self.refuse(
            word.span,
            format!("unsupported parameter \"{word}\""),
            "nginx has it, Mayfly does not yet",
        );
    }

    /// `HOST[:PORT]`, `unix:PATH` or `php:POOL`; a host name gives all its addresses.
    pub fn endpoints(&mut self, word: &Word, default_port: Option<u16>) -> Vec<UpstreamEndpoint> {
        if let Some(path) = word.strip_prefix("unix:") {
            if path.is_empty() {
                self.error(
                    word.span,
                    format!("no path in the unix domain socket in upstream \"{word}\""),
                );
                return Vec::new();
            }
            return vec![UpstreamEndpoint::Unix(PathBuf::from(path))];
        }
        if let Some(name) = self.pool_named_by(word) {
            return self.pool_endpoint(word, name).into_iter().collect();
        }
        let address = split_host(word).map(|(host, port)| (host, port.or(default_port)));
        let Some((host, Some(port))) = address else {
            let message = match address {
                Some(_) => format!("no port in upstream \"{word}\""),
                None => format!("invalid address \"{word}\""),
            };
            let expected =
                "expected HOST:PORT, unix:PATH, php:POOL or the name of an upstream block";
            self.refuse(word.span, message, expected);
            return Vec::new();
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return vec![UpstreamEndpoint::Tcp(SocketAddr::new(address, port))];
        }
        match (self.options.resolve)(host, port) {
            Ok(found) if !found.is_empty() => {
                let mut endpoints: Vec<_> = found.into_iter().map(UpstreamEndpoint::Tcp).collect();
                endpoints.dedup();
                endpoints
            }
            _ => {
                let names: Vec<&str> = self.group_names.keys().map(String::as_str).collect();
                let error =
                    Diagnostic::error(word.span, format!("host not found in upstream \"{word}\""));
                let meant = did_you_mean(word, names).map(str::to_owned);
                self.report(match meant {
                    Some(meant) => error.hint(format!("did you mean the upstream \"{meant}\"?")),
                    None => error.label("neither an upstream block nor a host of this name"),
                });
                Vec::new()
            }
        }
    }

    /// The pool in `php:POOL`. With a number, it is a host `php` and a port, as in many
    /// configurations for containers, unless a pool has this number as its name.
    pub fn pool_named_by<'w>(&self, word: &'w str) -> Option<&'w str> {
        let name = word.strip_prefix("php:")?;
        let is_port = name.parse::<u16>().is_ok();
        (!is_port || self.pools.iter().any(|pool| pool.name == name)).then_some(name)
    }

    fn pool_endpoint(&mut self, word: &Word, name: &str) -> Option<UpstreamEndpoint> {
        if self.pools.iter().any(|pool| pool.name == name) {
            return Some(UpstreamEndpoint::PhpPool(name.to_owned()));
        }
        let names: Vec<&str> = self.pools.iter().map(|pool| pool.name.as_str()).collect();
        let meant = did_you_mean(name, names).map(str::to_owned);
        let error = Diagnostic::error(word.span, format!("unknown php_pool \"{name}\""));
        self.report(match meant {
            Some(meant) => error
                .label("no such pool")
                .hint(format!("did you mean \"php:{meant}\"?")),
            None => error
                .label("no php_pool of this name")
                .hint(format!("write php_pool {name} {{ }} before http")),
        });
        None
    }

    /// The group for the name or address in a `*_pass`.
    pub fn group_of(&mut self, word: &Word) -> Option<GroupId> {
        if let Some(&id) = self
            .group_names
            .get(&word.text)
            .or(self.implicit_groups.get(&word.text))
        {
            return Some(id);
        }
        let endpoints = self.endpoints(word, None);
        if endpoints.is_empty() {
            return None;
        }
        let id = GroupId(self.declared.groups.len());
        self.declared.groups.push(UpstreamGroup {
            name: word.text.clone(),
            servers: endpoints
                .into_iter()
                .map(|endpoint| plain_server(endpoint, word))
                .collect(),
            method: BalanceMethod::RoundRobin,
            keepalive: None,
            queue: None,
            turns: None,
            names: NameResolution {
                resolver: None,
                timeout: seconds(30),
            },
        });
        self.implicit_groups.insert(word.text.clone(), id);
        Some(id)
    }

    fn balance_method(&mut self, level: &Level<'_>) -> BalanceMethod {
        let nodes = level.list(&["least_conn", "ip_hash", "hash", "random"]);
        for node in nodes.iter().skip(1) {
            self.report(
                Diagnostic::warning(node.span(), "load balancing method redefined")
                    .label("the last one holds"),
            );
        }
        let Some(node) = nodes.last() else {
            return BalanceMethod::RoundRobin;
        };
        match node.name() {
            "least_conn" => BalanceMethod::LeastConn,
            "ip_hash" => BalanceMethod::IpHash,
            "hash" => {
                let consistent = node.args().get(1).is_some_and(|word| {
                    self.choice_of(word, &[("consistent", true)])
                        .unwrap_or(false)
                });
                BalanceMethod::Hash {
                    key: self.template(node.arg(0)),
                    consistent,
                }
            }
            _ => {
                let two = node
                    .args()
                    .first()
                    .is_some_and(|word| self.choice_of(word, &[("two", true)]).unwrap_or(false));
                if let Some(word) = node.args().get(1) {
                    self.choice_of(word, &[("least_conn", ())]);
                }
                BalanceMethod::Random { two }
            }
        }
    }

    fn group_keepalive(&mut self, level: &Level<'_>) -> Option<KeepAlive> {
        let requests = self.value(level, UPSTREAM_KEEPALIVE_REQUESTS);
        let time = self.value(level, UPSTREAM_KEEPALIVE_TIME);
        let timeout = self.value(level, UPSTREAM_KEEPALIVE_TIMEOUT);
        let node = level.find("keepalive")?;
        let local = node
            .args()
            .get(1)
            .and_then(|word| self.choice_of(word, &[("local", true)]))
            .unwrap_or(false);
        Some(KeepAlive {
            // 0 keeps none.
            connections: to_usize(self.number_of(node.arg(0))?),
            requests,
            time,
            timeout,
            local,
        })
    }

    /// Sets the keep-alive of a group of HTTP servers, unless the group has its own.
    pub fn keep_connections(&mut self, group: GroupId) {
        if let Some(group) = self.declared.groups.get_mut(group.0) {
            group.keepalive.get_or_insert(KeepAlive {
                connections: HTTP_KEEPALIVE,
                requests: 1000,
                time: seconds(3600),
                timeout: seconds(60),
                local: false,
            });
        }
    }

    /// Lowers a group's own turns.
    fn group_turns(&mut self, level: &Level<'_>) -> Option<Turns> {
        let names = ["php_concurrency", "crawler_share"];
        let says_something = names.iter().any(|name| level.find(name).is_some());
        says_something.then(|| self.turns_of(level, self.turns))
    }

    /// Gives a group that asks PHP the turns of `http`, unless it has its own.
    pub fn take_turns(&mut self, group: GroupId) {
        let turns = self.turns;
        if let Some(group) = self.declared.groups.get_mut(group.0) {
            group.turns.get_or_insert(turns);
        }
    }

    /// Lowers turns; missing values come from `outer`.
    fn turns_of(&mut self, level: &Level<'_>, outer: Turns) -> Turns {
        let concurrency = level
            .word("php_concurrency")
            .and_then(|word| match word.text.as_str() {
                "auto" => Some(PhpConcurrency::Auto),
                "off" => Some(PhpConcurrency::Off),
                text => match text.parse() {
                    Ok(number) if number > 0 => Some(PhpConcurrency::Number(number)),
                    _ => {
                        let expected = "expected auto, off or a number above 0";
                        self.invalid(word, "number of requests", expected);
                        None
                    }
                },
            });
        let crawler_share = level.word("crawler_share").and_then(|word| {
            let percent = word.strip_suffix('%').and_then(|text| text.parse().ok());
            let share = percent.filter(|percent| (1..=100).contains(percent));
            if share.is_none() {
                self.invalid(word, "share", "expected a percentage from 1% to 100%");
            }
            share
        });
        Turns {
            concurrency: concurrency.unwrap_or(outer.concurrency),
            crawler_share: crawler_share.unwrap_or(outer.crawler_share),
        }
    }

    fn group_queue(&mut self, level: &Level<'_>) -> Option<Queue> {
        let node = level.find("queue")?;
        let length = self.number_of(node.arg(0)).map(to_usize)?;
        let mut timeout = seconds(60);
        if let Some(word) = node.args().get(1) {
            match parameter(word, "timeout") {
                Some(text) => timeout = self.duration_in(word, text)?,
                None => self.unknown_parameter(word, word, "queue", "timeout"),
            }
        }
        Some(Queue { length, timeout })
    }
}

/// A server with the defaults of all parameters.
fn plain_server(endpoint: UpstreamEndpoint, word: &Word) -> UpstreamServer {
    UpstreamServer {
        name: word.text.clone(),
        endpoint,
        weight: 1,
        max_conns: 0,
        max_fails: 1,
        fail_timeout: seconds(10),
        slow_start: seconds(0),
        backup: false,
        down: false,
    }
}

/// The parameters that move a name's resolution to run time.
#[derive(Default)]
struct ResolveParameters<'w> {
    resolve: Option<&'w Word>,
    service: Option<&'w Word>,
}

enum ResolvedServer {
    Name(UpstreamName),
    Address(UpstreamEndpoint),
}

/// Host and port of `host:port`, `[::1]:port`, `host`.
pub(super) fn split_host(text: &str) -> Option<(&str, Option<u16>)> {
    let end = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at_checked(end)?;
    if host.is_empty() || host.contains('/') {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(port) => {
            let port = port.parse::<u16>().ok().filter(|&port| port > 0)?;
            Some((host, Some(port)))
        }
        None => rest.is_empty().then_some((host, None)),
    }
}
