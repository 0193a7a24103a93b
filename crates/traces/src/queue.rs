//! The queue of finished spans: requests put them in and go on; the thread that sends takes them
//! out in batches.
//!
//! ```text
//!   empty ─ first span ─► filling ─ a batch is full, its time is up, or the end ─► taken
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::span::Span;

/// However long their values are, waiting spans take no more memory than this.
const MAX_BYTES: usize = 8 << 20;

/// The numbers of spans sent and lost. They outlive exporters.
#[derive(Debug, Default)]
pub struct Counts {
    /// The collector has taken them.
    pub sent: AtomicU64,
    /// There was no room in the queue.
    pub dropped: AtomicU64,
    /// The collector could not be reached for too long, or refused them.
    pub failed: AtomicU64,
}

pub struct Queue {
    state: Mutex<QueueState>,
    /// Spans in one batch.
    batch_size: usize,
    /// Spans that may wait.
    max_spans: usize,
    /// The longest time that a span waits for its batch to be full.
    interval: Duration,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    spans: VecDeque<Span>,
    bytes: usize,
    /// When the oldest one came.
    waiting_since: Option<Instant>,
    /// The deadline for sending the rest; set when the queue was closed.
    closes_at: Option<Instant>,
}

impl Queue {
    pub fn new(batch_size: usize, batch_count: usize, interval: Duration) -> Queue {
        Queue {
            state: Mutex::default(),
            batch_size: batch_size.max(1),
            max_spans: batch_size.max(1).saturating_mul(batch_count.max(1)),
            interval,
            changed: Notify::new(),
        }
    }

    /// Puts spans in that belong together. Gives how many had no room: all or none.
    pub fn put(&self, spans: Vec<Span>) -> usize {
        let (count, bytes) = (spans.len(), spans.iter().map(Span::bytes).sum::<usize>());
        let mut state = self.state.lock();
        let before = state.spans.len();
        let is_over = before + count > self.max_spans || state.bytes + bytes > MAX_BYTES;
        // More spans than fit go together where there is nothing else.
        if is_over && before > 0 {
            return count;
        }
        state.bytes += bytes;
        state.spans.extend(spans);
        state.waiting_since.get_or_insert_with(Instant::now);
        let fills_batch = before < self.batch_size && state.spans.len() >= self.batch_size;
        drop(state);
        if before == 0 || fills_batch {
            self.changed.notify_one();
        }
        0
    }

    /// Closes the queue: no spans follow, and those that wait have to be sent before `deadline`.
    pub fn close(&self, deadline: Instant) {
        let mut state = self.state.lock();
        let sooner = state
            .closes_at
            .map_or(deadline, |known| known.min(deadline));
        state.closes_at = Some(sooner);
        drop(state);
        self.changed.notify_one();
    }

    /// Until when all has to be sent, if this is the end.
    pub fn closes_at(&self) -> Option<Instant> {
        self.state.lock().closes_at
    }

    /// Ends when the queue is closed; it may end before that as well.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The next batch, once it is full or its time is up. `None`: closed, and nothing is left.
    pub async fn next(&self) -> Option<Vec<Span>> {
        loop {
            let due = {
                let mut state = self.state.lock();
                let is_due = |since: Instant| since.elapsed() >= self.interval;
                let is_closed = state.closes_at.is_some();
                if state.spans.is_empty() && is_closed {
                    return None;
                }
                let is_full = state.spans.len() >= self.batch_size;
                let waited = state.waiting_since.is_some_and(is_due);
                if !state.spans.is_empty() && (is_full || is_closed || waited) {
                    return Some(self.take(&mut state));
                }
                state.waiting_since.map(|since| since + self.interval)
            };
            match due {
                None => self.changed.notified().await,
                Some(due) => {
                    // Either is a reason to look again.
                    let _ = tokio::time::timeout_at(due, self.changed.notified()).await;
                }
            }
        }
    }

    fn take(&self, state: &mut QueueState) -> Vec<Span> {
        let count = state.spans.len().min(self.batch_size);
        let batch: Vec<Span> = state.spans.drain(..count).collect();
        let bytes: usize = batch.iter().map(Span::bytes).sum();
        state.bytes = state.bytes.saturating_sub(bytes);
        state.waiting_since = (!state.spans.is_empty()).then(Instant::now);
        batch
    }
}

impl Counts {
    pub(crate) fn add(count: &AtomicU64, more: usize) {
        count.fetch_add(more as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{SpanId, TraceContext, TraceId, TraceState};
    use crate::span::{Attribute, SpanKind};

    fn span(text: usize) -> Span {
        Span {
            context: TraceContext {
                trace_id: TraceId::new([1; 16]).expect("an id"),
                span_id: SpanId::new([1; 8]).expect("an id"),
                is_sampled: true,
            },
            state: TraceState::default(),
            parent: None,
            is_parent_remote: false,
            name: String::new(),
            kind: SpanKind::Internal,
            started_at: 0,
            ended_at: 0,
            attributes: vec![Attribute::text("a", "x".repeat(text))],
            links: Vec::new(),
            error: None,
        }
    }

    fn paused() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
    }

    #[test]
    fn spans_that_have_no_room_are_left_out_together() {
        let queue = Queue::new(3, 2, Duration::from_secs(5));
        assert_eq!(queue.put(vec![span(1), span(1), span(1), span(1)]), 0);
        assert_eq!(queue.put(vec![span(1), span(1), span(1)]), 3);
        assert_eq!(queue.put(vec![span(1), span(1)]), 0);
        assert_eq!(queue.put(vec![span(1)]), 1);
        let small = Queue::new(1, 1, Duration::from_secs(5));
        assert_eq!(
            small.put(vec![span(1), span(1)]),
            0,
            "there is nothing else"
        );
        assert_eq!(small.put(vec![span(1)]), 1);
    }

    #[test]
    fn long_values_are_bounded_by_their_bytes() {
        let queue = Queue::new(100_000, 10, Duration::from_secs(5));
        let fit = (0..).take_while(|_| queue.put(vec![span(1 << 20)]) == 0);
        assert_eq!(fit.count(), 7);
        let taken = queue.take(&mut queue.state.lock());
        assert_eq!(taken.len(), 7);
        assert_eq!(queue.state.lock().bytes, 0);
        assert_eq!(queue.put(vec![span(1 << 20)]), 0, "there is room again");
    }

    #[test]
    fn a_batch_leaves_when_it_is_full_or_its_time_is_up() {
        paused().block_on(async {
            let queue = Queue::new(2, 2, Duration::from_secs(5));
            queue.put(vec![span(1), span(1), span(1)]);
            let began = Instant::now();
            assert_eq!(queue.next().await.expect("a batch").len(), 2);
            assert_eq!(began.elapsed(), Duration::ZERO);
            assert_eq!(queue.next().await.expect("a batch").len(), 1);
            assert_eq!(began.elapsed(), Duration::from_secs(5));
        });
    }

    #[test]
    fn the_end_sends_what_is_left_at_once() {
        paused().block_on(async {
            let queue = Queue::new(10, 2, Duration::from_secs(5));
            queue.put(vec![span(1)]);
            let began = Instant::now();
            queue.close(began + Duration::from_secs(1));
            assert_eq!(queue.next().await.expect("a batch").len(), 1);
            assert!(queue.next().await.is_none());
            assert_eq!(began.elapsed(), Duration::ZERO);
        });
    }
}
