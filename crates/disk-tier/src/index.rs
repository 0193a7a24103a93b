//! The index of records and their places: 16 bytes each in open tables that are half to three quarters full, so at most
//! 32 bytes a record. Divided into shards, each behind a lock that is held for nanoseconds.
//!
//! ```text
//! slot    key hash 64 | segment 20 | offset / 64  20 | length / 64  10 | variant 8 | used 2 | verified 1
//! ```
//!
//! A slot is a hint. The record that it leads to has the whole key, and is compared with it.

#[cfg(test)]
mod tests;

use crate::form::UNIT;
use crate::record::{MAX_VARIANTS, RecordPlace, RecordPlaces};
use parking_lot::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SHARDS: usize = 256;
/// Slots of a shard with its first record.
const MIN_SLOTS: usize = 16;

const SEGMENT_BITS: u32 = 20;
const OFFSET_BITS: u32 = 20;
const LEN_BITS: u32 = 10;
const OFFSET_AT: u32 = SEGMENT_BITS;
const LEN_AT: u32 = OFFSET_AT + OFFSET_BITS;
const VARIANT_AT: u32 = LEN_AT + LEN_BITS;
const USED_AT: u32 = VARIANT_AT + 8;
const VERIFIED_AT: u32 = USED_AT + 2;
const PRESENT_AT: u32 = VERIFIED_AT + 1;
/// Segment and offset: the bits by which places differ.
const PLACE_MASK: u64 = (1 << LEN_AT) - 1;
const MAX_USED: u64 = 3;

/// Numbers of segments are compared by this many of their bits.
pub(crate) const SEGMENT_MASK: u64 = (1 << SEGMENT_BITS) - 1;

/// The place of a record, in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedPlace(pub(crate) u64);

impl PackedPlace {
    pub(crate) fn new(segment: u64, offset_units: u32, len_units: u32, variant: u8) -> PackedPlace {
        let len = u64::from(len_units).min((1 << LEN_BITS) - 1);
        PackedPlace(
            segment & SEGMENT_MASK
                | u64::from(offset_units) << OFFSET_AT
                | len << LEN_AT
                | u64::from(variant) << VARIANT_AT
                | 1 << PRESENT_AT,
        )
    }

    fn bits(self, at: u32, count: u32) -> u64 {
        self.0 >> at & ((1 << count) - 1)
    }

    /// The low bits of the segment's number.
    pub(crate) fn segment(self) -> u64 {
        self.bits(0, SEGMENT_BITS)
    }

    pub(crate) fn offset(self) -> u64 {
        self.bits(OFFSET_AT, OFFSET_BITS) * UNIT as u64
    }

    /// The record's bytes; nothing if it is longer than 64 KB.
    pub(crate) fn len(self) -> Option<usize> {
        let units = self.bits(LEN_AT, LEN_BITS);
        (units < (1 << LEN_BITS) - 1).then(|| usize::try_from(units).unwrap_or(0) * UNIT)
    }

    pub(crate) fn variant(self) -> u64 {
        self.bits(VARIANT_AT, 8)
    }

    pub(crate) fn is_used(self) -> bool {
        self.bits(USED_AT, 2) > 0
    }

    pub(crate) fn is_verified(self) -> bool {
        self.bits(VERIFIED_AT, 1) == 1
    }

    /// Orders places by when they were written, until the numbers of segments turn around after a million.
    fn age(self) -> (u64, u64) {
        (self.segment(), self.offset())
    }

    fn is_same_place(self, other: PackedPlace) -> bool {
        (self.0 ^ other.0) & PLACE_MASK == 0
    }
}

/// A slot; empty if the packed place is 0.
#[derive(Debug, Default)]
struct Slot {
    key_hash: u64,
    packed: AtomicU64,
}

impl Slot {
    fn place(&self) -> Option<PackedPlace> {
        Some(PackedPlace(self.packed.load(Relaxed))).filter(|place| place.0 != 0)
    }

    fn is_empty(&self) -> bool {
        self.place().is_none()
    }
}

#[derive(Debug, Default)]
struct IndexShard {
    slots: Box<[Slot]>,
    records: usize,
}

/// The fate of an older record with the same key hash and variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    /// The record that comes is newer: it takes its place.
    Newer,
    /// The record that comes is older: it is left out.
    Older,
}

