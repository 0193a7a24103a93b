//! The time that the kernel gave the workers of PHP-FPM, for the limit of requests at once.
//!
//! `/proc/PID/schedstat` tells how long a process ran and how long it was ready without a processor. The
//! workers are the children of a master: that of a pool of our own, or the process that listens on the
//! unix socket of a server. Children of other names are left out, and children of several pools are not
//! ours to tell apart: then nothing is known, as with workers of another machine.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;

use fair_queue::WorkerLoad;

use crate::Millis;

/// A look costs a system call or two for each worker.
const LOOK_EVERY: Millis = 900;
/// Workers that are looked at.
const MAX_WORKERS: usize = 1024;
/// More of the title of a process is not looked at.
const MAX_TITLE_BYTES: u64 = 256;
/// In a millisecond.
const NANOSECONDS: f64 = 1e6;

/// The last look at the workers.
#[derive(Debug, Default)]
pub(crate) struct WorkerTimes {
    looked_at: Millis,
    /// For each worker: nanoseconds on a processor, and nanoseconds ready.
    seen: Option<HashMap<u32, (u64, u64)>>,
    /// The time of requests under way at the last look.
    in_flight_ms: u64,
}

impl WorkerTimes {
    /// Whether it is time for another look; notes that.
    pub fn is_due(&mut self, now: Millis) -> bool {
        let is_due = now.saturating_sub(self.looked_at) >= LOOK_EVERY;
        if is_due {
            self.looked_at = now;
        }
        is_due
    }

    /// Looks at the workers of these masters. `in_flight_ms` is the time of all requests so far. `None`:
    /// nothing is known, or this is the first look.
    pub fn look(&mut self, masters: &[u32], in_flight_ms: u64) -> Option<WorkerLoad> {
        let now = read(masters);
        let under_way = in_flight_ms.wrapping_sub(self.in_flight_ms) as f64;
        self.in_flight_ms = in_flight_ms;
        let before = std::mem::replace(&mut self.seen, now)?;
        let seen = self.seen.as_ref()?;
        let mut load = WorkerLoad {
            under_way,
            workers: seen.len(),
            ..WorkerLoad::default()
        };
        for (pid, (ran, ready)) in seen {
            // A worker that was not there has begun since.
            let (ran_before, ready_before) = before.get(pid).copied().unwrap_or_default();
            load.computing += ran.saturating_sub(ran_before) as f64 / NANOSECONDS;
            load.ready += ready.saturating_sub(ready_before) as f64 / NANOSECONDS;
        }
        Some(load)
    }
}

fn read(masters: &[u32]) -> Option<HashMap<u32, (u64, u64)>> {
    let mut seen = HashMap::new();
    for &master in masters {
        let workers = workers_of(master)?;
        for pid in workers {
            // It may have ended.
            if let Some(times) = times_of(pid) {
                seen.insert(pid, times);
            }
        }
    }
    (!seen.is_empty()).then_some(seen)
}

/// The workers of the one pool of a master.
fn workers_of(master: u32) -> Option<Vec<u32>> {
    let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
    let mut pool = None;
    let mut workers = Vec::new();
    for pid in children.split_ascii_whitespace().take(MAX_WORKERS) {
        let mut title = Vec::new();
        let read = File::open(format!("/proc/{pid}/cmdline"))
            .and_then(|file| file.take(MAX_TITLE_BYTES).read_to_end(&mut title));
        if read.is_err() {
            continue;
        }
        let Some(name) = pool_name(&title) else {
            continue;
        };
        if pool.get_or_insert_with(|| name.to_vec()) != name {
            return None;
        }
        workers.extend(pid.parse::<u32>().ok());
    }
    Some(workers)
}

/// The pool in the title of a worker, `php-fpm: pool NAME`.
fn pool_name(title: &[u8]) -> Option<&[u8]> {
    let name = title.strip_prefix(b"php-fpm: pool ")?;
    // The rest of the memory for the title is filled with zeros.
    name.split(|&byte| byte == 0).next()
}

fn times_of(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(ran)), Some(Ok(ready))) => Some((ran, ready)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_known_by_its_title() {
        assert_eq!(pool_name(b"php-fpm: pool www\0\0\0"), Some(&b"www"[..]));
        assert_eq!(pool_name(b"php-fpm: master process (/etc/x)\0"), None);
        assert_eq!(pool_name(b""), None);
    }

    #[test]
    fn times_of_a_process_grow_while_it_computes() {
        let own = std::process::id();
        let Some(before) = times_of(own) else {
            // A kernel without this file: nothing is known there.
            return;
        };
        let mut sum = 0_u64;
        for number in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum ^ number);
        }
        let after = times_of(own).unwrap();
        assert!(
            after.0 >= before.0 && after.1 >= before.1,
            "{before:?} {after:?}"
        );
        assert_eq!(times_of(u32::MAX), None);
    }

    #[test]
    fn a_master_without_workers_of_php_tells_nothing() {
        let mut times = WorkerTimes::default();
        for at in 0..3 {
            assert_eq!(times.look(&[std::process::id()], at), None);
        }
        assert_eq!(times.look(&[u32::MAX], 0), None);
    }

    #[test]
    fn a_look_is_due_once_a_second() {
        let mut times = WorkerTimes::default();
        assert!(times.is_due(1000));
        assert!(!times.is_due(1500));
        assert!(times.is_due(2000));
    }
}
