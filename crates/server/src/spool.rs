//! What an upstream has sent and the client has not taken yet: in memory up
//! to a bound, past that in an unnamed temporary file, so that PHP is free for
//! the next request while a slow client still reads.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::{Bytes, BytesMut};

/// Read back from the file at once.
const READ_BYTES: u64 = 64 * 1024;
/// With buffering off: what is read ahead of the client at most.
const UNBUFFERED_BYTES: u64 = 1;

/// A queue of bytes with a place on disk.
pub struct Spool {
    memory: VecDeque<Bytes>,
    memory_bytes: u64,
    max_memory_bytes: u64,
    max_file_bytes: u64,
    file: Option<File>,
    written: u64,
    read: u64,
}

impl Spool {
    pub fn new(settings: &site::Exchange, buffering: bool) -> Spool {
        Spool {
            memory: VecDeque::new(),
            memory_bytes: 0,
            max_memory_bytes: if buffering {
                settings.buffer_bytes
            } else {
                UNBUFFERED_BYTES
            },
            max_file_bytes: if buffering {
                settings.max_temp_file_bytes
            } else {
                0
            },
            file: None,
            written: 0,
            read: 0,
        }
    }

    fn in_file(&self) -> u64 {
        self.written - self.read
    }

    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.in_file() == 0
    }

    /// Nothing has gone to disk.
    pub fn is_small(&self) -> bool {
        self.file.is_none()
    }

    /// What is taken in now goes to disk, if it goes anywhere.
    pub fn is_memory_full(&self) -> bool {
        self.memory_bytes >= self.max_memory_bytes
    }

    /// May the upstream send more?
    pub fn has_room(&self) -> bool {
        self.memory_bytes < self.max_memory_bytes || self.written < self.max_file_bytes
    }

    /// Takes bytes in, if need be to a file in `directory`; false when the disk
    /// refused them.
    pub fn push(&mut self, bytes: Bytes, directory: &Path) -> bool {
        if self.in_file() == 0 && self.memory_bytes < self.max_memory_bytes {
            self.memory_bytes += bytes.len() as u64;
            self.memory.push_back(bytes);
            return true;
        }
        self.push_to_file(&bytes, directory).is_ok()
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
            return None;
        }
        let mut piece = BytesMut::zeroed(usize::try_from(left.min(READ_BYTES)).unwrap_or(0));
        self.file
            .as_ref()?
            .read_exact_at(&mut piece, self.read)
            .ok()?;
        self.read += piece.len() as u64;
        if self.read == self.written {
            // All of it is out: begin anew, so that the bound is on what waits.
            self.read = 0;
            self.written = 0;
        }
        Some(piece.freeze())
    }
}

/// A file without a name in `directory`, or in the system's place for such.
fn unnamed(directory: &Path) -> std::io::Result<File> {
    tempfile::tempfile_in(directory).or_else(|_| {
        std::fs::create_dir_all(directory)
            .and_then(|()| tempfile::tempfile_in(directory))
            .or_else(|_| tempfile::tempfile())
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
        };
        let mut wanted = Vec::new();
        let mut got = Vec::new();
        for round in 0u8..50 {
            let piece = vec![round; usize::from(round % 7) + 1];
            wanted.extend_from_slice(&piece);
            assert!(spool.push(Bytes::from(piece), &std::env::temp_dir()));
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
}
