//! Streams of HTTP/2 and HTTP/3 that wait for their clients, of the whole server. A client decides
//! how long it takes a response in, and each stream that waits holds memory and may hold a file. So
//! both are bounded for all connections together: beyond the bound, the stream that has waited longest
//! gives way, which means that it is reset.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::held_files;

/// The memory of a waiting stream beside the bytes of its body: its request, its task, its places in
/// tables: 5 KB measured with 7,200 streams, and a task of HTTP/3 has more.
pub const STREAM_BYTES: usize = 8 * 1024;
/// The bytes of a body that a client must take in each `send_timeout` while a stream waits: a byte now
/// and then does not keep a stream. It is less than the slowest connection in use takes.
pub const MIN_TAKEN_BYTES: usize = 4096;
/// All waiting streams may hold these bytes, or this part of the machine's memory, whichever is more.
const MIN_BYTES: u64 = 64 * 1024 * 1024;
const MEMORY_SHARE: u64 = 16;
/// They may hold this part of the files that the process may open: as many again are connections.
const DESCRIPTOR_SHARE: u64 = 4;

/// How much all waiting streams may hold.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub bytes: usize,
    pub files: usize,
}

impl Bounds {
    fn of_this_process() -> Bounds {
        let info = rustix::system::sysinfo();
        let memory = u64::from(info.mem_unit).saturating_mul(info.totalram);
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / DESCRIPTOR_SHARE;
        let clamp = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Bounds {
            bytes: clamp(MIN_BYTES.max(memory / MEMORY_SHARE)),
            files: clamp(files),
        }
    }
}

/// The memory that one stream holds while it waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamHoldings {
    /// Bytes of its body that are there for it alone.
    pub bytes: usize,
    /// A temporary file of its own.
    pub has_temporary_file: bool,
    /// A file that it may share with others ([`held_files`]).
    pub has_file: bool,
}

/// The streams that wait.
pub struct WaitingStreams {
    bounds: Bounds,
    state: Mutex<WaitState>,
}

#[derive(Default)]
struct WaitState {
    /// The one that has waited longest first.
    streams: BTreeMap<WaitPosition, WaitingStream>,
    next: u64,
    bytes: usize,
    temporary_files: usize,
}

/// The start of a stream's wait, and a number that no other stream has.
type WaitPosition = (Instant, u64);

struct WaitingStream {
    held: StreamHoldings,
    gives_way: Arc<Notify>,
}

/// A stream that waits, until this is dropped.
pub struct Wait<'a> {
    list: &'a WaitingStreams,
    place: WaitPosition,
    gives_way: Arc<Notify>,
}

/// Returns the waiting streams of this process.
pub fn of_this_process() -> &'static WaitingStreams {
    static STREAMS: LazyLock<WaitingStreams> =
        LazyLock::new(|| WaitingStreams::new(Bounds::of_this_process()));
    &STREAMS
}

impl WaitingStreams {
    pub fn new(bounds: Bounds) -> WaitingStreams {
        WaitingStreams {
            bounds,
            state: Mutex::default(),
        }
    }

    /// A stream waits, and has since `since`. Others give way if that is too much.
    pub fn enter(&self, since: Instant, held: StreamHoldings) -> Wait<'_> {
        let gives_way = Arc::new(Notify::new());
        let mut state = self.state.lock();
        let place = (since, state.next);
        state.next += 1;
        state.add(place, held, gives_way.clone());
        while state.bytes > self.bounds.bytes {
            let Some((&oldest, _)) = state.streams.first_key_value() else {
                break;
            };
            state.tell(oldest);
        }
        let has_file = held.has_file || held.has_temporary_file;
        if has_file && held_files::count() + state.temporary_files > self.bounds.files {
            let mut streams = state.streams.iter();
            let with_file = streams.find(|(_, stream)| stream.held.holds_file());
            if let Some(oldest) = with_file.map(|(place, _)| *place) {
                state.tell(oldest);
            }
        }
        drop(state);
        Wait {
            list: self,
            place,
            gives_way,
        }
    }
}

impl StreamHoldings {
    fn holds_file(&self) -> bool {
        self.has_file || self.has_temporary_file
    }
}

impl WaitState {
    fn add(&mut self, place: WaitPosition, held: StreamHoldings, gives_way: Arc<Notify>) {
        self.bytes += held.bytes + STREAM_BYTES;
        self.temporary_files += usize::from(held.has_temporary_file);
        self.streams
            .insert(place, WaitingStream { held, gives_way });
    }

