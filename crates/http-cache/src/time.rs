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

    /// How long after `earlier` this is; zero when it is not after it.
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
    /// As a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
