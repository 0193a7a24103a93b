//! A MariaDB server of its own.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server with a data directory and a socket of its own.
pub struct Database {
    folder: PathBuf,
    process: Child,
}

impl Database {
    pub fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("learned-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let data = format!("--datadir={}", folder.join("data").display());
        // MariaDB does not run as root unless it is asked for so.
        let common = [
            "--no-defaults",
            &data,
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
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = Command::new("mariadbd")
            .args(common)
            .args([
                "--skip-networking",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=16M",
            ])
            .arg(format!("--socket={}", folder.join("sock").display()))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("this test needs mariadb-server");
        let database = Self { folder, process };
        let started = Instant::now();
        while !database.try_run("SELECT 1").1 {
            let log = std::fs::read_to_string(database.folder.join("log")).unwrap_or_default();
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "mariadbd does not answer: {log}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        database
    }

    pub fn run(&self, script: &str) -> String {
        self.try_run(script).0
    }

    /// What the client prints; errors of single statements do not end it.
    fn try_run(&self, script: &str) -> (String, bool) {
        let mut client = Command::new("mariadb")
            .args([
                "--no-defaults",
                "--batch",
                "--skip-column-names",
                "--force",
                "--user=root",
                "--default-character-set=utf8mb4",
            ])
            .arg(format!("--socket={}", self.folder.join("sock").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs mariadb-client");
        let mut stdin = client.stdin.take().unwrap();
        let script = script.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).is_ok());
        let output = client.wait_with_output().unwrap();
        writer.join().unwrap();
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            output.status.success(),
        )
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
