//! Written bytes are read again, and any other bytes are no record, header, footer or purge.

use super::footer::{BLOCK_BYTES, FooterBlock, FooterEntry, TRAILER_BYTES, Trailer, footer_bytes};
use super::journal::{
    EntryKind, JournalHeader, JournalUnit, PurgeUnit, UnitContent, UnitPosition, end_unit,
    journal_number, put_entry, read_unit, time_unit, units_of,
};
use super::record::{RecordHead, RecordHeader, RecordOrigin, put_record};
use super::segment::{SegmentHeader, SegmentOpening, segment_name, segment_number};
use crate::purge::PurgeMode;
use crate::record::NewRecord;
use crate::times::TierTime;
use bytes::Bytes;
use std::time::Duration;

fn record() -> NewRecord {
    NewRecord {
        key: Bytes::from_static(b"GET https://example.org/"),
        variant: 0x1_05,
        stamp: 3 << 48 | 9,
        received: TierTime {
            wall_millis: 1_700_000_000_123,
            boot_millis: 55,
        },
        lifetime: Duration::from_secs(3600),
        head: Bytes::from_static(b"200 text/html"),
        body: Bytes::from(vec![b'x'; 1000]),
    }
}

fn record_bytes() -> (RecordHeader, Bytes) {
    let mut bytes = Vec::new();
    let header = put_record(&record(), RecordOrigin { boot: 0xabcdef }, &mut bytes).unwrap();
    (header, bytes.into())
}

#[test]
fn record_is_read_as_it_was_written() {
    let (header, bytes) = record_bytes();
    let read = RecordHead::read(&bytes).unwrap();
    assert_eq!(read.header, header);
    assert_eq!((read.key, read.head), (record().key, record().head));
    assert_eq!(
        (header.variant, header.boot, header.lifetime_seconds),
        (5, 0xabcdef, 3600)
    );
    assert_eq!((header.stamp, header.boot_millis), (3 << 48 | 9, 55));
    assert_eq!(bytes.len(), header.total());
    assert_eq!(bytes.len() % 64, 0);
    let body = &bytes[header.body_at()..header.body_at() + 1000];
    assert_eq!(crc32fast::hash(body), header.body_sum);
}

#[test]
fn layout_of_a_record_is_that_on_paper() {
    let (_, bytes) = record_bytes();
    assert_eq!(&bytes[8..10], b"mr");
    assert_eq!(bytes[10..12], 24u16.to_le_bytes());
    assert_eq!(bytes[16..20], 1000u32.to_le_bytes());
    assert_eq!(bytes[20..24], [0; 4]);
    assert_eq!(bytes[32..40], (3u64 << 48 | 9).to_le_bytes());
    assert_eq!(bytes[56..60], 3600u32.to_le_bytes());
    assert_eq!(bytes[61..64], [0xef, 0xcd, 0xab]);
    assert_eq!(&bytes[64..88], b"GET https://example.org/");
}

#[test]
fn each_flipped_bit_of_a_record_s_head_is_seen() {
    let (header, bytes) = record_bytes();
    for bit in 0..header.body_at() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // The body's check sum is a part of the head.
        assert!(RecordHead::read(&flipped.into()).is_none(), "bit {bit}");
    }
}

#[test]
fn cut_record_is_no_record() {
    let (header, bytes) = record_bytes();
    for len in 0..header.body_at() {
        assert!(
            RecordHead::read(&bytes.slice(..len)).is_none(),
            "{len} bytes"
        );
    }
}

#[test]
fn record_with_too_long_a_key_is_not_written() {
    let key = Bytes::from(vec![0; 1 << 16]);
    let mut bytes = Vec::new();
    let long = NewRecord { key, ..record() };
    assert!(put_record(&long, RecordOrigin { boot: 0 }, &mut bytes).is_none());
    assert!(bytes.is_empty());
}

fn segment_header() -> SegmentHeader {
    SegmentHeader {
        start: 4,
        number: 77,
        zone: 1,
        fingerprint: 2,
        made_wall_millis: 3,
    }
}

#[test]
fn segment_header_is_read_as_it_was_written() {
    let bytes = segment_header().bytes();
    assert_eq!(
        SegmentHeader::read(&bytes),
        SegmentOpening::Header(segment_header())
    );
}

#[test]
fn segment_of_another_form_says_which() {
    let mut bytes = segment_header().bytes();
    bytes[12] = 9;
    super::seal(&mut bytes[8..]);
    assert_eq!(SegmentHeader::read(&bytes), SegmentOpening::OtherForm(9));
}

#[test]
fn foreign_and_damaged_segments_are_told_apart() {
    let mut damaged = segment_header().bytes();
    damaged[20] ^= 1;
    assert_eq!(SegmentHeader::read(&damaged), SegmentOpening::Damaged);
    assert_eq!(SegmentHeader::read(&[0; 64]), SegmentOpening::Damaged);
    assert_eq!(SegmentHeader::read(&[]), SegmentOpening::Damaged);
    assert_eq!(SegmentHeader::read(b"#!/bin/sh"), SegmentOpening::Foreign);
    assert_eq!(SegmentHeader::read(&[b'x'; 64]), SegmentOpening::Foreign);
}

#[test]
fn names_of_files_are_read_only_as_they_are_written() {
    assert_eq!(segment_number(&segment_name(7)), Some(7));
    assert_eq!(segment_number(&segment_name(12_345_678)), Some(12_345_678));
    for other in [
        "seg-7",
        "seg-0000007",
        "seg-+00007",
        "seg-",
        "lock",
        "seg-000007.new",
    ] {
        assert_eq!(segment_number(other), None, "{other}");
    }
    assert_eq!(journal_number("journal-12"), Some(12));
    assert_eq!(journal_number("journal-012"), None);
    assert_eq!(journal_number("journal.new"), None);
}

