//! State shared by all workers: the configuration in force, its listening sockets, and the signal to stop.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use site::ListenAddress;
use tokio::sync::{Notify, watch};
use transport::connections::{Connections, TrackedConnection};

use super::life_sign::LifeSigns;
use super::loads::ConnectionSlot;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;

/// The pause between two rounds of housekeeping while there are requests.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two rounds of housekeeping after a minute without requests.
const REST_INTERVAL: Duration = Duration::from_secs(60);
/// A server that has had no requests for some seconds gives memory back when it looks again.
const GIVES_BACK_FROM: Duration = Duration::from_secs(4);
/// A longer pause only ends with a connection, where housekeeping would find nothing to do.
const LONGEST_PAUSE_FOR_NOTHING: Duration = Duration::from_secs(16);

/// A bound and listening socket.
#[derive(Debug)]
pub enum Listening {
    Tcp(std::net::TcpListener),
    Unix(StdUnixListener),
    /// QUIC.
    Udp(std::net::UdpSocket),
}

impl Listening {
    pub(super) fn try_clone(&self) -> io::Result<Listening> {
        Ok(match self {
            Listening::Tcp(listener) => Listening::Tcp(listener.try_clone()?),
            Listening::Unix(listener) => Listening::Unix(listener.try_clone()?),
            Listening::Udp(socket) => Listening::Udp(socket.try_clone()?),
        })
    }
}

/// The listening sockets in force; with `reuseport` there is one per worker.
pub type Sockets = HashMap<ListenAddress, Vec<Arc<Listening>>>;

/// The requests that a graceful stop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For requests under way.
    ForRequests,
    /// Also for those that clients may be sending on connections that have been idle.
    ForNextRequests,
}

/// The state shared by all workers.
pub struct WorkersState {
    configuration: ArcSwap<ActiveConfiguration>,
    /// Another number for each configuration that was in force in this process.
    generation: AtomicU64,
    sockets: watch::Sender<Arc<Sockets>>,
    stopping: AtomicBool,
    /// Idle connections may have a next request on its way.
    awaits_next_requests: AtomicBool,
    stop: watch::Sender<bool>,
    /// A task rests until there is a connection again.
    is_resting: AtomicBool,
    connected: Notify,
    /// Changes each time that the server comes to rest: how many bytes its stores have held that they hold no more.
    rests: watch::Sender<u64>,
    pub(super) life_signs: LifeSigns,
}

/// How soon something is looked at again, see [`WorkersState::pause`].
pub struct IdlePause {
    pause: Duration,
    /// Connections and requests so far.
    seen: (u64, u64),
}

impl Default for IdlePause {
    fn default() -> IdlePause {
        IdlePause {
            pause: SWEEP_INTERVAL,
            seen: (0, 0),
        }
    }
}

impl IdlePause {
    /// There is more to do than requests tell: the next look is soon.
    pub(super) fn end(&mut self) {
        self.pause = SWEEP_INTERVAL;
    }

    /// Has the server had no requests for some seconds?
    pub fn is_long(&self) -> bool {
        self.pause >= GIVES_BACK_FROM
    }

    /// It has just come to that.
    pub(super) fn is_new_rest(&self) -> bool {
        self.pause == GIVES_BACK_FROM
    }
}

thread_local! {
    /// The configuration that [`WorkersState::configuration_of_thread`] last returned, and its generation.
    static IN_FORCE: RefCell<Option<(u64, ConfigurationHandle)>> = const { RefCell::new(None) };
}

fn next_generation() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Counts a connection while it lives.
pub struct Registration {
    connections: Arc<Connections>,
    key: usize,
    _slot: ConnectionSlot,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.connections.remove(self.key);
    }
}

impl WorkersState {
    pub fn new(configuration: Arc<ActiveConfiguration>, sockets: Sockets) -> Arc<WorkersState> {
        Arc::new(WorkersState {
            configuration: ArcSwap::new(configuration),
            generation: AtomicU64::new(next_generation()),
            sockets: watch::Sender::new(Arc::new(sockets)),
            stopping: AtomicBool::new(false),
            awaits_next_requests: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            is_resting: AtomicBool::new(false),
            connected: Notify::new(),
            rests: watch::Sender::new(0),
            life_signs: watch::Sender::new(None),
        })
    }

    /// The configuration in force.
    pub fn configuration(&self) -> Arc<ActiveConfiguration> {
        self.configuration.load_full()
    }

