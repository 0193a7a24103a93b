//! The program's own messages while it starts, reloads and stops: to the error
//! logs of the main context, and to stderr until the start is over. Requests
//! are logged by `server`.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use live_state::error_log::ErrorLogs;
use live_state::log_sinks::LogSinks;
use parking_lot::Mutex;
use site::{ErrorLog, LogLevel, LogTarget};

use crate::processes::logs::{self, LogFiles};

/// The log of the program's own lines. Shared with the tasks that watch PHP.
#[derive(Default)]
pub struct Journal {
    logs: Mutex<(ErrorLogs, Vec<ErrorLog>)>,
    /// The start is over: stderr gets only the lines that an `error_log` sends
    /// there.
    has_started: AtomicBool,
}

impl Journal {
    /// A journal that only knows stderr yet, and the file of `-e` if given.
    pub fn new(error_log: Option<PathBuf>) -> Arc<Journal> {
        let journal = Journal::default();
        if let Some(path) = error_log {
            match logs::open(&path) {
                Ok(file) => {
                    let files = LogFiles {
                        files: [(path.clone(), Arc::new(file))].into(),
                    };
                    let log = ErrorLog {
                        target: LogTarget::File(path),
                        level: LogLevel::Notice,
                    };
                    journal.use_logs(&[log], &files);
                }
                Err(message) => {
                    journal.warn(format_args!("could not open error log file: {message}"));
                }
            }
        }
        Arc::new(journal)
    }

    /// Takes over the logs of the main context.
    pub fn use_logs(&self, logs: &[ErrorLog], files: &LogFiles) {
        // Without descriptors left, lines go on as before.
        if let Ok(files) = files.descriptors() {
            *self.logs.lock() = (
                ErrorLogs::new(Arc::new(LogSinks::with_files(files)), Arc::default()),
                logs.to_vec(),
            );
        }
    }

    /// From now on stderr hears nothing more by itself.
    pub fn start_is_over(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Writes one line. During the start, warnings and errors also go to
    /// stderr.
    pub fn line(&self, level: LogLevel, message: impl Display) {
        let is_shown = level <= LogLevel::Warn && !self.has_started.load(Ordering::Relaxed);
        if is_shown {
            // The reader may be gone.
            let _ = writeln!(io::stderr(), "mayfly: [{}] {message}", level.name());
        }
        self.write(level, message, is_shown);
    }

    /// Writes one line that the terminal has shown already.
    pub fn record(&self, level: LogLevel, message: impl Display) {
        self.write(level, message, !self.has_started.load(Ordering::Relaxed));
    }

    fn write(&self, level: LogLevel, message: impl Display, is_shown: bool) {
        let (error_logs, logs) = &*self.logs.lock();
        let logs: Vec<ErrorLog> = logs
            .iter()
            .filter(|log| !(is_shown && log.target == LogTarget::Stderr))
            .cloned()
            .collect();
        error_logs.write(&logs, level, 0, format_args!("{message}"), "");
    }

    pub fn emerg(&self, message: impl Display) {
        self.line(LogLevel::Emerg, message);
    }

    pub fn error(&self, message: impl Display) {
        self.line(LogLevel::Error, message);
    }

    pub fn warn(&self, message: impl Display) {
        self.line(LogLevel::Warn, message);
    }

    pub fn notice(&self, message: impl Display) {
        self.line(LogLevel::Notice, message);
    }
}
