//! Requests that wait in line for a server with room, a line for each rank of [`Class`].
//!
//! A lease is handed to a waiter before it wakes (the slot never becomes free in between), so that
//! no other request can overtake and exactly one waiter wakes per slot. A waiter that goes away
//! leaves the line; a lease already handed to it is dropped with its channel, which frees the slot
//! for the next one. When a visitor comes to wait for what stands in line as a refresh or a fragment,
//! the waiter moves to the line of visitors ([`Ticket::raise`]).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::class::{Class, LINES, MAX_PASSED_OVER};
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

/// The lines themselves, each ordered by ticket number.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: [Line; LINES],
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct Line {
    waiters: BTreeMap<u64, Waiter>,
    /// Slots that went to lines before this one while requests waited in it.
    passed_over: usize,
}

/// How far a search through the lines has come.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// By line: the first ticket not looked at.
    from: [u64; LINES],
    /// By line: no request in it can be served now.
    pub is_over: [bool; LINES],
}

impl Queue {
    /// How many wait in the line of `class`.
    pub fn len_of(&self, class: Class) -> usize {
        self.lines[class.line()].waiters.len()
    }

    /// How many of them are on behalf of this client.
    pub fn len_of_client(&self, class: Class, client: Option<IpAddr>) -> usize {
        let waiters = self.lines[class.line()].waiters.values();
        waiters.filter(|it| it.client_addr == client).count()
    }

    pub fn join(&mut self, waiter: Waiter) -> u64 {
        let number = self.next_ticket;
        self.next_ticket += 1;
        let line = &mut self.lines[waiter.class.line()];
        if line.waiters.is_empty() {
            line.passed_over = 0;
        }
        line.waiters.insert(number, waiter);
        number
    }

    pub fn leave(&mut self, number: u64) -> Option<Waiter> {
        let mut lines = self.lines.iter_mut();
        lines.find_map(|line| line.waiters.remove(&number))
    }

    /// Takes a waiter whose turn has come.
    pub fn take(&mut self, number: u64) -> Option<Waiter> {
        let taken = self.leave(number)?;
        let own = taken.class.line();
        self.lines[own].passed_over = 0;
        for line in &mut self.lines[own + 1..] {
            if !line.waiters.is_empty() {
                line.passed_over += 1;
            }
        }
        Some(taken)
    }

    /// Moves a waiter to the end of the line of `class`, if it still waits: its new number.
    pub fn raise(&mut self, number: u64, class: Class) -> Option<u64> {
        let waiter = self.leave(number)?;
        Some(self.join(Waiter { class, ..waiter }))
    }

    /// The next to look at: the first of the first line, unless one behind it was passed over
    /// for long enough.
    pub fn next(&self, search: &mut Search) -> Option<(u64, &Waiter)> {
        let due = (1..LINES).find(|&line| self.lines[line].passed_over >= MAX_PASSED_OVER);
        for line in due.into_iter().chain(0..LINES) {
            if search.is_over[line] {
                continue;
            }
            let mut waiters = self.lines[line].waiters.range(search.from[line]..);
            if let Some((number, waiter)) = waiters.next() {
                search.from[line] = number + 1;
                return Some((*number, waiter));
            }
            search.is_over[line] = true;
        }
        None
    }
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
