//! Flipped, cut, foreign and torn files: records that are read are right, and damage costs little.

use super::*;
use crate::testing::SimulatedDisk;
use std::path::PathBuf;
use std::sync::LazyLock;

const RECORDS: usize = 200;

/// Two finished segments, and one that a kill left without a footer.
fn disk_with_records() -> Vec<(PathBuf, Vec<u8>)> {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    for at in 0..RECORDS {
        let name = at.to_string();
        write(
            &tier,
            stamped(&tier, &recovery, &name, &body_of(&name, 3000)),
        );
    }
    confirm(&tier, &purge(recovery.first_stamp() + 1, "x"));
    disk.kill();
    drop(tier);
    let files = disk.files();
    assert_eq!(
        files
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("seg-"))
            .count(),
        3
    );
    files
}

fn disk_of(files: &[(PathBuf, Vec<u8>)]) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.storage().make_folder(folder()).unwrap();
    for (path, bytes) in files {
        disk.put_file(path, bytes.clone());
    }
    disk
}

/// How many records are there; each of them is right.
fn whole_records(tier: &TierFolder) -> usize {
    static BODIES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let names = (0..RECORDS).map(|at| at.to_string());
        names.map(|name| body_of(&name, 3000)).collect()
    });
    (0..RECORDS)
        .filter(|at| {
            let name = &at.to_string();
            let found = read_body(tier, name);
            assert!(
                found.as_ref().is_none_or(|body| *body == BODIES[*at]),
                "{name}"
            );
            found.is_some()
        })
        .count()
}

#[test]
fn two_thousand_flipped_bits_cost_a_record_each_at_most() {
    let files = disk_with_records();
    let (mut lost_alone, mut lost_more, mut none) = (0, 0, 0);
    for seed in 0u64..2000 {
        let random = stable_hash(&seed.to_le_bytes());
        let mut files = files.clone();
        let sizes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut bit = usize::try_from(random % (sizes as u64 * 8)).unwrap();
        let flipped = files.iter_mut().find(|(_, bytes)| {
            let is_here = bit < bytes.len() * 8;
            bit -= if is_here { 0 } else { bytes.len() * 8 };
            is_here
        });
        let (path, bytes) = flipped.unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let path = path.clone();
        let is_finished = path.ends_with("seg-000001") || path.ends_with("seg-000002");
        let is_header = bit < 64 * 8;
        let (tier, _) = open(&disk_of(&files));
        match RECORDS - whole_records(&tier) {
            0 => none += 1,
            1 => lost_alone += 1,
            lost => {
                // A header, the records behind a flip in the unfinished segment, and the journal's last
                // purges.
                assert!(
                    !is_finished || is_header,
                    "{lost} of {} bit {bit}",
                    path.display()
                );
                lost_more += 1;
            }
        }
    }
    println!(
        "of 2000 flips {none} cost nothing, {lost_alone} a record, {lost_more} more; no wrong byte"
    );
    assert!(lost_more < 100, "{lost_more}");
}

#[test]
fn cut_segments_give_what_is_left_of_them() {
    let files = disk_with_records();
    for (at, (path, bytes)) in files.iter().enumerate() {
        if !path.to_string_lossy().contains("seg-") {
            continue;
        }
        for step in 0..40 {
            let mut files = files.clone();
            files[at].1.truncate(bytes.len() * step / 40);
            let (tier, _) = open(&disk_of(&files));
            let whole = whole_records(&tier);
            assert!(
                whole >= RECORDS * 2 / 5,
                "{} of {step}/40: {whole}",
                path.display()
            );
        }
    }
}

#[test]
fn footer_of_zeros_costs_nothing_but_a_walk() {
    let mut files = disk_with_records();
    let (_, bytes) = files
        .iter_mut()
        .find(|(path, _)| path.ends_with("seg-000001"))
        .unwrap();
    let len = bytes.len();
    bytes[len - 4096..].fill(0);
    let disk = disk_of(&files);
    let (tier, _) = open(&disk);
    assert_eq!(whole_records(&tier), RECORDS);
    let events: Vec<_> = tier.take_events().iter().map(ToString::to_string).collect();
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("seg-000001 was not finished")),
        "{events:?}"
    );
}

#[test]
fn walked_segment_has_a_footer_from_then_on() {
    let disk = disk_of(&disk_with_records());
    let (tier, _) = open(&disk);
    let walked = |tier: &TierFolder| {
        let events = tier.take_events();
        events
            .iter()
            .filter(|event| matches!(event, crate::TierEvent::SegmentScanned { .. }))
            .count()
    };
    assert_eq!(walked(&tier), 1);
    let (tier, _) = restart(&disk, tier);
    assert_eq!((walked(&tier), whole_records(&tier)), (0, RECORDS));
}

#[test]
fn foreign_files_are_left_alone_and_named() {
    let mut files = disk_with_records();
    let foreign = [
        ("seg-000009", b"#!/bin/sh".to_vec()),
        ("0123abc", vec![1; 100]),
        ("seg-9", vec![]),
    ];
    files.extend(
        foreign
            .iter()
            .map(|(name, bytes)| (folder().join(name), bytes.clone())),
    );
    let disk = disk_of(&files);
    let (tier, recovery) = open(&disk);
    assert_eq!(whole_records(&tier), RECORDS);
    let events = [recovery.events, tier.take_events()].concat();
    let named = events
        .iter()
        .filter(|event| matches!(event, crate::TierEvent::ForeignFile { .. }))
        .count();
    assert_eq!(named, 3);
    for (name, bytes) in foreign {
        assert!(disk.files().contains(&(folder().join(name), bytes)));
    }
}

#[test]
fn segments_of_other_terms_are_skipped_and_go_first() {
    let disk = disk_of(&disk_with_records());
    let other = TierConfig {
        fingerprint: 7,
        max_bytes: 2 << 20,
        ..config()
    };
    let (tier, recovery) = open_with(&disk, other);
    tier.load();
    assert_eq!((whole_records(&tier), tier.stats().segments), (0, 0));
    assert!(tier.stats().bytes > 0);
    let events = tier.take_events();
    assert!(events.iter().any(|event| event.to_string()
        == "seg-000001 is skipped: it was written by another configuration"));
    for at in 0..700 {
        write(
            &tier,
            stamped(&tier, &recovery, &format!("new{at}"), &[0; 3000]),
        );
    }
    assert!(
        !disk
            .files()
            .iter()
            .any(|(path, _)| path.ends_with("seg-000001"))
    );
    assert!(tier.stats().bytes <= 2 << 20);
}

#[test]
fn fake_record_within_a_body_is_never_found() {
    // A body that holds a whole record of another key, at each distance from a multiple of 64.
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let mut fake = Vec::new();
    let of = crate::form::record::RecordOrigin { boot: 1 };
    crate::form::record::put_record(&stamped(&tier, &recovery, "fake", b"fake"), of, &mut fake)
        .unwrap();
    for at in 0..64 {
        let body = [vec![0; at], fake.clone()].concat();
        write(&tier, stamped(&tier, &recovery, &at.to_string(), &body));
    }
    disk.kill();
    drop(tier);
    let files = disk.files();
    for offset in (64..10_000).step_by(64) {
        let mut files = files.clone();
        let (_, bytes) = files
            .iter_mut()
            .find(|(path, _)| path.ends_with("seg-000001"))
            .unwrap();
        bytes[offset] ^= 1;
        let (tier, _) = open(&disk_of(&files));
        assert!(read(&tier, "fake").is_none(), "{offset}");
    }
}
