//! The reports of a tier: its state with the reason, numbers, and events that are worth a line in a log.

use std::fmt;

/// Whether the tier is of use now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierState {
    /// Reads and writes.
    Serving,
    /// Reads go on; the disk refused a write (full, read-only, failing). Tried again after [`crate::WRITE_RETRY`].
    ReadOnly(String),
    /// The disk refuses purges: neither reads nor writes until it has them. Tried again after [`crate::JOURNAL_RETRY`].
    JournalFailing(String),
    /// Reads were slow: neither reads nor writes for [`crate::REST`].
    Resting,
    /// Closed.
    Off,
}

impl fmt::Display for TierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierState::Serving => f.write_str("serving"),
            TierState::ReadOnly(reason) => write!(f, "reading only: {reason}"),
            TierState::JournalFailing(reason) => {
                write!(f, "off while purges cannot be written: {reason}")
            }
            TierState::Resting => f.write_str("resting: the disk is slow"),
            TierState::Off => f.write_str("off"),
        }
    }
}

/// Numbers since the start; the first four are of now.
// Large: numbers that are shown one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierStats {
    pub records: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    pub segments: u64,
    /// Bytes of memory that the index takes.
    pub index_bytes: u64,
    /// Whether all segments of earlier starts are loaded.
    pub is_loaded: bool,
    pub reads_inline: u64,
    pub reads_by_threads: u64,
    /// Reads for which the caller did not wait any more.
    pub reads_given_up: u64,
    /// Records whose check sum or form was wrong.
    pub damaged: u64,
    pub written: u64,
    pub written_bytes: u64,
    /// Records that were written again when their segment went, since they had been used.
    pub reinserted: u64,
    /// Records that were dropped since the writer could not keep up.
    pub dropped: u64,
    pub segments_dropped: u64,
    pub purges_written: u64,
    /// How often the disk was given up for a while: it refused records or purges, or was slow.
    pub outages: u64,
    pub journal_syncs: u64,
}

/// An event that is worth a line in a log. The crate itself writes none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierEvent {
    /// A file of another form, zone or fingerprint: skipped, and removed in its turn.
    SegmentSkipped {
        name: String,
        reason: String,
    },
    /// A file with a name like ours that is not ours: never touched.
    ForeignFile {
        name: String,
    },
    /// A segment without a footer, as after a `kill -9`, and the number of records that were found in it.
    SegmentScanned {
        name: String,
        records: u64,
    },
    /// Parts of a footer were damaged; records there were found one by one.
    FooterDamaged {
        name: String,
        records: u64,
    },
    /// Purges may be missing: records with an earlier stamp than the floor are void.
    JournalDamaged {
        reason: String,
        floor: u64,
    },
    /// The wall clock stands before the last moment it showed: records of earlier boots are stale.
    WallClockBehind {
        by_millis: u64,
    },
    /// The disk refuses purges. The tier is off until they are written.
    JournalFailed {
        reason: String,
    },
    /// All purges are written.
    JournalResumed,
    WritingStopped {
        reason: String,
    },
    WritingResumed,
    Resting,
    /// All segments are loaded.
    Loaded {
        records: u64,
        millis: u64,
    },
}

impl fmt::Display for TierEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierEvent::SegmentSkipped { name, reason } => write!(f, "{name} is skipped: {reason}"),
            TierEvent::ForeignFile { name } => {
                write!(f, "{name} is not of a cache, and is left alone")
            }
            TierEvent::SegmentScanned { name, records } => {
                write!(
                    f,
                    "{name} was not finished: {records} records were found in it"
                )
            }
            TierEvent::FooterDamaged { name, records } => {
                write!(
                    f,
                    "the footer of {name} is damaged: {records} records were found one by one"
                )
            }
            TierEvent::JournalDamaged { reason, floor } => {
                write!(
                    f,
                    "purges may be missing ({reason}): records before {floor:#x} are void"
                )
            }
            TierEvent::WallClockBehind { by_millis } => {
                write!(
                    f,
                    "the wall clock is {by_millis} ms behind: what was stored before is stale"
                )
            }
            TierEvent::JournalFailed { reason } => {
                write!(f, "purges cannot be written, and nothing is read: {reason}")
            }
            TierEvent::JournalResumed => f.write_str("purges are written again"),
            TierEvent::WritingStopped { reason } => write!(f, "writing stops: {reason}"),
            TierEvent::WritingResumed => f.write_str("writing goes on"),
            TierEvent::Resting => f.write_str("the disk is slow: the tier rests"),
            TierEvent::Loaded { records, millis } => {
                write!(f, "{records} records were loaded in {millis} ms")
            }
        }
    }
}
