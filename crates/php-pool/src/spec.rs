//! The specification of a pool, as plain values: the type that `site` lowers a `php_pool NAME { ... }`
//! block into. Nothing here touches the system; the values are checked when [`crate::render`] turns them
//! into php-fpm's own configuration.
//!
//! The directives of the block and the field each one fills:
//!
//! | directive | field | default |
//! | --- | --- | --- |
//! | `workers auto\|N;` | [`PoolSpec::workers`] | `auto` |
//! | `pm static\|dynamic\|ondemand;` | [`PoolSpec::manager`] | `static` |
//! | `max_children N;` | [`PoolSpec::workers`] (another name for `workers N`) | |
//! | `start_servers N;` | [`ProcessManager::Dynamic`]`::start` | between the spares |
//! | `min_spare_servers N;` | [`ProcessManager::Dynamic`]`::min_spare` | a quarter of the workers |
//! | `max_spare_servers N;` | [`ProcessManager::Dynamic`]`::max_spare` | three quarters |
//! | `idle_timeout TIME;` | [`ProcessManager::OnDemand`]`::idle_timeout` | `10s` |
//! | `max_requests N;` | [`PoolSpec::max_requests`] | `0` (never) |
//! | `request_terminate_timeout TIME;` | [`PoolSpec::request_terminate_timeout`] | none |
//! | `slow_log FILE TIME;` | [`PoolSpec::slow_log`] | none |
//! | `user NAME;` `group NAME;` | [`PoolSpec::run_as`] | |
//! | `no_new_privs on\|off;` | [`PoolSpec::no_new_privs`] | `on` |
//! | `binary FILE;` | [`PoolSpec::binary`] | found on the machine |
//! | `chdir DIR;` | [`PoolSpec::chdir`] | none |
//! | `env NAME VALUE;` | [`PoolSpec::env`] | none |
//! | `clear_env on\|off;` | [`PoolSpec::clear_env`] | `on` |
//! | `php_value NAME VALUE;` | [`PoolSpec::php_value`] | none |
//! | `php_flag NAME on\|off;` | [`PoolSpec::php_flag`] | none |
//! | `php_admin_value NAME VALUE;` | [`PoolSpec::php_admin_value`] | none |
//! | `php_admin_flag NAME on\|off;` | [`PoolSpec::php_admin_flag`] | none |
//! | `catch_workers_output on\|off;` | [`PoolSpec::catch_workers_output`] | `off` |
//! | `rlimit_files N;` | [`PoolSpec::rlimit_files`] | the system's |
//! | `log_level LEVEL;` | [`PoolSpec::log_level`] | `notice` |
//! | `listen_backlog N;` | [`PoolSpec::listen_backlog`] | 511 |
//! | `drain_timeout TIME;` | [`PoolSpec::drain_timeout`] | `30s` |
//! | `ini NAME VALUE;` | [`PoolSpec::extra`] | none |

use std::path::PathBuf;
use std::time::Duration;

use crate::find::ProgramFile;

