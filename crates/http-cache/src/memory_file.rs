//! Bodies that are asked for often, as files that live in memory, so that the kernel can send them
//! without copying them (`sendfile(2)`).
//!
//! A body of 21 KB is copied into the socket's buffers for every answer; that is the largest part of
//! such a hit. Pages of a file are handed over as they are. So a body that has been asked for 16 times
//! gets a file of its own (`memfd_create(2)`), beside its bytes, from which parts of the body are still
//! sent.
//!
//! The file is sealed against changes: bytes on their way to a slow client stay the same, even when
//! the response has left the cache and the file is closed. It is counted in the zone's budget like an
//! encoded form and leaves with its response. Files take descriptors, and memory a second time, so
//! there are bounds on both: 1,024 files for the process (fewer where few may be open), an eighth of
//! its budget for a zone. A body that finds no room stays as it is and is looked at again when it has
//! been asked for twice as often.
//!
//! ```text
//!   asked 1, 2, ... 15 times ─► bytes     16 times ─► file, if there is room; else again at 32, 64, ...
//! ```

use crate::size_class::allocated;
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// Fewer bytes are copied faster than a second system call is made: 8 KB cost the same either way.
const MIN_BYTES: u64 = 12 * 1024;

/// More would keep the thread that makes the file for longer than a tenth of a millisecond or two.
const MAX_BYTES: u64 = 1024 * 1024;

/// How often a body is asked for before it gets a file. Making one costs as much as it saves in
/// about a dozen answers.
const ASKED_ENOUGH: u32 = 16;

/// Files take at most this part of a zone's budget: an eighth.
const ZONE_SHARE: u64 = 8;

/// Files of all zones together, where descriptors are plenty.
const MAX_FILES: usize = 1024;

/// One in 16 of the descriptors that the process may have can be such a file: connections need the
/// others.
const DESCRIPTOR_SHARE: u64 = 16;

/// The unit that the budget counts in: files are made of whole pages of the kernel.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Files that there are, in the whole process: descriptors are the process's.
static FILES: AtomicUsize = AtomicUsize::new(0);

/// The most there may be.
fn max_files() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from(descriptors / DESCRIPTOR_SHARE)
            .map_or(MAX_FILES, |most| most.min(MAX_FILES))
    })
}

/// A body as a file. Its content never changes.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
    /// Given back with the file.
    room: Room,
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Bytes of a zone's files; shared with the files, which may outlive the zone.
#[derive(Debug, Default)]
pub(crate) struct FileBytes(AtomicU64);

impl FileBytes {
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// One file's part of the memory for files. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    zone: Arc<FileBytes>,
    bytes: u64,
}

