//! Default paths: those of a Debian package. A build may choose other places with `MAYFLY_PREFIX` and
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

/// Returns the folder for keys and certificates that come by themselves: one of the system's for root, else one
/// of the account's.
///
/// # Errors
/// The account has no home.
pub fn state() -> Result<PathBuf, String> {
    own_folder(
        "STATE_DIRECTORY",
        "/var/lib/mayfly",
        ("XDG_STATE_HOME", ".local/state"),
    )
    .ok_or_else(|| "there is no HOME to keep keys and certificates in".to_owned())
}

/// Returns the folder in which `mayfly serve` keeps pages: one of the system's for root, else one of the
/// account's, and one in memory if the account has no home.
pub fn cache() -> PathBuf {
    let user = ("XDG_CACHE_HOME", ".cache");
    own_folder("CACHE_DIRECTORY", "/var/cache/mayfly", user)
        .unwrap_or_else(|| "/dev/shm/mayfly".into())
}

/// Returns the folder in systemd's variable, else root's folder, else the account's: `user` has a variable, and
/// the folder below HOME that stands for it.
fn own_folder(systemd: &str, of_root: &str, user: (&str, &str)) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    if let Some(folder) = absolute(systemd) {
        return Some(folder);
    }
    if crate::processes::account::is_root() {
        return Some(of_root.into());
    }
    let (variable, below_home) = user;
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(folder.join("mayfly"))
}
