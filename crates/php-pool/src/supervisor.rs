//! The life of a pool: one task that owns the current master, replaces it when
//! it dies or when the spec changes, and ends everything at stop. What it does
//! in each state is one function; `LIFECYCLE.md` draws the whole.
//!
//! Invariant: while the pool lives there is exactly one current master or a
//! bounded wait for one, every process ever started is in the group of the
//! current master or of one that is being retired, and the socket accepts.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trusted_path::OwnFolder;

use crate::find::{FindError, find_php_fpm};
use crate::fpm_conf::{SpecError, render};
use crate::handover::PoolEstate;
use crate::launch::{Log, PoolFolder, master_account, relay_inherited, start_master};
use crate::master::{Master, signal_group, to_pid};
use crate::probe::{WorkerMemory, group_members, is_group_member, worker_memory};
use crate::sizing::{Machine, WORKER_BYTES_ASSUMED, auto_workers, is_worth_resizing};
use crate::spec::{PoolSpec, Workers};
use crate::state::{Backoff, Event, PoolState};

/// Between TERM and KILL. php-fpm's workers die of TERM at once; one that does
/// not is stuck in the kernel.
const TERM_TO_KILL: Duration = Duration::from_secs(2);

/// How long processes are killed; nothing that obeys takes this long.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How often `workers auto` looks at its workers: memory grows over minutes.
const MEASURE_EVERY: Duration = Duration::from_secs(60);

/// More workers are not wanted more often than this: what looks like spare
/// memory may be the database not yet awake.
const GROW_EVERY: Duration = Duration::from_secs(600);

/// Between two looks at whether a process has ended that is not our child:
/// short at first, since idle workers leave at once. (The system would tell
/// through a process descriptor, which tokio's safe functions cannot await.)
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(2);
/// The longest pause, for workers that finish a long request.
const LOOK_AGAIN_LAST: Duration = Duration::from_millis(200);

/// Callers that may wait with a command; they are few (reload, stop).
const COMMANDS_MAX: usize = 8;

/// Where requests for PHP go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A unix socket that accepts for as long as the pool lives.
    pub path: PathBuf,
}

/// Why a master could not be started.
#[derive(Debug)]
pub enum StartError {
    /// There is no php-fpm.
    Find(FindError),
    /// The administrator wrote what php-fpm cannot carry.
    Spec(SpecError),
    /// The system did not let us.
    Io {
        /// What we tried to do.
        attempt: String,
        /// What the system said.
        source: io::Error,
    },
    /// php-fpm ended instead of becoming ready.
    Refused {
        /// How it ended, if known.
        status: Option<ExitStatus>,
        /// Its last lines.
        said: Vec<String>,
    },
    /// php-fpm neither ended nor became ready.
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// Another process has the pool meanwhile.
    Lent,
    /// The pool has been stopped meanwhile.
    Stopped,
}

