//! The journal of purges: a file of units of 64 bytes. The first one is the header.
//!
//! ```text
//! header                            purge                          continued            end
//!  0  CRC-32 of 4..64                0  CRC-32 of 4..64             0  CRC-32            0  CRC-32
//!  4  1                              4  2                           4  3                 4  5
//!  5  0                              5  soft 0, hard 1              5  0                 5  0
//!  6  form                u16        6  bytes of the target  u16    6  bytes here  u16   6  0
//!  8  "mayflyJ\n"                    8  batch begins at      u32    8  as there          8  as there
//! 16  number of the file  u64       12  this unit's number   u32   12  as there         12  as there
//! 24  begins at stamp     u64       16  stamp                u64   16  48 bytes of      16  number of the
//! 32  void before stamp   u64       24  wall clock           u64       the target           next file
//! 40  wall clock          u64       32  highest stamp before u64
//! 48  start               u16       40  24 bytes of the target     time (kind 4): as a purge without a target:
//! 52  units of the file   u32                                      what the wall clock has shown
//!                                                                  position (kind 6): as a purge; the stamp is a
//!                                                                  number in a log, the target the log's name
//! ```
//!
//! Each unit describes others, so that a lost one is noticed: everything before the begin of a batch was synced when
//! the batch was written, so a blank there is a loss; and the highest stamp before a unit bounds the stamps of lost
//! ones.

use super::{FORM, UNIT};
use crate::purge::{MAX_TARGET_BYTES, PurgeMode};
use bytes::{Buf, BufMut};

const MAGIC: [u8; 8] = *b"mayflyJ\n";
const HEADER: u8 = 1;
const PURGE: u8 = 2;
const CONTINUED: u8 = 3;
const TIME: u8 = 4;
const END: u8 = 5;
const POSITION: u8 = 6;
/// A unit with no more bits than these was never written: one that was has its check sum, numbers and stamps. So a bit
/// that flips in the blank end of a file does not look like a lost purge.
const BLANK_BITS: u32 = 3;
const TARGET_OF_PURGE: usize = 24;
const TARGET_OF_CONTINUED: usize = 48;

