//! The folder of a database, found without waiting: a path that a worker names may lead to a mount that does not answer.
//!
//! A thread that may wait opens the folder and learns whether its file system is on this machine. Each look resolves the path from
//! memory alone, and goes on only if it leads to that file system. What it does there waits for a disk at most.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, FsWord, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use super::NoState;

/// File systems whose files only this machine writes, and whose memory all its processes share: btrfs, ext2 to ext4,
/// F2FS, overlayfs, tmpfs, XFS, ZFS.
const LOCAL_FILE_SYSTEMS: [FsWord; 7] = [
    0x9123_683e,
    0xef53,
    0xf2f5_2010,
    0x794c_7630,
    0x0102_1994,
    0x5846_5342,
    0x2fc1_2fc1,
];

/// A name that another process alters at this very moment is not found in memory.
const MAX_TRIES: usize = 3;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file system that is mounted, by the numbers of its device.
type FileSystem = (u32, u32);

#[derive(Debug)]
pub struct SqliteFolder {
    path: PathBuf,
    /// The file system on which it was when a thread looked that may wait, or why it is not to be looked into.
    local: Mutex<Result<FileSystem, &'static str>>,
}

impl SqliteFolder {
    /// That of this file.
    pub fn of(file: &Path) -> SqliteFolder {
        SqliteFolder {
            path: file.parent().unwrap_or(file).to_owned(),
            local: Mutex::new(Err("it has not been looked at yet")),
        }
    }

    /// Finds out whether it can be looked into. Waits for as long as its file system takes.
    pub fn examine(&self) {
        let found = self.find();
        *self.local.lock() = found;
    }

    fn find(&self) -> Result<FileSystem, &'static str> {
        let folder = rustix::fs::open(&self.path, FOLDER, Mode::empty());
        let folder = folder.map_err(why_not_opened)?;
        let system = rustix::fs::fstatfs(&folder).map(|system| system.f_type);
        if !system.is_ok_and(|system| LOCAL_FILE_SYSTEMS.contains(&system)) {
            return Err("its file system is not one whose writes are seen at once");
        }
        let found = file_system_of(&folder).ok_or("Mayfly may not look into its folder")?;
        match from_memory(&self.path) {
            Ok(_) => Ok(found),
            Err(Errno::AGAIN) => Err("its file system does not find it without waiting"),
            Err(error) => Err(why_not_opened(error)),
        }
    }

    /// Opens it. Never waits.
    pub fn open(&self) -> Result<OwnedFd, NoState> {
        let local = self.local.lock().map_err(NoState::Unknown)?;
        let folder = match from_memory(&self.path) {
            Ok(folder) => folder,
            Err(Errno::AGAIN) => return Err(NoState::Changing),
            Err(error) => return Err(NoState::Unknown(why_not_opened(error))),
        };
        match file_system_of(&folder) == Some(local) {
            true => Ok(folder),
            // It leads elsewhere by now, which the next look finds that may wait.
            false => Err(NoState::Changing),
        }
    }
}

fn from_memory(path: &Path) -> Result<OwnedFd, Errno> {
    let open = || rustix::fs::openat2(CWD, path, FOLDER, Mode::empty(), ResolveFlags::CACHED);
    let mut tries = std::iter::repeat_with(open).take(MAX_TRIES);
    let opened = tries.find(|opened| !matches!(opened, Err(Errno::AGAIN)));
    opened.unwrap_or(Err(Errno::AGAIN))
}

/// Returns the file system of a folder, as it is known without asking a server for it.
fn file_system_of(folder: &OwnedFd) -> Option<FileSystem> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let facts = rustix::fs::statx(folder, "", flags, StatxFlags::BASIC_STATS).ok()?;
    Some((facts.stx_dev_major, facts.stx_dev_minor))
}

fn why_not_opened(error: Errno) -> &'static str {
    match error {
        Errno::NOENT | Errno::NOTDIR => "it is not there",
        Errno::INVAL | Errno::NOSYS | Errno::PERM => {
            "the system cannot look it up without waiting, as Linux 5.12 and later can"
        }
        _ => "Mayfly may not look into its folder",
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
