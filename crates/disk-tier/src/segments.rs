//! The segments of a folder, oldest first: those of this start and those that earlier ones left.

use crate::form::segment::segment_name;
use crate::index::SEGMENT_MASK;
use crate::storage::{Storage, StorageFile};
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How far the index knows a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadState {
    NotLoaded,
    Loaded,
    /// It is removed, or about to be: nothing more is entered.
    Dropped,
}

/// A segment's file, and the facts known of it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    file: OnceLock<Arc<dyn StorageFile>>,
    pub(crate) bytes: AtomicU64,
    /// The lowest stamp of a record in it; 0 as long as that is not known.
    pub(crate) lowest_stamp: AtomicU64,
    /// When it was written, by the boot clock; before the boot it is 0.
    pub(crate) written_boot_millis: AtomicU64,
    /// Locked while it is loaded or dropped.
    pub(crate) load: Mutex<LoadState>,
}

impl Segment {
    /// A segment that was found in the folder.
    pub(crate) fn listed(number: u64, bytes: u64) -> Segment {
        Segment {
            number,
            file: OnceLock::new(),
            bytes: AtomicU64::new(bytes),
            lowest_stamp: AtomicU64::new(0),
            written_boot_millis: AtomicU64::new(0),
            load: Mutex::new(LoadState::NotLoaded),
        }
    }

    /// A segment that was made just now.
    pub(crate) fn made(
        number: u64,
        file: Arc<dyn StorageFile>,
        bytes: u64,
        boot_millis: u64,
    ) -> Segment {
        Segment {
            number,
            file: OnceLock::from(file),
            bytes: AtomicU64::new(bytes),
            lowest_stamp: AtomicU64::new(u64::MAX),
            written_boot_millis: AtomicU64::new(boot_millis),
            load: Mutex::new(LoadState::Loaded),
        }
    }

    pub(crate) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(segment_name(self.number))
    }

    /// The file, opened if it was not yet.
    pub(crate) fn opened(
        &self,
        storage: &dyn Storage,
        folder: &Path,
    ) -> io::Result<&Arc<dyn StorageFile>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let path = self.path(folder);
        // An unfinished segment gets its footer, if the disk takes writes.
        let file = storage
            .open_to_write(&path)
            .or_else(|_| storage.open(&path))?;
        Ok(self.file.get_or_init(|| file))
    }

    /// The file of a segment that is loaded.
    pub(crate) fn file(&self) -> Option<&Arc<dyn StorageFile>> {
        self.file.get()
    }
}

/// All segments in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct SegmentTable {
    segments: RwLock<VecDeque<Arc<Segment>>>,
}

impl SegmentTable {
    /// Adds a segment of an earlier start; they come in any order.
    pub(crate) fn add_listed(&self, segment: Segment) {
        let mut segments = self.segments.write();
        let at = segments.partition_point(|other| other.number < segment.number);
        segments.insert(at, Arc::new(segment));
    }

    /// Adds the newest segment.
    pub(crate) fn push(&self, segment: Arc<Segment>) {
        self.segments.write().push_back(segment);
    }

    /// The segment whose number has these low bits.
    pub(crate) fn with_low_bits(&self, low: u64) -> Option<Arc<Segment>> {
        let segments = self.segments.read();
        let newest = segments.back()?.number;
        let number = newest.checked_sub(newest.wrapping_sub(low) & SEGMENT_MASK)?;
        let at = segments
            .binary_search_by_key(&number, |segment| segment.number)
            .ok()?;
        segments.get(at).cloned()
    }

    pub(crate) fn oldest(&self) -> Option<Arc<Segment>> {
        self.segments.read().front().cloned()
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut segments = self.segments.write();
        if let Ok(at) = segments.binary_search_by_key(&number, |segment| segment.number) {
            segments.remove(at);
        }
    }

    /// All of them, newest first.
    pub(crate) fn newest_first(&self) -> Vec<Arc<Segment>> {
        self.segments.read().iter().rev().cloned().collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.segments.read().len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        let segments = self.segments.read();
        segments
            .iter()
            .map(|segment| segment.bytes.load(Relaxed))
            .sum()
    }

    /// The lowest stamp of a record; 0 as long as a segment is not loaded.
    pub(crate) fn lowest_stamp(&self) -> u64 {
        let segments = self.segments.read();
        let stamps = segments
            .iter()
            .map(|segment| segment.lowest_stamp.load(Relaxed));
        stamps.min().unwrap_or(u64::MAX)
    }
}
