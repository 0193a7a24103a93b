//! The number of scripts at once that keeps the processors busy.
//!
//! A script of 10 ms on a processor that waits 30 ms for a database leaves the processor to three others.
//! The kernel counts for each worker how long it ran and how long it was ready without a processor; a
//! request's other time is waiting for a database, another server, or a reader.
//!
//! Scripts do not take turns on a processor without gaps. The processors' use by a number of scripts at once
//! follows from the relation of waiting to computing alone, by the finite source queue `M/M/c//N`; where
//! processors are shared, as here, the result is the same for any distribution of both times. The number in
//! force is the lowest that uses [`WELL_USED`] of the processors: each one more would bring little, and would
//! slow the page of a visitor who comes.
//!
//! A database on this machine waits for the same processors: its time is stretched as that of scripts is.
//! Without correction more scripts would make longer waits, and longer waits make room for more scripts. The
//! waiting is therefore divided by the stretch of scripts, as far as they do not cause that stretch themselves.

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
/// This share of the processors' time used by scripts is enough. A request has a few milliseconds beside its
/// script, which are waiting here, so that scripts that only compute never use all.
const WELL_USED: f64 = 0.87;

/// Weights are only compared with each other: larger ones are scaled down.
const MAX_WEIGHT: f64 = 1e100;

/// The demand for processors, of the last seconds in which requests were under way.
#[derive(Debug)]
pub(super) struct ProcessorDemand {
    cores: usize,
    sums: WorkerLoad,
    /// The scripts at once that are worth while; `None`: not known.
    places: Option<usize>,
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
            places: None,
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
        self.places = self.worth_while();
    }

    /// Returns how many scripts at once are worth while; `None`: not known.
    pub fn places(&self) -> Option<usize> {
        self.places
    }

    fn worth_while(&self) -> Option<usize> {
        let WorkerLoad {
            computing,
            ready,
            under_way,
            workers,
        } = self.sums;
        if under_way < MIN_UNDER_WAY {
            return None;
        }
        let most = workers + BEYOND_WORKERS;
        let waiting = (under_way - computing - ready).max(0.0) / computing.max(0.1);
        let by_themselves = Sharing::of(self.cores, waiting, self.places.unwrap_or(self.cores));
        let by_others = (self.sums.stretch() / by_themselves.stretch).max(1.0);
        Some(enough_scripts(self.cores, waiting / by_others, most))
    }
}

/// Returns the lowest number of scripts at once that uses the processors well, up to `most`. A script waits
/// `waiting` times as long as it computes.
fn enough_scripts(cores: usize, waiting: f64, most: usize) -> usize {
    // So many would do if they took turns without gaps.
    let at_least = (WELL_USED * cores as f64 * (1.0 + waiting)) as usize;
    let mut scripts = at_least.max(cores).min(most);
    while scripts < most && Sharing::of(cores, waiting, scripts).used_share < WELL_USED {
        scripts += 1;
    }
    scripts
}

/// The processors, shared by a number of scripts at once.
#[derive(Debug)]
struct Sharing {
    /// The share of the processors' time that scripts use.
    used_share: f64,
    /// The time of a script that does not wait, as a multiple of its time on a processor.
    stretch: f64,
}

impl Sharing {
    /// Scripts that wait `waiting` times as long as they compute.
    fn of(cores: usize, waiting: f64, scripts: usize) -> Self {
        // The weight of the state in which `computing` scripts want a processor, from all scripts downwards.
        let mut weight = 1.0;
        let (mut all, mut used, mut wanted) = (0.0, 0.0, 0.0);
        for computing in (0..=scripts.max(1)).rev() {
            let busy = computing.min(cores) as f64;
            all += weight;
            used += weight * busy;
            wanted += weight * computing as f64;
            weight *= busy * waiting / (scripts.max(1) - computing + 1) as f64;
            if weight > MAX_WEIGHT {
                (all, used, wanted) = (all / weight, used / weight, wanted / weight);
                weight = 1.0;
            }
        }
        Self {
            used_share: used / (all * cores as f64),
            stretch: wanted / used,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_scripts_use_more_of_the_processors_and_never_more_than_all() {
        for cores in [1, 2, 64] {
            for waiting in [0.0, 0.1, 1.0, 20.0, 1000.0] {
                let mut before = 0.0;
                for scripts in 1..400 {
                    let share = Sharing::of(cores, waiting, scripts).used_share;
                    let most = scripts as f64 / (cores as f64 * (1.0 + waiting));
                    assert!(share + 1e-9 >= before && share <= most.min(1.0) + 1e-9);
                    before = share;
                }
            }
        }
        // One processor, two scripts, as much waiting as computing: 4/5 (Kleinrock, Queueing Systems I, 3.8).
        assert!((Sharing::of(1, 1.0, 2).used_share - 0.8).abs() < 1e-9);
    }

    #[test]
    fn scripts_that_hardly_wait_have_a_place_for_each_core() {
        for cores in 1..100 {
            for waiting in [0.0, 0.05, 0.1, 0.14] {
                assert_eq!(enough_scripts(cores, waiting, 1000), cores, "{waiting}");
            }
        }
    }

    #[test]
    fn waiting_scripts_have_more_places_up_to_the_workers() {
        let places = [0.25, 0.5, 1.0, 3.0, 10.0, 1e9].map(|it| enough_scripts(2, it, 18));
        assert_eq!(places, [3, 3, 5, 9, 18, 18]);
    }
}
