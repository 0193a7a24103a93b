//! A histogram of durations: bounded memory, percentiles within a hundredth.
//!
//! Each power of two of nanoseconds is cut into 128 equal parts, so a bucket is at most 1/128 wide
//! of the value it stands for.

use std::time::Duration;

const PART_BITS: u32 = 7;
const PARTS: usize = 1 << PART_BITS;
/// Powers of two above the first exact ones: up to 2^44 ns, almost five hours.
const POWERS: usize = 38;

/// How long requests took.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; PARTS * POWERS],
            total: 0,
            longest: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Counts one request.
    pub fn add(&mut self, took: Duration) {
        self.counts[bucket(nanoseconds(took))] += 1;
        self.total += 1;
        self.longest = self.longest.max(took);
    }

    /// The duration that `share` (0 to 1) of the requests did not exceed; zero without requests.
    pub fn percentile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_bound(index)).min(self.longest);
            }
        }
        self.longest
    }

    /// The longest of all.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.total
    }
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn bucket(value: u64) -> usize {
    let power = (u64::BITS - (value >> PART_BITS).leading_zeros()) as usize;
    let part = (value >> power.saturating_sub(1)) as usize % PARTS;
    (power * PARTS + part).min(PARTS * POWERS - 1)
}

/// The largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    let (power, part) = (index / PARTS, (index % PARTS) as u64);
    match power {
        0 => part,
        _ => ((part + PARTS as u64 + 1) << (power - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_value_within_a_hundredth() {
        for value in [
            0,
            1,
            127,
            128,
            129,
            255,
            256,
            1_000,
            65_535,
            1_000_000,
            60_000_000_000,
        ] {
            let upper = upper_bound(bucket(value));
            assert!(upper >= value, "{value} lies above its bucket {upper}");
            assert!(upper <= value + value / 100, "{value} reads as {upper}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut histogram = Histogram::default();
        for millisecond in 1..=1000 {
            histogram.add(Duration::from_millis(millisecond));
        }
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            let read = histogram.percentile(share).as_secs_f64() * 1000.0;
            assert!(
                (read / expected - 1.0).abs() < 0.01,
                "{share}: {read} for {expected}"
            );
        }
        assert_eq!(histogram.longest(), Duration::from_secs(1));
    }

    #[test]
    fn nothing_counted_is_no_time() {
        assert_eq!(Histogram::default().percentile(0.999), Duration::ZERO);
    }

    #[test]
    fn hours_do_not_overflow() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::from_secs(1 << 40));
        assert_eq!(histogram.total(), 1);
    }
}
