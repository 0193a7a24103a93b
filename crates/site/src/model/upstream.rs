//! Groups of upstream servers: the `upstream` blocks, and one group for each address that a
//! `*_pass` names directly.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::resolver::NameResolution;
use super::template::Template;

/// `upstream NAME { ... }`, or the group made for a literal address.
#[derive(Debug, Clone)]
pub struct UpstreamGroup {
    pub name: String,
    pub servers: Vec<UpstreamServer>,
    pub method: BalanceMethod,
    pub keepalive: Option<KeepAlive>,
    pub queue: Option<Queue>,
    /// `None`: not configured.
    pub turns: Option<Turns>,
    /// Name resolution for its servers marked `resolve`.
    pub names: NameResolution,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamServer {
    /// The address in the configuration; consistent hashing uses it.
    pub name: String,
    pub endpoint: UpstreamEndpoint,
    pub weight: u32,
    /// 0: unlimited.
    pub max_conns: usize,
    pub max_fails: u32,
    pub fail_timeout: Duration,
    /// Zero: the server gets its full weight at once.
    pub slow_start: Duration,
    pub backup: bool,
    pub down: bool,
}

impl UpstreamServer {
    /// Does it mean servers that are found at run time?
    pub fn is_name(&self) -> bool {
        matches!(self.endpoint, UpstreamEndpoint::Name(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UpstreamEndpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// `php:NAME`: a `php_pool`.
    PhpPool(String),
    /// `resolve`: one server for each address that the name has at the time.
    Name(UpstreamName),
}

/// A name that is looked up at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamName {
    pub host: String,
    pub port: u16,
    /// `service=`: the name of the SRV records.
    pub service: Option<String>,
}

#[derive(Debug, Clone)]
pub enum BalanceMethod {
    RoundRobin,
    LeastConn,
    IpHash,
    Hash { key: Template, consistent: bool },
    Random { two: bool },
}

/// `keepalive` (0 connections: none are kept), `keepalive_requests`, `keepalive_time`, `keepalive_timeout` of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepAlive {
    pub connections: usize,
    pub requests: u64,
    pub time: Duration,
    pub timeout: Duration,
    /// A connection is used again in its own location only.
    pub local: bool,
}

/// `queue NUMBER [timeout=TIME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub length: usize,
    pub timeout: Duration,
}

/// `php_concurrency`, `crawler_share`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    pub concurrency: PhpConcurrency,
    /// The share in percent.
    pub crawler_share: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            concurrency: PhpConcurrency::Off,
            crawler_share: 25,
        }
    }
}

/// `php_concurrency auto | NUMBER | off`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhpConcurrency {
    Off,
    Auto,
    Number(usize),
}
