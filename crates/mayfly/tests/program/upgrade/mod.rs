//! USR2, WINCH, QUIT and HUP, and `mayfly upgrade`: another program in the place of the one that runs.

mod crowd;
mod failures;
mod php;
mod purges;
mod quic;
mod sequence;

use std::ops::RangeBounds;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;
use testkit::client::Client;
use testkit::process::{Signal, is_alive, send_signal};
use testkit::running::RunningServer;
use testkit::wait::until_or;
use tokio::task::JoinHandle;

use crate::program;

/// A server that is replaced, by whatever `program` leads to.
pub struct ReplacedServer {
    pub server: RunningServer,
    bin: TempDir,
    /// All processes that wrote the pid file.
    pids: Vec<u32>,
}

impl ReplacedServer {
    pub async fn start(main: &str, http: &str) -> ReplacedServer {
        let bin = tempfile::tempdir().expect("a folder");
        let link = bin.path().join("mayfly");
        symlink(program(), &link).expect("a link");
        let path = link.to_str().expect("a plain path");
        let server = RunningServer::start(path, main, http).await;
        let pids = vec![server.pid()];
        ReplacedServer { server, bin, pids }
    }

    /// From now on, the path that the server was started from leads elsewhere.
    pub fn point_to(&self, program: &Path) {
        let link = self.bin.path().join("mayfly");
        std::fs::remove_file(&link).expect("a link");
        symlink(program, link).expect("a link");
    }

    /// A shell script in the place of the program.
    pub fn point_to_script(&self, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.bin.path().join("script");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
        self.point_to(&path);
        path
    }

    /// Waits until the error log has `text` that many times.
    pub async fn logs(&self, times: impl RangeBounds<usize>, text: &str) {
        let log = || self.server.error_log();
        until_or(|| times.contains(&log().matches(text).count()), log).await;
    }

    /// The process of the pid file. The file is missing for a moment while one program takes it over
    /// from the other.
    pub fn pid(&self) -> u32 {
        let looks = std::iter::repeat_with(|| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            self.number("pid")
        });
        let mut looks = std::iter::once(self.number("pid")).chain(looks.take(1000));
        looks.find_map(|pid| pid).expect("a pid file")
    }

    pub fn old_pid(&self) -> Option<u32> {
        self.number("pid.oldbin")
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.server.read(name).trim().parse().ok()
    }

    /// Sends USR2 to the process of the pid file, and waits for another that serves. Answers both.
    pub async fn usr2(&mut self) -> (u32, u32) {
        let old = self.pid();
        send_signal(old, Signal::USR2);
        let serves = || {
            self.server
                .error_log()
                .contains(&format!("in the place of process {old} "))
        };
        until_or(serves, || {
            format!("no successor: {}", self.server.error_log())
        })
        .await;
        let new = self.pid();
        assert_ne!(old, new);
        self.pids.push(new);
        (old, new)
    }

    /// Runs `mayfly upgrade`.
    pub async fn upgrade(&mut self) -> Output {
        let output = self.begin_upgrade().await.expect("a thread");
        self.pids.push(self.pid());
        output
    }

    /// Starts `mayfly upgrade`.
    pub fn begin_upgrade(&self) -> JoinHandle<Output> {
        let socket = self.server.path("pid.control");
        tokio::task::spawn_blocking(move || {
            std::process::Command::new(program())
                .args(["upgrade", "--socket"])
                .arg(socket)
                .output()
                .expect("the program")
        })
    }

    /// Waits for the end of a process that is not a child of the test.
    pub async fn gone(&self, pid: u32) {
        until_or(
            || !is_alive(pid),
            || format!("no end of {pid}: {}", self.server.error_log()),
        )
        .await;
    }
}

impl Drop for ReplacedServer {
    fn drop(&mut self) {
        self.pids.extend(self.number("pid"));
        self.pids.extend(self.number("pid.oldbin"));
        for pid in self.pids.iter().filter(|pid| is_alive(**pid)) {
            send_signal(*pid, Signal::KILL);
        }
    }
}

/// Clients that ask all the time, and the answers they saw.
pub struct BusyClients {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<Vec<String>>>,
}

impl BusyClients {
    /// Opens `count` connections of HTTP/1.1 to the server's socket.
    pub fn http1(server: &RunningServer, count: usize) -> BusyClients {
        let is_over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let tasks = (0..count).map(|_| {
            let (path, is_over, answered) =
                (server.path("http"), is_over.clone(), answered.clone());
            tokio::spawn(ask_http1(path, is_over, answered))
        });
        BusyClients {
            tasks: tasks.collect(),
            is_over,
            answered,
        }
    }

    /// Waits until this many more requests were answered.
    pub async fn answered(&self, more: usize) {
        let before = self.answered.load(Ordering::Relaxed);
        let is_so = || self.answered.load(Ordering::Relaxed) >= before + more;
        until_or(is_so, || "no answers".to_owned()).await;
    }

    /// Ends them, and returns the failures.
    pub async fn end(self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for task in self.tasks {
            failures.extend(task.await.expect("a client"));
        }
        failures
    }
}

/// Asks on one connection after the other, and returns the failures.
async fn ask_http1(
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
) -> Vec<String> {
    let (mut failures, mut client) = (Vec::new(), None);
    while !is_over.load(Ordering::Relaxed) {
        let mut connection = match client.take() {
            Some(connection) => connection,
            None => Client::connect(&path).await,
        };
        let request = "GET / HTTP/1.1\r\nHost: site.test\r\n\r\n";
        let sent = connection.try_send(request).await;
        let reply = connection.receive(false).await;
        let Some(reply) = reply.filter(|reply| reply.status == 200 && reply.is_complete) else {
            failures.push(format!("{sent:?} {:?}", connection.error()));
            continue;
        };
        answered.fetch_add(1, Ordering::Relaxed);
        if reply.field("connection") != "close" {
            client = Some(connection);
        }
    }
    failures
}
