//! A disk that is full, read-only, failing or slow: reads go on as long as they can, and the state has the reason.

use super::*;
use crate::testing::{DiskFault, DiskOperation};
use crate::{MAX_TARGET_BYTES, PurgeNotWritten, TierEvent, TierState};

#[test]
fn refused_write_stops_writing_for_a_while_and_reads_go_on() {
    for fault in [DiskFault::Full, DiskFault::ReadOnly, DiskFault::Failing] {
        let disk = SimulatedDisk::new();
        let (tier, recovery) = open(&disk);
        let record = |key| stamped(&tier, &recovery, key, b"body");
        write(&tier, record("a"));
        drop(tier.take_events());
        disk.set_fault(DiskOperation::Write, Some(fault));
        write(&tier, record("b"));
        assert!(matches!(tier.state(), TierState::ReadOnly(_)), "{fault:?}");
        assert_eq!(tier.write(record("c")), WriteVerdict::NotWriting);
        assert!(read(&tier, "a").is_some() && read(&tier, "b").is_none());
        disk.set_fault(DiskOperation::Write, None);
        disk.advance(10_000);
        write(&tier, record("d"));
        assert!(read(&tier, "d").is_some());
        assert_eq!(tier.state(), TierState::Serving);
        let events = tier.take_events();
        assert!(matches!(
            events[..],
            [TierEvent::WritingStopped { .. }, TierEvent::WritingResumed]
        ));
        let (tier, _) = restart(&disk, tier);
        assert!(read(&tier, "a").is_some() && read(&tier, "d").is_some());
    }
}

/// A full disk has room again, and no page is made that could be written: the shown state stayed "reading only".
#[test]
fn writing_goes_on_without_a_record_once_the_disk_takes_writes_again() {
    for operation in [DiskOperation::Create, DiskOperation::Write] {
        let disk = SimulatedDisk::new();
        let (tier, recovery) = open(&disk);
        disk.set_fault(operation, Some(DiskFault::Full));
        write(&tier, stamped(&tier, &recovery, "a", b"body"));
        disk.advance(10_000);
        tier.tick();
        assert!(matches!(tier.state(), TierState::ReadOnly(_)));
        disk.set_fault(operation, None);
        tier.tick();
        assert!(
            matches!(tier.state(), TierState::ReadOnly(_)),
            "too soon: {operation:?}"
        );
        disk.advance(10_000);
        tier.tick();
        assert_eq!(tier.state(), TierState::Serving, "{operation:?}");
        assert!(matches!(
            tier.take_events()[..],
            [TierEvent::WritingStopped { .. }, TierEvent::WritingResumed]
        ));
        write(&tier, stamped(&tier, &recovery, "b", b"body"));
        let (tier, _) = restart(&disk, tier);
        assert!(read(&tier, "b").is_some());
    }
}

#[test]
fn segment_that_cannot_be_made_leaves_nothing_behind() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    for operation in [DiskOperation::Create, DiskOperation::Write] {
        disk.set_fault(operation, Some(DiskFault::Full));
        write(&tier, stamped(&tier, &recovery, "a", b"body"));
        disk.set_fault(operation, None);
        disk.advance(10_000);
        assert!(
            !disk
                .files()
                .iter()
                .any(|(path, _)| path.to_string_lossy().contains("seg-"))
        );
    }
    assert_eq!(tier.stats().segments, 0);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    assert!(read(&tier, "a").is_some());
}

#[test]
fn purge_that_the_disk_refuses_waits_and_nothing_is_read_until_it_is_written() {
    for operation in [DiskOperation::Write, DiskOperation::Sync] {
        for fault in [DiskFault::Full, DiskFault::ReadOnly, DiskFault::Failing] {
            let disk = SimulatedDisk::new();
            let (tier, recovery) = open(&disk);
            let first = recovery.first_stamp();
            write(&tier, stamped(&tier, &recovery, "old", b"body"));
            drop(tier.take_events());
            disk.set_fault(operation, Some(fault));
            let mut ticket = tier.append_purge(&purge(first + 1, "a"));
            tier.commit_purges();
            tier.commit_purges();
            assert!(outcome(&mut ticket).is_none());
            assert!(matches!(tier.state(), TierState::JournalFailing(_)));
            assert!(read(&tier, "old").is_none());
            let verdict = tier.write(stamped(&tier, &recovery, "new", b"body"));
            assert_eq!(verdict, WriteVerdict::NotWriting);
            disk.set_fault(operation, None);
            tier.commit_purges();
            assert_eq!(ticket.wait(), Ok(()));
            assert_eq!(tier.state(), TierState::Serving);
            let events = tier.take_events();
            assert!(matches!(
                events[..],
                [TierEvent::JournalFailed { .. }, TierEvent::JournalResumed]
            ));
            write(&tier, stamped(&tier, &recovery, "kept", b"body"));
            let (tier, recovery) = restart(&disk, tier);
            assert_eq!(targets(&recovery), ["a"], "{operation:?} {fault:?}");
            assert!(read(&tier, "kept").is_some());
        }
    }
}

