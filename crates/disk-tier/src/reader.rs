//! Reads a record at a place: compares its key and its check sums. Small ones whole, larger ones up to their body, which
//! is then handed out as a part of the file.

use crate::config::MAX_HEAD_BYTES;
use crate::form::record::{RecordHead, RecordHeader};
use crate::index::PackedPlace;
use crate::parts::TierParts;
use crate::parts::count;
use crate::record::{INLINE_BODY_BYTES, ReadNow, RecordBody, RecordBytes, RecordPlace};
use crate::segments::Segment;
use bytes::{Bytes, BytesMut};
use std::io;
use std::time::Duration;

/// Records up to this size are read at once.
const MAX_WHOLE_BYTES: usize = INLINE_BODY_BYTES + (4 << 10);
/// Bytes of a larger record that are read before its header is known.
const FIRST_BYTES: usize = 4 << 10;
/// A body up to this size is compared with its check sum without a thread.
const MAX_COMPARED_INLINE: usize = 128 << 10;
/// Bytes that are read at a time to compare a larger record.
const COMPARED_BYTES: usize = 256 << 10;
/// Distance of the bytes by which it is seen whether a body is in the page cache, and how many are looked at.
const PROBE_STEP: u64 = 32 << 10;
const MAX_PROBES: u64 = 8;

/// Whether the reader may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Bytes that are not in memory are not read.
    Now,
    Waiting,
}

/// The reason why there is no record.
#[derive(Debug)]
enum ReadFailure {
    NotInMemory,
    /// The record is of another key, or gone.
    Missing,
    Damaged,
}

impl From<io::Error> for ReadFailure {
    fn from(_: io::Error) -> ReadFailure {
        ReadFailure::Damaged
    }
}

/// A place in a file, and how it is read.
struct RecordSource<'a> {
    segment: &'a Segment,
    offset: u64,
    mode: ReadMode,
}

impl RecordSource<'_> {
    fn fill(&self, buffer: &mut [u8], at: usize) -> Result<(), ReadFailure> {
        let file = self.segment.file().ok_or(ReadFailure::Missing)?;
        let offset = self.offset + at as u64;
        let count = match self.mode {
            ReadMode::Now => file
                .read_now(buffer, offset)?
                .ok_or(ReadFailure::NotInMemory)?,
            ReadMode::Waiting => file.read_at(buffer, offset)?,
        };
        if count == buffer.len() {
            Ok(())
        } else {
            Err(ReadFailure::Damaged)
        }
    }

    fn bytes(&self, at: usize, len: usize) -> Result<Bytes, ReadFailure> {
        let mut buffer = BytesMut::zeroed(len);
        self.fill(&mut buffer, at)?;
        Ok(buffer.freeze())
    }
}

pub(crate) fn read_record(
    parts: &TierParts,
    place: RecordPlace,
    key: &[u8],
    mode: ReadMode,
) -> ReadNow {
    let packed = PackedPlace(place.packed);
    match read(parts, place, key, mode) {
        Ok(record) => {
            parts.index.note_used(place.key_hash, packed);
            ReadNow::Record(Box::new(record))
        }
        Err(ReadFailure::NotInMemory) => ReadNow::NotInMemory,
        Err(ReadFailure::Missing) => ReadNow::Missing,
        Err(ReadFailure::Damaged) => {
            count(&parts.counters.damaged);
            parts.index.remove(place.key_hash, packed);
            ReadNow::Missing
        }
    }
}

