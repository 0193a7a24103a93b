//! Reads the journals of earlier starts. Purges may be missing from them, when a file is damaged, cut or gone: then
//! the floor rises above all stamps that the missing ones may have had.

use crate::form::UNIT;
use crate::form::journal::{
    EntryKind, JournalHeader, PurgeUnit, UnitContent, UnitPosition, journal_number, read_unit,
};
use crate::purge::{LogPosition, WrittenPurge};
use crate::storage::{ListedFile, Storage};
use std::path::Path;

/// No file of ours is larger: a larger one is not read.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A journal file that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalFile {
    pub(crate) number: u64,
    /// Purges with later stamps are in this file and those behind it.
    pub(crate) begins_at: u64,
    pub(crate) bytes: u64,
}

/// The place for the unit that names the next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalTail {
    pub(crate) number: u64,
    pub(crate) unit: u32,
}

/// All journals, read in their order.
#[derive(Debug, Default)]
pub(crate) struct JournalHistory {
    pub(crate) purges: Vec<WrittenPurge>,
    /// The last position that was written: all purges before it are here, or below the floor.
    pub(crate) position: Option<LogPosition>,
    pub(crate) files: Vec<JournalFile>,
    /// Records with an earlier stamp are void.
    pub(crate) floor: u64,
    /// The highest stamp of a purge.
    pub(crate) highest: u64,
    /// The last start; as many more may have been as files could not be read.
    pub(crate) last_start: u32,
    pub(crate) newest_wall_millis: u64,
    /// The end of the file that was written last.
    pub(crate) tail: Option<JournalTail>,
    /// Descriptions of the damage, for the log.
    pub(crate) damage: Vec<String>,
    /// Purges are missing, and nothing bounds their stamps yet.
    has_open_loss: bool,
    /// The number that the last file names.
    next: Option<u64>,
}

/// The state of reading one file.
#[derive(Debug, Default)]
struct FileScan {
    first_blank: Option<u32>,
    unfinished: Option<UnfinishedEntry>,
    is_ended: bool,
    is_damaged: bool,
}

/// An entry of which not all units have been read.
#[derive(Debug)]
struct UnfinishedEntry {
    kind: EntryKind,
    entry: PurgeUnit,
    len: usize,
    bytes: Vec<u8>,
    /// The power may have gone while its batch was written: purges that it was to stand behind are blank.
    is_behind_blank: bool,
}

impl JournalHistory {
    /// Reads all journals of a folder.
    pub(crate) fn read(
        storage: &dyn Storage,
        folder: &Path,
        listed: &[ListedFile],
    ) -> JournalHistory {
        let mut numbered: Vec<_> = listed
            .iter()
            .filter_map(|file| Some((journal_number(&file.name)?, file)))
            .filter(|(_, file)| file.len.is_some())
            .collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let mut history = JournalHistory::default();
        for (number, file) in numbered {
            history.add_file(number, &read_file(storage, folder, file));
        }
        history.finish();
        history
    }

    /// Whether purges are missing that may concern any record of earlier starts.
    pub(crate) fn is_void(&self) -> bool {
        self.has_open_loss
    }

    /// The number of the next file.
    pub(crate) fn next_number(&self) -> u64 {
        let last = self.files.last().map_or(0, |file| file.number);
        last.max(self.next.unwrap_or(0)) + 1
    }

    /// Reads a file; they come in the order of their numbers.
    pub(crate) fn add_file(&mut self, number: u64, bytes: &[u8]) {
        if let Some(last) = self.files.last().filter(|last| last.number + 1 != number) {
            self.lose(format!("journal-{} is missing", last.number + 1));
        }
        let is_first = self.files.is_empty();
        let file = |begins_at| JournalFile {
            number,
            begins_at,
            bytes: bytes.len() as u64,
        };
        (self.tail, self.next) = (None, None);
        let Some(header) = JournalHeader::read(bytes).filter(|header| header.number == number)
        else {
            self.lose(format!("journal-{number} is damaged"));
            self.last_start += 1;
            // The start of this file is not known: it counts as beginning with the next one.
            self.files.push(file(u64::MAX));
            return;
        };
        if is_first {
            self.floor = self.floor.max(header.begins_at);
        }
        self.bound_loss(header.begins_at);
        self.floor = self.floor.max(header.void_before);
        self.highest = self.highest.max(header.begins_at).max(header.void_before);
        self.last_start = self.last_start.max(header.start.into());
        self.newest_wall_millis = self.newest_wall_millis.max(header.wall_millis);
        self.files.push(file(header.begins_at));
        self.add_units(&header, bytes);
    }