fn entries(count: u32) -> Vec<FooterEntry> {
    (0..count)
        .map(|at| FooterEntry {
            key_hash: u64::from(at) * 31,
            stamp: 1000 + u64::from(at),
            offset_units: 1 + at * 2,
            len_units: 2,
            expires_seconds: at,
            variant: 3,
        })
        .collect()
}

#[test]
fn footer_is_read_as_it_was_written() {
    let entries = entries(300);
    let bytes = footer_bytes(77, &entries, 8192);
    let (blocks, trailer) = bytes.split_at(bytes.len() - TRAILER_BYTES);
    let trailer = Trailer::read(trailer, 77, 8192 + bytes.len() as u64).unwrap();
    assert_eq!((trailer.entries, trailer.lowest_stamp), (300, 1000));
    assert_eq!(trailer.blocks_bytes(), blocks.len());
    let read: Vec<_> = blocks
        .chunks(BLOCK_BYTES)
        .enumerate()
        .flat_map(|(at, block)| FooterBlock::read(block, 77, at).unwrap().entries)
        .collect();
    assert_eq!(read, entries);
}

#[test]
fn block_of_a_footer_says_which_part_it_covers() {
    let bytes = footer_bytes(77, &entries(127), 8192);
    let block = FooterBlock::read(&bytes, 77, 0).unwrap();
    assert_eq!((block.begin_units, block.end_units), (1, 1 + 127 * 2));
}

#[test]
fn footer_of_another_segment_or_place_is_refused() {
    let bytes = footer_bytes(77, &entries(130), 8192);
    let trailer = &bytes[bytes.len() - TRAILER_BYTES..];
    let len = 8192 + bytes.len() as u64;
    assert!(Trailer::read(trailer, 78, len).is_none());
    assert!(Trailer::read(trailer, 77, len + 1).is_none());
    assert!(FooterBlock::read(&bytes, 78, 0).is_none());
    assert!(FooterBlock::read(&bytes, 77, 1).is_none());
}

#[test]
fn each_flipped_bit_of_a_footer_costs_its_block_alone() {
    let bytes = footer_bytes(77, &entries(130), 8192);
    for bit in (0..bytes.len() * 8).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (blocks, trailer) = flipped.split_at(flipped.len() - TRAILER_BYTES);
        let blocks = blocks.chunks(BLOCK_BYTES).enumerate();
        let damaged = blocks
            .filter(|(at, block)| FooterBlock::read(block, 77, *at).is_none())
            .count();
        let is_damaged = Trailer::read(trailer, 77, 8192 + bytes.len() as u64).is_none();
        assert_eq!(damaged + usize::from(is_damaged), 1, "bit {bit}");
    }
}

fn purge_unit() -> PurgeUnit {
    PurgeUnit {
        mode: PurgeMode::Hard,
        stamp: 5,
        wall_millis: 6,
        highest_before: 4,
    }
}

fn units(bytes: &[u8]) -> &[JournalUnit] {
    bytes.as_chunks().0
}

#[test]
fn entries_of_all_lengths_are_read_as_they_were_written() {
    for (len, written) in [0, 1, 24, 25, 72, 73, 1000]
        .into_iter()
        .flat_map(|len| [(len, EntryKind::Purge), (len, EntryKind::Position)])
    {
        let target = vec![b't'; len];
        let at = UnitPosition { batch: 2, unit: 3 };
        let mut bytes = Vec::new();
        put_entry(written, &purge_unit(), &target, at, &mut bytes);
        let units = units(&bytes);
        assert_eq!(units.len(), units_of(len) as usize);
        let mut read = Vec::new();
        for (number, unit) in (3..).zip(units) {
            let (content, position) = read_unit(unit, number);
            assert_eq!((position.batch, position.unit), (2, number));
            match content {
                UnitContent::Begun {
                    kind,
                    entry,
                    len: whole,
                    first,
                } => {
                    assert_eq!((number, entry, whole), (3, purge_unit(), len));
                    assert_eq!(kind, written);
                    read.extend_from_slice(first);
                }
                UnitContent::Continued(part) => read.extend_from_slice(part),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(read, target);
    }
}

#[test]
fn each_flipped_bit_of_a_unit_is_seen() {
    let mut bytes = Vec::new();
    let at = UnitPosition { batch: 1, unit: 1 };
    put_entry(EntryKind::Purge, &purge_unit(), b"tag", at, &mut bytes);
    let time = time_unit(9, 4, UnitPosition { batch: 1, unit: 1 });
    let end = end_unit(2, UnitPosition { batch: 1, unit: 1 });
    for unit in [units(&bytes)[0], time, end] {
        for bit in 0..512 {
            let mut flipped = unit;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_unit(&flipped, 1).0, UnitContent::Damaged, "bit {bit}");
        }
    }
}

#[test]
fn unit_at_another_place_is_damaged() {
    let end = end_unit(2, UnitPosition { batch: 1, unit: 1 });
    assert_eq!(read_unit(&end, 2).0, UnitContent::Damaged);
    assert_eq!(read_unit(&[0; 64], 2).0, UnitContent::Blank);
}

#[test]
fn journal_header_is_read_as_it_was_written() {
    let header = JournalHeader {
        number: 1,
        begins_at: 2,
        void_before: 3,
        wall_millis: 4,
        start: 5,
        units: 6,
    };
    let bytes = header.bytes();
    assert_eq!(JournalHeader::read(&bytes), Some(header));
    for bit in 0..512 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(JournalHeader::read(&flipped), None, "bit {bit}");
    }
}