fn read(
    parts: &TierParts,
    place: RecordPlace,
    key: &[u8],
    mode: ReadMode,
) -> Result<RecordBytes, ReadFailure> {
    let packed = PackedPlace(place.packed);
    let Some(segment) = parts.segments.with_low_bits(packed.segment()) else {
        parts.index.remove(place.key_hash, packed);
        return Err(ReadFailure::Missing);
    };
    let source = RecordSource {
        segment: &segment,
        offset: packed.offset(),
        mode,
    };
    let whole = packed.len().filter(|len| *len <= MAX_WHOLE_BYTES);
    let mut bytes = source.bytes(0, whole.unwrap_or(FIRST_BYTES))?;
    let header = RecordHeader::read(&bytes).ok_or(ReadFailure::Damaged)?;
    let is_whole = whole.is_none_or(|len| header.total() == len);
    if !is_whole || header.key_hash != place.key_hash || header.body_at() > 2 * MAX_HEAD_BYTES {
        return Err(ReadFailure::Damaged);
    }
    if header.body_at() > bytes.len() {
        bytes = source.bytes(0, header.body_at())?;
    }
    let head = RecordHead::read(&bytes).ok_or(ReadFailure::Damaged)?;
    if head.key != key {
        return Err(ReadFailure::Missing);
    }
    let body = body(parts, &source, &head.header, &bytes, packed)?;
    let now = parts.storage.now();
    Ok(RecordBytes {
        stamp: head.header.stamp,
        received: parts.clocks.received(&head.header, now),
        age: parts.clocks.age(&head.header, now),
        lifetime: Duration::from_secs(head.header.lifetime_seconds.into()),
        head: head.head,
        body,
    })
}

fn body(
    parts: &TierParts,
    source: &RecordSource<'_>,
    header: &RecordHeader,
    bytes: &Bytes,
    packed: PackedPlace,
) -> Result<RecordBody, ReadFailure> {
    let (at, len) = (header.body_at(), header.body_len as usize);
    let file = source.segment.file().ok_or(ReadFailure::Missing)?;
    if len > INLINE_BODY_BYTES
        && let Some(system_file) = file.system_file()
    {
        match packed.is_verified() {
            true => look_for_pages(source, at, len)?,
            false => compare(parts, source, header, packed)?,
        }
        return Ok(RecordBody::File {
            file: system_file.clone(),
            offset: source.offset + at as u64,
            len: len as u64,
        });
    }
    let body = match at + len <= bytes.len() {
        true => bytes.slice(at..at + len),
        false if at as u64 + len as u64 > parts.config.segment_bytes => {
            return Err(ReadFailure::Damaged);
        }
        false => source.bytes(at, len)?,
    };
    // Compared each time: the page cache may have dropped bytes that were right once, and 4 KB cost 0.3 us.
    match crc32fast::hash(&body) == header.body_sum {
        true => Ok(RecordBody::Inline(body)),
        false => Err(ReadFailure::Damaged),
    }
}

/// Compares a body with its check sum, once after a start. Brings it into the page cache.
fn compare(
    parts: &TierParts,
    source: &RecordSource<'_>,
    header: &RecordHeader,
    packed: PackedPlace,
) -> Result<(), ReadFailure> {
    let (at, len) = (header.body_at(), header.body_len as usize);
    if source.mode == ReadMode::Now && len > MAX_COMPARED_INLINE {
        return Err(ReadFailure::NotInMemory);
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; len.min(COMPARED_BYTES)];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(COMPARED_BYTES);
        source.fill(&mut buffer[..part], at + done)?;
        hasher.update(&buffer[..part]);
        done += part;
    }
    if hasher.finalize() != header.body_sum {
        return Err(ReadFailure::Damaged);
    }
    parts.index.note_verified(header.key_hash, packed);
    Ok(())
}

/// Looks whether a body is in the page cache, by some of its bytes; a thread brings them there.
fn look_for_pages(source: &RecordSource<'_>, at: usize, len: usize) -> Result<(), ReadFailure> {
    let step = PROBE_STEP.max(len as u64 / MAX_PROBES);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    match source.mode {
        ReadMode::Now => (at + len - 1..)
            .take(1)
            .chain((at + step..at + len).step_by(step))
            .try_for_each(|probe| source.fill(&mut [0], probe)),
        ReadMode::Waiting => {
            let mut buffer = vec![0; len.min(COMPARED_BYTES)];
            (0..len).step_by(COMPARED_BYTES).try_for_each(|done| {
                let part = (len - done).min(COMPARED_BYTES);
                source.fill(&mut buffer[..part], at + done)
            })
        }
    }
}
