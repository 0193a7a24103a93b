//! Worker threads: each has a tokio runtime of its own, accepts from the listening
//! sockets, and serves what it accepted, unless another has fewer connections
//! (`worker_loads`). They share the configuration in force and the cache, nothing else.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use site::ListenAddress;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, mpsc, watch};

use crate::background;
use crate::base::clock;
use crate::content::mirror;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::log::{access_log, error_log};
use crate::transport::connections::Connections;
use crate::transport::facts::{ConnectionFacts, LocalAddress};
use crate::transport::http1;
use crate::transport::stream::ClientStream;
use crate::worker_loads::{Accepted, ConnectionSlot, WorkerLoads};

/// How long accepting pauses when the process has no more file descriptors: at first so long
/// that connections that have ended can be closed, then longer each time.
const ACCEPT_PAUSE_FIRST: Duration = Duration::from_millis(10);
const ACCEPT_PAUSE_LAST: Duration = Duration::from_millis(500);
/// How long a worker runs before others have their turn, and so how soon it gets its own beside a PHP
/// that computes. Shorter ones cost more changes between the two: cold misses took 3 % more
/// CPU at 0.5 ms and 11 % more at 0.1 ms than at the kernel's 3 ms.
const TIME_SLICE: Duration = Duration::from_micros(500);
/// Between two rounds of housekeeping while there are requests.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The same where nothing has happened for as long.
const REST_INTERVAL: Duration = Duration::from_secs(60);

/// A bound and listening socket.
#[derive(Debug)]
pub enum Listening {
    Tcp(std::net::TcpListener),
    Unix(StdUnixListener),
}

impl Listening {
    fn try_clone(&self) -> io::Result<Listening> {
        Ok(match self {
            Listening::Tcp(listener) => Listening::Tcp(listener.try_clone()?),
            Listening::Unix(listener) => Listening::Unix(listener.try_clone()?),
        })
    }
}

/// The listening sockets in force; with `reuseport` there is one per worker.
pub type Sockets = HashMap<ListenAddress, Vec<Arc<Listening>>>;

/// What all workers share.
pub struct Shared {
    configuration: ArcSwap<ActiveConfiguration>,
    /// Another number for each configuration that was in force in this process.
    generation: AtomicU64,
    sockets: watch::Sender<Arc<Sockets>>,
    stopping: AtomicBool,
    stop: watch::Sender<bool>,
    /// Somebody rests until there is a connection again.
    is_resting: AtomicBool,
    connected: Notify,
}

/// How soon something is looked at again, see [`Shared::pause`].
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