    fn add_units(&mut self, header: &JournalHeader, bytes: &[u8]) {
        let (units, _) = bytes.as_chunks::<UNIT>();
        let mut scan = FileScan::default();
        for (number, unit) in (0..header.units).zip(units).skip(1) {
            let (content, at) = read_unit(unit, number);
            self.add_unit(&mut scan, number, content, at);
        }
        let is_cut = bytes.len() / UNIT < header.units as usize;
        if is_cut || scan.is_damaged || scan.unfinished.is_some() {
            self.lose(format!("journal-{} is damaged", header.number));
        } else if !scan.is_ended {
            self.tail = scan.first_blank.map(|unit| JournalTail {
                number: header.number,
                unit,
            });
        }
    }

    fn add_unit(
        &mut self,
        scan: &mut FileScan,
        number: u32,
        content: UnitContent<'_>,
        at: UnitPosition,
    ) {
        match content {
            UnitContent::Blank => {
                scan.first_blank.get_or_insert(number);
                // The power went while this batch was written: its purges were not confirmed.
                scan.unfinished = None;
                return;
            }
            UnitContent::Damaged => {
                scan.is_damaged = true;
                scan.unfinished = None;
                return;
            }
            _ => {}
        }
        // Everything before a batch was synced when the batch was written.
        scan.is_damaged |= scan
            .first_blank
            .take_if(|blank| *blank < at.batch)
            .is_some();
        if let UnitContent::Continued(part) = content {
            self.continue_entry(scan, part);
            return;
        }
        scan.is_damaged |= scan.unfinished.take().is_some();
        match content {
            UnitContent::Begun {
                kind,
                entry,
                len,
                first,
            } => {
                self.meet(scan, &entry);
                if kind == EntryKind::Purge {
                    self.highest = self.highest.max(entry.stamp);
                }
                scan.unfinished = Some(UnfinishedEntry {
                    kind,
                    entry,
                    len,
                    bytes: Vec::new(),
                    is_behind_blank: scan.first_blank.is_some(),
                });
                self.continue_entry(scan, first);
            }
            UnitContent::Time(purge) => self.meet(scan, &purge),
            UnitContent::End { next } => {
                scan.is_ended = true;
                self.next = Some(next);
            }
            UnitContent::Blank | UnitContent::Damaged | UnitContent::Continued(_) => {}
        }
    }

    /// Takes a unit, which bounds the losses before it.
    fn meet(&mut self, scan: &mut FileScan, purge: &PurgeUnit) {
        self.newest_wall_millis = self.newest_wall_millis.max(purge.wall_millis);
        if std::mem::take(&mut scan.is_damaged) {
            self.lose("a purge is damaged".to_owned());
            self.bound_loss(purge.highest_before);
        }
    }

    fn continue_entry(&mut self, scan: &mut FileScan, part: &[u8]) {
        let Some(mut read) = scan.unfinished.take() else {
            return;
        };
        read.bytes.extend_from_slice(part);
        if read.bytes.len() < read.len {
            scan.unfinished = Some(read);
            return;
        }
        let (entry, bytes) = (read.entry, read.bytes.into());
        match read.kind {
            EntryKind::Purge => self.purges.push(WrittenPurge {
                stamp: entry.stamp,
                mode: entry.mode,
                wall_millis: entry.wall_millis,
                target: bytes,
            }),
            EntryKind::Position if read.is_behind_blank => {}
            EntryKind::Position => {
                self.position = Some(LogPosition {
                    log: bytes,
                    number: entry.stamp,
                });
            }
        }
    }

    fn finish(&mut self) {
        if let Some(next) = self.next {
            self.lose(format!("journal-{next} is missing"));
        }
    }

    fn lose(&mut self, what: String) {
        self.has_open_loss = true;
        self.damage.push(what);
    }

    /// Bounds the stamps of the losses so far: they are at most `highest`.
    fn bound_loss(&mut self, highest: u64) {
        if std::mem::take(&mut self.has_open_loss) {
            self.floor = self.floor.max(highest);
            self.highest = self.highest.max(highest);
        }
    }
}

/// The bytes of a file; none if it cannot be read, which counts as damaged.
fn read_file(storage: &dyn Storage, folder: &Path, file: &ListedFile) -> Vec<u8> {
    let len = file.len.filter(|len| *len <= MAX_FILE_BYTES).unwrap_or(0);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let read = storage
        .open(&folder.join(&file.name))
        .and_then(|open| open.read_at(&mut bytes, 0));
    bytes.truncate(read.unwrap_or(0));
    bytes
}
