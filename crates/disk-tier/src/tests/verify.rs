//! Reports of `verify` on a folder.

use super::*;
use crate::{SegmentFinding, verify};

fn disk_with_two_segments() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let (tier, recovery) = open(&disk);
    write(&tier, stamped(&tier, &recovery, "a", b"body"));
    confirm(&tier, &purge(recovery.first_stamp() + 1, "x"));
    tier.finish_segment();
    write(&tier, stamped(&tier, &recovery, "b", b"body"));
    drop(tier);
    disk.kill();
    disk
}

#[test]
fn whole_folder_is_said_to_be_whole() {
    let disk = disk_with_two_segments();
    let report = verify(folder(), &*disk.storage()).unwrap();
    assert!(report.is_whole());
    assert_eq!(
        (
            report.records(),
            report.purges,
            report.journals,
            report.last_start
        ),
        (2, 1, 1, 1)
    );
    let text = report.to_string();
    assert!(
        text.starts_with("seg-000001: ") && text.ends_with("2 records are of use"),
        "{text}"
    );
    assert!(
        text.contains("1 records (0 void), 0 damaged, finished, start 1"),
        "{text}"
    );
    assert!(text.contains("not finished"), "{text}");
}

#[test]
fn damaged_record_foreign_file_and_lost_journal_are_named() {
    let disk = disk_with_two_segments();
    let path = folder().join("seg-000001");
    let (_, mut bytes) = disk
        .files()
        .into_iter()
        .find(|(name, _)| *name == path)
        .unwrap();
    bytes[70] ^= 1;
    disk.put_file(&path, bytes);
    disk.put_file(&folder().join("theirs"), vec![1]);
    disk.put_file(&folder().join("seg-000007"), b"theirs".to_vec());
    let journal = folder().join("journal-1");
    let (_, bytes) = disk
        .files()
        .into_iter()
        .find(|(name, _)| *name == journal)
        .unwrap();
    disk.put_file(&journal, bytes[..100].to_vec());
    let report = verify(folder(), &*disk.storage()).unwrap();
    assert!(!report.is_whole());
    assert_eq!(report.foreign, ["theirs"]);
    assert_eq!(report.segments[2].finding, SegmentFinding::Foreign);
    assert!(matches!(
        report.segments[0].finding,
        SegmentFinding::Records {
            damaged: 1,
            whole: 0,
            ..
        }
    ));
    assert_eq!(report.journal_damage, ["journal-1 is damaged"]);
    // Purges may be missing: nothing is of use.
    assert_eq!(report.records(), 0);
}

#[test]
fn damage_at_the_end_of_a_segment_is_named_also_where_no_record_is_found() {
    let path = folder().join("seg-000001");
    // Flipped bytes, from the begin or from the end: a byte of the first record, of the footer's block, of the trailer.
    let cases: [(&[usize], &[usize], &str); 4] = [
        (
            &[70],
            &[20],
            "0 records (0 void), 0 damaged, not finished, ",
        ),
        (&[], &[20], "1 records (0 void), 0 damaged, not finished, "),
        (
            &[],
            &[100],
            "1 records (0 void), 0 damaged, finished, its footer damaged",
        ),
        (
            &[70],
            &[100],
            "0 records (0 void), 0 damaged, finished, its footer damaged",
        ),
    ];
    for (from_begin, from_end, said) in cases {
        let disk = disk_with_two_segments();
        let (_, mut bytes) = disk
            .files()
            .into_iter()
            .find(|(name, _)| *name == path)
            .unwrap();
        let len = bytes.len();
        let at = from_end.iter().map(|at| len - at);
        for at in from_begin.iter().copied().chain(at) {
            bytes[at] ^= 1;
        }
        disk.put_file(&path, bytes);
        let report = verify(folder(), &*disk.storage()).unwrap();
        let text = report.to_string();
        assert!(!report.is_whole() && text.contains(said), "{text}");
    }
}

#[test]
fn folder_that_is_not_there_is_an_error() {
    assert!(verify(folder(), &*SimulatedDisk::new().storage()).is_err());
}

#[test]
fn verify_changes_nothing_and_takes_no_lock() {
    let disk = disk_with_two_segments();
    let before = disk.files();
    let (tier, _) = open_with(&disk, config());
    let with_server = disk.files();
    verify(folder(), &*disk.storage()).unwrap();
    assert!(disk.files() == with_server);
    drop(tier);
    assert!(with_server.len() > before.len());
}
