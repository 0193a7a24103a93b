//! The state of an SQLite database: equal states mean equal data. What is compared at each hit of a page that
//! was made of one.
//!
//! ```text
//! rollback journal: file (device, inode, size, ctime) + change counter        no hot journal beside it
//! WAL, empty:       the same                                                  written a while ago
//! WAL with frames:  the same + log (inode, size, mtime) + header of the index
//! ```
//!
//! SQLite writes each of these before another connection can see the data that belongs to it (the argument is in
//! `docs/design/2026-11-27-sqlite.md`). Mayfly takes no locks: it reads what the writers have left in
//! the page cache. No statement is known, so that any write counts for all that was read of the database.

mod folder;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, ReadWriteFlags};

use folder::SqliteFolder;

/// How a database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The part of the database's header that is read: the format versions and the change counter are in it.
const HEADER_BYTES: usize = 32;

/// One of the two copies of the index's header that begin the `-shm` file.
const INDEX_HEADER_BYTES: usize = 48;

/// Whether the index's header was written.
const INDEX_IS_WRITTEN: usize = 12;

/// A log without frames has its own header at most.
const EMPTY_LOG_BYTES: u64 = 32;

/// How far the time of a file may lie behind the clock: two ticks of a kernel with 100 a second.
const TICKS_NANOSECONDS: i64 = 20_000_000;

/// How far the time of a file may lie behind the clock where the file system has whole seconds.
const SECONDS_NANOSECONDS: i64 = 2_000_000_000;

/// Longer paths are refused by the system.
const MAX_PATH_BYTES: usize = 4000;

/// The facts of a file that change when it is replaced or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFacts {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Unix nanoseconds. Of a database that of its last change of whatever kind (ctime), which no program can set back. Of a
    /// log that of the last write: root, when it opens one, sets its owner each time.
    changed: i64,
}

impl FileFacts {
    fn of(facts: &Stat) -> FileFacts {
        FileFacts::at(facts, facts.st_ctime, facts.st_ctime_nsec)
    }

    fn of_log(facts: &Stat) -> FileFacts {
        FileFacts::at(facts, facts.st_mtime, facts.st_mtime_nsec)
    }

    fn at(facts: &Stat, seconds: i64, nanoseconds: u64) -> FileFacts {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(0);
        let seconds = seconds.saturating_mul(1_000_000_000);
        FileFacts {
            device: facts.st_dev,
            inode: facts.st_ino,
            bytes: u64::try_from(facts.st_size).unwrap_or(0),
            changed: seconds.saturating_add(nanoseconds),
        }
    }

    /// Whether a change after `now` has another time.
    fn is_settled(&self, now: i64) -> bool {
        let margin = match self.changed % 1_000_000_000 {
            0 => SECONDS_NANOSECONDS,
            _ => TICKS_NANOSECONDS,
        };
        self.changed < now.saturating_sub(margin)
    }
}

/// The state of the log, which changes with the frames that are not in the database yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogState {
    file: FileFacts,
    index: [u8; INDEX_HEADER_BYTES],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteState {
    file: FileFacts,
    counter: [u8; 4],
    /// Changes are written to a log first.
    has_log_mode: bool,
    log: Option<LogState>,
}

/// Why a database has no state now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoState {
    /// A program writes a transaction or has left one to roll back, or the last one ended within a tick of the clock.
    Changing,
    /// Mayfly cannot know what it is; for people.
    Unknown(&'static str),
}

/// A look at a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteLook {
    pub state: Result<SqliteState, NoState>,
    /// Each later change gives its files another time.
    pub is_settled: bool,
}

/// A database as a page met it.
#[derive(Debug, Clone)]
pub struct SqliteSeen {
    pub database: Arc<SqliteDatabase>,
    pub look: SqliteLook,
}

impl SqliteSeen {
    /// Is all as it was? What could not be known counts as the same while it cannot be known.
    pub fn is_same(&self, now: &SqliteLook) -> bool {
        self.look.state == now.state && now.state != Err(NoState::Changing)
    }
}

impl SqliteState {
    /// Makes the state of a database with this inode, without a log.
    #[cfg(test)]
    pub fn alone(inode: u64, counter: u8, has_log_mode: bool) -> SqliteState {
        let file = FileFacts {
            device: 1,
            inode,
            bytes: 4096,
            changed: 1,
        };
        SqliteState {
            file,
            counter: [0, 0, 0, counter],
            has_log_mode,
            log: None,
        }
    }

