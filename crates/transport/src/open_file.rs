//! A file whose bytes go to clients, and how they get there.
//!
//! A small file ([`SMALL_BYTES`]) is read and leaves together with the head in one
//! system call; `sendfile` has a pipe to fill and a packet of its own, which costs
//! more than the copy it spares. A larger one goes by `sendfile`.
//!
//! `open_file_cache` keeps a small file's bytes beside its descriptor, so that a request for it
//! needs no system call but those for the socket. They are read at the first request that sends
//! them and hold as long as the other facts about the file: until it is looked at again after
//! `open_file_cache_valid` and is another one, or has other times ([`Stamp`]). Until then length,
//! `Last-Modified`, `ETag` and bytes belong together also when the file is written to in place,
//! where `sendfile` would send new bytes under an old length.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rustix::fs::Stat;
use rustix::io::{ReadWriteFlags, preadv2};

/// The size up to which a file is read; beyond it `sendfile` is cheaper.
pub const SMALL_BYTES: u64 = 16 * 1024;
/// Bytes of files that the whole process keeps. A small file that finds no room
/// is read for each request; room is made as files leave `open_file_cache`.
const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;
/// A file must have been unchanged for this time before its bytes are kept. A later change has a
/// later time then, whatever the unit of the file system's clock (FAT's counts two seconds).
const SETTLED: Duration = Duration::from_secs(2);
/// Distance of the bytes by which it is seen whether a part of a file is in the page cache.
const PROBE_STEP: usize = 32 * 1024;

/// Bytes kept now.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// When a file's contents and its inode were last changed, in nanoseconds since
/// 1970. Writing to a file changes the second time, which no call sets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: i128,
    changed: i128,
}

impl Stamp {
    pub fn of(stat: &Stat) -> Stamp {
        let nanoseconds = |seconds: i64, rest: i128| i128::from(seconds) * 1_000_000_000 + rest;
        Stamp {
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec.into()),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec.into()),
        }
    }

    /// Will anything written from `now` on (time since 1970) change it?
    pub fn is_settled(self, now: Duration) -> bool {
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let settled = i128::try_from(SETTLED.as_nanos()).unwrap_or(i128::MAX);
        self.modified.max(self.changed) + settled <= now
    }
}

/// An open regular file.
#[derive(Debug)]
pub struct OpenFile {
    file: Arc<File>,
    /// Threads that serve never wait for its disk ([`OpenFile::warm`]).
    is_read_apart: bool,
    /// Length and stamp of the file when it was opened, if its bytes may be kept.
    known: OnceLock<(usize, Stamp)>,
    kept: OnceLock<CountedBytes>,
    validators: OnceLock<Validators>,
}

/// `Last-Modified` and `ETag` of a file, as nginx makes them.
#[derive(Debug, Clone)]
pub struct Validators {
    pub last_modified: Bytes,
    pub etag: Bytes,
}

impl Validators {
    /// `modified` in Unix seconds, `length` in bytes.
    pub fn new(modified: i64, length: u64) -> Validators {
        Validators {
            last_modified: Bytes::copy_from_slice(&http_semantics::date::format(modified)),
            etag: format!("\"{modified:x}-{length:x}\"").into(),
        }
    }
}

/// Bytes that count among [`KEPT_BYTES`] while they are there.
#[derive(Debug)]
struct CountedBytes(Bytes);

impl CountedBytes {
    fn new(bytes: Bytes) -> Option<CountedBytes> {
        has_room(&KEPT_BYTES, bytes.len()).then_some(CountedBytes(bytes))
    }
}

