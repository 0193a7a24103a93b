//! The store alone under threads that look up and insert at once: what do they take from each other?
//!
//! `cargo bench -p http-cache --bench contention [-- THREADS...]` (by default 1 and 2). A million keys;
//! hits by Zipf, since a few keys are where threads meet; inserts replace any of them, as expiring
//! pages do. Reported for each mix: operations per second of all threads, CPU time per operation and
//! how often a thread slept, which it does for nothing but a lock, then the latency that one operation
//! in a thousand exceeds. Flat CPU time from one line to the next is what a machine with many cores
//! needs; the zone with one shard shows what a lock that hurts looks like. The first lines are for the
//! model in docs/design/2026-11-22-cost-of-a-hit.md: an `Arc` cloned and dropped, each thread its own,
//! and all the same one, whose count then travels between their cores.

mod pages;

use http_cache::{FoundResponse, KeyRef, NoFields, Zone, ZoneConfig};
use pages::{KEYS, NOW, Pages, key};
use std::fs;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Operations of each thread in one line of the table.
const OPERATIONS: u64 = 3_000_000;
/// One operation of this number is timed by itself.
const SAMPLED: u64 = 16;
/// Inserts in a thousand operations: hits only, a site with pages of some seconds, a flood of misses.
const MIXES: [u64; 4] = [0, 10, 100, 500];

/// The cost of one thread.
struct ThreadCost {
    cpu: Duration,
    slept: u64,
    hits: u64,
    sampled: Vec<u32>,
}

fn main() {
    let mut threads: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    if threads.is_empty() {
        threads = vec![1, 2];
    }
    println!("counts  threads  CPU ns/clone and drop");
    for is_shared in [false, true] {
        for count in &threads {
            measure_counts(is_shared, (*count).max(1));
        }
    }
    println!("\nshards  inserts  threads   M ops/s  CPU ns/op   slept  p99.9 ns  hits");
    for shards in [ZoneConfig::default().shards, 1] {
        let zone = pages::filled_zone(shards);
        for inserts in MIXES {
            for count in &threads {
                measure(&zone, shards, inserts, (*count).max(1));
            }
        }
    }
}

/// Measures what it costs to take and give back a reference count: one that all threads share, or
/// each thread its own.
fn measure_counts(is_shared: bool, threads: usize) {
    let everybodys = Arc::new(0_u64);
    let start = Barrier::new(threads);
    let cpu: Duration = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let counted = match is_shared {
                        true => Arc::clone(&everybodys),
                        false => Arc::new(0),
                    };
                    start.wait();
                    let before = accounting().0;
                    for _ in 0..OPERATIONS {
                        drop(std::hint::black_box(Arc::clone(&counted)));
                    }
                    accounting().0.saturating_sub(before)
                })
            })
            .collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|cpu| cpu.expect("no thread panics")).sum()
    });
    let operations = (OPERATIONS * threads as u64) as f64;
    let name = if is_shared { "shared" } else { "own" };
    println!(
        "{name:>6} {threads:>8} {:>8.1}",
        cpu.as_nanos() as f64 / operations
    );
}

fn measure(zone: &Arc<Zone>, shards: usize, inserts: u64, threads: usize) {
    let start = Barrier::new(threads + 1);
    let (took, spent) = thread::scope(|scope| {
        let running: Vec<_> = (0..threads as u64)
            .map(|number| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    work(zone, inserts, number)
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let spent: Vec<ThreadCost> = running
            .into_iter()
            .map(|one| one.join().expect("no thread panics"))
            .collect();
        (began.elapsed(), spent)
    });
    let operations = (OPERATIONS * threads as u64) as f64;
    let cpu: Duration = spent.iter().map(|one| one.cpu).sum();
    let slept: u64 = spent.iter().map(|one| one.slept).sum();
    let hits: u64 = spent.iter().map(|one| one.hits).sum();
    let mut sampled: Vec<u32> = spent.into_iter().flat_map(|one| one.sampled).collect();
    sampled.sort_unstable();
    println!(
        "{shards:>6} {:>7.1}% {threads:>8} {:>9.2} {:>10.0} {slept:>7} {:>9} {:>4.0}%",
        inserts as f64 / 10.0,
        operations / took.as_secs_f64() / 1e6,
        cpu.as_nanos() as f64 / operations,
        sampled[sampled.len() * 999 / 1000],
        100.0 * hits as f64 / (operations * (1000 - inserts) as f64 / 1000.0),
    );
}

fn work(zone: &Zone, inserts: u64, number: u64) -> ThreadCost {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (number + 1));
    let pages = Pages::new();
    let mut spent = ThreadCost {
        cpu: Duration::ZERO,
        slept: 0,
        hits: 0,
        sampled: Vec::with_capacity((OPERATIONS / SAMPLED) as usize + 1),
    };
    let before = accounting();
    for operation in 0..OPERATIONS {
        let began = operation.is_multiple_of(SAMPLED).then(Instant::now);
        let drawn = random.next();
        if drawn % 1000 < inserts {
            pages.insert(zone, random.next() % KEYS);
        } else {
            let key = key(random.zipf());
            let found = zone.find(&KeyRef::new(&key), &NoFields, NOW);
            spent.hits += u64::from(matches!(found, FoundResponse::Fresh(_)));
        }
        if let Some(began) = began {
            let nanoseconds = began.elapsed().as_nanos();
            spent
                .sampled
                .push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
        }
    }
    let after = accounting();
    spent.cpu = after.0.saturating_sub(before.0);
    spent.slept = after.1 - before.1;
    spent
}

/// CPU time of this thread, and how often it gave up its core by itself; zero outside Linux.
fn accounting() -> (Duration, u64) {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let schedstat = read("/proc/thread-self/schedstat");
    let nanoseconds = schedstat
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok());
    let slept = read("/proc/thread-self/status")
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok());
    (
        Duration::from_nanos(nanoseconds.unwrap_or(0)),
        slept.unwrap_or(0),
    )
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A key number by Zipf: its logarithm is uniform.
    fn zipf(&mut self) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((KEYS as f64).powf(uniform) as u64 - 1).min(KEYS - 1)
    }
}
