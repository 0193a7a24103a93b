//! Which requests are timed and named: of each thread all of the first 127 of a minute, and of later ones
//! fewer and fewer, down to one in 64. So a small site is seen whole, and a busy one pays little: two
//! readings of a fine clock and the name of a page, for each hit, would be a tenth of its cost.
//!
//! A sample stands for as many requests as the mean distance `m` between it and the one before. The
//! distance is drawn by chance, so that a regular pattern of requests does not choose, and its mean is
//! set before: sums of these weights are right on average, whatever comes. How far off they are: of a
//! page that `k` requests of a minute were for, the standard deviation of its estimate is at most
//! `sqrt((m - 1) / k)` of it. That is nothing if a thread has 127 requests a minute; 36 % for a page
//! that has 60 of 600 (m is 9), 8 % for one that has 10,000 of 100,000 (m is 64); and over half an hour a
//! fifth of that.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The mean distance is this part of the requests that a thread has had in this [`PERIOD`],
const PART: u32 = 64;
/// and no more than this.
const MAX_MEAN_GAP: u32 = 64;
/// After this time it is 1 again.
const PERIOD: Duration = Duration::from_secs(60);

/// A request that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When its head was there.
    pub from: Instant,
    /// How many requests it stands for.
    pub weight: u32,
}

/// The sampling state of a thread.
#[derive(Clone, Copy)]
struct Sampler {
    random: u32,
    /// Requests of this period until the sample that is waited for.
    seen: u32,
    /// The mean of the distance that was drawn last.
    mean_gap: u32,
    began_at: Option<Instant>,
}

const NEW: Sampler = Sampler {
    random: 0x9E37_79B9,
    seen: 1,
    mean_gap: 1,
    began_at: None,
};

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(1) };
    static SAMPLER: Cell<Sampler> = const { Cell::new(NEW) };
}

/// The sample that this request is, if it is one.
#[inline]
pub fn start() -> Option<Sample> {
    LEFT.with(|left| {
        left.set(left.get().wrapping_sub(1));
        match left.get() {
            0 => Some(draw(left)),
            _ => None,
        }
    })
}

#[cold]
fn draw(left: &Cell<u32>) -> Sample {
    SAMPLER.with(|sampler| {
        let (mut next, from) = (sampler.get(), Instant::now());
        let weight = next.mean_gap;
        left.set(next.draw(from));
        sampler.set(next);
        Sample { from, weight }
    })
}

impl Sampler {
    /// Returns how many requests further the next sample is.
    fn draw(&mut self, now: Instant) -> u32 {
        let began_at = *self.began_at.get_or_insert(now);
        if now.saturating_duration_since(began_at) >= PERIOD {
            (self.began_at, self.seen) = (Some(now), 0);
        }
        self.mean_gap = (self.seen / PART).clamp(1, MAX_MEAN_GAP);
        // Marsaglia's xorshift: to foresee it gains nothing.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let gap = self.random % (2 * self.mean_gap - 1) + 1;
        self.seen = self.seen.saturating_add(gap);
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the requests that are looked at, and their weights, of `requests` in a
    /// minute.
    fn samples(sampler: &mut Sampler, requests: u32, now: Instant) -> Vec<(u32, u32)> {
        let (mut samples, mut at) = (Vec::new(), 1);
        while at <= requests {
            samples.push((at, sampler.mean_gap));
            at += sampler.draw(now);
        }
        samples
    }

    #[test]
    fn the_first_of_a_minute_are_all_looked_at_and_later_ones_are_fewer() {
        let (mut sampler, now) = (NEW, Instant::now());
        let samples = samples(&mut sampler, 100_000, now);
        let between = |from, to| {
            samples
                .iter()
                .filter(move |(at, _)| (from..to).contains(at))
        };
        assert_eq!(between(0, 128).count(), 127);
        assert!(between(0, 128).all(|&(_, weight)| weight == 1));
        // On average: 64 * ln(4096 / 128) = 222, and one in 64 of the later ones.
        let (growing, busy) = (between(128, 4096).count(), between(4096, 100_000).count());
        assert!((200..260).contains(&growing), "{growing}");
        assert!((1_400..1_600).contains(&busy), "{busy}");
        assert!(between(5_000, 100_000).all(|&(_, weight)| weight == 64));

        // Each distance from 1 to 127 occurs.
        let late: Vec<u32> = between(5_000, 100_000).map(|&(at, _)| at).collect();
        let mut gaps: Vec<u32> = late.windows(2).map(|two| two[1] - two[0]).collect();
        gaps.sort_unstable();
        gaps.dedup();
        assert!(gaps.len() > 120 && gaps.last() == Some(&127), "{gaps:?}");

        // In the next minute it begins anew.
        sampler.draw(now + PERIOD);
        assert!((0..64).all(|_| sampler.draw(now + PERIOD) == 1));
    }

    #[test]
    fn samples_stand_for_all_requests_whatever_share_of_them_is_meant() {
        let (mut sampler, mut now) = (NEW, Instant::now());
        for requests in [64, 100, 600, 6_000] {
            let (mut all, mut tenth) = (0, 0);
            const MINUTES: u32 = 2_000;
            for _ in 0..MINUTES {
                let samples = samples(&mut sampler, requests, now);
                all += samples.iter().map(|(_, weight)| weight).sum::<u32>();
                // A pattern that a fixed distance would see always or never.
                let third = samples.iter().filter(|(at, _)| at % 10 == 3);
                tenth += third.map(|(_, weight)| weight).sum::<u32>();
                now += PERIOD;
                sampler.draw(now);
            }
            let all = f64::from(all) / f64::from(requests * MINUTES);
            let truth = (1..=requests).filter(|at| at % 10 == 3).count() as f64;
            let tenth = f64::from(tenth) / truth / f64::from(MINUTES);
            assert!((0.98..1.02).contains(&all), "{requests}: {all}");
            assert!((0.96..1.04).contains(&tenth), "{requests}: {tenth}");
        }
    }
}
