//! The footer of a finished segment: the places of its records, so that a start need not read the records.
//!
//! ```text
//! block, 4,096 bytes             entry, 32 bytes                  trailer, the last 64 bytes
//!  0  CRC-32 of 4..4096           0  hash of the key   u64         0  CRC-32 of 4..64
//!  4  entries            u16      8  stamp             u64         4  entries          u32
//!  6  the letters "mf"           16  offset / 64       u32         8  "mayflyF\n"
//!  8  number of the block u32    20  length / 64       u32        16  segment's number u64
//! 12  first offset / 64  u32     24  expires, seconds  u32        24  offset of blocks u64
//! 16  segment's number   u64     28  variant           u8         32  lowest stamp     u64
//! 24  end of the last    u32     29  zeros                        40  zeros
//! 28  zeros
//! 32  127 entries
//! ```
//!
//! Each block has its own check sum and names the part of the segment that it covers. A damaged one costs nothing but
//! time: the records of that part are walked one by one.

use super::UNIT;
use super::record::RecordHeader;
use bytes::{Buf, BufMut};

pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const TRAILER_BYTES: usize = UNIT;
const ENTRY_BYTES: usize = 32;
const BLOCK_HEADER_BYTES: usize = 32;
const ENTRIES_OF_BLOCK: usize = (BLOCK_BYTES - BLOCK_HEADER_BYTES) / ENTRY_BYTES;
const BLOCK_MARK: [u8; 2] = *b"mf";
const TRAILER_MAGIC: [u8; 8] = *b"mayflyF\n";

/// The place of a record in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FooterEntry {
    pub(crate) key_hash: u64,
    pub(crate) stamp: u64,
    /// In units of 64 bytes, as the length.
    pub(crate) offset_units: u32,
    pub(crate) len_units: u32,
    pub(crate) expires_seconds: u32,
    pub(crate) variant: u8,
}

impl FooterEntry {
    pub(crate) fn of(header: &RecordHeader, offset: u64) -> FooterEntry {
        let units = |bytes: u64| u32::try_from(bytes / UNIT as u64).unwrap_or(u32::MAX);
        FooterEntry {
            key_hash: header.key_hash,
            stamp: header.stamp,
            offset_units: units(offset),
            len_units: units(header.total() as u64),
            expires_seconds: u32::try_from(header.expires_seconds()).unwrap_or(u32::MAX),
            variant: header.variant,
        }
    }

    /// Returns the offset and the length of the record, in bytes.
    pub(crate) fn range(&self) -> (u64, usize) {
        (
            u64::from(self.offset_units) * UNIT as u64,
            self.len_units as usize * UNIT,
        )
    }

    pub(crate) fn end_units(&self) -> u32 {
        self.offset_units.saturating_add(self.len_units)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) number: u64,
    pub(crate) entries: u32,
    pub(crate) blocks_at: u64,
    pub(crate) lowest_stamp: u64,
}

/// The entries of a block, and which part of the segment they cover.
#[derive(Clone, Debug)]
pub(crate) struct FooterBlock {
    pub(crate) entries: Vec<FooterEntry>,
    pub(crate) begin_units: u32,
    pub(crate) end_units: u32,
}

/// The whole footer, to be written at `blocks_at`.
pub(crate) fn footer_bytes(number: u64, entries: &[FooterEntry], blocks_at: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(blocks_of(entries.len()) * BLOCK_BYTES + TRAILER_BYTES);
    for (at, part) in entries.chunks(ENTRIES_OF_BLOCK).enumerate() {
        put_block(number, at, part, &mut out);
    }
    let begin = out.len();
    out.put_u32_le(0);
    out.put_u32_le(u32::try_from(entries.len()).unwrap_or(u32::MAX));
    out.put_slice(&TRAILER_MAGIC);
    out.put_u64_le(number);
    out.put_u64_le(blocks_at);
    out.put_u64_le(
        entries
            .iter()
            .map(|entry| entry.stamp)
            .min()
            .unwrap_or(u64::MAX),
    );
    out.resize(begin + TRAILER_BYTES, 0);
    super::seal(&mut out[begin..]);
    out
}

