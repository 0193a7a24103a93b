//! The parts that the threads of a tier share.

use crate::admission::UseSketch;
use crate::clock_facts::ClockFacts;
use crate::config::{MAX_EVENTS, TierConfig};
use crate::health::TierHealth;
use crate::index::RecordIndex;
use crate::journal::queue::JournalQueue;
use crate::segments::SegmentTable;
use crate::state::{TierEvent, TierStats};
use crate::storage::{FolderLock, Storage};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Files with the names of segments that are of another form, zone or fingerprint: the first to go.
pub(crate) type SkippedFiles = Mutex<VecDeque<(String, u64)>>;

// Large: the tier has one of each, and its threads take them by name; most have a lock or a bound of their own.
#[derive(Debug)]
pub(crate) struct TierParts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) folder: PathBuf,
    pub(crate) config: TierConfig,
    pub(crate) start: u16,
    pub(crate) clocks: ClockFacts,
    pub(crate) index: RecordIndex,
    pub(crate) segments: SegmentTable,
    pub(crate) skipped: SkippedFiles,
    pub(crate) sketch: UseSketch,
    pub(crate) journal: JournalQueue,
    pub(crate) health: TierHealth,
    pub(crate) counters: TierCounters,
    /// Records with an earlier stamp are void.
    pub(crate) floor: AtomicU64,
    /// There is no room for another segment: records must earn their places.
    pub(crate) is_full: AtomicBool,
    pub(crate) is_loaded: AtomicBool,
    pub(crate) events: Mutex<VecDeque<TierEvent>>,
    /// Held as long as a thread may write.
    pub(crate) _lock: Box<dyn FolderLock>,
}

#[derive(Debug, Default)]
pub(crate) struct TierCounters {
    pub(crate) reads_inline: AtomicU64,
    pub(crate) reads_by_threads: AtomicU64,
    pub(crate) reads_given_up: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) reinserted: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) segments_dropped: AtomicU64,
    pub(crate) purges_written: AtomicU64,
    pub(crate) outages: AtomicU64,
}

/// One more, where only a sum is asked for.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl TierParts {
    pub(crate) fn boot_millis(&self) -> u64 {
        self.storage.now().boot_millis
    }

    /// Whether the tier may be used now.
    pub(crate) fn is_awake(&self) -> bool {
        let rests = self.health.may_rest() && self.health.is_resting(self.boot_millis());
        !self.health.is_closed() && !self.health.is_journal_failing() && !rests
    }

    pub(crate) fn say(&self, event: TierEvent) {
        if matches!(
            event,
            TierEvent::WritingStopped { .. } | TierEvent::JournalFailed { .. } | TierEvent::Resting
        ) {
            count(&self.counters.outages);
        }
        let mut events = self.events.lock();
        if events.len() < MAX_EVENTS {
            events.push_back(event);
        }
    }

    /// A write was refused.
    pub(crate) fn note_refused(&self, error: &io::Error) {
        if self.health.note_refused(error, self.boot_millis()) {
            self.say(TierEvent::WritingStopped {
                reason: error.to_string(),
            });
        }
    }

    pub(crate) fn note_written(&self) {
        if self.health.note_written() {
            self.say(TierEvent::WritingResumed);
        }
    }

    /// The bytes of all files that count for `max_bytes`.
    pub(crate) fn bytes(&self) -> u64 {
        let skipped: u64 = self.skipped.lock().iter().map(|(_, bytes)| bytes).sum();
        self.segments.bytes() + skipped
    }

    /// Notes whether there is room for a segment beside those there are, and for another one to
    /// copy into.
    pub(crate) fn note_fullness(&self) {
        let is_full = self.bytes() + 2 * self.config.segment_bytes > self.config.max_bytes;
        self.is_full.store(is_full, Relaxed);
    }

    pub(crate) fn stats(&self) -> TierStats {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        TierStats {
            records: self.index.records(),
            bytes: self.bytes(),
            segments: self.segments.count(),
            index_bytes: self.index.bytes(),
            is_loaded: self.is_loaded.load(Relaxed),
            reads_inline: of(&self.counters.reads_inline),
            reads_by_threads: of(&self.counters.reads_by_threads),
            reads_given_up: of(&self.counters.reads_given_up),
            damaged: of(&self.counters.damaged),
            written: of(&self.counters.written),
            written_bytes: of(&self.counters.written_bytes),
            reinserted: of(&self.counters.reinserted),
            dropped: of(&self.counters.dropped),
            segments_dropped: of(&self.counters.segments_dropped),
            purges_written: of(&self.counters.purges_written),
            outages: of(&self.counters.outages),
            journal_syncs: self.journal.syncs(),
        }
    }
}