impl Room {
    pub(crate) fn take(zone: &Arc<FileBytes>, bytes: u64, zone_budget_bytes: u64) -> Option<Room> {
        let one_more = |files: usize| (files < max_files()).then_some(files + 1);
        FILES.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        let more =
            |all: u64| Some(all + bytes).filter(|&sum| sum <= zone_budget_bytes / ZONE_SHARE);
        if zone.0.fetch_update(Relaxed, Relaxed, more).is_err() {
            FILES.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Room {
            zone: Arc::clone(zone),
            bytes,
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        FILES.fetch_sub(1, Relaxed);
        self.zone.0.fetch_sub(self.bytes, Relaxed);
    }
}

/// The owner of a body's file: counts its memory.
pub(crate) trait FileOwner: fmt::Debug + Send + Sync {
    /// Takes a part of the memory that the files of the response's zone may use.
    fn take_room(&self, bytes: u64) -> Option<Room>;

    /// Counts the file in the zone's budget. Calls `put` with whether the response is still stored,
    /// and keeps it from leaving meanwhile; if there is no room, `put` is not called.
    fn count_file(self: Arc<Self>, bytes: u64, put: &mut dyn FnMut(bool));
}

/// The file of a body: how often the body was asked for, and the file once there is one.
#[derive(Debug, Default)]
pub(crate) struct FileSlot {
    asked: AtomicU32,
    file: OnceLock<MemoryFile>,
    /// Unset while the response is not stored, and for good where it is one session's own.
    owner: OnceLock<Weak<dyn FileOwner>>,
    /// Held by the one who makes the file.
    turn: Mutex<()>,
}

impl FileSlot {
    /// A slot for the file of a body of `len` bytes, if that is a length for a file.
    pub(crate) fn for_body(len: u64) -> Option<Arc<FileSlot>> {
        (MIN_BYTES..=MAX_BYTES).contains(&len).then(Arc::default)
    }

    /// Bytes of memory that a slot takes.
    pub(crate) fn size_bytes() -> usize {
        allocated(size_of::<FileSlot>() + 16)
    }

    /// Says whose body, or form, this is.
    pub(crate) fn set_owner(&self, owner: Weak<dyn FileOwner>) {
        self.owner.get_or_init(|| owner);
    }

    /// Bytes that the file takes, if there is one.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.get().map_or(0, |file| file.room.bytes)
    }

    pub(crate) fn ask(&self, chunks: &[Bytes]) -> Option<&MemoryFile> {
        if let Some(file) = self.file.get() {
            return Some(file);
        }
        let asked = self.asked.fetch_add(1, Relaxed).wrapping_add(1);
        if asked < ASKED_ENOUGH || !asked.is_power_of_two() {
            return None;
        }
        self.make(chunks);
        self.file.get()
    }

    #[cold]
    fn make(&self, chunks: &[Bytes]) {
        let Some(_turn) = self.turn.try_lock().filter(|_| self.file.get().is_none()) else {
            return;
        };
        let Some(owner) = self.owner.get().and_then(Weak::upgrade) else {
            return;
        };
        let len: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let bytes = len.next_multiple_of(page_bytes());
        let Some(room) = owner.take_room(bytes) else {
            return;
        };
        // No memory, no descriptor, no such call: there are the bytes.
        let Ok(file) = write(chunks) else {
            return;
        };
        let mut file = Some(MemoryFile { file, room });
        // Kept only while it is counted, which it is while the response is stored.
        owner.count_file(bytes, &mut |is_here| {
            if let Some(file) = file.take().filter(|_| is_here) {
                let _ = self.file.set(file);
            }
        });
    }
}

/// A sealed file of these bytes.
fn write(chunks: &[Bytes]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create(c"body", flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 knows nothing of the last flag.
        Err(Errno::INVAL) => memfd_create(c"body", flags),
        made => made,
    }?;
    // Otherwise every account that finds a path to it could read it.
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    for chunk in chunks {
        file.write_all(chunk)?;
    }
    fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NO_FIELDS, T0, key, response};
    use crate::{Body, FoundResponse, PurgeMode, PurgeTarget, StoredResponse, Zone, ZoneConfig};
    use std::os::unix::fs::FileExt;

    const BUDGET: u64 = 4 << 20;

    fn zone() -> Arc<Zone> {
        Zone::new(ZoneConfig {
            memory_budget_bytes: BUDGET,
            shards: 1,
            ..ZoneConfig::default()
        })
    }

    fn put(zone: &Zone, name: &str, len: usize) -> Arc<StoredResponse> {
        let stored = response(60, len, T0, zone.stamp());
        zone.insert(&key(name).as_ref(), stored, T0)
            .expect("stored")
    }

    fn is_file_at(body: &Body, asked: u32) -> bool {
        (1..=asked).fold(false, |_, _| body.file().is_some())
    }

    fn purge(zone: &Zone) {
        zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
    }

    #[test]
    fn a_body_that_is_asked_for_often_is_a_file() {
        let zone = zone();
        let untouched = zone.stats().used_bytes;
        let stored = put(&zone, "a", 20_000);
        let before = zone.stats().used_bytes;
        assert!(!is_file_at(&stored.body, ASKED_ENOUGH - 1));
        let file = stored.body.file().expect("asked for often enough");
        let mut bytes = vec![0; 20_001];
        let read = file.file.read_at(&mut bytes, 0).expect("readable");
        assert_eq!(bytes[..read], stored.body.chunks().concat());
        let whole_pages = 20_000_u64.next_multiple_of(page_bytes());
        assert_eq!(zone.stats().used_bytes - before, whole_pages);
        assert_eq!(zone.stats().file_bytes, whole_pages);
        purge(&zone);
        assert_eq!(zone.stats().used_bytes, untouched);
        drop(stored);
        assert_eq!(zone.stats().file_bytes, 0);
    }

