//! The two clocks of a record, and its age when it is read: exact while the machine runs, by the wall clock across a
//! reboot, and unknown where the wall clock cannot be right.

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierTime {
    /// Unix time.
    pub wall_millis: u64,
    /// Since the machine was started, sleep included.
    pub boot_millis: u64,
}

/// How old a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordAge {
    /// So many milliseconds.
    Millis(u64),
    /// The wall clock stands before a moment that it has shown already: the record counts as stale, and is not gone.
    Unknown,
}
