//! Appends records to the segment under way. One thread does it, under a lock that only it and a stop take.

use crate::config::{MAX_HEAD_BYTES, MAX_KEY_BYTES, MIN_LIFETIME};
use crate::form::UNIT;
use crate::form::footer::{BLOCK_BYTES, FooterEntry, TRAILER_BYTES, blocks_of, footer_bytes};
use crate::form::record::{RecordHeader, RecordOrigin, put_record};
use crate::form::segment::{HEADER_BYTES, SegmentHeader, segment_name};
use crate::index::{IndexOrder, PackedPlace};
use crate::parts::{TierParts, count};
use crate::record::NewRecord;
use crate::ring;
use crate::segments::Segment;
use crate::storage::StorageFile;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A record is at most this share of a segment.
const SHARE_OF_SEGMENT: u64 = 4;
/// How often the journal notes the wall clock, while records are written.
const TIME_NOTE_MILLIS: u64 = 60_000;
/// The capacity that the buffer for one record keeps between records.
const BUFFER_KEPT: usize = 256 << 10;
/// A name may be taken by a foreign file: the number of names that are passed over.
const NAMES_TRIED: u64 = 64;

/// The segment that is written.
#[derive(Debug)]
struct ActiveSegment {
    segment: Arc<Segment>,
    entries: Vec<FooterEntry>,
    position: u64,
    made_boot_millis: u64,
    /// Bytes that were copied into it from segments that went.
    copied: u64,
}

#[derive(Debug)]
pub(crate) struct SegmentWriter {
    active: Option<ActiveSegment>,
    next_number: u64,
    buffer: Vec<u8>,
    noted_time_at: Option<u64>,
    is_making_room: bool,
}

/// The reason why a record was not written.
#[derive(Debug)]
pub(crate) enum NotAppended {
    TooLarge,
    ShortLived,
    BeforeFloor,
    /// The tier's state has the reason.
    Refused,
}

impl SegmentWriter {
    pub(crate) fn new(next_number: u64) -> SegmentWriter {
        SegmentWriter {
            active: None,
            next_number,
            buffer: Vec::new(),
            noted_time_at: None,
            is_making_room: false,
        }
    }

