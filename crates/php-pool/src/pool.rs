//! The handle of a pool: starts it or takes it over, reports its state, and gives orders to the task that owns its
//! master ([`crate::supervisor`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use trusted_path::OwnFolder;

use crate::error::StartError;
use crate::find::find_php_fpm;
use crate::fpm_conf::render;
use crate::handover::PoolEstate;
use crate::launch::{Log, PoolFolder, master_account, relay_inherited};
use crate::master::Master;
use crate::probe::{WorkerMemory, worker_memory};
use crate::spec::PoolSpec;
use crate::state::{Backoff, Event, PoolState};
use crate::supervisor::{Command, Life, Pace, Supervisor, workers_of};
/// Callers that may wait with a command; they are few (reload, stop).
const MAX_COMMANDS: usize = 8;

/// The address for PHP requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A unix socket that accepts for as long as the pool lives.
    pub path: PathBuf,
}

/// A running pool. Dropping it stops it gracefully in the background, for as
/// long as the runtime lives; better await [`Pool::stop`].
#[derive(Debug)]
pub struct Pool {
    endpoint: Endpoint,
    state: watch::Receiver<PoolState>,
    commands: mpsc::Sender<Command>,
    master: Arc<AtomicU32>,
    stopping: watch::Sender<bool>,
    /// Whether php-fpm's log is read here.
    is_relayed: watch::Sender<bool>,
    learning: Arc<OnceLock<OwnedFd>>,
    task: JoinHandle<()>,
}

/// The task that will own the master of a pool, and the handle of that task once it runs. `lent`: the generation and
/// the process of a master that another process has started.
fn supervised(
    (spec, workers, pool_folder): (PoolSpec, u32, PoolFolder),
    lent: Option<(u64, u32)>,
    log: Log,
    is_relayed: watch::Sender<bool>,
) -> (impl FnOnce(JoinHandle<()>) -> Pool, Supervisor) {
    let inherited = lent.map(|(generation, _)| generation);
    let state = match inherited {
        None => PoolState::Starting,
        Some(generation) => PoolState::Ready {
            generation,
            workers,
        },
    };
    let endpoint = Endpoint {
        path: pool_folder.socket_path(),
    };
    let learning = pool_folder.learning.clone();
    let (state_sender, state) = watch::channel(state);
    let (commands, command_receiver) = mpsc::channel(MAX_COMMANDS);
    let master = Arc::new(AtomicU32::new(lent.map_or(0, |(_, pid)| pid)));
    let (stopping, is_stopping) = watch::channel(false);
    let supervisor = Supervisor {
        workers,
        spec,
        generation: inherited.unwrap_or(0),
        inherited,
        backoff: Backoff::default(),
        grown_at: Instant::now(),
        pool_folder,
        log,
        is_relayed: is_relayed.subscribe(),
        state: state_sender,
        commands: command_receiver,
        master: master.clone(),
        stopping: is_stopping,
        hurry: watch::channel(false).0,
        retiring: JoinSet::new(),
    };
    let handle = |task| Pool {
        endpoint,
        state,
        commands,
        master,
        stopping,
        is_relayed,
        learning,
        task,
    };
    (handle, supervisor)
}

impl Pool {
    /// Starts php-fpm and returns once its workers answer. Runs on the
    /// caller's tokio runtime, which needs I/O and time; `log` is called from
    /// there and must not block.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then.
    pub async fn start(
        spec: PoolSpec,
        log: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let workers = workers_of(&spec, WorkerMemory::default());
        // A bad spec or a missing php-fpm is found before the disk is touched.
        render(&spec, workers, Path::new("/"), master_account(&spec))?;
        find_php_fpm(spec.binary.as_deref())?;
        let pool_folder = PoolFolder::make(&spec)?;
        let is_relayed = watch::Sender::new(true);
        let parts = (spec, workers, pool_folder);
        let (handle, mut supervisor) = supervised(parts, None, Arc::new(log), is_relayed);
        let first = supervisor.launch().await?;
        Ok(handle(tokio::spawn(supervisor.run(Life::Running(first)))))
    }