/// A PHP pool as its administrator wants it. Two equal specs need no reload.
// Large: each becomes lines of the configuration of PHP-FPM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Name of the pool: letters, digits, `_`, `-` and `.`, at most
    /// [`PoolSpec::MAX_NAME_BYTES`] bytes. Shows in process titles and logs.
    pub name: String,
    /// The php-fpm binary; `None` looks for one (see [`crate::find_php_fpm`]).
    pub binary: Option<PathBuf>,
    /// The file that it was when this was written, so that the same words mean another pool after an
    /// upgrade of PHP. It starts nothing by itself.
    pub program: Option<ProgramFile>,
    /// An existing directory in which the pool makes one of its own (removed at stop) for its socket and
    /// php-fpm's configuration; `None` takes `$RUNTIME_DIRECTORY`, `/run`, `$XDG_RUNTIME_DIR` or the
    /// directory for temporary files. Started by root, it must be one whose content only root decides.
    pub runtime_parent: Option<PathBuf>,
    /// The owner of the socket, which may connect: user and group id. `None` leaves it with the starting
    /// process; set it when a privileged process starts pools for an unprivileged one. The directory
    /// stays with the starting process.
    pub socket_owner: Option<(u32, u32)>,
    /// How php-fpm keeps its workers.
    pub manager: ProcessManager,
    /// Workers at most: requests that PHP runs at the same time.
    pub workers: Workers,
    /// Requests after which a worker is replaced; 0 means never.
    pub max_requests: u32,
    /// A request that takes longer is ended with its worker. php-fpm counts
    /// whole seconds: fractions are rounded up.
    pub request_terminate_timeout: Option<Duration>,
    /// The log of the stacks of slow requests.
    pub slow_log: Option<SlowLog>,
    /// The account that runs PHP, php-fpm's master included. Only a pool started by root may choose, and
    /// it must.
    pub run_as: Option<RunAs>,
    /// Whether set-id programs are without effect for PHP and its children, and no capability can be
    /// gained. Only root can take away capabilities.
    pub no_new_privs: bool,
    /// Working directory of the workers, absolute.
    pub chdir: Option<PathBuf>,
    /// Environment of the workers.
    pub env: Vec<(String, String)>,
    /// Whether workers see only `env` and not this process's environment.
    pub clear_env: bool,
    /// php.ini settings that scripts may change.
    pub php_value: Vec<(String, String)>,
    /// Boolean php.ini settings that scripts may change.
    pub php_flag: Vec<(String, bool)>,
    /// php.ini settings that scripts may not change.
    pub php_admin_value: Vec<(String, String)>,
    /// Boolean php.ini settings that scripts may not change.
    pub php_admin_flag: Vec<(String, bool)>,
    /// Whether the output of workers to stdout and stderr becomes events.
    pub catch_workers_output: bool,
    /// Files each worker may have open.
    pub rlimit_files: Option<u32>,
    /// The least severe php-fpm message that becomes an event.
    pub log_level: LogLevel,
    /// Connections that may wait in the socket's queue.
    pub listen_backlog: u32,
    /// How long workers may go on with their requests when the pool stops or
    /// is replaced, before they are ended.
    pub drain_timeout: Duration,
    /// Further lines of php-fpm's pool section, for settings that have no field here.
    pub extra: Vec<(String, String)>,
    /// PHP reports its reads over a socket of the pool, whose path is in the environment variable
    /// [`PoolSpec::LEARNING_SOCKET`].
    pub learning: Option<LearningSpec>,
}

impl PoolSpec {
    /// Bound on the name: it is part of a unix socket's path, which the
    /// system limits to 107 bytes.
    pub const MAX_NAME_BYTES: usize = 32;

    /// The variable of the environment with the path of the socket that the library speaks to.
    pub const LEARNING_SOCKET: &str = "MAYFLY_LEARN";

    /// Returns the text by which two programs recognize the same pool.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{self:?}")
    }

    /// A pool of that name with the defaults of the table above.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            binary: None,
            program: None,
            runtime_parent: None,
            socket_owner: None,
            manager: ProcessManager::Static,
            workers: Workers::Auto,
            max_requests: 0,
            request_terminate_timeout: None,
            slow_log: None,
            run_as: None,
            no_new_privs: true,
            chdir: None,
            env: Vec::new(),
            clear_env: true,
            php_value: Vec::new(),
            php_flag: Vec::new(),
            php_admin_value: Vec::new(),
            php_admin_flag: Vec::new(),
            catch_workers_output: false,
            rlimit_files: None,
            log_level: LogLevel::Notice,
            listen_backlog: 511,
            drain_timeout: Duration::from_secs(30),
            extra: Vec::new(),
            learning: None,
        }
    }
}

/// The settings for reports of PHP's reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearningSpec {
    /// The library that PHP is started with; `None` if there is none for this PHP.
    pub library: Option<PathBuf>,
}

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Its name, for its further groups.
    pub user: String,
    /// The group's name where it is not the user's own.
    pub group: Option<String>,
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// How php-fpm keeps its workers (`pm`). Numbers left out are derived from
/// the number of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProcessManager {
    /// All workers from the start.
    #[default]
    Static,
    /// Workers on demand, with some to spare.
    Dynamic {
        /// Workers at start.
        start: Option<u32>,
        /// Idle workers at least.
        min_spare: Option<u32>,
        /// Idle workers at most.
        max_spare: Option<u32>,
    },
    /// No workers until a request comes; idle ones leave.
    OnDemand {
        /// How long an idle worker stays; whole seconds, rounded up.
        idle_timeout: Duration,
    },
}

/// How many workers a pool has at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// From the machine's memory and cores and the measured size of a worker.
    #[default]
    Auto,
    /// A fixed number of workers.
    Count(u32),
}

/// The log for stacks of slow requests, and the time from which a request is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowLog {
    /// The file, absolute; php-fpm appends to it.
    pub file: PathBuf,
    /// Whole seconds, rounded up.
    pub timeout: Duration,
}

/// php-fpm's own log levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything, also lines for php-fpm's developers alone.
    Debug,
    /// Events of normal operation.
    Notice,
    /// Events that may need attention.
    Warning,
    /// Failures.
    Error,
    /// Failures that end the program.
    Alert,
}
