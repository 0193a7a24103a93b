//! Files that root opens, makes and removes by paths in which accounts with fewer rights
//! may have a hand: a log in a folder of the site, a pid file beside it.
//!
//! An account that may write a folder can put a link, a FIFO or another file in the place of the file that
//! root means to open. So the path is walked one name at a time, each relative to the open folder before it:
//!
//! - A link is followed only where root made it.
//! - A folder that is passed through is never opened by its path a second time.
//! - The file itself is a regular file with one name, or one that root made. It is opened
//!   without waiting, so that a FIFO without a reader is an error instead of a hang.
//!
//! A path is *trusted* when only root can change its target. There, files of root are used as they are,
//! FIFOs with a reader and devices included.
//!
//! For other accounts than root, this crate does the same as the standard library: there is no
//! account with fewer rights to be wary of, and links made by others are usual.

mod walk;

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Stat};

use walk::{FolderEntry, MissingFolder, walk};

/// The most that root reads from a file that others may have written: a pid file has ten bytes.
const MAX_READ_BYTES: u64 = 4096;

/// Opens a file for appending; makes it and the folders above it if they are missing.
///
/// # Errors
/// An error of the system, or the file is not root's to write.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    if !is_root() {
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            // An error here shows when the file is opened.
            let _ = std::fs::create_dir_all(folder);
        }
        return plain(mode).append(true).open(path);
    }
    let entry = walk(path, MissingFolder::Make)?;
    open_to_write(&entry, OFlags::APPEND, mode)
}

/// Makes the content of a file be `bytes`.
///
/// # Errors
/// An error of the system, or the file is not root's to write.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if !is_root() {
        return plain(mode)
            .write(true)
            .truncate(true)
            .open(path)?
            .write_all(bytes);
    }
    let entry = walk(path, MissingFolder::Fail)?;
    // Emptied only once it is known to be the right file.
    let mut file = open_to_write(&entry, OFlags::empty(), mode)?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// Opens the file or folder at a path as it is, without ever waiting: a file to read, a folder with `PATH`
/// and `DIRECTORY` among the flags.
///
/// # Errors
/// An error of the system, or a link on the way is not root's.
pub fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    if !is_root() {
        return Ok(rustix::fs::open(path, flags, Mode::empty())?);
    }
    let entry = walk(path, MissingFolder::Fail)?;
    let flags = flags | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(
        &entry.folder,
        &entry.name,
        flags,
        Mode::empty(),
    )?)
}

/// Reads a small regular file without ever waiting, and returns its owner.
///
/// # Errors
/// An error of the system; anything but a regular file is refused.
pub fn read_small(path: &Path) -> io::Result<(String, u32)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_READ_BYTES).read_to_string(&mut text)?;
    Ok((text, stat.st_uid))
}

/// Removes a file or a link, never the target of a link.
///
/// # Errors
/// An error of the system.
pub fn remove(path: &Path) -> io::Result<()> {
    if !is_root() {
        return std::fs::remove_file(path);
    }
    let entry = FolderEntry::of_name_itself(path)?;
    Ok(rustix::fs::unlinkat(
        &entry.folder,
        &entry.name,
        AtFlags::empty(),
    )?)
}