    /// Goes on with a pool of this spec that another process has lent. That one acts until
    /// [`Pool::reclaim`].
    ///
    /// # Errors
    /// The system refuses to watch it.
    pub fn inherit(
        spec: PoolSpec,
        estate: PoolEstate,
        log: impl Fn(Event) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let log: Log = Arc::new(log);
        let is_relayed = watch::Sender::new(false);
        relay_inherited(&estate, spec.log_level, &log, is_relayed.subscribe())?;
        let PoolEstate {
            folder,
            pid,
            group,
            generation,
            workers,
            own,
            socket,
            process,
            lifeline,
            stderr,
            spec: _,
        } = estate;
        let first = Master::inherited((pid, group, generation), process, lifeline, stderr)?;
        let pool_folder = PoolFolder::inherited(folder, OwnFolder::taken_over(own), socket.into());
        let parts = (spec, workers, pool_folder);
        let lent = Some((generation, pid));
        let (handle, supervisor) = supervised(parts, lent, log, is_relayed);
        Ok(handle(tokio::spawn(supervisor.run(Life::Lent(first)))))
    }

    /// Returns the state and descriptors with which another process goes on with the pool; `None` while it has no
    /// master. From now on this process only reads the pool's log, and the pool outlives it.
    pub async fn lend(&self) -> Option<PoolEstate> {
        let (reply, estate) = oneshot::channel();
        self.commands.send(Command::Lend(reply)).await.ok()?;
        estate.await.ok()?
    }

    /// Sets whether php-fpm's log is read by this process.
    pub fn relay(&self, is_relayed: bool) {
        self.is_relayed.send_replace(is_relayed);
    }

    /// The pool is this process's, from now on or again.
    pub async fn reclaim(&self) {
        self.relay(true);
        // A pool that has ended needs no command.
        let _ = self.commands.send(Command::Reclaim).await;
    }

    /// Leaves the pool to the process that it was taken over from. A master that was started since then
    /// ends with this process.
    pub async fn give_back(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Return(reply)).await.is_ok() {
            let _ = done.await;
        }
    }

    /// Returns the address for requests; it is the same for the pool's whole life.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A descriptor of the socket that the library in PHP connects to, if the pool has one.
    ///
    /// # Errors
    /// The system has no room for another descriptor.
    pub fn learning_socket(&self) -> io::Result<Option<OwnedFd>> {
        let socket = self.learning.get();
        socket.map(|it| it.as_fd().try_clone_to_owned()).transpose()
    }

    /// The state now and whenever it changes.
    pub fn state(&self) -> watch::Receiver<PoolState> {
        self.state.clone()
    }

    /// Requests that PHP runs at the same time, at most; 0 while there is no
    /// master.
    pub fn workers(&self) -> u32 {
        match *self.state.borrow() {
            PoolState::Ready { workers, .. } => workers,
            _ => 0,
        }
    }

    /// The process of the master, now and whenever it changes; 0: none.
    pub fn master(&self) -> Arc<AtomicU32> {
        self.master.clone()
    }

    /// Returns the memory that the workers use now. Reads files of `/proc`: about a millisecond for a pool of ten.
    pub fn memory(&self) -> WorkerMemory {
        match self.master.load(Ordering::Relaxed) {
            0 => WorkerMemory::default(),
            master => worker_memory(master),
        }
    }

    /// Replaces the master by one with the new spec: the new one is ready before the old one is asked to leave, so
    /// no request waits. The old workers finish their requests. The name and the folder of the socket stay as they
    /// were.
    ///
    /// # Errors
    /// [`StartError`]; the pool goes on as it was.
    pub async fn reload(&self, spec: PoolSpec) -> Result<(), StartError> {
        let (reply, done) = oneshot::channel();
        let command = Command::Reload(Box::new(spec), reply);
        self.commands
            .send(command)
            .await
            .map_err(|_| StartError::Stopped)?;
        done.await.map_err(|_| StartError::Stopped)?
    }

    /// Lets workers finish their requests, for at most the spec's
    /// `drain_timeout`, then ends everything and removes the socket. Close
    /// kept connections first: a worker waits for its client.
    pub async fn stop(self) {
        self.end(Pace::Graceful).await;
    }

    /// Ends everything now and removes the socket.
    pub async fn stop_fast(self) {
        self.end(Pace::Fast).await;
    }

    async fn end(self, pace: Pace) {
        self.stopping.send_replace(true);
        // The task only ends by this command or with its runtime.
        let _ = self.commands.send(Command::Stop(pace)).await;
        let _ = self.task.await;
    }
}
