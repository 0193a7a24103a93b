//! The oldest segment goes, used records stay, and the terms of size, free space and time
//! hold.

use super::*;
use crate::UseVerdict;

/// Two megabytes: eight segments.
fn small() -> TierConfig {
    TierConfig {
        segment_bytes: MIN_SEGMENT_BYTES,
        ..TierConfig::new(2 << 20)
    }
}

fn fill(tier: &TierFolder, recovery: &Recovery, names: std::ops::Range<usize>) {
    for at in names {
        let name = at.to_string();
        write(
            tier,
            stamped(tier, recovery, &name, &body_of(&name, 10_000)),
        );
    }
}

#[test]
fn oldest_segments_go_when_the_ring_is_full() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    fill(&tier, &recovery, 0..1000);
    let stats = tier.stats();
    assert!(stats.bytes <= 2 << 20, "{} bytes", stats.bytes);
    assert!(stats.segments >= 6 && stats.segments_dropped > 20);
    assert!(read(&tier, "0").is_none());
    assert_eq!(read_body(&tier, "999").unwrap(), body_of("999", 10_000));
    let on_disk: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(
        on_disk <= (2 << 20) + UNITS as usize * 64,
        "{on_disk} bytes"
    );
    // No entry of the index leads to a removed segment.
    assert!(stats.records <= 200, "{} records", stats.records);
}

#[test]
fn what_was_used_since_is_kept_when_its_segment_goes() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    fill(&tier, &recovery, 0..10);
    for at in 10..1000 {
        assert!(read(&tier, "3").is_some(), "{at}");
        fill(&tier, &recovery, at..at + 1);
    }
    assert_eq!(read_body(&tier, "3").unwrap(), body_of("3", 10_000));
    assert!(read(&tier, "4").is_none());
    assert!(tier.stats().reinserted > 0);
    let (tier, _) = restart(&disk, tier);
    assert_eq!(read_body(&tier, "3").unwrap(), body_of("3", 10_000));
}

#[test]
fn use_that_was_answered_from_memory_keeps_a_record_too() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    fill(&tier, &recovery, 0..10);
    for at in 10..1000 {
        assert_eq!(tier.note_use(stable_hash(b"3"), 0), UseVerdict::NotNow);
        fill(&tier, &recovery, at..at + 1);
    }
    assert!(read(&tier, "3").is_some());
}

#[test]
fn all_is_used_and_the_ring_still_turns() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    for at in 0..1000 {
        fill(&tier, &recovery, at..at + 1);
        read(&tier, &at.to_string());
    }
    assert!(tier.stats().bytes <= 2 << 20);
    assert!(read(&tier, "999").is_some());
}

#[test]
fn damaged_record_is_not_kept_when_its_segment_goes() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    fill(&tier, &recovery, 0..1);
    read(&tier, "0");
    let (path, mut bytes) = disk
        .files()
        .into_iter()
        .find(|(path, _)| path.ends_with("seg-000001"))
        .unwrap();
    bytes[5000] ^= 1;
    disk.kill();
    drop(tier);
    disk.put_file(&path, bytes);
    let (tier, recovery) = open_with(&disk, small());
    tier.load();
    tier.note_use(stable_hash(b"0"), 0);
    fill(&tier, &recovery, 1..1000);
    assert_eq!(tier.stats().reinserted, 0);
    assert!(tier.find(stable_hash(b"0")).is_empty());
}

#[test]
fn records_earn_their_places_only_when_the_ring_is_full() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    assert_eq!(tier.note_use(stable_hash(b"x"), 0), UseVerdict::Earned);
    fill(&tier, &recovery, 0..300);
    let verdicts: Vec<_> = (0..4)
        .map(|_| tier.note_use(stable_hash(b"y"), 0))
        .collect();
    let (not, earned) = (UseVerdict::NotNow, UseVerdict::Earned);
    assert_eq!(verdicts, [not, not, not, earned]);
    write(&tier, stamped(&tier, &recovery, "y", b"body"));
    assert_eq!(tier.note_use(stable_hash(b"y"), 0), not);
    // Another variant is another response.
    assert_eq!(tier.note_use(stable_hash(b"y"), 1), not);
}

#[test]
fn segments_go_until_enough_of_the_disk_is_free() {
    let disk = SimulatedDisk::new();
    let config = TierConfig {
        min_free_bytes: 1 << 20,
        ..config()
    };
    let (tier, recovery) = open_with(&disk, config);
    fill(&tier, &recovery, 0..200);
    assert_eq!(tier.stats().segments_dropped, 0);
    disk.set_free_bytes(1000);
    tier.tick();
    // The one under way stays.
    assert_eq!(tier.stats().segments, 1);
    assert!(read(&tier, "0").is_none() && read(&tier, "199").is_some());
}

#[test]
fn what_is_not_used_for_long_goes() {
    let disk = SimulatedDisk::new();
    let config = TierConfig {
        inactive: Duration::from_secs(600),
        ..config()
    };
    let (tier, recovery) = open_with(&disk, config);
    write(&tier, stamped(&tier, &recovery, "used", b"body"));
    write(&tier, stamped(&tier, &recovery, "unused", b"body"));
    disk.advance(599_000);
    tier.tick();
    assert!(read(&tier, "used").is_some());
    disk.advance(2_000);
    tier.tick();
    assert!(read(&tier, "unused").is_none() && read(&tier, "used").is_some());
    disk.advance(601_000);
    tier.tick();
    disk.advance(601_000);
    tier.tick();
    assert_eq!(tier.stats().records, 0);
}

#[test]
fn record_that_is_of_no_use_any_more_is_not_kept() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open_with(&disk, small());
    let short = NewRecord {
        lifetime: Duration::from_secs(100),
        ..stamped(&tier, &recovery, "short", b"body")
    };
    write(&tier, short);
    assert!(read(&tier, "short").is_some());
    disk.advance(50_000);
    fill(&tier, &recovery, 0..300);
    assert_eq!(tier.stats().reinserted, 0);
    assert!(tier.find(stable_hash(b"short")).is_empty());
}

#[test]
fn foreign_files_with_the_next_names_are_passed_over() {
    let disk = SimulatedDisk::new();
    disk.put_file(&folder().join("seg-000001"), b"#!/bin/sh".to_vec());
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    disk.put_file(&folder().join("seg-000003"), b"#!/bin/sh".to_vec());
    fill(&tier, &recovery, 0..100);
    assert!(read(&tier, "a").is_some() && read(&tier, "99").is_some());
    let foreign = disk
        .files()
        .into_iter()
        .filter(|(_, bytes)| bytes == b"#!/bin/sh")
        .count();
    assert_eq!(foreign, 2);
}
