//! What the server counts of its connections and requests, for `stub_status` and the
//! variables `$connections_...`
//! (<https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>). A reload keeps it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters of the whole server.
#[derive(Default)]
pub struct Stats {
    pub accepted: AtomicU64,
    pub handled: AtomicU64,
    pub requests: Tally,
}

/// A number that every request raises and hardly anybody asks for: each thread counts in a
/// cache line of its own, and the sum is made when somebody asks.
pub struct Tally {
    /// By the number of the thread, which is the only one to write there.
    own: Box<[Line; LINES]>,
    /// What threads beyond those count.
    others: AtomicU64,
}

/// As many threads count without meeting each other.
const LINES: usize = 64;

#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            own: Box::new(std::array::from_fn(|_| Line::default())),
            others: AtomicU64::new(0),
        }
    }
}

impl Tally {
    pub fn add_one(&self) {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
        }
        match self.own.get(NUMBER.with(|number| *number)) {
            // Nobody else writes here, so that nothing comes in between.
            Some(Line(count)) => count.store(count.load(Relaxed).wrapping_add(1), Relaxed),
            None => {
                self.others.fetch_add(1, Relaxed);
            }
        }
    }

    pub fn sum(&self) -> u64 {
        let own = self.own.iter().map(|Line(count)| count.load(Relaxed));
        own.fold(self.others.load(Relaxed), u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_count_at_once_is_all_there() {
        let tally = Tally::default();
        let threads = LINES + 8;
        let ready = std::sync::Barrier::new(threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    ready.wait();
                    (0..1000).for_each(|_| tally.add_one());
                });
            }
        });
        assert_eq!(tally.sum(), 1000 * threads as u64);
        assert!(tally.others.load(Relaxed) > 0, "some had no line");
    }
}
