//! Walks the records of a segment one by one, from a place where one begins until the check sum of a head is wrong. A
//! record is never looked for: bytes in the middle of a body that look like one belong to the body.

use crate::form::record::{HEADER_BYTES, RecordHeader, checked_header};
use crate::storage::StorageFile;
use std::io;
use std::ops::Range;

/// Bytes that are read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// A part of a file in memory.
struct ReadWindow<'a> {
    file: &'a dyn StorageFile,
    end: u64,
    begin: u64,
    bytes: Vec<u8>,
}

impl ReadWindow<'_> {
    /// The bytes from `at` on, at least `len` of them unless the range ends before.
    fn bytes(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let skip = usize::try_from(at.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        if at >= self.begin && self.bytes.len().saturating_sub(skip) >= len {
            return Ok(&self.bytes[skip..]);
        }
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        self.bytes.resize(len.max(WINDOW_BYTES).min(left), 0);
        let count = self.file.read_at(&mut self.bytes, at)?;
        self.bytes.truncate(count);
        self.begin = at;
        Ok(&self.bytes)
    }
}

/// Calls `found` for each record in a range of a file; where the last one ends.
pub(crate) fn scan_records(
    file: &dyn StorageFile,
    range: Range<u64>,
    found: &mut dyn FnMut(&RecordHeader, u64),
) -> io::Result<u64> {
    let mut window = ReadWindow {
        file,
        end: range.end,
        begin: range.start,
        bytes: Vec::new(),
    };
    let mut at = range.start;
    while at < range.end {
        let Some(header) = RecordHeader::read(window.bytes(at, HEADER_BYTES)?) else {
            break;
        };
        let end = at + header.total() as u64;
        if end > range.end {
            break;
        }
        let Some(header) = checked_header(window.bytes(at, header.body_at())?) else {
            break;
        };
        found(&header, at);
        at = end;
    }
    Ok(at)
}
