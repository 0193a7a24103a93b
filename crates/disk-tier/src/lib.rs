//! A tier on disk for a cache: records in a log of segments, found through a small index in memory, with a journal of
//! purges beside them. Bytes in, bytes out: this crate knows neither HTTP nor what a key means.
//!
//! Under construction: the public types are those that stay; for now [`TierFolder`] keeps its records in memory.

#![allow(dead_code, reason = "used by the parts that follow")]

mod config;
mod error;
mod folder;
mod hash;
mod labels;
mod purge;
mod record;
mod state;
mod storage;
mod times;

pub use config::{SEGMENT_BYTES, SEGMENT_BYTES_MIN, TierConfig};
pub use error::TierError;
pub use folder::{RecordTicket, Recovery, TierFolder, UseVerdict, append_while_stopped};
pub use hash::stable_hash;
pub use labels::{LABEL_BYTES_MAX, LabelTooLong, RecordLabel, RecordLabels};
pub use purge::{
    PurgeMode, PurgeNotWritten, PurgeOutcome, PurgeTicket, StoppedPurge, TARGET_BYTES_MAX,
    WrittenPurge,
};
pub use record::{
    FilePart, INLINE_BODY_BYTES, NewRecord, ReadNow, RecordBody, RecordBytes, RecordPlace,
    RecordPlaces, StopReport, VARIANTS_MAX, WriteVerdict,
};
pub use state::{TierEvent, TierState, TierStats};
pub use storage::{FolderLock, ListedFile, Storage, StorageFile, SystemStorage};
pub use times::{RecordAge, TierTime};

use std::time::Duration;

/// The longest key.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// What is left of a record's lifetime when it is written or kept in turn.
pub const LIFETIME_MIN: Duration = Duration::from_secs(60);
/// What all journals of a folder may take; beyond it the oldest goes, and with it what is stored from before.
pub const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// After this time a write is tried again that the disk refused.
pub const WRITE_RETRY: Duration = Duration::from_secs(10);
/// So long the tier rests after slow reads.
pub const REST: Duration = Duration::from_secs(10);
/// Events that are kept until they are taken.
pub const EVENTS_MAX: usize = 1024;
