//! Which requests are timed: about one in sixteen, chosen at random, so that what repeats itself
//! among requests does not choose. Two readings of a fine clock for each hit would be a percent of
//! what it costs.

use std::cell::Cell;
use std::time::Instant;

/// Between two timed requests there are 1 to 31 of a thread.
const LONGEST_GAP: u32 = 31;

/// The mean distance: each timed request stands for so many.
pub const MEAN_GAP: u64 = 16;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(1) };
    static RANDOM: Cell<u32> = const { Cell::new(0x9E37_79B9) };
}

/// The time, if this request is one that is timed.
#[inline]
pub fn start() -> Option<Instant> {
    LEFT.with(|left| {
        left.set(left.get().wrapping_sub(1));
        match left.get() {
            0 => Some(draw(left)),
            _ => None,
        }
    })
}

#[cold]
fn draw(left: &Cell<u32>) -> Instant {
    // Marsaglia's xorshift: nobody gains by foreseeing it.
    RANDOM.with(|random| {
        let mut bits = random.get();
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        random.set(bits);
        left.set(bits % LONGEST_GAP + 1);
    });
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_sixteen_is_timed_and_at_no_fixed_distance() {
        let mut gaps = Vec::new();
        let mut since = 0;
        for _ in 0..160_000 {
            since += 1;
            if start().is_some() {
                gaps.push(since);
                since = 0;
            }
        }
        assert!((9_500..10_500).contains(&gaps.len()), "{}", gaps.len());
        for gap in 1..=LONGEST_GAP {
            assert!(gaps.contains(&gap), "{gap}");
        }
    }
}
