//! A tier on disk for a cache: records in a log of segments, found through a small index in memory, with a journal of
//! purges beside them. Bytes in, bytes out: this crate knows neither HTTP nor the meaning of a key.
//!
//! **A record is a response whose fetch began at its stamp.** It may be used if no purge since then names one of its
//! labels. So nothing on the disk is changed by a purge: the purge is written down, and compared when a record is read.
//! This crate promises that a purge whose ticket resolved is in [`Recovery::purges`] after any fault (`kill -9`, a
//! power cut, flipped bits, lost files), or else that all records older than it are void ([`Recovery::floor`]); and
//! that no byte is read which was not written.
//!
//! ```text
//! FOLDER/lock          held by the one process that uses the folder
//! FOLDER/journal-N     purges, 64 bytes each; one file for each start, and more when it is full
//! FOLDER/seg-NNNNNN    up to 64 MB:  header | record | record | ...  | footer block ... | trailer
//!
//! record               header 64 | key | head | body | zeros up to 64
//! footer block         4,096 bytes with a check sum of their own: 127 records of 32 bytes
//!
//! memory               key hash ─► slot of 16 bytes: segment, offset, length, variant, used, verified
//! ```
//!
//! The files of `form/` have the layouts byte by byte. How the parts work together:
//!
//! ```text
//! find ─► index                         write ─► bounded queue ─► writer ─► segment under way ─► index
//!           │                                                       │ full
//!         read_now: page cache only                                 ▼
//!           │ not in memory                               footer; next segment; ring drops the oldest,
//!           ▼                                             and copies what was used since
//!         read ─► bounded queue ─► 1 to 4 threads
//!
//! append_purge ─► bounded queue ─► one write and one sync for all that wait ─► tickets
//! open ─► lock, journals, number of the start (synced) ─► loader: newest segment first, lookups meanwhile
//! ```
//!
//! - A segment is never written over. When it goes, its file is removed: senders of a part of it keep their open file
//!   ([`RecordBody::File`]).
//! - A damaged part costs its own records: a record, or, in the segment that a kill left unfinished, those behind it. A
//!   record is never looked for within bytes that a visitor may have chosen.
//! - No method waits for a disk, except [`TierFolder::open`], [`TierFolder::flush_for_stop`], [`TierFolder::close`], the
//!   `wait` of a ticket, [`append_while_stopped`] and [`verify()`].
//! - All input and output goes through [`Storage`]; with the feature `testing` there is a disk that fails as wanted.

mod admission;
mod clock_facts;
mod config;
mod error;
mod folder;
mod form;
mod hash;
mod health;
mod index;
mod journal;
mod listing;
mod loader;
mod parts;
mod purge;
mod read_queue;
mod reader;
mod record;
mod ring;
mod scan;
mod segments;
mod start;
mod state;
mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod times;
mod verify;
mod write_queue;
mod writer;

pub use admission::{MIN_USES, UseSketch};
pub use config::{
    JOURNAL_RETRY, MAX_EVENTS, MAX_HEAD_BYTES, MAX_JOURNAL_BYTES, MAX_KEY_BYTES, MIN_LIFETIME,
    MIN_SEGMENT_BYTES, REST, SEGMENT_BYTES, TierConfig, WRITE_RETRY,
};
pub use error::TierError;
pub use folder::{Recovery, TierFolder, UseVerdict};
pub use hash::stable_hash;
pub use purge::{
    LogPosition, MAX_TARGET_BYTES, PurgeMode, PurgeNotWritten, PurgeOutcome, PurgeTicket,
    StoppedPurge, WrittenPurge,
};
pub use read_queue::RecordTicket;
pub use record::{
    INLINE_BODY_BYTES, MAX_VARIANTS, NewRecord, ReadNow, RecordBody, RecordBytes, RecordPlace,
    RecordPlaces, StopReport, WriteVerdict,
};
pub use start::{MAX_STOPPED_PURGES, append_while_stopped, is_in_use};
pub use state::{TierEvent, TierState, TierStats};
pub use storage::{FolderLock, ListedFile, Storage, StorageFile, SystemStorage};
pub use times::{RecordAge, TierTime};
pub use verify::{FolderReport, SegmentEnd, SegmentFinding, SegmentReport, fuzz_form, verify};
