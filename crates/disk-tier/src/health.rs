//! Whether the tier may be asked: a disk that refuses records is only read for a while, one that refuses purges or is slow
//! is left alone.

use crate::config::{REST, WRITE_RETRY};
use crate::state::TierState;
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Reads in a row that took too long, after which the tier rests.
const SLOW_READS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct TierHealth {
    /// The reason why writing has stopped.
    reason: Mutex<Option<String>>,
    is_write_stopped: AtomicBool,
    retry_at: AtomicU64,
    slow_in_row: AtomicU32,
    rests_until: AtomicU64,
    /// The reason why purges cannot be written.
    journal_reason: Mutex<Option<String>>,
    is_journal_failing: AtomicBool,
    is_closed: AtomicBool,
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl TierHealth {
    pub(crate) fn state(&self, now: u64) -> TierState {
        if self.is_closed() {
            TierState::Off
        } else if self.is_journal_failing() {
            TierState::JournalFailing(self.journal_reason.lock().clone().unwrap_or_default())
        } else if self.is_resting(now) {
            TierState::Resting
        } else if self.is_write_stopped() {
            TierState::ReadOnly(self.reason.lock().clone().unwrap_or_default())
        } else {
            TierState::Serving
        }
    }

    pub(crate) fn is_resting(&self, now: u64) -> bool {
        now < self.rests_until.load(Relaxed)
    }

    /// Whether the tier has rested since its start. Without, no clock need be read.
    pub(crate) fn may_rest(&self) -> bool {
        self.rests_until.load(Relaxed) != 0
    }

    /// Whether the last write was refused.
    pub(crate) fn is_write_stopped(&self) -> bool {
        self.is_write_stopped.load(Relaxed)
    }

    pub(crate) fn may_write(&self, now: u64) -> bool {
        let waits = self.is_write_stopped() && now < self.retry_at.load(Relaxed);
        !self.is_closed() && !waits
    }

    /// A write was refused; whether that is news.
    pub(crate) fn note_refused(&self, error: &io::Error, now: u64) -> bool {
        self.retry_at.store(now + millis(WRITE_RETRY), Relaxed);
        *self.reason.lock() = Some(error.to_string());
        !self.is_write_stopped.swap(true, Relaxed)
    }

    /// A write was taken; whether that is news.
    pub(crate) fn note_written(&self) -> bool {
        self.is_write_stopped() && self.is_write_stopped.swap(false, Relaxed)
    }

    /// A read took longer than its caller could wait; whether the tier rests from now on.
    pub(crate) fn note_slow(&self, now: u64) -> bool {
        let is_enough = self.slow_in_row.fetch_add(1, Relaxed) + 1 >= SLOW_READS;
        if is_enough {
            self.slow_in_row.store(0, Relaxed);
            self.rests_until.store(now + millis(REST), Relaxed);
        }
        is_enough
    }

    pub(crate) fn note_in_time(&self) {
        self.slow_in_row.store(0, Relaxed);
    }

    /// Purges were refused; whether that is news.
    pub(crate) fn note_journal_failed(&self, error: &io::Error) -> bool {
        *self.journal_reason.lock() = Some(error.to_string());
        !self.is_journal_failing.swap(true, SeqCst)
    }

    /// All purges are on the disk; whether that is news.
    pub(crate) fn note_journal_written(&self) -> bool {
        self.is_journal_failing() && self.is_journal_failing.swap(false, SeqCst)
    }

    pub(crate) fn is_journal_failing(&self) -> bool {
        self.is_journal_failing.load(SeqCst)
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }
}
