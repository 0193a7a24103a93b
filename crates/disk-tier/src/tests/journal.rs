//! Purges whose ticket resolved are there after whatever happened; where they may not be, the floor is above them.

use super::*;
use crate::form::UNIT;
use crate::form::journal::{EntryKind, JournalHeader, PurgeUnit, UnitPosition, put_entry};
use crate::journal::history::JournalHistory;
use crate::testing::{DiskFault, DiskOperation};
use crate::{LogPosition, MAX_TARGET_BYTES, PurgeMode, PurgeNotWritten, TierEvent, WriteVerdict};

#[test]
fn confirmed_purges_are_there_after_a_power_cut() {
    for seed in 0..50 {
        let disk = SimulatedDisk::new();
        let (tier, recovery) = open(&disk);
        let first = recovery.first_stamp();
        for at in 1..=20 {
            confirm(&tier, &purge(first + at, &at.to_string()));
        }
        disk.cut_power(seed);
        drop(tier);
        let (_, recovery) = open(&disk);
        let expected: Vec<_> = (1..=20).map(|at| at.to_string()).collect();
        assert_eq!(targets(&recovery), expected, "seed {seed}");
        assert_eq!(recovery.events, [], "seed {seed}");
    }
}

#[test]
fn start_has_a_number_that_was_never_given() {
    let disk = SimulatedDisk::new();
    let mut starts = Vec::new();
    for seed in 0..10 {
        let (tier, recovery) = open(&disk);
        starts.push(recovery.start);
        disk.cut_power(seed);
        drop(tier);
    }
    assert_eq!(starts, (1..=10).collect::<Vec<_>>());
}

#[test]
fn ticket_resolves_when_the_purge_is_synced_and_not_before() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let mut ticket = tier.append_purge(&purge(recovery.first_stamp() + 1, "a"));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    let mut poll = || std::future::Future::poll(std::pin::Pin::new(&mut ticket), &mut context);
    assert!(poll().is_pending());
    tier.commit_purges();
    assert_eq!(poll(), std::task::Poll::Ready(Ok(())));
}

#[test]
fn purges_that_wait_share_one_sync() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let before = tier.stats().journal_syncs;
    let tickets: Vec<_> = (1..=100)
        .map(|at| tier.append_purge(&purge(recovery.first_stamp() + at, "a")))
        .collect();
    tier.commit_purges();
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert_eq!(tier.stats().journal_syncs, before + 1);
}

#[test]
fn full_file_is_followed_by_the_next() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let long = "x".repeat(2000);
    for at in 1..=100 {
        confirm(
            &tier,
            &purge(recovery.first_stamp() + at, &format!("{at}{long}")),
        );
    }
    let (_, recovery) = restart(&disk, tier);
    assert_eq!(recovery.purges.len(), 100);
    assert_eq!(targets(&recovery)[99], format!("100{long}"));
    assert_eq!(recovery.events, []);
}

#[test]
fn longest_target_is_kept_and_a_longer_one_refused() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let long = "x".repeat(MAX_TARGET_BYTES);
    confirm(&tier, &purge(recovery.first_stamp() + 1, &long));
    let longer = purge(recovery.first_stamp() + 2, &format!("{long}x"));
    assert_eq!(
        tier.append_purge(&longer).wait(),
        Err(PurgeNotWritten::TooLong)
    );
    assert_eq!(targets(&restart(&disk, tier).1), [long]);
}

#[test]
fn purges_that_wait_are_bounded() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let purge = purge(recovery.first_stamp() + 1, "a");
    let full = (0..70_000).filter(|_| {
        let ticket = tier.append_purge(&purge);
        matches!(
            &ticket.0,
            crate::purge::TicketState::Ready(Err(PurgeNotWritten::QueueFull))
        )
    });
    assert_eq!(full.count(), 70_000 - 65_536);
}

/// The disk after two starts with purges, and records from both.
fn disk_with_two_starts() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let (mut tier, mut recovery) = open(&disk);
    for start in ["first", "second"] {
        write(&tier, stamped(&tier, &recovery, start, b"body"));
        for at in 1..=5 {
            confirm(&tier, &purge(recovery.first_stamp() + at, start));
        }
        (tier, recovery) = restart(&disk, tier);
    }
    disk.kill();
    drop(tier);
    disk
}

#[test]
fn lost_journal_raises_the_floor_above_all_that_it_may_have_had() {
    for lost in 1..=3 {
        let disk = disk_with_two_starts();
        disk.remove_file(&folder().join(format!("journal-{lost}")));
        let (tier, recovery) = open(&disk);
        let has = |name| !tier.find(stable_hash(name)).is_empty();
        // Without the first file, records stored before its purges are void; without the last one, all are.
        let expected = match lost {
            1 => (false, true),
            _ => (false, lost == 2 && recovery.floor <= 2 << 48),
        };
        assert_eq!((has(b"first"), has(b"second")), expected, "journal-{lost}");
    }
}

