//! The reasons why a folder cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum TierError {
    /// Another process has the folder: this one goes on without.
    Locked(PathBuf),
    /// The folder is a link, or belongs to another account.
    NotOurs(PathBuf),
    /// The terms make no sense: a segment or the whole is too small.
    Terms(&'static str),
    Io {
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
}

impl fmt::Display for TierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierError::Locked(path) => write!(f, "{} is in use by another process", path.display()),
            TierError::NotOurs(path) => {
                write!(f, "{} is a link, or of another account", path.display())
            }
            TierError::Terms(what) => f.write_str(what),
            TierError::Io { what, path, error } => {
                write!(f, "cannot {what} {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for TierError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TierError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
