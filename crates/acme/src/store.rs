//! The folder of an issuer: the account's key, and certificates with their keys. Other accounts may
//! not read or write it. A file is written under a temporary name and renamed once it is on disk,
//! so that a reader finds the whole old file or the whole new one.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags};

/// Bytes of a file that are read at most: a certificate with its chain and key has a few thousand.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A file of the folder that has kept its old content.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written ({error})", .path.display())]
pub struct FileNotWritten {
    path: PathBuf,
    error: io::Error,
}

/// A folder, or memory in its place.
#[derive(Debug)]
pub struct Store(Storage);

#[derive(Debug)]
enum Storage {
    Folder { path: PathBuf, folder: OwnedFd },
    Memory(Mutex<HashMap<String, Vec<u8>>>),
}

impl Store {
    /// Opens the folder, which is made where it is missing.
    ///
    /// # Errors
    /// The error of the system, or that others may read or write the folder.
    pub fn open(path: &Path) -> io::Result<Store> {
        DirBuilder::new().mode(0o700).recursive(true).create(path)?;
        Store::open_existing(path)
    }

    /// Opens the folder, which has to exist.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub fn open_existing(path: &Path) -> io::Result<Store> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || stat.st_mode & 0o077 != 0 {
            let message = "others may read or write it: it should belong to the account that starts \
                           the server, with the mode 0700";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let path = path.to_owned();
        Ok(Store(Storage::Folder { path, folder }))
    }

    /// Keeps everything in memory.
    pub fn in_memory() -> Store {
        Store(Storage::Memory(Mutex::default()))
    }

    /// The content of a file; `None` if the file is missing or cannot be read.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        match &self.0 {
            Storage::Memory(files) => files.lock().get(name).cloned(),
            Storage::Folder { folder, .. } => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
                let mut bytes = Vec::new();
                let mut file = File::from(file).take(MAX_FILE_BYTES);
                file.read_to_end(&mut bytes).ok()?;
                Some(bytes)
            }
        }
    }

    /// Replaces the content of a file.
    ///
    /// # Errors
    /// The error of the system, with the name of the file; the old content is still there then.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileNotWritten> {
        match &self.0 {
            Storage::Memory(files) => {
                files.lock().insert(name.to_owned(), bytes.to_vec());
                Ok(())
            }
            Storage::Folder { path, folder } => {
                let written = write_and_rename(folder, name, bytes);
                let path = path.join(name);
                written.map_err(|error| FileNotWritten { path, error })
            }
        }
    }

    /// Removes a file, if there is one.
    pub fn remove(&self, name: &str) {
        match &self.0 {
            Storage::Memory(files) => drop(files.lock().remove(name)),
            // A file that cannot be removed is found to be outdated later.
            Storage::Folder { folder, .. } => {
                let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
            }
        }
    }
}

fn write_and_rename(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.new");
    // One that an earlier process left unfinished.
    let _ = rustix::fs::unlinkat(folder, &*temporary, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(rustix::fs::openat(folder, &*temporary, flags, mode)?);
    file.write_all(bytes)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, &*temporary, folder, name)?;
    rustix::fs::fsync(folder.as_fd())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_for_their_owner_only_and_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let store = Store::open(&path).unwrap();
        store.write("key", b"one").unwrap();
        // The unfinished file of a process that ended while it wrote.
        std::fs::write(path.join("key.new"), "unfinished").unwrap();
        assert_eq!(store.read("key").as_deref(), Some(&b"one"[..]));
        store.write("key", b"two").unwrap();
        assert_eq!(store.read("key").as_deref(), Some(&b"two"[..]));
        assert_eq!((mode(&path), mode(&path.join("key"))), (0o700, 0o600));
        assert!(!path.join("key.new").exists());
        store.remove("key");
        assert_eq!(store.read("key"), None);
    }

    #[test]
    fn a_folder_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("open");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
