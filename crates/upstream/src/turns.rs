//! The group's side of fair turns: the state of turns under its lock, and the end of a lease's turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use fair_queue::{
    Class, ConcurrencyLimit, FairQueue, LINES, LimitReason, PhpUse, Search, Slots, StartedRequest,
    Turn, TurnUse,
};

use crate::Millis;
use crate::group::{Group, GroupState, hand_over};
use crate::peer::Peer;
use crate::queue::Waiter;
use crate::spec::TurnsSpec;

/// Classes, networks, programs and kinds of pages that are shown, of each.
const USES_OF_KIND: usize = 6;

/// The order of waiting requests, and the bound of those under way.
#[derive(Debug)]
pub(crate) struct Turns {
    pub queue: FairQueue<Waiter>,
    limit: Option<ConcurrencyLimit>,
    crawler_share: usize,
    /// The masters of PHP-FPM on this machine, by their servers.
    masters: BTreeMap<usize, Master>,
}

/// The master process of PHP-FPM that is a server.
#[derive(Clone, Copy, Debug)]
struct Master {
    pid: u32,
    /// The pool is our own: its socket is ours, and who listens there is not the master.
    is_own: bool,
}

/// The turn of a lease.
#[derive(Debug)]
pub(crate) struct TakenTurn {
    pub started: StartedRequest,
    pub began: Millis,
    /// The time to the head of the response.
    pub head_ms: Option<Millis>,
}

impl Turns {
    pub fn new(spec: Option<TurnsSpec>) -> Self {
        Self {
            queue: FairQueue::new(spec.is_some()),
            limit: spec.map(|spec| ConcurrencyLimit::new(spec.concurrency, None)),
            crawler_share: spec.map_or(100, |spec| spec.crawler_share),
            masters: BTreeMap::new(),
        }
    }

    /// Returns the bounds of the requests under way at these servers.
    pub fn slots(&self, peers: &[Peer]) -> Slots {
        Slots {
            workers: workers(peers),
            limit: self.limit.as_ref().map(ConcurrencyLimit::limit),
            crawler_share: self.crawler_share,
        }
    }

    /// The servers take another number of requests at once.
    pub fn set_workers(&mut self, peers: &[Peer]) {
        if let Some(limit) = &mut self.limit {
            // A count of zero, while a pool is being restarted, does not change the limit.
            limit.set_workers(workers(peers).filter(|workers| *workers > 0));
        }
    }

    /// Does the group tell requests apart by their clients?
    pub fn distinguishes_clients(&self) -> bool {
        self.limit.is_some()
    }

    /// The master processes of all servers that are asked; `None`: some are not known.
    fn masters(&self, peers: &[Peer]) -> Option<Vec<u32>> {
        let primaries = peers.iter().enumerate();
        let primaries = primaries.filter(|(_, peer)| !peer.is_backup && !peer.is_out());
        let masters = primaries.map(|(server, _)| Some(self.masters.get(&server)?.pid));
        let mut masters: Vec<u32> = masters.collect::<Option<_>>()?;
        masters.sort_unstable();
        masters.dedup();
        Some(masters)
    }

    /// Time has passed while requests wait.
    pub fn note_time(&mut self, now: Millis) {
        let has_waiting = !self.queue.is_empty();
        if let Some(limit) = self.limit.as_mut().filter(|_| has_waiting) {
            limit.note_waiting(self.queue.in_flight(), now);
        }
    }

    /// A request is over.
    pub fn end(&mut self, turn: TakenTurn, now: Millis) {
        let mut took = now.saturating_sub(turn.began);
        if turn.head_ms.is_none() {
            // Its client has left before, and the server may be at work for it all the same.
            took = took.max(turn.started.expected());
        }
        let is_awaited = !self.queue.is_empty();
        self.queue.end(turn.started, took, now);
        if let (Some(limit), Some(head_ms)) = (&mut self.limit, turn.head_ms) {
            limit.note(head_ms, is_awaited, now);
        }
    }

    /// The next request to look at.
    pub fn next(&self, peers: &[Peer], search: &mut Search, now: Millis) -> Option<(u64, &Waiter)> {
        self.queue.next(self.slots(peers), search, now)
    }
}

/// Returns how many requests the servers take at once; `None`: not known.
pub(crate) fn workers(peers: &[Peer]) -> Option<usize> {
    let primaries = peers
        .iter()
        .filter(|peer| !peer.is_backup && !peer.is_out());
    primaries.map(|peer| peer.max_conns).sum()
}