#[test]
fn without_any_journal_all_is_void_and_stamps_go_on() {
    let disk = disk_with_two_starts();
    for number in 1..=3 {
        disk.remove_file(&folder().join(format!("journal-{number}")));
    }
    let (tier, recovery) = open(&disk);
    assert_eq!(recovery.start, 3);
    assert_eq!(recovery.floor, recovery.first_stamp());
    assert_eq!(tier.stats().records, 0);
    assert!(matches!(
        recovery.events[..],
        [TierEvent::JournalDamaged { .. }]
    ));
    // The damage is reported once, and records stored from now on hold.
    write(&tier, stamped(&tier, &recovery, "new", b"body"));
    let (tier, recovery) = restart(&disk, tier);
    assert_eq!(recovery.events, []);
    assert!(read(&tier, "new").is_some());
}

#[test]
fn each_flipped_bit_of_a_purge_leaves_the_purge_or_raises_the_floor() {
    let disk = disk_with_two_starts();
    let files = disk.files();
    for (path, bytes) in files
        .iter()
        .filter(|(path, _)| path.to_string_lossy().contains("journal-"))
    {
        for bit in (0..7 * 64 * 8).step_by(5) {
            let disk = SimulatedDisk::new();
            disk.storage().make_folder(folder()).unwrap();
            files
                .iter()
                .for_each(|(path, bytes)| disk.put_file(path, bytes.clone()));
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            disk.put_file(path, flipped);
            let (_, recovery) = open(&disk);
            let stamps: Vec<_> = recovery.purges.iter().map(|purge| purge.stamp).collect();
            for stamp in [1, 2]
                .into_iter()
                .flat_map(|start| (1..=5).map(move |at| start << 48 | at))
            {
                let holds = stamps.contains(&stamp) || recovery.floor >= stamp;
                assert!(holds, "{} bit {bit}: {stamp:#x} is lost", path.display());
            }
        }
    }
}

#[test]
fn flipped_bit_of_an_early_purge_does_not_cost_what_was_stored_later() {
    let disk = disk_with_two_starts();
    let path = folder().join("journal-1");
    let (_, mut bytes) = disk
        .files()
        .into_iter()
        .find(|(name, _)| *name == path)
        .unwrap();
    bytes[2 * 64 + 20] ^= 1;
    disk.put_file(&path, bytes);
    let (tier, recovery) = open(&disk);
    assert!(recovery.floor < 2 << 48);
    assert!(read(&tier, "second").is_some());
}

#[test]
fn cut_journal_is_damaged() {
    for len in [0, 10, 64, 64 * 3, 64 * 7, 64 * 500] {
        let disk = disk_with_two_starts();
        let path = folder().join("journal-2");
        let (_, mut bytes) = disk
            .files()
            .into_iter()
            .find(|(name, _)| *name == path)
            .unwrap();
        bytes.truncate(len);
        disk.put_file(&path, bytes);
        let (_, recovery) = open(&disk);
        assert!(
            recovery.floor >= 2 << 48 | 5,
            "{len} bytes: {:#x}",
            recovery.floor
        );
    }
}

#[test]
fn journals_go_when_no_record_needs_them() {
    let disk = SimulatedDisk::new();
    let config = TierConfig {
        segment_bytes: MIN_SEGMENT_BYTES,
        ..TierConfig::new(1 << 20)
    };
    let journals = |disk: &SimulatedDisk| {
        let names = disk.files();
        names
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("journal-"))
            .count()
    };
    for _ in 0..10 {
        let (tier, recovery) = open_with(&disk, config.clone());
        tier.load();
        for at in 0..20 {
            write(
                &tier,
                stamped(&tier, &recovery, &at.to_string(), &[0; 30_000]),
            );
        }
        confirm(&tier, &purge(recovery.first_stamp() + 1, "a"));
        disk.kill();
        drop(tier);
    }
    let (tier, recovery) = open_with(&disk, config);
    tier.load();
    assert!(journals(&disk) <= 4, "{} journals", journals(&disk));
    assert!(recovery.purges.len() <= 3);
    assert!(tier.stats().records > 0);
    assert!(recovery.floor > 0);
}

#[test]
fn record_from_before_the_kept_journals_is_not_written() {
    let disk = disk_with_two_starts();
    disk.remove_file(&folder().join("journal-1"));
    let (tier, recovery) = open(&disk);
    let old = NewRecord {
        stamp: recovery.floor - 1,
        ..record(&tier, "a", b"body")
    };
    assert_eq!(tier.write(old), WriteVerdict::BeforeFloor);
}

