//! One zone's folder: the tier as its user sees it.

use crate::admission::{MIN_USES, UseSketch};
use crate::clock_facts::ClockFacts;
use crate::config::TierConfig;
use crate::error::TierError;
use crate::index::{PackedPlace, RecordIndex};
use crate::journal::queue::JournalQueue;
use crate::journal::writer::{JournalSizes, JournalWriter};
use crate::loader::load_all;
use crate::parts::{TierCounters, TierParts, count};
use crate::purge::{LogPosition, PurgeTicket, WrittenPurge};
use crate::read_queue::{ReadQueue, RecordTicket};
use crate::reader::{ReadMode, read_record};
use crate::record::{NewRecord, ReadNow, RecordPlace, RecordPlaces, StopReport, WriteVerdict};
use crate::ring;
use crate::segments::{Segment, SegmentTable};
use crate::start::{FolderStart, io_error};
use crate::state::{TierEvent, TierState, TierStats};
use crate::storage::Storage;
use crate::times::TierTime;
use crate::write_queue::WriteQueue;
use crate::writer::{NotAppended, SegmentWriter, check};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Threads that read at most.
const MAX_READING_THREADS: usize = 4;
/// How long a close waits for threads: one that hangs on a dead disk is left behind.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// The facts that are known when a tier was opened, before it is used.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The number of this start: the high 16 bits of all its stamps. It is on the disk already.
    pub start: u16,
    /// Records with an earlier stamp are void: purges of that time are not known any more.
    pub floor: u64,
    /// All purges that are kept, in the order in which they were written.
    pub purges: Vec<WrittenPurge>,
    /// All purges up to here, of the log that was named, are among them.
    pub position: Option<LogPosition>,
    /// There are segments of earlier starts.
    pub has_segments: bool,
    /// The wall clock stands before the last moment in the journal: records of earlier boots have no known age.
    pub wall_clock_is_behind: bool,
    pub events: Vec<TierEvent>,
}

impl Recovery {
    /// The stamp at which this start's purge clock begins.
    #[must_use]
    pub fn first_stamp(&self) -> u64 {
        u64::from(self.start) << 48
    }
}

/// The verdict on writing a response, after a use of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseVerdict {
    /// It has earned its place on the disk and is not there.
    Earned,
    /// Not yet, or it is there already, or nothing can be written now.
    NotNow,
}

/// A zone's folder: the lock is held, and threads write and read.
#[derive(Debug)]
pub struct TierFolder {
    works: Arc<TierWorks>,
    /// Hangs up when the last thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// The work of the threads.
#[derive(Debug)]
struct TierWorks {
    parts: Arc<TierParts>,
    reads: ReadQueue,
    writes: WriteQueue,
    /// Segments of earlier starts that are not loaded yet, newest first.
    listed: Mutex<Vec<Arc<Segment>>>,
}

impl TierFolder {
    /// Takes the folder: makes it if it is missing, reads the journal, writes down the new start. The index fills
    /// meanwhile and afterwards, newest segment first.
    ///
    /// # Errors
    /// Another process has the folder, it is not ours, or the disk refuses. The server goes on without the tier.
    pub fn open(
        path: &Path,
        config: TierConfig,
        storage: Arc<dyn Storage>,
    ) -> Result<(TierFolder, Recovery), TierError> {
        let reading_threads = config.reading_threads.clamp(1, MAX_READING_THREADS);
        let (works, recovery) = TierWorks::open(path, config, storage, JournalSizes::default())?;
        let (sender, ended) = mpsc::channel();
        // From here on, an error closes the begun parts.
        let tier = TierFolder {
            works,
            ended: Mutex::new(ended),
        };
        let spawn = |name: &str, work: fn(&TierWorks)| {
            let (works, sender) = (Arc::clone(&tier.works), sender.clone());
            let thread = std::thread::Builder::new().name(name.to_owned());
            let body = move || {
                work(&works);
                drop(works);
                // The end of the sender is the signal, which a thread that hangs does not reach.
                drop(sender);
            };
            thread
                .spawn(body)
                .map(drop)
                .map_err(io_error("start a thread for", path))
        };
        spawn("tier-journal", TierWorks::keep_journal)?;
        spawn("tier-write", TierWorks::write)?;
        spawn("tier-load", TierWorks::load)?;
        for _ in 0..reading_threads {
            spawn("tier-read", |works| works.reads.run(&works.parts))?;
        }
        Ok((tier, recovery))
    }