/// Makes an empty file that belongs to an account, where only root could make it and it is missing.
/// Elsewhere that account can make the file itself.
///
/// # Errors
/// An error of the system.
pub fn make_for(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    let entry = walk(path, MissingFolder::Fail)?;
    if !entry.is_trusted {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat(
        &entry.folder,
        &entry.name,
        flags,
        Mode::from_raw_mode(0o600),
    ) {
        Ok(file) => Ok(rustix::fs::fchown(
            &file,
            Some(user(uid)),
            Some(group(gid)),
        )?),
        Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a folder, one level, that only `owner` may enter. A folder that exists already is given to
/// the owner only where only root could have put it there.
///
/// # Errors
/// An error of the system, or the folder belongs to another account.
pub fn make_folder(path: &Path, owner: u32) -> io::Result<()> {
    owned_folder(path, owner).map(drop)
}

/// Like [`make_folder`], and gives the files in the folder to the owner too: files of accounts for which
/// `is_former` is true and that have no other name.
///
/// # Errors
/// The errors of [`make_folder`].
pub fn make_folder_with_files(
    path: &Path,
    owner: u32,
    is_former: impl Fn(u32) -> bool,
) -> io::Result<()> {
    let Some(folder) = owned_folder(path, owner)? else {
        return Ok(());
    };
    for entry in rustix::fs::Dir::read_from(&folder)? {
        give_file(&folder, entry?.file_name(), owner, &is_former)?;
    }
    Ok(())
}

fn give_file(
    folder: &OwnedFd,
    name: &CStr,
    owner: u32,
    is_former: impl Fn(u32) -> bool,
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if is_regular && stat.st_nlink == 1 && stat.st_uid != owner && is_former(stat.st_uid) {
        let (uid, flags) = (Some(user(owner)), AtFlags::EMPTY_PATH);
        rustix::fs::chownat(&file, c"", uid, None, flags)?;
    }
    Ok(())
}

/// Like [`make_folder`], and `group` may read and remove the owner's files: files in it get this group. The
/// folder may exist already, with another group.
///
/// # Errors
/// The errors of [`make_folder`].
pub fn make_folder_for_group(path: &Path, owner: u32, group_id: u32) -> io::Result<()> {
    let Some(folder) = owned_folder(path, owner)? else {
        return Ok(());
    };
    rustix::fs::fchown(&folder, None, Some(group(group_id)))?;
    Ok(rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o2770))?)
}

/// A folder of `owner`, made if it is missing. Nothing: it was the owner's before, and another account than root may
/// have put it there.
fn owned_folder(path: &Path, owner: u32) -> io::Result<Option<OwnedFd>> {
    let entry = walk(path, MissingFolder::Fail)?;
    let made = rustix::fs::mkdirat(&entry.folder, &entry.name, Mode::from_raw_mode(0o700));
    let is_new = match made {
        Ok(()) => true,
        Err(rustix::io::Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&entry.folder, &entry.name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&folder)?;
    if stat.st_uid == owner {
        return Ok(entry.is_trusted.then_some(folder));
    }
    // The owner of the parent, if another account, may have exchanged the new folder since.
    let is_the_new_one = is_new && stat.st_uid == 0 && is_empty(&folder)?;
    if !entry.is_trusted && !is_the_new_one {
        return Err(io::Error::other("it belongs to another account"));
    }
    rustix::fs::fchown(&folder, Some(user(owner)), None)?;
    Ok(Some(folder))
}

/// Makes a folder, one level, that all accounts may enter and only this account may write. A folder
/// that exists already stays as it is.
///
/// # Errors
/// An error of the system, or something else has its name.
pub fn make_open_folder(path: &Path) -> io::Result<()> {
    let entry = name_itself(path)?;
    let made = rustix::fs::mkdirat(&entry.folder, &entry.name, Mode::from_raw_mode(0o700));
    if let Err(error) = made
        && error != rustix::io::Errno::EXIST
    {
        return Err(error.into());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(&entry.folder, &entry.name, flags, Mode::empty()) {
        Ok(folder) => folder,
        // A link to a folder: operations in it check the link again.
        Err(_) if made.is_err() && path.is_dir() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    // The owner of the parent, if another account, may have exchanged the folder since.
    let is_own = rustix::fs::fstat(&folder)?.st_uid == rustix::process::geteuid().as_raw();
    if made.is_ok() && is_own {
        // Sets the mode regardless of the umask.
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o755))?;
    }
    Ok(())
}

/// Replaces the content of a file at once: the new file takes the old one's name, so that a reader
/// sees the old bytes or the new ones. A link of that name is replaced, not followed.
///
/// # Errors
/// An error of the system, or a link on the way there is not root's.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_for(path, bytes, mode, None)
}

/// Like [`replace`], and the file belongs to this account and group.
///
/// # Errors
/// The errors of [`replace`].
pub fn replace_for(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: Option<(u32, u32)>,
) -> io::Result<()> {
    let FolderEntry { folder, name, .. } = name_itself(path)?;
    let mut new = std::ffi::OsString::from(".");
    new.push(&name);
    new.push(format!(".{}", std::process::id()));
    // Left by a process of the same number that was killed.
    let _ = rustix::fs::unlinkat(&folder, &new, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, &new, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    let written = file
        .write_all(bytes)
        // By the descriptor: another account may be able to change the target of the name.
        .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?))
        .and_then(|()| match owner {
            Some((uid, gid)) => Ok(rustix::fs::fchown(
                &file,
                Some(user(uid)),
                Some(Gid::from_raw(gid)),
            )?),
            None => Ok(()),
        })
        .and_then(|()| Ok(rustix::fs::renameat(&folder, &new, &folder, &name)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, &new, AtFlags::empty());
    }
    written
}

/// The folder that holds the path's last name: walked by root, as the system finds it for others.
fn name_itself(path: &Path) -> io::Result<FolderEntry> {
    if is_root() {
        return FolderEntry::of_name_itself(path);
    }
    let name = path.file_name().ok_or(rustix::io::Errno::ISDIR)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(FolderEntry {
        folder: rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?,
        name: name.to_owned(),
        is_trusted: false,
        keeps_roots: false,
        is_descriptor: false,
    })
}

