//! Many streams on a connection, and streams that clients take back.

use std::sync::Arc;

use testkit::fake_http::{FakeHttp, Script};
use testkit::http2::{ErrorCode, FrameClient, headers, reset, window_update};
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{GET, client, frames, site, site_with, with};

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";

#[tokio::test]
async fn a_hundred_streams_are_served_beside_each_other() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |request| {
        Script::new().wait_for(&held).raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
            request.target.len(),
            request.target
        ))
    })
    .await;
    let server = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let mut client = client(&server).await;
    let mut waiting = Vec::new();
    for nth in 0..100 {
        let path = format!("/{nth}");
        let (incoming, _) = client.begin("GET", &path, &[], true).await;
        waiting.push((path, incoming));
    }
    until("all are at the origin", || origin.requests() == 100).await;
    gate.add_permits(100);
    for (path, incoming) in waiting {
        assert_eq!(incoming.reply().await.expect("whole").text(), path);
    }
}

#[tokio::test]
async fn a_stream_can_be_taken_back_at_any_time() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |request| match request.target.as_str() {
        "/half" => Script::new()
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            .wait_for(&held)
            .raw("half"),
        _ => Script::new().wait_for(&held).raw(PAGE),
    })
    .await;
    let server = site_with(
        "log_format status '$request_uri $status';",
        &format!(
            "access_log %%/access.log status; location / {{ proxy_buffering off; proxy_pass {}; }}\n\
             location = /large {{ try_files /large =404; }} location = /page {{ return 200 page; }}",
            origin.url()
        ),
    )
    .await;
    server.write("large", vec![b'x'; 4 << 20]);
    let mut client = FrameClient::with_window(&server.path("http"), 1 << 20).await;
    let at = |path| {
        let mut fields = GET;
        fields[3].1 = path;
        fields
    };
    // Before it is read: both frames are there at once, and there never is a request.
    let both = [headers(1, &at("/early"), true), reset(1)].concat();
    client.send(both).await;
    // This request comes while the origin has sent nothing.
    client.send(headers(3, &at("/waiting"), true)).await;
    until("it is at the origin", || origin.requests() >= 1).await;
    client.send(reset(3)).await;
    // In the middle of a body that arrives.
    client.send(headers(5, &at("/half"), true)).await;
    while client
        .receive()
        .await
        .is_some_and(|frame| frame.payload != b"half")
    {}
    client.send(reset(5)).await;
    // In the middle of one that waits for the windows.
    client.send(headers(7, &at("/large"), true)).await;
    while client
        .receive()
        .await
        .is_some_and(|frame| frame.stream != 7)
    {}
    client.send(reset(7)).await;
    client.send(window_update(0, 1 << 24)).await;
    // The connection goes on, and every request that began is logged once.
    client.send(headers(9, &at("/page"), true)).await;
    let reply = client.outcome(9).await.reply.expect("a response");
    assert_eq!(reply.text(), "page");
    until("four lines", || {
        server.read("access.log").lines().count() >= 4
    })
    .await;
    let log = server.read("access.log");
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["/half 200", "/large 200", "/page 200", "/waiting 499"]
    );
}

#[tokio::test]
async fn requests_that_go_on_after_a_reset_count_as_open() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| Script::new().wait_for(&held).raw(PAGE)).await;
    let server = site(&format!(
        "http2_max_concurrent_streams 4;\n\
         location / {{ proxy_ignore_client_abort on; proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let mut client = frames(&server).await;
    for nth in 0..8 {
        let stream = 2 * nth + 1;
        client.send(headers(stream, &GET, true)).await;
        until("it is at the origin", || {
            origin.requests() as u32 == nth + 1
        })
        .await;
        client.send(reset(stream)).await;
    }
    client.send(headers(17, &GET, true)).await;
    assert_eq!(
        client.outcome(17).await.error,
        Some(ErrorCode::REFUSED_STREAM)
    );
    assert_eq!(origin.requests(), 8);
    gate.add_permits(100);
    // Once they are done there is room again.
    for nth in 0..1000 {
        let stream = 2 * nth + 19;
        client.send(headers(stream, &GET, true)).await;
        let outcome = client.outcome(stream).await;
        match outcome.error {
            Some(error) => assert_eq!(error, ErrorCode::REFUSED_STREAM),
            None => return,
        }
    }
    panic!("no room");
}

#[tokio::test]
async fn more_streams_than_announced_are_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| Script::new().wait_for(&held).raw(PAGE)).await;
    let server = site(&format!(
        "http2_max_concurrent_streams 2; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let mut client = frames(&server).await;
    for stream in [1, 3, 5] {
        client.send(headers(stream, &GET, true)).await;
    }
    assert_eq!(
        client.outcome(5).await.error,
        Some(ErrorCode::REFUSED_STREAM)
    );
    gate.add_permits(2);
    for _ in 0..2 {
        while client
            .receive()
            .await
            .is_some_and(|frame| !frame.ends_stream())
        {}
    }
    assert_eq!(origin.requests(), 2);
}

/// A client asks for a large file again and again, with all windows open, and reads nothing.
#[tokio::test]
async fn memory_is_bounded_for_a_client_that_never_reads() {
    let origin = FakeHttp::start(|_| {
        let page = vec![b'x'; 1 << 20];
        Script::page("", page)
    })
    .await;
    let server = site(&format!(
        "location / {{ proxy_buffers 8 8k; proxy_max_temp_file_size 0; proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let before = super::uploads::peak_memory(&server);
    let mut client = frames(&server).await;
    for nth in 0..100 {
        let fields = with(&GET, &[("x-filler", "a")]);
        client.send(headers(2 * nth + 1, &fields, true)).await;
    }
    until("all are at the origin", || origin.requests() == 100).await;
    let mut probe = super::client(&server).await;
    assert_eq!(probe.get("/").await.body.len(), 1 << 20);
    let grown = super::uploads::peak_memory(&server).saturating_sub(before);
    assert!(grown < 48 << 20, "{} MB", grown >> 20);
    // Nothing is lost meanwhile.
    for _ in 0..100 {
        while client
            .receive()
            .await
            .is_some_and(|frame| !frame.ends_stream())
        {}
    }
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_reach_no_upstream() {
    let origin = FakeHttp::start(|_| Script::new().raw(PAGE)).await;
    let server = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let mut client = frames(&server).await;
    let mut sent = Vec::new();
    for nth in 0..100 {
        sent.extend(headers(2 * nth + 1, &GET, true));
        sent.extend(reset(2 * nth + 1));
    }
    sent.extend(headers(201, &GET, true));
    client.send(sent).await;
    let reply = client.outcome(201).await.reply.expect("a response");
    assert_eq!(reply.status, 200);
    // A few at most of the requests that came in two pieces have begun.
    assert!(origin.requests() <= 3, "{}", origin.requests());
}

#[tokio::test]
async fn a_flood_of_broken_connections_leaves_a_bounded_number_of_lines() {
    const CONNECTIONS: usize = 300;
    let server = site("return 200 page;").await;
    for _ in 0..CONNECTIONS {
        let mut client = frames(&server).await;
        // A frame of PING on a stream, which there is not.
        client
            .send([0, 0, 8, 6, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
            .await;
        while client.receive().await.is_some() {}
    }
    let log = server.error_log();
    let lines = log.lines().filter(|line| line.contains("PING")).count();
    assert!((100..CONNECTIONS).contains(&lines), "{lines}");
}
