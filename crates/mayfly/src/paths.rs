//! Where things are unless somebody says otherwise: as a Debian package would
//! have them. A build may choose other places with `MAYFLY_PREFIX` and
//! `MAYFLY_CONF` in its environment.

use std::path::PathBuf;

/// Relative paths of the configuration and of `-c` begin here (`-p`).
pub const PREFIX: &str = match option_env!("MAYFLY_PREFIX") {
    Some(prefix) => prefix,
    None => "/etc/mayfly",
};

/// The configuration file (`-c`).
pub const CONF: &str = match option_env!("MAYFLY_CONF") {
    Some(file) => file,
    None => "/etc/mayfly/mayfly.conf",
};

/// `path` as seen from the current folder; unchanged where there is none.
pub fn from_here(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
