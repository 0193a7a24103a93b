//! The way between the processes that serve in two programs, of which one takes the other's place
//! (`live_state::sibling`).

use std::os::fd::OwnedFd;

/// The socket of the process that serves beside this one.
#[derive(Debug)]
pub struct SiblingSocket {
    pub socket: OwnedFd,
    /// Whether that process takes the place of this one.
    pub is_successor: bool,
}
