//! Purges that wait for the disk. One thread takes all that wait, syncs once, and answers all their callers.
//!
//! Purges that the disk refuses go on waiting, and are tried again. Purges that found no room meanwhile are nowhere:
//! the next file of the journal declares records from before void.

use super::writer::JournalWriter;
use crate::config::JOURNAL_RETRY;
use crate::purge::{
    LogPosition, MAX_TARGET_BYTES, PurgeNotWritten, PurgeOutcome, PurgeTicket, TicketState,
    WrittenPurge,
};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::oneshot;

/// Purges that may wait; the disk syncs thousands a second.
const MAX_WAITING: usize = 65_536;
/// The bound of all waiting targets together.
const MAX_WAITING_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
struct WaitingPurges {
    purges: Vec<WrittenPurge>,
    tickets: Vec<oneshot::Sender<PurgeOutcome>>,
    bytes: usize,
    /// It is written behind the purges: those up to it are among them, or were written before.
    position: Option<LogPosition>,
    /// The highest stamp of those that found no room.
    lost: u64,
    is_closed: bool,
}

impl WaitingPurges {
    fn is_empty(&self) -> bool {
        self.purges.is_empty() && self.position.is_none() && self.lost == 0
    }

    fn take(&mut self) -> WaitingPurges {
        let is_closed = self.is_closed;
        let none = WaitingPurges {
            is_closed,
            ..WaitingPurges::default()
        };
        std::mem::replace(self, none)
    }

    /// Puts purges before those that came meanwhile.
    fn put_back(&mut self, mut before: WaitingPurges) {
        before.purges.append(&mut self.purges);
        before.tickets.append(&mut self.tickets);
        self.purges = before.purges;
        self.tickets = before.tickets;
        self.bytes += before.bytes;
        self.position = self.position.take().or(before.position);
        self.lost = self.lost.max(before.lost);
    }
}

#[derive(Debug)]
pub(crate) struct JournalQueue {
    waiting: Mutex<WaitingPurges>,
    wake: Condvar,
    /// Locked for as long as the disk takes.
    writer: Mutex<JournalWriter>,
    syncs: AtomicU64,
}

impl JournalQueue {
    pub(crate) fn new(writer: JournalWriter) -> JournalQueue {
        JournalQueue {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            writer: Mutex::new(writer),
            syncs: AtomicU64::new(0),
        }
    }

    /// The journal itself, for threads that may wait.
    pub(crate) fn writer(&self) -> &Mutex<JournalWriter> {
        &self.writer
    }

    pub(crate) fn append(&self, purge: &WrittenPurge) -> PurgeTicket {
        if purge.target.len() > MAX_TARGET_BYTES {
            return PurgeTicket::ready(Err(PurgeNotWritten::TooLong));
        }
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return PurgeTicket::ready(Err(PurgeNotWritten::Closed));
        }
        let bytes = waiting.bytes + purge.target.len();
        if waiting.purges.len() >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            waiting.lost = waiting.lost.max(purge.stamp);
            return PurgeTicket::ready(Err(PurgeNotWritten::QueueFull));
        }
        let (sender, receiver) = oneshot::channel();
        waiting.bytes = bytes;
        waiting.purges.push(purge.clone());
        waiting.tickets.push(sender);
        drop(waiting);
        self.wake.notify_one();
        PurgeTicket(TicketState::Waiting(receiver))
    }

    /// Writes a position down, behind all purges that wait. A later one takes its place.
    pub(crate) fn note_position(&self, position: LogPosition) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_closed && position.log.len() <= MAX_TARGET_BYTES {
            waiting.position = Some(position);
            drop(waiting);
            self.wake.notify_one();
        }
    }

    /// Writes the waiting purges, and returns their number.
    ///
    /// # Errors
    /// The disk refuses. They go on waiting, unless the queue is closed.
    pub(crate) fn commit(&self) -> io::Result<usize> {
        let batch = self.waiting.lock().take();
        if batch.is_empty() {
            return Ok(0);
        }
        let mut writer = self.writer.lock();
        let done = writer.commit(&batch.purges, batch.position.as_ref(), batch.lost);
        self.syncs.store(writer.syncs, Relaxed);
        drop(writer);
        if let Err(error) = &done {
            let mut waiting = self.waiting.lock();
            if !waiting.is_closed {
                waiting.put_back(batch);
                return Err(io::Error::new(error.kind(), error.to_string()));
            }
        }
        for ticket in batch.tickets {
            let outcome = done.as_ref().copied();
            // A caller whose end is gone made the purge without waiting.
            let _ =
                ticket.send(outcome.map_err(|error| PurgeNotWritten::Failed(error.to_string())));
        }
        done.map(|()| batch.purges.len())
    }

    /// Waits until refused purges may be tried again.
    pub(crate) fn wait_to_retry(&self) {
        let until = Instant::now() + JOURNAL_RETRY;
        let mut waiting = self.waiting.lock();
        while !waiting.is_closed && !self.wake.wait_until(&mut waiting, until).timed_out() {}
    }

    /// Waits for purges. `false`: the queue was closed, and nothing waits any more.
    pub(crate) fn wait(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.is_empty() {
            if waiting.is_closed {
                return false;
            }
            self.wake.wait(&mut waiting);
        }
        true
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    /// No more purges are taken.
    pub(crate) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.wake.notify_all();
    }
}
