//! The access log, line by line as nginx writes it, in three formats: for pages, for
//! refused requests, and for bytes that are hardly a request. If nginx is installed, it
//! serves the same requests beside; elsewhere its lines are those of `nginx.expected`,
//! which `MAYFLY_BLESS=1` writes anew if nginx is there.

use testkit::wait::TIMEOUT;

mod format;
mod nginx_differences;
mod request_completion;
mod requests;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program;
use format::{columns, combined, configuration, visible};
use nginx_differences::differences;
use requests::{ENDING, requests};

const NGINX: &str = "/usr/sbin/nginx";

const EXPECTED: &str = include_str!("nginx.expected");

/// A server on `folder/http` that is stopped when dropped.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path, command: &mut Command) -> Server {
        let said = std::fs::File::create(folder.join("stderr")).expect("a file");
        let child = command.stdin(Stdio::null()).stderr(said).spawn();
        let mut server = Server {
            child: child.expect("a server"),
            folder: folder.to_owned(),
        };
        let begun = Instant::now();
        while UnixStream::connect(folder.join("http")).is_err() {
            let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            assert!(!matches!(server.child.try_wait(), Ok(Some(_))), "{said}");
            assert!(begun.elapsed() < TIMEOUT, "no start: {said}");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Connections that only knocked leave no line.
        server.lines_of(&[], true);
        server
    }

    fn log(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap_or_default()
    }

    fn send(&self, bytes: &[u8], ends: bool) {
        let mut stream = UnixStream::connect(self.folder.join("http")).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        // It may have heard enough.
        let _ = stream.write_all(bytes);
        if ends {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// The lines that a request leaves in each log: those before the second of two others that are sent when it is
    /// over. A server that lingers may see the end of a connection after the first of them.
    fn lines_of(&self, bytes: &[u8], ends: bool) -> Vec<(&'static str, String)> {
        const LOGS: [&str; 4] = ["combined.log", "columns.log", "json.log", "raw.log"];
        let before: Vec<usize> = LOGS.map(|name| self.log(name).len()).to_vec();
        self.send(bytes, ends);
        for _ in 0..2 {
            self.send(b"GET /mark HTTP/1.0\r\n\r\n", false);
        }
        let begun = Instant::now();
        let mut found = Vec::new();
        for (name, before) in LOGS.into_iter().zip(before) {
            loop {
                let log = self.log(name);
                let new = String::from_utf8_lossy(&log[before..]).into_owned();
                let (marks, lines): (Vec<&str>, Vec<&str>) = new
                    .lines()
                    .partition(|line| line.contains("GET /mark HTTP/1.0"));
                if marks.len() == 2 {
                    found.extend(lines.into_iter().map(|line| (name, line.to_owned())));
                    break;
                }
                assert!(begun.elapsed() < TIMEOUT, "no line in {name}: {new}");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        found
    }

    /// Returns the log lines of all requests in the form of the expected file.
    fn transcript(&self, files: &str, closed: u16) -> String {
        let mut text = String::new();
        for (name, bytes) in requests() {
            let _ = writeln!(text, "== {name}");
            let ends = ENDING.contains(&name);
            for (log, line) in self.lines_of(&bytes, ends) {
                let own = self.folder.display().to_string();
                let line = line.replace(files, "%%").replace(&own, "%%");
                let line = visible(&line).replace(&format!("{closed}"), "PORT");
                match log {
                    "columns.log" => columns(&mut text, &line),
                    "combined.log" => {
                        let _ = writeln!(text, "{log}: {}", combined(&line));
                    }
                    _ => {
                        let _ = writeln!(text, "{log}: {line}");
                    }
                }
            }
        }
        text
    }
}

#[test]
fn lines_are_those_of_nginx_for_pages_and_for_what_is_refused() {
    let folder = testkit::serving::FolderServer::folder();
    let place = folder.path().canonicalize().expect("a folder");
    let files = place.join("files");
    std::fs::create_dir_all(files.join("folder")).expect("a folder");
    std::fs::write(files.join("a.txt"), "0123456789").expect("a file");
    std::fs::write(files.join("users"), "anna:{PLAIN}secret\n").expect("a file");
    let files = files.to_str().expect("a plain path");
    let closed = testkit::process::free_port();
    let prepare = |name: &str, main: &str| {
        let own = place.join(name);
        std::fs::create_dir(&own).expect("a folder");
        let shown = own.to_str().expect("a plain path").to_owned();
        let text = format!(
            "daemon off; pid {shown}/pid; error_log {shown}/error.log; {main}\nevents {{}}\nhttp {{\n{}}}\n",
            configuration(&shown, files, closed)
        );
        std::fs::write(own.join("test.conf"), text).expect("a file");
        own
    };
    let start = |program: &str, own: &Path| {
        let mut command = Command::new(program);
        command.arg("-p").arg(own);
        command.arg("-c").arg(own.join("test.conf"));
        Server::start(own, &mut command)
    };
    let root = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let expected = if Path::new(NGINX).exists() {
        let own = prepare(
            "nginx",
            &format!("{root} worker_processes 1; master_process off;"),
        );
        let temp = own.join("temp");
        std::fs::create_dir(&temp).expect("a folder");
        let server = start(NGINX, &own);
        let text = server.transcript(files, closed);
        if testkit::golden::is_blessing() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/program/access_log/nginx.expected");
            std::fs::write(file, &text).expect("the expected file");
        }
        text
    } else {
        eprintln!("no {NGINX}: what it wrote when this was recorded is expected");
        EXPECTED.to_owned()
    };
    let own = prepare("mayfly", root);
    let server = start(program(), &own);
    let found = server.transcript(files, closed);
    let differences = differences(&expected, &found);
    assert!(differences.is_empty(), "nginx - and ours +\n{differences}");
}
