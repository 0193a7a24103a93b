//! The half that serves: takes a configuration with its sockets, logs and
//! pools, and runs the workers. It neither reads files of the configuration nor
//! binds, so that it works without rights, in this process or in one of its own.

use std::sync::{Arc, Weak};
use std::time::Duration;

use live_state::Resources;
use live_state::acme_answers::AcmeAnswerTexts;
use live_state::applied_log::AppliedLog;
use live_state::log_sinks::LogSinks;
use live_state::upstream_groups::PoolAddress;
use server::compose;
use server::content::purging::left_behind::{self, LeftPurges};
use server::exchange::active_configuration::ActiveConfiguration;
use server::worker::{Patience, Sockets, Workers, WorkersState};
use site::{Site, UpstreamEndpoint, UpstreamServer};
use tokio::sync::oneshot;
use upstream::Group;

use crate::processes::control_socket::ControlTask;
use crate::processes::handover::SiteResources;
use crate::processes::large_store;
use crate::processes::logs::LogFiles;
use crate::processes::orders::Orders;
use crate::processes::pools::PoolStatus;
use crate::processes::sibling_socket::SiblingSocket;

/// Everything a site needs to be served.
pub struct ServedSite {
    pub site: Site,
    pub resources: SiteResources,
}

pub struct RunningWorkers {
    shared: Arc<WorkersState>,
    pools: Vec<PoolStatus>,
    ended: Option<oneshot::Receiver<()>>,
    workers: Arc<Workers>,
    answers: Option<ControlTask>,
    orders: Orders,
}

/// A configuration that was replaced; it lives until its last request ends.
pub struct Former(Weak<ActiveConfiguration>);

/// How often it is tried to open a folder for pages that another process has.
const OPEN_AGAIN: Duration = Duration::from_secs(5);

/// The folder of a process that has just ended is tried this number of times, with this pause.
const LEFT_FOLDER_TRIES: usize = 50;
const OPEN_LEFT_AGAIN: Duration = Duration::from_millis(20);

/// The longest time at the end in which waiting traces are sent to the collector.
const SEND_TRACES_WITHIN: Duration = Duration::from_secs(1);

/// How long a client with an idle connection may take for a next request while another program takes the place of this
/// one: the request may be on its way. Its response announces the end of the connection.
const NEXT_REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// Between two looks at whether something has ended: no caller waits for it. The longer it takes,
/// the less often it is looked at.
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(20);
const LOOK_AGAIN_LAST: Duration = Duration::from_secs(5);

impl Former {
    /// Waits until no request uses it.
    pub async fn released(self) {
        let mut pause = LOOK_AGAIN_FIRST;
        while self.0.strong_count() > 0 {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN_LAST);
        }
    }
}