    fn parts(&self) -> &TierParts {
        &self.works.parts
    }

    /// The time by the clocks that records are compared with.
    #[must_use]
    pub fn now(&self) -> TierTime {
        self.parts().storage.now()
    }

    /// Writes a purge down; call it before, or while, the purge is applied in memory. The ticket resolves when the
    /// purge is synced. A purge whose pages were never offered to [`TierFolder::write`] need not wait for it.
    pub fn append_purge(&self, purge: &WrittenPurge) -> PurgeTicket {
        self.parts().journal.append(purge)
    }

    /// Writes down how far the log of other machines is applied: all its purges up to there have been appended before.
    pub fn note_position(&self, position: LogPosition) {
        self.parts().journal.note_position(position);
    }

    /// Returns the places where the records of a key may lie, newest first. Memory only. Empty while the tier rests,
    /// and while purges cannot be written.
    #[must_use]
    pub fn find(&self, key_hash: u64) -> RecordPlaces {
        match self.parts().is_awake() {
            true => self.parts().index.find(key_hash),
            false => RecordPlaces::default(),
        }
    }

    /// Reads a record if that needs no disk.
    #[must_use]
    pub fn read_now(&self, place: RecordPlace, key: &[u8]) -> ReadNow {
        let read = read_record(self.parts(), place, key, ReadMode::Now);
        if matches!(read, ReadNow::Record(_)) {
            count(&self.parts().counters.reads_inline);
        }
        read
    }

    /// Lets a thread read a record. Resolves at once, to nothing, where too many wait already.
    pub fn read(&self, place: RecordPlace, key: Bytes) -> RecordTicket {
        self.works.reads.ask(&self.works.parts, place, key)
    }

    /// Hands a record over to the writer. It never waits.
    pub fn write(&self, record: NewRecord) -> WriteVerdict {
        let parts = self.parts();
        if !parts.is_awake() || !parts.health.may_write(parts.boot_millis()) {
            return WriteVerdict::NotWriting;
        }
        match check(parts, &record) {
            Err(NotAppended::ShortLived) => WriteVerdict::ShortLived,
            Err(NotAppended::BeforeFloor) => WriteVerdict::BeforeFloor,
            Err(NotAppended::TooLarge) => WriteVerdict::TooLarge,
            Err(NotAppended::Refused) => WriteVerdict::NotWriting,
            Ok(()) if self.works.writes.push(record) => WriteVerdict::Queued,
            Ok(()) => {
                count(&parts.counters.dropped);
                WriteVerdict::QueueFull
            }
        }
    }

    /// Counts a use of a key and variant, from whichever tier it was answered, and returns whether the response should
    /// be written now: at its [`MIN_USES`]th use, at its first while the ring is not full. A response that replaces one
    /// on the disk has earned it only when that one is forgotten.
    pub fn note_use(&self, key_hash: u64, variant: u64) -> UseVerdict {
        let parts = self.parts();
        let uses = parts.sketch.add(key_hash.wrapping_add(variant));
        let [variant, ..] = variant.to_le_bytes();
        let is_there = parts.index.note_used_variant(key_hash, variant);
        let is_earned = uses >= MIN_USES || !parts.is_full.load(Relaxed);
        match is_earned && !is_there && parts.is_awake() {
            true => UseVerdict::Earned,
            false => UseVerdict::NotNow,
        }
    }

