//! A record: a header of 64 bytes, the key, the head and the body, padded to a multiple of 64.
//!
//! ```text
//!  0  CRC-32 of everything from 4 to the end of the head
//!  4  CRC-32 of the body
//!  8  the letters "mr"
//! 10  length of the key      u16
//! 12  length of the head     u32
//! 16  length of the body     u32
//! 20  0                      u32
//! 24  hash of the key        u64
//! 32  stamp                  u64
//! 40  received, wall clock   u64, milliseconds
//! 48  received, boot clock   u64, milliseconds
//! 56  lifetime               u32, seconds
//! 60  variant                u8
//! 61  which boot             24 bits of a hash; 0: the boot clock is not known
//! 64  key | head | body | zeros
//! ```
//!
//! The head has a check sum of its own, so that a body can be sent from its file and compared only once.

use super::{UNIT, padded};
use crate::hash::stable_hash;
use crate::record::NewRecord;
use bytes::{Buf, BufMut, Bytes};

pub(crate) const HEADER_BYTES: usize = UNIT;
const MARK: [u8; 2] = *b"mr";

/// The fields of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    head_sum: u32,
    pub(crate) body_sum: u32,
    key_len: u16,
    head_len: u32,
    pub(crate) body_len: u32,
    pub(crate) key_hash: u64,
    pub(crate) stamp: u64,
    pub(crate) wall_millis: u64,
    pub(crate) boot_millis: u64,
    pub(crate) lifetime_seconds: u32,
    pub(crate) variant: u8,
    /// 24 bits.
    pub(crate) boot: u32,
}

/// The parts of a record before its body, whose check sum was right.
#[derive(Clone, Debug)]
pub(crate) struct RecordHead {
    pub(crate) header: RecordHeader,
    pub(crate) key: Bytes,
    pub(crate) head: Bytes,
}

impl RecordHeader {
    /// Reads the header of a record. Its check sum spans the whole head: nothing is known to be true before
    /// [`RecordHead::read`] has compared it.
    pub(crate) fn read(bytes: &[u8]) -> Option<RecordHeader> {
        let mut bytes = &bytes.first_chunk::<HEADER_BYTES>()?[..];
        let (head_sum, body_sum) = (bytes.get_u32_le(), bytes.get_u32_le());
        let mark = [bytes.get_u8(), bytes.get_u8()];
        let header = RecordHeader {
            head_sum,
            body_sum,
            key_len: bytes.get_u16_le(),
            head_len: bytes.get_u32_le(),
            body_len: bytes.get_u32_le(),
            key_hash: {
                bytes.advance(4);
                bytes.get_u64_le()
            },
            stamp: bytes.get_u64_le(),
            wall_millis: bytes.get_u64_le(),
            boot_millis: bytes.get_u64_le(),
            lifetime_seconds: bytes.get_u32_le(),
            variant: bytes.get_u8(),
            boot: bytes.get_u8().into(),
        };
        let boot = header.boot | u32::from(bytes.get_u16_le()) << 8;
        (mark == MARK).then_some(RecordHeader { boot, ..header })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32_le(self.head_sum);
        out.put_u32_le(self.body_sum);
        out.put_slice(&MARK);
        out.put_u16_le(self.key_len);
        out.put_u32_le(self.head_len);
        out.put_u32_le(self.body_len);
        out.put_u32_le(0);
        out.put_u64_le(self.key_hash);
        out.put_u64_le(self.stamp);
        out.put_u64_le(self.wall_millis);
        out.put_u64_le(self.boot_millis);
        out.put_u32_le(self.lifetime_seconds);
        out.put_u8(self.variant);
        let [low, middle, high, _] = self.boot.to_le_bytes();
        out.put_slice(&[low, middle, high]);
    }

    /// Returns the start of the body, counted from the header.
    pub(crate) fn body_at(&self) -> usize {
        HEADER_BYTES + usize::from(self.key_len) + self.head_len as usize
    }

    /// The bytes that the record takes in its segment.
    pub(crate) fn total(&self) -> usize {
        padded(self.body_at() + self.body_len as usize)
    }

    /// When it is of no use any more, as unix time.
    pub(crate) fn expires_seconds(&self) -> u64 {
        self.wall_millis / 1000 + u64::from(self.lifetime_seconds)
    }
}

impl RecordHead {
    /// Reads the head of a record from bytes that reach to its body at least. Nothing: damaged, or cut.
    pub(crate) fn read(bytes: &Bytes) -> Option<RecordHead> {
        let header = RecordHeader::read(bytes)?;
        if !is_head_whole(&header, bytes) {
            return None;
        }
        let key_end = HEADER_BYTES + usize::from(header.key_len);
        Some(RecordHead {
            key: bytes.slice(HEADER_BYTES..key_end),
            head: bytes.slice(key_end..header.body_at()),
            header,
        })
    }
}

/// Reads a header whose head is all there and has the right check sum.
pub(crate) fn checked_header(bytes: &[u8]) -> Option<RecordHeader> {
    let header = RecordHeader::read(bytes)?;
    is_head_whole(&header, bytes).then_some(header)
}

/// Whether these are the bytes of a record, with the right check sums.
pub(crate) fn is_whole(bytes: &Bytes) -> bool {
    let Some(RecordHead { header, .. }) = RecordHead::read(bytes) else {
        return false;
    };
    let body = bytes.get(header.body_at()..header.body_at() + header.body_len as usize);
    body.is_some_and(|body| crc32fast::hash(body) == header.body_sum)
}

fn is_head_whole(header: &RecordHeader, bytes: &[u8]) -> bool {
    bytes
        .get(4..header.body_at())
        .is_some_and(|head| crc32fast::hash(head) == header.head_sum)
}

/// The bytes of a record that do not come from its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordOrigin {
    /// 24 bits; 0: the boot clock is not known.
    pub(crate) boot: u32,
}

/// Appends a record to `out`, which is at a multiple of 64. Nothing is appended if a part is too long.
pub(crate) fn put_record(
    record: &NewRecord,
    origin: RecordOrigin,
    out: &mut Vec<u8>,
) -> Option<RecordHeader> {
    let mut header = RecordHeader {
        head_sum: 0,
        body_sum: crc32fast::hash(&record.body),
        key_len: u16::try_from(record.key.len()).ok()?,
        head_len: u32::try_from(record.head.len()).ok()?,
        body_len: u32::try_from(record.body.len()).ok()?,
        key_hash: stable_hash(&record.key),
        stamp: record.stamp,
        wall_millis: record.received.wall_millis,
        boot_millis: record.received.boot_millis,
        lifetime_seconds: u32::try_from(record.lifetime.as_secs()).unwrap_or(u32::MAX),
        variant: record.variant.to_le_bytes()[0],
        boot: origin.boot & 0xff_ffff,
    };
    let begin = out.len();
    out.reserve(header.total());
    header.put(out);
    out.put_slice(&record.key);
    out.put_slice(&record.head);
    header.head_sum = crc32fast::hash(&out[begin + 4..]);
    out[begin..begin + 4].copy_from_slice(&header.head_sum.to_le_bytes());
    out.put_slice(&record.body);
    out.resize(begin + header.total(), 0);
    Some(header)
}