    /// Writes a record; it is found from then on.
    pub(crate) fn append(
        &mut self,
        parts: &TierParts,
        record: &NewRecord,
    ) -> Result<(), NotAppended> {
        check(parts, record)?;
        let origin = RecordOrigin {
            boot: parts.clocks.boot_of(record.received),
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let header = put_record(record, origin, &mut buffer).ok_or(NotAppended::TooLarge)?;
        let placed = self.place(parts, &header, &buffer);
        buffer.shrink_to(BUFFER_KEPT);
        self.buffer = buffer;
        let place = placed.map_err(|error| {
            parts.note_refused(&error);
            NotAppended::Refused
        })?;
        parts
            .index
            .insert(header.key_hash, place, IndexOrder::Newer);
        parts.note_written();
        self.note_time(parts);
        count(&parts.counters.written);
        Ok(())
    }

    /// Writes a record that was in a segment that goes, if half of the segment under way is not of such records yet.
    pub(crate) fn copy(
        &mut self,
        parts: &TierParts,
        header: &RecordHeader,
        bytes: &[u8],
    ) -> Option<PackedPlace> {
        let share = parts.config.segment_bytes / 2;
        let len = bytes.len() as u64;
        let copied = self.active.as_ref().map_or(0, |active| active.copied);
        if copied + len > share || !parts.health.may_write(parts.boot_millis()) {
            return None;
        }
        let place = self.place(parts, header, bytes);
        let place = place.inspect_err(|error| parts.note_refused(error)).ok()?;
        if let Some(active) = &mut self.active {
            active.copied += len;
        }
        count(&parts.counters.reinserted);
        Some(place)
    }

    /// The segment under way is not one to drop.
    pub(crate) fn is_active(&self, number: u64) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.segment.number == number)
    }

    fn place(
        &mut self,
        parts: &TierParts,
        header: &RecordHeader,
        bytes: &[u8],
    ) -> io::Result<PackedPlace> {
        let len = bytes.len() as u64;
        let active = self.active_with_room(parts, len)?;
        let entry = active.write(header, bytes)?;
        parts.counters.written_bytes.fetch_add(len, Relaxed);
        let number = active.segment.number;
        Ok(PackedPlace::new(
            number,
            entry.offset_units,
            entry.len_units,
            entry.variant,
        ))
    }

    /// Returns the segment under way if it has room for `len` bytes, else the next one.
    fn active_with_room(&mut self, parts: &TierParts, len: u64) -> io::Result<&mut ActiveSegment> {
        let has_room = |active: &ActiveSegment| active.has_room(len, parts.config.segment_bytes);
        if !self.active.as_ref().is_some_and(has_room) {
            self.finish(parts);
            self.active = Some(self.begin(parts)?);
            self.make_room(parts);
        }
        let active = self.active.as_mut();
        active.ok_or_else(|| io::Error::other("no segment is under way"))
    }

    /// After a refused write: finds out whether the disk takes one again, also where no record waits. The block is written over by
    /// the next record, and a scan ends at its zeros.
    fn try_again(&mut self, parts: &TierParts) {
        let block = [0; BLOCK_BYTES];
        let active = self.active_with_room(parts, BLOCK_BYTES as u64);
        match active.and_then(|active| active.write_bytes(&block)) {
            Ok(()) => parts.note_written(),
            Err(error) => parts.note_refused(&error),
        }
    }

    /// Finishes the segment under way: its footer makes the next start quick.
    pub(crate) fn finish(&mut self, parts: &TierParts) {
        if let Some(active) = self.active.take()
            && let Err(error) = active.finish()
        {
            parts.note_refused(&error);
        }
    }

    fn begin(&mut self, parts: &TierParts) -> io::Result<ActiveSegment> {
        let now = parts.storage.now();
        let (number, file) = self.make_file(parts)?;
        let header = SegmentHeader {
            start: parts.start,
            number,
            zone: parts.config.zone,
            fingerprint: parts.config.fingerprint,
            made_wall_millis: now.wall_millis,
        };
        if let Err(error) = file.write_at(&header.bytes(), 0) {
            let _ = parts
                .storage
                .remove(&parts.folder.join(segment_name(number)));
            return Err(error);
        }
        // It counts with its full size from the start, so that its room is there when it needs it.
        let bytes = parts.config.segment_bytes;
        let segment = Arc::new(Segment::made(number, file, bytes, now.boot_millis));
        parts.segments.push(Arc::clone(&segment));
        Ok(ActiveSegment {
            segment,
            entries: Vec::new(),
            position: HEADER_BYTES as u64,
            made_boot_millis: now.boot_millis,
            copied: 0,
        })
    }

    fn make_file(&mut self, parts: &TierParts) -> io::Result<(u64, Arc<dyn StorageFile>)> {
        for _ in 0..NAMES_TRIED {
            let number = self.next_number;
            self.next_number += 1;
            match parts
                .storage
                .create(&parts.folder.join(segment_name(number)))
            {
                Ok(file) => return Ok((number, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(
            "other files have the names of the next segments",
        ))
    }

    fn make_room(&mut self, parts: &TierParts) {
        if !std::mem::replace(&mut self.is_making_room, true) {
            ring::make_room(parts, self);
            self.is_making_room = false;
        }
    }

    /// Does the periodic work: frees room on the disk, drops records that were not used for long, notes the time in the
    /// journal.
    pub(crate) fn tick(&mut self, parts: &TierParts) {
        let now = parts.storage.now();
        let inactive = u64::try_from(parts.config.inactive.as_millis()).unwrap_or(u64::MAX);
        let is_old = |active: &ActiveSegment| {
            active.made_boot_millis.saturating_add(inactive) < now.boot_millis
        };
        if self.active.as_ref().is_some_and(is_old) {
            self.finish(parts);
        }
        self.make_room(parts);
        if parts.health.is_write_stopped() && parts.health.may_write(now.boot_millis) {
            self.try_again(parts);
        }
    }

    fn note_time(&mut self, parts: &TierParts) {
        let now = parts.storage.now();
        let due = self
            .noted_time_at
            .is_none_or(|at| at + TIME_NOTE_MILLIS < now.boot_millis);
        if due {
            self.noted_time_at = Some(now.boot_millis);
            // If this fails, the next purge finds out.
            let _ = parts.journal.writer().lock().note_time(now.wall_millis);
        }
    }
}

impl ActiveSegment {
    fn has_room(&self, len: u64, segment_bytes: u64) -> bool {
        let footer = (blocks_of(self.entries.len() + 1) + 1) * BLOCK_BYTES + TRAILER_BYTES;
        self.position + len + footer as u64 <= segment_bytes
    }

    fn write(&mut self, header: &RecordHeader, bytes: &[u8]) -> io::Result<FooterEntry> {
        self.write_bytes(bytes)?;
        let entry = FooterEntry::of(header, self.position);
        self.segment.lowest_stamp.fetch_min(header.stamp, Relaxed);
        self.position += bytes.len() as u64;
        self.entries.push(entry);
        Ok(entry)
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        match self.segment.file() {
            Some(file) => file.write_at(bytes, self.position),
            None => Err(io::Error::other("the segment has no file")),
        }
    }

    fn finish(self) -> io::Result<()> {
        let blocks_at = self.position.next_multiple_of(BLOCK_BYTES as u64);
        let footer = footer_bytes(self.segment.number, &self.entries, blocks_at);
        self.segment
            .bytes
            .store(blocks_at + footer.len() as u64, Relaxed);
        match self.segment.file() {
            Some(file) => file.write_at(&footer, blocks_at),
            None => Ok(()),
        }
    }
}

/// Whether a record may be written at all.
pub(crate) fn check(parts: &TierParts, record: &NewRecord) -> Result<(), NotAppended> {
    let now = parts.storage.now();
    let age = match record.received.boot_millis {
        0 => now.wall_millis.saturating_sub(record.received.wall_millis),
        received => now.boot_millis.saturating_sub(received),
    };
    let lifetime_min = Duration::from_millis(age).saturating_add(MIN_LIFETIME);
    if record.lifetime < lifetime_min {
        return Err(NotAppended::ShortLived);
    }
    if record.stamp < parts.floor.load(Relaxed) {
        return Err(NotAppended::BeforeFloor);
    }
    let bytes = record.key.len() + record.head.len() + record.body.len();
    let is_fitting = bytes as u64 <= parts.config.segment_bytes / SHARE_OF_SEGMENT - UNIT as u64;
    match is_fitting && record.key.len() <= MAX_KEY_BYTES && record.head.len() <= MAX_HEAD_BYTES {
        true => Ok(()),
        false => Err(NotAppended::TooLarge),
    }
}
