//! Faults and odd moments, each staged on the program: what visitors and the operator see of
//! them. `scripts/faults` measures the same at length, beside nginx.
//!
//! `MAYFLY_UNDER_TEST=PATH` runs another build of the program instead.

mod busy_workers;
mod cache_status;
mod conditions;
mod default_memory;
mod full_disk;
mod idle;
mod leftovers;
mod ssi_gunzip;
mod unreadable;
mod wall_clock;

use std::time::{Duration, Instant};

/// What takes this long does not come any more.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program under test.
fn program() -> String {
    std::env::var("MAYFLY_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_mayfly").to_owned())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Asks again and again until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The processes that `pid` started and that still run.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect()
}

/// The process and all that it started, directly or not.
fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid));
        next += 1;
    }
    found
}

fn has_php_fpm() -> bool {
    let found = php_pool::find_php_fpm(None).is_ok();
    if !found {
        eprintln!("skipped: no php-fpm");
    }
    found
}
