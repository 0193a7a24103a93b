//! A group of servers, shared by all threads: who may ask which server when.
//!
//! `acquire` chooses a server with room or joins the line; `release`, reached
//! by ending a lease, frees the slot and hands it to the first waiter who can
//! use it. One lock guards all state; it is held for a choice, never across an
//! await, and sockets are closed and waiters woken after it is released.
//! Invariants: no server has more than `max_conns` in flight; no waiter who
//! could be served stays in line once a call returns.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fair_queue::{
    Class, Concurrency, LINES, MAX_WAITING_CRAWLERS, MAX_WAITING_IN_BACKGROUND,
    PLACES_OF_SEARCH_ENGINES, Search, StartedRequest, Turn, TurnKind, fragments_of_client,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::balance::{Balancer, Pick, PickRequest};
use crate::counts::Counts;
use crate::endpoint::{Endpoint, LocalEnd, StdStream};
use crate::idle::{ConnectionScope, IdlePool, ParkedConnection};
use crate::lease::{Lease, LeasedServer};
use crate::membership::Watch;
use crate::peer::{Outcome, Peer, Standing};
use crate::queue::{Ticket, Waiter};
use crate::spec::{GroupSpec, Keepalive, Method, QueueSpec, SpecError};
use crate::turns::{TakenTurn, Turns, workers};
use crate::worker_times::WorkerTimes;
use crate::{Millis, TriedSet};

/// The facts that the method may choose by.
#[derive(Clone, Copy, Debug, Default)]
pub struct PickKey<'a> {
    /// The client's address for `ip_hash`; `None` for a client on a unix socket.
    pub client_addr: Option<IpAddr>,
    /// The key's value of this request for `hash`.
    pub hash_key: Option<&'a [u8]>,
    /// A number of the location for `keepalive ... local`. Connections are shared within one
    /// location only.
    pub location: u64,
    /// A number of the TLS settings a connection is made with; zero: none. A
    /// kept connection serves only those who would have made one like it.
    pub security: u64,
    /// The local end of new connections; kept ones must have the same.
    pub local: LocalEnd,
    /// The turn of the request; `None`: the common turn of all clients.
    pub turn: Option<&'a Turn>,
}

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// All servers are full and so is the line (503).
    #[error("upstream queue is full")]
    QueueFull,
    /// The line has room, but not for more of this client (429).
    #[error("too many requests of this client wait for the upstream")]
    TurnFull,
    /// No server had room before the deadline (503).
    #[error("no upstream had room within the queue timeout")]
    QueueTimeout,
    /// All servers failed lately, are down, or are full where there is no line (502).
    #[error("no live upstreams")]
    NoLiveUpstreams,
    /// Every server was asked by this request already: the last answer stands.
    #[error("all upstreams have been tried")]
    Exhausted,
    /// A background request without room beside the requests of visitors. That is as it should be:
    /// no error.
    #[error("left out, as nobody waits for it and upstreams are busy")]
    LeftOut,
}

impl AcquireError {
    /// Too much work rather than broken servers: a later attempt may succeed.
    pub fn is_overload(self) -> bool {
        matches!(self, Self::QueueFull | Self::TurnFull | Self::QueueTimeout)
    }
}

/// One server at one moment, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSnapshot {
    /// Its number within the group, equal to [`Lease::server`].
    pub server: usize,
    /// The name in the configuration.
    pub name: String,
    /// Its address.
    pub endpoint: Endpoint,
    /// May it be asked?
    pub standing: Standing,
    /// A backup server?
    pub is_backup: bool,
    /// Requests in flight.
    pub in_flight: usize,
    /// Their limit, if any.
    pub max_conns: Option<usize>,
    /// Connections kept.
    pub idle: usize,
    /// Failures that count now.
    pub fails: u32,
}

