//! Counts of a pool, since the server began.

use crate::record::Reason;

/// The comparison of a known page with the one that was made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It would have been kept, and is the same.
    FreshSame,
    /// It would have been kept, and is another: nothing that Mayfly saw explains it.
    FreshChanged,
    /// It was suspect, and is the same.
    SuspectSame,
    SuspectChanged,
}

impl Comparison {
    /// The words for metrics, in the order of the variants.
    pub const WORDS: [&'static str; 4] = [
        "fresh_same",
        "fresh_changed",
        "suspect_same",
        "suspect_changed",
    ];
}

/// The outcome of a statement that was run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEnd {
    /// It returned the same.
    Equal,
    Different,
    /// It did not return in time, or too much, or the server did not answer.
    Failed,
}

impl ReplayEnd {
    /// The words for metrics, in the order of the variants.
    pub const WORDS: [&'static str; 3] = ["equal", "different", "failed"];
}

/// The states of shapes for metrics: compared, kept, and refuted a short time ago.
pub const SHAPE_STATES: [&str; 3] = ["compared", "kept", "refuted"];

// Large: each is a metric of the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages that were learned, and made again.
    pub learned: u64,
    /// By [`Reason`].
    pub not_learned: [u64; Reason::ALL.len()],
    /// Statements that may have written.
    pub writes: u64,
    /// Writes from the binary log, each table and statement once at a time.
    pub logged: u64,
    /// Logs that are followed now.
    pub followed: u64,
    /// Pages that became suspect.
    pub matched: u64,
    /// Statements that were run again, by [`ReplayEnd`].
    pub replays: [u64; 3],
    /// Pages that were suspect and are fresh again.
    pub freshened: u64,
    /// By [`Comparison`].
    pub compared: [u64; 4],
    /// Pages that were made again for the comparison alone.
    pub audits: u64,
    /// Known now, and those of them that are suspect.
    pub pages: u64,
    pub suspect: u64,
    /// Pages that are kept beyond their ordinary lifetime now.
    pub kept: u64,
    /// Pages that were kept so, and are not any more: something may have changed.
    pub removed: u64,
    /// Shapes of addresses (`cache_learn auto`), by [`SHAPE_STATES`].
    pub shapes: [u64; 3],
    /// Connections of libraries that were refused or ended for what they sent.
    pub refused: u64,
}

impl Counts {
    pub fn note_not_learned(&mut self, reason: Reason) {
        if let Some(count) = self.not_learned.get_mut(reason as usize) {
            *count += 1;
        }
    }

    pub fn note_replay(&mut self, end: ReplayEnd) {
        if let Some(count) = self.replays.get_mut(end as usize) {
            *count += 1;
        }
    }

    pub fn note_comparison(&mut self, comparison: Comparison) {
        if let Some(count) = self.compared.get_mut(comparison as usize) {
            *count += 1;
        }
    }
}