    /// Whether a transaction that goes on reads what was there at its begin, while others commit.
    pub fn has_snapshots(&self) -> bool {
        self.has_log_mode
    }

    /// Whether it is that of this file.
    pub fn is_of(&self, device: u64, inode: u64) -> bool {
        (self.file.device, self.file.inode) == (device, inode)
    }
}

/// May a look wait for a disk?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingManner {
    FromMemory,
    AlsoFromDisk,
}

#[derive(Debug)]
struct OpenFile {
    device: u64,
    inode: u64,
    file: File,
}

/// Descriptors that are kept from one look to the next: Mayfly has no locks on them that closing could release.
#[derive(Debug, Default)]
struct OpenFiles {
    database: Option<OpenFile>,
    index: Option<OpenFile>,
}

/// A database by its path.
#[derive(Debug)]
pub struct SqliteDatabase {
    path: PathBuf,
    folder: SqliteFolder,
    open: Mutex<OpenFiles>,
}

impl SqliteDatabase {
    pub fn new(path: PathBuf) -> SqliteDatabase {
        SqliteDatabase {
            folder: SqliteFolder::of(&path),
            path,
            open: Mutex::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks by about nine system calls that wait for no other machine: what is not in memory counts as changing. The database has
    /// no state before a look that may wait.
    pub fn look(&self) -> SqliteLook {
        self.look_by(ReadingManner::FromMemory)
    }

    /// Looks like [`Self::look`], and reads parts from disk that are not in the page cache. Blocks, for as long as the path's
    /// file systems take.
    pub fn look_and_wait(&self) -> SqliteLook {
        // Without the lock: others would wait for it.
        self.folder.examine();
        self.look_by(ReadingManner::AlsoFromDisk)
    }

    fn look_by(&self, manner: ReadingManner) -> SqliteLook {
        // Read first: what is written later has a later time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(0);
        let state = self.read(manner);
        let is_settled = state.is_ok_and(|state| {
            let log = state.log.is_none_or(|log| log.file.is_settled(now));
            log && state.file.is_settled(now)
        });
        // Frames may have come and gone within a tick.
        let is_doubtful = |state: &SqliteState| state.has_log_mode && state.log.is_none();
        let state = match state {
            Ok(state) if is_doubtful(&state) && !is_settled => Err(NoState::Changing),
            state => state,
        };
        SqliteLook { state, is_settled }
    }

    fn read(&self, manner: ReadingManner) -> Result<SqliteState, NoState> {
        let mut open = self.open.lock();
        let folder = self.folder.open()?;
        let folder = folder.as_fd();
        let (file, facts) = reach(folder, &self.name(""), &mut open.database)?;
        let mut header = [0; HEADER_BYTES];
        read_begin(file, &mut header, manner)?;
        let Some(rest) = header.strip_prefix(MAGIC) else {
            return Err(NoState::Unknown("it is no SQLite database now"));
        };
        let (versions, counter) = (rest.get(2..4), rest.get(8..12));
        let counter = counter.and_then(|it| it.try_into().ok());
        // After the counter: while a counter can still be taken back, its journal is there.
        if has_hot_journal(folder, &self.name("-journal"))? {
            return Err(NoState::Changing);
        }
        let has_log_mode = versions != Some(&[1, 1]);
        let log = match has_log_mode {
            true => self.read_log(folder, &mut open.index, manner)?,
            false => None,
        };
        Ok(SqliteState {
            file: facts,
            counter: counter.unwrap_or_default(),
            has_log_mode,
            log,
        })
    }

    /// The log and the header of its index; `None`: the log has no frames.
    fn read_log(
        &self,
        folder: BorrowedFd<'_>,
        index: &mut Option<OpenFile>,
        manner: ReadingManner,
    ) -> Result<Option<LogState>, NoState> {
        let Some(file) = facts_of(folder, &self.name("-wal"))? else {
            return Ok(None);
        };
        if file.bytes <= EMPTY_LOG_BYTES {
            return Ok(None);
        }
        // Without an index, it is recovered by the next reader, or another process has it for itself.
        let index = reach(folder, &self.name("-shm"), index);
        let (index, _) = index.map_err(|_| NoState::Changing)?;
        let mut copies = [0; 2 * INDEX_HEADER_BYTES];
        read_begin(index, &mut copies, manner)?;
        let (first, second) = copies.split_at(INDEX_HEADER_BYTES);
        let is_written = first.get(INDEX_IS_WRITTEN).is_some_and(|byte| *byte != 0);
        match first.try_into() {
            Ok(index) if is_written && first == second => Ok(Some(LogState { file, index })),
            _ => Err(NoState::Changing),
        }
    }

    /// Returns the name, in its folder, of the database or of a file beside it with this end.
    fn name(&self, end: &str) -> OsString {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(end);
        name
    }
}

/// Returns the facts of a log or a journal; `None`: the file does not exist.
fn facts_of(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<FileFacts>, NoState> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) if is_file(&facts) => Ok(Some(FileFacts::of_log(&facts))),
        Ok(_) => Err(NoState::Unknown("a file beside it is no regular file")),
        Err(Errno::NOENT) => Ok(None),
        Err(_) => Err(NoState::Unknown("Mayfly may not look into its folder")),
    }
}