/// The servers behind one `upstream` name. See the crate's opening.
#[derive(Debug)]
pub struct Group {
    name: String,
    pub(crate) method: Method,
    queue: Option<QueueSpec>,
    pub(crate) has_turns: bool,
    /// `php_concurrency auto`
    pub(crate) finds_limit: bool,
    keepalive: Option<Keepalive>,
    pub(crate) tries: AtomicUsize,
    /// Copies of two lengths that are read without the lock: of the lines of visitors and of their
    /// fragments together, and of the line of refreshes.
    queue_length: AtomicUsize,
    waiting_refreshes: AtomicUsize,
    pub(crate) counts: Counts,
    pub(crate) state: Mutex<GroupState>,
    pub(crate) worker_times: Mutex<WorkerTimes>,
}

#[derive(Debug)]
pub(crate) struct GroupState {
    pub peers: Vec<Peer>,
    pub balancer: Balancer,
    pub turns: Turns,
    /// Leases out that count against the background's share, by line.
    background: [usize; LINES],
    pub idle: IdlePool<StdStream>,
    random: crate::balance::Random,
    /// The health checks that watch the servers.
    pub watches: Vec<Watch>,
    /// The latest time any call has brought, which a dropped lease uses.
    pub now: Millis,
}

/// A lease for a waiter, to be sent once the lock is released.
pub(crate) type Handover = (oneshot::Sender<Lease>, Lease);

/// The first result of a request for a server.
#[derive(Debug)]
pub enum Admission {
    /// It may go.
    Granted(Lease),
    /// It waits in line.
    InLine(Ticket),
}

/// How long a request of the background waits in a group without `queue`.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a crawler waits at most: it can come again, and gets a Retry-After.
const CRAWLER_TIMEOUT: Duration = Duration::from_secs(10);
/// A turn fills at most this share of a line.
const TURNS_SHARE: usize = 4;

impl Group {
    /// Builds the group; all servers start healthy.
    pub fn new(spec: GroupSpec) -> Result<Arc<Self>, SpecError> {
        Balancer::check(&spec)?;
        let peers: Vec<Peer> = spec.servers.into_iter().map(Peer::new).collect();
        let group = Self {
            name: spec.name,
            method: spec.method,
            queue: spec.queue,
            has_turns: spec.turns.is_some(),
            finds_limit: spec
                .turns
                .is_some_and(|turns| matches!(turns.concurrency, Concurrency::Auto { .. })),
            worker_times: Mutex::default(),
            keepalive: spec.keepalive,
            tries: AtomicUsize::new(0),
            queue_length: AtomicUsize::new(0),
            waiting_refreshes: AtomicUsize::new(0),
            counts: Counts::default(),
            state: Mutex::new(GroupState {
                balancer: Balancer::new(spec.method, &peers),
                peers,
                turns: Turns::new(spec.turns),
                background: Default::default(),
                idle: IdlePool::new(spec.keepalive.unwrap_or(Keepalive::new(0))),
                random: crate::balance::Random::from_system(),
                watches: Vec::new(),
                now: 0,
            }),
        };
        group.derive_from_members(&mut group.state.lock());
        Ok(Arc::new(group))
    }

    /// Returns its counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Servers that are not `down`: how many attempts a request has at most.
    pub fn tries(&self) -> usize {
        self.tries.load(Ordering::Relaxed)
    }

    /// Visitors' requests in line, with the fragments of their pages. Costs one atomic load.
    pub fn queue_length(&self) -> usize {
        self.queue_length.load(Ordering::Relaxed)
    }

    /// Would another refresh be left out, since the line of refreshes is full? Costs one atomic
    /// load, and spares the work of putting a request together that is not sent.
    pub fn leaves_out_refreshes(&self) -> bool {
        self.waiting_refreshes.load(Ordering::Relaxed) >= MAX_WAITING_IN_BACKGROUND
    }

