//! The program under test, end to end: one test program, a module for each feature or directive.
//! `cargo test -p mayfly --test program slice::` runs those of one module.
//!
//! `MAYFLY_UNDER_TEST=PATH` runs another build of the program instead, to see how it behaves.

mod access_log;
mod around;
mod attacks;
mod cache;
mod cache_as_nginx;
mod command_line;
mod compression;
mod conditional_requests;
mod full_disk;
mod http1;
mod huge_pages;
mod idle;
mod like_nginx;
mod map_and_set;
mod memcached;
mod php_pool;
mod pipelining;
mod proxy;
mod published;
mod serve;
mod ssi_gunzip;
mod store;
mod temporary_files;
mod upstream;
mod wall_clock;
mod worker_processes;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What takes this long does not come any more.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program under test.
fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let other = std::env::var("MAYFLY_UNDER_TEST");
        other.unwrap_or_else(|_| env!("CARGO_BIN_EXE_mayfly").to_owned())
    });
    &PROGRAM
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
    let found = ::php_pool::find_php_fpm(None).is_ok();
    if !found {
        eprintln!("skipped: no php-fpm");
    }
    found
}
