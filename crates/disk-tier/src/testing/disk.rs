//! A disk in memory. Bytes that were not synced may be lost at a power cut, each sector and each name for itself; a
//! process may die at any operation, in the middle of a write; operations can be refused or held; files can be
//! damaged.

use crate::storage::{FolderLock, ListedFile, Storage, StorageFile};
use crate::times::TierTime;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SECTOR: usize = 512;
const FREE_BYTES: u64 = 1 << 40;

/// An operation that a test can refuse or hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskOperation {
    Read,
    Write,
    Sync,
    Create,
}

/// The fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// `ENOSPC`.
    Full,
    /// `EROFS`.
    ReadOnly,
    /// `EIO`.
    Failing,
    /// It waits until the fault is taken away.
    Stalling,
}

impl DiskFault {
    fn error(self) -> io::Error {
        let errno = match self {
            DiskFault::Full => rustix::io::Errno::NOSPC,
            DiskFault::ReadOnly => rustix::io::Errno::ROFS,
            DiskFault::Failing | DiskFault::Stalling => rustix::io::Errno::IO,
        };
        errno.into()
    }
}

#[derive(Clone, Debug, Default)]
struct SimulatedFile {
    /// The bytes that processes see.
    bytes: Vec<u8>,
    /// The bytes that a power cut leaves, but for some of the sectors that were not synced.
    synced: Vec<u8>,
    unsynced: BTreeSet<usize>,
}

#[derive(Debug, Default)]
struct DiskState {
    files: HashMap<u64, SimulatedFile>,
    names: BTreeMap<PathBuf, u64>,
    synced_names: BTreeMap<PathBuf, u64>,
    folders: HashSet<PathBuf>,
    locks: HashSet<PathBuf>,
    next_file: u64,
    /// The number of the living process: handles of earlier ones are dead.
    life: u64,
    time: TierTime,
    boot: u64,
    faults: HashMap<DiskOperation, DiskFault>,
    operations: u64,
    dies_at: Option<u64>,
    tears_to: usize,
    free_bytes: Option<u64>,
    reads_wait: bool,
}

/// The disk, which outlives the processes that use it. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<DiskState>>,
    changed: Arc<Condvar>,
}

/// Files as one process sees them.
#[derive(Debug)]
struct SimulatedStorage {
    disk: SimulatedDisk,
    life: u64,
}

#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    life: u64,
    file: u64,
}

#[derive(Debug)]
struct SimulatedLock {
    disk: SimulatedDisk,
    life: u64,
    path: PathBuf,
}

