//! From a path to the open folder that holds its last name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The end of a path: a name in an open folder.
#[derive(Debug)]
pub struct FolderEntry {
    pub folder: OwnedFd,
    pub name: OsString,
    /// Only root can put something else under that name.
    pub is_trusted: bool,
    /// Root's files in the folder stay, as far as others are concerned: they may at most put files
    /// of their own beside them.
    pub keeps_roots: bool,
    /// The name stands for an open file of a process (`/proc/self/fd/2`): a link that cannot
    /// be read as a path, only followed.
    pub is_descriptor: bool,
}

/// The treatment of a missing folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MissingFolder {
    Fail,
    Make,
}

/// Whether a link at the end of the path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLink {
    Follow,
    Keep,
}

impl FolderEntry {
    /// That of the name itself, be it a link or not.
    pub fn of_name_itself(path: &Path) -> io::Result<FolderEntry> {
        step_through(path, MissingFolder::Fail, LastLink::Keep)
    }
}

/// The entry that the path leads to.
///
/// # Errors
/// An error of the system, or a link on the way is not root's.
pub fn walk(path: &Path, missing: MissingFolder) -> io::Result<FolderEntry> {
    step_through(path, missing, LastLink::Follow)
}

/// A folder on the way, and whether its content can be trusted.
struct WalkedFolder {
    folder: OwnedFd,
    stat: Stat,
    is_trusted: bool,
}

impl WalkedFolder {
    fn root() -> io::Result<WalkedFolder> {
        WalkedFolder::of(rustix::fs::open("/", FOLDER, Mode::empty())?, true)
    }

    /// The working directory: nothing is known of the folders above it.
    fn working_directory() -> io::Result<WalkedFolder> {
        WalkedFolder::of(rustix::fs::open(".", FOLDER, Mode::empty())?, false)
    }

    fn of(folder: OwnedFd, is_trusted: bool) -> io::Result<WalkedFolder> {
        let stat = rustix::fs::fstat(&folder)?;
        Ok(WalkedFolder {
            folder,
            stat,
            is_trusted,
        })
    }

    /// Returns whether only root can change the file under a name here, given that file.
    fn holds_fast(&self, found: Option<&Stat>) -> bool {
        match found {
            Some(found) => self.keeps(found.st_uid),
            None => self.is_trusted && self.stat.st_uid == 0 && !self.is_open(),
        }
    }

    /// Can only root exchange a file here that belongs to `owner`? In a folder that all accounts may
    /// write, the sticky bit protects the files of each account.
    fn keeps(&self, owner: u32) -> bool {
        let is_sticky = self.stat.st_mode & 0o1000 != 0;
        self.is_trusted && self.stat.st_uid == 0 && (!self.is_open() || is_sticky && owner == 0)
    }

    fn is_open(&self) -> bool {
        self.stat.st_mode & 0o022 != 0
    }

    fn is_in_proc(&self) -> bool {
        rustix::fs::fstatfs(&self.folder).is_ok_and(|file_system| {
            file_system.f_type as u64 == rustix::fs::PROC_SUPER_MAGIC as u64
        })
    }
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn step_through(path: &Path, missing: MissingFolder, last: LastLink) -> io::Result<FolderEntry> {
    let mut here = if path.is_absolute() {
        WalkedFolder::root()?
    } else {
        WalkedFolder::working_directory()?
    };
    let mut links = 0;
    // The next name is the last of these.
    let mut names = names_of(path.as_os_str());
    while let Some(name) = names.pop() {
        let is_last = names.is_empty();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match rustix::fs::openat(&here.folder, &name, flags, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) if is_last => return Ok(entry_of(here, name, None)),
            Err(Errno::NOENT) if missing == MissingFolder::Make => {
                rustix::fs::mkdirat(&here.folder, &name, Mode::from_raw_mode(0o755))?;
                names.push(name);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&found)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink && !(is_last && last == LastLink::Keep) {
            if here.is_in_proc() {
                if is_last {
                    let mut entry = entry_of(here, name, Some(&stat));
                    entry.is_descriptor = true;
                    return Ok(entry);
                }
                let next = rustix::fs::openat(&here.folder, &name, FOLDER, Mode::empty())?;
                here = WalkedFolder::of(next, here.is_trusted)?;
                continue;
            }
            let holds_fast = here.holds_fast(Some(&stat));
            let is_roots_own = stat.st_uid == 0 && stat.st_nlink == 1;
            if !holds_fast && !is_roots_own {
                return Err(io::Error::other(
                    "a link on the way there may have been made by another account",
                ));
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            // Read from the link that was looked at, not from the file that has its name by now.
            let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
            let target = OsString::from_vec(target.into_bytes());
            if Path::new(&target).is_absolute() {
                here = WalkedFolder::root()?;
            }
            here.is_trusted &= holds_fast;
            names.extend(names_of(&target));
            continue;
        }
        if is_last {
            return Ok(entry_of(here, name, Some(&stat)));
        }
        if kind != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        let is_trusted = here.holds_fast(Some(&stat));
        here = WalkedFolder::of(found, is_trusted)?;
    }
    Err(Errno::ISDIR.into())
}

fn entry_of(here: WalkedFolder, name: OsString, found: Option<&Stat>) -> FolderEntry {
    FolderEntry {
        is_trusted: here.holds_fast(found),
        keeps_roots: here.keeps(0),
        folder: here.folder,
        name,
        is_descriptor: false,
    }
}

/// Returns the names of a path, the first one last. `..` stays: the open folder itself leads to
/// the folder above.
fn names_of(path: &OsStr) -> Vec<OsString> {
    path.as_bytes()
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| OsStr::from_bytes(name).to_owned())
        .rev()
        .collect()
}
