//! A MariaDB server of the test's own, with a data directory and a socket. It needs mariadb-server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{Signal, children, is_alive, send_signal};

/// The server and its folder end with the standard input of this shell.
const END_WITH_OWNER: &str =
    r#"mariadbd "$@" </dev/null & read -r _; kill -9 $!; wait; rm -rf "$0""#;

/// The server; it ends when it is dropped.
pub struct MariaDb {
    folder: TempDir,
    options: Vec<String>,
    process: Child,
}

impl MariaDb {
    /// Starts it and waits until it answers.
    ///
    /// # Panics
    /// When that fails.
    pub fn start() -> MariaDb {
        MariaDb::start_with(&[])
    }

    /// Like [`MariaDb::start`], with more of `mariadbd`'s options. The server ends with this process as well, whose
    /// static values are never dropped.
    ///
    /// # Panics
    /// When that fails.
    pub fn start_with(options: &[String]) -> MariaDb {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        // It does not run as root unless it is asked for so. A server removes the temporary tables that it finds
        // when it starts: each has its own folder for them.
        let common = [
            "--no-defaults",
            &format!("--datadir={}", data.display()),
            &format!("--tmpdir={}", folder.path().display()),
            "--user=root",
            "--innodb-log-file-size=8M",
        ];
        let installed = Command::new("mariadb-install-db")
            .args(common)
            .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
            .output()
            .expect("this test needs mariadb-server");
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stdout)
        );
        let all = common
            .iter()
            .map(|option| (*option).to_owned())
            .chain([
                "--skip-networking".to_owned(),
                "--innodb-flush-log-at-trx-commit=0".to_owned(),
                "--innodb-buffer-pool-size=16M".to_owned(),
                format!("--socket={}", folder.path().join("sock").display()),
            ])
            .chain(options.iter().cloned());
        let options: Vec<_> = all.collect();
        let process = spawn(&folder, &options);
        let database = MariaDb {
            folder,
            options,
            process,
        };
        database.until_it_answers();
        database
    }

    fn until_it_answers(&self) {
        let started = Instant::now();
        while !self.client("SELECT 1", &[]).1 {
            let log = std::fs::read_to_string(self.folder.path().join("log"));
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "mariadbd does not answer: {log:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server in the middle of its work.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        let server = children(self.process.id());
        let [server] = server[..] else {
            panic!("one mariadbd, not {server:?}");
        };
        // The shell would remove the folder.
        self.process.kill().expect("a shell");
        self.process.wait().expect("its end");
        send_signal(server, Signal::KILL);
        let started = Instant::now();
        while is_alive(server) {
            assert!(started.elapsed() < Duration::from_secs(60), "mariadbd");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it once more after [`MariaDb::kill`], with the data that it had, and waits until it answers.
    ///
    /// # Panics
    /// When that fails.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.folder, &self.options);
        self.until_it_answers();
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    /// Runs a script and returns the output of the client.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn run(&self, script: &str) -> String {
        let printed = self.try_run(script);
        printed.unwrap_or_else(|| panic!("{script}"))
    }

    /// Like [`MariaDb::run`]; `None` when a statement fails.
    pub fn try_run(&self, script: &str) -> Option<String> {
        let (printed, is_done) = self.client(script, &[]);
        is_done.then_some(printed)
    }

    /// Runs a script and returns the output of the client; statements that fail do not end it.
    pub fn run_past_errors(&self, script: &str) -> String {
        self.client(script, &["--force"]).0
    }

    /// Runs a script beside the caller; what is joined is the output of the client.
    pub fn begin(&self, script: &str) -> JoinHandle<String> {
        let (socket, script) = (self.socket(), script.to_owned());
        std::thread::spawn(move || run_client(&socket, &script, &[]).0)
    }

    fn client(&self, script: &str, options: &[&str]) -> (String, bool) {
        run_client(&self.socket(), script, options)
    }
}

/// The output, and whether each statement succeeded.
fn run_client(socket: &Path, script: &str, options: &[&str]) -> (String, bool) {
    let mut client = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--batch",
            "--skip-column-names",
            "--user=root",
            "--default-character-set=utf8mb4",
        ])
        .args(options)
        .arg(format!("--socket={}", socket.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test needs mariadb-client");
    let mut stdin = client.stdin.take().expect("a pipe");
    let script = script.to_owned();
    // It prints before it has read all.
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = client.wait_with_output().expect("an end");
    let _ = writer.join();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        output.status.success(),
    )
}

fn spawn(folder: &TempDir, options: &[String]) -> Child {
    let mut log = std::fs::File::options();
    let log = log
        .create(true)
        .append(true)
        .open(folder.path().join("log"));
    Command::new("sh")
        .args(["-c", END_WITH_OWNER])
        .arg(folder.path())
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log.expect("a log"))
        .spawn()
        .expect("this test needs mariadb-server")
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
