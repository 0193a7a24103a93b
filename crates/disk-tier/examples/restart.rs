//! Measures a restart: how long until the first hit and the full index, and what a hit costs.
//!
//! ```console
//! $ cargo run --release -p disk-tier --example restart -- /var/tmp/tier-measured 2000000 4000
//! ```
//!
//! Writes a number of records with bodies of a given size into a folder of its own (which must not be there yet), closes,
//! lets the kernel forget the files, opens again, and removes the folder at the end. Takes about 9 GB in this example.

use disk_tier::{
    NewRecord, ReadNow, RecordBody, Storage, SystemStorage, TierConfig, TierFolder, WriteVerdict,
    stable_hash,
};
use rustix::fs::{Advice, fadvise};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const READS: u64 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "restart FOLDER RECORDS BODY_BYTES";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let records: u64 = arguments.next().ok_or(usage)?.parse()?;
    let body_bytes: usize = arguments.next().ok_or(usage)?.parse()?;
    if folder.exists() {
        return Err("the folder is there already".into());
    }
    let storage: Arc<dyn Storage> = SystemStorage::new();
    let needed = records * (body_bytes as u64 + 400) * 5 / 4 + (1 << 30);
    let config = TierConfig::new(needed);
    let measured = write(&folder, &config, &storage, records, body_bytes)
        .and_then(|()| restart("cold", &folder, &config, &storage, records))
        .and_then(|()| restart("warm", &folder, &config, &storage, records));
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn key(at: u64) -> String {
    format!("GET https://www.example.org/articles/{at}/a-title-of-usual-length")
}

fn write(
    folder: &Path,
    config: &TierConfig,
    storage: &Arc<dyn Storage>,
    records: u64,
    body_bytes: usize,
) -> Result<(), Box<dyn Error>> {
    let (tier, recovery) = TierFolder::open(folder, config.clone(), Arc::clone(storage))?;
    let began = Instant::now();
    for at in 0..records {
        let key = key(at);
        let record = NewRecord {
            key: key.into(),
            variant: 0,
            stamp: recovery.first_stamp(),
            received: tier.now(),
            lifetime: Duration::from_secs(86_400),
            head: vec![b'h'; 200].into(),
            body: vec![at.to_le_bytes()[0]; body_bytes].into(),
        };
        while tier.write(record.clone()) == WriteVerdict::QueueFull {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    while tier.stats().written < records {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stats = tier.stats();
    println!(
        "{records} records of {body_bytes} bytes: {} segments, {:.1} GB, written in {:.1} s, {:.2} bytes for each given",
        stats.segments,
        stats.bytes as f64 / 1e9,
        began.elapsed().as_secs_f64(),
        stats.written_bytes as f64 / (records as f64 * body_bytes as f64)
    );
    Ok(())
}

/// Lets the kernel forget what it has of the files.
fn forget(folder: &Path) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let file = std::fs::File::open(entry?.path())?;
        rustix::fs::fdatasync(&file)?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

fn restart(
    name: &str,
    folder: &Path,
    config: &TierConfig,
    storage: &Arc<dyn Storage>,
    records: u64,
) -> Result<(), Box<dyn Error>> {
    if name == "cold" {
        forget(folder)?;
    }
    let began = Instant::now();
    let (tier, _) = TierFolder::open(folder, config.clone(), Arc::clone(storage))?;
    let opened = began.elapsed();
    // Visitors ask for any page: the first that is there is the first hit.
    let mut asked = 0u64;
    while read(&tier, &key(stable_hash(&asked.to_le_bytes()) % records)).is_none() {
        asked += 1;
    }
    let first_hit = began.elapsed();
    while !tier.stats().is_loaded {
        std::thread::sleep(Duration::from_micros(200));
    }
    let loaded = began.elapsed();
    let stats = tier.stats();
    println!(
        "{name}: opened after {:.1} ms, first hit {:.1} ms, {} records in the index {:.0} ms, {:.1} bytes each",
        millis(opened),
        millis(first_hit),
        stats.records,
        millis(loaded),
        stats.index_bytes as f64 / stats.records as f64
    );
    reads(name, &tier, records)
}

fn reads(name: &str, tier: &TierFolder, records: u64) -> Result<(), Box<dyn Error>> {
    let keys: Vec<_> = (0..READS)
        .map(|at| key(stable_hash(&at.to_le_bytes()) % records.min(100_000)))
        .collect();
    for round in ["first", "second"] {
        let (cpu, began) = (cpu_time(), Instant::now());
        let mut micros = Vec::with_capacity(keys.len());
        let mut hits = 0;
        for key in &keys {
            let one = Instant::now();
            hits += u64::from(read(tier, key).is_some());
            micros.push(one.elapsed().as_nanos() as f64 / 1e3);
        }
        let cpu = cpu_time().saturating_sub(cpu);
        micros.sort_by(f64::total_cmp);
        println!(
            "{name}, {round} reads: {hits} hits, {:.2} us of CPU and {:.2} us each, p50 {:.2}, p99 {:.2} us",
            cpu.as_secs_f64() * 1e6 / READS as f64,
            began.elapsed().as_secs_f64() * 1e6 / READS as f64,
            micros[micros.len() / 2],
            micros[micros.len() * 99 / 100]
        );
    }
    let began = Instant::now();
    let found = keys
        .iter()
        .filter(|key| !tier.find(stable_hash(key.as_bytes())).is_empty())
        .count();
    println!(
        "{name}: {found} lookups, {:.0} ns each",
        began.elapsed().as_secs_f64() * 1e9 / READS as f64
    );
    Ok(())
}

/// The bytes of a body, or of its part of the file.
fn read(tier: &TierFolder, key: &str) -> Option<u64> {
    let place = tier.find(stable_hash(key.as_bytes())).iter().next()?;
    let record = match tier.read_now(place, key.as_bytes()) {
        ReadNow::Record(record) => record,
        ReadNow::NotInMemory => tier.read(place, key.to_owned().into()).wait()?,
        ReadNow::Missing => return None,
    };
    Some(match record.body {
        RecordBody::Inline(bytes) => bytes.len() as u64,
        RecordBody::File { len, .. } => len,
    })
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