thread_local! {
    /// What [`Shared::configuration_of_thread`] gave last, and its generation.
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

impl Shared {
    pub fn new(configuration: Arc<ActiveConfiguration>, sockets: Sockets) -> Arc<Shared> {
        Arc::new(Shared {
            configuration: ArcSwap::new(configuration),
            generation: AtomicU64::new(next_generation()),
            sockets: watch::Sender::new(Arc::new(sockets)),
            stopping: AtomicBool::new(false),
            stop: watch::Sender::new(false),
            is_resting: AtomicBool::new(false),
            connected: Notify::new(),
        })
    }

    /// The configuration in force.
    pub fn configuration(&self) -> Arc<ActiveConfiguration> {
        self.configuration.load_full()
    }

    /// The same for threads that ask for each request: looks at what all share
    /// only when something has changed there, and counts in a line of the thread's
    /// own. The thread holds on to what it was given until it asks again.
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
    /// while there are any, growing to a minute where there are none, so that a server without
    /// visitors does not wake up all the time. A new connection ends a long pause.
    pub async fn pause(&self, idle: &mut IdlePause) {
        if idle.pause <= SWEEP_INTERVAL {
            tokio::time::sleep(idle.pause).await;
        } else {
            let mut connected = std::pin::pin!(self.connected.notified());
            connected.as_mut().enable();
            self.is_resting.store(true, Ordering::Relaxed);
            // An error is the end of the pause.
            let _ = tokio::time::timeout(idle.pause, connected).await;
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

    /// Changes with every configuration that is put in force.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Sockets>> {
        self.sockets.subscribe()
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Graceful stop: no new connections, idle ones are closed, the others
    /// finish what they do.
    pub fn stop_gracefully(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        let connections = self.glance().connections.clone();
        connections.for_each(ClientStream::close_if_idle);
    }

    /// Resolves when what began under `configuration` has had its time after a reload:
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

    pub(crate) fn register(
        &self,
        stream: &Arc<ClientStream>,
        slot: ConnectionSlot,
    ) -> Registration {
        let connections = self.glance().connections.clone();
        let key = connections.add(stream);
        Registration {
            connections,
            key,
            _slot: slot,
        }
    }
}

/// Starts `count` workers. The threads end after a graceful stop, once their
/// connections have ended.
pub fn start(shared: &Arc<Shared>, count: usize) -> io::Result<Vec<std::thread::JoinHandle<()>>> {
    let (loads, inboxes) = WorkerLoads::new(count);
    let workers = inboxes.into_iter().enumerate();
    workers
        .map(|(index, inbox)| {
            let context = WorkerContext {
                shared: shared.clone(),
                loads: loads.clone(),
                index,
            };
            std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || run(&context, inbox))
        })
        .collect()
}

/// What a worker knows of itself and the others.
#[derive(Clone)]
struct WorkerContext {
    shared: Arc<Shared>,
    loads: Arc<WorkerLoads>,
    index: usize,
}

fn run(context: &WorkerContext, inbox: mpsc::Receiver<Accepted>) {
    let (shared, index) = (&context.shared, context.index);
    clock::keep_readings();
    // Where that may not be asked for, turns are as long as those of others.
    let _ = time_slice::set(TIME_SLICE);
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .event_interval(61)
        .on_thread_park(access_log::flush_thread)
        .on_thread_unpark(clock::has_slept)
        .build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            error_log::emergency(
                &shared.configuration(),
                format_args!("worker {index} could not start: {error}"),
            );
            return;
        }
    };
    runtime.block_on(async {
        let housekeeping = tokio::spawn(housekeeping(shared.clone()));
        let background = (index == 0).then(|| {
            let sweeping = tokio::spawn(sweep(shared.clone()));
            [sweeping, tokio::spawn(background::run(shared.clone()))]
        });
        let receiving = tokio::spawn(receive(shared.clone(), inbox));
        accept_all(context).await;
        drained(context).await;
        receiving.abort();
        housekeeping.abort();
        for task in background.into_iter().flatten() {
            task.abort();
        }
    });
    access_log::flush_all_thread();
    // Nobody waits any more for what is still being compressed.
    runtime.shutdown_background();
}

/// Accepts from all sockets in force until the graceful stop.
async fn accept_all(context: &WorkerContext) {
    let (shared, index) = (&context.shared, context.index);
    let mut sockets = shared.sockets.subscribe();
    let mut stop = shared.stop.subscribe();
    let mut accepting: HashMap<ListenAddress, (Arc<Listening>, tokio::task::JoinHandle<()>)> =
        HashMap::new();
    loop {
        let current = sockets.borrow_and_update().clone();
        accepting.retain(|address, (listening, task)| {
            let stays = current.get(address).is_some_and(|sockets| {
                sockets
                    .get(index % sockets.len().max(1))
                    .is_some_and(|socket| Arc::ptr_eq(socket, listening))
            });
            if !stays {
                task.abort();
            }
            stays
        });
        for (address, group) in current.iter() {
            let Some(listening) = group.get(index % group.len().max(1)) else {
                continue;
            };
            if accepting.contains_key(address) {
                continue;
            }
            match listening.try_clone() {
                Ok(own) => {
                    let task = tokio::spawn(accept(context.clone(), own, address.clone()));
                    accepting.insert(address.clone(), (listening.clone(), task));
                }
                Err(error) => {
                    error_log::emergency(
                        &shared.configuration(),
                        format_args!("{address:?}: {error}"),
                    );
                }
            }
        }
        tokio::select! {
            changed = sockets.changed() => if changed.is_err() { break },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    for (_, (_, task)) in accepting.drain() {
        task.abort();
    }
}

async fn accept(context: WorkerContext, listening: Listening, address: ListenAddress) {
    let failed = |error: io::Error| {
        let configuration = context.shared.configuration();
        // Clients cause these as often as they like.
        if error_log::may_tell_refusal(&configuration) {
            let message = format_args!("accept() on {address:?} failed: {error}");
            error_log::emergency(&configuration, message);
        }
    };
    let mut wait = ACCEPT_PAUSE_FIRST;
    match listening {
        Listening::Tcp(listener) => match TcpListener::from_std(listener) {
            Ok(listener) => loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        wait = ACCEPT_PAUSE_FIRST;
                        let _ = stream.set_nodelay(true);
                        context.take(stream.into(), Some(peer), &address);
                    }
                    Err(error) => pause(error, &failed, &mut wait).await,
                }
            },
            Err(error) => failed(error),
        },
        Listening::Unix(listener) => match UnixListener::from_std(listener) {
            Ok(listener) => loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        wait = ACCEPT_PAUSE_FIRST;
                        context.take(stream.into(), None, &address);
                    }
                    Err(error) => pause(error, &failed, &mut wait).await,
                }
            },
            Err(error) => failed(error),
        },
    }
}

