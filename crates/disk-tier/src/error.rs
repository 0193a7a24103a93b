//! The reasons why a folder cannot be used.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum TierError {
    /// Another process has the folder: this one goes on without.
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    /// The folder is a link, or belongs to another account.
    #[error("{0} is a link, or of another account")]
    NotOurs(PathBuf),
    /// The terms make no sense: a segment or the whole is too small.
    #[error("{0}")]
    Terms(&'static str),
    #[error("cannot {what} {path}: {error}")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}
