//! A segment file: a header of 64 bytes, records, and once it is finished the footer.
//!
//! ```text
//!  0  the letters "mayflyS\n"
//!  8  CRC-32 of 12..64
//! 12  form                   u16
//! 14  start                  u16   the start of the server that made the file
//! 16  number                 u64   as in the name: a higher one was made later
//! 24  zone                   u64
//! 32  fingerprint            u64   the rules that make keys and variants
//! 40  made, wall clock       u64, milliseconds
//! 48  zeros
//! 64  records
//! ```

use super::{FORM, UNIT};
use bytes::{Buf, BufMut};

pub(crate) const HEADER_BYTES: usize = UNIT;
const MAGIC: [u8; 8] = *b"mayflyS\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) start: u16,
    pub(crate) number: u64,
    pub(crate) zone: u64,
    pub(crate) fingerprint: u64,
    pub(crate) made_wall_millis: u64,
}

/// The first bytes of a file with the name of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentOpening {
    Header(SegmentHeader),
    OtherForm(u16),
    /// The header is damaged, or was not written before the power went.
    Damaged,
    /// It does not begin as segments do.
    Foreign,
}

impl SegmentHeader {
    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut rest = Vec::with_capacity(HEADER_BYTES);
        rest.put_u16_le(FORM);
        rest.put_u16_le(self.start);
        rest.put_u64_le(self.number);
        rest.put_u64_le(self.zone);
        rest.put_u64_le(self.fingerprint);
        rest.put_u64_le(self.made_wall_millis);
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..12 + rest.len()].copy_from_slice(&rest);
        super::seal(&mut bytes[8..]);
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> SegmentOpening {
        if bytes.iter().all(|byte| *byte == 0) {
            return SegmentOpening::Damaged;
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return SegmentOpening::Foreign;
        };
        if bytes[..8] != MAGIC {
            return SegmentOpening::Foreign;
        }
        if !super::is_sealed(&bytes[8..]) {
            return SegmentOpening::Damaged;
        }
        let mut rest = &bytes[12..];
        match rest.get_u16_le() {
            FORM => SegmentOpening::Header(SegmentHeader {
                start: rest.get_u16_le(),
                number: rest.get_u64_le(),
                zone: rest.get_u64_le(),
                fingerprint: rest.get_u64_le(),
                made_wall_millis: rest.get_u64_le(),
            }),
            other => SegmentOpening::OtherForm(other),
        }
    }
}

/// The name of a segment's file.
pub(crate) fn segment_name(number: u64) -> String {
    format!("seg-{number:06}")
}

/// The number in the name of a segment's file.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("seg-")?.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}