impl RunningWorkers {
    /// Starts the workers, in the configured number. Commands from callers of the control socket go to `orders`.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn start(mut served: ServedSite, orders: Orders) -> Result<RunningWorkers, String> {
        let control = served.resources.control.take();
        let sibling = served.resources.sibling.take();
        let count = worker_count(served.site.process.workers);
        let BuiltConfiguration {
            configuration,
            sockets,
            pools,
            left,
        } = build(served, None)?;
        begin_with_others(&configuration, sibling)?;
        let shared = WorkersState::new(configuration, sockets);
        let workers = Arc::new(Workers::start(&shared, count).map_err(no_workers)?);
        let of_left = Arc::downgrade(&shared);
        tokio::spawn(left_behind::finish(left, move || {
            Some(of_left.upgrade()?.configuration())
        }));
        tokio::spawn(large_store::watch(Arc::downgrade(&shared)));
        open_waiting_folders(&shared);
        let (sender, ended) = oneshot::channel();
        let (shared_by_end, ending) = (shared.clone(), workers.clone());
        let end = move || {
            ending.join();
            let configuration = shared_by_end.configuration();
            if let Some(traces) = &configuration.live.traces {
                traces.finish(SEND_TRACES_WITHIN);
            }
            configuration.live.leave_nodes();
            configuration
                .live
                .close_disk_pages(&configuration.site.process.error_logs);
            let _ = sender.send(());
        };
        std::thread::Builder::new()
            .name("workers-end".to_owned())
            .spawn(end)
            .map_err(|error| format!("could not start a thread: {error}"))?;
        Ok(RunningWorkers {
            answers: control.map(|listener| ControlTask::begin(listener, &shared, orders.clone())),
            shared,
            pools,
            ended: Some(ended),
            workers,
            orders,
        })
    }

    /// Puts another configuration in force; requests under way finish with
    /// theirs.
    ///
    /// # Errors
    /// A message for the operator; the old one stays in force.
    pub fn replace(&mut self, mut served: ServedSite) -> Result<Former, String> {
        let control = served.resources.control.take();
        let sibling = served.resources.sibling.take();
        let former = self.shared.configuration();
        let count = worker_count(served.site.process.workers);
        let BuiltConfiguration {
            configuration,
            sockets,
            pools,
            left: _,
        } = build(served, Some(&former))?;
        self.workers.add_missing(count).map_err(no_workers)?;
        begin_with_others(&configuration, sibling)?;
        self.workers.set_accepting(count);
        self.shared.replace(configuration, sockets);
        open_waiting_folders(&self.shared);
        // Connections that wait on the same socket are accepted by the next task that looks there.
        let begin = |listener| ControlTask::begin(listener, &self.shared, self.orders.clone());
        self.answers = control.map(begin);
        // Pools that stayed may have a new master.
        let earlier = std::mem::replace(&mut self.pools, pools.clone());
        for pool in pools {
            let is_renewed = earlier
                .iter()
                .any(|old| old.name == pool.name && old.generation != pool.generation);
            if is_renewed {
                self.apply(&pool);
            }
        }
        Ok(Former(Arc::downgrade(&former)))
    }

    /// The program beside this one has ended. So has its PHP, whose writes were not reported here: pages may be kept
    /// again by the facts known of them.
    pub fn is_alone(&self) {
        let zones = self.shared.configuration().live.alive_zones.zones();
        zones.iter().for_each(|zone| zone.trust_guards());
    }

    /// A pool has a new master, perhaps with another number of workers.
    pub fn pool_changed(&mut self, status: PoolStatus) {
        self.apply(&status);
        match self.pools.iter_mut().find(|old| old.name == status.name) {
            Some(old) => *old = status,
            None => self.pools.push(status),
        }
    }

    /// Lets as many requests through as there are workers, and closes the
    /// connections to workers of masters that are gone.
    fn apply(&self, status: &PoolStatus) {
        let configuration = self.shared.configuration();
        let workers = usize::try_from(status.workers).unwrap_or(usize::MAX);
        for (group, index, server) in servers_of_pool(&configuration, &status.name) {
            if server.max_conns == 0 {
                group.set_max_conns(index, Some(workers));
            }
            group.close_idle(index);
        }
        set_master(&configuration, status);
    }

    /// Sets the answers for issuers of certificates.
    pub fn answer_issuers(&self, answers: AcmeAnswerTexts) {
        let configuration = self.shared.configuration();
        configuration.live.acme_answers.replace(answers);
    }

    /// Logs were moved away: from now on lines go to these files.
    pub fn reopen(&self, logs: &LogFiles) {
        let configuration = self.shared.configuration();
        // Without descriptors left, lines go on into the old files.
        if let Ok(files) = logs.descriptors() {
            configuration.live.log_sinks.replace_files(files);
            self.shared.logs_reopened();
        }
    }

    /// Takes no new connections, closes the idle ones after `patience`, and lets requests end.
    pub fn stop_gracefully(&mut self, patience: Patience) {
        self.answers = None;
        self.shared
            .replace(self.shared.configuration(), Sockets::new());
        self.shared.stop_gracefully(patience);
        if patience == Patience::ForNextRequests {
            let shared = self.shared.clone();
            tokio::spawn(async move {
                tokio::time::sleep(NEXT_REQUEST_WITHIN).await;
                shared.stop_gracefully(Patience::ForRequests);
            });
        }
    }

    /// Resolves when every worker has answered; never where one of them does not.
    pub fn all_answer(&self) -> impl Future<Output = ()> + Send + use<> {
        let (shared, count) = (self.shared.clone(), self.workers.threads());
        async move { shared.all_workers_answer(count).await }
    }

    /// Resolves when all workers have ended.
    pub async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            // An error is the joining thread's end: the same news.
            let _ = ended.await;
            self.ended = None;
        }
    }

    /// Writes pages that only memory has to the disk, for a bounded time. Nothing more is kept there.
    pub async fn close_disk_pages(&self) {
        let configuration = self.shared.configuration();
        let close = move || {
            let logs = &configuration.site.process.error_logs;
            configuration.live.close_disk_pages(logs);
        };
        // A panic there has printed its message.
        let _ = tokio::task::spawn_blocking(close).await;
    }

    /// Closes kept connections to PHP: a worker waits for its client.
    pub fn close_idle_upstreams(&self) {
        let configuration = self.shared.configuration();
        for group in configuration.live.groups.groups() {
            let servers = group.snapshot(0);
            servers
                .iter()
                .for_each(|server| group.close_idle(server.server));
        }
    }
}

fn no_workers(error: std::io::Error) -> String {
    format!("could not start workers: {error}")
}

/// Opens the folders of zones of the configuration in force that another process or a full disk keeps from them, as
/// soon as that is over; starts no task if there are no such zones.
fn open_waiting_folders(shared: &Arc<WorkersState>) {
    let configuration = shared.configuration();
    if !configuration.live.waits_for_disk() {
        return;
    }
    let (shared, mine) = (Arc::downgrade(shared), Arc::downgrade(&configuration));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(OPEN_AGAIN).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let configuration = shared.configuration();
            // The next configuration has a task of its own.
            let is_in_force = std::ptr::eq(mine.as_ptr(), Arc::as_ptr(&configuration));
            if !is_in_force || !configuration.live.waits_for_disk() {
                return;
            }
            let open = move || {
                let logs = &configuration.site.process.error_logs;
                configuration.live.open_disk_pages(logs);
            };
            // A panic there has printed its message, and the next try comes.
            let _ = tokio::task::spawn_blocking(open).await;
        }
    });
}

