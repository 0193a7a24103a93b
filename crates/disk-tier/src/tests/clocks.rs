//! Ages: exact within a boot, by the wall clock across one, unknown where the wall clock is behind.

use super::*;
use crate::{RecordAge, TierEvent};

fn age(tier: &TierFolder) -> RecordAge {
    read(tier, "a").unwrap().age
}

fn disk_with_record() -> (SimulatedDisk, TierFolder) {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let lasting = NewRecord {
        lifetime: Duration::from_secs(1 << 30),
        ..stamped(&tier, &recovery, "a", b"body")
    };
    write(&tier, lasting);
    tier.finish_segment();
    (disk, tier)
}

const DAY: u64 = 86_400_000;

/// A power cut that loses nothing.
fn reboot(disk: &SimulatedDisk, tier: TierFolder) -> (TierFolder, Recovery) {
    let files = disk.files();
    disk.cut_power(1);
    files
        .into_iter()
        .for_each(|(path, bytes)| disk.put_file(&path, bytes));
    drop(tier);
    open(disk)
}

#[test]
fn within_a_boot_a_step_of_the_wall_clock_changes_no_age() {
    let (disk, tier) = disk_with_record();
    disk.advance(5000);
    disk.set_wall_clock(1);
    assert_eq!(age(&tier), RecordAge::Millis(5000));
    let (tier, _) = restart(&disk, tier);
    assert_eq!(age(&tier), RecordAge::Millis(5000));
}

#[test]
fn across_a_boot_the_wall_clock_tells_the_age() {
    let (disk, tier) = disk_with_record();
    disk.advance(DAY);
    let (tier, recovery) = reboot(&disk, tier);
    assert!(!recovery.wall_clock_is_behind);
    assert_eq!(age(&tier), RecordAge::Millis(DAY));
    // The age is more than the machine runs.
    assert_eq!(read(&tier, "a").unwrap().received.boot_millis, 0);
}

#[test]
fn received_time_is_by_the_clock_of_this_boot_where_it_can_be() {
    let (disk, tier) = disk_with_record();
    let (tier, _) = reboot(&disk, tier);
    disk.advance(5000);
    let received = read(&tier, "a").unwrap().received;
    assert_eq!(tier.now().boot_millis - received.boot_millis, 5000);
}

#[test]
fn wall_clock_a_day_behind_makes_records_stale_and_not_gone() {
    let (disk, tier) = disk_with_record();
    let wall = tier.now().wall_millis;
    disk.set_wall_clock(wall - DAY);
    let (tier, recovery) = reboot(&disk, tier);
    assert!(recovery.wall_clock_is_behind);
    assert!(matches!(
        recovery.events[..],
        [TierEvent::WallClockBehind { by_millis: DAY }]
    ));
    assert_eq!(age(&tier), RecordAge::Unknown);
    // Once the clock is right, so are the ages.
    disk.set_wall_clock(wall + 7);
    assert_eq!(age(&tier), RecordAge::Millis(7));
}

#[test]
fn wall_clock_behind_the_last_purge_is_behind() {
    let (disk, tier) = disk_with_record();
    disk.advance(DAY);
    let wall_millis = tier.now().wall_millis;
    confirm(
        &tier,
        &WrittenPurge {
            wall_millis,
            ..purge(1 << 48 | 1, "x")
        },
    );
    disk.set_wall_clock(wall_millis - 1000);
    let (tier, recovery) = reboot(&disk, tier);
    assert!(recovery.wall_clock_is_behind);
    assert_eq!(age(&tier), RecordAge::Unknown);
}

#[test]
fn writing_records_writes_the_time_down() {
    let (disk, tier) = disk_with_record();
    disk.advance(DAY);
    write(
        &tier,
        NewRecord {
            received: tier.now(),
            ..record(&tier, "b", b"body")
        },
    );
    disk.set_wall_clock(tier.now().wall_millis - DAY / 2);
    let (_, recovery) = reboot(&disk, tier);
    assert!(recovery.wall_clock_is_behind);
}

#[test]
fn purges_know_no_clock() {
    let (disk, tier) = disk_with_record();
    confirm(&tier, &purge(1 << 48 | 1, "x"));
    disk.set_wall_clock(5);
    let (_, recovery) = reboot(&disk, tier);
    assert_eq!(targets(&recovery), ["x"]);
}