#[derive(Debug)]
pub(crate) struct RecordIndex {
    shards: Box<[RwLock<IndexShard>]>,
}

impl RecordIndex {
    pub(crate) fn new() -> RecordIndex {
        RecordIndex {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
        }
    }

    fn shard(&self, key_hash: u64) -> &RwLock<IndexShard> {
        &self.shards[shard_number(key_hash)]
    }

    /// The places of the records of a key, newest first.
    pub(crate) fn find(&self, key_hash: u64) -> RecordPlaces {
        let mut places = RecordPlaces::default();
        let shard = self.shard(key_hash).read();
        for (_, place) in shard.places_of(key_hash) {
            if let Some(free) = places.places.get_mut(places.count) {
                *free = Some(RecordPlace {
                    key_hash,
                    packed: place.0,
                });
                places.count += 1;
            }
        }
        drop(shard);
        if places.count > 1 {
            places.places[..places.count].sort_unstable_by_key(|place| {
                std::cmp::Reverse(place.map(|place| PackedPlace(place.packed).age()))
            });
        }
        places
    }

    /// Enters a record; whether it was.
    pub(crate) fn insert(&self, key_hash: u64, place: PackedPlace, order: IndexOrder) -> bool {
        self.shard(key_hash).write().insert(key_hash, place, order)
    }

    /// Enters the records of a segment that is older than all that were entered, its newest first. Shard by shard, so that
    /// the tables of one are close at hand meanwhile.
    pub(crate) fn insert_older(&self, records: impl Iterator<Item = (u64, PackedPlace)>) {
        let mut of_shards = vec![Vec::new(); SHARDS];
        for record in records {
            of_shards[shard_number(record.0)].push(record);
        }
        for (shard, records) in self.shards.iter().zip(of_shards) {
            let mut shard = shard.write();
            for (key_hash, place) in records {
                shard.insert(key_hash, place, IndexOrder::Older);
            }
        }
    }

    /// Lets a slot lead to another place, if it still leads to the first one.
    pub(crate) fn move_place(&self, key_hash: u64, from: PackedPlace, to: PackedPlace) -> bool {
        self.change(key_hash, from, |_| to.0)
    }

    pub(crate) fn note_used(&self, key_hash: u64, place: PackedPlace) {
        self.change(key_hash, place, |packed| {
            match packed >> USED_AT & MAX_USED {
                MAX_USED => packed,
                _ => packed + (1 << USED_AT),
            }
        });
    }

    /// Notes a use of the records of a key and a variant; whether there is one.
    pub(crate) fn note_used_variant(&self, key_hash: u64, variant: u8) -> bool {
        let found = self.find(key_hash);
        let place = found
            .iter()
            .map(|place| PackedPlace(place.packed))
            .find(|place| place.variant() == u64::from(variant));
        if let Some(place) = place {
            self.note_used(key_hash, place);
        }
        place.is_some()
    }

    pub(crate) fn note_verified(&self, key_hash: u64, place: PackedPlace) {
        self.change(key_hash, place, |packed| packed | 1 << VERIFIED_AT);
    }

    fn change(&self, key_hash: u64, place: PackedPlace, new: impl Fn(u64) -> u64) -> bool {
        let shard = self.shard(key_hash).read();
        let slot = shard
            .places_of(key_hash)
            .find(|(_, other)| other.is_same_place(place))
            .map(|(at, _)| &shard.slots[at]);
        slot.is_some_and(|slot| {
            let old = slot.packed.load(Relaxed);
            let new = new(old);
            // Written only where something changes: a line that is only read stays in each core's cache. A mark that
            // another thread sets meanwhile is lost at worst.
            old == new
                || slot
                    .packed
                    .compare_exchange(old, new, Relaxed, Relaxed)
                    .is_ok()
        })
    }

    /// The place as it is now, with its marks, if the index still leads there.
    pub(crate) fn current(&self, key_hash: u64, place: PackedPlace) -> Option<PackedPlace> {
        let shard = self.shard(key_hash).read();
        shard
            .places_of(key_hash)
            .map(|(_, other)| other)
            .find(|other| other.is_same_place(place))
    }

    pub(crate) fn remove(&self, key_hash: u64, place: PackedPlace) -> bool {
        let mut shard = self.shard(key_hash).write();
        let found = shard
            .places_of(key_hash)
            .find(|(_, other)| other.is_same_place(place));
        match found.map(|(at, _)| at) {
            Some(at) => {
                shard.remove(at);
                true
            }
            None => false,
        }
    }