    /// Returns how many requests one visitor may have under way here for the parts of one page;
    /// `None`: it is not known how many the servers take at once.
    pub fn share_of_page(&self) -> Option<usize> {
        let workers = workers(&self.state.lock().peers)?;
        Class::Refresh.share_of(Some(workers))
    }

    /// Chooses a server for a request, or gives it a place in line while all are full.
    ///
    /// `tried` holds the servers this request has asked before.
    pub fn enter(
        self: &Arc<Self>,
        key: PickKey<'_>,
        tried: &TriedSet,
        class: Class,
        now: Millis,
    ) -> Result<Admission, AcquireError> {
        self.admit(key, tried, class, now, self.queue)
    }

    pub(crate) fn admit(
        self: &Arc<Self>,
        key: PickKey<'_>,
        tried: &TriedSet,
        class: Class,
        now: Millis,
        queue: Option<QueueSpec>,
    ) -> Result<Admission, AcquireError> {
        let mut state = self.state.lock();
        let now = state.advance(now);
        let expired = state.idle.sweep(now);
        // Waiting requests go first; a slot still free after that is one that they cannot use.
        let handovers = self.serve_line(&mut state, now);
        let ask = PickRequest {
            client_addr: key.client_addr,
            hash_key: key.hash_key,
            tried,
            now,
        };
        let scope = self.scope_of(key);
        let nobody = Turn::default();
        let turn = key.turn.filter(|_| self.has_turns).unwrap_or(&nobody);
        let class = match self.has_turns {
            true => class,
            // The group does not tell clients apart.
            false if matches!(class, Class::Writer | Class::Crawler) => Class::Visitor,
            false => class,
        };
        let picked = match state.has_share_left(class, turn) {
            true => state.pick(&ask),
            false => Pick::AllBusy,
        };
        let admission = match picked {
            Pick::Server(server) => {
                let started = state.turns.queue.begin(class, turn, now);
                Ok(Admission::Granted(self.grant(
                    &mut state,
                    server,
                    (class, started),
                    scope,
                    now,
                )))
            }
            Pick::Exhausted => Err(AcquireError::Exhausted),
            Pick::NoneLive => Err(AcquireError::NoLiveUpstreams),
            Pick::AllBusy => place_in_line(&state.turns, (class, turn), key.client_addr, queue)
                .map(|timeout| {
                    let place = (class, turn, timeout);
                    Admission::InLine(self.join_line(&mut state, &ask, place, scope))
                }),
        };
        drop(state);
        drop(expired);
        hand_over(handovers);
        match &admission {
            Ok(Admission::Granted(_)) => self.counts.waited(Duration::ZERO),
            // Counted when it has its turn.
            Ok(Admission::InLine(_)) => {}
            Err(error) => self.counts.refused(*error),
        }
        admission
    }

    /// Returns the scope of a request's connections.
    fn scope_of(&self, key: PickKey<'_>) -> ConnectionScope {
        let is_local = self.keepalive.is_some_and(|keepalive| keepalive.local);
        ConnectionScope {
            location: if is_local { key.location } else { 0 },
            security: key.security,
            local: key.local,
        }
    }

    /// Reserves a slot, and with it the server's newest idle connection.
    fn grant(
        self: &Arc<Self>,
        state: &mut GroupState,
        server: usize,
        (class, started): (Class, StartedRequest),
        scope: ConnectionScope,
        now: Millis,
    ) -> Lease {
        // The balancer has picked it under this lock.
        let peer = &mut state.peers[server];
        peer.begin(now);
        let leased = LeasedServer {
            index: server,
            endpoint: Arc::clone(&peer.endpoint),
            address: Arc::clone(&peer.address),
        };
        let idle = state.idle.take(server, scope);
        if class.is_background() {
            state.background[class.line()] += 1;
        }
        let turn = TakenTurn {
            started,
            began: now,
            head_ms: None,
        };
        Lease::new(Arc::clone(self), leased, (class, turn), scope, idle)
    }

