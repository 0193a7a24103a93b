//! Debian's redis-server, for tests of several nodes: on a socket in a folder of the test's, stopped when dropped.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{KilledOnDrop, Signal, send_signal};
use crate::wait::TIMEOUT;

const PROGRAM: &str = "/usr/bin/redis-server";

/// A server that a test has started.
#[derive(Debug)]
pub struct RedisServer {
    process: Option<KilledOnDrop>,
    folder: PathBuf,
    keeps_data: bool,
    arguments: Vec<String>,
}

impl RedisServer {
    /// Starts it with its files in `folder`; its data is on disk at once if it `keeps_data`.
    ///
    /// # Panics
    /// When there is no redis-server (`scripts/setup.sh test` installs it), or it does not start.
    pub fn start(folder: &Path, keeps_data: bool) -> RedisServer {
        RedisServer::start_with(folder, keeps_data, &[])
    }

    /// Like [`RedisServer::start`], with more arguments.
    ///
    /// # Panics
    /// When [`RedisServer::start`] does.
    pub fn start_with(folder: &Path, keeps_data: bool, arguments: &[&str]) -> RedisServer {
        let mut server = RedisServer {
            process: None,
            folder: folder.to_owned(),
            keeps_data,
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
        server.start_again();
        server
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("redis")
    }

    /// Starts it after [`RedisServer::stop`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        self.process = Some(KilledOnDrop(self.spawn()));
        let start = Instant::now();
        while self
            .try_say(&["PING"])
            .is_none_or(|said| said != "+PONG\r\n")
        {
            let log = || std::fs::read_to_string(self.folder.join("redis.log"));
            assert!(start.elapsed() < TIMEOUT, "redis-server: {:?}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn spawn(&self) -> Child {
        let log = std::fs::File::create(self.folder.join("redis.log")).expect("a log");
        let append = if self.keeps_data { "yes" } else { "no" };
        Command::new(PROGRAM)
            .args(["--port", "0", "--save", "", "--appendfsync", "always"])
            .args(["--appendonly", append, "--dir"])
            .arg(&self.folder)
            .arg("--unixsocket")
            .arg(self.socket())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("redis-server is installed")
    }

    /// Ends it at once.
    pub fn stop(&mut self) {
        self.process = None;
        let _ = std::fs::remove_file(self.socket());
    }

    /// It does nothing until [`RedisServer::resume`].
    ///
    /// # Panics
    /// When it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Its process.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").0.id()
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        send_signal(process.0.id(), signal);
    }

    /// Sends a command and returns the answer as sent.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn say(&self, words: &[&str]) -> String {
        self.try_say(words).expect("an answer")
    }

    fn try_say(&self, words: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        command.push_str("*1\r\n$4\r\nQUIT\r\n");
        stream.write_all(command.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.strip_suffix("+OK\r\n")?.to_owned())
    }
}
