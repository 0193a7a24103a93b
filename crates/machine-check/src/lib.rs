//! Checks whether this machine is set up for the server: reads `/proc`, `/sys` and `/etc` below a
//! root, compares with the needs of the configuration, and reports each fault, why it matters, and its
//! remedy.
//!
//! ```text
//! Subject (what the configuration wants) ─┐
//! Machine (files below a root)            ├─► kernel, memory, php, database ─► Finding
//! ```
//!
//! Nothing is changed, nothing is started, and only the files named here are read. A file that is
//! missing or has unexpected content gives no finding: a fault is reported only if it is certain.

mod database;
mod finding;
mod kernel;
mod machine;
mod memory;
mod php;
mod unit;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use finding::{Finding, Severity};
use machine::Machine;
pub use unit::ServiceUnit;

/// The needs of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The program would be started by root.
    pub is_root: bool,
    /// A server runs with this configuration: its ports are taken by itself.
    pub is_running: bool,
    /// `worker_rlimit_nofile`
    pub open_files: Option<u64>,
    /// The addresses on which the server listens.
    pub ports: Vec<SocketAddr>,
    /// The longest line of connections that wait to be accepted.
    pub backlog: u64,
    /// The zones of the cache.
    pub zones: Vec<Zone>,
    /// Folders of temporary files.
    pub temporary_folders: Vec<PathBuf>,
    pub pools: Vec<Pool>,
    /// Some location passes requests to PHP, an own pool or another one.
    pub has_php: bool,
    pub document_roots: Vec<PathBuf>,
}

/// A zone of the cache.
#[derive(Clone, Debug)]
pub struct Zone {
    pub name: String,
    pub path: PathBuf,
    pub memory_bytes: Option<u64>,
}

/// A pool of PHP workers.
#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub workers: Workers,
    pub max_requests: Option<u64>,
    pub has_slow_log: bool,
    /// `php_admin_value` and its like.
    pub settings: Vec<(String, String)>,
}

/// How many workers a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    Count(u64),
    /// `workers auto`: as many as it would choose now, and for how large it takes each.
    Auto {
        chosen: u64,
        bytes_each: u64,
    },
}

/// Everything that is wrong, the worst first.
#[must_use]
pub fn check(root: &Path, subject: &Subject) -> Vec<Finding> {
    let machine = Machine::new(root);
    let mut findings = Vec::new();
    kernel::check(&machine, subject, &mut findings);
    memory::check(&machine, subject, &mut findings);
    php::check(&machine, subject, &mut findings);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
