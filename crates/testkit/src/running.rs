//! A server under test: the built program with a configuration of the test's,
//! in a folder of its own, stopped when dropped. It listens on a unix socket,
//! so that no two tests can want the same port.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Client, Target};

/// How long a start may take on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    /// Starts `program` with `http` as the content of the http block; `%%` in
    /// it stands for the folder. The pid file says that it listens.
    ///
    /// # Panics
    /// When it does not start; with what it said.
    pub async fn start(program: &str, main: &str, http: &str) -> Running {
        let folder = tempfile::Builder::new()
            .prefix("mayfly-test")
            .tempdir()
            .expect("a folder");
        let mut running = Running {
            child: spawn(program, folder.path(), main, http),
            folder,
        };
        let begun = Instant::now();
        let pid_file = running.path("pid");
        while !pid_file.exists() {
            if let Ok(Some(status)) = running.child.try_wait() {
                panic!("the server ended with {status}: {}", running.error_log());
            }
            assert!(
                begun.elapsed() < START_PATIENCE,
                "no start: {}",
                running.error_log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What was written to the error log so far.
    pub fn error_log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.path(name)).unwrap_or_default();
        format!("{}{}", read("error.log"), read("stderr"))
    }

    /// Where it listens: `listen unix:%%/http;`.
    pub fn target(&self) -> Target {
        Target(self.path("http"))
    }

    pub async fn connect(&self) -> Client {
        Client::connect(&self.path("http")).await
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Replaces the configuration file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn rewrite(&self, main: &str, http: &str) {
        write_configuration(self.folder.path(), main, http);
    }

    /// Sends a signal by its name.
    ///
    /// # Panics
    /// When `kill` is missing.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid().to_string())
            .status();
        assert!(done.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// When it goes on for longer than a start may take.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        let begun = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            assert!(
                begun.elapsed() < START_PATIENCE,
                "no end: {}",
                self.error_log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- error log of the server\n{}", self.error_log());
        }
    }
}

fn write_configuration(folder: &Path, main: &str, http: &str) {
    let place = folder.to_str().expect("a plain path");
    let text = format!(
        "daemon off;\npid {place}/pid;\nerror_log {place}/error.log info;\n{main}\nevents {{}}\n\
         http {{\nroot {place};\naccess_log off;\n{http}\n}}\n"
    );
    std::fs::write(folder.join("test.conf"), text.replace("%%", place)).expect("a configuration");
}

fn spawn(program: &str, folder: &Path, main: &str, http: &str) -> Child {
    write_configuration(folder, main, http);
    let stderr = std::fs::File::create(folder.join("stderr")).expect("a file for stderr");
    let mut command = Command::new(program);
    command.arg("-p").arg(folder);
    if rustix::process::getuid().is_root() {
        // As root it would serve as another user, who may not read the folder.
        command.args(["-g", "user root;"]);
    }
    command
        .args(["-c", "test.conf", "-e", "error.log"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program starts")
}
