//! The program's life once the command line is understood: read the
//! configuration, open logs, bind, start PHP, serve, and then do what signals
//! say until the end.
//!
//! ```text
//! start:   read -> logs -> limits -> sockets -> PHP -> serve -> pid file
//! reload:  the same with everything kept that stays; whatever fails, the
//!          running configuration goes on untouched
//! QUIT:    no new connections -> requests end -> PHP ends -> files removed
//! ```

use std::sync::Arc;
use std::time::Duration;

use server::live::cache_zones::DefaultMemory;
use site::{Content, Process, Site};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::account::{self, Account};
use crate::apart::News;
use crate::backend::{Backend, Ready};
use crate::config::{self, Accepted, Invocation};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::limits;
use crate::logs::{self, LogFiles};
use crate::pid_file::PidFile;
use crate::pools::{self, Leaving, PoolStatus, Pools};
use crate::serving::worker_count;
use crate::signals::{Signals, Told};
use crate::sockets::{Bound, Wanted};

/// Pools that a reload removed are stopped at the latest after this time: a
/// request of the old configuration that takes longer is on its own.
const LEAVING_MAX: Duration = Duration::from_secs(60);
/// `request_terminate_timeout` of pools that have none is at least this.
const LEAST_TERMINATE: Duration = Duration::from_secs(300);
/// And this much more than the longest `*_read_timeout`.
const BEYOND_READING: Duration = Duration::from_secs(60);
/// A worker process that ends sooner than this after its start is not started
/// again at once.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// How the program is run.
pub struct Plan {
    pub invocation: Invocation,
    /// `mayfly serve` is watched by who typed it and needs no pid file.
    pub writes_pid_file: bool,
    /// Called when everything listens.
    pub when_ready: Box<dyn FnOnce(&Process)>,
}

/// A configuration in force, and what belongs to it.
struct Front {
    invocation: Invocation,
    journal: Arc<Journal>,
    accepted: AcceptedConfiguration,
    bound: Bound,
    logs: LogFiles,
    pools: Pools,
    pool_changes: mpsc::UnboundedReceiver<PoolStatus>,
    account: Option<Account>,
    backend: Backend,
    /// Pools that requests of earlier configurations may still need: until the
    /// configuration with this serial is released, or this moment.
    leaving: Vec<(u64, Instant, Leaving)>,
    pid_file: Option<PidFile>,
    writes_pid_file: bool,
    started_at: Instant,
}

/// What stays known of the configuration once it is served.
struct AcceptedConfiguration {
    process: Process,
    sources: nginx_conf::Sources,
    names_pid_file: bool,
}

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Graceful,
    Fast,
    /// Nobody serves any more, and nobody can be made to.
    Broken,
}

/// Reads, starts and serves until the end.
pub async fn run(plan: Plan, journal: Arc<Journal>, accepted: Accepted) -> Exit {
    // Signals count from here on: none may be lost between start and loop.
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            journal.emerg(format_args!("signals cannot be received: {error}"));
            return Exit::Refused;
        }
    };
    let when_ready = plan.when_ready;
    let started = tokio::select! {
        started = Front::start(plan.invocation, &journal, accepted, plan.writes_pid_file) => started,
        () = signals.told_to_stop() => return Exit::Done,
    };
    match started {
        Ok(mut front) => {
            when_ready(&front.accepted.process);
            journal.start_is_over();
            let pace = front.serve(&mut signals).await;
            front.end(pace, &mut signals).await
        }
        Err(messages) => {
            messages.iter().for_each(|message| journal.emerg(message));
            Exit::Refused
        }
    }
}

