//! Active health checks: `health_check` and the `match` blocks it refers to.

use std::sync::Arc;
use std::time::Duration;

use super::ids::{GroupId, MatchId};
use super::pattern::Pattern;
use super::settings::Settings;
use super::template::Template;

/// One `health_check` line.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// Whose servers are checked.
    pub group: GroupId,
    /// What the location says about talking to them.
    pub settings: Arc<Settings>,
    pub interval: Duration,
    /// Each check is put off by up to as much, at random.
    pub jitter: Duration,
    /// So many in a row make a server unhealthy.
    pub fails: u32,
    /// So many in a row make it healthy again.
    pub passes: u32,
    pub uri: Box<[u8]>,
    /// Servers are not asked before their first check.
    pub mandatory: bool,
    /// Except those that were well before a reload.
    pub persistent: bool,
    /// `None`: a status from 200 to 399 will do.
    pub matching: Option<MatchId>,
    /// In place of the server's own.
    pub port: Option<u16>,
    /// `None`: a connection for each check.
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
    /// In lower case.
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
