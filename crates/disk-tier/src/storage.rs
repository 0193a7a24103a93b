//! All input and output of a tier goes through these two traits, clocks included. [`SystemStorage`] is the machine;
//! with the feature `testing`, `testing::SimulatedDisk` is one that loses power, fails and stalls.

mod system;

pub use system::SystemStorage;

use crate::times::TierTime;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    pub name: String,
    /// Bytes, for a regular file; other kinds are foreign.
    pub len: Option<u64>,
}

/// Files of one machine, and its clocks.
pub trait Storage: Send + Sync + Debug {
    /// Makes the folder and those above it if they are missing, of mode 0700. `false`: it is a link, or of another
    /// account.
    ///
    /// # Errors
    /// The error of the system.
    fn make_folder(&self, path: &Path) -> io::Result<bool>;

    /// Takes the lock of a file, which is made if it is missing. Nothing: another process has it.
    ///
    /// # Errors
    /// The error of the system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FolderLock>>>;

    /// The files of a folder, in no order.
    ///
    /// # Errors
    /// The error of the system.
    fn list(&self, folder: &Path) -> io::Result<Vec<ListedFile>>;

    /// Makes a file that is not there yet, of mode 0600, to be read and written.
    ///
    /// # Errors
    /// The error of the system, `AlreadyExists` among others.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens a file to be read.
    ///
    /// # Errors
    /// The error of the system; a link is refused.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens a file to be read and written.
    ///
    /// # Errors
    /// The error of the system; a link is refused.
    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Removes a file; those who have it open keep it.
    ///
    /// # Errors
    /// The error of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name in its folder, in place of a file that has it.
    ///
    /// # Errors
    /// The error of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns when names that were made, changed and removed are so on the disk.
    ///
    /// # Errors
    /// The error of the system.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Returns the bytes that this account may still write to the file system of a path.
    ///
    /// # Errors
    /// The error of the system.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// The time by both clocks.
    fn now(&self) -> TierTime;

    /// A number that is another one after each start of the machine.
    fn boot_number(&self) -> u64;
}

/// The right to a folder; it ends when this is dropped, or with the process.
pub trait FolderLock: Send + Sync + Debug {}

/// An open file.
pub trait StorageFile: Send + Sync + Debug {
    /// # Errors
    /// The error of the system.
    fn byte_len(&self) -> io::Result<u64>;

    /// Reads until the buffer is full or the file ends; how much.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads without waiting for a disk. `None`: not all of it is in memory, or the file system does not support
    /// this.
    ///
    /// # Errors
    /// The error of the system.
    fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>>;

    /// Writes all of it.
    ///
    /// # Errors
    /// The error of the system; a part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when the file's bytes are on the disk.
    ///
    /// # Errors
    /// The error of the system; bytes written since the last success may be lost then.
    fn sync_data(&self) -> io::Result<()>;

    /// The file to send bodies from. Without one, all bodies are read into memory.
    fn system_file(&self) -> Option<&Arc<File>>;
}
