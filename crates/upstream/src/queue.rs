//! Requests that wait in line for a server with room, in the order of `fair_queue`.
//!
//! A lease is handed to a waiter before it wakes (the slot never becomes free in between), so that no
//! other request can overtake and exactly one waiter wakes per slot. A waiter that goes away leaves the
//! line; a lease already handed to it is dropped with its channel, which frees the slot for the next
//! one. When a visitor comes to wait for a request that stands in line as a refresh or a fragment, the
//! waiter moves to the line of visitors ([`Ticket::raise`]).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fair_queue::Class;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::group::{AcquireError, Group};
use crate::idle::ConnectionScope;
use crate::lease::Lease;
use crate::{Millis, TriedSet};

/// How often a waiter looks for a server that came back from failure: that happens by the passing
/// of time alone, without an event that would wake the line.
const RECHECK: Duration = Duration::from_secs(1);

/// A request in line, with all that is needed to choose a server later.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub class: Class,
    pub client_addr: Option<IpAddr>,
    pub hash_key: Option<Box<[u8]>>,
    pub scope: ConnectionScope,
    pub tried: TriedSet,
    pub lease_to: oneshot::Sender<Lease>,
}

/// The waiting side of a request in line. Dropping it leaves the line.
#[derive(Debug)]
pub struct Ticket {
    group: Arc<Group>,
    number: u64,
    class: Class,
    lease_from: oneshot::Receiver<Lease>,
    is_over: bool,
    joined_at: Millis,
    began: Instant,
    deadline: Instant,
}

impl Ticket {
    pub(crate) fn new(
        group: Arc<Group>,
        number: u64,
        class: Class,
        lease_from: oneshot::Receiver<Lease>,
        joined_at: Millis,
        timeout: Duration,
    ) -> Self {
        let began = Instant::now();
        Self {
            group,
            number,
            class,
            lease_from,
            is_over: false,
            joined_at,
            began,
            deadline: began + timeout,
        }
    }

    /// A request of `class` now waits for this one, which goes to the end of its line if that is
    /// served earlier.
    pub fn raise(&mut self, class: Class) {
        let raised = self.class.at_least(class);
        if raised != self.class {
            self.class = raised;
            if let Some(number) = self.group.raise(self.number, self.class) {
                self.number = number;
            }
        }
    }

    /// Waits for a lease, as long as the line's timeout allows. May be dropped and called again
    /// until it has answered.
    ///
    /// # Errors
    /// The deadline has passed.
    pub async fn wait(&mut self) -> Result<Lease, AcquireError> {
        loop {
            let pause = self.deadline.min(Instant::now() + RECHECK);
            // The lease first: at the deadline, one that has arrived counts.
            if let Ok(handed) = tokio::time::timeout_at(pause, &mut self.lease_from).await {
                return self.finish(handed);
            }
            if Instant::now() < self.deadline {
                let waited = self.began.elapsed().as_millis() as Millis;
                self.group.sweep(self.joined_at.saturating_add(waited));
            } else if self.group.withdraw(self.number) {
                self.is_over = true;
                let error = match self.class.is_background() {
                    true => AcquireError::LeftOut,
                    false => AcquireError::QueueTimeout,
                };
                self.group.counts.refused(error);
                return Err(error);
            } else {
                // Already taken out of the line: the lease is on its way.
                let handed = (&mut self.lease_from).await;
                return self.finish(handed);
            }
        }
    }

    fn finish(
        &mut self,
        handed: Result<Lease, oneshot::error::RecvError>,
    ) -> Result<Lease, AcquireError> {
        self.is_over = true;
        self.group.counts.waited(self.began.elapsed());
        // The group keeps the sender until it has sent, and this ticket keeps
        // the group: the error cannot happen, and has a sane meaning if it does.
        handed.map_err(|_| AcquireError::NoLiveUpstreams)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_over {
            self.group.withdraw(self.number);
        }
    }
}
