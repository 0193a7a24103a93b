//! A sum that forgets: old additions count less. At a constant rate it equals the additions within its
//! time constant, so that one of 60 s reads as "in the last minute".

use crate::Millis;

/// A sum whose parts decay exponentially.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecayingSum {
    value: f64,
    at: Millis,
}

impl DecayingSum {
    /// Returns the decayed sum at `now`, with a time constant of `constant` milliseconds.
    pub fn value(&self, constant: f64, now: Millis) -> f64 {
        match now.saturating_sub(self.at) {
            age if age == 0 || self.value == 0.0 => self.value,
            age => self.value * (-(age as f64) / constant).exp(),
        }
    }

    /// Adds to the decayed sum, which never becomes negative.
    pub fn add(&mut self, amount: f64, constant: f64, now: Millis) {
        self.value = (self.value(constant, now) + amount).max(0.0);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_comes_to_what_is_added_within_the_time_constant() {
        let mut sum = DecayingSum::default();
        for second in 0..600 {
            sum.add(2.0, 60_000.0, second * 1000);
        }
        let value = sum.value(60_000.0, 599_000);
        assert!((118.0..124.0).contains(&value), "{value}");
        assert!(sum.value(60_000.0, 599_000 + 600_000) < 0.01);
    }
}