    #[test]
    fn nobody_can_change_the_file() {
        let zone = zone();
        let stored = put(&zone, "a", 20_000);
        assert!(is_file_at(&stored.body, ASKED_ENOUGH));
        let file = &stored.body.file().expect("there").file;
        assert!(file.write_at(b"other", 0).is_err());
        assert!(file.write_at(b"other", 20_000).is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(30_000).is_err());
    }

    #[test]
    fn few_bytes_and_very_many_are_sent_from_memory() {
        let zone = zone();
        for len in [0, 1, MIN_BYTES - 1, MAX_BYTES + 1] {
            let stored = put(&zone, "a", len as usize);
            assert!(!is_file_at(&stored.body, 4 * ASKED_ENOUGH), "{len}");
        }
    }

    #[test]
    fn what_is_not_stored_or_one_sessions_own_gets_none() {
        let zone = zone();
        let stored = response(60, 20_000, T0, zone.stamp());
        assert!(!is_file_at(&stored.body, 4 * ASKED_ENOUGH));
        let mut private = response(60, 20_000, T0, zone.stamp());
        private.set_group(Some(1));
        let stored = zone
            .insert(&key("b").as_ref(), private, T0)
            .expect("stored");
        assert!(!is_file_at(&stored.body, 4 * ASKED_ENOUGH));
    }

    #[test]
    fn files_take_a_part_of_the_budget_and_room_is_looked_for_again() {
        let zone = zone();
        let fits = (BUDGET / ZONE_SHARE / 131_072) as usize;
        let all: Vec<_> = (0..fits + 1)
            .map(|page| put(&zone, &page.to_string(), 131_072))
            .collect();
        let with_file = all
            .iter()
            .filter(|stored| is_file_at(&stored.body, ASKED_ENOUGH))
            .count();
        assert_eq!(with_file, fits);
        let last = put(&zone, "last", 131_072);
        assert!(!is_file_at(&last.body, ASKED_ENOUGH));
        drop(all);
        for page in 0..fits {
            let name = key(&page.to_string());
            zone.purge(PurgeTarget::Key(name.as_ref()), PurgeMode::Hard, T0);
        }
        assert!(!is_file_at(&last.body, ASKED_ENOUGH - 1), "not before 32");
        assert!(is_file_at(&last.body, 1));
    }

    #[test]
    fn a_response_that_has_left_gets_no_file() {
        let zone = zone();
        let stored = put(&zone, "a", 20_000);
        purge(&zone);
        assert!(!is_file_at(&stored.body, 4 * ASKED_ENOUGH));
        assert_eq!(zone.stats().file_bytes, 0);
    }

    #[test]
    fn a_file_that_comes_back_with_its_body_is_counted_again() {
        let zone = zone();
        let untouched = zone.stats().used_bytes;
        let stored = put(&zone, "a", 20_000);
        assert!(is_file_at(&stored.body, ASKED_ENOUGH));
        let counted = zone.stats().used_bytes;
        purge(&zone);
        let put_again = || {
            let mut again = StoredResponse::clone(&stored);
            again.stamp = zone.stamp();
            zone.insert(&key("a").as_ref(), again, T0).expect("stored");
        };
        put_again();
        assert_eq!(zone.stats().used_bytes, counted);
        // Instead of itself, as after a 304: still once.
        put_again();
        assert_eq!(zone.stats().used_bytes, counted);
        let FoundResponse::Fresh(found) = zone.find(&key("a").as_ref(), NO_FIELDS, T0) else {
            panic!("it is stored");
        };
        assert!(found.body.file().is_some());
        purge(&zone);
        assert_eq!(zone.stats().used_bytes, untouched);
    }
}