/// Serves what other workers hand over.
async fn receive(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Accepted>) {
    while let Some(accepted) = inbox.recv().await {
        begin_handed_over(&shared, accepted);
    }
}

impl WorkerContext {
    /// Serves a connection that was accepted here, or leaves it to another worker.
    fn take(&self, stream: ClientStream, peer: Option<SocketAddr>, address: &ListenAddress) {
        let slot = self.loads.slot(self.index);
        if slot.is_with(self.index) {
            return begin(&self.shared, stream, peer, address.clone(), slot);
        }
        let socket = match stream.unregister() {
            Ok(socket) => socket,
            Err(error) => return lost(&self.shared, address, &error),
        };
        let accepted = Accepted {
            socket,
            peer,
            address: address.clone(),
            slot,
        };
        if let Some(refused) = self.loads.hand_over(accepted, self.index) {
            begin_handed_over(&self.shared, refused);
        }
    }
}

fn begin_handed_over(shared: &Arc<Shared>, accepted: Accepted) {
    match accepted.socket.try_into() {
        Ok(stream) => begin(
            shared,
            stream,
            accepted.peer,
            accepted.address,
            accepted.slot,
        ),
        Err(error) => lost(shared, &accepted.address, &error),
    }
}

fn lost(shared: &Shared, address: &ListenAddress, error: &io::Error) {
    let message = format_args!("a connection to {address:?} cannot be served: {error}");
    error_log::emergency(&shared.configuration(), message);
}

fn begin(
    shared: &Arc<Shared>,
    stream: ClientStream,
    peer: Option<SocketAddr>,
    address: ListenAddress,
    slot: ConnectionSlot,
) {
    shared
        .configuration
        .load()
        .live
        .stats
        .accepted
        .fetch_add(1, Ordering::Relaxed);
    let local = match (stream.local_address(), &address) {
        (Some(address), _) => LocalAddress::Tcp(address),
        (None, ListenAddress::Tcp(address)) => LocalAddress::Tcp(*address),
        (None, ListenAddress::Unix(path)) => LocalAddress::Unix(path.clone()),
    };
    if shared.is_resting.load(Ordering::Relaxed) {
        shared.is_resting.store(false, Ordering::Relaxed);
        shared.connected.notify_waiters();
    }
    let stats = &shared.glance().live.stats;
    stats.handled.fetch_add(1, Ordering::Relaxed);
    let stream = Arc::new(stream);
    let registration = shared.register(&stream, slot);
    let facts = ConnectionFacts::new(peer, local, clock::now());
    let shared = shared.clone();
    tokio::spawn(http1::serve(shared, stream, facts, address, registration));
}

/// A connection that broke before it was accepted is nothing; running out of
/// descriptors needs a pause, or the thread would spin.
async fn pause(error: io::Error, failed: &impl Fn(io::Error), wait: &mut Duration) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
    ) {
        failed(error);
        tokio::time::sleep(*wait).await;
        *wait = (*wait * 2).min(ACCEPT_PAUSE_LAST);
    }
}

/// Waits until the last connection of the process, and the last mirrored
/// request, has ended.
async fn drained(context: &WorkerContext) {
    // Bounded by the program's own deadline (`worker_shutdown_timeout`).
    while context.loads.is_busy() || mirror::in_flight() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Keeps the thread's own things in order. It only wakes up where there are some.
async fn housekeeping(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    let lines = access_log::waiting_lines();
    loop {
        let due = async {
            match access_log::next_flush() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            // The first line of a buffer: from here on there is a time to flush it.
            () = lines.notified() => continue,
            () = due => {}
        }
        // Lets go of a configuration that a reload has replaced.
        drop(shared.configuration_of_thread());
        access_log::flush_thread();
    }
}

/// What nobody asked for in a while goes.
async fn sweep(shared: Arc<Shared>) {
    let mut idle = IdlePause::default();
    loop {
        shared.pause(&mut idle).await;
        shared.configuration().live.sweep(clock::now());
    }
}
