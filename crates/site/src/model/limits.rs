//! Who may make a request, and how fast: access rules, passwords, limits of requests and
//! connections.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::ids::{LimitConnZoneId, LimitReqZoneId};
use super::log::LogLevel;
use super::network::Network;
use super::template::Template;

/// A line of `allow` or `deny`. The first one whose network contains the address decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRule {
    pub network: Network,
    pub allow: bool,
}

impl AccessRule {
    /// Returns the decision of the first rule that holds the client's address; `None` if
    /// none does.
    #[must_use]
    pub fn decision(rules: &[AccessRule], address: Option<IpAddr>) -> Option<bool> {
        let mut rules = rules.iter();
        let rule = rules.find(|rule| rule.network.contains(address));
        rule.map(|rule| rule.allow)
    }
}

/// `satisfy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Satisfy {
    All,
    Any,
}

/// `auth_basic` with its user file.
#[derive(Debug, Clone)]
pub struct AuthBasic {
    pub realm: Template,
    pub user_file: Template,
    /// The folder that relative paths from variables begin at.
    pub folder: PathBuf,
}

/// `limit_req_zone KEY zone=NAME:SIZE rate=RATE`.
#[derive(Debug, Clone)]
pub struct LimitReqZone {
    pub name: String,
    pub key: Template,
    pub size_bytes: u64,
    /// Requests per 1,000 seconds, so that `r/m` rates stay whole numbers.
    pub rate_per_1000s: u64,
}

/// `limit_req zone=NAME [burst=N] [nodelay | delay=N]`.
#[derive(Debug, Clone)]
pub struct LimitReq {
    pub zone: LimitReqZoneId,
    pub burst: u64,
    /// Excess requests let through at once; `u64::MAX` is `nodelay`.
    pub delay_after: u64,
}

#[derive(Debug, Clone)]
pub struct LimitConnZone {
    pub name: String,
    pub key: Template,
    pub size_bytes: u64,
}

#[derive(Debug, Clone)]
pub struct LimitConn {
    pub zone: LimitConnZoneId,
    pub connections: u64,
}

/// The reaction to an exceeded limit: `limit_*_status`, `_log_level`, `_dry_run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReaction {
    pub status: u16,
    pub log_level: LogLevel,
    pub dry_run: bool,
}

/// All limits of a location.
#[derive(Debug, Clone)]
pub struct Limits {
    pub requests: Vec<LimitReq>,
    pub on_requests: LimitReaction,
    pub connections: Vec<LimitConn>,
    pub on_connections: LimitReaction,
    /// `auth_delay`.
    pub auth_delay: Duration,
}
