//! The number of requests at once that is worth while, found from latency and throughput.
//!
//! Latency shows when to try another limit: if requests take longer than they did when there was room (the
//! gradient of TCP Vegas and of Netflix's concurrency-limits), a lower one may do. Throughput decides: by
//! Little's law the requests under way are the answers per second times their time. If a lower limit brings
//! as many answers, requests only waited within the server; if it brings fewer, they were at work. Latency
//! alone would take a run of slow pages for a busy machine.
//!
//! ```text
//!           slower than usual                fewer answers: back
//! steady ───────────────────► try lower ────────────────────────► hold
//!   │  as usual                     └ as many: it stays
//!   └───────────────────────► try higher ─ more answers: it stays
//!                                   └───── not more: back ───────► hold
//! ```

use crate::Millis;

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
/// ... and at the earliest after this time, if enough requests have ended: a number of them, and a number
/// for each that may be under way.
const MIN_WINDOW: Millis = 400;
const MIN_ENDED: u64 = 48;
const MIN_ENDED_EACH: u64 = 4;
/// A window in which fewer requests have ended is not judged.
const TOO_FEW: u64 = 3;
/// If no request has ended for this time, those under way do not end by waiting for them.
const STUCK: Millis = 3000;
/// Times that are longer than the usual one by this factor are slow.
const SLOW: f64 = 1.25;
/// A lower limit stays that brings at least this share of the answers.
const AS_MANY: f64 = 0.9;
/// The number of windows for which a limit that brought nothing is not tried again.
const HOLD_WINDOWS: u32 = 8;
/// The ceiling where the number of workers is not known.
const CEILING: usize = 256;
/// How fast the usual time follows times that are longer, in a window.
const USUAL_RISES: f64 = 0.01;
/// And times that are shorter: a single short window does not decide.
const USUAL_FALLS: f64 = 0.3;

/// The reason for the limit in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitReason {
    /// `php_concurrency N`
    Configured,
    /// The number of requests has not reached it.
    #[default]
    Enough,
    /// More requests at once bring more answers.
    Raised,
    /// The lower limit brought as many answers.
    Lowered,
    /// Fewer answers came when it was lower, or not more when it was higher.
    Held,
}

impl LimitReason {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Enough => "not reached",
            Self::Raised => "raised",
            Self::Lowered => "lowered",
            Self::Held => "held",
        }
    }
}

/// The limit, and the measurements behind it.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    concurrency: Concurrency,
    ceiling: usize,
    limit: usize,
    /// The usual time of a request, in milliseconds; 0: not known.
    usual: f64,
    window: Window,
    /// Requests that are left from the limit before, and are no evidence for this one.
    unsettled: usize,
    last_end: Option<Millis>,
    trial: Option<Trial>,
    /// The last window was slow.
    was_slow: bool,
    /// No limit was too high yet.
    is_starting: bool,
    /// Windows for which no higher limit is tried, and no lower one.
    hold_higher: u32,
    hold_lower: u32,
    reason: LimitReason,
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Millis>,
    ended: u64,
    time: f64,
    /// Requests that ended while others waited.
    awaited: u64,
}

/// A limit that is being tried.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: usize,
    /// Answers per second with that.
    rate: f64,
}

impl ConcurrencyLimit {
    /// A limit for servers that take `workers` requests at once (`None`: not known).
    #[must_use]
    pub fn new(concurrency: Concurrency, workers: Option<usize>) -> Self {
        let mut limit = Self {
            concurrency,
            ceiling: CEILING,
            limit: 0,
            usual: 0.0,
            window: Window::default(),
            unsettled: 0,
            last_end: None,
            trial: None,
            was_slow: false,
            is_starting: true,
            hold_higher: 0,
            hold_lower: 0,
            reason: LimitReason::default(),
        };
        limit.set_workers(workers);
        limit.limit = match concurrency {
            Concurrency::Fixed(number) => number.max(1),
            // Twice the cores: half of PHP's time is waiting for a database.
            Concurrency::Auto { cores } => (cores * 2).clamp(limit.floor(), limit.ceiling),
        };
        if matches!(concurrency, Concurrency::Fixed(_)) {
            limit.reason = LimitReason::Configured;
        }
        limit
    }

    /// The number of workers has changed.
    pub fn set_workers(&mut self, workers: Option<usize>) {
        self.ceiling = workers.unwrap_or(CEILING).max(1);
        if let Concurrency::Auto { .. } = self.concurrency {
            self.limit = self.limit.clamp(self.floor(), self.ceiling);
        }
    }

