//! Counters of a group for the operator. The numbers are relaxed atomics beside the lock: a reader
//! may see one of two that belong together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use numbers::{Distribution, WaitTally};

use crate::group::AcquireError;
use crate::peer::Outcome;

/// The counters of a group since it was made.
#[derive(Debug, Default)]
pub struct Counts {
    outcomes: [AtomicU64; 3],
    refused: [AtomicU64; 4],
    waits: WaitTally,
    heads: WaitTally,
}

impl Counts {
    /// A request has ended.
    pub(crate) fn ended(&self, outcome: Outcome) {
        let at = match outcome {
            Outcome::Success => 0,
            Outcome::Failure => 1,
            Outcome::Neutral => 2,
        };
        self.outcomes[at].fetch_add(1, Relaxed);
    }

    /// A request got no server.
    pub(crate) fn refused(&self, error: AcquireError) {
        let at = match error {
            AcquireError::QueueFull | AcquireError::TurnFull => 0,
            AcquireError::QueueTimeout => 1,
            AcquireError::NoLiveUpstreams => 2,
            AcquireError::LeftOut => 3,
            // It has had its answer, from another server.
            AcquireError::Exhausted => return,
        };
        self.refused[at].fetch_add(1, Relaxed);
    }

    /// Notes how long a request waited for a server.
    pub(crate) fn waited(&self, time: Duration) {
        self.waits.note(time);
    }

    /// Notes how long a server took until the head of its response was there.
    pub(crate) fn note_head(&self, took: Duration) {
        self.heads.note(took);
    }

    /// Successes, failures, and results that are no evidence about the server.
    pub fn outcomes(&self) -> [u64; 3] {
        self.outcomes.each_ref().map(|count| count.load(Relaxed))
    }

    /// Requests that found the line full, waited too long, found no living server, or were left out
    /// because no visitor waited for them.
    pub fn refusals(&self) -> [u64; 4] {
        self.refused.each_ref().map(|count| count.load(Relaxed))
    }

    /// Returns how long requests waited for a server.
    pub fn waits(&self) -> Distribution {
        self.waits.read()
    }

    /// Returns how long servers took.
    pub fn heads(&self) -> Distribution {
        self.heads.read()
    }
}
