//! Requests that wait in line for a server with room.
//!
//! A lease is handed to a waiter before it wakes (the slot never becomes free
//! in between), so nobody can overtake and exactly one waiter wakes per slot.
//! A waiter that goes away leaves the line; a lease already handed to it is
//! dropped with its channel, which frees the slot for the next one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::group::{AcquireError, Group};
use crate::idle::Place;
use crate::lease::Lease;
use crate::{Millis, TriedSet};

/// How often a waiter looks for a server that came back from failure: that
/// happens by the passing of time alone, so nobody would wake the line.
const RECHECK: Duration = Duration::from_secs(1);

/// A place in line, with all that is needed to choose a server later.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub client_addr: Option<IpAddr>,
    pub hash_key: Option<Box<[u8]>>,
    pub place: Place,
    pub tried: TriedSet,
    pub lease_to: oneshot::Sender<Lease>,
}

/// The line itself, ordered by ticket number.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiters: BTreeMap<u64, Waiter>,
    next_ticket: u64,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn join(&mut self, waiter: Waiter) -> u64 {
        let number = self.next_ticket;
        self.next_ticket += 1;
        self.waiters.insert(number, waiter);
        number
    }

    pub fn leave(&mut self, number: u64) -> Option<Waiter> {
        self.waiters.remove(&number)
    }

    /// The first waiter at or behind `number`.
    pub fn at_or_behind(&self, number: u64) -> Option<(u64, &Waiter)> {
        let (number, waiter) = self.waiters.range(number..).next()?;
        Some((*number, waiter))
    }
}

/// The waiting side of a place in line. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct Ticket {
    group: Arc<Group>,
    number: u64,
    lease_from: oneshot::Receiver<Lease>,
    is_settled: bool,
    joined_at: Millis,
}

impl Ticket {
    pub fn new(
        group: Arc<Group>,
        number: u64,
        lease_from: oneshot::Receiver<Lease>,
        joined_at: Millis,
    ) -> Self {
        Self {
            group,
            number,
            lease_from,
            is_settled: false,
            joined_at,
        }
    }

    /// Waits for a lease, `timeout` at most.
    pub async fn wait(mut self, timeout: Duration) -> Result<Lease, AcquireError> {
        let began = Instant::now();
        let deadline = began + timeout;
        loop {
            let pause = deadline.min(Instant::now() + RECHECK);
            // The lease first: at the deadline, one that has arrived counts.
            if let Ok(handed) = tokio::time::timeout_at(pause, &mut self.lease_from).await {
                return self.settle(handed);
            }
            if Instant::now() < deadline {
                let waited = began.elapsed().as_millis() as Millis;
                self.group.sweep(self.joined_at.saturating_add(waited));
            } else if self.group.withdraw(self.number) {
                self.is_settled = true;
                return Err(AcquireError::QueueTimeout);
            } else {
                // Already taken out of the line: the lease is on its way.
                let handed = (&mut self.lease_from).await;
                return self.settle(handed);
            }
        }
    }

    fn settle(
        &mut self,
        handed: Result<Lease, oneshot::error::RecvError>,
    ) -> Result<Lease, AcquireError> {
        self.is_settled = true;
        // The group keeps the sender until it has sent, and this ticket keeps
        // the group: the error cannot happen, and has a sane meaning if it does.
        handed.map_err(|_| AcquireError::NoLiveUpstreams)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            self.group.withdraw(self.number);
        }
    }
}
