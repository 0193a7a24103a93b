//! The parts that a fetch shares with the body that it leads to: its settings, its trace, and
//! its log.

use std::fmt;
use std::sync::Arc;

use fair_queue::Turn;
use parking_lot::Mutex;
use site::{LogLevel, Pass};
use upstream::Group;

use super::trace::Trace;

/// The log of a fetch. The code that begins the fetch knows the request and the logs.
pub trait FetchLog: Send + Sync {
    /// Writes a line about the request, and about the upstream at an address where one is given.
    fn write(&self, level: LogLevel, upstream: Option<&str>, message: fmt::Arguments<'_>);

    /// All workers of a PHP pool of our own have been busy for long, and the request waits.
    fn pool_is_busy(&self, group: &Group);

    /// Whether to log that a request of this turn found no place: once a minute for each turn.
    fn may_tell_of_refusal(&self, turn: &Turn) -> bool;

    /// A background request was not sent, because the servers are busy.
    fn left_out(&self, group: &Group);
}

/// The parts that a fetch shares with the body that it leads to.
pub struct FetchContext {
    pub pass: Arc<Pass>,
    pub trace: Arc<Mutex<Trace>>,
    /// Some value may read the fields of the response head (`$upstream_http_*`).
    pub keeps_fields: bool,
    pub log: Box<dyn FetchLog>,
    /// Dropped when the fetch and its body have ended, for a bound on fetches under way.
    pub turn: Option<Box<dyn Send + Sync>>,
}
