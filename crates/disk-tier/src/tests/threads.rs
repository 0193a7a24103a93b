//! The tier as it is used: on the machine's files, with its threads.

use super::*;
use crate::testing::{DiskFault, DiskOperation};
use crate::{Storage, SystemStorage, TierError, TierState};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Instant;

/// Waits for the work of a thread; a tier that never does it fails the test.
fn wait_until(mut is_done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_done() {
        assert!(Instant::now() < until, "it never happens");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn open_on(path: &Path) -> (TierFolder, Recovery) {
    TierFolder::open(path, config(), SystemStorage::new()).unwrap()
}

#[test]
fn records_and_purges_are_there_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache/zone");
    let (tier, recovery) = open_on(&path);
    for at in 0..100 {
        let name = at.to_string();
        tier.write(stamped(&tier, &recovery, &name, &body_of(&name, at * 300)));
    }
    tier.append_purge(&purge(recovery.first_stamp() + 1, "x"))
        .wait()
        .unwrap();
    wait_until(|| tier.stats().written == 100);
    tier.close();
    drop(tier);
    let (tier, recovery) = open_on(&path);
    wait_until(|| tier.stats().is_loaded);
    assert_eq!(targets(&recovery), ["x"]);
    for at in 0..100 {
        let name = at.to_string();
        let place = tier
            .find(stable_hash(name.as_bytes()))
            .iter()
            .next()
            .unwrap();
        let record = tier.read(place, Bytes::from(name.clone())).wait().unwrap();
        let is_file = matches!(record.body, RecordBody::File { .. });
        assert_eq!(is_file, at * 300 > crate::INLINE_BODY_BYTES, "{at}");
        assert_eq!(body(&record), body_of(&name, at * 300), "{at}");
    }
}

#[test]
fn second_open_in_a_process_finds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (tier, _) = open_on(folder.path());
    let second = TierFolder::open(folder.path(), config(), SystemStorage::new());
    assert!(matches!(second, Err(TierError::Locked(_))));
    drop(tier);
    open_on(folder.path());
}

#[test]
fn folder_is_for_its_account_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zone");
    let (tier, recovery) = open_on(&path);
    tier.write(stamped(&tier, &recovery, "a", b"body"));
    wait_until(|| tier.stats().written == 1);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn link_in_place_of_the_folder_or_a_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (link, other) = (folder.path().join("link"), folder.path().join("other"));
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let opened = TierFolder::open(&link, config(), SystemStorage::new());
    assert!(matches!(opened, Err(TierError::NotOurs(_))));
    let target = folder.path().join("target");
    std::fs::write(&target, "theirs").unwrap();
    std::os::unix::fs::symlink(&target, other.join("lock")).unwrap();
    assert!(TierFolder::open(&other, config(), SystemStorage::new()).is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
}

#[test]
fn large_body_is_a_part_of_a_file_that_outlives_its_segment() {
    let folder = tempfile::tempdir().unwrap();
    let small = TierConfig {
        max_bytes: 2 << 20,
        ..config()
    };
    let (tier, recovery) = TierFolder::open(folder.path(), small, SystemStorage::new()).unwrap();
    tier.write(stamped(&tier, &recovery, "a", &body_of("a", 60_000)));
    wait_until(|| tier.stats().written == 1);
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    let record = tier.read(place, Bytes::from_static(b"a")).wait().unwrap();
    for at in 0..400u64 {
        let name = at.to_string();
        let verdict = tier.write(stamped(&tier, &recovery, &name, &[0; 30_000]));
        assert_eq!(verdict, WriteVerdict::Queued);
        wait_until(|| tier.stats().written == at + 2);
    }
    assert!(!folder.path().join("seg-000001").exists());
    assert_eq!(body(&record), body_of("a", 60_000));
}

#[test]
fn flipped_bit_in_a_large_body_is_seen_before_it_is_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let (tier, recovery) = open_on(folder.path());
    tier.write(stamped(&tier, &recovery, "a", &body_of("a", 60_000)));
    wait_until(|| tier.stats().written == 1);
    drop(tier);
    let segment = folder.path().join("seg-000001");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[30_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let (tier, _) = open_on(folder.path());
    wait_until(|| tier.stats().is_loaded);
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    assert!(tier.read(place, Bytes::from_static(b"a")).wait().is_none());
    assert!(tier.find(stable_hash(b"a")).is_empty());
    assert_eq!(tier.stats().damaged, 1);
}

