//! The program's life once the command line is read: a configuration is put in force
//! ([`activation`]), and then signals are obeyed until the end.
//!
//! ```text
//! start:   activation from nothing -> pid file -> signals
//! HUP:     activation from what is served; if it fails, that goes on untouched
//! USR2:    another program in the place of this one ([`upgrading`])
//! QUIT:    no new connections -> requests end -> PHP ends -> files removed
//! ```
//!
//! Callers of the control socket may give the orders of signals as well (`-s`); they get the outcome.

mod upgrading;

use std::collections::HashSet;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control::socket::ControlSocket;
use live_state::cache_zones::{DefaultMemory, ExcessiveMemory};
use site::{ListenAddress, LogLevel, Process, Site};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::config::{self, AcceptedConfiguration, Invocation};
use crate::processes::account::{self, Account};
use crate::processes::activation::{self, ActiveSite, Configuration, HeldResources, Surroundings};
use crate::processes::backend::{Backend, Patience};
use crate::processes::certificates::{Certificates, Change};
use crate::processes::handover::Handover;
use crate::processes::journal::Journal;
use crate::processes::limits;
use crate::processes::logs::LogFiles;
use crate::processes::orders::{self, Orders};
use crate::processes::passed_sockets::{self, PassedSocket};
use crate::processes::pid_file::PidFile;
use crate::processes::pools::{PoolStatus, Pools, RetiredPools};
use crate::processes::service_manager::ServiceManager;
use crate::processes::serving::worker_count;
use crate::processes::sibling_socket::SiblingSocket;
use crate::processes::signals::{Instruction, ReceivedInstruction, Signals};
use crate::processes::sockets::BoundSockets;
use crate::processes::upgrade::predecessor::Predecessor;
use crate::processes::upgrade::program::StartedProgram;
use crate::processes::upgrade::wire::InheritedResources;
use crate::processes::worker_handle::WorkerEvent;
use command_line::Exit;

/// Pools that a reload retired are stopped at the latest after this time: a
/// request of the old configuration that takes longer is on its own.
const MAX_RETIREMENT: Duration = Duration::from_secs(60);
/// A worker process that ends sooner than this after its start is not started
/// again at once.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// How the program is run.
pub struct Plan {
    pub invocation: Invocation,
    /// `mayfly serve` is watched by who typed it and needs no pid file.
    pub writes_pid_file: bool,
    /// The path of the control socket if the configuration sets none; `None`: beside the pid file.
    pub control_socket: Option<PathBuf>,
    /// Called when everything listens, with the account that serves; `None`: this process.
    pub when_ready: ReadyCallback,
    /// How it was started.
    pub program: StartedProgram,
    /// The program whose place it takes, and the resources that one gives.
    pub predecessor: Option<(Predecessor, InheritedResources)>,
    /// Sockets that the service manager has bound.
    pub passed: Vec<PassedSocket>,
}

type LogLine = (LogLevel, String);

/// [`Plan::when_ready`]
pub type ReadyCallback = Box<dyn FnOnce(Option<&Account>)>;

/// The configuration that is served, and what belongs to it.
// Large: what one loop owns: each event replaces some of it, and a reload all that belongs to the configuration.
struct Supervisor {
    invocation: Invocation,
    journal: Arc<Journal>,
    configuration: Configuration,
    sockets: BoundSockets,
    control: Option<ControlSocket>,
    unnamed_control: Option<PathBuf>,
    logs: LogFiles,
    pools: Pools,
    pool_changes: mpsc::UnboundedReceiver<PoolStatus>,
    account: Option<Account>,
    backend: Backend,
    certificates: Certificates,
    retired: Vec<RetiredGeneration>,
    pid_file: Option<PidFile>,
    writes_pid_file: bool,
    /// When the worker process was started.
    started_at: Instant,
    orders: Orders,
    program: StartedProgram,
    role: Role,
    /// The sockets that another program goes on with.
    held_by_other: HashSet<ListenAddress>,
    service: Service,
    /// Commands of the control socket are answered here.
    answers_commands: bool,
    service_manager: ServiceManager,
}

/// Whether this program serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Serving,
    /// It takes no new connections, beside another program that takes its place.
    Draining,
    Drained,
}

