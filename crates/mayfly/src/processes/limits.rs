//! The limits of the process: open files, and the folder of its pid file.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit, setrlimit};
use site::{OwnFiles, Process};

use crate::processes::control_socket;
use crate::processes::journal::Journal;
use system_error::SystemError;

/// Raises the number of files that may be open: to that of the configuration, else as far as the system lets
/// us. Each connection is one.
pub fn raise_open_files(wanted: Option<u64>, journal: &Journal) {
    let mut limit = getrlimit(Resource::Nofile);
    match wanted {
        None => limit.current = limit.maximum,
        Some(wanted) => {
            limit.current = Some(wanted);
            // Only root may go higher; others get a warning below.
            limit.maximum = limit.maximum.map(|maximum| maximum.max(wanted));
        }
    }
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        let error = io::Error::from(error);
        let wanted = wanted.map_or_else(|| "the most".to_owned(), |wanted| wanted.to_string());
        journal.warn(format_args!(
            "setrlimit(RLIMIT_NOFILE, {wanted}) failed ({})",
            SystemError(&error)
        ));
    }
}

/// Makes the folder of the pid file and the control socket that no directive names, where that folder is the
/// system's and missing.
pub fn make_run_folder(process: &Process, prefix: &Path) {
    let usual = OwnFiles::of(prefix).run;
    if usual != prefix && process.pid_file.parent() == Some(&*usual) {
        control_socket::make_folder(&process.pid_file);
    }
}