impl StartError {
    pub(crate) fn io(attempt: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            attempt: attempt.into(),
            source,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Find(error) => error.fmt(out),
            Self::Spec(error) => error.fmt(out),
            Self::Io { attempt, source } => write!(out, "could not {attempt}: {source}"),
            Self::Refused { status, said } => {
                write!(out, "php-fpm did not start")?;
                if let Some(status) = status {
                    write!(out, " ({status})")?;
                }
                said.iter()
                    .try_for_each(|line| write!(out, "; it said: {line}"))
            }
            Self::Silent { waited } => write!(out, "php-fpm was not ready after {waited:?}"),
            Self::Lent => write!(out, "another process has the pool meanwhile"),
            Self::Stopped => write!(out, "the pool has been stopped"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Find(error) => Some(error),
            Self::Spec(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Refused { .. } | Self::Silent { .. } | Self::Lent | Self::Stopped => None,
        }
    }
}

impl From<FindError> for StartError {
    fn from(error: FindError) -> Self {
        Self::Find(error)
    }
}

impl From<SpecError> for StartError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
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
    /// Whether what php-fpm logs is read here.
    is_relayed: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Command {
    Reload(Box<PoolSpec>, oneshot::Sender<Result<(), StartError>>),
    /// Another process may go on with it; `None`: it has no master.
    Lend(oneshot::Sender<Option<PoolEstate>>),
    /// It is this process's again.
    Reclaim,
    /// The process that it was taken over from goes on with it.
    Return(oneshot::Sender<()>),
    Stop(Pace),
}

/// How patient a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Requests under way are finished, within the spec's `drain_timeout`.
    Graceful,
    /// Requests under way are ended.
    Fast,
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
        let endpoint = Endpoint {
            path: pool_folder.socket_path(),
        };
        let (state_sender, state) = watch::channel(PoolState::Starting);
        let (commands, command_receiver) = mpsc::channel(COMMANDS_MAX);
        let master = Arc::new(AtomicU32::new(0));
        let (stopping, is_stopping) = watch::channel(false);
        let is_relayed = watch::Sender::new(true);
        let mut supervisor = Supervisor {
            workers,
            spec,
            generation: 0,
            inherited: None,
            backoff: Backoff::default(),
            grown_at: Instant::now(),
            pool_folder,
            log: Arc::new(log),
            is_relayed: is_relayed.subscribe(),
            state: state_sender,
            commands: command_receiver,
            master: master.clone(),
            stopping: is_stopping,
            hurry: watch::channel(false).0,
            retiring: JoinSet::new(),
        };
        let first = supervisor.launch().await?;
        let task = tokio::spawn(supervisor.run(Life::Running(first)));
        Ok(Self {
            endpoint,
            state,
            commands,
            master,
            stopping,
            is_relayed,
            task,
        })
    }

    /// What says whether two programs mean the same pool.
    #[must_use]
    pub fn identity(spec: &PoolSpec) -> String {
        format!("{spec:?}")
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
        let endpoint = Endpoint {
            path: pool_folder.socket_path(),
        };
        let (state_sender, state) = watch::channel(PoolState::Ready {
            generation,
            workers,
        });
        let (commands, command_receiver) = mpsc::channel(COMMANDS_MAX);
        let master = Arc::new(AtomicU32::new(pid));
        let (stopping, is_stopping) = watch::channel(false);
        let supervisor = Supervisor {
            workers,
            spec,
            generation,
            inherited: Some(generation),
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
        let task = tokio::spawn(supervisor.run(Life::Lent(first)));
        Ok(Self {
            endpoint,
            state,
            commands,
            master,
            stopping,
            is_relayed,
            task,
        })
    }

    /// What another process needs to go on with the pool; `None` while it has no master. From now on
    /// this process does nothing about it but to read what it logs, and its end leaves the pool to the other.
    pub async fn lend(&self) -> Option<PoolEstate> {
        let (reply, estate) = oneshot::channel();
        self.commands.send(Command::Lend(reply)).await.ok()?;
        estate.await.ok()?
    }

    /// Whether what php-fpm logs is read by this process.
    pub fn relay(&self, is_relayed: bool) {
        self.is_relayed.send_replace(is_relayed);
    }

    /// The pool is this process's, from now on or again.
    pub async fn reclaim(&self) {
        self.relay(true);
        // Nothing is lost with a pool that has ended.
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

    /// Where requests go; the same for the pool's whole life.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
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

    /// What the workers take now. Reads files of `/proc`: about a millisecond
    /// for a pool of ten.
    pub fn memory(&self) -> WorkerMemory {
        match self.master.load(Ordering::Relaxed) {
            0 => WorkerMemory::default(),
            master => worker_memory(master),
        }
    }

    /// Replaces the master by one with the new spec: the new one is ready
    /// before the old one is asked to leave, so no request waits. The old
    /// workers finish what they have. The name and the folder of the socket
    /// stay as they were.
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

/// The task's own data.
struct Supervisor {
    spec: PoolSpec,
    workers: u32,
    generation: u64,
    /// The master that came with the pool from another process.
    inherited: Option<u64>,
    backoff: Backoff,
    grown_at: Instant,
    pool_folder: PoolFolder,
    log: Log,
    is_relayed: watch::Receiver<bool>,
    state: watch::Sender<PoolState>,
    commands: mpsc::Receiver<Command>,
    master: Arc<AtomicU32>,
    stopping: watch::Receiver<bool>,
    hurry: watch::Sender<bool>,
    retiring: JoinSet<()>,
}

/// What the task is about to do; each is one function.
enum Life {
    Running(Master),
    /// Another process acts.
    Lent(Master),
    Down {
        until: Instant,
    },
    Ending(Option<Master>, Pace),
}

impl Supervisor {
    async fn run(mut self, first: Life) {
        let mut life = first;
        loop {
            life = match life {
                Life::Running(master) => self.watch(master).await,
                Life::Lent(master) => match self.wait_for_return(master).await {
                    Some(life) => life,
                    None => return,
                },
                Life::Down { until } => self.wait_and_launch(until).await,
                Life::Ending(master, pace) => return self.end(master, pace).await,
            }
        }
    }

    /// A master lives: waits for its death, a command or the time to measure.
    async fn watch(&mut self, mut master: Master) -> Life {
        let measure_at = Instant::now() + MEASURE_EVERY;
        tokio::select! {
            status = master.exited() => self.died(master, status),
            command = self.commands.recv() => match command {
                Some(Command::Reload(spec, reply)) => self.reload(master, *spec, reply).await,
                Some(Command::Lend(reply)) => self.lend(master, reply),
                Some(Command::Reclaim) => Life::Running(master),
                Some(Command::Return(reply)) => self.give_back(master, reply),
                Some(Command::Stop(pace)) => Life::Ending(Some(master), pace),
                None => Life::Ending(Some(master), Pace::Graceful),
            },
            () = sleep_until(measure_at), if self.spec.workers == Workers::Auto => {
                self.resize(master).await
            }
        }
    }

    /// Another process gets descriptors of everything.
    fn lend(&mut self, master: Master, reply: oneshot::Sender<Option<PoolEstate>>) -> Life {
        let estate = self.estate(&master).ok();
        let is_lent = estate.is_some() && reply.send(estate).is_ok();
        match is_lent {
            true => Life::Lent(master),
            // The caller goes on without.
            false => Life::Running(master),
        }
    }

    fn estate(&self, master: &Master) -> io::Result<PoolEstate> {
        let [process, lifeline, stderr] = master.descriptors()?;
        Ok(PoolEstate {
            spec: Pool::identity(&self.spec),
            folder: self.pool_folder.folder.clone(),
            pid: master.pid,
            group: master.group,
            generation: master.generation,
            workers: self.workers,
            own: self.pool_folder.own.descriptor()?,
            socket: self.pool_folder.socket.try_clone()?.into(),
            process,
            lifeline,
            stderr,
        })
    }

    /// The process that it came from goes on with it, if it still has the same master.
    fn give_back(&mut self, master: Master, reply: oneshot::Sender<()>) -> Life {
        let is_same = self.inherited == Some(master.generation);
        self.pool_folder.is_anothers |= self.inherited.is_some();
        // The caller may have gone away.
        let _ = reply.send(());
        match is_same {
            true => Life::Lent(master),
            false => Life::Running(master),
        }
    }

    /// Another process acts. `None`: this one has nothing more to do with the pool.
    async fn wait_for_return(&mut self, mut master: Master) -> Option<Life> {
        match self.commands.recv().await {
            Some(Command::Reclaim) => {
                // It is no inheritance any more where the other process has gone.
                self.pool_folder.is_anothers = false;
                Some(Life::Running(master))
            }
            Some(Command::Lend(reply)) => Some(self.lend(master, reply)),
            Some(Command::Return(reply)) => Some(self.give_back(master, reply)),
            Some(Command::Reload(_, reply)) => {
                answer(Some(reply), Err(StartError::Lent));
                Some(Life::Lent(master))
            }
            Some(Command::Stop(_)) | None => {
                master.is_over = true;
                self.pool_folder.is_anothers = true;
                self.state.send_replace(PoolState::Stopped);
                None
            }
        }
    }

    /// The master is gone; its workers finish what they have while the next
    /// master comes up.
    fn died(&mut self, master: Master, status: Option<ExitStatus>) -> Life {
        let (attempt, retry_in) = self.backoff.died_after(master.since.elapsed());
        self.master.store(0, Ordering::Relaxed);
        self.state
            .send_replace(PoolState::Restarting { attempt, retry_in });
        (self.log)(Event::Died {
            pid: master.pid,
            status,
            retry_in,
        });
        self.retire(master);
        Life::Down {
            until: Instant::now() + retry_in,
        }
    }

    /// No master lives: starts one when the wait is over or a command says so.
    async fn wait_and_launch(&mut self, until: Instant) -> Life {
        let reply = tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(Command::Reload(spec, reply)) => {
                    self.spec = *spec;
                    self.workers = workers_of(&self.spec, WorkerMemory::default());
                    Some(reply)
                }
                Some(Command::Lend(reply)) => {
                    // The caller may have gone away.
                    let _ = reply.send(None);
                    return Life::Down { until };
                }
                Some(Command::Reclaim) => return Life::Down { until },
                Some(Command::Return(reply)) => {
                    self.pool_folder.is_anothers |= self.inherited.is_some();
                    let _ = reply.send(());
                    return Life::Down { until };
                }
                Some(Command::Stop(pace)) => return Life::Ending(None, pace),
                None => return Life::Ending(None, Pace::Graceful),
            },
            () = sleep_until(until) => None,
        };
        match self.launch().await {
            Ok(master) => {
                answer(reply, Ok(()));
                Life::Running(master)
            }
            Err(error) => {
                let (attempt, retry_in) = self.backoff.died_after(Duration::ZERO);
                self.state
                    .send_replace(PoolState::Restarting { attempt, retry_in });
                (self.log)(Event::StartFailed {
                    reason: error.to_string(),
                    retry_in,
                });
                answer(reply, Err(error));
                Life::Down {
                    until: Instant::now() + retry_in,
                }
            }
        }
    }

    /// Starts a master by the current spec and, once it is ready, makes it the
    /// current one.
    async fn launch(&mut self) -> Result<Master, StartError> {
        let binary = find_php_fpm(self.spec.binary.as_deref())?;
        let conf = render(
            &self.spec,
            self.workers,
            &self.pool_folder.inherited_path(),
            master_account(&self.spec),
        )?;
        let generation = self.generation + 1;
        let start = start_master(
            &self.pool_folder,
            &binary,
            &conf,
            generation,
            &self.spec,
            (&self.log, self.is_relayed.clone()),
        );
        // A stop does not wait for the end of a start: a script of the pool's account could hold
        // the start up.
        let master = tokio::select! {
            started = start => started?,
            _ = self.stopping.wait_for(|is_stopping| *is_stopping) => {
                return Err(StartError::Stopped);
            }
        };
        self.generation = generation;
        let (pid, workers) = (master.pid, self.workers);
        self.master.store(pid, Ordering::Relaxed);
        (self.log)(Event::Ready {
            pid,
            generation,
            workers,
        });
        self.state.send_replace(PoolState::Ready {
            generation,
            workers,
        });
        Ok(master)
    }

    /// Starts a master by a new spec and retires the old one; keeps the old
    /// one and its spec if the new one does not come up.
    async fn reload(
        &mut self,
        old: Master,
        spec: PoolSpec,
        reply: oneshot::Sender<Result<(), StartError>>,
    ) -> Life {
        let workers = workers_of(&spec, worker_memory(old.pid));
        let (result, life) = self.replace(old, spec, workers).await;
        answer(Some(reply), result);
        life
    }

    async fn replace(
        &mut self,
        old: Master,
        spec: PoolSpec,
        workers: u32,
    ) -> (Result<(), StartError>, Life) {
        let old_spec = std::mem::replace(&mut self.spec, spec);
        let old_workers = std::mem::replace(&mut self.workers, workers);
        match self.launch().await {
            Ok(new) => {
                // The queue's new length is a wish; the old one still works.
                let _ = self.pool_folder.adapt(&self.spec);
                self.retire(old);
                (Ok(()), Life::Running(new))
            }
            Err(error) => {
                self.spec = old_spec;
                self.workers = old_workers;
                (Err(error), Life::Running(old))
            }
        }
    }

    /// `workers auto`: measures, and replaces the master when another number
    /// of workers fits the machine clearly better.
    async fn resize(&mut self, master: Master) -> Life {
        let memory = worker_memory(master.pid);
        let (from, to) = (self.workers, workers_of(&self.spec, memory));
        let may_grow = self.grown_at.elapsed() >= GROW_EVERY;
        if memory.workers == 0 || !is_worth_resizing(from, to) || (to > from && !may_grow) {
            return Life::Running(master);
        }
        self.grown_at = Instant::now();
        (self.log)(Event::Resized {
            from,
            to,
            worker_bytes: memory.largest_bytes,
        });
        let (result, life) = self.replace(master, self.spec.clone(), to).await;
        if let Err(error) = result {
            (self.log)(Event::StartFailed {
                reason: error.to_string(),
                retry_in: MEASURE_EVERY,
            });
        }
        life
    }

    /// Lets a master's processes leave, in the background.
    fn retire(&mut self, master: Master) {
        while self.retiring.try_join_next().is_some() {}
        let drain = self.spec.drain_timeout;
        self.retiring.spawn(retire(
            master,
            drain,
            self.hurry.subscribe(),
            self.log.clone(),
        ));
    }

    /// Ends everything.
    async fn end(mut self, master: Option<Master>, pace: Pace) {
        self.state.send_replace(PoolState::Draining);
        self.master.store(0, Ordering::Relaxed);
        self.hurry.send_replace(pace == Pace::Fast);
        if let Some(master) = master {
            self.retire(master);
        }
        while self.retiring.join_next().await.is_some() {}
        let Self {
            pool_folder,
            state,
            log,
            ..
        } = self;
        drop(pool_folder);
        state.send_replace(PoolState::Stopped);
        log(Event::Stopped);
    }
}

