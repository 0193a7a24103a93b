//! Time as this crate sees it: a number the caller passes in.
//!
//! Nothing here reads a clock. The server takes one reading per request from a steady clock that
//! is set to Unix time once, so that differences never jump, and hands it down. Only
//! [`crate::decide`] compares with dates that others wrote: its moment is the wall clock's.

use std::time::Duration;

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// The end of time: nothing that expires then ever expires.
    pub const MAX: Millis = Millis(u64::MAX);

    /// The moment `duration` later; [`Millis::MAX`] where that does not fit.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Millis {
        Millis(self.0.saturating_add(as_millis(duration)))
    }

    /// The moment `duration` earlier; the epoch where that does not fit.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Millis {
        Millis(self.0.saturating_sub(as_millis(duration)))
    }

    /// Returns how long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Millis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub fn as_secs(self) -> u64 {
        self.0 / 1000
    }
}

/// A length of time in milliseconds: half of the room that a [`Duration`] takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    millis: u64,
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span {
            millis: as_millis(duration),
        }
    }
}

impl Span {
    /// Returns the span as a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

/// A length of time in two bytes, to eleven significant bits: a stored response has no room for
/// more. Up to an hour; a longer time counts as the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoughSpan(u16);

/// Bits of a [`RoughSpan`] that are a number; those above say how far it is shifted to the left.
const ROUGH_BITS: u32 = 11;

impl From<Duration> for RoughSpan {
    fn from(duration: Duration) -> RoughSpan {
        let micros = duration.min(Duration::from_secs(3600)).as_micros() as u64;
        let bits = u64::BITS - micros.leading_zeros();
        let shift = bits.saturating_sub(ROUGH_BITS);
        // An hour has 32 bits: the shift is 21 at most, and fits its five bits.
        RoughSpan((shift << ROUGH_BITS) as u16 | (micros >> shift) as u16)
    }
}

impl RoughSpan {
    /// Returns the bits that a record stores.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The length of time with these bits.
    pub(crate) fn from_bits(bits: u16) -> RoughSpan {
        RoughSpan(bits)
    }

    /// Returns the span in microseconds.
    #[must_use]
    #[inline]
    pub fn micros(self) -> u64 {
        u64::from(self.0 & ((1 << ROUGH_BITS) - 1)) << (self.0 >> ROUGH_BITS)
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rough_span_is_right_to_a_thousandth() {
        let rough = |micros| RoughSpan::from(Duration::from_micros(micros)).micros();
        for micros in [0, 1, 2047] {
            assert_eq!(rough(micros), micros);
        }
        for micros in [
            2048,
            4999,
            123_456,
            59_999_999,
            3_599_999_999,
            3_600_000_000,
        ] {
            let shown = rough(micros);
            assert!(
                shown <= micros && micros - shown <= micros / 1000,
                "{micros}: {shown}"
            );
        }
        assert_eq!(rough(u64::MAX), rough(3_600_000_000));
    }
}
