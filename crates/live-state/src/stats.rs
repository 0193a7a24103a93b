//! The server's counts of its connections and requests: for `stub_status`
//! (<https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>), and for the numbers that
//! crates/numbers has a table of. A reload keeps them.
//!
//! Counts of hits are kept by each thread for itself ([`PerThread`]) and summed up when a report
//! is made. Everything else is an atomic number.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use numbers::table::{
    CACHE_STATUSES, HANDSHAKE_RESULTS, HIT_BOUNDS, LIMITS, LOG_LEVELS, PROTOCOLS, STATUS_CLASSES,
    WAIT_BOUNDS,
};
use numbers::{Distribution, History, Pages, Top, first_of};
use parking_lot::Mutex;

/// Counters of the whole server.
pub struct Stats {
    pub accepted: AtomicU64,
    pub handled: AtomicU64,
    /// Requests that have come.
    pub requests: Tally,
    pub ended: PerThread<EndedRequests>,
    /// By [`PROTOCOLS`].
    pub connections: [AtomicU64; PROTOCOLS.len()],
    /// By [`HANDSHAKE_RESULTS`].
    pub handshakes: [AtomicU64; HANDSHAKE_RESULTS.len()],
    /// By [`LIMITS`].
    pub refused: [AtomicU64; LIMITS.len()],
    /// By [`LOG_LEVELS`].
    pub log_lines: [AtomicU64; LOG_LEVELS.len()],
    /// The numbers of spans sent and lost.
    pub spans: Arc<traces::Counts>,
    /// Threads that serve.
    pub workers: AtomicUsize,
    pub started_at: SystemTime,
    pub pages: PerThread<Mutex<PagesOfThread>>,
    pub history: Mutex<History>,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            accepted: AtomicU64::default(),
            handled: AtomicU64::default(),
            requests: Tally::default(),
            ended: PerThread::default(),
            connections: Default::default(),
            handshakes: Default::default(),
            refused: Default::default(),
            log_lines: Default::default(),
            spans: Arc::default(),
            workers: AtomicUsize::default(),
            started_at: SystemTime::now(),
            pages: PerThread::default(),
            history: Mutex::default(),
        }
    }
}

/// The pages that stand out, as one thread has seen them: it alone waits for the lock, but for who
/// looks.
#[derive(Default)]
pub struct PagesOfThread {
    /// By milliseconds.
    pub costly: Top,
    pub wanted: Top,
    pub not_stored: Top,
    /// A buffer for names that are looked up here.
    pub name: Vec<u8>,
}

/// Threads that count without meeting each other.
const THREADS: usize = 64;

/// The number that a thread gets which has none.
static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

/// The number of this thread, given to it when it first counts.
#[inline]
fn thread_number() -> usize {
    thread_local! {
        static NUMBER: usize = NEXT_THREAD.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Counts of which each thread has its own.
pub struct PerThread<T> {
    /// By the number of the thread, which is the only one to write there.
    own: Box<[OnceLock<Box<T>>; THREADS]>,
    /// The counts of threads beyond those.
    others: T,
}

/// The counts of this thread.
pub struct OfThread<'a, T> {
    pub counts: &'a T,
    /// Whether anybody else writes there.
    pub writer: Writer,
}

/// The writer of a count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    OneThread,
    Several,
}

/// A number that only grows.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    #[inline]
    pub fn add(&self, more: u64, writer: Writer) {
        match writer {
            // No other thread writes here, so that nothing comes in between.
            Writer::OneThread => {
                self.0
                    .store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
            }
            Writer::Several => {
                self.0.fetch_add(more, Relaxed);
            }
        }
    }

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> PerThread<T> {
        PerThread {
            own: Box::new([const { OnceLock::new() }; THREADS]),
            others: T::default(),
        }
    }
}