    fn join_line(
        self: &Arc<Self>,
        state: &mut GroupState,
        ask: &PickRequest<'_>,
        (class, turn, timeout): (Class, &Turn, Duration),
        scope: ConnectionScope,
    ) -> Ticket {
        let (lease_to, lease_from) = oneshot::channel();
        let waiter = Waiter {
            class,
            client_addr: ask.client_addr,
            hash_key: ask.hash_key.map(Box::from),
            scope,
            tried: ask.tried.clone(),
            lease_to,
        };
        let queue = &mut state.turns.queue;
        let number = match ask.tried.is_empty() {
            true => queue.join(class, turn, waiter, ask.now),
            // It has had its turn, and may wait for other servers than those who come next.
            false => queue.join_alone(class, turn.request.clone(), waiter, ask.now),
        };
        self.publish_queue_length(state);
        let group = Arc::clone(self);
        Ticket::new(group, number, class, lease_from, ask.now, timeout)
    }

    /// Gives leases to those in line, from the front, as far as there is room.
    pub(crate) fn serve_line(
        self: &Arc<Self>,
        state: &mut GroupState,
        now: Millis,
    ) -> Vec<Handover> {
        let mut handovers = Vec::new();
        if state.turns.queue.is_empty() {
            return handovers;
        }
        let mut search = Search::default();
        let mut found_some = false;
        while let Some((number, waiter)) = state.turns.next(&state.peers, &mut search, now) {
            found_some = true;
            let (class, scope) = (waiter.class, waiter.scope);
            if !has_background_share(state, class) {
                search.end_line(class);
                continue;
            }
            let ask = PickRequest {
                client_addr: waiter.client_addr,
                hash_key: waiter.hash_key.as_deref(),
                tried: &waiter.tried,
                now,
            };
            let picked = state
                .balancer
                .pick(&mut state.peers, &ask, &mut state.random);
            match picked {
                Pick::Server(server) => {
                    if let Some((waiter, started)) = state.turns.queue.take(number, now) {
                        let lease = self.grant(state, server, (class, started), scope, now);
                        handovers.push((waiter.lease_to, lease));
                    }
                    // The turn that was served may be the next one as well.
                    search.begin_again();
                }
                // Who may ask any server and finds none with room speaks for all.
                _ if waiter.tried.is_empty() => break,
                // This one is waiting for particular servers; others may not be.
                _ => {}
            }
        }
        if found_some {
            self.publish_queue_length(state);
        }
        handovers
    }

    fn publish_queue_length(&self, state: &GroupState) {
        let queue = &state.turns.queue;
        self.queue_length.store(queue.visitors(), Ordering::Relaxed);
        self.waiting_refreshes
            .store(queue.len_of(Class::Refresh), Ordering::Relaxed);
    }

    /// Ends a lease. `idle`: a connection to keep.
    pub(crate) fn release(
        self: &Arc<Self>,
        server: usize,
        (class, turn): (Class, Option<TakenTurn>),
        outcome: Outcome,
        idle: Option<ParkedConnection<StdStream>>,
        now: Option<Millis>,
    ) {
        self.counts.ended(outcome);
        let mut state = self.state.lock();
        let now = state.advance(now.unwrap_or(0));
        if let Some(peer) = state.peers.get_mut(server) {
            peer.end(outcome, now);
        }
        if class.is_background() {
            state.background[class.line()] -= 1;
        }
        if let Some(turn) = turn {
            state.turns.end(turn, now);
        }
        let is_gone = state.peers.get(server).is_none_or(|peer| peer.is_gone);
        let (idle, refused) = if is_gone { (None, idle) } else { (idle, None) };
        let evicted = idle.and_then(|parked| state.idle.park(server, parked));
        let excess = state.shed_excess(server);
        let expired = state.idle.sweep(now);
        let handovers = self.serve_line(&mut state, now);
        drop(state);
        drop((refused, evicted, excess, expired));
        hand_over(handovers);
    }