    /// Forgets a record that is outdated, or of no use.
    pub fn forget(&self, place: RecordPlace) {
        let packed = PackedPlace(place.packed);
        self.parts().index.remove(place.key_hash, packed);
    }

    /// Writes the waiting records, then those that memory alone has, in the order given, until the time is over.
    /// Blocks.
    pub fn flush_for_stop(
        &self,
        records: &mut dyn Iterator<Item = NewRecord>,
        within: Duration,
    ) -> StopReport {
        let until = Instant::now() + within;
        let parts = self.parts();
        self.works.writes.drain_until(parts, until);
        let mut report = StopReport::default();
        for record in records {
            let is_written = Instant::now() < until
                && parts.health.may_write(parts.boot_millis())
                && self
                    .works
                    .writes
                    .writer()
                    .lock()
                    .append(parts, &record)
                    .is_ok();
            match is_written {
                true => report.written += 1,
                false => report.left += 1,
            }
        }
        report
    }

    /// Ends all threads, and finishes the segment under way and the purges that wait. Blocks, but not for a disk that
    /// hangs. Later calls find nothing and write nothing.
    pub fn close(&self) {
        self.works.close();
        let until = Instant::now() + CLOSE_WAIT;
        let ended = self.ended.lock();
        // The channel carries no message: it ends when all threads have, or by time.
        let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
    }

    #[must_use]
    pub fn state(&self) -> TierState {
        self.parts().health.state(self.parts().boot_millis())
    }

    #[must_use]
    pub fn stats(&self) -> TierStats {
        self.parts().stats()
    }

    /// Takes the events since the last call, at most [`crate::MAX_EVENTS`].
    #[must_use]
    pub fn take_events(&self) -> Vec<TierEvent> {
        self.parts().events.lock().drain(..).collect()
    }
}

impl Drop for TierFolder {
    fn drop(&mut self) {
        self.close();
    }
}

impl TierWorks {
    fn open(
        path: &Path,
        config: TierConfig,
        storage: Arc<dyn Storage>,
        sizes: JournalSizes,
    ) -> Result<(Arc<TierWorks>, Recovery), TierError> {
        config.check()?;
        if !storage.make_folder(path).map_err(io_error("make", path))? {
            return Err(TierError::NotOurs(path.to_owned()));
        }
        let mut start = FolderStart::take(&*storage, path)?;
        let journal = JournalWriter::begin(&storage, path, &start.history, start.terms(), sizes)
            .map_err(io_error("begin a journal in", path))?;
        let now = storage.now();
        let shown = start.history.newest_wall_millis;
        if now.wall_millis < shown {
            start.events.push(TierEvent::WallClockBehind {
                by_millis: shown - now.wall_millis,
            });
        }
        let recovery = Recovery {
            start: start.start,
            floor: start.floor,
            purges: std::mem::take(&mut start.history.purges),
            position: start.history.position.take(),
            has_segments: start.has_segments(),
            wall_clock_is_behind: now.wall_millis < shown,
            events: std::mem::take(&mut start.events),
        };
        let segments = SegmentTable::default();
        for (number, bytes) in start.segments() {
            segments.add_listed(Segment::listed(number, bytes));
        }
        let newest = start
            .segments()
            .map(|(number, _)| number)
            .max()
            .unwrap_or(0);
        let parts = TierParts {
            folder: path.to_owned(),
            start: start.start,
            clocks: ClockFacts::new(storage.boot_number(), shown),
            index: RecordIndex::new(),
            segments,
            skipped: Mutex::default(),
            sketch: UseSketch::for_bytes(config.max_bytes),
            journal: JournalQueue::new(journal),
            health: Default::default(),
            counters: TierCounters::default(),
            floor: AtomicU64::new(start.floor),
            is_full: AtomicBool::new(false),
            is_loaded: AtomicBool::new(false),
            events: Mutex::default(),
            _lock: start.lock,
            storage,
            config,
        };
        parts.note_fullness();
        let works = TierWorks {
            listed: Mutex::new(parts.segments.newest_first()),
            parts: Arc::new(parts),
            reads: ReadQueue::default(),
            writes: WriteQueue::new(SegmentWriter::new(newest + 1)),
        };
        Ok((Arc::new(works), recovery))
    }

