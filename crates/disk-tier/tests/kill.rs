//! A process that writes records and purges is killed at random moments (`SIGKILL`). The files that the next one finds
//! are judged by content: every purge that the dead one confirmed holds, and no record is torn or mixed.
//!
//! `MAYFLY_TIER_KILLS=1000` kills a thousand times instead of twenty.

use disk_tier::{
    NewRecord, PurgeMode, RecordBody, Recovery, SystemStorage, TierConfig, TierFolder,
    WrittenPurge, stable_hash,
};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PAGES: u64 = 20;
const FOLDER: &str = "MAYFLY_TIER_KILLED_FOLDER";
const ROUND: &str = "MAYFLY_TIER_KILLED_ROUND";

fn open(folder: &Path) -> (TierFolder, Recovery) {
    let config = TierConfig::new(4 << 20);
    TierFolder::open(folder, config, SystemStorage::new()).unwrap()
}

fn key(page: u64) -> String {
    format!("page{page}")
}

/// The body of a version of a page, up to 40 KB.
fn body(page: u64, version: u64) -> Vec<u8> {
    let seed = stable_hash(format!("{page}.{version}").as_bytes());
    let count = usize::try_from(seed % 5000).unwrap() + 8;
    let bytes = (0..count as u64).flat_map(|at| seed.wrapping_mul(at + 1).to_le_bytes());
    bytes.collect()
}

fn write(tier: &TierFolder, page: u64, version: u64, stamp: u64) {
    tier.write(NewRecord {
        key: key(page).into(),
        variant: 0,
        stamp,
        received: tier.now(),
        lifetime: Duration::from_secs(3600),
        head: version.to_le_bytes().to_vec().into(),
        body: body(page, version).into(),
    });
}

/// The process that is killed: it changes pages for ever, and reports confirmed purges. Without a folder in its
/// environment there is nothing to do.
#[test]
fn child_process_changes_pages_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let round: u64 = std::env::var(ROUND).unwrap().parse().unwrap();
    let (tier, recovery) = open(Path::new(&folder));
    for step in 1.. {
        let random = stable_hash(&(round << 32 | step).to_le_bytes());
        let (page, version) = (random % PAGES, round << 32 | step);
        let stamp = recovery.first_stamp() + step;
        // A fetch that begins before the change and ends after it.
        write(&tier, page, version - 1, stamp - 1);
        let purge = WrittenPurge {
            stamp,
            mode: PurgeMode::Hard,
            wall_millis: 0,
            target: key(page).into(),
        };
        tier.append_purge(&purge).wait().unwrap();
        write(&tier, page, version, stamp);
        println!("confirmed {page} {version}");
    }
}

/// Lets a process run until it has confirmed some purges, and kills it; returns the confirmed purges.
fn run_and_kill(folder: &Path, round: u64) -> Vec<(u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_process_changes_pages_until_it_is_killed",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let wanted = usize::try_from(stable_hash(&round.to_le_bytes()) % 60).unwrap() + 1;
    let confirmed = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| {
            let (page, version) = line.split_once("confirmed ")?.1.split_once(' ')?;
            Some((page.parse().ok()?, version.parse().ok()?))
        })
        .take(wanted)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    confirmed
}

#[test]
fn confirmed_purges_hold_through_kills_and_no_page_is_torn() {
    let rounds = std::env::var("MAYFLY_TIER_KILLS").ok();
    let rounds: u64 = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let mut promised = vec![0; usize::try_from(PAGES).unwrap()];
    let (mut hits, mut outdated) = (0, 0);
    for round in 1..=rounds {
        for (page, version) in run_and_kill(folder.path(), round) {
            promised[usize::try_from(page).unwrap()] = version;
        }
        let (tier, recovery) = open(folder.path());
        assert!(recovery.events.is_empty(), "{:?}", recovery.events);
        while !tier.stats().is_loaded {
            std::thread::sleep(Duration::from_millis(1));
        }
        for page in 0..PAGES {
            let key = key(page);
            for place in tier.find(stable_hash(key.as_bytes())).iter() {
                let record = tier.read(place, key.clone().into()).wait().unwrap();
                let version = u64::from_le_bytes(record.head[..].try_into().unwrap());
                assert!(
                    bytes(&record.body) == body(page, version),
                    "round {round}, page {page}"
                );
                let names =
                    |purge: &WrittenPurge| purge.target == key && record.stamp < purge.stamp;
                if recovery.purges.iter().any(names) {
                    outdated += 1;
                    continue;
                }
                let promised = promised[usize::try_from(page).unwrap()];
                assert!(
                    version >= promised,
                    "round {round}, page {page}: {version:#x} before {promised:#x}"
                );
                hits += 1;
            }
        }
        assert_eq!(tier.stats().damaged, 0);
    }
    println!(
        "{rounds} kills: {hits} pages found, {outdated} outdated ones seen, none old, mixed or torn"
    );
    assert!(hits > rounds, "{hits} hits");
}

fn bytes(body: &RecordBody) -> Vec<u8> {
    match body {
        RecordBody::Inline(bytes) => bytes.to_vec(),
        RecordBody::File { file, offset, len } => {
            let mut bytes = vec![0; usize::try_from(*len).unwrap()];
            std::os::unix::fs::FileExt::read_exact_at(&**file, &mut bytes, *offset).unwrap();
            bytes
        }
    }
}
