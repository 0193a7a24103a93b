//! PHP pools of the configuration in force: started before the first request,
//! kept, reloaded or replaced at a reload, and stopped when no request asks them
//! any more. Their events go to the journal; changes that the requests' side must know go to all listeners.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use php_pool::{
    Event, LearningSpec, Pool, PoolEstate, PoolSpec, PoolState, ProcessManager, ProgramFile, RunAs,
    SlowLog, Workers,
};
use serde::{Deserialize, Serialize};
use site::{LogLevel, PhpLogLevel, PhpPool, PhpSettingKind, PoolManager};
use tokio::sync::mpsc;

use crate::processes::account::Account;
use crate::processes::journal::Journal;

/// A pool as requests see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    pub name: String,
    #[serde(with = "crate::processes::messages::os_path")]
    pub socket: PathBuf,
    pub workers: u32,
    /// Grows with each master; connections of older ones must be closed.
    pub generation: u64,
    /// The process of the master; 0: none.
    pub master: u32,
}

/// The sockets to which libraries in PHP connect, by the names of pools.
pub type LearningSockets = HashMap<String, OwnedFd>;

/// The running pools, by name.
pub struct Pools {
    running: BTreeMap<String, RunningPool>,
    /// The pools of the program whose place we take, until one of ours is found to be the same.
    inherited: BTreeMap<String, PoolEstate>,
    journal: Arc<Journal>,
    changes: mpsc::UnboundedSender<PoolStatus>,
}

struct RunningPool {
    spec: PoolSpec,
    pool: Pool,
    /// It came from another program.
    is_inherited: bool,
}

/// Pools that a new configuration does not have: still there for the requests
/// of the old one.
#[derive(Default)]
pub struct RetiredPools(Vec<Pool>);

/// The pools started and changed for a configuration that is not in force yet.
#[derive(Default)]
#[must_use = "what was started runs until the change is undone"]
pub struct PoolChange {
    started: Vec<String>,
    reloaded: Vec<(String, PoolSpec)>,
    wanted: Vec<String>,
}

impl Pools {
    /// Makes a list of no pools yet. Changes of their state go to `changes`: one for each new master, so
    /// the channel stays short.
    pub fn new(journal: Arc<Journal>, changes: mpsc::UnboundedSender<PoolStatus>) -> Pools {
        Pools {
            running: BTreeMap::new(),
            inherited: BTreeMap::new(),
            journal,
            changes,
        }
    }

    /// Takes the pools of the program whose place this one takes. Pools that the configuration has as well
    /// stay as they are.
    pub fn inherit(&mut self, estates: Vec<(String, PoolEstate)>) {
        self.inherited = estates.into_iter().collect();
    }

    /// Lends all of them to a program that takes the place of this one. One without a master stays here.
    pub async fn lend(&self) -> Vec<(String, PoolEstate)> {
        let mut estates = Vec::new();
        for (name, running) in &self.running {
            if let Some(estate) = running.pool.lend().await {
                estates.push((name.clone(), estate));
            }
        }
        estates
    }

    /// Sets whether php-fpm's log is read here.
    pub fn relay(&self, is_relayed: bool) {
        for running in self.running.values() {
            running.pool.relay(is_relayed);
        }
    }

    /// They are this program's, from now on or again; but for those of these names.
    pub async fn reclaim(&self, but: &[String]) {
        for (_, running) in self.running.iter().filter(|(name, _)| !but.contains(name)) {
            running.pool.reclaim().await;
        }
    }

    /// Leaves those that came from another program to it.
    pub async fn give_back(&self) {
        for running in self.running.values() {
            running.pool.give_back().await;
        }
    }

    /// Returns the names of pools that came from another program and that the configuration has as well.
    pub fn inherited_names(&self) -> Vec<String> {
        let inherited = self.running.iter().filter(|(_, it)| it.is_inherited);
        inherited.map(|(name, _)| name.clone()).collect()
    }

