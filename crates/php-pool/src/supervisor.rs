//! The life of a pool: one task that owns the current master, replaces it when it dies or when
//! the spec changes, and ends everything at stop. Its work in each state is one function;
//! `LIFECYCLE.md` draws the whole.
//!
//! Invariant: while the pool lives there is exactly one current master or a
//! bounded wait for one, every process ever started is in the group of the
//! current master or of one that is being retired, and the socket accepts.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::error::StartError;
use crate::find::find_php_fpm;
use crate::fpm_conf::render;
use crate::handover::PoolEstate;
use crate::launch::{Log, PoolFolder, master_account, start_master};
use crate::master::Master;
use crate::probe::{WorkerMemory, worker_memory};
use crate::retiring;
use crate::sizing::{Machine, WORKER_BYTES_ASSUMED, auto_workers, is_worth_resizing};
use crate::spec::{PoolSpec, Workers};
use crate::state::{Backoff, Event, PoolState};

/// How often `workers auto` looks at its workers: memory grows over minutes.
const MEASURE_EVERY: Duration = Duration::from_secs(60);

/// More workers are not wanted more often than this: memory that looks spare may be for a
/// database that is not yet awake.
const GROW_EVERY: Duration = Duration::from_secs(600);

/// An order of the handle.
#[derive(Debug)]
pub(crate) enum Command {
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
pub(crate) enum Pace {
    /// Requests under way are finished, within the spec's `drain_timeout`.
    Graceful,
    /// Requests under way are ended.
    Fast,
}

/// The task's own data.
pub(crate) struct Supervisor {
    pub(crate) spec: PoolSpec,
    pub(crate) workers: u32,
    pub(crate) generation: u64,
    /// The master that came with the pool from another process.
    pub(crate) inherited: Option<u64>,
    pub(crate) backoff: Backoff,
    pub(crate) grown_at: Instant,
    pub(crate) pool_folder: PoolFolder,
    pub(crate) log: Log,
    pub(crate) is_relayed: watch::Receiver<bool>,
    pub(crate) state: watch::Sender<PoolState>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) master: Arc<AtomicU32>,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) hurry: watch::Sender<bool>,
    pub(crate) retiring: JoinSet<()>,
}

/// The task's next step; each is one function.
pub(crate) enum Life {
    Running(Master),
    /// Another process acts.
    Lent(Master),
    Down {
        until: Instant,
    },
    Ending(Option<Master>, Pace),
}

impl Supervisor {
    pub(crate) async fn run(mut self, first: Life) {
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
        // The library reports to this process: the other one starts a pool of its own.
        let may_go_on = self.spec.learning.is_none();
        let estate = may_go_on.then(|| self.estate(&master).ok()).flatten();
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
            spec: self.spec.identity(),
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

    /// The master is gone; its workers finish their requests while the next master comes up.
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

    /// No master lives: starts one when the wait is over or a command asks for it.
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
    pub(crate) async fn launch(&mut self) -> Result<Master, StartError> {
        let binary = find_php_fpm(self.spec.binary.as_deref())?;
        self.pool_folder.listen_for_library(&self.spec)?;
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
        self.retiring.spawn(retiring::retire(
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

/// How many workers the spec means, given the memory of its present ones: their memory is
/// available to their successors.
pub(crate) fn workers_of(spec: &PoolSpec, memory: WorkerMemory) -> u32 {
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
