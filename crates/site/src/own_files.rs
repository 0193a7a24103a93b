//! The places of files that the server writes by itself: logs, pid file, temporary files, certificates,
//! stored responses.
//!
//! Like in nginx their paths begin at the prefix. The prefix of an installed server is `/etc/mayfly`, where
//! nothing is written while it runs: for a prefix in `/etc` they begin at the places that the Filesystem
//! Hierarchy Standard has for each kind.

use std::path::{Path, PathBuf};

/// The folder of configurations, which may be read-only.
const CONFIGURATIONS: &str = "/etc";

/// The folders that relative paths of the server's own files begin at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFiles {
    pub logs: PathBuf,
    /// The pid file and the control socket.
    pub run: PathBuf,
    /// Temporary files and certificates.
    pub state: PathBuf,
    /// The folder of `*_cache_path`.
    pub cache: PathBuf,
    /// The folder of logs that are not named, below `logs`.
    unnamed_logs: &'static str,
}

impl OwnFiles {
    /// Returns the folders of a configuration with this prefix, which is absolute.
    pub fn of(prefix: &Path) -> OwnFiles {
        if prefix.starts_with(CONFIGURATIONS) {
            return OwnFiles {
                logs: "/var/log/mayfly".into(),
                run: "/run/mayfly".into(),
                state: "/var/lib/mayfly".into(),
                cache: "/var/cache/mayfly".into(),
                unnamed_logs: "",
            };
        }
        OwnFiles {
            logs: prefix.to_owned(),
            run: prefix.to_owned(),
            state: prefix.to_owned(),
            cache: prefix.to_owned(),
            unnamed_logs: "logs",
        }
    }

    /// The pid file that `pid` does not name.
    pub fn unnamed_pid_file(&self) -> PathBuf {
        self.run.join(self.unnamed_logs).join("mayfly.pid")
    }

    /// A log that no directive names.
    pub fn unnamed_log(&self, name: &str) -> PathBuf {
        self.logs.join(self.unnamed_logs).join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_where_configurations_are() {
        for prefix in ["/etc", "/etc/mayfly", "/etc/nginx/"] {
            let files = OwnFiles::of(Path::new(prefix));
            assert_eq!(
                files.unnamed_pid_file(),
                Path::new("/run/mayfly/mayfly.pid")
            );
            assert_eq!(
                files.unnamed_log("error.log"),
                Path::new("/var/log/mayfly/error.log")
            );
            for folder in [&files.logs, &files.run, &files.state, &files.cache] {
                assert!(!folder.starts_with("/etc"), "{}", folder.display());
            }
        }
    }

    #[test]
    fn files_are_below_any_other_prefix_as_in_nginx() {
        for prefix in ["/srv/site", "/etcetera"] {
            let files = OwnFiles::of(Path::new(prefix));
            let logs = Path::new(prefix).join("logs");
            assert_eq!(files.unnamed_pid_file(), logs.join("mayfly.pid"));
            assert_eq!(files.unnamed_log("access.log"), logs.join("access.log"));
            assert_eq!(
                (&*files.state, &*files.cache),
                (Path::new(prefix), Path::new(prefix))
            );
        }
    }
}
