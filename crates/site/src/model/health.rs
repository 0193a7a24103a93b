//! Active health checks: `health_check` and the `match` blocks that it refers to.

use std::sync::Arc;
use std::time::Duration;

use super::ids::{GroupId, MatchId};
use super::pattern::Pattern;
use super::settings::Settings;
use super::template::Template;

/// One `health_check` line.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// The group whose servers are checked.
    pub group: GroupId,
    /// The location's settings for requests to them.
    pub settings: Arc<Settings>,
    pub interval: Duration,
    /// Each check is delayed by a random time up to this one.
    pub jitter: Duration,
    /// The number of failed checks in a row that make a server unhealthy.
    pub fails: u32,
    /// The number of successful checks in a row that make it healthy again.
    pub passes: u32,
    pub uri: Box<[u8]>,
    /// Servers get no requests before their first check.
    pub mandatory: bool,
    /// Except those that were healthy before a reload.
    pub persistent: bool,
    /// `None`: a status from 200 to 399 is a success.
    pub matching: Option<MatchId>,
    /// Replaces the server's own port.
    pub port: Option<u16>,
    /// `None`: each check uses a new connection.
    pub keepalive_time: Option<Duration>,
}

/// A `match` block: all of it must hold.
#[derive(Debug, Clone, Default)]
pub struct MatchRules {
    pub name: String,
    pub status: Vec<StatusRule>,
    pub headers: Vec<HeaderRule>,
    pub bodies: Vec<BodyRule>,
    /// Must be neither empty nor "0".
    pub require: Vec<Template>,
}

/// `status [!] CODE|CODE-CODE ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRule {
    pub negated: bool,
    /// First and last.
    pub ranges: Vec<(u16, u16)>,
}

/// `header ...`
#[derive(Debug, Clone)]
pub struct HeaderRule {
    /// The name in lower case.
    pub name: Box<[u8]>,
    pub test: HeaderTest,
}

#[derive(Debug, Clone)]
pub enum HeaderTest {
    Present,
    Absent,
    Equal(Box<[u8]>),
    /// It is there, with another value.
    Unequal(Box<[u8]>),
    Matches(Arc<Pattern>),
    /// It is there, with a value that does not match.
    Differs(Arc<Pattern>),
}

/// `body ~ PATTERN` and `body !~ PATTERN`
#[derive(Debug, Clone)]
pub struct BodyRule {
    pub negated: bool,
    pub pattern: Arc<Pattern>,
}
