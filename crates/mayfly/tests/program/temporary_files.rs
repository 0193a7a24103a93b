//! Temporary files: on a full disk, in a folder that is missing, and after a server was killed.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use testkit::fake_http::{FakeHttp, Script};
use testkit::process::{Signal, is_root};
use testkit::wait::until;
use tokio::sync::Semaphore;

use crate::{file_names, program, start};

#[tokio::test]
async fn bodies_of_a_killed_server_go_with_the_next_start() {
    let gate = Arc::new(Semaphore::new(0));
    let never = gate.clone();
    let upstream = FakeHttp::start(move |_| Script::new().wait_for(&never)).await;
    let folder = tempfile::tempdir().unwrap();
    let bodies = folder.path().join("bodies");
    let http = format!(
        "client_body_temp_path {}; client_body_in_file_only clean; proxy_read_timeout 60s;\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass http://{}; }} }}",
        bodies.display(),
        upstream.address()
    );
    let mut server = start(&http).await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
        .await;
    until("a file", || {
        !file_names(&bodies).is_empty() && upstream.requests() == 1
    })
    .await;
    let left = file_names(&bodies);
    // A server that comes up beside it leaves its files alone.
    let beside = start(&http).await;
    assert_eq!(file_names(&bodies), left);
    drop(beside);
    server.signal(Signal::KILL);
    server.ended().await;
    std::fs::write(
        bodies.join("0000000007-12"),
        "kept by client_body_in_file_only on",
    )
    .unwrap();
    std::fs::write(bodies.join("notes.passing"), "somebody's").unwrap();
    let next = start(&http).await;
    until("the leftover is gone", || {
        !left.iter().any(|name| bodies.join(name).exists())
    })
    .await;
    assert_eq!(file_names(&bodies), ["0000000007-12", "notes.passing"]);
    drop(next);
}

/// Much more than memory and the sockets between hold.
const BYTES: usize = 16 << 20;

/// A file system of one megabyte, gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` if nothing may be mounted.
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
    let server = start(&http).await;
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
        server.read("access.log").contains(&whole)
    })
    .await;
    assert_eq!(server.error_log().matches("No space left").count(), 1);
}

#[test]
fn a_temporary_folder_whose_parent_is_missing_is_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("conf");
    for (directive, names) in [
        ("client_body_temp_path", "missing/bodies"),
        ("proxy_temp_path", "missing/answers"),
    ] {
        let text = format!(
            "pid {0}/pid; error_log stderr; daemon off;\nevents {{}}\nhttp {{ {directive} {0}/{names};\n\
             server {{ listen unix:{0}/http; location / {{ proxy_pass http://127.0.0.1:9; }} }} }}\n",
            folder.path().display()
        );
        std::fs::write(&conf, text).unwrap();
        // Should it start, it does not stay.
        let output = Command::new("timeout")
            .arg("5")
            .arg(program())
            .arg("-c")
            .arg(&conf)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let wanted = format!("{names}\" failed (2: No such file or directory)");
        assert!(said.contains(&wanted) && said.contains("[emerg]"), "{said}");
    }
}