/// Sets the mode of the unix socket at `path`, which this process has just bound.
///
/// # Errors
/// An error of the system, or something else has taken its place.
pub fn set_socket_mode(path: &Path, mode: u32) -> io::Result<()> {
    if !is_root() {
        use std::os::unix::fs::PermissionsExt;
        return std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
    }
    let entry = FolderEntry::of_name_itself(path)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = rustix::fs::openat(&entry.folder, &entry.name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&socket)?;
    let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::Socket
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_nlink == 1;
    if !is_ours {
        return Err(io::Error::other("something else has taken its place"));
    }
    // The descriptor names the socket itself, whatever the path leads to by now.
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
    Ok(rustix::fs::chmod(itself, Mode::from_raw_mode(mode))?)
}

/// Returns whether root's files in a folder stay there under their names: a folder of root's, or a folder
/// open to all accounts in which each account may remove only its own files.
pub fn keeps_roots_files(folder: &Path) -> bool {
    walk(&folder.join("any"), MissingFolder::Fail).is_ok_and(|entry| entry.keeps_roots)
}

/// A folder that only this process's account may write, and others may pass through.
#[derive(Debug)]
pub struct OwnFolder(OwnedFd);

impl OwnFolder {
    /// Makes it; the name must be free.
    ///
    /// # Errors
    /// An error of the system, or something else has taken its place.
    pub fn make(path: &Path, mode: u32) -> io::Result<OwnFolder> {
        rustix::fs::mkdir(path, Mode::from_raw_mode(0o700))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        if rustix::fs::fstat(&folder)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("something else has taken its place"));
        }
        // For as long as this process lives, or has it open: see `abandoned`.
        rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        // Sets the mode regardless of the umask.
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode))?;
        Ok(OwnFolder(folder))
    }

    /// One of another process, which has given this descriptor of it away.
    #[must_use]
    pub fn taken_over(folder: OwnedFd) -> OwnFolder {
        OwnFolder(folder)
    }

    /// A descriptor of the folder for another process, which keeps it from being [`OwnFolder::abandoned`].
    ///
    /// # Errors
    /// An error of the system.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// A folder that [`OwnFolder::make`] of this account made in a process that is gone: no process
    /// has it open any more.
    pub fn abandoned(path: &Path) -> Option<OwnFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let is_own = rustix::fs::fstat(&folder).ok()?.st_uid == rustix::process::geteuid().as_raw();
        let is_free = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        (is_own && is_free).then_some(OwnFolder(folder))
    }

    /// Removes the folder, which is at `path`, and the files of these names. One that holds
    /// anything else stays.
    ///
    /// # Errors
    /// An error of the system.
    pub fn remove(self, path: &Path, names: &[&str]) -> io::Result<()> {
        for name in names {
            match rustix::fs::unlinkat(&self.0, *name, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rustix::fs::rmdir(path)?)
    }

    /// Writes a new file, never into an existing one. Only this process's account and the group
    /// `readers` may read it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn write(&self, name: &str, bytes: &[u8], readers: Option<u32>) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        file.write_all(bytes)?;
        if let Some(gid) = readers {
            rustix::fs::fchown(&file, None, Some(group(gid)))?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o640))?;
        }
        Ok(())
    }

    /// Gives a file in it to an account, with that mode. Links are not followed.
    ///
    /// # Errors
    /// An error of the system.
    pub fn give(&self, name: &str, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
        // Only this process's account could put a link here, so that the mode may be set by name.
        rustix::fs::chmodat(&self.0, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        if let Some((uid, gid)) = owner {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(&self.0, name, Some(user(uid)), Some(group(gid)), flags)?;
        }
        Ok(())
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn user(uid: u32) -> rustix::fs::Uid {
    rustix::fs::Uid::from_raw(uid)
}

fn group(gid: u32) -> rustix::fs::Gid {
    rustix::fs::Gid::from_raw(gid)
}

fn plain(mode: u32) -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(mode);
    options
}

/// Opens without waiting, and checks the opened file before anything is written.
fn open_to_write(entry: &FolderEntry, flags: OFlags, mode: u32) -> io::Result<File> {
    let mut flags = flags
        | OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    if !entry.is_descriptor {
        flags |= OFlags::NOFOLLOW;
    }
    let mode = Mode::from_raw_mode(mode);
    let file = rustix::fs::openat(&entry.folder, &entry.name, flags, mode).map_err(explain)?;
    let stat = rustix::fs::fstat(&file)?;
    if !entry.is_trusted && !is_fit(&stat) {
        return Err(io::Error::other(
            "it is not a regular file with one name, and others may write its folder",
        ));
    }
    // Only the opening must not wait.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(File::from(file))
}

fn explain(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::NXIO => io::Error::other("no process reads from it, or it is a socket"),
        rustix::io::Errno::LOOP => {
            io::Error::other("it is a link that another account may have made")
        }
        error => error.into(),
    }
}

/// A second name may be that of a file elsewhere, which a link brought here.
fn is_fit(stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_nlink == 1,
        _ => stat.st_uid == 0,
    }
}

fn is_empty(folder: impl AsFd) -> io::Result<bool> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