    /// Returns the configuration in force, for threads that need it for each request: loads the shared pointer only
    /// after a change, and counts references in a cache line of the thread's own. The thread holds on to this
    /// configuration until its next call.
    pub fn configuration_of_thread(&self) -> ConfigurationHandle {
        let generation = self.generation.load(Ordering::Acquire);
        IN_FORCE.with_borrow_mut(|kept| match kept {
            Some((of, configuration)) if *of == generation => configuration.clone(),
            _ => {
                let configuration = ConfigurationHandle::new(self.configuration.load_full());
                *kept = Some((generation, configuration.clone()));
                configuration
            }
        })
    }

    /// The configuration in force, for a moment: not to be held while waiting.
    pub fn glance(&self) -> arc_swap::Guard<Arc<ActiveConfiguration>> {
        self.configuration.load()
    }

    /// Puts another configuration in force. Requests under way finish with
    /// theirs.
    pub fn replace(&self, configuration: Arc<ActiveConfiguration>, sockets: Sockets) {
        self.configuration.store(configuration);
        self.generation.store(next_generation(), Ordering::Release);
        self.sockets.send_replace(Arc::new(sockets));
    }

    pub fn sockets(&self) -> Arc<Sockets> {
        self.sockets.borrow().clone()
    }

    /// The logs were reopened: lines that threads have gathered belong to the old ones.
    pub fn logs_reopened(&self) {
        self.sockets.send_modify(|_| ());
    }

    /// The pause before the next of two looks at something that only requests change: a second
    /// while requests come, growing to a minute without requests, so that a server without visitors
    /// does not wake up all the time. A new connection ends a long pause. Unless the look `is_needed`
    /// without requests as well, nothing else does after half a minute.
    pub async fn pause(&self, idle: &mut IdlePause, is_needed: bool) {
        if idle.pause <= SWEEP_INTERVAL {
            tokio::time::sleep(idle.pause).await;
        } else {
            let mut connected = std::pin::pin!(self.connected.notified());
            connected.as_mut().enable();
            self.is_resting.store(true, Ordering::Relaxed);
            let is_bounded = is_needed || idle.pause <= LONGEST_PAUSE_FOR_NOTHING;
            tokio::select! {
                () = connected => {}
                () = tokio::time::sleep(idle.pause), if is_bounded => {}
            }
        }
        let seen = {
            let stats = &self.glance().live.stats;
            (stats.accepted.load(Ordering::Relaxed), stats.requests.sum())
        };
        idle.pause = match seen == idle.seen {
            true => (idle.pause * 2).min(REST_INTERVAL),
            false => SWEEP_INTERVAL,
        };
        idle.seen = seen;
    }

    /// A connection or a command has come: ends a long [`WorkersState::pause`].
    pub fn end_long_pause(&self) {
        if self.is_resting.load(Ordering::Relaxed) {
            self.is_resting.store(false, Ordering::Relaxed);
            self.connected.notify_waiters();
        }
    }

    /// Becomes true with the graceful stop.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Changes with every configuration that is put in force.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Sockets>> {
        self.sockets.subscribe()
    }

    /// No requests have come for a while: each worker gives back the memory that it keeps for the next ones. Stores
    /// have let go of `emptied_bytes`; the allocator's share of them goes as well.
    pub fn rest(&self, emptied_bytes: u64) {
        self.rests.send_replace(emptied_bytes);
    }

    /// Changes when the server comes to rest.
    pub(super) fn rests(&self) -> watch::Receiver<u64> {
        self.rests.subscribe()
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Are connections closed that have no request?
    pub fn closes_idle(&self) -> bool {
        self.is_stopping() && !self.awaits_next_requests.load(Ordering::Relaxed)
    }

    /// Graceful stop: no new connections, the others finish their requests. Idle ones are closed, at once or with
    /// their next response; for those that send none, call it again.
    pub fn stop_gracefully(&self, patience: Patience) {
        let is_patient = patience == Patience::ForNextRequests;
        self.awaits_next_requests
            .store(is_patient, Ordering::Relaxed);
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        self.end_long_pause();
        if is_patient {
            return;
        }
        let connections = self.glance().connections.clone();
        connections.for_each(|connection| connection.close_if_idle());
    }

    /// Resolves when requests that began under `configuration` have had their time after a reload:
    /// `worker_shutdown_timeout`. Never, where that is not given.
    pub async fn outlived(&self, configuration: Arc<ActiveConfiguration>) {
        let mut replaced = self.sockets.subscribe();
        while Arc::ptr_eq(&self.configuration(), &configuration) {
            if replaced.changed().await.is_err() {
                break;
            }
        }
        match self.configuration().site.process.shutdown_timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn register(
        &self,
        connection: Weak<dyn TrackedConnection>,
        slot: ConnectionSlot,
    ) -> Registration {
        let connections = self.glance().connections.clone();
        let key = connections.add(connection);
        Registration {
            connections,
            key,
            _slot: slot,
        }
    }
}
