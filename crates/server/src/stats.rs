//! What the server counts of its connections and requests, for `stub_status` and the
//! variables `$connections_...`
//! (<https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>). A reload keeps it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::transport::stream::{ClientStream, Phase};

/// Counters of the whole server.
#[derive(Default)]
pub struct Stats {
    pub accepted: AtomicU64,
    pub handled: AtomicU64,
    pub requests: Tally,
    pub connections: Connections,
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

/// The connections there are.
#[derive(Default)]
pub struct Connections(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    streams: HashMap<usize, Weak<ClientStream>>,
    next: usize,
}

/// How many connections are doing what.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    pub active: usize,
    /// Part of a request's head has come.
    pub reading: usize,
    /// A request is being answered.
    pub writing: usize,
    /// Nothing of a next request has come.
    pub waiting: usize,
}

impl Connections {
    /// Takes a connection in; what comes back is to be given to [`Connections::remove`].
    pub fn add(&self, stream: &Arc<ClientStream>) -> usize {
        let mut registry = self.0.lock();
        let key = registry.next;
        registry.next = registry.next.wrapping_add(1);
        registry.streams.insert(key, Arc::downgrade(stream));
        key
    }

    pub fn remove(&self, key: usize) {
        self.0.lock().streams.remove(&key);
    }

    pub fn for_each(&self, mut act: impl FnMut(&ClientStream)) {
        for stream in self.0.lock().streams.values() {
            if let Some(stream) = stream.upgrade() {
                act(&stream);
            }
        }
    }

    pub fn census(&self) -> Census {
        let mut census = Census::default();
        self.for_each(|stream| {
            census.active += 1;
            let counted = match stream.phase() {
                Phase::Idle => &mut census.waiting,
                Phase::Reading => &mut census.reading,
                Phase::Busy => &mut census.writing,
            };
            *counted += 1;
        });
        census
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