impl Front {
    async fn start(
        invocation: Invocation,
        journal: &Arc<Journal>,
        accepted: Accepted,
        writes_pid_file: bool,
    ) -> Result<Front, Vec<String>> {
        let Accepted {
            site,
            sources,
            warnings,
            names_pid_file,
        } = accepted;
        let process = site.process.clone();
        let logs = LogFiles::open(&logs::paths(&site))?;
        journal.use_logs(&process.error_logs, &logs);
        for (level, line) in config::lines(&warnings, &sources) {
            journal.record(level, line);
        }
        limits::raise_open_files(process.open_files_limit, journal);
        let account = account::to_serve(process.user.as_ref()).map_err(one)?;
        warn_of_shared_accounts(&process, journal);
        limits::make_temp_folders(&site, account.as_ref(), &invocation.prefix, journal)
            .map_err(one)?;
        let default_memory = say_default_memory(&site);
        let workers = worker_count(process.workers);
        let bound = Bound::default()
            .bind(&wanted(&site), workers, journal)
            .await?;
        let unbind = |message: String| {
            bound.retire(&Bound::default());
            vec![message]
        };
        let (sender, pool_changes) = mpsc::unbounded_channel();
        let mut pools = Pools::new(journal.clone(), sender);
        let specs = specs(&site, account.as_ref()).map_err(unbind)?;
        let change = pools.change(specs).await.map_err(unbind)?;
        pools.settle(change);
        let ready = Ready {
            site,
            invocation: &invocation,
            sources: &sources,
            sockets: bound.sockets(),
            logs: logs.clone(),
            pools: pools.statuses(),
        };
        let backend = match Backend::start(ready, account.clone()).await {
            Ok(backend) => backend,
            Err(message) => {
                pools.stop(false).await;
                return Err(unbind(message));
            }
        };
        let mut front = Front {
            invocation,
            journal: journal.clone(),
            accepted: AcceptedConfiguration {
                process,
                sources,
                names_pid_file,
            },
            bound,
            logs,
            pools,
            pool_changes,
            account,
            backend,
            leaving: Vec::new(),
            pid_file: None,
            writes_pid_file,
            started_at: Instant::now(),
        };
        if let Err(message) = front.write_pid_file() {
            front.dismantle(Pace::Fast).await;
            return Err(vec![message]);
        }
        if let Some(message) = default_memory {
            front.journal.notice(message);
        }
        front.journal.notice("ready");
        Ok(front)
    }

    /// Writes the file that the configuration in force names; removes the one
    /// it replaces.
    fn write_pid_file(&mut self) -> Result<(), String> {
        let path = &self.accepted.process.pid_file;
        if !self.writes_pid_file
            || self
                .pid_file
                .as_ref()
                .is_some_and(|file| file.path == *path)
        {
            return Ok(());
        }
        let written = match PidFile::write(path) {
            Ok(written) => Some(written),
            // Nobody asked for it: an ordinary user serves without.
            Err(message) if !self.accepted.names_pid_file => {
                self.journal.notice(format_args!("no pid file: {message}"));
                None
            }
            Err(message) => return Err(message),
        };
        if let Some(former) = std::mem::replace(&mut self.pid_file, written) {
            former.remove();
        }
        Ok(())
    }

    /// Does what signals say, until one says stop.
    async fn serve(&mut self, signals: &mut Signals) -> Pace {
        loop {
            let next_leave = self.leaving.iter().map(|(_, until, _)| *until).min();
            tokio::select! {
                told = signals.next() => match told {
                    Told::Reload => {
                        self.journal.notice("signal HUP received, reloading");
                        // A PHP that does not come up must not hold up the end.
                        let reloaded = tokio::select! {
                            reloaded = self.reload() => reloaded,
                            () = signals.told_to_end() => {
                                self.journal.notice("signal TERM or INT received, stopping");
                                return Pace::Fast;
                            }
                        };
                        match reloaded {
                            Ok(()) => self.journal.notice("reloaded"),
                            Err(messages) => for message in messages {
                                self.journal.emerg(message);
                            },
                        }
                    }
                    Told::Reopen => self.reopen(),
                    Told::Quit => {
                        self.journal.notice("signal QUIT received, stopping after the requests under way");
                        return Pace::Graceful;
                    }
                    Told::Stop => {
                        self.journal.notice("signal TERM or INT received, stopping");
                        return Pace::Fast;
                    }
                    Told::Upgrade => self.journal.notice(
                        "signal USR2 received: replacing the program while it runs is not there yet",
                    ),
                },
                Some(status) = self.pool_changes.recv() => self.backend.pool_changed(status),
                news = self.backend.news() => match news {
                    News::Released(serial) => self.let_leave(|released, _| released <= serial),
                    News::Ended(how) => if self.worker_ended(&how).await.is_err() {
                        return Pace::Broken;
                    },
                },
                () = sleep_until(next_leave) => {
                    let now = Instant::now();
                    self.let_leave(|_, until| until <= now);
                }
            }
        }
    }

    /// Stops the pools that nobody needs any more, without waiting for them.
    fn let_leave(&mut self, is_free: impl Fn(u64, Instant) -> bool) {
        let (free, still): (Vec<_>, Vec<_>) = self
            .leaving
            .drain(..)
            .partition(|(serial, until, _)| is_free(*serial, *until));
        self.leaving = still;
        for (_, _, leaving) in free {
            tokio::spawn(leaving.stop(true));
        }
    }

