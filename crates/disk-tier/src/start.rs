//! The state of a folder at a start, and the number that the start takes. A purge while no server runs is such a
//! start, too: its stamps must be above all that an earlier server gave.

use crate::error::TierError;
use crate::form::journal::journal_number;
use crate::form::segment::{
    HEADER_BYTES, SegmentHeader, SegmentOpening, segment_name, segment_number,
};
use crate::journal::history::JournalHistory;
use crate::journal::writer::{FileTerms, write_stopped};
use crate::purge::{MAX_TARGET_BYTES, StoppedPurge, WrittenPurge};
use crate::state::TierEvent;
use crate::storage::{FolderLock, ListedFile, Storage};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The name of the file whose lock gives the right to a folder.
const LOCK_NAME: &str = "lock";
/// Made and renamed by the journal.
const UNFINISHED_JOURNAL: &str = "journal.new";

/// A folder that is locked and was looked through.
#[derive(Debug)]
pub(crate) struct FolderStart {
    pub(crate) lock: Box<dyn FolderLock>,
    pub(crate) listed: Vec<ListedFile>,
    pub(crate) history: JournalHistory,
    pub(crate) start: u16,
    /// Records with an earlier stamp are void.
    pub(crate) floor: u64,
    pub(crate) events: Vec<TierEvent>,
}

impl FolderStart {
    /// Takes a folder and reads its journal. Nothing is written yet, except where the folder must begin anew.
    pub(crate) fn take(storage: &dyn Storage, folder: &Path) -> Result<FolderStart, TierError> {
        let lock = storage
            .lock(&folder.join(LOCK_NAME))
            .map_err(io_error("lock", folder))?;
        let lock = lock.ok_or_else(|| TierError::Locked(folder.to_owned()))?;
        let listed = storage.list(folder).map_err(io_error("list", folder))?;
        let history = JournalHistory::read(storage, folder, &listed);
        let mut start = FolderStart {
            lock,
            events: listed.iter().filter_map(foreign_file).collect(),
            listed,
            history,
            start: 0,
            floor: 0,
        };
        start
            .choose(storage, folder)
            .map_err(io_error("clear", folder))?;
        Ok(start)
    }

    /// Chooses the number of the start and the floor.
    fn choose(&mut self, storage: &dyn Storage, folder: &Path) -> io::Result<()> {
        let is_unknown = self.history.files.is_empty() && self.has_segments();
        let is_void = self.history.is_void() || is_unknown;
        let mut last = self.history.last_start;
        if is_void {
            // The journal that knew of the last start may be the one that is lost.
            last = last.max(self.last_start_of_segments(storage, folder));
        }
        let Ok(start) = u16::try_from(last + 1) else {
            // Stamps of a start number that comes again would be ambiguous: all begins anew.
            self.clear(storage, folder)?;
            self.history = JournalHistory::default();
            self.start = 1;
            self.floor = 1 << 48;
            return Ok(());
        };
        self.start = start;
        self.floor = match is_void {
            true => u64::from(start) << 48,
            false => self.history.floor,
        };
        if is_unknown {
            self.history.damage.push("there is no journal".to_owned());
        }
        if !self.history.damage.is_empty() {
            self.events.push(TierEvent::JournalDamaged {
                reason: self.history.damage.join(", "),
                floor: self.floor,
            });
        }
        Ok(())
    }

    pub(crate) fn terms(&self) -> FileTerms {
        FileTerms {
            start: self.start,
            void_before: self.floor,
        }
    }

    pub(crate) fn has_segments(&self) -> bool {
        self.segments().next().is_some()
    }

    /// Files with the name of a segment, and their lengths.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u64, u64)> {
        self.listed
            .iter()
            .filter_map(|file| Some((segment_number(&file.name)?, file.len?)))
    }

    fn last_start_of_segments(&self, storage: &dyn Storage, folder: &Path) -> u32 {
        let start = |(number, _)| {
            let mut header = [0; HEADER_BYTES];
            let file = storage.open(&folder.join(segment_name(number))).ok()?;
            let count = file.read_at(&mut header, 0).ok()?;
            match SegmentHeader::read(&header[..count]) {
                SegmentOpening::Header(header) => Some(u32::from(header.start)),
                _ => None,
            }
        };
        self.segments().filter_map(start).max().unwrap_or(0)
    }

    fn clear(&mut self, storage: &dyn Storage, folder: &Path) -> io::Result<()> {
        for file in &self.listed {
            if segment_number(&file.name).is_some() || journal_number(&file.name).is_some() {
                storage.remove(&folder.join(&file.name))?;
            }
        }
        storage.sync_folder(folder)?;
        self.listed.clear();
        Ok(())
    }
}

/// Whether a file is one that a tier makes.
pub(crate) fn is_ours(file: &ListedFile) -> bool {
    let has_our_name = matches!(&*file.name, LOCK_NAME | UNFINISHED_JOURNAL)
        || segment_number(&file.name).is_some()
        || journal_number(&file.name).is_some();
    has_our_name && file.len.is_some()
}

fn foreign_file(file: &ListedFile) -> Option<TierEvent> {
    (!is_ours(file)).then(|| TierEvent::ForeignFile {
        name: file.name.clone(),
    })
}

pub(crate) fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TierError {
    let path = path.to_owned();
    move |error| TierError::Io { what, path, error }
}

/// Whether a process keeps pages in this folder.
pub fn is_in_use(folder: &Path, storage: &dyn Storage) -> bool {
    matches!(storage.lock(&folder.join(LOCK_NAME)), Ok(None))
}

/// Writes purges down while no server has the folder: they hold after its next start. Blocks until they are synced.
/// `false`: there is no folder, or nothing in it, so that nothing is stored.
///
/// # Errors
/// A server has the folder (ask it instead), a target is longer than [`MAX_TARGET_BYTES`], there are more than
/// [`MAX_STOPPED_PURGES`], or the disk refuses.
pub fn append_while_stopped(
    path: &Path,
    storage: &Arc<dyn Storage>,
    purges: &[StoppedPurge],
) -> Result<bool, TierError> {
    match storage.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        _ if purges.is_empty() => return Ok(false),
        _ => {}
    }
    let bytes: usize = purges.iter().map(|purge| purge.target.len()).sum();
    if purges.len() > MAX_STOPPED_PURGES || bytes > MAX_STOPPED_BYTES {
        return Err(TierError::Terms("too many purges at once"));
    }
    if purges
        .iter()
        .any(|purge| purge.target.len() > MAX_TARGET_BYTES)
    {
        return Err(TierError::Terms("the target of a purge is too long"));
    }
    let start = FolderStart::take(&**storage, path)?;
    if start.history.files.is_empty() && !start.has_segments() {
        return Ok(false);
    }
    let first = u64::from(start.start) << 48;
    let wall_millis = storage.now().wall_millis;
    let written: Vec<_> = (first + 1..)
        .zip(purges)
        .map(|(stamp, purge)| WrittenPurge {
            stamp,
            mode: purge.mode,
            wall_millis,
            target: purge.target.clone(),
        })
        .collect();
    write_stopped(&**storage, path, &start.history, start.terms(), &written)
        .map_err(io_error("write a journal in", path))?;
    Ok(true)
}

/// Purges that one call of [`append_while_stopped`] takes at most.
pub const MAX_STOPPED_PURGES: usize = 16 << 10;
/// The bound of their targets together.
const MAX_STOPPED_BYTES: usize = 2 << 20;
