//! Records as callers see them: those handed over to be kept, and those read.

use crate::index::PackedPlace;
use crate::times::{RecordAge, TierTime};
use bytes::Bytes;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Bodies up to this size are read into memory, larger ones are handed out as a part of a file.
pub const INLINE_BODY_BYTES: usize = 12 << 10;
/// Variants of one key that are found; one more takes the place of the oldest.
pub const MAX_VARIANTS: usize = 8;

/// A record to be written.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// The cache key, at most [`crate::MAX_KEY_BYTES`].
    pub key: Bytes,
    /// The number of the response among those of one key: records with the same number replace each other. Eight bits
    /// of it are compared.
    pub variant: u64,
    /// The reading of the purge clock when the fetch began.
    pub stamp: u64,
    /// When the response was received.
    pub received: TierTime,
    /// How long from then on the response may be of use, stale use included. A record is neither written nor kept in
    /// turn when less than [`crate::MIN_LIFETIME`] of it is left.
    pub lifetime: Duration,
    /// Status, fields and lifetimes: opaque here.
    pub head: Bytes,
    pub body: Bytes,
}

/// The place of a record: a hint from memory. The record there is compared with the key when it is read.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct RecordPlace {
    pub(crate) key_hash: u64,
    pub(crate) packed: u64,
}

impl RecordPlace {
    /// Whether the record may be of this variant.
    #[must_use]
    pub fn is_of_variant(&self, variant: u64) -> bool {
        PackedPlace(self.packed).variant() == variant & 0xff
    }
}

/// The places of the records of one key hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordPlaces {
    pub(crate) count: usize,
    pub(crate) places: [Option<RecordPlace>; MAX_VARIANTS],
}

impl RecordPlaces {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = RecordPlace> + '_ {
        self.places.iter().copied().flatten()
    }
}

/// A record that was read: its key was compared, and its check sums are right.
#[derive(Clone, Debug)]
pub struct RecordBytes {
    pub stamp: u64,
    pub received: TierTime,
    /// How old it is now, as far as that is known.
    pub age: RecordAge,
    pub lifetime: Duration,
    pub head: Bytes,
    pub body: RecordBody,
}

#[derive(Clone, Debug)]
pub enum RecordBody {
    Inline(Bytes),
    /// More than [`INLINE_BODY_BYTES`]: bytes of a file that are never changed. The file stays readable while this is
    /// held, even if its segment is dropped.
    File {
        file: Arc<File>,
        offset: u64,
        len: u64,
    },
}

/// The result of reading without waiting.
#[derive(Clone, Debug)]
pub enum ReadNow {
    Record(Box<RecordBytes>),
    /// The disk must be asked: [`crate::TierFolder::read`].
    NotInMemory,
    /// There is another key, nothing, or something damaged. The place is forgotten where it is damaged.
    Missing,
}

/// The fate of a record that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerdict {
    Queued,
    /// The writer cannot keep up.
    QueueFull,
    /// Less than [`crate::MIN_LIFETIME`] is left.
    ShortLived,
    /// Larger than a quarter of a segment, or a part of it passes a bound.
    TooLarge,
    /// Purges of that time are not in the journal any more.
    BeforeFloor,
    /// The tier is off, for all or for writing.
    NotWriting,
}

/// The result of writing at a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopReport {
    pub written: u64,
    /// Records that were offered and could not be written any more, or are not worth it.
    pub left: u64,
}