/// A small generator: the same numbers for the same seed.
fn next_random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl SimulatedDisk {
    #[must_use]
    pub fn new() -> SimulatedDisk {
        let disk = SimulatedDisk::default();
        disk.state.lock().time = TierTime {
            wall_millis: 1_700_000_000_000,
            boot_millis: 1_000_000,
        };
        disk
    }

    /// The files as the process sees them that lives now.
    #[must_use]
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(SimulatedStorage {
            disk: self.clone(),
            life: self.state.lock().life,
        })
    }

    /// `kill -9`: written bytes are there, the process does nothing more.
    pub fn kill(&self) {
        self.state.lock().kill();
        self.changed.notify_all();
    }

    /// The power goes: each sector and each name that was not synced is there or not.
    pub fn cut_power(&self, mut seed: u64) {
        let mut state = self.state.lock();
        state.kill();
        state.boot += 1;
        state.time.boot_millis = 10_000;
        for file in state.files.values_mut() {
            file.lose(&mut seed);
        }
        let before = std::mem::take(&mut state.names);
        let paths: BTreeSet<_> = before
            .keys()
            .chain(state.synced_names.keys())
            .cloned()
            .collect();
        for path in paths {
            let (new, old) = (before.get(&path), state.synced_names.get(&path));
            let stays = if next_random(&mut seed).is_multiple_of(2) {
                new
            } else {
                old
            };
            if let Some(file) = stays.copied() {
                state.names.insert(path, file);
            }
        }
        state.synced_names = state.names.clone();
        drop(state);
        self.changed.notify_all();
    }

    /// Lets the process die after this number of operations; a write is then done up to a multiple of `tears_to`
    /// bytes.
    pub fn die_after(&self, operations: u64, tears_to: usize) {
        let mut state = self.state.lock();
        state.dies_at = Some(state.operations + operations);
        state.tears_to = tears_to.max(1);
    }

    /// Refuses or holds an operation, or lets it be.
    pub fn set_fault(&self, operation: DiskOperation, fault: Option<DiskFault>) {
        let mut state = self.state.lock();
        match fault {
            Some(fault) => state.faults.insert(operation, fault),
            None => state.faults.remove(&operation),
        };
        drop(state);
        self.changed.notify_all();
    }

    /// Sets the result of [`Storage::free_bytes`].
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state.lock().free_bytes = Some(bytes);
    }

    /// Sets whether reads find nothing in memory.
    pub fn let_reads_wait(&self, wait: bool) {
        self.state.lock().reads_wait = wait;
    }

    /// Both clocks go on.
    pub fn advance(&self, millis: u64) {
        let mut state = self.state.lock();
        state.time.wall_millis += millis;
        state.time.boot_millis += millis;
    }

    pub fn set_wall_clock(&self, wall_millis: u64) {
        self.state.lock().time.wall_millis = wall_millis;
    }

    /// The files and their bytes.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.state.lock();
        let bytes = |file: &u64| state.files[file].bytes.clone();
        state
            .names
            .iter()
            .map(|(path, file)| (path.clone(), bytes(file)))
            .collect()
    }

    /// Gives a file these bytes, or makes it, on the disk itself.
    pub fn put_file(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        let file = state.next_file;
        state.next_file += 1;
        let synced = bytes.clone();
        state.files.insert(
            file,
            SimulatedFile {
                bytes,
                synced,
                unsynced: BTreeSet::new(),
            },
        );
        state.names.insert(path.to_owned(), file);
        state.synced_names.insert(path.to_owned(), file);
    }

    pub fn remove_file(&self, path: &Path) {
        let mut state = self.state.lock();
        state.names.remove(path);
        state.synced_names.remove(path);
    }
}

impl SimulatedFile {
    fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(bytes);
        self.unsynced.extend(at / SECTOR..end.div_ceil(SECTOR));
    }

    fn sync(&mut self) {
        self.synced.resize(self.bytes.len(), 0);
        for sector in std::mem::take(&mut self.unsynced) {
            self.keep(sector);
        }
    }

    fn keep(&mut self, sector: usize) {
        let begin = sector * SECTOR;
        let end = (begin + SECTOR).min(self.bytes.len());
        if self.synced.len() < end {
            self.synced.resize(end, 0);
        }
        if begin < end {
            self.synced[begin..end].copy_from_slice(&self.bytes[begin..end]);
        }
    }

    fn lose(&mut self, seed: &mut u64) {
        let keeps_all = next_random(seed).is_multiple_of(4);
        for sector in std::mem::take(&mut self.unsynced) {
            if keeps_all || next_random(seed).is_multiple_of(2) {
                self.keep(sector);
            }
        }
        self.bytes = self.synced.clone();
    }
}