impl<T: Default> PerThread<T> {
    #[inline]
    pub fn of_thread(&self) -> OfThread<'_, T> {
        match self.own.get(thread_number()) {
            Some(own) => OfThread {
                counts: own.get_or_init(Box::default),
                writer: Writer::OneThread,
            },
            None => OfThread {
                counts: &self.others,
                writer: Writer::Several,
            },
        }
    }

    /// Returns the counts of all threads that have counted. No thread has a number that was not
    /// given yet.
    fn all(&self) -> impl Iterator<Item = &T> {
        let given = NEXT_THREAD.load(Relaxed).min(THREADS);
        let own = self.own[..given].iter().filter_map(OnceLock::get);
        own.map(|counts| &**counts).chain([&self.others])
    }

    /// The sum of a number over all threads.
    fn sum(&self, number: impl Fn(&T) -> &Count) -> u64 {
        let counts = self.all().map(|counts| number(counts).read());
        counts.fold(0, u64::wrapping_add)
    }
}

/// Requests that have come: one line of memory for each thread.
#[derive(Default)]
pub struct Tally(PerThread<Line>);

#[derive(Default)]
#[repr(align(64))]
struct Line(Count);

impl Tally {
    #[inline]
    pub fn add_one(&self) {
        let OfThread { counts, writer } = self.0.of_thread();
        counts.0.add(1, writer);
    }

    pub fn sum(&self) -> u64 {
        self.0.sum(|line| &line.0)
    }
}

/// A thread's counts of requests that have ended. Lines of memory that only it writes to.
#[derive(Default)]
#[repr(align(128))]
pub struct EndedRequests {
    by_cache: [Count; CACHE_STATUSES.len()],
    by_class: [Count; STATUS_CLASSES.len()],
    sent_bytes: Count,
    received_bytes: Count,
    spared_micros: Count,
    hit_micros: Count,
    miss_micros: Count,
    hits: [Count; HIT_BOUNDS.len() + 1],
    misses: [Count; WAIT_BOUNDS.len() + 1],
}

/// A request that has ended, as far as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct EndedRequest {
    /// One of [`CACHE_STATUSES`].
    pub cache: usize,
    pub status: u16,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// How long the stored response took that was the answer.
    pub spared_micros: u64,
}

impl OfThread<'_, EndedRequests> {
    #[inline]
    pub fn note(&self, ended: EndedRequest) {
        // The writer's kind is asked for once.
        match self.writer {
            Writer::OneThread => self.counts.note(ended, Writer::OneThread),
            Writer::Several => self.counts.note(ended, Writer::Several),
        }
    }

    /// Counts a hit that was timed and stands for `hits` hits.
    #[inline]
    pub fn note_hits(&self, took: Duration, hits: u64) {
        let at = numbers::bucket(HIT_BOUNDS, took.as_secs_f64());
        self.counts.hits[at].add(hits, self.writer);
        let micros = micros(took).saturating_mul(hits);
        self.counts.hit_micros.add(micros, self.writer);
    }

    /// A request waited for an upstream.
    pub fn note_miss(&self, took: Duration) {
        let at = numbers::bucket(WAIT_BOUNDS, took.as_secs_f64());
        self.counts.misses[at].add(1, self.writer);
        self.counts.miss_micros.add(micros(took), self.writer);
    }
}