/// A link may lead to any file system.
fn is_file(facts: &Stat) -> bool {
    FileType::from_raw_mode(facts.st_mode).is_file()
}

/// The file of this name, which is opened anew where it was replaced.
fn reach<'a>(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    open: &'a mut Option<OpenFile>,
) -> Result<(&'a File, FileFacts), NoState> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let stat = stat.map_err(|error| match error {
        Errno::NOENT => NoState::Unknown("it is not there"),
        _ => NoState::Unknown("Mayfly may not look into its folder"),
    })?;
    let facts = FileFacts::of(&stat);
    let is_it = |it: &OpenFile| (it.device, it.inode) == (facts.device, facts.inode);
    if !open.as_ref().is_some_and(is_it) {
        *open = None;
        if !is_file(&stat) {
            return Err(NoState::Unknown("it is no regular file"));
        }
        *open = Some(open_file(folder, name, &facts)?);
    }
    let file = open.as_ref().ok_or(NoState::Changing)?;
    Ok((&file.file, facts))
}

fn open_file(folder: BorrowedFd<'_>, name: &OsStr, facts: &FileFacts) -> Result<OpenFile, NoState> {
    // Whatever a hostile worker has put there, opening it neither waits nor makes it a terminal.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
    let opened = opened.map_err(|_| NoState::Unknown("Mayfly's account may not read it"))?;
    let found = rustix::fs::fstat(&opened).map(|found| FileFacts::of(&found));
    let is_it = |found: &FileFacts| (found.device, found.inode) == (facts.device, facts.inode);
    if !found.as_ref().is_ok_and(is_it) {
        return Err(NoState::Changing);
    }
    Ok(OpenFile {
        device: facts.device,
        inode: facts.inode,
        file: opened.into(),
    })
}

/// Reads the first bytes of a file.
fn read_begin(file: &File, bytes: &mut [u8], manner: ReadingManner) -> Result<(), NoState> {
    let wanted = bytes.len();
    if manner == ReadingManner::FromMemory {
        let parts = &mut [IoSliceMut::new(bytes)];
        match rustix::io::preadv2(file, parts, 0, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => return Ok(()),
            // The file system does not know this kind of reading.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            _ => return Err(NoState::Changing),
        }
    }
    file.read_exact_at(bytes, 0).map_err(|_| NoState::Changing)
}

/// A journal that is not empty and not marked as done: its transaction is being written, or has to be taken back.
fn has_hot_journal(folder: BorrowedFd<'_>, name: &OsStr) -> Result<bool, NoState> {
    if facts_of(folder, name)?.is_none_or(|facts| facts.bytes == 0) {
        return Ok(false);
    }
    let mut journal = None;
    let Ok((journal, _)) = reach(folder, name, &mut journal) else {
        return Ok(true);
    };
    let mut begin = [0; 8];
    let is_read = read_begin(journal, &mut begin, ReadingManner::FromMemory);
    Ok(is_read.is_err() || begin != [0; 8])
}

/// The path of a database that a worker has named, if its state can be looked at.
pub fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(bytes));
    let is_odd = !path.is_absolute()
        || bytes.len() > MAX_PATH_BYTES
        || bytes.contains(&0)
        || path.components().any(|it| it == Component::ParentDir);
    // There, a path means something else to each process.
    let is_of_kernel = path.starts_with("/proc") || path.starts_with("/sys");
    (!is_odd && !is_of_kernel).then(|| path.to_owned())
}

/// Is it a file that SQLite keeps beside this database, or the database itself?
pub fn is_part_of(database: &[u8], path: &[u8]) -> bool {
    let end = path.strip_prefix(database);
    end.is_some_and(|end| [&b""[..], b"-journal", b"-wal", b"-shm"].contains(&end))
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
