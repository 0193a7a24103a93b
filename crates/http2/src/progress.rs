//! Whether a client takes the bytes sent to it.

use std::time::Instant;

use crate::bounds::MIN_PROGRESS_BYTES;

/// When enough was last sent to count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) at: Instant,
    /// Bytes that were sent since, too few to count so far.
    bytes: usize,
}

impl Progress {
    pub(crate) fn new(now: Instant) -> Progress {
        Progress { at: now, bytes: 0 }
    }

    /// Notes bytes of bodies that were sent.
    #[inline]
    pub(crate) fn note(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes;
        if self.bytes >= MIN_PROGRESS_BYTES {
            *self = Progress::new(now);
        }
    }
}
