//! Moments by two clocks, and ages.

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierTime {
    /// Unix time.
    pub wall_millis: u64,
    /// Since the machine was started, sleep included. 0: before that, or not known.
    pub boot_millis: u64,
}

/// How old a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordAge {
    /// A number of milliseconds.
    Millis(u64),
    /// The wall clock stands before a moment that it has shown already: the record counts as stale, and is not gone.
    Unknown,
}
