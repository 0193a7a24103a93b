//! Records are found as they were written, in this start and the next.

use super::*;
use crate::{INLINE_BODY_BYTES, RecordAge, TierStats};

#[test]
fn record_is_found_once_it_is_written() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let new = stamped(&tier, &recovery, "a", b"body");
    assert_eq!(tier.write(new.clone()), WriteVerdict::Queued);
    assert!(read(&tier, "a").is_none());
    tier.write_waiting();
    let read = read(&tier, "a").unwrap();
    assert_eq!((&read.head, read.stamp), (&new.head, new.stamp));
    assert_eq!((read.received, read.lifetime), (new.received, new.lifetime));
    assert_eq!(read.age, RecordAge::Millis(0));
    assert_eq!(&body(&read)[..], b"body");
}

#[test]
fn bodies_of_all_sizes_come_back() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    for len in [
        0,
        1,
        63,
        64,
        4000,
        INLINE_BODY_BYTES,
        INLINE_BODY_BYTES + 1,
        60_000,
    ] {
        let name = len.to_string();
        write(
            &tier,
            stamped(&tier, &recovery, &name, &body_of(&name, len)),
        );
        assert_eq!(
            read_body(&tier, &name).unwrap(),
            body_of(&name, len),
            "{len}"
        );
    }
}

#[test]
fn record_with_a_long_head_comes_back() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let long = NewRecord {
        head: Bytes::from(body_of("head", 20_000)),
        ..stamped(&tier, &recovery, "a", &body_of("a", 30_000))
    };
    write(&tier, long.clone());
    let read = read(&tier, "a").unwrap();
    assert_eq!(read.head, long.head);
    assert_eq!(body(&read), long.body);
}

#[test]
fn records_are_there_after_a_kill_and_after_a_clean_stop() {
    let disk = SimulatedDisk::new();
    let (mut tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    tier = restart(&disk, tier).0;
    assert_eq!(read_body(&tier, "a").unwrap(), "body");
    tier.finish_segment();
    tier = restart(&disk, tier).0;
    assert_eq!(read_body(&tier, "a").unwrap(), "body");
}

#[test]
fn newer_record_of_a_variant_takes_the_place_of_the_older_one_through_restarts() {
    let disk = SimulatedDisk::new();
    let (mut tier, mut recovery) = open(&disk);
    for version in ["1", "2", "3"] {
        write(&tier, stamped(&tier, &recovery, "a", version.as_bytes()));
        assert_eq!(read_body(&tier, "a").unwrap(), version);
        assert_eq!(tier.find(stable_hash(b"a")).iter().count(), 1);
        (tier, recovery) = restart(&disk, tier);
        assert_eq!(read_body(&tier, "a").unwrap(), version);
        assert_eq!(tier.stats().records, 1);
    }
}

#[test]
fn variants_of_a_key_are_found_side_by_side() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    for variant in [1, 2, 3] {
        let body = [b'0' + u8::try_from(variant).unwrap()];
        write(
            &tier,
            NewRecord {
                variant,
                ..stamped(&tier, &recovery, "a", &body)
            },
        );
    }
    let (tier, _) = restart(&disk, tier);
    let places = tier.find(stable_hash(b"a"));
    let bodies: Vec<_> = places
        .iter()
        .map(|place| body(&tier.read_waiting(place, b"a").unwrap()))
        .collect();
    assert_eq!(bodies, ["3", "2", "1"]);
}

#[test]
fn record_of_another_key_with_the_same_hash_is_missing_and_stays() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    assert!(matches!(tier.read_now(place, b"b"), ReadNow::Missing));
    assert_eq!(read_body(&tier, "a").unwrap(), "body");
}

#[test]
fn forgotten_record_is_not_found_again() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    tier.forget(tier.find(stable_hash(b"a")).iter().next().unwrap());
    assert!(tier.find(stable_hash(b"a")).is_empty());
}

#[test]
fn what_is_not_in_memory_is_read_by_a_thread() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    disk.let_reads_wait(true);
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    assert!(matches!(tier.read_now(place, b"a"), ReadNow::NotInMemory));
    disk.let_reads_wait(false);
    assert!(tier.read_waiting(place, b"a").is_some());
}

