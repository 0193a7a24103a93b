//! Lists the records of a segment: by its footer, or by walking through the records if the footer is missing
//! or damaged.

use crate::form::footer::{BLOCK_BYTES, FooterBlock, FooterEntry, TRAILER_BYTES, Trailer};
use crate::form::segment::HEADER_BYTES;
use crate::form::{UNIT, footer};
use crate::scan::scan_records;
use crate::storage::StorageFile;
use std::io;

/// How a segment's records were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingSource {
    Footer,
    /// The segment has no footer: all records were walked. So many bytes at its end are of none of them.
    Scan {
        unread: u64,
    },
    /// The number of records found by walking where blocks of the footer are damaged.
    DamagedFooter(u64),
}

/// The records of a segment, in the order of their places.
#[derive(Debug)]
pub(crate) struct SegmentListing {
    pub(crate) entries: Vec<FooterEntry>,
    pub(crate) source: ListingSource,
}

impl SegmentListing {
    /// Reads the list of a segment's records.
    pub(crate) fn read(file: &dyn StorageFile, number: u64) -> io::Result<SegmentListing> {
        let len = file.byte_len()?;
        let mut trailer = [0; TRAILER_BYTES];
        if let Some(at) = len.checked_sub(TRAILER_BYTES as u64)
            && file.read_at(&mut trailer, at)? == TRAILER_BYTES
            && let Some(trailer) = Trailer::read(&trailer, number, len)
        {
            return read_footer(file, &trailer);
        }
        let mut entries = Vec::new();
        let end = scan_into(&mut entries, file, HEADER_BYTES as u64, len)?;
        Ok(SegmentListing {
            entries,
            source: ListingSource::Scan {
                unread: len.saturating_sub(end),
            },
        })
    }

    pub(crate) fn lowest_stamp(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| entry.stamp)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Writes a footer for a segment without one, behind its records.
    pub(crate) fn write_footer(&self, file: &dyn StorageFile, number: u64) -> io::Result<()> {
        let blocks_at = file.byte_len()?.next_multiple_of(BLOCK_BYTES as u64);
        file.write_at(
            &footer::footer_bytes(number, &self.entries, blocks_at),
            blocks_at,
        )
    }
}

/// Walks a part of a segment; where the last record ends.
fn scan_into(
    entries: &mut Vec<FooterEntry>,
    file: &dyn StorageFile,
    from: u64,
    to: u64,
) -> io::Result<u64> {
    scan_records(file, from..to, &mut |header, at| {
        entries.push(FooterEntry::of(header, at))
    })
}

fn read_footer(file: &dyn StorageFile, trailer: &Trailer) -> io::Result<SegmentListing> {
    let mut bytes = vec![0; trailer.blocks_bytes()];
    let count = file.read_at(&mut bytes, trailer.blocks_at)?;
    bytes.truncate(count);
    let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
    let mut entries = Vec::with_capacity(trailer.entries as usize);
    // The expected start of the next block's part, and the records found by walking where blocks are damaged.
    let (mut end_units, mut walked, mut is_damaged) = (first_units(), 0, false);
    let mut walk = |entries: &mut Vec<_>, from, to| -> io::Result<()> {
        let before = entries.len();
        scan_into(entries, file, from, to)?;
        walked += (entries.len() - before) as u64;
        Ok(())
    };
    for (at, block) in blocks.iter().enumerate() {
        let Some(block) = FooterBlock::read(block, trailer.number, at) else {
            is_damaged = true;
            continue;
        };
        if end_units < block.begin_units {
            let (from, to) = (in_bytes(end_units), in_bytes(block.begin_units));
            walk(&mut entries, from, to)?;
        }
        end_units = block.end_units;
        entries.extend(block.entries);
    }
    if is_damaged {
        walk(&mut entries, in_bytes(end_units), trailer.blocks_at)?;
    }
    Ok(SegmentListing {
        entries,
        source: match is_damaged {
            true => ListingSource::DamagedFooter(walked),
            false => ListingSource::Footer,
        },
    })
}

fn first_units() -> u32 {
    u32::try_from(HEADER_BYTES / UNIT).unwrap_or(0)
}

fn in_bytes(units: u32) -> u64 {
    u64::from(units) * UNIT as u64
}
