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

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::find::{FindError, find_php_fpm};
use crate::fpm_conf::{SpecError, render};
use crate::launch::{Log, Master, PoolFolder, master_account, start_master};
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
            Self::Refused { .. } | Self::Silent { .. } | Self::Stopped => None,
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
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Command {
    Reload(Box<PoolSpec>, oneshot::Sender<Result<(), StartError>>),
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
        let mut supervisor = Supervisor {
            workers,
            spec,
            generation: 0,
            backoff: Backoff::default(),
            grown_at: Instant::now(),
            pool_folder,
            log: Arc::new(log),
            state: state_sender,
            commands: command_receiver,
            master: master.clone(),
            stopping: is_stopping,
            hurry: watch::channel(false).0,
            retiring: JoinSet::new(),
        };
        let first = supervisor.launch().await?;
        let task = tokio::spawn(supervisor.run(first));
        Ok(Self {
            endpoint,
            state,
            commands,
            master,
            stopping,
            task,
        })
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
    backoff: Backoff,
    grown_at: Instant,
    pool_folder: PoolFolder,
    log: Log,
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
    Down { until: Instant },
    Ending(Option<Master>, Pace),
}

impl Supervisor {
    async fn run(mut self, first: Master) {
        let mut life = Life::Running(first);
        loop {
            life = match life {
                Life::Running(master) => self.watch(master).await,
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
                Some(Command::Stop(pace)) => Life::Ending(Some(master), pace),
                None => Life::Ending(Some(master), Pace::Graceful),
            },
            () = sleep_until(measure_at), if self.spec.workers == Workers::Auto => {
                self.resize(master).await
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
            &self.log,
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
        signal_group(master.pid, Signal::TERM);
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
        signal_group(master.pid, Signal::KILL);
        if timeout(LOOK_AGAIN_LAST, all_ended(master)).await.is_ok() {
            return;
        }
    }
}

/// Waits until the master and every member of its group have ended.
async fn all_ended(master: &mut Master) {
    master.exited().await;
    let mut pause = LOOK_AGAIN_FIRST;
    loop {
        // Mostly the group is empty: a master leaves after its workers.
        let mut members = group_members(master.pid);
        if members.is_empty() {
            return;
        }
        while !members.is_empty() {
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_LAST);
            members.retain(|pid| is_group_member(*pid, master.pid));
        }
    }
}

/// Signals the group that a master began, if anybody is left in it. Its number
/// is not given to another process while it has members.
pub(crate) fn signal_group(master: u32, signal: Signal) {
    if group_members(master).is_empty() {
        return;
    }
    if let Some(group) = to_pid(master) {
        // Ended between the look and the signal: just as well.
        let _ = kill_process_group(group, signal);
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
