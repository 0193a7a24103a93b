//! The number of requests at once that is worth while, found from two measurements.
//!
//! The first is the demand for processors ([`ProcessorDemand`]): scripts that compute need as many places as
//! there are cores, and scripts that wait for a database need more. It is a ratio of sums that the kernel
//! counts, so that neither pages of very different cost nor other programs of the machine mislead it. It is
//! known where the workers run on this machine.
//!
//! The second is the time of requests, against a server behind PHP that is overloaded, and for workers that
//! run elsewhere. It is a limit by AIMD: up by a half while times are as usual, down by half when they are a
//! multiple. Times are compared by their geometric mean, which a few slow pages do not move. If fewer
//! requests at once are no faster, the pages are slow by themselves: their time is the usual one from then on.
//!
//! ```text
//!        more than SLOW times the usual time       shorter: it stays, and rises again once they are usual
//! steady ─────────────────────────► half of them ─┤
//!                                                 not: back, and this time is usual
//! ```

use crate::Millis;
use processor::ProcessorDemand;

mod processor;

pub use processor::WorkerLoad;

/// `php_concurrency`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// The limit finds itself.
    Auto {
        /// The number of cores: the floor, if it is above one.
        cores: usize,
    },
    /// A number.
    Fixed(usize),
}

/// A window ends after this time at the latest...
const WINDOW: Millis = 2000;
/// ... and at the earliest after this time, if enough requests have ended.
const MIN_WINDOW: Millis = 500;
const MIN_ENDED: u64 = 16;
/// A window in which fewer requests have ended is not judged.
const FEW: u64 = 4;
/// If no request has ended for this time, those under way do not end by waiting for them.
const STUCK: Millis = 3000;
/// Times that are this multiple of the usual one are those of an overloaded server.
const SLOW: f64 = 3.0;
/// Up to this multiple of the usual time, more requests may run at once.
const USUAL: f64 = 2.0;
/// Half as many requests at once take at most this share of the time, if they only waited for each other.
const FASTER: f64 = 0.75;
/// The ceiling where the number of workers is not known.
const CEILING: usize = 256;
/// The usual time follows longer ones in this time: not while a server is slow for a few minutes.
const USUAL_RISES_IN: f64 = 1_200_000.0;
/// And times that are shorter: a single short window does not decide.
const USUAL_FALLS: f64 = 0.3;

/// The reason for the limit in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitReason {
    /// `php_concurrency N`
    Configured,
    /// Nothing was measured yet.
    #[default]
    Start,
    /// More would only share the processors.
    Processors,
    /// All workers are worth while.
    Workers,
    /// Requests take as long as usual, and more of them may be worth while.
    Raised,
    /// Requests take a multiple of their usual time.
    Slow,
    /// None has ended for long.
    Stuck,
}

impl LimitReason {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Start => "not measured yet",
            Self::Processors => "processors",
            Self::Workers => "workers",
            Self::Raised => "raised",
            Self::Slow => "slow answers",
            Self::Stuck => "no request ends",
        }
    }
}

/// The limit, and the measurements behind it.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    concurrency: Concurrency,
    ceiling: usize,
    demand: ProcessorDemand,
    /// The limit by the time of requests.
    by_time: usize,
    times: Times,
    /// Requests that may go beyond the limit because none ends.
    beyond: usize,
    last_end: Option<Millis>,
    reason: LimitReason,
}

/// The times of requests, compared with the usual one.
#[derive(Debug, Default)]
struct Times {
    /// The usual geometric mean, in milliseconds; 0: not known.
    usual: f64,
    window: Window,
    /// Requests that are left from the limit before, and are no evidence for this one.
    unsettled: usize,
    /// The limit by times before it was lowered, and the mean with it.
    lowered: Option<(usize, f64)>,
    /// The last window was slow.
    was_slow: bool,
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Millis>,
    ended: u64,
    /// The sum of the logarithms of times.
    logarithms: f64,
    /// Requests that ended while others waited.
    awaited: u64,
}

impl ConcurrencyLimit {
    /// A limit for servers that take `workers` requests at once (`None`: not known).
    #[must_use]
    pub fn new(concurrency: Concurrency, workers: Option<usize>) -> Self {
        let cores = match concurrency {
            Concurrency::Auto { cores } => cores.max(1),
            Concurrency::Fixed(number) => number.max(1),
        };
        let is_auto = matches!(concurrency, Concurrency::Auto { .. });
        let mut limit = Self {
            concurrency,
            ceiling: CEILING,
            demand: ProcessorDemand::new(cores),
            // Half of PHP's time is waiting for a database.
            by_time: cores * 2,
            times: Times::default(),
            beyond: 0,
            last_end: None,
            reason: match is_auto {
                true => LimitReason::Start,
                false => LimitReason::Configured,
            },
        };
        limit.set_workers(workers);
        limit
    }

    /// The number of workers has changed.
    pub fn set_workers(&mut self, workers: Option<usize>) {
        self.ceiling = workers.unwrap_or(CEILING).max(1);
        self.by_time = self.by_time.clamp(self.floor(), self.ceiling);
    }

