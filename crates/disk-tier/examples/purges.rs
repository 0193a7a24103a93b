//! Measures the journal: purges a second from some callers, each of which waits for its ticket.
//!
//! ```console
//! $ cargo run --release -p disk-tier --example purges -- /var/tmp/tier-measured 1000 10
//! ```
//!
//! Makes a given number of purges a second for a given time, in a folder of its own that is removed at the end.

use disk_tier::{PurgeMode, SystemStorage, TierConfig, TierFolder, WrittenPurge};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CALLERS: u64 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "purges FOLDER A_SECOND SECONDS";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let a_second: u64 = arguments.next().ok_or(usage)?.parse()?;
    let seconds: u64 = arguments.next().ok_or(usage)?.parse()?;
    let (tier, recovery) =
        TierFolder::open(&folder, TierConfig::new(1 << 30), SystemStorage::new())?;
    let stamp = AtomicU64::new(recovery.first_stamp());
    let (began, cpu) = (Instant::now(), cpu_time());
    let caller = |caller: u64| {
        let mut millis = Vec::new();
        for at in 0..a_second * seconds / CALLERS {
            // When it is due counts, not when its caller was free again.
            let due =
                began + Duration::from_nanos((at * CALLERS + caller) * 1_000_000_000 / a_second);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let purge = WrittenPurge {
                stamp: stamp.fetch_add(1, Ordering::SeqCst) + 1,
                mode: PurgeMode::Hard,
                wall_millis: 0,
                target: at.to_le_bytes().to_vec().into(),
            };
            let is_written = tier.append_purge(&purge).wait().is_ok();
            millis.push(if is_written {
                due.elapsed().as_secs_f64() * 1e3
            } else {
                f64::INFINITY
            });
        }
        millis
    };
    let mut millis = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| scope.spawn(move || caller(number)))
            .collect();
        callers
            .into_iter()
            .filter_map(|caller| caller.join().ok())
            .flatten()
            .collect::<Vec<_>>()
    });
    let cpu = cpu_time().saturating_sub(cpu);
    let wall = began.elapsed().as_secs_f64();
    millis.sort_by(f64::total_cmp);
    let percentile = |part: f64| millis[((millis.len() - 1) as f64 * part) as usize];
    println!(
        "{} purges in {wall:.1} s: p50 {:.2} ms, p99 {:.2} ms, p999 {:.2} ms, {} syncs, {:.1} % of a core",
        millis.len(),
        percentile(0.5),
        percentile(0.99),
        percentile(0.999),
        tier.stats().journal_syncs,
        100.0 * cpu.as_secs_f64() / wall
    );
    drop(tier);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
