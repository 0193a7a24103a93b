//! A PostgreSQL server of the test's own, with a cluster and a socket. It needs postgresql.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::is_root;

/// PostgreSQL does not run as root: the account of nobody.
const NOBODY: u32 = 65_534;

/// The server and its folder end with the standard input of this shell.
const END_WITH_OWNER: &str =
    r#"server=$1; shift; "$server" "$@" </dev/null & read -r _; kill -QUIT $!; wait; rm -rf "$0""#;

/// The password of the superuser.
const PASSWORD: &str = "of all";

/// The server; it ends when it is dropped.
pub struct Postgres {
    folder: TempDir,
    process: Child,
}

impl Postgres {
    /// Starts it and waits until it answers. Each account needs its password.
    ///
    /// # Panics
    /// When that fails.
    pub fn start() -> Postgres {
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            let owner = Some(NOBODY);
            std::os::unix::fs::chown(folder.path(), owner, owner).expect("its owner");
        }
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("password"), PASSWORD).expect("a file");
        let made = program("initdb")
            .args(["--no-sync", "--auth=scram-sha-256", "--username=postgres"])
            .args(["--encoding=UTF8", "--locale=C.UTF-8"])
            .args([format!("--pwfile={}", path("password")), path("data")])
            .output()
            .expect("this test needs postgresql");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        let mut shell = as_owner(Command::new("sh"));
        shell
            .args(["-c", END_WITH_OWNER])
            .arg(folder.path())
            .arg(binary("postgres"))
            .args(["-D", &path("data"), "-k", &path("")])
            .args([
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
                "-c",
                "shared_buffers=16MB",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(path("log")).expect("a log"));
        let process = shell.spawn().expect("this test needs postgresql");
        let server = Postgres { folder, process };
        let started = Instant::now();
        while server.try_run("postgres", "SELECT 1").is_none() {
            let log = std::fs::read_to_string(server.folder.path().join("log"));
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "postgres does not answer: {log:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The folder of its socket, as clients name it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Runs a script as the superuser and returns the output of the client.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn run(&self, database: &str, script: &str) -> String {
        let printed = self.try_run(database, script);
        printed.unwrap_or_else(|| panic!("{script}"))
    }

    /// Like [`Postgres::run`]; `None` when a statement fails.
    pub fn try_run(&self, database: &str, script: &str) -> Option<String> {
        let mut client = self.client(database);
        let mut stdin = client.stdin.take().expect("a pipe");
        let written = stdin.write_all(script.as_bytes());
        drop(stdin);
        let output = client.wait_with_output().expect("an end");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (written.is_ok() && output.status.success()).then_some(printed)
    }

    /// A client that runs what is written to it.
    ///
    /// # Panics
    /// When it does not start.
    pub fn client(&self, database: &str) -> Child {
        program("psql")
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"])
            .args(["--set=ON_ERROR_STOP=1", "--username=postgres"])
            .arg(format!("--host={}", self.folder().display()))
            .arg(format!("--dbname={database}"))
            .env("PGPASSWORD", PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs postgresql")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Command {
    as_owner(Command::new(binary(name)))
}

fn as_owner(mut command: Command) -> Command {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/");
    command
}

/// Debian keeps the programs of each version in a folder of its own.
fn binary(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<_> = versions
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}