    fn keep_journal(&self) {
        while self.parts.journal.wait() {
            if !self.commit() {
                self.parts.journal.wait_to_retry();
            }
        }
    }

    /// Whether the disk took the purges that wait.
    fn commit(&self) -> bool {
        let parts = &self.parts;
        match parts.journal.commit() {
            Ok(purges) => {
                let written = &parts.counters.purges_written;
                written.fetch_add(purges as u64, Relaxed);
                if parts.health.note_journal_written() {
                    parts.say(TierEvent::JournalResumed);
                }
                true
            }
            Err(error) => {
                if parts.health.note_journal_failed(&error) {
                    let reason = error.to_string();
                    parts.say(TierEvent::JournalFailed { reason });
                }
                // Purges matter more than records. A writer that waits for the disk is not waited for.
                if error.kind() == io::ErrorKind::StorageFull
                    && let Some(mut writer) = self.writes.writer().try_lock()
                {
                    ring::drop_one(parts, &mut writer);
                }
                false
            }
        }
    }

    fn load(&self) {
        let listed = std::mem::take(&mut *self.listed.lock());
        load_all(&self.parts, &listed);
    }

    fn write(&self) {
        self.writes.run(&self.parts);
        self.writes.writer().lock().finish(&self.parts);
    }

    fn close(&self) {
        self.parts.health.close();
        self.writes.close();
        self.reads.close();
        self.parts.journal.close();
    }
}

/// A tier without threads, for tests: each step is called for.
#[cfg(any(test, feature = "testing"))]
impl TierFolder {
    /// Like [`TierFolder::open`]; each file of the journal has this number of units.
    ///
    /// # Errors
    /// The errors of [`TierFolder::open`].
    pub fn open_without_threads(
        path: &Path,
        config: TierConfig,
        storage: Arc<dyn Storage>,
        journal_units: u32,
    ) -> Result<(TierFolder, Recovery), TierError> {
        let sizes = JournalSizes {
            units_first: journal_units,
            units_next: journal_units,
            ..JournalSizes::default()
        };
        let (works, recovery) = TierWorks::open(path, config, storage, sizes)?;
        let (_, ended) = mpsc::channel();
        let tier = TierFolder {
            works,
            ended: Mutex::new(ended),
        };
        Ok((tier, recovery))
    }

    /// Writes the purges that wait, and resolves their tickets.
    pub fn commit_purges(&self) {
        self.works.commit();
    }

    /// Writes the records that wait.
    pub fn write_waiting(&self) {
        let until = Instant::now() + Duration::from_secs(3600);
        self.works.writes.drain_until(self.parts(), until);
    }

    /// Does the periodic work.
    pub fn tick(&self) {
        self.works.writes.writer().lock().tick(self.parts());
    }

    /// Loads the segments of earlier starts.
    pub fn load(&self) {
        self.works.load();
    }

    /// Reads the requested record and waits for the disk.
    #[must_use]
    pub fn read_waiting(
        &self,
        place: RecordPlace,
        key: &[u8],
    ) -> Option<Box<crate::record::RecordBytes>> {
        match read_record(self.parts(), place, key, ReadMode::Waiting) {
            ReadNow::Record(record) => Some(record),
            ReadNow::NotInMemory | ReadNow::Missing => None,
        }
    }

    /// Finishes the segment under way, as a close does.
    pub fn finish_segment(&self) {
        self.works.writes.writer().lock().finish(self.parts());
    }
}
