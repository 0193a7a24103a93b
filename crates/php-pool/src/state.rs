//! The public state of a pool: a watched value for those that send requests, and events for the
//! log. Also the pure rule of how long to wait before a dead master is replaced.

use std::process::ExitStatus;
use std::time::Duration;

use crate::spec::LogLevel;

/// The stage of a pool in its life (drawn in `LIFECYCLE.md`). In every state but the last the
/// socket accepts connections; they wait until a worker accepts them.
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
    /// No new requests: workers finish theirs.
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

/// An event that is worth a line in the log.
#[derive(Clone, Debug)]
pub enum Event {
    /// A master was started and its workers answer.
    Ready {
        /// Its process id.
        pid: u32,
        /// Counts masters, from 1.
        generation: u64,
        /// Workers at most.
        workers: u32,
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
        /// The exit status of the master, if the system reported one.
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
        /// The number of the master.
        generation: u64,
        /// Whether it was not given, or did not use, the time to end by itself.
        forced: bool,
        /// Whether the time for requests under way ran out: they took too long.
        overran: bool,
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
    /// An optional part is missing on this machine.
    Degraded {
        /// The problem, and its consequence.
        reason: String,
    },
    /// All processes of the pool have ended.
    Stopped,
}

/// How long to wait before a dead master is replaced: not at all after a
/// stable life, then longer with each death, so that a pool that cannot live
/// costs nothing much and one that was killed is back at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    deaths: u32,
}

impl Backoff {
    /// A master that lived this long died of something new.
    pub(crate) const STABLE_LIFE: Duration = Duration::from_secs(10);
    /// The second death in a row waits this long, each further one twice it.
    pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(100);
    /// Longest wait: an administrator who repaired something sees it soon.
    pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(5);

    /// Counts a death after a life of `lived`; answers how many in a row and
    /// how long to wait.
    pub(crate) fn died_after(&mut self, lived: Duration) -> (u32, Duration) {
        if lived >= Self::STABLE_LIFE {
            self.deaths = 0;
        }
        self.deaths = self.deaths.saturating_add(1);
        let wait = match self.deaths {
            1 => Duration::ZERO,
            // Sixteen doublings are far past the cap and cannot overflow.
            more => Self::FIRST_WAIT * 2u32.pow((more - 2).min(16)),
        };
        (self.deaths, wait.min(Self::LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_death_waits_not_at_all_and_further_ones_twice_as_long_each_up_to_a_cap() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9)
            .map(|_| backoff.died_after(Duration::ZERO).1.as_millis())
            .collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        for _ in 0..100 {
            let (_, wait) = backoff.died_after(Duration::ZERO);
            assert_eq!(wait, Backoff::LONGEST_WAIT);
        }
    }

    #[test]
    fn stable_life_forgets_earlier_deaths() {
        let mut backoff = Backoff::default();
        backoff.died_after(Duration::ZERO);
        backoff.died_after(Duration::ZERO);
        assert_eq!(
            backoff.died_after(Backoff::STABLE_LIFE),
            (1, Duration::ZERO)
        );
    }
}
