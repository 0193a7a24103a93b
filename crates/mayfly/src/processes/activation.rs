//! A configuration is put in force by one transaction, at the start from nothing, at a
//! reload from the one that is served:
//!
//! ```text
//! Accepted ──► LogsOpen ─────────────────────────────► ActiveSite
//!          logs         sockets, then PHP, then served
//! ```
//!
//! Each step holds the resources acquired so far. One that fails gives everything back: logs close, new sockets close and lose their files,
//! new pools stop and changed ones return to their former settings. The configuration in force
//! is not touched meanwhile. On disk, empty log files and folders for temporary files stay, as
//! with nginx.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::socket::ControlSocket;
use live_state::learned_pools;
use live_state::tls_files::TlsFiles;
use nginx_conf::Sources;
use site::{Acme, CacheNodes, Content, ListenAddress, PhpPool, Process, Site};

use crate::config::{AcceptedConfiguration, Invocation};
use crate::processes::account::{self, Account};
use crate::processes::certificates::Certificates;
use crate::processes::control_socket;
use crate::processes::handover::Handover;
use crate::processes::journal::Journal;
use crate::processes::learning_library;
use crate::processes::limits;
use crate::processes::logs::{self, LogFiles};
use crate::processes::pools::{self, Pools, RetiredPools};
use crate::processes::site_folders::{self, FolderRetries};
use crate::processes::sockets::{BoundSockets, WantedSockets};

/// `request_terminate_timeout` of pools that have none is at least this.
const MIN_TERMINATE: Duration = Duration::from_secs(300);
/// And this much more than the longest `*_read_timeout`.
const BEYOND_READING: Duration = Duration::from_secs(60);

/// Values that stay the same from one configuration to the next.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub invocation: &'a Invocation,
    pub journal: &'a Arc<Journal>,
    /// The account that serves; `None` if it is the account of this process.
    pub account: Option<&'a Account>,
    pub workers: usize,
    pub certificates: &'a Certificates,
    /// The path of the control socket if the configuration sets none; `None`: beside the pid
    /// file.
    pub unnamed_control: Option<&'a Path>,
}

/// The resources held for the configuration that is served; empty before the first. They change
/// only when another one is in force.
pub struct HeldResources<'a> {
    pub sockets: &'a mut BoundSockets,
    pub control: &'a mut Option<ControlSocket>,
    pub pools: &'a mut Pools,
}

/// The facts of a configuration that are kept once it is served.
pub struct Configuration {
    pub process: Process,
    pub sources: Sources,
    pub names_pid_file: bool,
    /// Certificates that come by themselves.
    pub acme: Acme,
    /// Other machines, which have them too.
    pub nodes: Option<CacheNodes>,
    pub tls_files: TlsFiles,
    /// Folders that could not be made are tried again as long as this is in force.
    _folders: FolderRetries,
}

/// A configuration in force.
pub struct ActiveSite {
    pub configuration: Configuration,
    pub logs: LogFiles,
    /// Pools of the configuration before, which its requests may still need.
    pub retired: RetiredPools,
}

/// The first step: opens the logs.
///
/// # Errors
/// A message for each that cannot be opened.
pub fn open_logs(accepted: AcceptedConfiguration) -> Result<LogsOpen, Vec<String>> {
    let logs = LogFiles::open(&logs::paths(&accepted.site))?;
    Ok(LogsOpen { accepted, logs })
}

/// A configuration whose logs are open.
pub struct LogsOpen {
    accepted: AcceptedConfiguration,
    logs: LogFiles,
}

impl LogsOpen {
    pub fn logs(&self) -> &LogFiles {
        &self.logs
    }

    pub fn accepted(&self) -> &AcceptedConfiguration {
        &self.accepted
    }

