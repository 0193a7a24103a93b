//! Streams whose clients take nothing, or next to nothing: the memory they hold, and for how long.

use std::time::Duration;

use testkit::http2::{ErrorCode, FrameClient, FrameKind, headers, window_update};
use testkit::process::{largest, memory_bytes, open_files};
use testkit::running::RunningServer;
use testkit::wait::until;

use super::{GET, client, site};

const STREAMS: u32 = 100;

fn memory(server: &RunningServer) -> u64 {
    largest(server.pid(), |pid| memory_bytes(pid, "VmRSS"))
}

fn files(server: &RunningServer) -> u64 {
    largest(server.pid(), |pid| open_files(pid) as u64)
}

/// A connection with this number of streams that may send a byte each, and have: `path` returns the path of each.
async fn waiting(server: &RunningServer, path: impl Fn(u32) -> String) -> FrameClient {
    let mut client = FrameClient::with_window(&server.path("http"), 1).await;
    for nth in 0..STREAMS {
        let path = path(nth);
        let mut fields = GET;
        fields[3].1 = &path;
        client.send(headers(2 * nth + 1, &fields, true)).await;
    }
    let (mut begun, mut ended) = (0, 0);
    while begun + ended < STREAMS {
        match client.receive().await.expect("a frame").kind {
            FrameKind::Data => begun += 1,
            FrameKind::ResetStream => ended += 1,
            _ => {}
        }
    }
    client
}

#[tokio::test]
async fn streams_that_take_nothing_hold_little_memory_and_one_descriptor_for_each_file() {
    const CONNECTIONS: u64 = 10;
    let server = site("http2_max_concurrent_streams 128;").await;
    let file = std::fs::File::create(server.path("file")).expect("a file");
    file.set_len(20 << 20).expect("a length");
    assert_eq!(client(&server).await.get("/none").await.status, 404);
    let (memory_before, files_before) = (memory(&server), files(&server));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(waiting(&server, |_| "/file".to_owned()).await);
    }
    let held = memory(&server).saturating_sub(memory_before);
    let each = held / (CONNECTIONS * u64::from(STREAMS));
    assert!(each < 24 << 10, "{each} bytes for each stream");
    let opened = files(&server).saturating_sub(files_before);
    assert!(opened <= CONNECTIONS + 5, "{opened} files");
    // They go on where they were.
    let mut last = clients.pop().expect("a client");
    last.send(window_update(1, 70_000)).await;
    let mut bytes = 0;
    while bytes < 60_000 {
        let frame = last.receive().await.expect("a frame");
        bytes += if frame.kind == FrameKind::Data {
            frame.payload.len()
        } else {
            0
        };
    }
}

#[tokio::test]
async fn the_stream_that_has_waited_longest_gives_way_where_too_many_hold_files() {
    const FILES: u64 = 256;
    // Streams that wait may hold a quarter of these.
    let http = "server { listen unix:%%/http; server_name site.test; http2 on; location = /page { return 200 page; } }";
    let main = format!("worker_rlimit_nofile {FILES};");
    let server = RunningServer::start(crate::program(), &main, http).await;
    for nth in 0..4 * STREAMS {
        server.write(&format!("file{nth}"), vec![b'x'; 20_000]);
    }
    let mut clients = Vec::new();
    for connection in 0..4 {
        let path = |nth| format!("/file{}", connection * STREAMS + nth);
        clients.push(waiting(&server, path).await);
        let mut visitor = client(&server).await;
        assert_eq!(visitor.get("/page").await.text(), "page");
    }
    until("the others have given way", || files(&server) < FILES / 2).await;
    let log = server.error_log();
    let given_way = log.matches("while too many others waited").count();
    assert!(given_way as u32 >= 4 * STREAMS - 64, "{given_way}");
    // The first has been left first.
    let mut first = clients.remove(0);
    let last = 2 * STREAMS - 1;
    assert_eq!(first.outcome(last).await.error, Some(ErrorCode::CANCEL));
}

#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_a_stream() {
    // Without the bound it would be left after 20 MB of them.
    const MOST: usize = 200;
    let server = site("send_timeout 500ms;").await;
    let file = std::fs::File::create(server.path("file")).expect("a file");
    file.set_len(20 << 20).expect("a length");
    let mut client = FrameClient::with_window(&server.path("http"), 1).await;
    let mut fields = GET;
    fields[3].1 = "/file";
    client.send(headers(1, &fields, true)).await;
    let mut bytes = 0;
    loop {
        let frame = client.receive().await.expect("a frame");
        match frame.kind {
            FrameKind::ResetStream => {
                assert_eq!(frame.code(), Some(ErrorCode::CANCEL));
                return;
            }
            FrameKind::Data => bytes += frame.payload.len(),
            _ => continue,
        }
        assert!(bytes < MOST, "{bytes}");
        // The pace of the attack.
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.send(window_update(1, 1)).await;
    }
}