    /// Brings the running pools in line with `specs`, except for stopping: pools that are new start, pools
    /// that changed get a new master.
    ///
    /// # Errors
    /// The reason why a pool could not start; everything is as before then.
    pub async fn change(&mut self, specs: Vec<PoolSpec>) -> Result<PoolChange, String> {
        let mut change = PoolChange::default();
        for spec in specs {
            let name = spec.name.clone();
            change.wanted.push(name.clone());
            if let Err(error) = self.adopt(spec, &mut change).await {
                self.undo(change).await;
                return Err(format!("php_pool \"{name}\": {error}"));
            }
        }
        Ok(change)
    }

    async fn adopt(
        &mut self,
        spec: PoolSpec,
        change: &mut PoolChange,
    ) -> Result<(), php_pool::StartError> {
        let name = spec.name.clone();
        match self.running.get_mut(&name) {
            Some(running) if running.spec == spec => {}
            Some(running) => {
                running.pool.reload(spec.clone()).await?;
                let before = std::mem::replace(&mut running.spec, spec);
                change.reloaded.push((name, before));
            }
            None => {
                let inherited = self.goes_on_with(&spec);
                let is_inherited = inherited.is_some();
                let pool = match inherited {
                    Some(pool) => pool,
                    None => self.start(spec.clone()).await?,
                };
                change.started.push(name.clone());
                let running = RunningPool {
                    spec,
                    pool,
                    is_inherited,
                };
                self.running.insert(name, running);
            }
        }
        Ok(())
    }

    /// The pool of the program whose place we take, if it has the same spec. Any other goes on there for as
    /// long as that program needs it.
    fn goes_on_with(&mut self, spec: &PoolSpec) -> Option<Pool> {
        let estate = self.inherited.remove(&spec.name)?;
        if estate.spec != spec.identity() {
            return None;
        }
        let (name, journal) = (spec.name.clone(), self.journal.clone());
        let inherited = Pool::inherit(spec.clone(), estate, move |event| {
            report(&journal, &name, &event);
        });
        let complain = |error| {
            self.journal.warn(format_args!(
                "php_pool \"{}\" cannot go on as it is: {error}",
                spec.name
            ));
        };
        inherited.map_err(complain).ok()
    }

    async fn start(&self, spec: PoolSpec) -> Result<Pool, php_pool::StartError> {
        let name = spec.name.clone();
        let journal = self.journal.clone();
        let pool = Pool::start(spec, move |event| report(&journal, &name, &event)).await?;
        Ok(pool)
    }

    /// Everything as before `change`.
    pub async fn undo(&mut self, change: PoolChange) {
        for name in change.started {
            if let Some(running) = self.running.remove(&name) {
                running.pool.stop_fast().await;
            }
        }
        for (name, spec) in change.reloaded {
            if let Some(running) = self.running.get_mut(&name) {
                match running.pool.reload(spec.clone()).await {
                    Ok(()) => running.spec = spec,
                    Err(error) => self
                        .journal
                        .warn(format_args!("php_pool \"{name}\": {error}")),
                }
            }
        }
    }

    /// The configuration is in force: new pools are watched, and those that it does not
    /// have are retired.
    pub fn commit(&mut self, change: PoolChange) -> RetiredPools {
        for name in &change.started {
            if let Some(running) = self.running.get(name) {
                tokio::spawn(watch(name.clone(), &running.pool, self.changes.clone()));
            }
        }
        let gone: Vec<String> = self
            .running
            .keys()
            .filter(|name| !change.wanted.contains(name))
            .cloned()
            .collect();
        RetiredPools(
            gone.iter()
                .filter_map(|name| Some(self.running.remove(name)?.pool))
                .collect(),
        )
    }

    /// The sockets to which the libraries in PHP connect, by pool.
    pub fn learning_sockets(&self) -> LearningSockets {
        let sockets = self.running.iter().filter_map(|(name, running)| {
            let is_wanted = running.spec.learning.is_some();
            let socket = is_wanted
                .then(|| running.pool.learning_socket())
                .transpose();
            // Without descriptors left, nothing is learned.
            Some((name.clone(), socket.ok().flatten().flatten()?))
        });
        sockets.collect()
    }

