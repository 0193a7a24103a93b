//! Purges as callers see them: written down with a stamp, and confirmed when the disk has them.

use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The longest target of a purge.
pub const MAX_TARGET_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    Soft,
    Hard,
}

/// A purge as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenPurge {
    /// Records with an earlier stamp are purged, as far as the target names them.
    pub stamp: u64,
    pub mode: PurgeMode,
    /// The time of the purge, to be shown; no decision depends on it.
    pub wall_millis: u64,
    /// The target of the purge, in the caller's form; at most [`MAX_TARGET_BYTES`].
    pub target: Bytes,
}

/// How far the purges of a log that several machines share are written down: all up to `number`, and any other purges
/// that make up for those missed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The log's name; at most [`MAX_TARGET_BYTES`].
    pub log: Bytes,
    pub number: u64,
}

/// A purge that is made while no server has the folder. Its stamp is made by the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedPurge {
    pub mode: PurgeMode,
    pub target: Bytes,
}

/// The reason why a purge is not on the disk. It holds in memory, but not through a restart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PurgeNotWritten {
    /// The target is longer than [`MAX_TARGET_BYTES`].
    #[error("the purge's target is too long for the journal")]
    TooLong,
    /// More purges wait for the disk than the journal takes. It raises its floor above them as soon as it can.
    #[error("too many purges wait for the disk")]
    QueueFull,
    /// The disk refused, and the tier was closed before it took the purge.
    #[error("the journal cannot be written: {0}")]
    Failed(String),
    /// The tier was closed.
    #[error("the tier on disk is closed")]
    Closed,
}

pub type PurgeOutcome = Result<(), PurgeNotWritten>;

/// Resolves when the purge is synced to disk. Dropping it changes nothing: the purge is written all the same.
#[derive(Debug)]
pub struct PurgeTicket(pub(crate) TicketState);

#[derive(Debug)]
pub(crate) enum TicketState {
    Ready(PurgeOutcome),
    Waiting(oneshot::Receiver<PurgeOutcome>),
}

impl PurgeTicket {
    pub(crate) fn ready(outcome: PurgeOutcome) -> PurgeTicket {
        PurgeTicket(TicketState::Ready(outcome))
    }

    /// Waits for the disk; for threads that may.
    ///
    /// # Errors
    /// The reason why the purge is not on the disk.
    pub fn wait(self) -> PurgeOutcome {
        match self.0 {
            TicketState::Ready(outcome) => outcome,
            TicketState::Waiting(receiver) => receiver
                .blocking_recv()
                .unwrap_or(Err(PurgeNotWritten::Closed)),
        }
    }
}

impl Future for PurgeTicket {
    type Output = PurgeOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<PurgeOutcome> {
        match &mut self.0 {
            TicketState::Ready(outcome) => Poll::Ready(outcome.clone()),
            TicketState::Waiting(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|outcome| outcome.unwrap_or(Err(PurgeNotWritten::Closed))),
        }
    }
}
