//! A tier on a disk in memory, without threads: a test for each promise.

mod admission;
mod clocks;
mod damage;
mod faults;
mod journal;
mod records;
mod ring;
mod simulation;
mod stopped;
mod threads;
mod verify;

use crate::testing::SimulatedDisk;
use crate::{
    MIN_SEGMENT_BYTES, NewRecord, PurgeMode, PurgeOutcome, PurgeTicket, ReadNow, RecordBody,
    RecordBytes, Recovery, TierConfig, TierFolder, TierTime, WriteVerdict, WrittenPurge,
    stable_hash,
};
use bytes::Bytes;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const FOLDER: &str = "/cache/tier";
/// Units of a journal's file.
const UNITS: u32 = 512;

fn folder() -> &'static Path {
    Path::new(FOLDER)
}

fn config() -> TierConfig {
    TierConfig {
        segment_bytes: MIN_SEGMENT_BYTES,
        ..TierConfig::new(16 << 20)
    }
}

fn open_with(disk: &SimulatedDisk, config: TierConfig) -> (TierFolder, Recovery) {
    TierFolder::open_without_threads(folder(), config, disk.storage(), UNITS).unwrap()
}

fn open(disk: &SimulatedDisk) -> (TierFolder, Recovery) {
    let (tier, recovery) = open_with(disk, config());
    tier.load();
    (tier, recovery)
}

/// The process dies, and another one takes the folder.
fn restart(disk: &SimulatedDisk, tier: TierFolder) -> (TierFolder, Recovery) {
    disk.kill();
    drop(tier);
    open(disk)
}

fn record(tier: &TierFolder, key: &str, body: &[u8]) -> NewRecord {
    NewRecord {
        key: Bytes::copy_from_slice(key.as_bytes()),
        variant: 0,
        stamp: 0xffff << 48,
        received: tier.now(),
        lifetime: Duration::from_secs(3600),
        head: Bytes::from_static(b"200"),
        body: Bytes::copy_from_slice(body),
    }
}

/// A record with a stamp of the start.
fn stamped(tier: &TierFolder, recovery: &Recovery, key: &str, body: &[u8]) -> NewRecord {
    NewRecord {
        stamp: recovery.first_stamp(),
        ..record(tier, key, body)
    }
}

fn write(tier: &TierFolder, record: NewRecord) {
    assert_eq!(tier.write(record), WriteVerdict::Queued);
    tier.write_waiting();
}

/// The newest record of a key.
fn read(tier: &TierFolder, key: &str) -> Option<Box<RecordBytes>> {
    let places = tier.find(stable_hash(key.as_bytes()));
    places
        .iter()
        .find_map(|place| match tier.read_now(place, key.as_bytes()) {
            ReadNow::Record(record) => Some(record),
            ReadNow::NotInMemory | ReadNow::Missing => None,
        })
}

fn body(record: &RecordBytes) -> Bytes {
    match &record.body {
        RecordBody::Inline(bytes) => bytes.clone(),
        RecordBody::File { file, offset, len } => {
            let mut bytes = vec![0; usize::try_from(*len).unwrap()];
            std::os::unix::fs::FileExt::read_exact_at(&**file, &mut bytes, *offset).unwrap();
            bytes.into()
        }
    }
}

fn read_body(tier: &TierFolder, key: &str) -> Option<Bytes> {
    read(tier, key).map(|record| body(&record))
}

/// A body that is another one for each name.
fn body_of(name: &str, len: usize) -> Vec<u8> {
    let mut state = stable_hash(name.as_bytes());
    let mut body = Vec::with_capacity(len + 8);
    while body.len() < len {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        body.extend_from_slice(&state.to_le_bytes());
    }
    body.truncate(len);
    body
}

fn purge(stamp: u64, target: &str) -> WrittenPurge {
    WrittenPurge {
        stamp,
        mode: PurgeMode::Hard,
        wall_millis: 1,
        target: Bytes::copy_from_slice(target.as_bytes()),
    }
}

fn targets(recovery: &Recovery) -> Vec<String> {
    let text = |purge: &WrittenPurge| String::from_utf8(purge.target.to_vec()).unwrap();
    recovery.purges.iter().map(text).collect()
}

/// Writes a purge down and has it on the disk.
fn confirm(tier: &TierFolder, purge: &WrittenPurge) {
    let ticket = tier.append_purge(purge);
    tier.commit_purges();
    ticket.wait().unwrap();
}

/// Returns the outcome of a purge, if it is known by now.
fn outcome(ticket: &mut PurgeTicket) -> Option<PurgeOutcome> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(ticket).poll(&mut context) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}
