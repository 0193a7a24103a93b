//! The client against Debian's memcached, started here on a unix socket.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memcached::{Event, Exchange, NoBody, RequestSpec, ResponseHead, escape_key};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

const PROGRAM: &str = "/usr/bin/memcached";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Stopped when dropped.
struct RunningMemcached {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for RunningMemcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningMemcached {
    /// `None` if there is no memcached on this machine.
    async fn start() -> Option<RunningMemcached> {
        if !std::path::Path::new(PROGRAM).exists() {
            eprintln!("skipped: no {PROGRAM}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let child = Command::new(PROGRAM)
            .args(["-u", "root", "-t", "1", "-s"])
            .arg(folder.path().join("socket"))
            .stdout(Stdio::null())
            .spawn()
            .expect("memcached starts");
        let running = RunningMemcached { child, folder };
        let started_at = Instant::now();
        while UnixStream::connect(running.folder.path().join("socket"))
            .await
            .is_err()
        {
            assert!(started_at.elapsed() < TIMEOUT, "memcached does not listen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Some(running)
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("socket"))
            .await
            .expect("memcached listens")
    }

    async fn set(&self, key: &[u8], flags: u32, value: &[u8]) {
        let mut stream = BufReader::new(self.connect().await);
        let key = String::from_utf8(escape_key(key)).expect("plain keys");
        let command = format!("set {key} {flags} 0 {}\r\n", value.len());
        for bytes in [command.as_bytes(), value, b"\r\n"] {
            stream.write_all(bytes).await.expect("memcached reads");
        }
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("an answer");
        assert_eq!(line, "STORED\r\n");
    }
}

async fn get(stream: UnixStream, key: &[u8]) -> (ResponseHead, Vec<u8>, Option<UnixStream>) {
    let spec = RequestSpec {
        key: escape_key(key).into(),
        head_limit_bytes: 4096,
    };
    let mut exchange = Exchange::start(stream, spec, NoBody);
    let Some(Event::Head(head)) = exchange.next().await.expect("an answer") else {
        panic!("no head");
    };
    let mut value = Vec::new();
    while let Some(event) = exchange.next().await.expect("an answer") {
        if let Event::Data(bytes) = event {
            value.extend_from_slice(&bytes);
        }
    }
    (head, value, exchange.into_stream())
}

#[tokio::test]
async fn values_are_found_on_one_connection_whatever_their_keys_and_lengths() {
    let Some(server) = RunningMemcached::start().await else {
        return;
    };
    let mut stream = server.connect().await;
    let long = vec![b'x'; 900_000];
    let lines = b"one\r\nEND\r\ntwo";
    for (number, (key, value)) in [
        (&b"/page"[..], &b"page"[..]),
        (b"/empty", b""),
        (b"/a b%\r\n", lines),
        (b"/long", &long),
    ]
    .into_iter()
    .enumerate()
    {
        let flags = u32::try_from(number).expect("few");
        server.set(key, flags, value).await;
        let (head, found, back) = get(stream, key).await;
        let wanted = ResponseHead::Found {
            flags,
            length_bytes: value.len() as u64,
        };
        assert_eq!((head, found.as_slice()), (wanted, value));
        let (head, found, back) = get(back.expect("a clean connection"), b"/missing").await;
        assert_eq!((head, found.as_slice()), (ResponseHead::NotFound, &b""[..]));
        stream = back.expect("a clean connection");
    }
}