/// Pools that requests of an earlier configuration may still need: until the configuration
/// with this serial is released, or that moment.
struct RetiredGeneration {
    serial: u64,
    until: Instant,
    pools: RetiredPools,
}

use upgrading::Role;

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    Graceful,
    Fast,
    /// No worker serves any more, and none can be started.
    Broken,
}

/// Reads, starts and serves until the end.
pub async fn run(mut plan: Plan, journal: Arc<Journal>, accepted: AcceptedConfiguration) -> Exit {
    // Signals count from here on: none may be lost between start and loop.
    let (orders, given) = orders::way();
    let mut signals = match Signals::new(given) {
        Ok(signals) => signals,
        Err(error) => {
            journal.emerg(format_args!("signals cannot be received: {error}"));
            return Exit::Refused;
        }
    };
    let (mut predecessor, inherited) = plan.predecessor.take().unzip();
    let when_ready = std::mem::replace(&mut plan.when_ready, Box::new(|_| ()));
    let start = Supervisor::start(
        plan,
        orders,
        &mut predecessor,
        inherited,
        &journal,
        accepted,
    );
    let started = tokio::select! {
        started = start => started,
        () = signals.asked_to_stop() => return Exit::Done,
    };
    match started {
        Ok(mut supervisor) => {
            when_ready(supervisor.account.as_ref());
            journal.start_is_over();
            if let Some(predecessor) = predecessor {
                supervisor.begin_beside(predecessor).await;
            }
            supervisor.service_manager.ready("Serving");
            let shutdown = supervisor.serve(&mut signals).await;
            supervisor.end(shutdown, &mut signals).await
        }
        Err(messages) => {
            messages.iter().for_each(|message| journal.emerg(message));
            if let Some(predecessor) = predecessor {
                predecessor.refuse(&messages);
            }
            Exit::Refused
        }
    }
}

