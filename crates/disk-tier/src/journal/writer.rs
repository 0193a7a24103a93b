//! The journal file of this start. A batch is one write and one sync; a full file is followed by the next.

use super::history::{JournalFile, JournalHistory};
use crate::config::MAX_JOURNAL_BYTES;
use crate::form::UNIT;
use crate::form::journal::{
    EntryKind, JournalHeader, PurgeUnit, UnitPosition, end_unit, journal_name, put_entry,
    time_unit, units_of,
};
use crate::purge::{LogPosition, PurgeMode, WrittenPurge};
use crate::storage::{Storage, StorageFile};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How large journals are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalSizes {
    /// Units of the first file of a start: 64 KB.
    pub(crate) units_first: u32,
    /// Units of those that follow it: 1 MB.
    pub(crate) units_next: u32,
    pub(crate) bytes_max: u64,
}

impl Default for JournalSizes {
    fn default() -> JournalSizes {
        JournalSizes {
            units_first: 1024,
            units_next: 16 * 1024,
            bytes_max: MAX_JOURNAL_BYTES,
        }
    }
}

/// Files are this many at most; a server that starts more often forgets the records stored before.
pub(crate) const MAX_FILES: usize = 1024;
/// The name under which a file is made before it is whole.
const UNFINISHED: &str = "journal.new";

/// Writes purges down.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    /// The last one is `file`.
    files: VecDeque<JournalFile>,
    file: Arc<dyn StorageFile>,
    units: u32,
    /// The next unit.
    position: u32,
    start: u16,
    highest: u64,
    sizes: JournalSizes,
    /// A write failed: the content of the file is not known. The next one begins another file.
    is_broken: bool,
    pub(crate) syncs: u64,
}

/// The facts in the header of a new file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileTerms {
    pub(crate) start: u16,
    pub(crate) void_before: u64,
}

impl JournalWriter {
    /// Begins the journal of a start. When this returns, the start is on the disk.
    pub(crate) fn begin(
        storage: &Arc<dyn Storage>,
        folder: &Path,
        history: &JournalHistory,
        terms: FileTerms,
        sizes: JournalSizes,
    ) -> io::Result<JournalWriter> {
        let number = history.next_number();
        let header = JournalHeader {
            number,
            begins_at: history.highest.max(terms.void_before),
            void_before: terms.void_before,
            wall_millis: storage.now().wall_millis,
            start: terms.start,
            units: sizes.units_first,
        };
        let file = make_file(&**storage, folder, &header, &[])?;
        end_previous(&**storage, folder, history, number);
        let mut files: VecDeque<_> = history.files.iter().copied().collect();
        files.push_back(kept_file(&header));
        for at in (1..files.len()).rev() {
            files[at - 1].begins_at = files[at - 1].begins_at.min(files[at].begins_at);
        }
        Ok(JournalWriter {
            storage: Arc::clone(storage),
            folder: folder.to_owned(),
            files,
            file,
            units: header.units,
            position: 1,
            start: terms.start,
            highest: header.begins_at,
            sizes,
            is_broken: false,
            syncs: 0,
        })
    }

    /// Records with an earlier stamp would be void after the next start.
    pub(crate) fn floor(&self) -> u64 {
        self.files.front().map_or(0, |file| file.begins_at)
    }

    /// Writes purges and a position behind them, and syncs them. Purges up to `lost` may be nowhere (0: all are there):
    /// records older than these must not come back.
    ///
    /// # Errors
    /// None of them is sure to be on the disk. Write them again: that begins another file.
    pub(crate) fn commit(
        &mut self,
        purges: &[WrittenPurge],
        position: Option<&LogPosition>,
        lost: u64,
    ) -> io::Result<()> {
        let done = self.write_batch(purges, position, lost);
        self.is_broken |= done.is_err();
        done
    }

    fn write_batch(
        &mut self,
        purges: &[WrittenPurge],
        position: Option<&LogPosition>,
        lost: u64,
    ) -> io::Result<()> {
        if self.is_broken || lost > 0 {
            self.highest = self.highest.max(lost);
            self.begin_next(lost)?;
            self.is_broken = false;
        }
        let mut batch = self.position;
        let mut bytes = Vec::new();
        let position = position.map(|position| WrittenPurge {
            stamp: position.number,
            mode: PurgeMode::Soft,
            wall_millis: self.storage.now().wall_millis,
            target: position.log.clone(),
        });
        let purges = purges.iter().map(|purge| (EntryKind::Purge, purge));
        let position = position.iter().map(|it| (EntryKind::Position, it));
        for (kind, entry) in purges.chain(position) {
            let units = units_of(entry.target.len());
            if self.position + units >= self.units {
                self.write_units(&bytes, batch)?;
                self.begin_next(0)?;
                (batch, bytes) = (self.position, Vec::new());
            }
            let unit = PurgeUnit {
                mode: entry.mode,
                stamp: entry.stamp,
                wall_millis: entry.wall_millis,
                highest_before: self.highest,
            };
            let at = UnitPosition {
                batch,
                unit: self.position,
            };
            put_entry(kind, &unit, &entry.target, at, &mut bytes);
            self.position += units;
            if kind == EntryKind::Purge {
                self.highest = self.highest.max(entry.stamp);
            }
        }
        self.write_units(&bytes, batch)
    }