    pub fn statuses(&self) -> Vec<PoolStatus> {
        self.running
            .iter()
            .filter_map(|(name, running)| {
                status(name, &running.pool, *running.pool.state().borrow())
            })
            .collect()
    }

    /// Ends all of them.
    pub async fn stop(self, is_graceful: bool) {
        let pools = self
            .running
            .into_values()
            .map(|running| running.pool)
            .collect();
        RetiredPools(pools).stop(is_graceful).await;
    }
}

impl RetiredPools {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All at once: each may wait for its requests.
    pub async fn stop(self, is_graceful: bool) {
        let tasks: Vec<_> = self
            .0
            .into_iter()
            .map(|pool| {
                tokio::spawn(async move {
                    if is_graceful {
                        pool.stop().await
                    } else {
                        pool.stop_fast().await
                    }
                })
            })
            .collect();
        for task in tasks {
            // A task of ours that panicked has nothing left to stop.
            let _ = task.await;
        }
    }
}

/// Returns the status if there is a master; a pool between two masters keeps its last status.
fn status(name: &str, pool: &Pool, state: PoolState) -> Option<PoolStatus> {
    let (workers, generation) = match state {
        PoolState::Ready {
            generation,
            workers,
        } => (workers, generation),
        // It was ready when it was started; requests wait in its socket.
        PoolState::Restarting { .. } | PoolState::Starting => (1, 0),
        PoolState::Draining | PoolState::Stopped => return None,
    };
    let socket = pool.endpoint().path.clone();
    Some(PoolStatus {
        name: name.to_owned(),
        socket,
        workers,
        generation,
        master: pool.master().load(Ordering::Relaxed),
    })
}

/// Reports each new master until the pool ends.
fn watch(
    name: String,
    pool: &Pool,
    changes: mpsc::UnboundedSender<PoolStatus>,
) -> impl Future<Output = ()> + Send + 'static {
    let mut state = pool.state();
    let socket = pool.endpoint().path.clone();
    let master = pool.master();
    async move {
        while state.changed().await.is_ok() {
            let PoolState::Ready {
                generation,
                workers,
            } = *state.borrow_and_update()
            else {
                continue;
            };
            let status = PoolStatus {
                name: name.clone(),
                socket: socket.clone(),
                workers,
                generation,
                master: master.load(Ordering::Relaxed),
            };
            if changes.send(status).is_err() {
                return;
            }
        }
    }
}

fn report(journal: &Journal, name: &str, event: &Event) {
    let (level, message) = match event {
        Event::Ready { pid, workers, .. } => (
            LogLevel::Notice,
            format!("ready with {workers} workers, master process {pid}"),
        ),
        Event::Log { level, message } => (php_level(*level), format!("php-fpm: {message}")),
        Event::Died {
            pid,
            status,
            retry_in,
        } => {
            let status = status.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
            let message =
                format!("master process {pid} ended ({status}); the next starts in {retry_in:?}");
            (LogLevel::Error, message)
        }
        Event::StartFailed { reason, retry_in } => (
            LogLevel::Error,
            format!("{reason}; tried again in {retry_in:?}"),
        ),
        Event::Retired { overran: true, .. } => (
            LogLevel::Notice,
            "requests that took too long were ended with their workers".to_owned(),
        ),
        Event::Retired { overran: false, .. } => {
            (LogLevel::Info, "the old master has left".to_owned())
        }
        Event::Resized {
            from,
            to,
            worker_bytes,
        } => (
            LogLevel::Notice,
            format!(
                "{to} workers instead of {from}: one takes {} MB",
                worker_bytes >> 20
            ),
        ),
        Event::Degraded { reason } => (LogLevel::Warn, reason.clone()),
        Event::Stopped => (LogLevel::Notice, "stopped".to_owned()),
    };
    journal.line(level, format_args!("php_pool \"{name}\": {message}"));
}