    /// The limit in force.
    #[must_use]
    pub fn limit(&self) -> usize {
        match self.concurrency {
            Concurrency::Fixed(number) => number.max(1),
            Concurrency::Auto { .. } => (self.within_bounds() + self.beyond).min(self.ceiling),
        }
    }

    /// The limit without those beyond it.
    fn within_bounds(&self) -> usize {
        let by_demand = self.demand.places().unwrap_or(self.ceiling);
        let least = self.by_time.min(by_demand);
        least.clamp(self.floor(), self.ceiling)
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> LimitReason {
        let by_demand = self.demand.places().unwrap_or(usize::MAX);
        match self.reason {
            LimitReason::Configured | LimitReason::Slow => self.reason,
            _ if self.beyond > 0 => LimitReason::Stuck,
            _ if by_demand < self.by_time => LimitReason::Processors,
            _ if self.by_time >= self.ceiling => LimitReason::Workers,
            reason => reason,
        }
    }

    /// Requests wait and none has ended for long: those under way may wait for them (a script that asks its
    /// own site), or take long by themselves. One more may go.
    pub fn note_waiting(&mut self, in_flight: usize, now: Millis) {
        let ended = *self.last_end.get_or_insert(now);
        if self.is_auto() && in_flight >= self.limit() && now.saturating_sub(ended) >= STUCK {
            self.beyond = (self.beyond + 1).min(self.ceiling - self.within_bounds());
        }
    }

    fn is_auto(&self) -> bool {
        matches!(self.concurrency, Concurrency::Auto { .. })
    }

    fn floor(&self) -> usize {
        match self.concurrency {
            Concurrency::Auto { cores } => cores.max(2).min(self.ceiling),
            Concurrency::Fixed(number) => number.max(1),
        }
    }

    /// The workers were looked at.
    pub fn note_load(&mut self, load: WorkerLoad) {
        let was_known = self.demand.places().is_some();
        self.demand.note(load);
        if !was_known && self.demand.places().is_some() && self.reason != LimitReason::Slow {
            // From now on the times only have to warn.
            self.by_time = self.ceiling;
        }
    }

    /// A request has ended that took `took`. `is_awaited`: others wait for its place.
    pub fn note(&mut self, took: Millis, is_awaited: bool, now: Millis) {
        if !self.is_auto() {
            return;
        }
        self.last_end = Some(now);
        let times = &mut self.times;
        if times.unsettled > 0 {
            times.unsettled -= 1;
            times.window.began = Some(now);
            return;
        }
        let began = *times.window.began.get_or_insert(now);
        let window = &mut times.window;
        window.ended += 1;
        window.logarithms += (took.max(1) as f64).ln();
        window.awaited += u64::from(is_awaited);
        let age = now.saturating_sub(began);
        if age >= WINDOW || age >= MIN_WINDOW && window.ended >= MIN_ENDED {
            let window = std::mem::take(window);
            times.window.began = Some(now);
            self.beyond = 0;
            if window.ended >= FEW {
                self.judge(&window, age);
            }
        }
    }

    fn judge(&mut self, window: &Window, age: Millis) {
        let mean = (window.logarithms / window.ended as f64).exp();
        let is_used = window.awaited * 2 >= window.ended;
        if let Some((before, slow_mean)) = self.times.lowered.take()
            && is_used
            && mean > slow_mean * FASTER
        {
            // They are slow by themselves: that is usual now.
            self.times.usual = mean;
            self.reason = LimitReason::Raised;
            self.set_by_time(before);
            return;
        }
        let stretch = match self.times.usual > 0.0 {
            true => mean / self.times.usual,
            false => 1.0,
        };
        let is_slow = is_used && stretch > SLOW;
        // The first slow window has requests that began before.
        let was_slow = std::mem::replace(&mut self.times.was_slow, is_slow);
        if is_slow && !was_slow {
            return;
        }
        if is_slow {
            let before = self.by_time;
            let in_force = self.within_bounds();
            self.reason = LimitReason::Slow;
            if in_force > self.floor() {
                self.times.lowered = Some((before, mean));
                self.set_by_time(in_force / 2);
            }
            return;
        }
        self.times.learn_usual(mean, age);
        if stretch <= USUAL && is_used {
            self.reason = LimitReason::Raised;
            self.set_by_time(self.by_time + (self.by_time / 2).max(1));
        }
    }

    fn set_by_time(&mut self, wanted: usize) {
        let before = self.within_bounds();
        self.by_time = wanted.clamp(self.floor(), self.ceiling);
        let after = self.within_bounds();
        if after != before {
            self.times.unsettled = before.max(after);
        }
    }
}

impl Times {
    fn learn_usual(&mut self, mean: f64, age: Millis) {
        let follows = match mean < self.usual {
            _ if self.usual == 0.0 => 1.0,
            true => USUAL_FALLS,
            false => age as f64 / USUAL_RISES_IN,
        };
        self.usual += (mean - self.usual) * follows.min(1.0);
    }
}

#[cfg(test)]
mod tests;