    /// A new configuration in place of the one in force.
    async fn reload(&mut self) -> Result<(), Vec<String>> {
        let Accepted {
            site,
            sources,
            warnings,
            names_pid_file,
        } = match config::judge(self.invocation.read()) {
            Ok(accepted) => accepted,
            Err(rejected) => {
                let lines = config::lines(&rejected.diagnostics, &rejected.sources);
                return Err(lines.map(|(_, line)| line).collect());
            }
        };
        for (level, line) in config::lines(&warnings, &sources) {
            self.journal.line(level, line);
        }
        let process = site.process.clone();
        self.say_what_needs_a_restart(&process);
        warn_of_shared_accounts(&process, &self.journal);
        let logs = LogFiles::open(&logs::paths(&site))?;
        let prefix = &self.invocation.prefix;
        limits::make_temp_folders(&site, self.account.as_ref(), prefix, &self.journal)
            .map_err(one)?;
        let specs = specs(&site, self.account.as_ref()).map_err(one)?;
        let workers = worker_count(self.accepted.process.workers);
        let bound = self
            .bound
            .bind(&wanted(&site), workers, &self.journal)
            .await?;
        let change = match self.pools.change(specs).await {
            Ok(change) => change,
            Err(message) => {
                bound.retire(&self.bound);
                return Err(vec![message]);
            }
        };
        let ready = Ready {
            site,
            invocation: &self.invocation,
            sources: &sources,
            sockets: bound.sockets(),
            logs: logs.clone(),
            pools: self.pools.statuses(),
        };
        let serial = match self.backend.replace(ready).await {
            Ok(serial) => serial,
            Err(message) => {
                self.pools.undo(change).await;
                bound.retire(&self.bound);
                return Err(vec![message]);
            }
        };
        let leaving = self.pools.settle(change);
        if !leaving.is_empty() {
            let until = Instant::now() + LEAVING_MAX;
            self.leaving.push((serial - 1, until, leaving));
        }
        self.bound.retire(&bound);
        self.bound = bound;
        self.journal.use_logs(&process.error_logs, &logs);
        self.logs = logs;
        self.accepted = AcceptedConfiguration {
            process,
            sources,
            names_pid_file,
        };
        if let Err(message) = self.write_pid_file() {
            self.journal.error(message);
        }
        Ok(())
    }

    /// What a reload cannot change.
    fn say_what_needs_a_restart(&self, process: &Process) {
        let old = &self.accepted.process;
        let changed = [
            (
                "worker_processes",
                worker_count(old.workers) != worker_count(process.workers),
            ),
            ("user", account::is_root() && old.user != process.user),
            (
                "worker_rlimit_nofile",
                old.open_files_limit != process.open_files_limit,
            ),
        ];
        for (name, _) in changed.iter().filter(|(_, is_changed)| *is_changed) {
            self.journal.warn(format_args!(
                "a change of \"{name}\" takes effect at the next start"
            ));
        }
    }

    /// USR1: the logs were moved away.
    fn reopen(&mut self) {
        self.journal.notice("signal USR1 received, reopening logs");
        match LogFiles::open(&self.logs.files.keys().cloned().collect()) {
            Ok(logs) => {
                self.backend.reopen(&logs);
                self.journal
                    .use_logs(&self.accepted.process.error_logs, &logs);
                self.logs = logs;
            }
            Err(messages) => messages
                .iter()
                .for_each(|message| self.journal.error(message)),
        }
    }

    /// Starts the worker process again, with what is in force.
    async fn worker_ended(&mut self, how: &str) -> Result<(), ()> {
        self.journal.error(format_args!(
            "worker process ended ({how}), starting another"
        ));
        if self.started_at.elapsed() < SHORT_LIFE {
            tokio::time::sleep(SHORT_LIFE).await;
        }
        self.started_at = Instant::now();
        // The texts in force, not the files: they may have changed meanwhile.
        let texts = Arc::new(nginx_conf::MemoryLoader::from(&self.accepted.sources));
        let invocation = Invocation {
            texts: Some(texts),
            ..self.invocation.clone()
        };
        let restarted = match config::judge(invocation.read()) {
            Err(_) => Err("the configuration in force is not valid any more".to_owned()),
            Ok(accepted) => {
                let ready = Ready {
                    site: accepted.site,
                    invocation: &invocation,
                    sources: &self.accepted.sources,
                    sockets: self.bound.sockets(),
                    logs: self.logs.clone(),
                    pools: self.pools.statuses(),
                };
                self.backend.restart(ready).await
            }
        };
        restarted.map_err(|message| self.journal.emerg(message))
    }

