//! Bytes that an upstream has sent and the client has not taken yet: in memory up to a bound,
//! past that in an unnamed temporary file, so that PHP is free for the next request while a
//! slow client still reads. If the disk takes no more, the rest waits at the upstream, as if
//! the file's bound were reached: the response comes whole.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::{Bytes, BytesMut};

use crate::private_file;

/// Read back from the file at once.
const READ_BYTES: u64 = 64 * 1024;

/// The limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolLimits {
    pub memory_bytes: u64,
    /// The bytes in a file, once memory is full.
    pub file_bytes: u64,
}

impl SpoolLimits {
    /// No more than the last bytes that came.
    pub const LEAST: SpoolLimits = SpoolLimits::memory(1);

    pub fn is_least(&self) -> bool {
        *self == SpoolLimits::LEAST
    }

    /// Nothing on disk.
    pub const fn memory(bytes: u64) -> SpoolLimits {
        SpoolLimits {
            memory_bytes: bytes,
            file_bytes: 0,
        }
    }
}

/// A queue of bytes with a place on disk.
pub struct Spool {
    memory: VecDeque<Bytes>,
    memory_bytes: u64,
    max_memory_bytes: u64,
    max_file_bytes: u64,
    file: Option<File>,
    written: u64,
    read: u64,
    /// Bytes that the disk did not take, behind those on disk. While there are some, nothing
    /// more is taken in.
    behind: VecDeque<Bytes>,
    /// The disk has refused something before.
    is_disk_full: bool,
}

impl Spool {
    pub fn new(limits: SpoolLimits) -> Spool {
        Spool {
            memory: VecDeque::new(),
            memory_bytes: 0,
            max_memory_bytes: limits.memory_bytes,
            max_file_bytes: limits.file_bytes,
            file: None,
            written: 0,
            read: 0,
            behind: VecDeque::new(),
            is_disk_full: false,
        }
    }

    fn in_file(&self) -> u64 {
        self.written - self.read
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        let behind: usize = self.behind.iter().map(Bytes::len).sum();
        behind + usize::try_from(self.memory_bytes).unwrap_or(usize::MAX)
    }

    /// Does it have a place on disk, with a descriptor?
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Bytes in it.
    pub fn length(&self) -> u64 {
        let behind: u64 = self.behind.iter().map(|bytes| bytes.len() as u64).sum();
        self.memory_bytes + self.in_file() + behind
    }

    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.in_file() == 0 && self.behind.is_empty()
    }

    /// Does the queue have to write further bytes to disk?
    pub fn is_memory_full(&self) -> bool {
        self.memory_bytes >= self.max_memory_bytes
    }

    /// May the upstream send more?
    pub fn has_room(&self) -> bool {
        let has_disk = !self.is_disk_full && self.written < self.max_file_bytes;
        self.behind.is_empty() && (self.memory_bytes < self.max_memory_bytes || has_disk)
    }

    /// Takes bytes in, if need be to a file in `directory`.
    ///
    /// # Errors
    /// The disk has refused them for the first time. They are kept all the same.
    pub fn push(&mut self, bytes: Bytes, directory: &Path) -> std::io::Result<()> {
        let is_memory_next = self.in_file() == 0 && self.behind.is_empty();
        if is_memory_next && self.memory_bytes < self.max_memory_bytes {
            self.memory_bytes += bytes.len() as u64;
            self.memory.push_back(bytes);
            return Ok(());
        }
        if self.is_disk_full || !self.behind.is_empty() {
            self.behind.push_back(bytes);
            return Ok(());
        }
        let result = self.push_to_file(&bytes, directory);
        if result.is_err() {
            self.is_disk_full = true;
            self.behind.push_back(bytes);
        }
        result
    }

    fn push_to_file(&mut self, bytes: &[u8], directory: &Path) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = Some(unnamed(directory)?);
        }
        if let Some(file) = &self.file {
            file.write_all_at(bytes, self.written)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// The oldest bytes; `None` when empty. A read error ends the queue early,
    /// which the declared length or the missing last chunk then shows.
    pub fn pop(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.memory.pop_front() {
            self.memory_bytes -= bytes.len() as u64;
            return Some(bytes);
        }
        let left = self.in_file();
        if left == 0 {
            return self.behind.pop_front();
        }
        let mut piece = BytesMut::zeroed(usize::try_from(left.min(READ_BYTES)).unwrap_or(0));
        self.file
            .as_ref()?
            .read_exact_at(&mut piece, self.read)
            .ok()?;
        self.read += piece.len() as u64;
        if self.read == self.written {
            // All of it is out: begin anew, so that the bound applies to waiting bytes only.
            self.read = 0;
            self.written = 0;
        }
        Some(piece.freeze())
    }
}

/// A file without a name in `directory`, or in the system's place for such.
fn unnamed(directory: &Path) -> std::io::Result<File> {
    private_file::unnamed_in(directory).or_else(|_| {
        std::fs::create_dir_all(directory)
            .and_then(|()| private_file::unnamed_in(directory))
            .or_else(|_| private_file::unnamed_in(&std::env::temp_dir()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_they_went_in_across_memory_and_disk() {
        let mut spool = Spool {
            memory: VecDeque::new(),
            memory_bytes: 0,
            max_memory_bytes: 10,
            max_file_bytes: 1000,
            file: None,
            written: 0,
            read: 0,
            behind: VecDeque::new(),
            is_disk_full: false,
        };
        let mut wanted = Vec::new();
        let mut got = Vec::new();
        for round in 0u8..50 {
            let piece = vec![round; usize::from(round % 7) + 1];
            wanted.extend_from_slice(&piece);
            spool
                .push(Bytes::from(piece), &std::env::temp_dir())
                .unwrap();
            if round % 3 == 0
                && let Some(bytes) = spool.pop()
            {
                got.extend_from_slice(&bytes);
            }
        }
        while let Some(bytes) = spool.pop() {
            got.extend_from_slice(&bytes);
        }
        assert_eq!(got, wanted);
        assert!(spool.is_empty());
    }
    #[test]
    fn what_the_disk_refuses_is_kept_and_no_more_is_taken_in() {
        let mut spool = Spool {
            memory: VecDeque::new(),
            memory_bytes: 0,
            max_memory_bytes: 10,
            max_file_bytes: 1000,
            // A file that cannot be written.
            file: Some(File::open("/dev/null").unwrap()),
            written: 0,
            read: 0,
            behind: VecDeque::new(),
            is_disk_full: false,
        };
        let nowhere = Path::new("/nonexistent");
        spool
            .push(Bytes::from_static(b"0123456789"), nowhere)
            .unwrap();
        let refused = spool.push(Bytes::from_static(b"abc"), nowhere);
        assert!(refused.is_err());
        assert!(!spool.has_room());
        assert_eq!(spool.pop().as_deref(), Some(&b"0123456789"[..]));
        assert!(!spool.has_room());
        assert_eq!(spool.pop().as_deref(), Some(&b"abc"[..]));
        // Memory is free again, and that is all that is used from here on.
        assert!(spool.has_room() && spool.is_empty());
        spool
            .push(Bytes::from_static(b"0123456789"), nowhere)
            .unwrap();
        assert!(!spool.has_room());
        assert_eq!(spool.pop().as_deref(), Some(&b"0123456789"[..]));
        assert_eq!(spool.pop(), None);
    }
}