/// `worker_processes`; `auto` is one for each core.
pub fn worker_count(workers: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    workers.unwrap_or_else(cores).max(1)
}

/// Opens the folders of zones that the process before this one has left. It may take a moment to end.
fn open_left_folders(configuration: &Weak<ActiveConfiguration>) {
    for _ in 0..LEFT_FOLDER_TRIES {
        let Some(configuration) = configuration.upgrade() else {
            return;
        };
        let logs = &configuration.site.process.error_logs;
        configuration.live.open_disk_pages(logs);
        if !configuration.live.waits_for_disk() {
            return;
        }
        std::thread::sleep(OPEN_LEFT_AGAIN);
    }
}

/// Before anything is answered under the configuration: the process beside this one hands its pages over, and the other
/// machines are joined where it was.
fn begin_with_others(
    configuration: &Arc<ActiveConfiguration>,
    sibling: Option<SiblingSocket>,
) -> Result<(), String> {
    let applied = begin_beside(configuration, sibling)?;
    let logs = &configuration.site.process.error_logs;
    let begun = configuration.live.begin_nodes(applied, logs);
    begun.map_err(|error| format!("purges cannot be shared with other nodes: {error}"))
}

/// Goes on beside another process. Returns the position up to which the purges of other machines are applied to the
/// pages that came from it.
fn begin_beside(
    configuration: &Arc<ActiveConfiguration>,
    sibling: Option<SiblingSocket>,
) -> Result<Option<AppliedLog>, String> {
    let Some(SiblingSocket {
        socket,
        is_successor,
    }) = sibling
    else {
        return Ok(None);
    };
    let live = &configuration.live;
    let watched = Arc::downgrade(configuration);
    let on_end = move || open_left_folders(&watched);
    let zones = &live.alive_zones;
    let applied = live
        .nodes
        .as_ref()
        .and_then(|nodes| nodes.applied_to_stored());
    let sibling = &live.sibling;
    let begun = sibling.begin(socket, zones, applied, is_successor, on_end);
    begun.map_err(|error| format!("the other process cannot be told of purges: {error}"))
}

/// A configuration that can be put in force.
struct BuiltConfiguration {
    configuration: Arc<ActiveConfiguration>,
    sockets: Sockets,
    pools: Vec<PoolStatus>,
    /// Purges from before the start.
    left: LeftPurges,
}

fn build(
    served: ServedSite,
    previous: Option<&ActiveConfiguration>,
) -> Result<BuiltConfiguration, String> {
    let ServedSite { site, resources } = served;
    let SiteResources {
        sockets,
        logs,
        pools,
        learning,
        tls_files,
        ..
    } = resources;
    let addresses = pools.iter().map(|pool| {
        let workers = usize::try_from(pool.workers).unwrap_or(usize::MAX);
        (
            pool.name.clone(),
            PoolAddress {
                socket: pool.socket.clone(),
                workers,
            },
        )
    });
    let files = logs.descriptors();
    let files = files.map_err(|error| format!("open() failed: {error}"))?;
    let resources = Resources {
        log_sinks: LogSinks::with_files(files),
        pools: addresses.collect(),
        learning,
        tls_files,
        keeps_on_disk: true,
    };
    let configuration =
        compose::configuration(site, resources, previous).map_err(|error| error.to_string())?;
    for pool in &pools {
        set_master(&configuration, pool);
    }
    let left = match previous {
        None => left_behind::begin(&configuration),
        Some(_) => LeftPurges::default(),
    };
    configuration
        .live
        .open_disk_pages(&configuration.site.process.error_logs);
    Ok(BuiltConfiguration {
        configuration,
        sockets,
        pools,
        left,
    })
}

/// The servers that are a pool of our own: their groups, their places there, and their settings.
fn servers_of_pool<'c>(
    configuration: &'c ActiveConfiguration,
    pool: &str,
) -> Vec<(&'c Arc<Group>, usize, &'c UpstreamServer)> {
    let mut servers = Vec::new();
    let groups = configuration.live.groups.groups().iter();
    for (group, model) in groups.zip(&configuration.site.http.groups) {
        // The servers of names come behind the others.
        let written = model.servers.iter().filter(|server| !server.is_name());
        for (index, server) in written.enumerate() {
            if matches!(&server.endpoint, UpstreamEndpoint::PhpPool(name) if name == pool) {
                servers.push((group, index, server));
            }
        }
    }
    servers
}

/// The groups look at the workers of this master from now on.
fn set_master(configuration: &ActiveConfiguration, status: &PoolStatus) {
    if status.master != 0 {
        for (group, index, _) in servers_of_pool(configuration, &status.name) {
            group.set_master(index, status.master);
        }
    }
}
