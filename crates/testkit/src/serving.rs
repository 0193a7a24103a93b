//! `mayfly serve` under test: the program with a folder or a URL and no configuration,
//! on a unix socket in a folder of its own, stopped when dropped.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Client, Target};

/// How long a start may take on a busy machine; PHP starts with it.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A running `mayfly serve`.
pub struct Serving {
    child: Child,
    folder: TempDir,
}

impl Serving {
    /// An empty site for [`Serving::start`]: readable by whoever serves when root starts it.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn folder() -> TempDir {
        let folder = tempfile::Builder::new()
            .prefix("mayfly-site")
            .tempdir()
            .expect("a folder");
        open_to_all(folder.path());
        folder
    }

    /// Starts `program serve WHAT ARGUMENTS`; waits until it answers.
    ///
    /// # Panics
    /// When it does not start; with what it said.
    pub async fn start(program: &str, what: &str, arguments: &[&str]) -> Serving {
        let folder = Serving::folder();
        let said = |name| std::fs::File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(program)
            .arg("serve")
            .arg(what)
            .arg("--listen")
            .arg(format!("unix:{}", folder.path().join("http").display()))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(said("stdout"))
            .stderr(said("stderr"))
            .spawn()
            .expect("the program starts");
        let mut serving = Serving { child, folder };
        let begun = Instant::now();
        // What is announced is said when everything listens.
        while !serving.read("stdout").contains("Ctrl-C") {
            if let Ok(Some(status)) = serving.child.try_wait() {
                panic!("the server ended with {status}: {}", serving.error_log());
            }
            assert!(
                begun.elapsed() < START_PATIENCE,
                "no start: {}",
                serving.error_log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        serving
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What was logged so far.
    pub fn error_log(&self) -> String {
        self.read("stderr")
    }

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
}

impl Drop for Serving {
    fn drop(&mut self) {
        // PHP is stopped by its parent, which therefore must not be killed outright.
        if let Some(pid) = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < START_PATIENCE && !matches!(self.child.try_wait(), Ok(Some(_))) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- what the server said\n{}", self.error_log());
        }
    }
}

/// Lets every account enter and read a folder.
fn open_to_all(folder: &Path) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("a mode");
}
