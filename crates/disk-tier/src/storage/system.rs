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
        Self::opened_file(path, options).map(|file| self.file(file))
    }

    fn opened_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("not a regular file")),
        }
    }
}

/// The account that serves must read what root has written for it.
fn give_to_owner_of_folder(path: &Path, file: &File) -> io::Result<()> {
    let own = rustix::process::geteuid();
    let Some(folder) = path.parent().filter(|_| own.is_root()) else {
        return Ok(());
    };
    let owner = std::fs::symlink_metadata(folder)?;
    match owner.uid() == own.as_raw() {
        true => Ok(()),
        false => std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid())),
    }
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
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
        give_to_owner_of_folder(path, &file)?;
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
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = Self::opened_file(path, options)?;
        give_to_owner_of_folder(path, &file)?;
        Ok(self.file(file))
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
            Err(Errno::OPNOTSUPP) => {
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