    fn remove(&mut self, place: WaitPosition) -> Option<WaitingStream> {
        let stream = self.streams.remove(&place)?;
        self.bytes -= stream.held.bytes + STREAM_BYTES;
        self.temporary_files -= usize::from(stream.held.has_temporary_file);
        Some(stream)
    }

    /// Makes a stream give way. Its holdings count no more: it is about to be gone.
    fn tell(&mut self, place: WaitPosition) {
        if let Some(stream) = self.remove(place) {
            stream.gives_way.notify_one();
        }
    }
}

impl Wait<'_> {
    /// Resolves when the stream has to give way.
    pub async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.list.state.lock().remove(self.place);
    }
}

/// How long a client has kept a stream waiting since it last took [`MIN_TAKEN_BYTES`].
#[derive(Debug, Default)]
pub struct WaitedTime {
    waited: Duration,
    taken: usize,
}

impl WaitedTime {
    /// The client has taken bytes, or has room for them.
    pub fn note_taken(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken >= MIN_TAKEN_BYTES {
            *self = WaitedTime::default();
        }
    }

    /// The stream waits from now on, until the returned value is dropped.
    pub fn wait(&mut self) -> CountedWait<'_> {
        CountedWait {
            waited_time: self,
            began: Instant::now(),
        }
    }
}

/// A wait that counts, also one that is given up.
pub struct CountedWait<'a> {
    waited_time: &'a mut WaitedTime,
    began: Instant,
}

impl CountedWait<'_> {
    /// Returns when a wait without a break would have begun that is as long by now.
    pub fn since(&self) -> Instant {
        let waited = self.waited_time.waited;
        self.began.checked_sub(waited).unwrap_or(self.began)
    }
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.waited_time.waited += self.began.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// Returns which of these streams must give way.
    fn giving_way(waits: &[Wait<'_>]) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (nth, wait) in waits.iter().enumerate() {
            let mut gives_way = Box::pin(wait.gives_way());
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            if gives_way.as_mut().poll(&mut cx).is_ready() {
                numbers.push(nth);
            }
        }
        numbers
    }

    #[test]
    fn the_stream_that_has_waited_longest_gives_way_to_bytes() {
        let bounds = Bounds {
            bytes: 3 * (STREAM_BYTES + 1000),
            files: 0,
        };
        let (list, start) = (WaitingStreams::new(bounds), Instant::now());
        let held = StreamHoldings {
            bytes: 1000,
            ..StreamHoldings::default()
        };
        let mut waits: Vec<_> = [5, 2, 9, 7, 8]
            .map(|seconds| list.enter(at(start, seconds), held))
            .into();
        assert_eq!(giving_way(&waits), [0, 1]);
        assert_eq!(list.state.lock().bytes, bounds.bytes);
        waits.clear();
        let state = list.state.lock();
        assert_eq!((state.bytes, state.streams.len()), (0, 0));
    }

    #[test]
    fn streams_give_way_to_files_only_where_they_hold_one() {
        let bounds = Bounds {
            bytes: usize::MAX,
            files: 1,
        };
        let (list, start) = (WaitingStreams::new(bounds), Instant::now());
        let file = StreamHoldings {
            has_temporary_file: true,
            ..StreamHoldings::default()
        };
        let waits = [
            list.enter(start, StreamHoldings::default()),
            list.enter(at(start, 1), file),
            list.enter(at(start, 2), StreamHoldings::default()),
        ];
        assert_eq!(giving_way(&waits), [0; 0]);
        let later = list.enter(at(start, 3), file);
        assert_eq!(giving_way(&waits), [1]);
        assert_eq!(giving_way(&[later]), [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_bytes_do_not_shorten_a_wait_and_enough_of_them_do() {
        let mut waited_time = WaitedTime::default();
        let second = Duration::from_secs(1);
        for _ in 0..10 {
            let wait = waited_time.wait();
            tokio::time::sleep(second).await;
            drop(wait);
            waited_time.note_taken(MIN_TAKEN_BYTES / 11);
        }
        assert_eq!(waited_time.waited, 10 * second);
        let now = Instant::now();
        assert_eq!(waited_time.wait().since(), now - 10 * second);
        waited_time.note_taken(MIN_TAKEN_BYTES / 5);
        assert_eq!(waited_time.waited, Duration::ZERO);
    }
}