/// The caller may have gone away; that changes nothing.
fn answer(reply: Option<oneshot::Sender<Result<(), StartError>>>, result: Result<(), StartError>) {
    if let Some(reply) = reply {
        let _ = reply.send(result);
    }
}

/// How many workers the spec means, given what its present ones take: their
/// memory is available to their successors.
fn workers_of(spec: &PoolSpec, memory: WorkerMemory) -> u32 {
    match spec.workers {
        Workers::Count(count) => count,
        Workers::Auto => {
            let mut machine = Machine::observe();
            machine.available_bytes = machine.available_bytes.saturating_add(memory.total_bytes);
            let worker_bytes = match memory.workers {
                0 => WORKER_BYTES_ASSUMED,
                _ => memory.largest_bytes,
            };
            auto_workers(machine, worker_bytes)
        }
    }
}

/// Lets the processes of a master that lives or died leave: QUIT (finish your
/// request), after `drain` TERM, then KILL.
async fn retire(mut master: Master, drain: Duration, mut hurry: watch::Receiver<bool>, log: Log) {
    if master.has_exited() {
        signal_group(master.pid, Signal::QUIT);
    } else if let Some(pid) = to_pid(master.pid) {
        // The master passes it on and waits for its workers.
        let _ = kill_process(pid, Signal::QUIT);
    }
    let (is_quiet, overran) = tokio::select! {
        () = all_ended(&mut master) => (true, false),
        () = sleep(drain) => (false, true),
        _ = hurry.wait_for(|is_fast| *is_fast) => (false, false),
    };
    if !is_quiet {
        signal_groups(&master, Signal::TERM);
        if timeout(TERM_TO_KILL, all_ended(&mut master)).await.is_err() {
            // Again and again, but not for ever: a process that has left the group
            // can bring others into it.
            let _ = timeout(KILL_PATIENCE, killed(&mut master)).await;
        }
    }
    master.is_over = true;
    log(Event::Retired {
        generation: master.generation,
        forced: !is_quiet,
        overran,
    });
}

/// Kills the processes of the group until all have ended.
async fn killed(master: &mut Master) {
    loop {
        signal_groups(master, Signal::KILL);
        if timeout(LOOK_AGAIN_LAST, all_ended(master)).await.is_ok() {
            return;
        }
    }
}

/// Waits until the master and every member of its group have ended.
async fn all_ended(master: &mut Master) {
    master.exited().await;
    master.let_guard_go();
    let mut pause = LOOK_AGAIN_FIRST;
    loop {
        // Mostly the group is empty but for the shell: a master leaves after its workers.
        let mut members = master.groups().map(group_members).concat();
        if members.is_empty() {
            return;
        }
        while !members.is_empty() {
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_LAST);
            members.retain(|pid| {
                master
                    .groups()
                    .iter()
                    .any(|group| is_group_member(*pid, *group))
            });
        }
    }
}

fn signal_groups(master: &Master, signal: Signal) {
    master
        .groups()
        .into_iter()
        .for_each(|group| signal_group(group, signal));
}
