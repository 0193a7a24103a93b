//! The age of a record when it is read: exact while the machine runs, by the wall clock across a reboot, and unknown
//! where the wall clock cannot be right.

use crate::form::record::RecordHeader;
use crate::times::{RecordAge, TierTime};

/// The boot and the clocks of this start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockFacts {
    /// The identity of this boot: 24 bits, never 0.
    pub(crate) boot: u32,
    /// The last moment that the wall clock showed to earlier starts.
    pub(crate) shown_wall_millis: u64,
}

impl ClockFacts {
    pub(crate) fn new(boot_number: u64, shown_wall_millis: u64) -> ClockFacts {
        let [low, middle, high, ..] = boot_number.to_le_bytes();
        ClockFacts {
            boot: u32::from_le_bytes([low, middle, high, 0]).max(1),
            shown_wall_millis,
        }
    }

    /// The boot that a record is of which was received at a time.
    pub(crate) fn boot_of(&self, received: TierTime) -> u32 {
        if received.boot_millis == 0 {
            0
        } else {
            self.boot
        }
    }

    /// How old a record is now.
    pub(crate) fn age(&self, record: &RecordHeader, now: TierTime) -> RecordAge {
        if record.boot == self.boot {
            return RecordAge::Millis(now.boot_millis.saturating_sub(record.boot_millis));
        }
        match now.wall_millis.checked_sub(record.wall_millis) {
            Some(age) if now.wall_millis >= self.shown_wall_millis => RecordAge::Millis(age),
            _ => RecordAge::Unknown,
        }
    }

    /// When a record was received, by the clocks of this boot.
    pub(crate) fn received(&self, record: &RecordHeader, now: TierTime) -> TierTime {
        let boot_millis = match self.age(record, now) {
            RecordAge::Millis(_) if record.boot == self.boot => record.boot_millis,
            RecordAge::Millis(age) => now.boot_millis.saturating_sub(age),
            RecordAge::Unknown => 0,
        };
        TierTime {
            wall_millis: record.wall_millis,
            boot_millis,
        }
    }
}