    fn write_units(&mut self, bytes: &[u8], batch: u32) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.file.write_at(bytes, u64::from(batch) * UNIT as u64);
        let done = written.and_then(|()| {
            self.syncs += 1;
            self.file.sync_data()
        });
        if done.is_err() {
            // The file ends at this unit, as the next file records it.
            self.position = batch;
        }
        done
    }

    /// Writes the wall clock down; it is synced with the next batch.
    pub(crate) fn note_time(&mut self, wall_millis: u64) -> io::Result<()> {
        if self.is_broken || self.position + 1 >= self.units {
            return Ok(());
        }
        let at = UnitPosition {
            batch: self.position,
            unit: self.position,
        };
        // A batch declares that all before it was synced: so this is.
        self.write_units(&time_unit(wall_millis, self.highest, at), at.batch)?;
        self.position += 1;
        Ok(())
    }

    fn begin_next(&mut self, void_before: u64) -> io::Result<()> {
        let number = self.files.back().map_or(0, |file| file.number) + 1;
        let header = JournalHeader {
            number,
            begins_at: self.highest,
            void_before,
            wall_millis: self.storage.now().wall_millis,
            start: self.start,
            units: self.sizes.units_next,
        };
        let file = make_file(&*self.storage, &self.folder, &header, &[])?;
        let end = end_unit(
            number,
            UnitPosition {
                batch: self.position,
                unit: self.position,
            },
        );
        // If this fails, the loss of the next file would not be noticed: nothing more.
        let _ = self.write_units(&end, self.position);
        self.file = file;
        self.units = header.units;
        self.position = 1;
        self.files.push_back(kept_file(&header));
        self.trim(0);
        Ok(())
    }

    /// Removes files that no record needs any more: all have `lowest_stamp` or a later one.
    pub(crate) fn trim(&mut self, lowest_stamp: u64) {
        let mut bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        while let (Some(oldest), Some(next)) = (self.files.front(), self.files.get(1)) {
            let is_needed = lowest_stamp < next.begins_at;
            let is_too_much = bytes > self.sizes.bytes_max || self.files.len() > MAX_FILES;
            if is_needed && !is_too_much {
                break;
            }
            let path = self.folder.join(journal_name(oldest.number));
            if self.storage.remove(&path).is_err() && self.storage.open(&path).is_ok() {
                break;
            }
            // Each for itself: after a power cut none is missing between two that are there.
            let _ = self.storage.sync_folder(&self.folder);
            bytes -= oldest.bytes;
            self.files.pop_front();
        }
    }
}

/// Writes purges into a file of their own, for a process that is not a server.
pub(crate) fn write_stopped(
    storage: &dyn Storage,
    folder: &Path,
    history: &JournalHistory,
    terms: FileTerms,
    purges: &[WrittenPurge],
) -> io::Result<()> {
    let number = history.next_number();
    let begins_at = history.highest.max(terms.void_before);
    let mut units = Vec::new();
    let (mut position, mut highest) = (1, begins_at);
    for purge in purges {
        let unit = PurgeUnit {
            mode: purge.mode,
            stamp: purge.stamp,
            wall_millis: purge.wall_millis,
            highest_before: highest,
        };
        let at = UnitPosition {
            batch: 1,
            unit: position,
        };
        put_entry(EntryKind::Purge, &unit, &purge.target, at, &mut units);
        position += units_of(purge.target.len());
        highest = highest.max(purge.stamp);
    }
    let header = JournalHeader {
        number,
        begins_at,
        void_before: terms.void_before,
        wall_millis: storage.now().wall_millis,
        start: terms.start,
        // One more for the end.
        units: position + 1,
    };
    make_file(storage, folder, &header, &units)?;
    end_previous(storage, folder, history, number);
    Ok(())
}

fn kept_file(header: &JournalHeader) -> JournalFile {
    JournalFile {
        number: header.number,
        begins_at: header.begins_at,
        bytes: u64::from(header.units) * UNIT as u64,
    }
}

/// Makes a file in its final length: a later sync then need not write the length. It gets its name when it is on the
/// disk.
fn make_file(
    storage: &dyn Storage,
    folder: &Path,
    header: &JournalHeader,
    units: &[u8],
) -> io::Result<Arc<dyn StorageFile>> {
    let unfinished = folder.join(UNFINISHED);
    let _ = storage.remove(&unfinished);
    let file = storage.create(&unfinished)?;
    let mut bytes = header.bytes().to_vec();
    bytes.extend_from_slice(units);
    bytes.resize(header.units as usize * UNIT, 0);
    file.write_at(&bytes, 0)?;
    file.sync_data()?;
    storage.rename(&unfinished, &folder.join(journal_name(header.number)))?;
    storage.sync_folder(folder)?;
    Ok(file)
}

/// Lets the last file name the next one, so that its loss would be seen.
fn end_previous(storage: &dyn Storage, folder: &Path, history: &JournalHistory, next: u64) {
    let Some(tail) = history.tail else {
        return;
    };
    let unit = end_unit(
        next,
        UnitPosition {
            batch: tail.unit,
            unit: tail.unit,
        },
    );
    let path = folder.join(journal_name(tail.number));
    // If this fails, the loss of the next file would not be noticed: nothing more.
    let _ = storage.open_to_write(&path).and_then(|file| {
        file.write_at(&unit, u64::from(tail.unit) * UNIT as u64)?;
        file.sync_data()
    });
}