    /// Leaves the line; false when a lease has been assigned already.
    pub(crate) fn withdraw(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let now = state.now;
        let waiter = state.turns.queue.leave(number, now);
        self.publish_queue_length(&state);
        drop(state);
        waiter.is_some()
    }

    /// Moves a waiter to the line of `class`; its new number, if it still waits.
    pub(crate) fn raise(self: &Arc<Self>, number: u64, class: Class) -> Option<u64> {
        let mut state = self.state.lock();
        let now = state.now;
        let change = |waiter| Waiter { class, ..waiter };
        let raised = state.turns.queue.raise(number, class, change, now);
        // A refresh may have waited for its share beside a server with room.
        let handovers = self.serve_line(&mut state, now);
        self.publish_queue_length(&state);
        drop(state);
        hand_over(handovers);
        raised
    }

    /// Sets how many requests `server` takes at once, for a pool of our own whose workers are
    /// counted at run time. `None`: no limit; `Some(0)`: all wait in line, as while the pool is
    /// being restarted. Requests in flight beyond a lowered limit finish; an unknown server is
    /// ignored.
    pub fn set_max_conns(self: &Arc<Self>, server: usize, max_conns: Option<usize>) {
        let mut locked = self.state.lock();
        let state = &mut *locked;
        let now = state.now;
        if let Some(peer) = state.peers.get_mut(server) {
            peer.max_conns = max_conns;
        }
        state.turns.set_workers(&state.peers);
        let excess = state.shed_excess(server);
        let handovers = self.serve_line(state, now);
        drop(locked);
        drop(excess);
        hand_over(handovers);
    }

    /// Does periodic work: closes connections idle for `keepalive_timeout`, and lets those in
    /// line go to a server that came back. To be called now and then; waiters call it themselves,
    /// and an expired connection is never used in any case. Returns whether idle connections are
    /// left.
    pub fn sweep(self: &Arc<Self>, now: Millis) -> bool {
        self.look_at_workers(now);
        let mut state = self.state.lock();
        let now = state.advance(now);
        let expired = state.idle.sweep(now);
        state.turns.note_time(now);
        let handovers = self.serve_line(&mut state, now);
        let is_left = !state.idle.is_empty();
        drop(state);
        drop(expired);
        hand_over(handovers);
        is_left
    }

    /// Closes all idle connections to `server`: its processes are about to be
    /// replaced, or have been.
    pub fn close_idle(&self, server: usize) {
        let mut state = self.state.lock();
        let closed: Vec<_> = std::iter::from_fn(|| state.idle.shed(server)).collect();
        drop(state);
        drop(closed);
    }

    /// The state of all servers, in the order of the configuration.
    pub fn snapshot(&self, now: Millis) -> Vec<ServerSnapshot> {
        let state = self.state.lock();
        let servers = state.peers.iter().enumerate();
        servers
            .filter(|(_, peer)| !peer.is_gone)
            .map(|(server, peer)| ServerSnapshot {
                server,
                name: peer.name.clone(),
                endpoint: Endpoint::clone(&peer.endpoint),
                standing: peer.standing(now.max(state.now)),
                is_backup: peer.is_backup,
                in_flight: peer.in_flight,
                max_conns: peer.max_conns,
                idle: state.idle.count(server),
                fails: peer.fails,
            })
            .collect()
    }

    pub(crate) fn take_idle(
        &self,
        server: usize,
        scope: ConnectionScope,
        now: Millis,
    ) -> Option<ParkedConnection<StdStream>> {
        let mut state = self.state.lock();
        // The group's time stays: the caller that advances it has to serve the line.
        let now = now.max(state.now);
        let expired = state.idle.sweep(now);
        let taken = state.idle.take(server, scope);
        drop(state);
        drop(expired);
        taken
    }

    pub(crate) fn keepalive(&self) -> Option<&Keepalive> {
        self.keepalive.as_ref()
    }
}

