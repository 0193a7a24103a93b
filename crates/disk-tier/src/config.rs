//! The settings with which a tier is opened, and the bounds that are not for its user to choose.

use crate::error::TierError;
use std::time::Duration;

/// The longest key.
pub const MAX_KEY_BYTES: usize = u16::MAX as usize;
/// The longest head.
pub const MAX_HEAD_BYTES: usize = 1 << 20;
/// The shortest remaining lifetime with which a record is written or kept in turn.
pub const MIN_LIFETIME: Duration = Duration::from_secs(60);
/// The bound of all journals of a folder; beyond it the oldest goes, and with it the records stored before.
pub const MAX_JOURNAL_BYTES: u64 = 256 << 20;
/// After this time a write is tried again that the disk refused.
pub const WRITE_RETRY: Duration = Duration::from_secs(10);
/// After this time purges are tried again that the disk refused.
pub const JOURNAL_RETRY: Duration = Duration::from_secs(1);
/// How long the tier rests after slow reads.
pub const REST: Duration = Duration::from_secs(10);
/// Events that are kept until they are taken.
pub const MAX_EVENTS: usize = 1024;
/// The size of a segment where `max_bytes` allows it.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// The smallest segment: a tier of less than sixteen of these is not worth its files.
pub const MIN_SEGMENT_BYTES: u64 = 256 << 10;
/// The least number of segments in a full tier, so that dropping the oldest costs a sixteenth of it.
const MIN_SEGMENTS: u64 = 16;

/// One that is written, one that is copied into while the oldest goes, and two with records.
const SEGMENTS_NEEDED: u64 = 4;

/// The terms of a tier.
#[derive(Clone, Debug)]
pub struct TierConfig {
    /// The bound of all segments together. Journals come on top, see [`crate::MAX_JOURNAL_BYTES`].
    pub max_bytes: u64,
    /// The bytes left free on the file system: below that number the oldest segments go.
    pub min_free_bytes: u64,
    /// A record that was not used for this long goes with its segment, at the latest after twice as long.
    pub inactive: Duration,
    /// The zone to which the records belong; segments of another one are skipped and overwritten in turn.
    pub zone: u64,
    /// The meaning of the records: a hash of all rules that make keys and variants. Segments with another one are
    /// skipped and overwritten in turn.
    pub fingerprint: u64,
    /// The size of a segment; a power of two between [`MIN_SEGMENT_BYTES`] and [`SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Threads that read records outside of the page cache, 1 to 4.
    pub reading_threads: usize,
}

impl TierConfig {
    /// The usual terms for a tier of this size.
    #[must_use]
    pub fn new(max_bytes: u64) -> TierConfig {
        let share = (max_bytes / MIN_SEGMENTS).max(1);
        let power = 1 << share.ilog2();
        TierConfig {
            max_bytes,
            min_free_bytes: 0,
            inactive: Duration::from_secs(24 * 60 * 60),
            zone: 0,
            fingerprint: 0,
            segment_bytes: power.clamp(MIN_SEGMENT_BYTES, SEGMENT_BYTES),
            reading_threads: 2,
        }
    }

    /// Do the terms make sense?
    pub(crate) fn check(&self) -> Result<(), TierError> {
        if !(MIN_SEGMENT_BYTES..=SEGMENT_BYTES).contains(&self.segment_bytes) {
            Err(TierError::Terms(
                "segment_bytes is not between 256 KB and 64 MB",
            ))
        } else if self.max_bytes < SEGMENTS_NEEDED * self.segment_bytes {
            Err(TierError::Terms("max_bytes is less than four segments"))
        } else {
            Ok(())
        }
    }
}
