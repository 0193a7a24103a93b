//! The files of all logs, opened for appending by the process that may: the one
//! that was started, so that a worker without rights gets them open.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use site::{AccessLogTarget, ErrorLog, LogTarget, Site};

use system_error::SystemError;

/// Open log files by their paths. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct LogFiles {
    pub files: HashMap<PathBuf, Arc<File>>,
}

impl LogFiles {
    /// Opens each file that some log of the site is written to, and `more`.
    ///
    /// # Errors
    /// A message for each file that cannot be opened.
    pub fn open(paths: &BTreeSet<PathBuf>) -> Result<LogFiles, Vec<String>> {
        let mut files = HashMap::new();
        let mut errors = Vec::new();
        for path in paths {
            match open(path) {
                Ok(file) => {
                    files.insert(path.clone(), Arc::new(file));
                }
                Err(message) => errors.push(message),
            }
        }
        if errors.is_empty() {
            Ok(LogFiles { files })
        } else {
            Err(errors)
        }
    }
}

impl LogFiles {
    /// The files as the registries of `server` take them: each a descriptor of
    /// its own for the same open file.
    ///
    /// # Errors
    /// The process has no more descriptors.
    pub fn descriptors(&self) -> io::Result<HashMap<PathBuf, File>> {
        self.files
            .iter()
            .map(|(path, file)| Ok((path.clone(), file.try_clone()?)))
            .collect()
    }
}

/// Opens (or makes) one log.
///
/// # Errors
/// nginx's message.
pub fn open(path: &Path) -> Result<File, String> {
    // The usual place of logs is below the prefix, and need not be there yet.
    trusted_path::append(path, 0o644).map_err(|error| {
        format!(
            "open() \"{}\" failed ({})",
            path.display(),
            SystemError(&error)
        )
    })
}

/// The files that the site's logs are written to. Paths with variables are
/// opened by the worker when it knows them.
pub fn paths(site: &Site) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    let mut add = |target: &LogTarget| {
        if let LogTarget::File(path) = target {
            paths.insert(path.clone());
        }
    };
    let mut add_all = |logs: &[ErrorLog]| logs.iter().for_each(|log| add(&log.target));
    add_all(&site.process.error_logs);
    let locations = || {
        site.http
            .servers
            .iter()
            .flat_map(|server| &server.locations)
    };
    for location in locations() {
        add_all(&location.settings.error_logs);
    }
    if let Some(log) = &site.http.purge_log {
        add(&log.target);
    }
    for log in locations().flat_map(|location| &location.settings.access_logs) {
        if let AccessLogTarget::Fixed(target) = &log.target {
            add(target);
        }
    }
    paths
}
