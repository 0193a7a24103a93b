//! Purges that are made while no server has the folder.

use super::*;
use crate::{StoppedPurge, TierError, append_while_stopped};

fn stopped(target: &str) -> StoppedPurge {
    StoppedPurge {
        mode: PurgeMode::Soft,
        target: Bytes::copy_from_slice(target.as_bytes()),
    }
}

#[test]
fn purge_while_stopped_is_later_than_all_records_and_earlier_than_all_that_come() {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    let last = NewRecord {
        stamp: recovery.first_stamp() + 1000,
        ..record(&tier, "a", b"body")
    };
    write(&tier, last.clone());
    disk.kill();
    drop(tier);
    let purges = [stopped("a"), stopped("b")];
    assert!(append_while_stopped(folder(), &disk.storage(), &purges).unwrap());
    disk.cut_power(1);
    let (tier, recovery) = open(&disk);
    assert_eq!(targets(&recovery), ["a", "b"]);
    assert_eq!(recovery.purges[0].mode, PurgeMode::Soft);
    let stamps: Vec<_> = recovery.purges.iter().map(|purge| purge.stamp).collect();
    assert!(
        stamps
            .iter()
            .all(|stamp| last.stamp < *stamp && *stamp < recovery.first_stamp())
    );
    assert!(stamps[0] < stamps[1]);
    // The caller decides which record is purged.
    assert!(read(&tier, "a").is_none() || read(&tier, "a").unwrap().stamp < stamps[0]);
}

#[test]
fn purge_while_a_server_runs_is_refused() {
    let disk = SimulatedDisk::new();
    let (tier, _) = open(&disk);
    let outcome = append_while_stopped(folder(), &disk.storage(), &[stopped("a")]);
    assert!(matches!(outcome, Err(TierError::Locked(_))));
    drop(tier);
    assert!(append_while_stopped(folder(), &disk.storage(), &[stopped("a")]).unwrap());
}

#[test]
fn purge_of_a_folder_that_is_not_there_makes_none() {
    let disk = SimulatedDisk::new();
    assert!(!append_while_stopped(folder(), &disk.storage(), &[stopped("a")]).unwrap());
    disk.storage().make_folder(folder()).unwrap();
    assert!(!append_while_stopped(folder(), &disk.storage(), &[stopped("a")]).unwrap());
    assert_eq!(disk.files().len(), 0);
}

#[test]
fn too_many_or_too_long_purges_are_refused_as_a_whole() {
    let disk = SimulatedDisk::new();
    drop(open(&disk));
    let many = vec![stopped("a"); crate::MAX_STOPPED_PURGES + 1];
    assert!(append_while_stopped(folder(), &disk.storage(), &many).is_err());
    let long = [
        stopped("a"),
        stopped(&"x".repeat(crate::MAX_TARGET_BYTES + 1)),
    ];
    assert!(append_while_stopped(folder(), &disk.storage(), &long).is_err());
    assert_eq!(open(&disk).1.purges, []);
}

#[test]
fn many_purges_while_stopped_hold_together_and_one_by_one() {
    let disk = SimulatedDisk::new();
    drop(open(&disk));
    let names: Vec<_> = (0..300).map(|at| at.to_string()).collect();
    for name in &names {
        append_while_stopped(folder(), &disk.storage(), &[stopped(name)]).unwrap();
    }
    let all: Vec<_> = names.iter().map(|name| stopped(name)).collect();
    append_while_stopped(folder(), &disk.storage(), &all).unwrap();
    let (_, recovery) = open(&disk);
    assert_eq!(targets(&recovery), [names.clone(), names].concat());
}
