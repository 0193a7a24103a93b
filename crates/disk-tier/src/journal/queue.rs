//! Purges that wait for the disk. One thread takes all that wait, syncs once, and tells all who said them.

use super::writer::JournalWriter;
use crate::purge::{
    PurgeNotWritten, PurgeOutcome, PurgeTicket, TARGET_BYTES_MAX, TicketState, WrittenPurge,
};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;

/// Purges that may wait; the disk syncs thousands a second.
const WAITING_MAX: usize = 65_536;
/// What their targets may take.
const WAITING_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Default)]
struct WaitingPurges {
    purges: Vec<WrittenPurge>,
    tickets: Vec<oneshot::Sender<PurgeOutcome>>,
    bytes: usize,
    is_closed: bool,
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
        if purge.target.len() > TARGET_BYTES_MAX {
            return PurgeTicket::ready(Err(PurgeNotWritten::TooLong));
        }
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return PurgeTicket::ready(Err(PurgeNotWritten::Closed));
        }
        let bytes = waiting.bytes + purge.target.len();
        if waiting.purges.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX {
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

    /// Writes what waits now, and says how many purges that were.
    pub(crate) fn commit(&self) -> Result<usize, PurgeNotWritten> {
        let batch = {
            let mut waiting = self.waiting.lock();
            let is_closed = waiting.is_closed;
            std::mem::replace(
                &mut *waiting,
                WaitingPurges {
                    is_closed,
                    ..WaitingPurges::default()
                },
            )
        };
        if batch.purges.is_empty() {
            return Ok(0);
        }
        let mut writer = self.writer.lock();
        let done = writer.commit(&batch.purges);
        self.syncs.store(writer.syncs, Relaxed);
        drop(writer);
        let outcome = done.map_err(|error| PurgeNotWritten::Failed(error.to_string()));
        for ticket in batch.tickets {
            // Where the other side is gone, the purge was said without waiting.
            let _ = ticket.send(outcome.clone());
        }
        outcome.map(|()| batch.purges.len())
    }

    /// Waits for purges. `false`: the queue was closed, and nothing waits any more.
    pub(crate) fn wait(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.purges.is_empty() {
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
