//! Settings of the whole process: the `main` context, and the `php_pool` blocks.

use std::path::PathBuf;
use std::time::Duration;

use super::log::ErrorLog;

/// Settings of the main context.
#[derive(Debug, Clone)]
pub struct Process {
    /// `daemon`: leave the terminal after the start.
    pub daemon: bool,
    /// `user NAME [GROUP]`; only has an effect when started as root.
    pub user: Option<User>,
    /// `worker_processes`: how many threads serve; `None` is `auto`.
    pub workers: Option<usize>,
    /// `pid FILE`, absolute.
    pub pid_file: PathBuf,
    /// `control_socket`
    pub control_socket: ControlSocket,
    /// `env NAME` (keep) and `env NAME=VALUE` (set).
    pub env: Vec<(String, Option<String>)>,
    /// `worker_rlimit_nofile`.
    pub open_files_limit: Option<u64>,
    /// `error_log` of the main context.
    pub error_logs: Vec<ErrorLog>,
    /// `worker_shutdown_timeout`: how long a graceful stop may take.
    pub shutdown_timeout: Option<Duration>,
    /// `php_pool NAME { ... }`.
    pub php_pools: Vec<PhpPool>,
}

/// `control_socket PATH | off`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ControlSocket {
    /// Without the directive: beside the pid file.
    #[default]
    BesidePidFile,
    Off,
    /// Absolute.
    Path(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub group: Option<String>,
}

/// `php_pool NAME { ... }`: PHP-FPM that Mayfly runs itself.
// Large: each field is the value of a directive of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhpPool {
    pub name: String,
    pub binary: Option<PathBuf>,
    /// `workers auto` is `None`.
    pub workers: Option<usize>,
    pub manager: PoolManager,
    pub max_requests: Option<u64>,
    pub request_terminate_timeout: Option<Duration>,
    /// `slow_log FILE TIME`.
    pub slow_log: Option<(PathBuf, Duration)>,
    pub user: Option<User>,
    /// `no_new_privs`: PHP and its child processes gain no rights.
    pub no_new_privs: bool,
    pub chdir: Option<PathBuf>,
    pub env: Vec<(String, String)>,
    pub clear_env: bool,
    /// `php_value`, `php_flag`, `php_admin_value`, `php_admin_flag`.
    pub settings: Vec<PhpSetting>,
    pub catch_workers_output: bool,
    pub listen_backlog: Option<u32>,
    /// `rlimit_files`: files each worker may have open.
    pub rlimit_files: Option<u32>,
    /// `log_level`: the least severe message of php-fpm that is shown.
    pub log_level: PhpLogLevel,
    /// `drain_timeout`: how long requests may go on when the pool stops.
    pub drain_timeout: Duration,
    /// `ini NAME VALUE`: further lines of php-fpm's pool section.
    pub extra: Vec<(String, String)>,
}

/// php-fpm's own log levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhpLogLevel {
    Debug,
    Notice,
    Warning,
    Error,
    Alert,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhpSetting {
    pub kind: PhpSettingKind,
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhpSettingKind {
    Value,
    Flag,
    AdminValue,
    AdminFlag,
}

/// `pm` and its settings. Numbers that are not given are derived from `workers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolManager {
    Static,
    Dynamic {
        start_servers: Option<usize>,
        min_spare_servers: Option<usize>,
        max_spare_servers: Option<usize>,
    },
    OnDemand {
        idle_timeout: Duration,
    },
}