    /// All places in a segment; for when its own list cannot be read.
    pub(crate) fn places_in(&self, segment: u64) -> Vec<(u64, PackedPlace)> {
        let of_segment = |shard: &RwLock<IndexShard>| {
            let shard = shard.read();
            let all = shard
                .slots
                .iter()
                .filter_map(|slot| Some((slot.key_hash, slot.place()?)));
            all.filter(|(_, place)| place.segment() == segment & SEGMENT_MASK)
                .collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(of_segment).collect()
    }

    pub(crate) fn records(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.read().records as u64)
            .sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let slots: usize = self
            .shards
            .iter()
            .map(|shard| shard.read().slots.len())
            .sum();
        (slots * size_of::<Slot>() + self.shards.len() * size_of::<RwLock<IndexShard>>()) as u64
    }
}

fn shard_number(key_hash: u64) -> usize {
    let [.., last] = key_hash.to_le_bytes();
    usize::from(last)
}

impl IndexShard {
    fn insert(&mut self, key_hash: u64, place: PackedPlace, order: IndexOrder) -> bool {
        let (mut variants, mut same) = (0, None);
        for (at, other) in self.places_of(key_hash) {
            variants += 1;
            if other.variant() == place.variant() {
                same = Some(at);
            }
        }
        let taken = match same {
            None if variants >= MAX_VARIANTS => self.oldest_of(key_hash),
            same => same,
        };
        match taken {
            None => self.add(key_hash, place),
            Some(_) if order == IndexOrder::Older => return false,
            Some(at) => self.slots[at].packed = AtomicU64::new(place.0),
        }
        true
    }

    /// Returns the first slot for a hash.
    fn home(&self, key_hash: u64) -> usize {
        // The highest byte chose the shard; the next 32 bits choose the slot.
        let share = key_hash >> 24 & u64::from(u32::MAX);
        usize::try_from((share * self.slots.len() as u64) >> 32).unwrap_or(0)
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    /// The slots of a hash, with their places.
    fn places_of(&self, key_hash: u64) -> impl Iterator<Item = (usize, PackedPlace)> {
        let mut at = self.home(key_hash);
        std::iter::from_fn(move || {
            // A table is never full, so that this ends.
            while let Some(slot) = self.slots.get(at) {
                let place = slot.place()?;
                let found = (at, place);
                at = self.after(at);
                if slot.key_hash == key_hash {
                    return Some(found);
                }
            }
            None
        })
    }

    /// The oldest of the variants of a key.
    fn oldest_of(&self, key_hash: u64) -> Option<usize> {
        self.places_of(key_hash)
            .min_by_key(|(_, place)| place.age())
            .map(|(at, _)| at)
    }

    fn add(&mut self, key_hash: u64, place: PackedPlace) {
        if (self.records + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.put(key_hash, place.0);
        self.records += 1;
    }

    fn put(&mut self, key_hash: u64, packed: u64) {
        let mut at = self.home(key_hash);
        while !self.slots[at].is_empty() {
            at = self.after(at);
        }
        self.slots[at] = Slot {
            key_hash,
            packed: AtomicU64::new(packed),
        };
    }

    /// Half as many slots again: from three quarters full to half full.
    fn grow(&mut self) {
        let count = (self.slots.len() * 3 / 2).max(MIN_SLOTS);
        let slots = (0..count).map(|_| Slot::default()).collect();
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old {
            if let Some(place) = slot.place() {
                self.put(slot.key_hash, place.0);
            }
        }
    }

    /// Empties a slot, and moves those behind it that would not be found any more.
    fn remove(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = &self.slots[at];
            let Some(place) = slot.place() else {
                break;
            };
            let (key_hash, home) = (slot.key_hash, self.home(slot.key_hash));
            // It may move into the hole unless its home lies behind the hole, on the way from there to here.
            let stays = match hole <= at {
                true => hole < home && home <= at,
                false => hole < home || home <= at,
            };
            if !stays {
                self.slots[hole] = Slot {
                    key_hash,
                    packed: AtomicU64::new(place.0),
                };
                hole = at;
            }
        }
        self.slots[hole] = Slot::default();
        self.records -= 1;
    }
}
