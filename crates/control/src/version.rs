//! The version of the interface and of the program behind it.

use serde::{Deserialize, Serialize};

/// The version of the interface, as paths have it.
pub const VERSION: u32 = 1;

/// The version of a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The program's version, such as `0.1.0`.
    pub version: String,
    /// The process that answers.
    pub pid: u32,
}
