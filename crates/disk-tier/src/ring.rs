//! The oldest segments go when there is no room, or when they were not used for long. Records that were used since they
//! were written are copied into the segment under way.
//!
//! A segment is never written over: its file is removed, so that senders keep their open file.

use crate::config::MIN_LIFETIME;
use crate::form::footer::FooterEntry;
use crate::form::record::{HEADER_BYTES, RecordHeader, is_whole};
use crate::index::PackedPlace;
use crate::listing::SegmentListing;
use crate::parts::{TierParts, count};
use crate::segments::{LoadState, Segment};
use crate::writer::SegmentWriter;
use bytes::BytesMut;
use std::sync::atomic::Ordering::Relaxed;

/// Drops segments until the terms of the tier hold.
pub(crate) fn make_room(parts: &TierParts, writer: &mut SegmentWriter) {
    while has_too_much(parts) {
        if !drop_skipped(parts) && !drop_oldest(parts, writer) {
            break;
        }
    }
    parts.note_fullness();
    let lowest_stamp = parts.segments.lowest_stamp();
    let mut journal = parts.journal.writer().lock();
    journal.trim(lowest_stamp);
    parts.floor.fetch_max(journal.floor(), Relaxed);
}

/// Frees the room of one segment, and copies some of its records.
pub(crate) fn drop_one(parts: &TierParts, writer: &mut SegmentWriter) {
    let _ = drop_skipped(parts) || drop_oldest(parts, writer);
}

fn has_too_much(parts: &TierParts) -> bool {
    // One segment stays free: survivors are copied before their segment goes.
    if parts.bytes() + parts.config.segment_bytes > parts.config.max_bytes {
        return true;
    }
    let min_free = parts.config.min_free_bytes;
    if min_free > 0
        && parts
            .storage
            .free_bytes(&parts.folder)
            .is_ok_and(|free| free < min_free)
    {
        return true;
    }
    let inactive = u64::try_from(parts.config.inactive.as_millis()).unwrap_or(u64::MAX);
    parts.segments.oldest().is_some_and(|oldest| {
        let is_loaded = *oldest.load.lock() == LoadState::Loaded;
        let written = oldest.written_boot_millis.load(Relaxed);
        is_loaded && written.saturating_add(inactive) < parts.boot_millis()
    })
}

fn drop_skipped(parts: &TierParts) -> bool {
    let Some((name, _)) = parts.skipped.lock().pop_front() else {
        return false;
    };
    // One that cannot be removed is not counted any more: the next start meets it again.
    let _ = parts.storage.remove(&parts.folder.join(name));
    true
}

/// Drops the oldest segment, but never the one under way.
fn drop_oldest(parts: &TierParts, writer: &mut SegmentWriter) -> bool {
    let Some(segment) = parts
        .segments
        .oldest()
        .filter(|oldest| !writer.is_active(oldest.number))
    else {
        return false;
    };
    let before = std::mem::replace(&mut *segment.load.lock(), LoadState::Dropped);
    if before == LoadState::Loaded {
        for (key_hash, place) in places_in(parts, &segment) {
            leave(parts, writer, &segment, key_hash, place);
        }
    }
    parts.segments.remove(segment.number);
    let _ = parts.storage.remove(&segment.path(&parts.folder));
    count(&parts.counters.segments_dropped);
    true
}

fn places_in(parts: &TierParts, segment: &Segment) -> Vec<(u64, PackedPlace)> {
    let listing = segment
        .opened(&*parts.storage, &parts.folder)
        .and_then(|file| SegmentListing::read(&**file, segment.number));
    let Ok(listing) = listing else {
        return parts.index.places_in(segment.number);
    };
    let place = |entry: FooterEntry| {
        let place = PackedPlace::new(
            segment.number,
            entry.offset_units,
            entry.len_units,
            entry.variant,
        );
        Some((entry.key_hash, parts.index.current(entry.key_hash, place)?))
    };
    listing.entries.into_iter().filter_map(place).collect()
}

fn leave(
    parts: &TierParts,
    writer: &mut SegmentWriter,
    segment: &Segment,
    key_hash: u64,
    place: PackedPlace,
) {
    let copied = (place.is_used())
        .then(|| copy(parts, writer, segment, key_hash, place))
        .flatten();
    match copied {
        Some(to) => parts.index.move_place(key_hash, place, to),
        None => parts.index.remove(key_hash, place),
    };
}

/// Copies a record if it is whole, and still of use for a while.
fn copy(
    parts: &TierParts,
    writer: &mut SegmentWriter,
    segment: &Segment,
    key_hash: u64,
    place: PackedPlace,
) -> Option<PackedPlace> {
    let file = segment.file()?;
    let mut start = [0; HEADER_BYTES];
    file.read_at(&mut start, place.offset()).ok()?;
    let header = RecordHeader::read(&start)?;
    let lasts_until = header
        .expires_seconds()
        .saturating_sub(MIN_LIFETIME.as_secs());
    let now = parts.storage.now().wall_millis / 1000;
    let is_fitting = header.total() as u64 <= parts.config.segment_bytes;
    if header.key_hash != key_hash
        || lasts_until < now
        || !is_fitting
        || header.stamp < parts.floor.load(Relaxed)
    {
        return None;
    }
    let mut bytes = BytesMut::zeroed(header.total());
    let count = file.read_at(&mut bytes, place.offset()).ok()?;
    let bytes = bytes.freeze();
    if count < bytes.len() || !is_whole(&bytes) {
        return None;
    }
    writer.copy(parts, &header, &bytes)
}