    /// The limit in force.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> LimitReason {
        self.reason
    }

    /// Requests wait and none has ended for long: those under way may wait for them (a script that asks its
    /// own site), or take long by themselves. One more may go.
    pub fn note_waiting(&mut self, in_flight: usize, now: Millis) {
        let ended = *self.last_end.get_or_insert(now);
        if matches!(self.concurrency, Concurrency::Auto { .. })
            && in_flight >= self.limit
            && now.saturating_sub(ended) >= STUCK
        {
            self.limit = (self.limit + 1).min(self.ceiling);
            self.reason = LimitReason::Raised;
            self.trial = None;
        }
    }

    fn floor(&self) -> usize {
        match self.concurrency {
            Concurrency::Auto { cores } => cores.max(2).min(self.ceiling),
            Concurrency::Fixed(number) => number.max(1),
        }
    }

    /// A request has ended that took `took`. `is_awaited`: others wait for its place.
    pub fn note(&mut self, took: Millis, is_awaited: bool, now: Millis) {
        if matches!(self.concurrency, Concurrency::Fixed(_)) {
            return;
        }
        self.last_end = Some(now);
        if self.unsettled > 0 {
            self.unsettled -= 1;
            self.window.began = Some(now);
            return;
        }
        let began = *self.window.began.get_or_insert(now);
        self.window.ended += 1;
        self.window.time += took as f64;
        self.window.awaited += u64::from(is_awaited);
        let age = now.saturating_sub(began);
        let is_enough = self.window.ended >= MIN_ENDED.max(MIN_ENDED_EACH * self.limit as u64);
        if age >= WINDOW || age >= MIN_WINDOW && is_enough {
            let window = std::mem::take(&mut self.window);
            self.window.began = Some(now);
            if window.ended > TOO_FEW {
                self.judge(&window, age);
            }
        }
    }

    fn judge(&mut self, window: &Window, age: Millis) {
        let mean = (window.time / window.ended as f64).max(0.5);
        let rate = window.ended as f64 * 1000.0 / age.max(1) as f64;
        let is_used = window.awaited * 2 >= window.ended;
        if let Some(trial) = self.trial.take()
            && is_used
        {
            return self.end_trial(trial, mean, rate);
        }
        self.learn_usual(mean);
        let (may_rise, may_fall) = (self.hold_higher == 0, self.hold_lower == 0);
        self.hold_higher = self.hold_higher.saturating_sub(1);
        self.hold_lower = self.hold_lower.saturating_sub(1);
        let is_slow = mean > self.usual * SLOW;
        // The first slow window may have begun before: its rate is not that of slow requests.
        let is_slow_again = is_slow && self.was_slow;
        self.was_slow = is_slow;
        if !is_used {
            self.reason = LimitReason::Enough;
            return;
        }
        let before = self.limit;
        let wanted = match is_slow {
            true if is_slow_again && may_fall => {
                let wanted = before as f64 * self.usual / mean;
                // A smaller step would be lost in chance.
                (wanted as usize).clamp(before / 2, before * 2 / 3)
            }
            // Slow start, like TCP's: twice as many, until that is too many.
            false if may_rise && self.is_starting => before * 2,
            false if may_rise => before + (before / 2).max(1),
            _ => before,
        };
        self.limit = wanted.clamp(self.floor(), self.ceiling);
        if self.limit != before {
            self.trial = Some(Trial { before, rate });
            self.unsettled = before.max(self.limit);
        }
    }

    /// A limit was tried: it stays if it brought more, or no less.
    fn end_trial(&mut self, trial: Trial, mean: f64, rate: f64) {
        let change = rate / trial.rate;
        // Half of the gain of a higher limit, if all requests under way were at work.
        let expected = self.limit as f64 / trial.before as f64;
        let is_higher = self.limit > trial.before;
        let is_good = match is_higher {
            true => change > f64::midpoint(1.0, expected),
            false => change > AS_MANY,
        };
        match (is_higher, is_good) {
            (true, true) => {
                self.reason = LimitReason::Raised;
                self.learn_usual(mean);
            }
            (true, false) => {
                self.hold_higher = HOLD_WINDOWS;
                self.is_starting = false;
                self.go_back(trial);
            }
            (false, true) => self.reason = LimitReason::Lowered,
            (false, false) => {
                // They are slow by themselves: that is usual now.
                self.usual = mean;
                self.hold_lower = HOLD_WINDOWS;
                self.go_back(trial);
            }
        }
    }

    fn go_back(&mut self, trial: Trial) {
        self.unsettled = trial.before.max(self.limit);
        self.limit = trial.before.clamp(self.floor(), self.ceiling);
        self.reason = LimitReason::Held;
    }

    fn learn_usual(&mut self, mean: f64) {
        let follows = match mean < self.usual {
            _ if self.usual == 0.0 => 1.0,
            true => USUAL_FALLS,
            false => USUAL_RISES,
        };
        self.usual += (mean - self.usual) * follows;
    }
}

#[cfg(test)]
mod tests;
