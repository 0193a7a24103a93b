//! A pool goes over to another process as it is: to a program that takes the place of this one, and back. Each of
//! the two has descriptors of everything; only one acts.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The state and descriptors with which another process goes on with a pool.
pub struct PoolEstate {
    /// The pool's settings as a text: two programs agree on a pool if it is the same for both.
    pub spec: String,
    /// The folder of its socket and its configuration.
    pub folder: PathBuf,
    /// The master's process, and the group of it and of everything it started.
    pub pid: u32,
    pub group: u32,
    pub generation: u64,
    pub workers: u32,
    /// The folder, locked.
    pub own: OwnedFd,
    /// The listening socket.
    pub socket: OwnedFd,
    /// The master's process.
    pub process: OwnedFd,
    /// While one of those who have it lives, so does the master.
    pub lifeline: OwnedFd,
    /// The read end of the master's log.
    pub stderr: OwnedFd,
}

impl PoolEstate {
    /// The descriptors, in their order.
    #[must_use]
    pub fn descriptors(&self) -> [&OwnedFd; 5] {
        [
            &self.own,
            &self.socket,
            &self.process,
            &self.lifeline,
            &self.stderr,
        ]
    }
}

impl fmt::Debug for PoolEstate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The spec may hold passwords.
        f.debug_struct("PoolEstate")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