#[test]
fn last_start_that_stamps_can_count_is_followed_by_an_empty_folder() {
    let disk = disk_with_two_starts();
    let storage = disk.storage();
    let header = crate::form::journal::JournalHeader {
        number: 4,
        begins_at: 0xffff << 48,
        void_before: 0,
        wall_millis: 0,
        start: u16::MAX,
        units: 1,
    };
    drop(storage);
    disk.put_file(&folder().join("journal-4"), header.bytes().to_vec());
    disk.put_file(&folder().join("theirs"), vec![1]);
    let (tier, recovery) = open(&disk);
    assert_eq!((recovery.start, tier.stats().records), (1, 0));
    assert!(
        disk.files()
            .iter()
            .any(|(path, _)| path.ends_with("theirs"))
    );
}

fn position(number: u64) -> LogPosition {
    LogPosition {
        log: Bytes::from(vec![b'l'; 102]),
        number,
    }
}

#[test]
fn the_last_position_is_there_after_a_power_cut_with_the_purges_before_it() {
    for seed in 0..50 {
        let disk = SimulatedDisk::new();
        let (tier, recovery) = open(&disk);
        assert_eq!(recovery.position, None);
        let first = recovery.first_stamp();
        for at in 1..=20 {
            tier.note_position(position(at - 1));
            let ticket = tier.append_purge(&purge(first + at, &at.to_string()));
            tier.note_position(position(at));
            tier.commit_purges();
            assert_eq!(ticket.wait(), Ok(()));
        }
        // The power goes while these are written: the position is there only if the purge is.
        disk.set_fault(DiskOperation::Sync, Some(DiskFault::Failing));
        drop(tier.append_purge(&purge(first + 21, "21")));
        tier.note_position(position(21));
        tier.commit_purges();
        disk.cut_power(seed);
        disk.set_fault(DiskOperation::Sync, None);
        drop(tier);
        let (_, recovery) = open(&disk);
        let found = recovery.position.clone().expect("a position");
        assert_eq!(found.log, position(0).log, "seed {seed}");
        assert!(found.number >= 20, "seed {seed}");
        assert!(
            found.number <= targets(&recovery).len() as u64,
            "seed {seed}"
        );
    }
}

#[test]
fn a_position_alone_is_written() {
    let disk = SimulatedDisk::new();
    let (tier, _) = open(&disk);
    tier.note_position(position(7));
    tier.commit_purges();
    let (_, recovery) = restart(&disk, tier);
    assert_eq!(recovery.position, Some(position(7)));
}

#[test]
fn a_position_that_the_disk_refused_is_written_later_unless_another_one_came() {
    for later in [None, Some(9)] {
        let disk = SimulatedDisk::new();
        let (tier, recovery) = open(&disk);
        disk.set_fault(DiskOperation::Sync, Some(DiskFault::Failing));
        drop(tier.append_purge(&purge(recovery.first_stamp() + 1, "a")));
        tier.note_position(position(7));
        tier.commit_purges();
        disk.set_fault(DiskOperation::Sync, None);
        if let Some(number) = later {
            tier.note_position(position(number));
        }
        tier.commit_purges();
        let (_, recovery) = restart(&disk, tier);
        assert_eq!(targets(&recovery), ["a"]);
        assert_eq!(recovery.position, Some(position(later.unwrap_or(7))));
    }
}

#[test]
fn a_position_behind_a_purge_of_its_batch_that_is_blank_says_nothing() {
    let entry = |stamp| PurgeUnit {
        mode: PurgeMode::Hard,
        stamp,
        wall_millis: 0,
        highest_before: 0,
    };
    let header = JournalHeader {
        number: 1,
        begins_at: 0,
        void_before: 0,
        wall_millis: 0,
        start: 1,
        units: 8,
    };
    let read = |is_torn: bool| {
        let mut bytes = header.bytes().to_vec();
        let at = |unit| UnitPosition { batch: 1, unit };
        put_entry(EntryKind::Purge, &entry(1), b"tag", at(1), &mut bytes);
        put_entry(EntryKind::Position, &entry(5), b"log", at(2), &mut bytes);
        bytes.resize(8 * UNIT, 0);
        if is_torn {
            bytes[UNIT..2 * UNIT].fill(0);
        }
        let mut history = JournalHistory::default();
        history.add_file(1, &bytes);
        assert!(!history.is_void(), "that purge was not confirmed");
        history.position.map(|found| found.number)
    };
    assert_eq!(read(false), Some(5));
    assert_eq!(read(true), None);
}
