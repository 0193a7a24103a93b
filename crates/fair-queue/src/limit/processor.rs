//! The number of scripts at once that keeps the processors busy.
//!
//! A script of 10 ms on a processor that waits 30 ms for a database leaves the processor to three others.
//! So `cores * (1 + waiting / computing)` scripts are worth while. The kernel counts for each worker how
//! long it ran and how long it was ready without a processor; a request's other time is waiting for a
//! database, another server, or a reader.
//!
//! A database on this machine waits for the same processors: its time is stretched as that of scripts is,
//! and so the waiting is divided by the stretch of scripts. Otherwise more scripts would make longer
//! waits, and longer waits make room for more scripts.
//!
//! Scripts do not take turns on a processor without gaps, and so waiting scripts need more places than that:
//! the more, the less scripts had to share the processors.

/// The time of the workers between two looks at them, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerLoad {
    /// On a processor.
    pub computing: f64,
    /// Ready, without a processor.
    pub ready: f64,
    /// Requests under way, each for its time.
    pub under_way: f64,
    /// The number of workers.
    pub workers: usize,
}

/// What a look adds to the sums counts for this share of the time that is already in them.
const FORGETS: f64 = 0.7;
/// Less time of requests is no evidence.
const MIN_UNDER_WAY: f64 = 200.0;
/// Requests beyond the number of workers wait in a line that we do not see. Two make a pool of another
/// program grow, if it can.
const BEYOND_WORKERS: usize = 2;
/// Scripts hardly share the processors if they take less than this multiple of their time on them, and
/// share them too much above the second.
const LITTLE_STRETCH: f64 = 1.8;
const MUCH_STRETCH: f64 = 2.2;
/// Places for each waiting script at most, and the steps of this number.
const MAX_SLACK: f64 = 4.0;
const MORE_SLACK: f64 = 1.25;
const LESS_SLACK: f64 = 0.8;

/// The demand for processors, of the last seconds in which requests were under way.
#[derive(Debug)]
pub(super) struct ProcessorDemand {
    cores: usize,
    sums: WorkerLoad,
    /// Places for each waiting script.
    slack: f64,
}

impl WorkerLoad {
    /// Returns the time that scripts were ready or ran, as a multiple of the time that they ran.
    fn stretch(self) -> f64 {
        1.0 + self.ready / self.computing.max(0.1)
    }
}

impl ProcessorDemand {
    pub fn new(cores: usize) -> Self {
        Self {
            cores,
            sums: WorkerLoad::default(),
            slack: 1.0,
        }
    }

    /// Adds a look.
    pub fn note(&mut self, load: WorkerLoad) {
        if load.under_way <= 0.0 {
            return;
        }
        // A look at few requests forgets little of what many have shown.
        let keeps = match load.under_way < self.sums.under_way {
            true => 1.0 - (1.0 - FORGETS) * load.under_way / self.sums.under_way,
            false => FORGETS,
        };
        let add = |sum: f64, new: f64| sum * keeps + new.max(0.0);
        self.sums = WorkerLoad {
            computing: add(self.sums.computing, load.computing),
            ready: add(self.sums.ready, load.ready),
            under_way: add(self.sums.under_way, load.under_way),
            workers: load.workers,
        };
        if load.under_way >= MIN_UNDER_WAY {
            let step = match load.stretch() {
                stretch if stretch < LITTLE_STRETCH => MORE_SLACK,
                stretch if stretch > MUCH_STRETCH => LESS_SLACK,
                _ => 1.0,
            };
            self.slack = (self.slack * step).clamp(1.0, MAX_SLACK);
        }
    }

    /// Returns how many scripts at once are worth while; `None`: not known.
    pub fn places(&self) -> Option<usize> {
        let WorkerLoad {
            computing,
            ready,
            under_way,
            workers,
        } = self.sums;
        if under_way < MIN_UNDER_WAY {
            return None;
        }
        let waiting = (under_way - computing - ready).max(0.0) / self.sums.stretch();
        let waiting_each = waiting / computing.max(0.1);
        let places = (self.cores as f64 * (1.0 + self.slack * waiting_each)).round() as usize;
        Some(places.min(workers + BEYOND_WORKERS))
    }
}