/// Turns at one moment, for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnsSnapshot {
    /// The limit in force, and why; `None`: no limit.
    pub limit: Option<(usize, LimitReason)>,
    /// Requests that the servers take at once.
    pub workers: Option<usize>,
    /// For each line: requests that wait, requests under way, milliseconds of PHP used.
    pub lines: [(usize, usize, u64); LINES],
    /// The clients that have used most in the last minute.
    pub top: Vec<TurnUse>,
    /// The use by class, network, program and kind of page.
    pub uses: Vec<PhpUse>,
}

impl Group {
    /// Returns the use of the servers and the waiting requests; `most` of the clients.
    pub fn turns(&self, most: usize, now: Millis) -> TurnsSnapshot {
        let state = self.state.lock();
        let now = now.max(state.now);
        let limit = state.turns.limit.as_ref();
        TurnsSnapshot {
            limit: limit.map(|limit| (limit.limit(), limit.reason())),
            workers: workers(&state.peers),
            lines: state.turns.queue.by_line(),
            top: state.turns.queue.top(most, now),
            uses: match most {
                0 => Vec::new(),
                _ => state.turns.queue.uses(USES_OF_KIND.min(most), now),
            },
        }
    }

    /// Does the group tell requests apart by their clients?
    pub fn has_turns(&self) -> bool {
        self.has_turns
    }

    /// Sets the master process of the own pool that is this server.
    pub fn set_master(&self, server: usize, pid: u32) {
        let own = Master { pid, is_own: true };
        self.state.lock().turns.masters.insert(server, own);
    }

    /// The process that listens on the unix socket of this server.
    pub(crate) fn note_listener(&self, server: usize, pid: u32) {
        let masters = &mut self.state.lock().turns.masters;
        if !masters.get(&server).is_some_and(|master| master.is_own) {
            let is_own = false;
            masters.insert(server, Master { pid, is_own });
        }
    }

    /// Looks at the processes of PHP-FPM, about once a second. Files of `/proc` are read without the lock.
    pub(crate) fn look_at_workers(&self, now: Millis) {
        let Some(mut times) = self.worker_times.try_lock().filter(|_| self.finds_limit) else {
            return;
        };
        if !times.is_due(now) {
            return;
        }
        let mut state = self.state.lock();
        let in_flight_ms = state.turns.queue.in_flight_ms(now);
        let Some(masters) = state.turns.masters(&state.peers) else {
            return;
        };
        drop(state);
        if let Some(load) = times.look(&masters, in_flight_ms)
            && let Some(limit) = &mut self.state.lock().turns.limit
        {
            limit.note_load(load);
        }
    }

    /// Foresees a request of this turn: whether a place is kept for it, and how long it would wait, in
    /// milliseconds, behind all who wait before it.
    pub fn outlook(&self, class: Class, turn: &Turn, now: Millis) -> (bool, Millis) {
        let state = self.state.lock();
        let now = now.max(state.now);
        let queue = &state.turns.queue;
        let is_light = queue.has_used_little(class, turn, now);
        let slots = state.turns.slots(&state.peers);
        let waits = match queue.has_place(class, turn, slots, now) {
            true => 0,
            false => state.expected_wait(class),
        };
        (is_light, waits)
    }

    /// The server goes on with a request that is no work for it any more (a tunnel): its turn is over,
    /// and its slot is taken.
    pub(crate) fn end_turn(self: &Arc<Self>, turn: TakenTurn) {
        let mut state = self.state.lock();
        let now = state.now;
        state.turns.end(turn, now);
        let handovers = self.serve_line(&mut state, now);
        drop(state);
        hand_over(handovers);
    }

    /// Returns when a refused request of `class` is worth another try.
    pub fn retry_after(self: &Arc<Self>, class: Class) -> Millis {
        self.state.lock().expected_wait(class)
    }
}

impl GroupState {
    fn expected_wait(&self, class: Class) -> Millis {
        let slots = self.turns.slots(&self.peers);
        let at_once = match class {
            Class::Crawler if self.turns.queue.visitors() > 0 => slots.for_crawlers(),
            _ => slots.for_all().min(slots.workers.unwrap_or(usize::MAX)),
        };
        self.turns.queue.expected_wait(class, at_once)
    }
}