/// 64 bytes of a journal.
pub(crate) type JournalUnit = [u8; UNIT];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalHeader {
    pub(crate) number: u64,
    /// All purges in earlier files have this stamp or an earlier one.
    pub(crate) begins_at: u64,
    /// Records with an earlier stamp are void, whatever is in other files.
    pub(crate) void_before: u64,
    pub(crate) wall_millis: u64,
    pub(crate) start: u16,
    pub(crate) units: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitPosition {
    /// The first unit of the batch that was written together.
    pub(crate) batch: u32,
    pub(crate) unit: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgeUnit {
    pub(crate) mode: PurgeMode,
    pub(crate) stamp: u64,
    pub(crate) wall_millis: u64,
    /// The highest stamp of all units before it, in this and earlier files.
    pub(crate) highest_before: u64,
}

/// The kinds of entries that take more than a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Purge,
    Position,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitContent<'a> {
    /// Never written.
    Blank,
    /// The first unit of a purge, or of a position, whose number in the log stands for the stamp.
    Begun {
        kind: EntryKind,
        entry: PurgeUnit,
        len: usize,
        first: &'a [u8],
    },
    Continued(&'a [u8]),
    Time(PurgeUnit),
    End {
        next: u64,
    },
    Damaged,
}

impl JournalHeader {
    pub(crate) fn bytes(&self) -> JournalUnit {
        let mut rest = Vec::with_capacity(UNIT);
        rest.put_u8(HEADER);
        rest.put_u8(0);
        rest.put_u16_le(FORM);
        rest.put_slice(&MAGIC);
        rest.put_u64_le(self.number);
        rest.put_u64_le(self.begins_at);
        rest.put_u64_le(self.void_before);
        rest.put_u64_le(self.wall_millis);
        rest.put_u16_le(self.start);
        rest.put_u16_le(0);
        rest.put_u32_le(self.units);
        sealed(&rest)
    }

    /// Reads the first unit of a file. Nothing: damaged, of another form, or foreign.
    pub(crate) fn read(bytes: &[u8]) -> Option<JournalHeader> {
        let bytes = bytes.first_chunk::<UNIT>()?;
        let mut rest = &bytes[4..];
        let is_header = rest.get_u8() == HEADER && rest.get_u8() == 0 && rest.get_u16_le() == FORM;
        if !super::is_sealed(bytes) || !is_header || rest[..8] != MAGIC {
            return None;
        }
        rest.advance(8);
        let (number, begins_at, void_before) =
            (rest.get_u64_le(), rest.get_u64_le(), rest.get_u64_le());
        let (wall_millis, start, _) = (rest.get_u64_le(), rest.get_u16_le(), rest.get_u16_le());
        Some(JournalHeader {
            number,
            begins_at,
            void_before,
            wall_millis,
            start,
            units: rest.get_u32_le(),
        })
    }
}

fn sealed(rest: &[u8]) -> JournalUnit {
    let mut unit = [0; UNIT];
    unit[4..4 + rest.len()].copy_from_slice(rest);
    super::seal(&mut unit);
    unit
}

fn opening(kind: u8, mode: u8, len: usize, at: UnitPosition) -> Vec<u8> {
    let mut rest = Vec::with_capacity(UNIT);
    rest.put_u8(kind);
    rest.put_u8(mode);
    rest.put_u16_le(u16::try_from(len).unwrap_or(u16::MAX));
    rest.put_u32_le(at.batch);
    rest.put_u32_le(at.unit);
    rest
}

fn put_purge_unit(purge: &PurgeUnit, rest: &mut Vec<u8>) {
    rest.put_u64_le(purge.stamp);
    rest.put_u64_le(purge.wall_millis);
    rest.put_u64_le(purge.highest_before);
}

/// How many units an entry with such a target takes.
pub(crate) fn units_of(target_len: usize) -> u32 {
    let continued = target_len
        .saturating_sub(TARGET_OF_PURGE)
        .div_ceil(TARGET_OF_CONTINUED);
    u32::try_from(1 + continued).unwrap_or(u32::MAX)
}

/// Appends the units of an entry. The target is at most [`MAX_TARGET_BYTES`] long.
pub(crate) fn put_entry(
    kind: EntryKind,
    entry: &PurgeUnit,
    target: &[u8],
    at: UnitPosition,
    out: &mut Vec<u8>,
) {
    let (first, others) = target.split_at(target.len().min(TARGET_OF_PURGE));
    let mode = u8::from(entry.mode == PurgeMode::Hard);
    let kind = match kind {
        EntryKind::Purge => PURGE,
        EntryKind::Position => POSITION,
    };
    let mut rest = opening(kind, mode, target.len(), at);
    put_purge_unit(entry, &mut rest);
    rest.put_slice(first);
    out.put_slice(&sealed(&rest));
    for (count, part) in (1..).zip(others.chunks(TARGET_OF_CONTINUED)) {
        let unit = at.unit + count;
        let mut rest = opening(CONTINUED, 0, part.len(), UnitPosition { unit, ..at });
        rest.put_slice(part);
        out.put_slice(&sealed(&rest));
    }
}

/// Returns a unit that records the wall clock.
pub(crate) fn time_unit(wall_millis: u64, highest_before: u64, at: UnitPosition) -> JournalUnit {
    let mut rest = opening(TIME, 0, 0, at);
    put_purge_unit(
        &PurgeUnit {
            mode: PurgeMode::Soft,
            stamp: 0,
            wall_millis,
            highest_before,
        },
        &mut rest,
    );
    sealed(&rest)
}

/// The last unit of a file that is followed by another one.
pub(crate) fn end_unit(next: u64, at: UnitPosition) -> JournalUnit {
    let mut rest = opening(END, 0, 0, at);
    rest.put_u64_le(next);
    sealed(&rest)
}

pub(crate) fn read_unit(bytes: &JournalUnit, number: u32) -> (UnitContent<'_>, UnitPosition) {
    let mut rest = &bytes[4..];
    let (kind, mode) = (rest.get_u8(), rest.get_u8());
    let len = usize::from(rest.get_u16_le());
    let at = UnitPosition {
        batch: rest.get_u32_le(),
        unit: rest.get_u32_le(),
    };
    let bits: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
    if bits <= BLANK_BITS {
        return (UnitContent::Blank, UnitPosition { unit: number, ..at });
    }
    let is_placed = at.unit == number && (1..=number).contains(&at.batch);
    if !super::is_sealed(bytes) || !is_placed {
        return (UnitContent::Damaged, at);
    }
    (read_content(kind, mode, len, rest), at)
}

fn read_content(kind: u8, mode: u8, len: usize, mut rest: &[u8]) -> UnitContent<'_> {
    if kind == CONTINUED {
        return rest
            .get(..len)
            .map_or(UnitContent::Damaged, UnitContent::Continued);
    }
    let first = rest.get_u64_le();
    if kind == END {
        return UnitContent::End { next: first };
    }
    let purge = PurgeUnit {
        mode: if mode == 0 {
            PurgeMode::Soft
        } else {
            PurgeMode::Hard
        },
        stamp: first,
        wall_millis: rest.get_u64_le(),
        highest_before: rest.get_u64_le(),
    };
    let kind = match kind {
        TIME => return UnitContent::Time(purge),
        PURGE if len <= MAX_TARGET_BYTES => EntryKind::Purge,
        POSITION if len <= MAX_TARGET_BYTES => EntryKind::Position,
        _ => return UnitContent::Damaged,
    };
    UnitContent::Begun {
        kind,
        entry: purge,
        len,
        first: &rest[..len.min(TARGET_OF_PURGE)],
    }
}

/// The name of a journal's file.
pub(crate) fn journal_name(number: u64) -> String {
    format!("journal-{number}")
}

/// The number in the name of a journal's file.
pub(crate) fn journal_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("journal-")?.parse().ok()?;
    (journal_name(number) == name).then_some(number)
}
