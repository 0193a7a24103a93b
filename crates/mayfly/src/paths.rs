//! Where things are by default: as a Debian package would
//! have them. A build may choose other places with `MAYFLY_PREFIX` and
//! `MAYFLY_CONF` in its environment.

use std::path::PathBuf;

/// Relative paths of the configuration and of `-c` begin here (`-p`); those of files that the server
/// writes begin elsewhere (`site::OwnFiles`).
pub const PREFIX: &str = match option_env!("MAYFLY_PREFIX") {
    Some(prefix) => prefix,
    None => "/etc/mayfly",
};

/// The configuration file (`-c`).
pub const CONF: &str = match option_env!("MAYFLY_CONF") {
    Some(file) => file,
    None => "/etc/mayfly/mayfly.conf",
};

/// `path` as seen from the current folder; unchanged without a current folder.
pub fn from_here(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Where keys and certificates are kept that come by themselves: a folder of the system's for
/// root, else one of the account's.
///
/// # Errors
/// The account has no home.
pub fn state() -> Result<PathBuf, String> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    // systemd's `StateDirectory=` says where.
    if let Some(folder) = absolute("STATE_DIRECTORY") {
        return Ok(folder);
    }
    if crate::processes::account::is_root() {
        return Ok("/var/lib/mayfly".into());
    }
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or("there is no HOME to keep keys and certificates in")?;
    Ok(state.join("mayfly"))
}
