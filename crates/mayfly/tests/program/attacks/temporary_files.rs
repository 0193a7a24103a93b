//! Remains of a server that was killed: bodies of visitors, on their way in or out, cannot
//! be read afterwards.

use std::path::Path;
use std::time::{Duration, Instant};

use testkit::fake_http::{FakeHttp, Script};
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use crate::start;

/// Much more than is kept in memory, and than the sockets between hold.
const BYTES: usize = 8 << 20;

/// Whether the process has a file open that has no name any more, below this folder.
fn has_nameless_file(pid: u32, folder: &Path) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let targets = descriptors.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let mut names = targets.map(|target| target.display().to_string());
    names
        .any(|name| name.starts_with(&folder.display().to_string()) && name.ends_with(" (deleted)"))
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}

/// Waits until a temporary file is there, named or not.
async fn until_written(server: &RunningServer, folder: &Path) {
    let begun = Instant::now();
    while files(folder).is_empty() && !has_nameless_file(server.pid(), folder) {
        assert!(begun.elapsed() < TIMEOUT, "{}", server.error_log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn serve(upstream: &FakeHttp, more: &str) -> RunningServer {
    let http = format!(
        "client_body_temp_path %%/bodies; proxy_temp_path %%/answers; {more}\n\
         server {{ listen unix:%%/http; client_max_body_size 0;\n\
         location / {{ proxy_pass http://{}; }} }}",
        upstream.address()
    );
    start(&http).await
}

#[tokio::test]
async fn an_upload_leaves_no_file_when_the_server_is_killed() {
    let upstream = FakeHttp::start(|_| Script::page("", "done")).await;
    let mut server = serve(&upstream, "").await;
    let bodies = server.path("bodies");
    let mut client = server.connect().await;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n");
    client.send(head).await;
    client.send(vec![b'x'; BYTES / 2]).await;
    until_written(&server, &bodies).await;
    server.signal(Signal::KILL);
    server.ended().await;
    assert_eq!(files(&bodies), [""; 0]);
}

#[tokio::test]
async fn an_answer_leaves_no_file_when_the_server_is_killed() {
    let upstream = FakeHttp::start(|_| Script::page("", vec![b'x'; BYTES])).await;
    let mut server = serve(&upstream, "").await;
    let answers = server.path("answers");
    let mut client = server.connect().await;
    // And reads nothing of it.
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until_written(&server, &answers).await;
    server.signal(Signal::KILL);
    server.ended().await;
    assert_eq!(files(&answers), [""; 0]);
}

/// A name is only for those who asked for one, and only while the request goes on.
#[tokio::test]
async fn a_body_has_a_name_where_the_configuration_asks_for_it() {
    let upstream = FakeHttp::start(|request| Script::page("", request.field("x-file"))).await;
    let server = serve(
        &upstream,
        "proxy_set_header X-File \"[$request_body_file]\"; client_body_buffer_size 1k;",
    )
    .await;
    let body = "x".repeat(5000);
    let short = server.target().ask("POST", "/", "", "x").await.text();
    assert_eq!(short, "[]", "it is in memory");

    let always = serve(
        &upstream,
        "proxy_set_header X-File \"[$request_body_file]\"; client_body_in_file_only clean;",
    )
    .await;
    for server in [server, always] {
        let bodies = server.path("bodies").display().to_string();
        let name = server.target().ask("POST", "/", "", &body).await.text();
        assert!(name.starts_with(&format!("[{bodies}/")), "{name}");
        let begun = Instant::now();
        while !files(&server.path("bodies")).is_empty() {
            assert!(begun.elapsed() < TIMEOUT, "the file stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
