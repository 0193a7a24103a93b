//! Records that wait for the writer: bounded in number and in bytes. A record that does not fit is dropped, and comes
//! again when it is used again.

use crate::config::WRITE_RETRY;
use crate::parts::TierParts;
use crate::record::NewRecord;
use crate::writer::SegmentWriter;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MAX_WAITING: usize = 8192;
const MAX_WAITING_BYTES: usize = 64 << 20;
/// How often the writer does its periodic work, while nothing is written.
const TICK: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct WaitingRecords {
    records: VecDeque<NewRecord>,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct WriteQueue {
    waiting: Mutex<WaitingRecords>,
    wake: Condvar,
    writer: Mutex<SegmentWriter>,
}

fn bytes_of(record: &NewRecord) -> usize {
    record.key.len() + record.head.len() + record.body.len()
}

impl WriteQueue {
    pub(crate) fn new(writer: SegmentWriter) -> WriteQueue {
        WriteQueue {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            writer: Mutex::new(writer),
        }
    }

    /// The writer itself, for threads that may wait.
    pub(crate) fn writer(&self) -> &Mutex<SegmentWriter> {
        &self.writer
    }

    /// Takes a record if there is room.
    pub(crate) fn push(&self, record: NewRecord) -> bool {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + bytes_of(&record);
        if waiting.records.len() >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            return false;
        }
        waiting.bytes = bytes;
        waiting.records.push_back(record);
        drop(waiting);
        self.wake.notify_one();
        true
    }

    fn pop(&self) -> Option<NewRecord> {
        let mut waiting = self.waiting.lock();
        let record = waiting.records.pop_front()?;
        waiting.bytes -= bytes_of(&record);
        Some(record)
    }

    /// Writes the waiting records until a time.
    pub(crate) fn drain_until(&self, parts: &TierParts, until: Instant) {
        while Instant::now() < until
            && let Some(record) = self.pop()
        {
            if parts.health.may_write(parts.boot_millis()) {
                // The health of the tier has the reason for a refusal.
                let _ = self.writer.lock().append(parts, &record);
            }
        }
    }

    /// Writes until the tier is closed.
    pub(crate) fn run(&self, parts: &TierParts) {
        let mut ticked = parts.boot_millis();
        while !parts.health.is_closed() {
            self.drain_until(parts, Instant::now() + TICK);
            let tick = match parts.health.is_write_stopped() {
                true => WRITE_RETRY,
                false => TICK,
            };
            let now = parts.boot_millis();
            if u128::from(now.saturating_sub(ticked)) >= tick.as_millis() {
                self.writer.lock().tick(parts);
                ticked = now;
            }
            let mut waiting = self.waiting.lock();
            if waiting.records.is_empty() && !parts.health.is_closed() {
                self.wake.wait_for(&mut waiting, tick);
            }
        }
    }

    /// Wakes the writer, which finds the tier closed.
    pub(crate) fn close(&self) {
        let _waiting = self.waiting.lock();
        self.wake.notify_all();
    }
}