/// php-fpm's levels in ours. Its `alert` is the reason why it gave up; our log keeps that word for faults
/// of the server itself.
fn php_level(level: php_pool::LogLevel) -> LogLevel {
    match level {
        php_pool::LogLevel::Debug => LogLevel::Debug,
        php_pool::LogLevel::Notice => LogLevel::Info,
        php_pool::LogLevel::Warning => LogLevel::Warn,
        php_pool::LogLevel::Error | php_pool::LogLevel::Alert => LogLevel::Error,
    }
}

/// Returns the specification of a pool for `php_pool`, from the configuration. `server` is the account that
/// serves, `php` the one that runs PHP; `None` if it is that of this process.
///
/// `terminate_after` is the `request_terminate_timeout` of a pool that has none; `learning` is set if pages
/// are learned.
pub fn spec(
    pool: &PhpPool,
    (server, php): (Option<&Account>, Option<&Account>),
    terminate_after: Duration,
    learning: Option<LearningSpec>,
) -> PoolSpec {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut spec = PoolSpec::new(&pool.name);
    spec.binary = pool.binary.clone();
    spec.program = ProgramFile::of(pool.binary.as_deref());
    spec.socket_owner = server.map(|account| (account.uid, account.gid));
    spec.workers = pool
        .workers
        .map_or(Workers::Auto, |workers| Workers::Count(count(workers)));
    spec.manager = match pool.manager {
        PoolManager::Static => ProcessManager::Static,
        PoolManager::Dynamic {
            start_servers,
            min_spare_servers,
            max_spare_servers,
        } => ProcessManager::Dynamic {
            start: start_servers.map(count),
            min_spare: min_spare_servers.map(count),
            max_spare: max_spare_servers.map(count),
        },
        PoolManager::OnDemand { idle_timeout } => ProcessManager::OnDemand { idle_timeout },
    };
    if let Some(requests) = pool.max_requests {
        spec.max_requests = u32::try_from(requests).unwrap_or(u32::MAX);
    }
    spec.request_terminate_timeout = match pool.request_terminate_timeout {
        Some(Duration::ZERO) => None,
        Some(timeout) => Some(timeout),
        None => Some(terminate_after),
    };
    spec.slow_log = pool
        .slow_log
        .clone()
        .map(|(file, timeout)| SlowLog { file, timeout });
    // Only root may choose who runs PHP, and must.
    spec.run_as = php.map(|php| RunAs {
        user: php.name.clone(),
        group: php.group.clone(),
        uid: php.uid,
        gid: php.gid,
    });
    spec.no_new_privs = pool.no_new_privs;
    spec.chdir = pool.chdir.clone();
    spec.env = pool.env.clone();
    spec.clear_env = pool.clear_env;
    for setting in &pool.settings {
        let value = (setting.name.clone(), setting.value.clone());
        let flag = (setting.name.clone(), is_on(&setting.value));
        match setting.kind {
            PhpSettingKind::Value => spec.php_value.push(value),
            PhpSettingKind::Flag => spec.php_flag.push(flag),
            PhpSettingKind::AdminValue => spec.php_admin_value.push(value),
            PhpSettingKind::AdminFlag => spec.php_admin_flag.push(flag),
        }
    }
    spec.catch_workers_output = pool.catch_workers_output;
    if let Some(backlog) = pool.listen_backlog {
        spec.listen_backlog = backlog;
    }
    spec.rlimit_files = pool.rlimit_files;
    spec.log_level = match pool.log_level {
        PhpLogLevel::Debug => php_pool::LogLevel::Debug,
        PhpLogLevel::Notice => php_pool::LogLevel::Notice,
        PhpLogLevel::Warning => php_pool::LogLevel::Warning,
        PhpLogLevel::Error => php_pool::LogLevel::Error,
        PhpLogLevel::Alert => php_pool::LogLevel::Alert,
    };
    spec.drain_timeout = pool.drain_timeout;
    spec.extra = pool.extra.clone();
    spec.learning = learning;
    spec
}

fn is_on(value: &str) -> bool {
    ["on", "yes", "true", "1"]
        .iter()
        .any(|on| value.eq_ignore_ascii_case(on))
}