impl Supervisor {
    async fn start(
        plan: Plan,
        orders: Orders,
        predecessor: &mut Option<Predecessor>,
        inherited: Option<InheritedResources>,
        journal: &Arc<Journal>,
        accepted: AcceptedConfiguration,
    ) -> Result<Supervisor, Vec<String>> {
        let Plan {
            invocation,
            writes_pid_file,
            control_socket: unnamed_control,
            program,
            passed,
            ..
        } = plan;
        let opened = activation::open_logs(accepted)?;
        let AcceptedConfiguration { site, .. } = opened.accepted();
        journal.use_logs(&site.process.error_logs, opened.logs());
        let AcceptedConfiguration {
            warnings, sources, ..
        } = opened.accepted();
        for (level, line) in config::lines(warnings, sources) {
            journal.record(level, line);
        }
        limits::raise_open_files(site.process.open_files_limit, journal);
        let replaced = inherited.as_ref().and_then(|it| it.account);
        let former = replaced.or_else(|| account::owner_of_kept_pages(site));
        let user = site.process.user.as_ref();
        let account = account::to_serve(user, former).map_err(|it| vec![it])?;
        warn_of_shared_accounts(&site.process, journal);
        let default_memory = default_memory_notice(site);
        warn_of_memory(site, journal);
        let workers = worker_count(site.process.workers);
        let (sender, pool_changes) = mpsc::unbounded_channel();
        let held_by_other = inherited.as_ref().map(InheritedResources::addresses);
        let held_by_other = held_by_other.unwrap_or_default();
        passed_sockets::name_unwanted(&passed, |it| activation::listens_on(site, it), journal);
        let (mut sockets, mut control, estates) = match inherited {
            Some(inherited) => inherited.wanted(site, workers, unnamed_control.as_deref()),
            None => (BoundSockets::passed(passed), None, Vec::new()),
        };
        let mut pools = Pools::new(journal.clone(), sender);
        pools.inherit(estates);
        let certificates = Certificates::new(journal.clone());
        let surroundings = Surroundings {
            invocation: &invocation,
            journal,
            account: account.as_ref(),
            workers,
            certificates: &certificates,
            unnamed_control: unnamed_control.as_deref(),
        };
        let held = HeldResources {
            sockets: &mut sockets,
            control: &mut control,
            pools: &mut pools,
        };
        let (met, server, givers) = (predecessor.as_mut(), account.clone(), orders.clone());
        let serve = async move |mut handover: Handover<'_>| {
            let sibling = match met {
                Some(predecessor) => Some(predecessor.take_over().await?),
                None => None,
            };
            handover.sibling = sibling.as_ref();
            Backend::start(handover, server, givers).await
        };
        let (backend, activated) = opened.activate(surroundings, held, serve).await?;
        let mut supervisor = Supervisor {
            invocation,
            journal: journal.clone(),
            configuration: activated.configuration,
            sockets,
            control,
            unnamed_control,
            logs: activated.logs,
            pools,
            pool_changes,
            account,
            backend,
            certificates,
            retired: Vec::new(),
            pid_file: None,
            writes_pid_file,
            started_at: Instant::now(),
            orders,
            program,
            role: Role::Alone,
            held_by_other,
            service: Service::Serving,
            answers_commands: true,
            service_manager: ServiceManager::of_environment(),
        };
        if let Err(message) = supervisor.write_pid_file() {
            supervisor.dismantle(Shutdown::Fast).await;
            return Err(vec![message]);
        }
        if let Some(message) = default_memory {
            journal.notice(message);
        }
        journal.notice("ready");
        supervisor.keep_certificates();
        Ok(supervisor)
    }

    /// Writes the file that the configuration in force names; removes the one
    /// it replaces.
    fn write_pid_file(&mut self) -> Result<(), String> {
        let path = &self.configuration.process.pid_file;
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
            // It is a default: an ordinary user serves without.
            Err(message) if !self.configuration.names_pid_file => {
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

    /// Obeys signals and callers, until one asks for the end.
    async fn serve(&mut self, signals: &mut Signals) -> Shutdown {
        loop {
            let next_end = self.retired.iter().map(|retired| retired.until).min();
            tokio::select! {
                received = signals.next() => {
                    if let Some(shutdown) = self.obey(received, signals).await {
                        return shutdown;
                    }
                }
                Some(status) = self.pool_changes.recv() => self.backend.pool_changed(status),
                change = self.certificates.next_change() => self.certificates_changed(change).await,
                () = self.service_manager.sign_is_due() => self.backend.ask_for_life_sign(),
                event = self.backend.next_event(), if self.service != Service::Drained => match event {
                    WorkerEvent::Served => self.service_manager.is_served(),
                    WorkerEvent::Released(serial) => self.stop_retired(|it| it.serial <= serial),
                    WorkerEvent::Ended(_) if self.service == Service::Draining => {
                        self.journal.notice("the last connection has ended");
                        self.service = Service::Drained;
                    }
                    WorkerEvent::Ended(how) => if self.worker_ended(&how).await.is_err() {
                        return Shutdown::Broken;
                    },
                },
                event = self.role.next_event() => {
                    if let Some(shutdown) = self.other_program(event, signals).await {
                        return shutdown;
                    }
                }
                () = sleep_until(next_end) => {
                    let now = Instant::now();
                    self.stop_retired(|it| it.until <= now);
                }
            }
        }
    }

    /// Obeys an instruction; returns how to end if the instruction asks for it.
    async fn obey(
        &mut self,
        received: ReceivedInstruction,
        signals: &mut Signals,
    ) -> Option<Shutdown> {
        match received.instruction {
            Instruction::Reload if self.service != Service::Serving => {
                self.journal
                    .notice(format_args!("{received}, taking connections again"));
                let serves = self.serve_again().await;
                if let Err(messages) = &serves {
                    messages.iter().for_each(|it| self.journal.emerg(it));
                }
                received.tell(serves.map_err(|messages| messages.join("\n")));
            }
            Instruction::Reload => {
                self.journal.notice(format_args!("{received}, reloading"));
                self.service_manager.reloading();
                // A PHP that does not come up must not hold up the end.
                let reloaded = tokio::select! {
                    reloaded = self.reload() => reloaded,
                    end = signals.asked_to_end() => {
                        received.tell(Err("the server was told to stop meanwhile".to_owned()));
                        return Some(self.stop_at_once(end));
                    }
                };
                match &reloaded {
                    Ok(()) => {
                        self.journal.notice("reloaded");
                        self.service_manager.ready("Serving");
                    }
                    Err(lines) => {
                        lines
                            .iter()
                            .for_each(|(level, line)| self.journal.line(*level, line));
                        let reasons = errors_of(lines);
                        let reason = reasons.lines().next().unwrap_or_default();
                        self.service_manager.ready(&format!(
                            "Serving the former configuration; the last one was refused: {reason}"
                        ));
                    }
                }
                received.tell(reloaded.map_err(|lines| errors_of(&lines)));
            }
            Instruction::Reopen => self.reopen(received),
            Instruction::Quit => {
                self.journal.notice(format_args!(
                    "{received}, stopping after the requests under way"
                ));
                received.tell(Ok(()));
                return Some(Shutdown::Graceful);
            }
            Instruction::Stop => return Some(self.stop_at_once(received)),
            Instruction::Upgrade => return self.upgrade(received, signals).await,
            Instruction::Drain => self.drain_for_successor(&received),
        }
        None
    }

    fn stop_at_once(&self, received: ReceivedInstruction) -> Shutdown {
        self.journal.notice(format_args!("{received}, stopping"));
        received.tell(Ok(()));
        Shutdown::Fast
    }

    /// Stops retired pools that no request needs any more, without waiting for them.
    fn stop_retired(&mut self, is_free: impl Fn(&RetiredGeneration) -> bool) {
        for retired in self.retired.extract_if(.., |retired| is_free(retired)) {
            tokio::spawn(retired.pools.stop(true));
        }
    }

    /// A new configuration in place of the one that is served.
    async fn reload(&mut self) -> Result<(), Vec<LogLine>> {
        let accepted = config::judge(self.invocation.read()).map_err(|rejected| {
            config::lines(&rejected.diagnostics, &rejected.sources).collect::<Vec<_>>()
        })?;
        let emerg = |message| (LogLevel::Emerg, message);
        let activated = self.activate(accepted).await;
        activated.map_err(|messages| messages.into_iter().map(emerg).collect())
    }

    /// Puts a configuration that was read in the place of the one that is served.
    async fn activate(&mut self, accepted: AcceptedConfiguration) -> Result<(), Vec<String>> {
        for (level, line) in config::lines(&accepted.warnings, &accepted.sources) {
            self.journal.line(level, line);
        }
        self.say_what_needs_a_restart(&accepted.site.process);
        warn_of_shared_accounts(&accepted.site.process, &self.journal);
        warn_of_memory(&accepted.site, &self.journal);
        let opened = activation::open_logs(accepted)?;
        let surroundings = Surroundings {
            invocation: &self.invocation,
            journal: &self.journal,
            account: self.account.as_ref(),
            workers: worker_count(self.configuration.process.workers),
            certificates: &self.certificates,
            unnamed_control: self.unnamed_control.as_deref(),
        };
        let held = HeldResources {
            sockets: &mut self.sockets,
            control: &mut self.control,
            pools: &mut self.pools,
        };
        let backend = &mut self.backend;
        let serve = async |handover: Handover<'_>| backend.replace(handover).await;
        let (serial, activated) = opened.activate(surroundings, held, serve).await?;
        let ActiveSite {
            configuration,
            logs,
            retired,
        } = activated;
        if !retired.is_empty() {
            self.retired.push(RetiredGeneration {
                serial: serial - 1,
                until: Instant::now() + MAX_RETIREMENT,
                pools: retired,
            });
        }
        self.journal
            .use_logs(&configuration.process.error_logs, &logs);
        self.logs = logs;
        self.configuration = configuration;
        self.keep_certificates();
        if let Err(message) = self.write_pid_file() {
            self.journal.error(message);
        }
        Ok(())
    }

    /// Logs the settings that a reload cannot change.
    fn say_what_needs_a_restart(&self, process: &Process) {
        let old = &self.configuration.process;
        let changed = [
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
    fn reopen(&mut self, received: ReceivedInstruction) {
        self.journal
            .notice(format_args!("{received}, reopening logs"));
        let opened = LogFiles::open(&self.logs.files.keys().cloned().collect());
        match &opened {
            Ok(logs) => {
                self.backend.reopen(logs);
                self.journal
                    .use_logs(&self.configuration.process.error_logs, logs);
                self.logs = logs.clone();
            }
            Err(messages) => messages
                .iter()
                .for_each(|message| self.journal.error(message)),
        }
        received.tell(opened.map(drop).map_err(|messages| messages.join("\n")));
    }

    /// Starts the worker process again, with the configuration in force.
    async fn worker_ended(&mut self, how: &str) -> Result<(), ()> {
        self.journal.error(format_args!(
            "worker process ended ({how}), starting another"
        ));
        if self.started_at.elapsed() < SHORT_LIFE {
            tokio::time::sleep(SHORT_LIFE).await;
        }
        self.started_at = Instant::now();
        let sibling = self.next_sibling().await;
        let restarted = match self.current() {
            Err(message) => Err(message),
            Ok((site, invocation)) => {
                let handover = Handover {
                    site,
                    invocation: &invocation,
                    sources: &self.configuration.sources,
                    sockets: self.sockets.sockets(),
                    control: commands(self.control.as_ref(), self.answers_commands),
                    logs: self.logs.clone(),
                    pools: self.pools.statuses(),
                    learning: self.pools.learning_sockets(),
                    tls_files: self.configuration.tls_files.clone(),
                    sibling: sibling.as_ref(),
                };
                self.backend.restart(handover).await
            }
        };
        if restarted.is_ok() {
            self.give_answers(None).await;
        }
        restarted.map_err(|message| self.journal.emerg(message))
    }

    /// The configuration in force, read again: from the texts in force, not from the files, which
    /// may have changed meanwhile.
    fn current(&self) -> Result<(Site, Invocation), String> {
        let texts = Arc::new(nginx_conf::MemoryLoader::from(&self.configuration.sources));
        let invocation = Invocation {
            texts: Some(texts),
            ..self.invocation.clone()
        };
        match config::judge(invocation.read()) {
            Ok(accepted) => Ok((accepted.site, invocation)),
            Err(_) => Err("the configuration in force is not valid any more".to_owned()),
        }
    }

    /// From now on the certificates of the configuration in force are kept valid.
    fn keep_certificates(&mut self) {
        let Configuration { acme, nodes, .. } = &self.configuration;
        self.certificates.keep(acme, nodes.as_ref());
    }

    async fn certificates_changed(&mut self, change: Change) {
        match change {
            Change::Answers(waiting) => self.give_answers(waiting).await,
            Change::Certificates => {
                if let Err(message) = self.serve_current(None).await {
                    self.journal.error(format_args!(
                        "new certificates are not served yet: {message}"
                    ));
                    self.certificates.again();
                }
            }
        }
    }

    /// The configuration in force goes on with the certificates there are now, and with its part of the
    /// control socket.
    async fn serve_current(&mut self, sibling: Option<&SiblingSocket>) -> Result<(), String> {
        let (site, invocation) = self.current()?;
        let issued = self.certificates.files(&site);
        let tls_files = self.configuration.tls_files.clone().with(issued);
        let handover = Handover {
            site,
            invocation: &invocation,
            sources: &self.configuration.sources,
            sockets: self.sockets.sockets(),
            control: commands(self.control.as_ref(), self.answers_commands),
            logs: self.logs.clone(),
            pools: self.pools.statuses(),
            learning: self.pools.learning_sockets(),
            tls_files: tls_files.clone(),
            sibling,
        };
        self.backend.replace(handover).await?;
        self.configuration.tls_files = tls_files;
        Ok(())
    }

    /// Gives the workers the answers for issuers.
    async fn give_answers(&mut self, waiting: Option<oneshot::Sender<()>>) {
        match self
            .backend
            .answer_issuers(self.certificates.answers())
            .await
        {
            Ok(()) => {
                if let Some(waiting) = waiting {
                    // The caller may have given up.
                    let _ = waiting.send(());
                }
            }
            Err(message) => self.journal.error(message),
        }
    }

    /// Ends the running parts, in the order in which one needs the other.
    async fn end(mut self, shutdown: Shutdown, signals: &mut Signals) -> Exit {
        let mut shutdown = shutdown;
        match &self.role {
            // It is the service from here on; this one only ends.
            Role::Outgoing { successor, .. } => self.service_manager.main_pid(successor.pid),
            _ => self.service_manager.stopping(),
        }
        self.give_back().await;
        if shutdown == Shutdown::Graceful && self.service != Service::Drained {
            // A caller that comes now is refused at once instead of waiting for nothing.
            self.sockets.close(&self.held_by_other);
            self.control = None;
            self.backend.stop_gracefully(match self.role {
                Role::Alone => Patience::ForRequests,
                // Its next connection is served by the other program.
                Role::Outgoing { .. } | Role::Incoming { .. } => Patience::ForNextRequests,
            });
            let deadline = self
                .configuration
                .process
                .shutdown_timeout
                .map(|time| Instant::now() + time);
            shutdown = self.drain(deadline, signals).await;
        }
        let journal = self.journal.clone();
        self.dismantle(shutdown).await;
        journal.notice("exit");
        if shutdown == Shutdown::Broken {
            Exit::Refused
        } else {
            Exit::Done
        }
    }

    async fn drain(&mut self, deadline: Option<Instant>, signals: &mut Signals) -> Shutdown {
        loop {
            tokio::select! {
                news = self.backend.next_event() => match news {
                    WorkerEvent::Ended(_) => return Shutdown::Graceful,
                    WorkerEvent::Released(_) | WorkerEvent::Served => {}
                },
                Some(status) = self.pool_changes.recv() => self.backend.pool_changed(status),
                // Callers are heard that came before the control socket was closed.
                received = signals.next() => match received.instruction {
                    Instruction::Stop => {
                        received.tell(Ok(()));
                        return Shutdown::Fast;
                    }
                    Instruction::Reopen => self.reopen(received),
                    Instruction::Quit => received.tell(Ok(())),
                    Instruction::Reload => received.tell(Err("the server is about to end".to_owned())),
                    Instruction::Upgrade => received.tell(Err("the server is about to end".to_owned())),
                    Instruction::Drain => {}
                },
                () = sleep_until(deadline) => {
                    self.journal.notice("worker_shutdown_timeout is over, ending what is still under way");
                    return Shutdown::Fast;
                }
            }
        }
    }

    async fn dismantle(mut self, shutdown: Shutdown) {
        self.sockets.close(&self.held_by_other);
        self.control = None;
        self.backend.end().await;
        let is_graceful = shutdown == Shutdown::Graceful;
        for retired in self.retired {
            retired.pools.stop(is_graceful).await;
        }
        self.pools.stop(is_graceful).await;
        if let Some(file) = self.pid_file {
            file.remove();
        }
        if let Role::Outgoing {
            pid_file: Some(file),
            ..
        } = &self.role
        {
            file.remove();
        }
    }
}

/// Returns the socket of commands, if they are answered here.
fn commands(control: Option<&ControlSocket>, are_answered: bool) -> Option<&UnixListener> {
    control
        .filter(|_| are_answered)
        .map(ControlSocket::listener)
}

/// Returns the text about a failed reload for a caller; warnings are in the log.
fn errors_of(lines: &[LogLine]) -> String {
    let errors = lines.iter().filter(|(level, _)| *level <= LogLevel::Error);
    let texts: Vec<&str> = errors.map(|(_, line)| line.as_str()).collect();
    texts.join("\n")
}

/// Returns a notice about the memory that the cache may take if the configuration sets none.
fn default_memory_notice(site: &Site) -> Option<String> {
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

/// Logs the zones that may take more memory than there is.
fn warn_of_memory(site: &Site, journal: &Journal) {
    if let Some(excess) = ExcessiveMemory::of(site) {
        journal.warn(format_args!("{excess}; {}", excess.advice()));
    }
}

/// Logs the pools that run as the account that serves.
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
pub fn log_refusal(journal: &Journal, rejected: &config::RejectedConfiguration) {
    for (level, line) in config::lines(&rejected.diagnostics, &rejected.sources) {
        journal.record(level, line);
    }
}
