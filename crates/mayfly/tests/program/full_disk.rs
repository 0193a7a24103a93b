//! The disk for temporary files takes no more: a response that a slow client reads comes whole
//! all the same, and the log says what is wrong.

use std::path::Path;

use testkit::fake_http::{FakeHttp, Script};
use testkit::running::Running;

use crate::{PATIENCE, is_root, program, until};

/// Much more than memory and the sockets between hold.
const BYTES: usize = 16 << 20;

/// A file system of one megabyte, gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where nothing may be mounted.
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        if !is_root()
            || !run(
                "mount",
                &["-t", "tmpfs", "-o", "size=1m", "tmpfs"],
                folder.path(),
            )
        {
            eprintln!("skipped: only root mounts a small disk");
            return None;
        }
        Some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l"], self.0.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let done = std::process::Command::new(program)
        .args(arguments)
        .arg(path)
        .status();
    done.is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_response_comes_whole_when_the_disk_for_it_is_full() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let upstream = FakeHttp::start(|_| Script::page("", vec![b'x'; BYTES])).await;
    let http = format!(
        "proxy_temp_path {}/answers; log_format told '$status $body_bytes_sent [$request_completion]';\n\
         server {{ listen unix:%%/http; access_log %%/access.log told;\n\
         location / {{ proxy_pass http://{}; }} }}",
        disk.0.path().display(),
        upstream.address()
    );
    let server = Running::start(program(), "", &http).await;
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // It reads nothing until the disk is full.
    until("a line about the disk", || {
        server.error_log().contains("No space left on device")
    })
    .await;
    let log = server.error_log();
    let line = log
        .lines()
        .find(|line| line.contains("No space left"))
        .unwrap();
    assert!(
        line.contains("[crit]") && line.contains("28: No space left on device"),
        "{line}"
    );
    let reply = client.receive(false).await.expect("a response");
    assert!(reply.is_complete);
    assert_eq!(reply.body.len(), BYTES);
    let whole = format!("200 {BYTES} [OK]");
    until("a line of the access log", || {
        access_log(&server).contains(&whole)
    })
    .await;
    assert_eq!(server.error_log().matches("No space left").count(), 1);
}

fn access_log(server: &Running) -> String {
    std::fs::read_to_string(server.path("access.log")).unwrap_or_default()
}

/// With a variable in its format, the access log tells a response that broke off from a whole one.
#[tokio::test]
async fn the_access_log_tells_a_truncated_response_from_a_whole_one() {
    let upstream = FakeHttp::start(|request| match request.target.as_str() {
        "/cut" => Script::new()
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            .close(),
        _ => Script::page("", "whole"),
    })
    .await;
    let http = format!(
        "log_format told '$uri $status [$request_completion]';\n\
         server {{ listen unix:%%/http; access_log %%/access.log told;\n\
         location / {{ proxy_pass http://{}; }} }}",
        upstream.address()
    );
    let server = Running::start(program(), "", &http).await;
    assert!(server.target().get("/whole").await.is_complete);
    let mut client = server.connect().await;
    client.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let _ = tokio::time::timeout(PATIENCE, client.receive_all()).await;
    until("both lines", || access_log(&server).lines().count() == 2).await;
    assert_eq!(access_log(&server), "/whole 200 [OK]\n/cut 200 []\n");
}