impl GroupState {
    /// Moves the group's time forward; calls of several threads may come late.
    /// Servers may have come back by that: `serve_line` must follow.
    pub fn advance(&mut self, now: Millis) -> Millis {
        self.now = self.now.max(now);
        self.now
    }

    /// May another request of this turn be in flight, if a server has room?
    fn has_share_left(&self, class: Class, turn: &Turn) -> bool {
        let slots = self.turns.slots(&self.peers);
        has_background_share(self, class)
            && self.turns.queue.has_place(class, turn, slots, self.now)
    }

    fn pick(&mut self, ask: &PickRequest<'_>) -> Pick {
        self.balancer.pick(&mut self.peers, ask, &mut self.random)
    }

    /// Takes out idle connections for which `max_conns` has no room beside the requests in
    /// flight, if idle connections occupy workers.
    fn shed_excess(&mut self, server: usize) -> Vec<ParkedConnection<StdStream>> {
        let Some(peer) = self.peers.get(server) else {
            return Vec::new();
        };
        let Some(limit) = peer.max_conns.filter(|_| self.idle.idle_counts()) else {
            return Vec::new();
        };
        let room = limit.saturating_sub(peer.in_flight);
        let excess = self.idle.count(server).saturating_sub(room);
        (0..excess).map_while(|_| self.idle.shed(server)).collect()
    }
}

/// May another request of `class` be in flight, as far as the share of the background goes?
fn has_background_share(state: &GroupState, class: Class) -> bool {
    if !class.is_background() {
        return true;
    }
    let slots = state.turns.slots(&state.peers);
    let taken = match slots.workers.or(slots.limit) {
        Some(_) => state.background.iter().sum(),
        None => state.background[class.line()],
    };
    let share = slots.for_background(class);
    share.is_none_or(|share| taken < share)
}

/// May a request of `client` join the line of its class? For how long it may wait.
fn place_in_line(
    turns: &Turns,
    (class, turn): (Class, &Turn),
    client: Option<IpAddr>,
    queue: Option<QueueSpec>,
) -> Result<Duration, AcquireError> {
    let waiting = &turns.queue;
    let in_line = waiting.len_of(class);
    if class.is_background() {
        return match in_line < MAX_WAITING_IN_BACKGROUND {
            true => Ok(queue.map_or(BACKGROUND_TIMEOUT, |queue| queue.timeout)),
            false => Err(AcquireError::LeftOut),
        };
    }
    let queue = queue.ok_or(AcquireError::NoLiveUpstreams)?;
    let (length, timeout) = match class {
        Class::Crawler => {
            let all = queue.length.min(MAX_WAITING_CRAWLERS);
            let length = match turn.is_search_engine() {
                true => all,
                false => all - PLACES_OF_SEARCH_ENGINES.min(all / 4),
            };
            (length, queue.timeout.min(CRAWLER_TIMEOUT))
        }
        _ => (queue.length, queue.timeout),
    };
    if in_line >= length {
        return Err(AcquireError::QueueFull);
    }
    let is_somebodys = turns.distinguishes_clients() && turn.kind != TurnKind::Other;
    if is_somebodys && waiting.len_of_turn(class, turn) >= (length / TURNS_SHARE).max(1) {
        return Err(AcquireError::TurnFull);
    }
    let share = fragments_of_client(queue.length);
    let of_client = || {
        let waiters = waiting.waiting_in(class);
        waiters.filter(|it| it.client_addr == client).count()
    };
    match class != Class::Fragment || in_line < share || of_client() < share {
        true => Ok(timeout),
        false => Err(AcquireError::QueueFull),
    }
}

/// Wakes waiters. A lease whose waiter has gone meanwhile is dropped here,
/// which frees its slot for the next one.
pub(crate) fn hand_over(handovers: Vec<Handover>) {
    for (lease_to, lease) in handovers {
        drop(lease_to.send(lease));
    }
}
