//! The files and clocks of this machine.

use super::{FolderLock, ListedFile, Storage, StorageFile};
use crate::hash::stable_hash;
use crate::times::TierTime;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The machine.
#[derive(Debug, Default)]
pub struct SystemStorage {
    /// The file system refused to read without waiting (tmpfs does): it is not asked again.
    refuses_now: Arc<AtomicBool>,
}

impl SystemStorage {
    #[must_use]
    pub fn new() -> Arc<SystemStorage> {
        Arc::default()
    }

    fn file(&self, file: File) -> Arc<dyn StorageFile> {
        Arc::new(SystemFile {
            file: Arc::new(file),
            refuses_now: Arc::clone(&self.refuses_now),
        })
    }

    fn opened(&self, path: &Path, options: &mut OpenOptions) -> io::Result<Arc<dyn StorageFile>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        match file.metadata()?.is_file() {
            true => Ok(self.file(file)),
            false => Err(io::Error::other("not a regular file")),
        }
    }
}

/// Opens or makes a file of a folder that is no link. If root does it, the file belongs to the owner of the
/// folder: the account that serves must read files that root has written for it. A file with another name
/// besides is not given away, since the account may have linked one that is not its own.
fn opened_for_owner(path: &Path, flags: OFlags) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let of_folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(folder, of_folder, Mode::empty())?);
    let flags = flags
        | OFlags::CREATE
        | OFlags::RDWR
        | OFlags::CLOEXEC
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(rustix::fs::openat(&folder, name, flags, mode)?);
    let (found, owner) = (file.metadata()?, folder.metadata()?);
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let is_to_give = found.uid() != owner.uid() && found.nlink() == 1;
    if is_to_give && rustix::process::geteuid().is_root() {
        std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(file)
}

impl Storage for SystemStorage {
    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = std::fs::symlink_metadata(path)?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            return Ok(false);
        }
        if found.mode() & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        }
        Ok(true)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FolderLock>>> {
        let file = opened_for_owner(path, OFlags::empty())?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(SystemLock(file)))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<ListedFile>> {
        std::fs::read_dir(folder)?
            .map(|entry| {
                let entry = entry?;
                let found = entry.metadata()?;
                Ok(ListedFile {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    len: found.is_file().then_some(found.len()),
                })
            })
            .collect()
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        opened_for_owner(path, OFlags::EXCL).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.opened(path, OpenOptions::new().read(true))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.opened(path, OpenOptions::new().read(true).write(true))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn now(&self) -> TierTime {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let boot = clock_gettime(ClockId::Boottime).try_into().unwrap_or(wall);
        TierTime {
            wall_millis: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            boot_millis: u64::try_from(boot.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn boot_number(&self) -> u64 {
        // Without an answer each process is a boot of its own: ages go by the wall clock.
        let id = std::fs::read(BOOT_ID).unwrap_or_else(|_| {
            let now = self.now();
            format!("{} {}", now.wall_millis, std::process::id()).into_bytes()
        });
        stable_hash(&id)
    }
}

#[derive(Debug)]
struct SystemLock(#[expect(dead_code, reason = "the lock lives as long as its file is open")] File);

impl FolderLock for SystemLock {}

#[derive(Debug)]
struct SystemFile {
    file: Arc<File>,
    refuses_now: Arc<AtomicBool>,
}

impl StorageFile for SystemFile {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[count..], offset + count as u64)
            {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        if self.refuses_now.load(Relaxed) {
            return Ok(None);
        }
        let wanted = buffer.len();
        let buffers = &mut [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(&*self.file, buffers, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) if count == wanted => Ok(Some(count)),
            // Less: the rest is not in memory, or the file ends here, which a thread finds out.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            // The file system refuses; or the kernel, an emulated one, lacks the call.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.refuses_now.store(true, Relaxed);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&*self.file)?)
    }

    fn system_file(&self) -> Option<&Arc<File>> {
        Some(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn nothing_is_made_in_a_folder_behind_a_link() {
        let root = tempfile::tempdir().unwrap();
        let (folder, link) = (root.path().join("folder"), root.path().join("link"));
        std::fs::create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        let storage = SystemStorage::new();
        assert!(storage.lock(&link.join("lock")).is_err());
        assert!(storage.create(&link.join("journal")).is_err());
        assert_eq!(storage.list(&folder).unwrap().len(), 0);
        assert!(storage.lock(&folder.join("lock")).unwrap().is_some());
        assert!(storage.create(&folder.join("journal")).is_ok());
        assert!(storage.create(&folder.join("journal")).is_err());
    }

    #[test]
    fn root_gives_what_it_made_to_the_owner_of_the_folder_and_nothing_else() {
        const ACCOUNT: u32 = 12_345;
        if !rustix::process::geteuid().is_root() {
            // No other account can give files away.
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let (folder, secret) = (root.path().join("folder"), root.path().join("secret"));
        std::fs::create_dir(&folder).unwrap();
        chown(&folder, Some(ACCOUNT), Some(ACCOUNT)).unwrap();
        std::fs::write(&secret, "of root").unwrap();
        std::fs::hard_link(&secret, folder.join("lock")).unwrap();
        let storage = SystemStorage::new();
        storage.create(&folder.join("journal")).unwrap();
        let _ = storage.lock(&folder.join("lock"));
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        assert_eq!(owner(&folder.join("journal")), ACCOUNT);
        assert_eq!(owner(&secret), 0);
    }
}
