//! A process under test with a folder that it writes to: the common part of
//! [`RunningServer`](crate::running) and [`FolderServer`](crate::serving).

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use tempfile::TempDir;

use crate::client::{Client, Target};
use crate::process::{self, Signal};
use crate::wait::until_or;

/// A process that listens on the unix socket `http` in its folder.
pub struct StartedProcess {
    child: Child,
    folder: TempDir,
    /// The files in the folder that messages are written to.
    logs: &'static [&'static str],
}

impl StartedProcess {
    pub fn new(child: Child, folder: TempDir, logs: &'static [&'static str]) -> StartedProcess {
        StartedProcess {
            child,
            folder,
            logs,
        }
    }

    /// Another process in the place of one that has ended.
    pub(crate) fn replace_child(&mut self, child: Child) {
        self.child = child;
    }

    /// Waits for the start to be over.
    ///
    /// # Panics
    /// When the process ends, or does not come that far; with its output.
    pub async fn wait_for_start(&mut self, is_over: impl Fn(&Path) -> bool) {
        let folder = self.folder.path();
        let (child, logs) = (&mut self.child, self.logs);
        let said = || text_of(folder, logs);
        let is_over = || {
            if let Ok(Some(status)) = child.try_wait() {
                panic!("the server ended with {status}: {}", said());
            }
            is_over(folder)
        };
        until_or(is_over, || format!("no start: {}", said())).await;
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder_path(&self) -> &Path {
        self.folder.path()
    }

    /// The content of a file in its folder; empty if the file cannot be read.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes a file in its folder.
    ///
    /// # Panics
    /// When that fails.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file");
    }

    /// Returns the error log so far.
    pub fn error_log(&self) -> String {
        text_of(self.folder.path(), self.logs)
    }

    /// Returns the target at which it listens.
    pub fn target(&self) -> Target {
        Target(self.path("http"))
    }

    pub async fn connect(&self) -> Client {
        Client::connect(&self.path("http")).await
    }

    /// The process that was started: the privileged parent where root started it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// # Panics
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        process::send_signal(self.pid(), signal);
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// When it goes on.
    pub async fn ended(&mut self) -> ExitStatus {
        let folder = self.folder.path();
        let (child, logs) = (&mut self.child, self.logs);
        let mut ended = None;
        let has_ended = || {
            ended = child.try_wait().ok().flatten();
            ended.is_some()
        };
        until_or(has_ended, || format!("no end: {}", text_of(folder, logs))).await;
        ended.expect("a status")
    }

    /// Ends the process in order.
    ///
    /// # Panics
    /// When it goes on.
    pub async fn end(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// Asks the process to end, if it still runs.
    pub(crate) fn terminate(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
    }

    /// Waits for the end outside of a runtime, and kills processes that have not ended in time.
    pub(crate) fn stop(&mut self, time: Duration) {
        let start = std::time::Instant::now();
        while start.elapsed() < time && !matches!(self.child.try_wait(), Ok(Some(_))) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for StartedProcess {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
        if std::thread::panicking() {
            eprintln!("--- what the server said\n{}", self.error_log());
        }
    }
}

fn text_of(folder: &Path, logs: &[&str]) -> String {
    let texts = logs
        .iter()
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap_or_default());
    texts.collect()
}
