//! Whether the binary log of a server is followed.

use std::sync::Arc;

/// The state of the log of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogState {
    /// It is not to be followed.
    #[default]
    Off,
    Followed,
    /// Why it is not.
    NotFollowed(Arc<str>),
}
