//! The index finds entered records, whichever others leave meanwhile, within its bound of
//! memory.

use super::{IndexOrder, PackedPlace, RecordIndex};
use crate::hash::stable_hash;
use crate::record::MAX_VARIANTS;
use std::collections::HashMap;

fn place(segment: u64, at: u32, variant: u8) -> PackedPlace {
    PackedPlace::new(segment, at, 10, variant)
}

fn found(index: &RecordIndex, key_hash: u64) -> Vec<u64> {
    index
        .find(key_hash)
        .iter()
        .map(|place| place.packed)
        .collect()
}

#[test]
fn place_keeps_its_parts() {
    let place = PackedPlace::new(5, (1 << 20) - 1, 1022, 0xff);
    assert_eq!((place.segment(), place.offset()), (5, ((1 << 20) - 1) * 64));
    assert_eq!(place.len(), Some(1022 * 64));
    assert_eq!(place.variant(), 0xff);
    assert!(!place.is_used() && !place.is_verified());
    assert_eq!(PackedPlace::new(5, 1, 1023, 0).len(), None);
    assert_eq!(PackedPlace::new(5, 1, 1 << 20, 0).len(), None);
}

#[test]
fn newer_record_takes_the_place_of_its_variant_alone() {
    let index = RecordIndex::new();
    index.insert(1, place(1, 1, 0), IndexOrder::Newer);
    index.insert(1, place(1, 2, 7), IndexOrder::Newer);
    index.insert(1, place(2, 3, 0), IndexOrder::Newer);
    assert_eq!(found(&index, 1), [place(2, 3, 0).0, place(1, 2, 7).0]);
    assert_eq!(index.records(), 2);
}

#[test]
fn older_record_does_not_take_the_place_of_a_newer_one() {
    let index = RecordIndex::new();
    assert!(index.insert(1, place(2, 1, 0), IndexOrder::Older));
    assert!(!index.insert(1, place(1, 1, 0), IndexOrder::Older));
    assert_eq!(found(&index, 1), [place(2, 1, 0).0]);
}

#[test]
fn one_variant_too_many_takes_the_place_of_the_oldest() {
    let index = RecordIndex::new();
    for variant in 0..=8 {
        index.insert(
            1,
            place(1, u32::from(variant) + 1, variant),
            IndexOrder::Newer,
        );
    }
    let places = found(&index, 1);
    assert_eq!(places.len(), MAX_VARIANTS);
    assert!(!places.contains(&place(1, 1, 0).0));
    assert!(!index.insert(1, place(0, 1, 99), IndexOrder::Older));
}

#[test]
fn marks_are_of_a_place_and_leave_with_it() {
    let index = RecordIndex::new();
    let (old, new) = (place(1, 1, 0), place(2, 1, 0));
    index.insert(1, old, IndexOrder::Newer);
    for _ in 0..9 {
        index.note_used(1, old);
    }
    index.note_verified(1, old);
    index.note_verified(1, place(9, 9, 0));
    let current = index.current(1, old).unwrap();
    assert!(current.is_used() && current.is_verified());
    assert!(index.move_place(1, old, new));
    assert!(!index.move_place(1, old, new));
    let current = index.current(1, new).unwrap();
    assert!(!current.is_used() && !current.is_verified());
}

#[test]
fn places_of_a_segment_are_found_without_its_list() {
    let index = RecordIndex::new();
    for at in 0..100 {
        index.insert(
            stable_hash(&[at]),
            place(u64::from(at % 3), 1 + u32::from(at), 0),
            IndexOrder::Newer,
        );
    }
    assert_eq!(index.places_in(1).len(), 33);
}

#[test]
fn what_is_entered_and_removed_at_random_is_found_as_in_a_map() {
    for seed in 0..4u64 {
        let index = RecordIndex::new();
        let mut map = HashMap::new();
        for step in 0..20_000u64 {
            let random = stable_hash(&(seed << 32 | step).to_le_bytes());
            // Few shards and homes, so that runs are long and turn around.
            let key = random % 700;
            let key_hash = (key % 7) << 56 | (key % 50) << 48 | key << 8;
            let place = place(step, u32::try_from(random >> 44).unwrap() % 1000 + 1, 0);
            if random >> 20 & 3 == 0 {
                let old = map.remove(&key_hash);
                let is_removed = old.is_some_and(|old| index.remove(key_hash, old));
                assert_eq!(is_removed, old.is_some(), "seed {seed}, step {step}");
            } else {
                index.insert(key_hash, place, IndexOrder::Newer);
                map.insert(key_hash, place);
            }
        }
        assert_eq!(index.records(), map.len() as u64);
        for (key_hash, place) in map {
            assert_eq!(found(&index, key_hash), [place.0], "seed {seed}");
        }
    }
}

#[test]
fn record_costs_at_most_40_bytes_of_memory() {
    let index = RecordIndex::new();
    for at in 0..200_000u64 {
        index.insert(
            stable_hash(&at.to_le_bytes()),
            place(1, 1, 0),
            IndexOrder::Newer,
        );
        if at > 50_000 && at % 1000 == 0 {
            let bytes = index.bytes();
            assert!(bytes <= 40 * index.records(), "{bytes} bytes for {at}");
        }
    }
}