    /// Ends what runs, in the order in which one needs the other.
    async fn end(mut self, pace: Pace, signals: &mut Signals) -> Exit {
        let mut pace = pace;
        if pace == Pace::Graceful {
            // Whoever comes now is told so at once instead of waiting for nothing.
            self.bound.retire(&Bound::default());
            self.bound = Bound::default();
            self.backend.stop_gracefully();
            let deadline = self
                .accepted
                .process
                .shutdown_timeout
                .map(|time| Instant::now() + time);
            pace = self.drain(deadline, signals).await;
        }
        let journal = self.journal.clone();
        self.dismantle(pace).await;
        journal.notice("exit");
        if pace == Pace::Broken {
            Exit::Refused
        } else {
            Exit::Done
        }
    }

    async fn drain(&mut self, deadline: Option<Instant>, signals: &mut Signals) -> Pace {
        loop {
            tokio::select! {
                news = self.backend.news() => match news {
                    News::Ended(_) => return Pace::Graceful,
                    News::Released(_) => {}
                },
                Some(status) = self.pool_changes.recv() => self.backend.pool_changed(status),
                told = signals.next() => match told {
                    Told::Stop => return Pace::Fast,
                    Told::Reopen => self.reopen(),
                    Told::Quit | Told::Reload | Told::Upgrade => {}
                },
                () = sleep_until(deadline) => {
                    self.journal.notice("worker_shutdown_timeout is over, ending what is still under way");
                    return Pace::Fast;
                }
            }
        }
    }

    async fn dismantle(self, pace: Pace) {
        self.bound.retire(&Bound::default());
        self.backend.end().await;
        let is_graceful = pace == Pace::Graceful;
        for (_, _, leaving) in self.leaving {
            leaving.stop(is_graceful).await;
        }
        self.pools.stop(is_graceful).await;
        if let Some(file) = self.pid_file {
            file.remove();
        }
    }
}

fn one(message: String) -> Vec<String> {
    vec![message]
}

fn wanted(site: &Site) -> Wanted {
    let listener = |it: &site::Listener| (it.address.clone(), it.options.clone());
    site.http.listeners.iter().map(listener).collect()
}

/// What the cache may take where the configuration does not say.
fn say_default_memory(site: &Site) -> Option<String> {
    let memory = DefaultMemory::of(site)?;
    let total = memory.bytes_each.saturating_mul(memory.zones as u64) >> 20;
    let of = match &memory.limit {
        Some(limit) => format!("a quarter of {limit}"),
        None => "the system does not say how much memory there is".to_owned(),
    };
    Some(format!(
        "stored responses may take {total} MB, {of}; \"memory=\" of the zone says otherwise"
    ))
}

/// How long a request may take a worker of an own pool where the pool does not say: beyond what
/// its visitor waits for, and enough for an import or a backup that a script goes on with.
fn terminate_timeout(site: &Site) -> Duration {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let read_timeouts = locations.filter_map(|location| match &location.settings.content {
        Content::Pass(pass) => Some(pass.exchange.read_timeout),
        _ => None,
    });
    let longest = read_timeouts.max().unwrap_or_default();
    LEAST_TERMINATE.max(longest.saturating_add(BEYOND_READING))
}

fn specs(site: &Site, server: Option<&Account>) -> Result<Vec<php_pool::PoolSpec>, String> {
    let terminate_after = terminate_timeout(site);
    let process = &site.process;
    process
        .php_pools
        .iter()
        .map(|pool| {
            let php = match account::is_root() {
                true => Some(account::to_run_php(pool)?),
                false => None,
            };
            Ok(pools::spec(pool, server, php.as_ref(), terminate_after))
        })
        .collect()
}

/// Says which pools run as the account that serves.
fn warn_of_shared_accounts(process: &Process, journal: &Journal) {
    if account::is_root() {
        for message in account::shared_with_php(process) {
            journal.warn(message);
        }
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Diagnostics of a refused configuration go to the log of `-e` as well.
pub fn log_refusal(journal: &Journal, rejected: &config::Rejected) {
    for (level, line) in config::lines(&rejected.diagnostics, &rejected.sources) {
        journal.record(level, line);
    }
}