#[test]
fn body_is_compared_once_and_then_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (tier, recovery) = open_on(folder.path());
    tier.write(stamped(&tier, &recovery, "a", &body_of("a", 300_000 / 6)));
    wait_until(|| tier.stats().written == 1);
    let place = || tier.find(stable_hash(b"a")).iter().next().unwrap();
    assert!(!crate::index::PackedPlace(place().packed).is_verified());
    assert!(
        tier.read(place(), Bytes::from_static(b"a"))
            .wait()
            .is_some()
    );
    assert!(crate::index::PackedPlace(place().packed).is_verified());
}

#[test]
fn stalled_disk_holds_neither_lookups_nor_a_close() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = TierFolder::open(folder(), config(), disk.storage()).unwrap();
    tier.write(stamped(&tier, &recovery, "a", b"body"));
    wait_until(|| tier.stats().written == 1);
    disk.let_reads_wait(true);
    for operation in [
        DiskOperation::Read,
        DiskOperation::Write,
        DiskOperation::Sync,
    ] {
        disk.set_fault(operation, Some(DiskFault::Stalling));
    }
    let place = tier.find(stable_hash(b"a")).iter().next().unwrap();
    let ticket = tier.append_purge(&purge(recovery.first_stamp() + 1, "x"));
    for _ in 0..10 {
        assert!(matches!(tier.read_now(place, b"a"), ReadNow::NotInMemory));
        let read = tier.read(place, Bytes::from_static(b"a"));
        tier.write(record(&tier, "b", b"body"));
        read.give_up();
    }
    assert_eq!(tier.state(), TierState::Resting);
    // The threads hang: the close leaves them behind.
    drop(tier);
    disk.kill();
    assert!(ticket.wait().is_err());
}

#[test]
fn purge_is_written_by_itself_once_the_disk_takes_it() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = TierFolder::open(folder(), config(), disk.storage()).unwrap();
    disk.set_fault(DiskOperation::Sync, Some(DiskFault::Failing));
    let ticket = tier.append_purge(&purge(recovery.first_stamp() + 1, "x"));
    wait_until(|| matches!(tier.state(), TierState::JournalFailing(_)));
    disk.set_fault(DiskOperation::Sync, None);
    assert_eq!(ticket.wait(), Ok(()));
    wait_until(|| tier.state() == TierState::Serving);
}

fn use_tier(tier: &TierFolder, recovery: &Recovery, thread: usize) {
    for at in 0..2000 {
        let name = ((at * 7 + thread) % 300).to_string();
        let len = stable_hash(name.as_bytes()) % 20_000;
        let body = body_of(&name, usize::try_from(len).unwrap());
        tier.write(stamped(tier, recovery, &name, &body));
        assert!(
            read_body(tier, &name).is_none_or(|read| read == body),
            "{name}"
        );
        if at % 100 == 0 {
            let stamp = recovery.first_stamp() + at as u64;
            tier.append_purge(&purge(stamp, &name)).wait().unwrap();
        }
    }
}

#[test]
fn many_threads_use_one_tier() {
    let folder = tempfile::tempdir().unwrap();
    let small = TierConfig {
        max_bytes: 4 << 20,
        ..config()
    };
    let (tier, recovery) = TierFolder::open(folder.path(), small, SystemStorage::new()).unwrap();
    let (tier, recovery) = (Arc::new(tier), &recovery);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let tier = Arc::clone(&tier);
            scope.spawn(move || use_tier(&tier, recovery, thread));
        }
    });
    assert_eq!(tier.stats().damaged, 0);
    assert!(tier.stats().bytes <= 4 << 20);
}

#[test]
fn file_system_that_cannot_read_without_waiting_is_asked_once() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let storage = SystemStorage::new();
    let path = folder.path().join("file");
    let file = storage.create(&path).unwrap();
    file.write_at(b"bytes", 0).unwrap();
    let mut buffer = [0; 5];
    // A file system in memory refuses; another one reads.
    let first = file.read_now(&mut buffer, 0).unwrap();
    assert_eq!(first, file.read_now(&mut buffer, 0).unwrap());
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
    assert_eq!(&buffer, b"bytes");
}