impl DiskState {
    fn kill(&mut self) {
        self.life += 1;
        self.locks.clear();
        self.dies_at = None;
        self.faults.clear();
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl SimulatedDisk {
    /// Begins an operation of a process. It may be the last one, which is then done in part.
    fn operate(
        &self,
        life: u64,
        operation: Option<DiskOperation>,
    ) -> io::Result<(MutexGuard<'_, DiskState>, bool)> {
        let mut state = self.state.lock();
        loop {
            if state.life != life {
                return Err(dead());
            }
            match operation.and_then(|operation| state.faults.get(&operation)) {
                Some(DiskFault::Stalling) => self.changed.wait(&mut state),
                Some(fault) => return Err(fault.error()),
                None => break,
            }
        }
        state.operations += 1;
        let is_last = state.dies_at.is_some_and(|at| state.operations >= at);
        if is_last {
            state.kill();
        }
        Ok((state, is_last))
    }

    fn open(&self, life: u64, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let (state, _) = self.operate(life, None)?;
        let file = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(OpenFile {
            disk: self.clone(),
            life,
            file,
        }))
    }
}

impl Storage for SimulatedStorage {
    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        let (mut state, _) = self.disk.operate(self.life, None)?;
        state.folders.insert(path.to_owned());
        Ok(true)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FolderLock>>> {
        let (mut state, _) = self.disk.operate(self.life, None)?;
        let is_free = state.locks.insert(path.to_owned());
        Ok(is_free.then(|| {
            Box::new(SimulatedLock {
                disk: self.disk.clone(),
                life: self.life,
                path: path.to_owned(),
            }) as Box<dyn FolderLock>
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<ListedFile>> {
        let (state, _) = self.disk.operate(self.life, None)?;
        if !state.folders.contains(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let of_folder = state
            .names
            .iter()
            .filter(|(path, _)| path.parent() == Some(folder));
        Ok(of_folder
            .filter_map(|(path, file)| {
                Some(ListedFile {
                    name: path.file_name()?.to_string_lossy().into_owned(),
                    len: Some(state.files[file].bytes.len() as u64),
                })
            })
            .collect())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let (mut state, _) = self.disk.operate(self.life, Some(DiskOperation::Create))?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.next_file;
        state.next_file += 1;
        state.files.insert(file, SimulatedFile::default());
        state.names.insert(path.to_owned(), file);
        Ok(Arc::new(OpenFile {
            disk: self.disk.clone(),
            life: self.life,
            file,
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.open(self.life, path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.open(self.life, path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.disk.operate(self.life, None)?;
        let removed = state.names.remove(path);
        removed
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, _) = self.disk.operate(self.life, Some(DiskOperation::Create))?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let (mut state, is_last) = self.disk.operate(self.life, Some(DiskOperation::Sync))?;
        if is_last {
            return Err(dead());
        }
        let is_there = |name: &PathBuf| name.parent() == Some(path);
        let synced = state.names.clone();
        state.synced_names.retain(|name, _| !is_there(name));
        state
            .synced_names
            .extend(synced.into_iter().filter(|(name, _)| is_there(name)));
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let (state, _) = self.disk.operate(self.life, None)?;
        Ok(state.free_bytes.unwrap_or(FREE_BYTES))
    }

    fn now(&self) -> TierTime {
        self.disk.state.lock().time
    }

    fn boot_number(&self) -> u64 {
        self.disk.state.lock().boot + 1
    }
}

impl StorageFile for OpenFile {
    fn byte_len(&self) -> io::Result<u64> {
        let (state, _) = self.disk.operate(self.life, None)?;
        Ok(state.files[&self.file].bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (state, _) = self.disk.operate(self.life, Some(DiskOperation::Read))?;
        let bytes = &state.files[&self.file].bytes;
        let at = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = buffer.len().min(bytes.len() - at);
        buffer[..count].copy_from_slice(&bytes[at..at + count]);
        Ok(count)
    }

    fn read_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        if self.disk.state.lock().reads_wait {
            return Ok(None);
        }
        let count = self.read_at(buffer, offset)?;
        Ok((count == buffer.len()).then_some(count))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut state, is_last) = self.disk.operate(self.life, Some(DiskOperation::Write))?;
        let mut seed = state.operations;
        let tears_to = state.tears_to;
        let done = match is_last {
            true => {
                let part =
                    usize::try_from(next_random(&mut seed) % (bytes.len() as u64 + 1)).unwrap_or(0);
                part - part % tears_to
            }
            false => bytes.len(),
        };
        let at = usize::try_from(offset).map_err(io::Error::other)?;
        if let Some(file) = state.files.get_mut(&self.file) {
            file.write(&bytes[..done], at);
        }
        if is_last { Err(dead()) } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, is_last) = self.disk.operate(self.life, Some(DiskOperation::Sync))?;
        if is_last {
            return Err(dead());
        }
        if let Some(file) = state.files.get_mut(&self.file) {
            file.sync();
        }
        Ok(())
    }

    fn system_file(&self) -> Option<&Arc<File>> {
        None
    }
}

impl FolderLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}
