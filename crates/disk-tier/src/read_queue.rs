//! Reads that need the disk: a few threads take them from a bounded queue.

use crate::parts::{TierParts, count};
use crate::reader::{ReadMode, read_record};
use crate::record::{ReadNow, RecordBytes, RecordPlace};
use crate::state::TierEvent;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Reads that may wait: at 100 us each, two threads have done them in 50 ms.
const MAX_WAITING: usize = 1024;

#[derive(Debug)]
struct ReadRequest {
    place: RecordPlace,
    key: Bytes,
    sender: oneshot::Sender<Option<Box<RecordBytes>>>,
}

#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    waiting: Mutex<VecDeque<ReadRequest>>,
    wake: Condvar,
}

/// A read by a thread. Resolves to nothing if the record is not there, another one, or damaged.
#[derive(Debug)]
pub struct RecordTicket {
    receiver: oneshot::Receiver<Option<Box<RecordBytes>>>,
    parts: Arc<TierParts>,
}

impl RecordTicket {
    /// The caller has waited for as long as it may. Ten of these in a row let the tier rest.
    pub fn give_up(self) {
        count(&self.parts.counters.reads_given_up);
        if self.parts.health.note_slow(self.parts.boot_millis()) {
            self.parts.say(TierEvent::Resting);
        }
    }

    /// Waits for the disk; for threads that may.
    #[must_use]
    pub fn wait(self) -> Option<Box<RecordBytes>> {
        self.receiver.blocking_recv().ok().flatten()
    }
}

impl Future for RecordTicket {
    type Output = Option<Box<RecordBytes>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|outcome| outcome.ok().flatten())
    }
}

impl ReadQueue {
    /// Asks for a read. If too many wait, the ticket resolves to nothing at once.
    pub(crate) fn ask(
        &self,
        parts: &Arc<TierParts>,
        place: RecordPlace,
        key: Bytes,
    ) -> RecordTicket {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.len() < MAX_WAITING && !parts.health.is_closed() {
            waiting.push_back(ReadRequest { place, key, sender });
            drop(waiting);
            self.wake.notify_one();
        }
        RecordTicket {
            receiver,
            parts: Arc::clone(parts),
        }
    }

    /// Answers reads until the tier is closed.
    pub(crate) fn run(&self, parts: &TierParts) {
        while let Some(request) = self.next(parts) {
            answer(parts, request);
        }
    }

    fn next(&self, parts: &TierParts) -> Option<ReadRequest> {
        let mut waiting = self.waiting.lock();
        loop {
            if parts.health.is_closed() {
                waiting.clear();
                return None;
            }
            // Abandoned requests are not read.
            match waiting.pop_front() {
                Some(request) if request.sender.is_closed() => {}
                Some(request) => return Some(request),
                None => self.wake.wait(&mut waiting),
            }
        }
    }

    /// Wakes the threads, which find the tier closed.
    pub(crate) fn close(&self) {
        let _waiting = self.waiting.lock();
        self.wake.notify_all();
    }
}

fn answer(parts: &TierParts, request: ReadRequest) {
    count(&parts.counters.reads_by_threads);
    let record = match read_record(parts, request.place, &request.key, ReadMode::Waiting) {
        ReadNow::Record(record) => Some(record),
        ReadNow::NotInMemory | ReadNow::Missing => None,
    };
    if request.sender.send(record).is_ok() {
        parts.health.note_in_time();
    }
}
