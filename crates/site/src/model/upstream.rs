//! Groups of upstream servers: the `upstream` blocks, and one group for each address that a
//! `*_pass` names literally.

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
    /// For its servers marked `resolve`.
    pub names: NameResolution,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamServer {
    /// As written: consistent hashing goes by it.
    pub name: String,
    pub endpoint: UpstreamEndpoint,
    pub weight: u32,
    /// 0: unlimited.
    pub max_conns: usize,
    pub max_fails: u32,
    pub fail_timeout: Duration,
    /// Zero: it comes back with all its weight.
    pub slow_start: Duration,
    pub backup: bool,
    pub down: bool,
}

impl UpstreamServer {
    /// Does it stand for servers that are found at run time?
    pub fn is_name(&self) -> bool {
        matches!(self.endpoint, UpstreamEndpoint::Name(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UpstreamEndpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// `php:NAME`: a pool of our own.
    PhpPool(String),
    /// `resolve`: as many servers as the name has addresses at the time.
    Name(UpstreamName),
}

/// A name that is looked up at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamName {
    pub host: String,
    pub port: u16,
    /// `service=`: the name to ask for SRV records by.
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
    /// Connections are used again within their location only.
    pub local: bool,
}

/// `queue NUMBER [timeout=TIME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub length: usize,
    pub timeout: Duration,
}
