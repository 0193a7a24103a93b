//! What a pool tells others: its state, as a watched value for whoever sends
//! requests, and events for whoever keeps the log. Also the pure rule of how
//! long to wait before a dead master is replaced.

use std::process::ExitStatus;
use std::time::Duration;

use crate::spec::LogLevel;

/// Where a pool is in its life (drawn in `LIFECYCLE.md`). In every state but
/// the last the socket accepts connections; they wait until somebody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// The first master is coming up.
    Starting,
    /// Workers answer.
    Ready {
        /// Counts masters. A connection kept from an older generation holds
        /// up a worker that should leave: close it when this number grows.
        generation: u64,
        /// Requests that PHP runs at the same time, at most.
        workers: u32,
    },
    /// The master died; another comes up after `retry_in`. Hold requests.
    Restarting {
        /// Deaths in a row without a stable life between them, from 1.
        attempt: u32,
        /// Wait before the next start, from the moment this state began.
        retry_in: Duration,
    },
    /// No new requests: workers finish what they have.
    Draining,
    /// All processes have ended, the socket is gone.
    Stopped,
}

impl PoolState {
    /// Whether a request sent now is answered without waiting for PHP to come
    /// back.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}

/// Something worth a line in the log.
#[derive(Clone, Debug)]
pub enum Event {
    /// A master was started.
    Started {
        /// Its process id.
        pid: u32,
        /// Counts masters, from 1.
        generation: u64,
        /// Workers at most.
        workers: u32,
    },
    /// Its workers answer.
    Ready {
        /// Which master.
        generation: u64,
    },
    /// A line that php-fpm logged.
    Log {
        /// php-fpm's level; lines without one are [`LogLevel::Notice`].
        level: LogLevel,
        /// The message without time and level.
        message: String,
    },
    /// A master ended that should not have.
    Died {
        /// Its process id.
        pid: u32,
        /// How it ended, if the system said so.
        status: Option<ExitStatus>,
        /// Wait before the next start.
        retry_in: Duration,
    },
    /// A new master could not be started; tried again after the wait.
    StartFailed {
        /// Why.
        reason: String,
        /// Wait before the next start.
        retry_in: Duration,
    },
    /// A replaced master or the workers of a dead one have ended.
    Retired {
        /// Which master.
        generation: u64,
        /// Whether workers had to be ended in the middle of a request.
        forced: bool,
    },
    /// `workers auto` measured its workers and chooses another number.
    Resized {
        /// Workers so far.
        from: u32,
        /// Workers from now on.
        to: u32,
        /// Measured memory of the largest worker.
        worker_bytes: u64,
    },
    /// Something optional is missing on this machine.
    Degraded {
        /// What, and what follows from it.
        reason: String,
    },
    /// All processes of the pool have ended.
    Stopped,
}
