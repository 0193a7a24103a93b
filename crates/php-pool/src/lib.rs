//! PHP processes and their life: starts a real `php-fpm` master with a
//! configuration written here, watches it, replaces it when it dies or when
//! the configuration changes, and stops it with everything it started.
//!
//! ```text
//! PoolSpec --fpm_conf--> text --supervisor--> php-fpm master --> workers
//!                                   |
//!                                   +--> PoolState (watch), Event (log)
//! ```
//!
//! The listening socket is ours and outlives every master, so a connection
//! made while PHP is away waits in the socket's queue instead of failing.
//! Nothing here speaks FastCGI or HTTP: callers get an [`Endpoint`]. The life
//! of a pool is drawn in `LIFECYCLE.md`.

mod error;
mod find;
mod fpm_conf;
mod handover;
mod launch;
mod master;
mod pool;
mod probe;
mod retiring;
mod sizing;
mod spec;
mod state;
mod supervisor;

pub use error::StartError;
pub use find::{FindError, ProgramFile, find_php_fpm};
pub use fpm_conf::{MasterAccount, SpecError, render};
pub use handover::PoolEstate;
pub use launch::{LEARNING_SOCKET_NAME, pid_of_folder};
pub use pool::{Endpoint, Pool};
pub use probe::WorkerMemory;
pub use sizing::{Machine, WORKER_BYTES_ASSUMED, auto_workers};
pub use spec::{LearningSpec, LogLevel, PoolSpec, ProcessManager, RunAs, SlowLog, Workers};
pub use state::{Event, PoolState};