/// The disk is full but for the room of segments.
#[test]
fn full_disk_gives_a_segment_for_a_purge() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    for at in 0..8 {
        let body = vec![0; 50 << 10];
        write(&tier, stamped(&tier, &recovery, &at.to_string(), &body));
    }
    let before = tier.stats().segments;
    assert!(before > 1);
    disk.set_fault(DiskOperation::Write, Some(DiskFault::Full));
    let _ticket = tier.append_purge(&purge(recovery.first_stamp() + 1, "a"));
    tier.commit_purges();
    assert_eq!(tier.stats().segments, before - 1);
    disk.set_fault(DiskOperation::Write, Some(DiskFault::Failing));
    tier.commit_purges();
    assert_eq!(tier.stats().segments, before - 1);
}

#[test]
fn purge_that_finds_no_room_makes_void_what_is_older() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let first = recovery.first_stamp();
    write(&tier, stamped(&tier, &recovery, "old", b"body"));
    disk.set_fault(DiskOperation::Write, Some(DiskFault::Failing));
    let long = "x".repeat(MAX_TARGET_BYTES);
    let refused = (1..).find(|at| {
        let mut ticket = tier.append_purge(&purge(first + at, &long));
        outcome(&mut ticket).is_some()
    });
    disk.set_fault(DiskOperation::Write, None);
    tier.commit_purges();
    let (tier, recovery) = restart(&disk, tier);
    assert_eq!(recovery.floor, first + refused.unwrap());
    assert!(read(&tier, "old").is_none());
}

#[test]
fn purge_that_is_never_written_says_so_at_the_end() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    disk.set_fault(DiskOperation::Write, Some(DiskFault::Failing));
    let ticket = tier.append_purge(&purge(recovery.first_stamp() + 1, "a"));
    tier.commit_purges();
    tier.close();
    tier.commit_purges();
    assert!(matches!(ticket.wait(), Err(PurgeNotWritten::Failed(_))));
}

#[test]
fn folder_that_cannot_be_written_is_not_opened() {
    for operation in [
        DiskOperation::Create,
        DiskOperation::Write,
        DiskOperation::Sync,
    ] {
        let disk = SimulatedDisk::new();
        disk.set_fault(operation, Some(DiskFault::ReadOnly));
        let opened = TierFolder::open_without_threads(folder(), config(), disk.storage(), UNITS);
        let error = opened.unwrap_err().to_string();
        assert!(
            error.contains("cannot begin a journal in /cache/tier"),
            "{error}"
        );
    }
}

#[test]
fn record_that_cannot_be_read_is_missing() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    disk.set_fault(DiskOperation::Read, Some(DiskFault::Failing));
    assert!(read(&tier, "a").is_none());
    assert_eq!(tier.stats().damaged, 1);
}

#[test]
fn journal_that_cannot_be_read_makes_all_void() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    disk.kill();
    drop(tier);
    disk.set_fault(DiskOperation::Read, Some(DiskFault::Failing));
    let (tier, recovery) = open_with(&disk, config());
    disk.set_fault(DiskOperation::Read, None);
    tier.load();
    assert_eq!(recovery.floor, recovery.first_stamp());
    assert!(read(&tier, "a").is_none());
}

#[test]
fn ten_slow_reads_let_the_tier_rest() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    drop(tier.take_events());
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    for _ in 0..10 {
        assert_eq!(tier.state(), TierState::Serving);
        // No thread reads here.
        tier.read(place, Bytes::from_static(b"a")).give_up();
    }
    assert_eq!(tier.state(), TierState::Resting);
    assert_eq!(tier.take_events(), [TierEvent::Resting]);
    assert!(tier.find(stable_hash(b"a")).is_empty());
    assert_eq!(
        tier.note_use(stable_hash(b"x"), 0),
        crate::UseVerdict::NotNow
    );
    assert_eq!(
        tier.write(record(&tier, "b", b"body")),
        WriteVerdict::NotWriting
    );
    disk.advance(10_000);
    assert_eq!(tier.state(), TierState::Serving);
    assert!(read(&tier, "a").is_some());
    assert_eq!(tier.stats().reads_given_up, 10);
}

#[test]
fn reads_that_wait_are_bounded() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    let tickets: Vec<_> = (0..1025)
        .map(|_| tier.read(place, Bytes::from_static(b"a")))
        .collect();
    // The last one found no room, and resolves to nothing at once.
    assert!(tickets.into_iter().last().unwrap().wait().is_none());
}
