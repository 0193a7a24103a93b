//! The configuration of a group: plain values, built by literal.
//!
//! `site` lowers `upstream` blocks (and a `fastcgi_pass` that names an address)
//! into a [`GroupSpec`]; `Group::new` turns it into the running thing. Defaults
//! are nginx's, see <https://nginx.org/en/docs/http/ngx_http_upstream_module.html>.

use std::time::Duration;

use fair_queue::Concurrency;

use crate::{Endpoint, Millis};

/// An `upstream` block, or a single server standing for one.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSpec {
    /// The name after `upstream`; `$upstream_addr` shows it when no server could be
    /// chosen.
    pub name: String,
    /// Servers in the order of the configuration, backups among them.
    pub servers: Vec<ServerSpec>,
    /// How a server is chosen.
    pub method: Method,
    /// `None`: a connection is closed after its request.
    pub keepalive: Option<Keepalive>,
    /// `None`: a request that finds all servers full fails at once.
    pub queue: Option<QueueSpec>,
    /// Requests wait in fair turns; `None`: in the order of arrival, without a limit of their own.
    pub turns: Option<TurnsSpec>,
    /// Servers come and go at run time ([`crate::Group::set_resolved`]): a
    /// group without any is not a mistake.
    pub is_dynamic: bool,
}

impl GroupSpec {
    /// A group of one server with everything else at its default.
    pub fn single(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            servers: vec![ServerSpec::new(endpoint)],
            method: Method::RoundRobin,
            keepalive: None,
            queue: None,
            turns: None,
            is_dynamic: false,
        }
    }
}

/// One `server` line, or one address of a host name that resolved to several.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// Its address.
    pub endpoint: Endpoint,
    /// The address as written in the configuration (`backend:8080`, `unix:/run/a`).
    /// Consistent hashing places the server by this text, and addresses of one
    /// host name share it.
    pub name: String,
    /// Share of the requests; zero counts as one.
    pub weight: u32,
    /// Requests in flight at most; zero: no limit.
    pub max_conns: usize,
    /// Failures within `fail_timeout` that make it unavailable; zero: never.
    pub max_fails: u32,
    /// The time in which failures add up, and for which it is then unavailable.
    pub fail_timeout: Duration,
    /// How long its share grows from nothing to its weight after it came back
    /// from failure; zero: at once. For round robin and `least_conn`.
    pub slow_start: Duration,
    /// Asked only when no other server can be.
    pub backup: bool,
    /// Never asked; keeps its index for the hashes.
    pub down: bool,
}

impl ServerSpec {
    /// A server with nginx's defaults, named as its endpoint is shown.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            name: endpoint.to_string(),
            endpoint,
            weight: 1,
            max_conns: 0,
            max_fails: 1,
            fail_timeout: Duration::from_secs(10),
            slow_start: Duration::ZERO,
            backup: false,
            down: false,
        }
    }
}

/// The load balancing method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Smooth weighted round robin, the default.
    #[default]
    RoundRobin,
    /// `least_conn`
    LeastConn,
    /// `ip_hash`
    IpHash,
    /// `hash key [consistent]`; the key's value comes with each request.
    Hash {
        /// Ketama: few keys move when a server comes or goes.
        consistent: bool,
    },
    /// `random [two [least_conn]]`
    Random {
        /// Draw two, take the one with fewer requests in flight.
        two: bool,
    },
}

/// The settings of `keepalive` and its companions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle connections kept at most, all servers of the group together.
    pub connections: usize,
    /// Requests on one connection at most.
    pub requests: u32,
    /// Age past which a connection is not kept after a request.
    pub time: Duration,
    /// How long a connection stays idle.
    pub timeout: Duration,
    /// An idle connection occupies a worker of the server (PHP-FPM): idle ones
    /// and requests in flight together must fit `max_conns`.
    pub idle_counts: bool,
    /// A connection is used again only from the location it was made for
    /// ([`crate::PickKey::location`]).
    pub local: bool,
}

impl Keepalive {
    /// `keepalive connections`, the rest at nginx's defaults.
    pub fn new(connections: usize) -> Self {
        Self {
            connections,
            requests: 1000,
            time: Duration::from_secs(3600),
            timeout: Duration::from_secs(60),
            idle_counts: false,
            local: false,
        }
    }

    /// Has a connection a further request in it? Asked when a request ends, as
    /// `keepalive_requests` and `keepalive_time` never cut one short.
    pub fn allows_another(&self, requests: u32, born: Millis, now: Millis) -> bool {
        self.connections != 0
            && requests < self.requests
            && now.saturating_sub(born) <= self.time.as_millis() as Millis
    }
}

/// `queue NUMBER timeout=TIME`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Requests waiting at most.
    pub length: usize,
    /// How long each may wait.
    pub timeout: Duration,
}

/// `php_concurrency` and `crawler_share`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnsSpec {
    /// How many requests at once.
    pub concurrency: Concurrency,
    /// The share of crawlers while visitors wait, of a hundred.
    pub crawler_share: usize,
}

/// Why a spec is no group. The operator wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// nginx: "no servers are inside upstream".
    #[error("no servers are inside upstream")]
    NoServers,
    /// Only backup servers.
    #[error("only backup servers are inside upstream")]
    NoPrimaryServers,
    /// The weights add up to more than a table for this method may hold.
    #[error("weights add up to {total}, at most {limit} is accepted")]
    WeightsTooLarge {
        /// Their sum.
        total: u64,
        /// The largest sum accepted.
        limit: u64,
    },
}
