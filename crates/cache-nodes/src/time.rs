//! Readings of a node's clock, and the two times that the protocol knows.

use std::time::Duration;

/// Milliseconds of a clock that never goes back and goes on while the machine sleeps
/// (`CLOCK_BOOTTIME`). Readings of two nodes cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootMillis(pub u64);

impl BootMillis {
    /// Returns the time this many milliseconds later.
    #[must_use]
    pub fn plus(self, millis: u64) -> BootMillis {
        BootMillis(self.0.saturating_add(millis))
    }
}

/// How long a lease lasts, and how long a publisher waits until it takes a lease for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTimes {
    /// From before `renew` was sent, on the holder's clock, in milliseconds.
    pub lease: u64,
    /// From when the publisher first saw a beat, on the publisher's clock, in milliseconds. Longer
    /// than the lease by the time that two clocks may differ meanwhile.
    pub expiry_wait: u64,
}

impl LeaseTimes {
    /// For clocks that differ in speed by less than 1 %, with 50 ms to spare for readings that are
    /// rounded.
    #[must_use]
    pub fn of(lease: Duration) -> LeaseTimes {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        LeaseTimes {
            lease,
            expiry_wait: lease.saturating_add(lease / 100).saturating_add(50),
        }
    }

    /// How often a node renews its lease, in milliseconds.
    #[must_use]
    pub fn renew_each(&self) -> u64 {
        (self.lease / 4).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_waits_longer_than_a_lease_lasts_on_a_clock_that_is_one_percent_slower() {
        let times = LeaseTimes::of(Duration::from_secs(2));
        assert_eq!((times.lease, times.expiry_wait), (2000, 2070));
        assert_eq!(times.renew_each(), 500);
        assert_eq!(LeaseTimes::of(Duration::from_millis(2)).renew_each(), 1);
    }
}