#[test]
fn short_lived_record_is_not_written() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let lasting = |seconds| NewRecord {
        lifetime: Duration::from_secs(seconds),
        ..stamped(&tier, &recovery, "a", b"body")
    };
    assert_eq!(tier.write(lasting(59)), WriteVerdict::ShortLived);
    assert_eq!(tier.write(lasting(60)), WriteVerdict::Queued);
    let old = lasting(100);
    disk.advance(41_000);
    assert_eq!(tier.write(old), WriteVerdict::ShortLived);
    let of_earlier_boot = NewRecord {
        received: TierTime {
            boot_millis: 0,
            ..tier.now()
        },
        ..lasting(60)
    };
    assert_eq!(tier.write(of_earlier_boot), WriteVerdict::Queued);
}

#[test]
fn record_larger_than_a_quarter_of_a_segment_is_not_written() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let quarter = usize::try_from(MIN_SEGMENT_BYTES / 4).unwrap();
    let large = stamped(&tier, &recovery, "a", &vec![0; quarter]);
    assert_eq!(tier.write(large), WriteVerdict::TooLarge);
    write(
        &tier,
        stamped(&tier, &recovery, "a", &vec![0; quarter - 200]),
    );
    assert!(read(&tier, "a").is_some());
}

#[test]
fn queue_of_the_writer_is_bounded() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let record = stamped(&tier, &recovery, "a", &[0; 60_000]);
    let verdicts: Vec<_> = (0..2000).map(|_| tier.write(record.clone())).collect();
    let full = verdicts
        .iter()
        .filter(|verdict| **verdict == WriteVerdict::QueueFull)
        .count();
    assert_eq!(full as u64, tier.stats().dropped);
    assert!((800..1000).contains(&full), "{full}");
}

#[test]
fn flush_writes_until_its_time_is_over_and_says_what_is_left() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let record = |at: usize| stamped(&tier, &recovery, &at.to_string(), b"body");
    let report = tier.flush_for_stop(&mut (0..10).map(record), Duration::from_secs(100));
    assert_eq!((report.written, report.left), (10, 0));
    let report = tier.flush_for_stop(&mut (10..20).map(record), Duration::ZERO);
    assert_eq!((report.written, report.left), (0, 10));
    assert!(read(&tier, "9").is_some() && read(&tier, "10").is_none());
}

#[test]
fn lookups_work_before_the_segments_are_loaded() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"old"));
    write(&tier, stamped(&tier, &recovery, "b", b"old"));
    disk.kill();
    drop(tier);
    let (tier, recovery) = open_with(&disk, config());
    assert!(read(&tier, "a").is_none());
    write(&tier, stamped(&tier, &recovery, "a", b"new"));
    assert!(!tier.stats().is_loaded);
    tier.load();
    // The newer record was there first, and stays.
    assert_eq!(read_body(&tier, "a").unwrap(), "new");
    assert_eq!(read_body(&tier, "b").unwrap(), "old");
    assert!(tier.stats().is_loaded);
}

#[test]
fn closed_tier_finds_and_writes_nothing() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    tier.close();
    assert!(tier.find(stable_hash(b"a")).is_empty());
    assert_eq!(
        tier.write(stamped(&tier, &recovery, "b", b"body")),
        WriteVerdict::NotWriting
    );
    assert!(tier.append_purge(&purge(1, "a")).wait().is_err());
    assert_eq!(tier.state(), crate::TierState::Off);
}

#[test]
fn numbers_count_what_happened() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    read(&tier, "a");
    confirm(&tier, &purge(recovery.first_stamp() + 1, "x"));
    let TierStats {
        records,
        segments,
        written,
        reads_inline,
        purges_written,
        journal_syncs,
        ..
    } = tier.stats();
    assert_eq!(
        (records, segments, written, reads_inline, purges_written),
        (1, 1, 1, 1, 1)
    );
    assert!(journal_syncs > 0);
}

#[test]
fn second_process_goes_on_without_the_folder() {
    let disk = SimulatedDisk::new();
    let (tier, _) = open(&disk);
    let second = TierFolder::open_without_threads(folder(), config(), disk.storage(), UNITS);
    assert!(matches!(second, Err(crate::TierError::Locked(_))));
    drop(tier);
    open(&disk);
}

#[test]
fn terms_without_sense_are_refused() {
    let disk = SimulatedDisk::new();
    let open =
        |config| TierFolder::open_without_threads(folder(), config, disk.storage(), UNITS).is_ok();
    assert!(!open(TierConfig {
        max_bytes: 3 * MIN_SEGMENT_BYTES,
        ..config()
    }));
    assert!(!open(TierConfig {
        segment_bytes: 1024,
        ..config()
    }));
    assert!(open(TierConfig::new(1 << 20)));
}