impl EndedRequests {
    #[inline(always)]
    fn note(&self, ended: EndedRequest, writer: Writer) {
        if let Some(count) = self.by_cache.get(ended.cache) {
            count.add(1, writer);
        }
        let class = self.by_class.get(usize::from(ended.status / 100));
        class.unwrap_or(&self.by_class[0]).add(1, writer);
        self.sent_bytes.add(ended.sent_bytes, writer);
        self.received_bytes.add(ended.received_bytes, writer);
        self.spared_micros.add(ended.spared_micros, writer);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The sums over all threads.
impl PerThread<EndedRequests> {
    /// By [`CACHE_STATUSES`].
    pub fn by_cache(&self) -> impl Iterator<Item = u64> {
        (0..CACHE_STATUSES.len()).map(|at| self.sum(|counts| &counts.by_cache[at]))
    }

    /// By [`STATUS_CLASSES`].
    pub fn by_class(&self) -> impl Iterator<Item = u64> {
        (0..STATUS_CLASSES.len()).map(|at| self.sum(|counts| &counts.by_class[at]))
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sum(|counts| &counts.sent_bytes)
    }

    pub fn received_bytes(&self) -> u64 {
        self.sum(|counts| &counts.received_bytes)
    }

    pub fn spared(&self) -> Duration {
        Duration::from_micros(self.sum(|counts| &counts.spared_micros))
    }

    pub fn hits(&self) -> Distribution {
        let buckets = (0..=HIT_BOUNDS.len()).map(|at| self.sum(|counts| &counts.hits[at]));
        let sum = self.sum(|counts| &counts.hit_micros);
        Distribution::new(buckets.collect(), sum as f64 / 1e6)
    }

    pub fn misses(&self) -> Distribution {
        let buckets = (0..=WAIT_BOUNDS.len()).map(|at| self.sum(|counts| &counts.misses[at]));
        let sum = self.sum(|counts| &counts.miss_micros);
        Distribution::new(buckets.collect(), sum as f64 / 1e6)
    }
}

impl PerThread<Mutex<PagesOfThread>> {
    /// Returns the pages that all threads have seen, at `now`.
    pub fn first(&self, now: u64) -> Pages {
        let guards: Vec<_> = self.all().map(|pages| pages.lock()).collect();
        Pages {
            costly: first_of(guards.iter().map(|it| &it.costly), now),
            wanted: first_of(guards.iter().map(|it| &it.wanted), now),
            not_stored: first_of(guards.iter().map(|it| &it.not_stored), now),
            noisy: Vec::new(),
            clients: Vec::new(),
            uses: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_count_at_once_is_all_there() {
        let (tally, ended) = (Tally::default(), PerThread::<EndedRequests>::default());
        let threads = THREADS + 8;
        let ready = std::sync::Barrier::new(threads);
        let request = EndedRequest {
            cache: 6,
            status: 200,
            sent_bytes: 10,
            received_bytes: 3,
            spared_micros: 5,
        };
        let count = || {
            ready.wait();
            for _ in 0..1000 {
                tally.add_one();
                ended.of_thread().note(request);
            }
            ended.of_thread().note_hits(Duration::from_micros(20), 4);
            ended.of_thread().note_miss(Duration::from_millis(20));
        };
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| drop(scope.spawn(count)));
        });
        let all = 1000 * threads as u64;
        assert_eq!(tally.sum(), all);
        assert!(tally.0.others.0.read() > 0, "some had no line");
        assert_eq!(
            ended.by_cache().collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 0, all, 0]
        );
        assert_eq!(ended.by_class().collect::<Vec<_>>(), [0, 0, all, 0, 0, 0]);
        assert_eq!(ended.sent_bytes(), 10 * all);
        assert_eq!(ended.received_bytes(), 3 * all);
        assert_eq!(ended.spared(), Duration::from_micros(5 * all));
        assert_eq!(
            (ended.hits().count, ended.misses().count),
            (4 * threads as u64, threads as u64)
        );
        assert_eq!(ended.hits().buckets[1], 4 * threads as u64);
        assert!((ended.hits().sum - 80e-6 * threads as f64).abs() < 1e-9);
    }

    #[test]
    fn a_status_that_is_none_has_a_class_of_its_own() {
        let ended = PerThread::<EndedRequests>::default();
        for status in [0, 9, 101, 206, 304, 499, 599, 600, 999] {
            ended.of_thread().note(EndedRequest {
                cache: 7,
                status,
                sent_bytes: 0,
                received_bytes: 0,
                spared_micros: 0,
            });
        }
        // 600 and 999, which an upstream may send, are in no class.
        assert_eq!(ended.by_class().collect::<Vec<_>>(), [4, 1, 1, 1, 1, 1]);
    }
}