    /// Binds sockets, then starts PHP, then serves: `serve` hands the configuration to those who serve; with its success
    /// the transaction is over.
    ///
    /// # Errors
    /// The reason why it is not in force; nothing of it is left.
    pub async fn activate<Workers>(
        self,
        surroundings: Surroundings<'_>,
        held: HeldResources<'_>,
        serve: impl AsyncFnOnce(Handover<'_>) -> Result<Workers, String>,
    ) -> Result<(Workers, ActiveSite), Vec<String>> {
        let LogsOpen { accepted, logs } = self;
        let AcceptedConfiguration {
            site,
            sources,
            names_pid_file,
            ..
        } = accepted;
        let Surroundings {
            invocation,
            journal,
            account,
            workers,
            unnamed_control,
            certificates,
        } = surroundings;
        let one = |message| vec![message];
        let folders =
            site_folders::make(&site, account, &invocation.prefix, journal).map_err(one)?;
        limits::make_run_folder(&site.process, &invocation.prefix);
        let wanted = wanted_sockets(&site);
        let sockets = held.sockets.bind(&wanted, workers, journal).await?;
        let process = site.process.clone();
        let control =
            control_socket::bind(&process, unnamed_control, held.control.as_ref(), journal)
                .map_err(one)?;
        let specs = pool_specs(&site, account, journal).map_err(one)?;
        let change = held.pools.change(specs).await.map_err(one)?;
        let acme = site.http.acme.clone();
        let nodes = site.http.cache_nodes.clone();
        let tls_files = TlsFiles::read(&site).with(certificates.files(&site));
        let handover = Handover {
            site,
            invocation,
            sources: &sources,
            sockets: sockets.sockets(),
            control: control.listener(held.control.as_ref()),
            logs: logs.clone(),
            pools: held.pools.statuses(),
            learning: held.pools.learning_sockets(),
            tls_files: tls_files.clone(),
            sibling: None,
        };
        let served = match serve(handover).await {
            Ok(served) => served,
            Err(message) => {
                held.pools.undo(change).await;
                return Err(vec![message]);
            }
        };
        sockets.replace(held.sockets);
        control.replace(held.control);
        let activated = ActiveSite {
            configuration: Configuration {
                process,
                sources,
                names_pid_file,
                acme,
                nodes,
                tls_files,
                _folders: folders,
            },
            logs,
            retired: held.pools.commit(change),
        };
        Ok((served, activated))
    }
}

/// Whether a site listens there.
pub fn listens_on(site: &Site, address: &ListenAddress) -> bool {
    site.http.listeners.iter().any(|it| it.address == *address)
}

/// Returns the sockets on which a site listens.
pub fn wanted_sockets(site: &Site) -> WantedSockets {
    let listener = |it: &site::Listener| (it.address.clone(), it.options.clone());
    site.http.listeners.iter().map(listener).collect()
}

/// How long a request may take a worker of an own pool that sets no limit: beyond the time that
/// its visitor waits for, and enough for an import or a backup that a script goes on with.
fn terminate_timeout(site: &Site) -> Duration {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let read_timeouts = locations.filter_map(|location| match &location.settings.content {
        Content::Pass(pass) => Some(pass.exchange.read_timeout),
        _ => None,
    });
    let longest = read_timeouts.max().unwrap_or_default();
    MIN_TERMINATE.max(longest.saturating_add(BEYOND_READING))
}

/// The environment variable of a pool's PHP with the folder for purges while no server runs.
const LEFT_PURGES: &str = "MAYFLY_PURGE_FOLDER";

/// Unless the pool names another one, or php-fpm's configuration cannot carry the path.
fn name_left_purges(folder: &Path, pool: &PhpPool) -> Option<(String, String)> {
    let is_named = pool.env.iter().any(|(name, _)| name == LEFT_PURGES);
    let path = folder
        .to_str()
        .filter(|path| !path.contains(['$', '\n', '\r']));
    let path = path.filter(|_| !is_named)?;
    Some((LEFT_PURGES.to_owned(), path.to_owned()))
}

fn pool_specs(
    site: &Site,
    server: Option<&Account>,
    journal: &Journal,
) -> Result<Vec<php_pool::PoolSpec>, String> {
    let terminate_after = terminate_timeout(site);
    let process = &site.process;
    let left_purges = site.left_purges();
    process
        .php_pools
        .iter()
        .map(|pool| {
            let php = match account::is_root() {
                true => Some(account::to_run_php(pool)?),
                false => None,
            };
            let learning = learned_pools::is_wanted(site, &pool.name);
            let learning = learning.then(|| learning_library::spec(pool, journal));
            let accounts = (server, php.as_ref());
            let mut spec = pools::spec(pool, accounts, terminate_after, learning);
            let folder = left_purges.as_ref().map(|folder| folder.join(&pool.name));
            spec.env
                .extend(folder.and_then(|it| name_left_purges(&it, pool)));
            Ok(spec)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::config;

    /// The resources held, and a folder for everything that a configuration names.
    struct Machine {
        folder: tempfile::TempDir,
        invocation: Invocation,
        journal: Arc<Journal>,
        sockets: BoundSockets,
        control: Option<ControlSocket>,
        pools: Pools,
    }

    impl Machine {
        fn new() -> Machine {
            let journal = Arc::new(Journal::default());
            let (changes, _) = mpsc::unbounded_channel();
            let folder = tempfile::tempdir().unwrap();
            // Nothing can be opened below a file.
            std::fs::write(folder.path().join("none"), "").unwrap();
            Machine {
                folder,
                invocation: Invocation::from_text(Path::new("/test.conf"), String::new()),
                pools: Pools::new(journal.clone(), changes),
                journal,
                sockets: BoundSockets::default(),
                control: None,
            }
        }

        /// Activates a configuration, in which `%%` stands for the folder.
        async fn activate(
            &mut self,
            main: &str,
            http: &str,
            served: Result<(), String>,
        ) -> Result<ActiveSite, Vec<String>> {
            let text = format!(
                "error_log %%/error.log;\n{main}\nevents {{}}\nhttp {{ access_log off; {http} }}\n"
            );
            let text = text.replace("%%", self.folder.path().to_str().unwrap());
            self.invocation = Invocation::from_text(Path::new("/test.conf"), text);
            let accepted = config::judge(self.invocation.read());
            let accepted = accepted.unwrap_or_else(|rejected| {
                panic!("{:?}", rejected.diagnostics);
            });
            let certificates = Certificates::new(self.journal.clone());
            let surroundings = Surroundings {
                invocation: &self.invocation,
                journal: &self.journal,
                account: None,
                workers: 1,
                certificates: &certificates,
                unnamed_control: None,
            };
            let held = HeldResources {
                sockets: &mut self.sockets,
                control: &mut self.control,
                pools: &mut self.pools,
            };
            let opened = open_logs(accepted)?;
            let serve = async |_: Handover<'_>| served;
            let ((), activated) = opened.activate(surroundings, held, serve).await?;
            Ok(activated)
        }

        /// The sockets whose files are there, and the files below the folder that are open.
        fn acquired(&self) -> (Vec<String>, usize) {
            let folder = self.folder.path();
            let is_socket = |name: &str| folder.join(name).exists();
            let sockets = ["one", "two"].into_iter().filter(|name| is_socket(name));
            let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let open = descriptors
                .filter_map(|it| std::fs::read_link(it.path()).ok())
                .filter(|file| file.starts_with(folder));
            (sockets.map(str::to_owned).collect(), open.count())
        }
    }

    const ONE: &str = "server { listen unix:%%/one; }";
    const BOTH: &str = "server { listen unix:%%/one; listen unix:%%/two; }";
    const MISSING_PHP: &str = "php_pool site { binary /nowhere/php-fpm; workers 1; }";

    /// A step that fails, the configuration that makes it fail, and its message.
    struct FailingStep {
        name: &'static str,
        main: &'static str,
        http: String,
        served: Result<(), String>,
        message: &'static str,
    }

    fn failing_steps() -> [FailingStep; 4] {
        let step = |name, http: &str, message| FailingStep {
            name,
            main: "",
            http: format!("{http} {BOTH}"),
            served: Ok(()),
            message,
        };
        [
            step("logs", "error_log %%/none/log;", "none/log"),
            step(
                "sockets",
                "server { listen unix:%%/none/socket; }",
                "bind() to unix:",
            ),
            FailingStep {
                main: MISSING_PHP,
                ..step("pools", "", "/nowhere/php-fpm")
            },
            FailingStep {
                served: Err("it is not served".to_owned()),
                ..step("serving", "", "it is not served")
            },
        ]
    }

    #[tokio::test]
    async fn a_start_that_fails_leaves_nothing() {
        for step in failing_steps() {
            let mut machine = Machine::new();
            let failed = machine.activate(step.main, &step.http, step.served).await;
            let messages = failed.err().unwrap_or_default().join("\n");
            assert!(messages.contains(step.message), "{}: {messages}", step.name);
            assert_eq!(machine.acquired(), (vec![], 0), "{}", step.name);
            assert_eq!(machine.pools.statuses(), [], "{}", step.name);
        }
    }

    #[tokio::test]
    async fn a_reload_that_fails_leaves_what_is_served() {
        let mut machine = Machine::new();
        let running = machine.activate("", ONE, Ok(())).await.ok().unwrap();
        for step in failing_steps() {
            let failed = machine.activate(step.main, &step.http, step.served).await;
            assert!(failed.is_err(), "{}", step.name);
            let held = (vec!["one".to_owned()], 1);
            assert_eq!(machine.acquired(), held, "{}", step.name);
        }
        let next = machine.activate("", BOTH, Ok(())).await.ok().unwrap();
        drop(running);
        let both = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(machine.acquired(), (both, 1));
        assert!(next.retired.is_empty());
    }

    #[tokio::test]
    async fn pools_that_were_started_for_it_stop_with_a_failure() {
        if php_pool::find_php_fpm(None).is_err() {
            eprintln!("skipped: no php-fpm");
            return;
        }
        let mut machine = Machine::new();
        let first = "php_pool first { workers 1; }";
        let second = format!("{first} {}", MISSING_PHP.replace("site", "zzz"));
        assert!(machine.activate(&second, ONE, Ok(())).await.is_err());
        assert_eq!(machine.pools.statuses(), []);
        let refused = Err("it is not served".to_owned());
        assert!(machine.activate(first, ONE, refused).await.is_err());
        assert_eq!(machine.pools.statuses(), []);

        let _running = machine.activate(first, ONE, Ok(())).await.ok().unwrap();
        let before = machine.pools.statuses();
        assert_eq!(before.len(), 1);
        let changed = "php_pool first { workers 2; } php_pool other { workers 1; }";
        let refused = Err("it is not served".to_owned());
        assert!(machine.activate(changed, ONE, refused).await.is_err());
        let after = machine.pools.statuses();
        assert_eq!(after.len(), 1);
        assert_eq!(after[0].workers, before[0].workers);
        assert!(
            after[0].generation > before[0].generation,
            "changed and changed back"
        );
        machine.pools.stop(false).await;
    }
}
