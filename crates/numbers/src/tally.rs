//! A histogram that several threads count in at the same time, for requests that are no hits: each
//! value is two atomic additions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::snapshot::Distribution;
use crate::table::WAIT_BOUNDS;

/// How long things took that wait for an upstream, in the buckets of [`WAIT_BOUNDS`].
#[derive(Debug)]
pub struct WaitTally {
    buckets: [AtomicU64; WAIT_BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Default for WaitTally {
    fn default() -> WaitTally {
        WaitTally {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
        }
    }
}

impl WaitTally {
    /// Counts an event that took this time.
    pub fn note(&self, took: Duration) {
        let at = bucket(WAIT_BOUNDS, took.as_secs_f64());
        self.buckets[at].fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Relaxed);
    }

    /// All so far.
    #[must_use]
    pub fn read(&self) -> Distribution {
        let buckets = self.buckets.iter().map(|count| count.load(Relaxed));
        Distribution::new(buckets.collect(), self.micros.load(Relaxed) as f64 / 1e6)
    }
}

/// The bucket of a value: a bound belongs to the bucket below it, as in Prometheus.
#[must_use]
pub fn bucket(bounds: &[f64], value: f64) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        let tally = WaitTally::default();
        for micros in [0, 1000, 1001, 30_000_000, 30_000_001] {
            tally.note(Duration::from_micros(micros));
        }
        let read = tally.read();
        assert_eq!(read.count, 5);
        assert_eq!((read.buckets[0], read.buckets[1]), (2, 1));
        assert_eq!(read.buckets[WAIT_BOUNDS.len() - 1..], [1, 1]);
        assert!((read.sum - 60.002_002).abs() < 1e-9, "{}", read.sum);
    }
}