fn put_block(number: u64, at: usize, entries: &[FooterEntry], out: &mut Vec<u8>) {
    let begin = out.len();
    out.put_u32_le(0);
    out.put_u16_le(u16::try_from(entries.len()).unwrap_or(u16::MAX));
    out.put_slice(&BLOCK_MARK);
    out.put_u32_le(u32::try_from(at).unwrap_or(u32::MAX));
    out.put_u32_le(entries.first().map_or(0, |entry| entry.offset_units));
    out.put_u64_le(number);
    out.put_u32_le(entries.last().map_or(0, FooterEntry::end_units));
    out.put_u32_le(0);
    for entry in entries {
        out.put_u64_le(entry.key_hash);
        out.put_u64_le(entry.stamp);
        out.put_u32_le(entry.offset_units);
        out.put_u32_le(entry.len_units);
        out.put_u32_le(entry.expires_seconds);
        out.put_u32_le(entry.variant.into());
    }
    out.resize(begin + BLOCK_BYTES, 0);
    super::seal(&mut out[begin..]);
}

/// The number of blocks that this number of entries takes.
pub(crate) fn blocks_of(entries: usize) -> usize {
    entries.div_ceil(ENTRIES_OF_BLOCK)
}

impl Trailer {
    /// Reads the last bytes of a segment of this number and length. Nothing: it is not finished, or damaged.
    pub(crate) fn read(bytes: &[u8], number: u64, file_len: u64) -> Option<Trailer> {
        let bytes = bytes.first_chunk::<TRAILER_BYTES>()?;
        if !super::is_sealed(bytes) || bytes[8..16] != TRAILER_MAGIC {
            return None;
        }
        let entries = (&bytes[4..]).get_u32_le();
        let mut rest = &bytes[16..];
        let trailer = Trailer {
            entries,
            number: rest.get_u64_le(),
            blocks_at: rest.get_u64_le(),
            lowest_stamp: rest.get_u64_le(),
        };
        let end = trailer
            .blocks_at
            .checked_add(trailer.blocks_bytes() as u64 + TRAILER_BYTES as u64)?;
        (trailer.number == number && end == file_len).then_some(trailer)
    }

    pub(crate) fn blocks_bytes(&self) -> usize {
        blocks_of(self.entries as usize) * BLOCK_BYTES
    }
}

impl FooterBlock {
    /// Reads the block with a number. Nothing: damaged.
    pub(crate) fn read(bytes: &[u8], number: u64, at: usize) -> Option<FooterBlock> {
        let bytes = bytes.first_chunk::<BLOCK_BYTES>()?;
        let mut rest = &bytes[4..];
        let count = usize::from(rest.get_u16_le());
        let mark = [rest.get_u8(), rest.get_u8()];
        let block = rest.get_u32_le();
        let begin_units = rest.get_u32_le();
        let is_ours = mark == BLOCK_MARK && block as usize == at && rest.get_u64_le() == number;
        if !super::is_sealed(bytes) || !is_ours || count > ENTRIES_OF_BLOCK {
            return None;
        }
        let end_units = rest.get_u32_le();
        let (entries, _) = bytes[BLOCK_HEADER_BYTES..].as_chunks::<ENTRY_BYTES>();
        Some(FooterBlock {
            entries: entries[..count].iter().map(read_entry).collect(),
            begin_units,
            end_units,
        })
    }
}

fn read_entry(bytes: &[u8; ENTRY_BYTES]) -> FooterEntry {
    let mut bytes = &bytes[..];
    FooterEntry {
        key_hash: bytes.get_u64_le(),
        stamp: bytes.get_u64_le(),
        offset_units: bytes.get_u32_le(),
        len_units: bytes.get_u32_le(),
        expires_seconds: bytes.get_u32_le(),
        variant: bytes.get_u8(),
    }
}