/// Adds `bytes` to those that are kept, if there is room for them.
fn has_room(kept: &AtomicUsize, bytes: usize) -> bool {
    let add = |kept: usize| Some(kept + bytes).filter(|sum| *sum <= MAX_KEPT_BYTES);
    let added = kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    added.is_ok()
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        KEPT_BYTES.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl OpenFile {
    pub fn new(file: File) -> OpenFile {
        OpenFile::of(Arc::new(file), false)
    }

    /// A file of a zone's disk, which other responses are parts of as well. Its bytes are brought
    /// into the page cache before they are sent ([`OpenFile::warm`]).
    pub fn of_zone(file: Arc<File>) -> OpenFile {
        OpenFile::of(file, true)
    }

    fn of(file: Arc<File>, is_read_apart: bool) -> OpenFile {
        OpenFile {
            file,
            is_read_apart,
            known: OnceLock::new(),
            kept: OnceLock::new(),
            validators: OnceLock::new(),
        }
    }

    /// Returns the validators that `make` made on the first call.
    pub fn validators(&self, make: impl FnOnce() -> Validators) -> Validators {
        self.validators.get_or_init(make).clone()
    }

    /// Returns the same open file, without the bytes and validators kept of it.
    pub fn again(&self) -> io::Result<OpenFile> {
        Ok(OpenFile::new(self.file.try_clone()?))
    }

    /// Lets the bytes be kept, if the file is small. They are those of the file
    /// while it has this length and this stamp.
    pub fn keep(&self, length: u64, stamp: Stamp) {
        if let Ok(bytes) = usize::try_from(length)
            && length <= SMALL_BYTES
        {
            let _ = self.known.set((bytes, stamp));
        }
    }

    /// Has a thread of its own read these bytes where they are not in the page cache, so that
    /// `sendfile` does not wait for the disk. Only for a file made by [`OpenFile::of_zone`].
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub async fn warm(&self, offset: u64, length: usize) -> io::Result<()> {
        if !self.is_read_apart || self.is_warm(offset, length) {
            return Ok(());
        }
        let file = Arc::clone(&self.file);
        let read = move || file.read_exact_at(&mut vec![0; length], offset);
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Is a part of the file in the page cache, as far as some of its bytes tell? No where the file
    /// system cannot tell.
    fn is_warm(&self, offset: u64, length: usize) -> bool {
        let last = length.saturating_sub(1);
        let mut probes = (0..last).step_by(PROBE_STEP).chain([last]);
        probes.all(|at| {
            let mut byte = [0];
            let mut slices = [IoSliceMut::new(&mut byte)];
            let offset = offset + at as u64;
            preadv2(&self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) == Ok(1)
        })
    }

    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// A part that is small, from memory or read now; `None` if it is larger, or
    /// the file has become shorter.
    pub fn small_part(&self, offset: u64, length: u64) -> io::Result<Option<Bytes>> {
        if length > SMALL_BYTES {
            return Ok(None);
        }
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(whole) = self.kept() else {
            return self.read(offset, wanted);
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let is_within = start
            .checked_add(wanted)
            .is_some_and(|end| end <= whole.len());
        Ok(is_within.then(|| whole.slice(start..start + wanted)))
    }

    /// The whole file, where its bytes are kept or can be from now on.
    fn kept(&self) -> Option<&Bytes> {
        if let Some(CountedBytes(bytes)) = self.kept.get() {
            return Some(bytes);
        }
        let &(length, stamp) = self.known.get()?;
        // The system's own clock, by which files are stamped.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        self.read_to_keep(length, stamp, now)
    }

    fn read_to_keep(&self, length: usize, stamp: Stamp, now: Duration) -> Option<&Bytes> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        if !stamp.is_settled(now) || Stamp::of(&stat) != stamp {
            return None;
        }
        let kept = CountedBytes::new(self.read(0, length).ok()??)?;
        Some(&self.kept.get_or_init(|| kept).0)
    }

    /// `length` bytes from `offset` on; `None` if there are fewer.
    fn read(&self, offset: u64, length: usize) -> io::Result<Option<Bytes>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = offset + bytes.len() as u64;
            let spare = rustix::buffer::spare_capacity(&mut bytes);
            match rustix::io::pread(&self.file, spare, at) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(length);
        Ok(Some(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with this text, its length and stamp, and the time a minute after.
    fn written(text: &str) -> (tempfile::NamedTempFile, OpenFile, usize, Stamp, Duration) {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, text).unwrap();
        let file = File::open(&path).unwrap();
        let stamp = Stamp::of(&rustix::fs::fstat(&file).unwrap());
        let changed = Duration::from_nanos(u64::try_from(stamp.changed).unwrap());
        let later = changed + Duration::from_secs(60);
        (path, OpenFile::new(file), text.len(), stamp, later)
    }

    fn part(file: &OpenFile, offset: u64, length: u64) -> Option<Bytes> {
        file.small_part(offset, length).unwrap()
    }

    #[test]
    fn parts_are_those_of_the_file() {
        for keeps in [false, true] {
            let (_path, file, length, stamp, later) = written("0123456789");
            assert!(!keeps || file.read_to_keep(length, stamp, later).is_some());
            assert_eq!(part(&file, 0, 10).unwrap(), "0123456789");
            assert_eq!(part(&file, 3, 4).unwrap(), "3456");
            assert_eq!(part(&file, 10, 0).unwrap(), "");
            assert_eq!(part(&file, 8, 3), None, "shorter than it was");
            assert_eq!(part(&file, 0, SMALL_BYTES + 1), None);
            assert_eq!(file.kept.get().is_some(), keeps);
        }
    }

    #[tokio::test]
    async fn a_part_of_a_zones_file_is_read_before_it_is_sent() {
        let (_path, file, length, ..) = written(&"0123456789".repeat(10_000));
        let file = OpenFile::of_zone(file.file);
        assert!(file.warm(0, length).await.is_ok());
        assert!(file.warm(length as u64 - 1, 1).await.is_ok());
        let beyond = file.warm(10, length).await;
        assert_eq!(
            beyond.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof,
            "the file is shorter"
        );
    }

    #[test]
    fn kept_bytes_stay_what_they_were() {
        let (path, file, length, stamp, later) = written("old");
        assert!(file.read_to_keep(length, stamp, later).is_some());
        std::fs::write(&path, "new").unwrap();
        assert_eq!(part(&file, 0, 3).unwrap(), "old");
        assert_eq!(part(&file.again().unwrap(), 0, 3).unwrap(), "new");
    }

    #[test]
    fn a_file_with_other_times_than_were_known_is_not_kept() {
        let (_path, file, length, stamp, later) = written("text");
        file.file.set_modified(UNIX_EPOCH).unwrap();
        assert!(file.read_to_keep(length, stamp, later).is_none());
    }

    #[test]
    fn a_file_that_was_written_just_now_is_not_kept() {
        let (_path, file, length, stamp, later) = written("text");
        let now = later - Duration::from_secs(59);
        assert!(file.read_to_keep(length, stamp, now).is_none());
        file.keep(4, stamp);
        assert_eq!(part(&file, 0, 4).unwrap(), "text");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let kept = AtomicUsize::new(MAX_KEPT_BYTES - 10);
        assert!(!has_room(&kept, 11));
        assert!(has_room(&kept, 10));
        assert!(!has_room(&kept, 1));
    }
}
