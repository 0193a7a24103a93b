//! Name servers for names that are looked up at run time: `resolver`.

use std::net::SocketAddr;
use std::time::Duration;

use super::ids::ResolverId;

/// One `resolver` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverSettings {
    /// Asked in turn.
    pub servers: Vec<SocketAddr>,
    /// `None`: the TTL of the answer.
    pub valid: Option<Duration>,
    pub ipv4: bool,
    pub ipv6: bool,
}

/// How names are looked up at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameResolution {
    /// `None`: names are looked up only while the configuration is read.
    pub resolver: Option<ResolverId>,
    /// `resolver_timeout`
    pub timeout: Duration,
}
