//! Fills the index from the segments of earlier starts, newest first. Lookups and writes go on meanwhile: newer records
//! are in the index before older ones.

use crate::form::footer::FooterEntry;
use crate::form::segment::{HEADER_BYTES, SegmentHeader, SegmentOpening, segment_name};
use crate::index::PackedPlace;
use crate::listing::{ListingSource, SegmentListing};
use crate::parts::TierParts;
use crate::segments::{LoadState, Segment};
use crate::state::TierEvent;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Loads all segments that `segments` names.
pub(crate) fn load_all(parts: &TierParts, segments: &[Arc<Segment>]) {
    let began = parts.boot_millis();
    for segment in segments {
        if parts.health.is_closed() {
            return;
        }
        load(parts, segment);
    }
    parts.note_fullness();
    parts.is_loaded.store(true, Release);
    if !segments.is_empty() {
        parts.say(TierEvent::Loaded {
            records: parts.index.records(),
            millis: parts.boot_millis().saturating_sub(began),
        });
    }
}

/// Loads one segment; a file that is not one of ours leaves the table.
pub(crate) fn load(parts: &TierParts, segment: &Segment) {
    let mut state = segment.load.lock();
    if *state != LoadState::NotLoaded {
        return;
    }
    match opening(parts, segment) {
        Ok(SegmentOpening::Header(header)) if refusal(parts, &header, segment).is_none() => {
            if let Err(error) = enter(parts, segment, &header) {
                parts.say(TierEvent::SegmentSkipped {
                    name: segment_name(segment.number),
                    reason: error.to_string(),
                });
            }
            *state = LoadState::Loaded;
        }
        opening => {
            skip(parts, segment, opening);
            *state = LoadState::Dropped;
        }
    }
}

fn opening(parts: &TierParts, segment: &Segment) -> io::Result<SegmentOpening> {
    let file = segment.opened(&*parts.storage, &parts.folder)?;
    let mut header = [0; HEADER_BYTES];
    let count = file.read_at(&mut header, 0)?;
    Ok(SegmentHeader::read(&header[..count]))
}

/// Returns the reason why a segment with a good header is of no use.
fn refusal(parts: &TierParts, header: &SegmentHeader, segment: &Segment) -> Option<&'static str> {
    if header.number != segment.number {
        Some("its number is not that of its name")
    } else if header.zone != parts.config.zone {
        Some("it is of another zone")
    } else if header.fingerprint != parts.config.fingerprint {
        Some("it was written by another configuration")
    } else if header.start >= parts.start {
        Some("the journal does not know its start")
    } else {
        None
    }
}

fn skip(parts: &TierParts, segment: &Segment, opening: io::Result<SegmentOpening>) {
    let name = segment_name(segment.number);
    parts.segments.remove(segment.number);
    let reason = match opening {
        Ok(SegmentOpening::Foreign) => {
            parts.say(TierEvent::ForeignFile { name });
            return;
        }
        Ok(SegmentOpening::Header(header)) => refusal(parts, &header, segment)
            .unwrap_or_default()
            .to_owned(),
        Ok(SegmentOpening::OtherForm(form)) => format!("it is of form {form}"),
        Ok(SegmentOpening::Damaged) => "its header is damaged".to_owned(),
        Err(error) => error.to_string(),
    };
    let bytes = segment.bytes.load(Relaxed);
    parts.skipped.lock().push_back((name.clone(), bytes));
    parts.say(TierEvent::SegmentSkipped { name, reason });
}

fn enter(parts: &TierParts, segment: &Segment, header: &SegmentHeader) -> io::Result<()> {
    let file = segment.opened(&*parts.storage, &parts.folder)?;
    let listing = SegmentListing::read(&**file, segment.number)?;
    let now = parts.storage.now();
    let age = now.wall_millis.saturating_sub(header.made_wall_millis);
    let written = now.boot_millis.saturating_sub(age);
    segment.written_boot_millis.store(written, Relaxed);
    segment.lowest_stamp.store(listing.lowest_stamp(), Relaxed);
    let floor = parts.floor.load(Relaxed);
    // The last of a segment is the newest.
    let newest_first = listing.entries.iter().rev();
    let is_valid =
        |entry: &&FooterEntry| entry.stamp >= floor && entry.stamp >> 48 < u64::from(parts.start);
    parts
        .index
        .insert_older(newest_first.filter(is_valid).map(|entry| {
            let (offset, len) = (entry.offset_units, entry.len_units);
            let place = PackedPlace::new(segment.number, offset, len, entry.variant);
            (entry.key_hash, place)
        }));
    let name = segment_name(segment.number);
    let records = listing.entries.len() as u64;
    match listing.source {
        ListingSource::Footer => {}
        ListingSource::DamagedFooter(records) => {
            parts.say(TierEvent::FooterDamaged { name, records })
        }
        ListingSource::Scan { .. } => {
            parts.say(TierEvent::SegmentScanned { name, records });
            // Without it the segment is walked again at the next start: nothing more.
            let _ = listing.write_footer(&**file, segment.number);
            segment.bytes.store(file.byte_len()?, Relaxed);
        }
    }
    Ok(())
}
