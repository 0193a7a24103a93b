//! How connections end: without a request lost that the client cannot send again.

use std::time::{Duration, Instant};

use std::sync::Arc;
use testkit::fake_http::{FakeHttp, Script};
use testkit::http2::{ErrorCode, FrameKind, data, headers};
use testkit::process::Signal;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{GET, POST, client, frames, site};

/// An origin whose pages wait for `gate`.
async fn gated(gate: &Arc<Semaphore>) -> FakeHttp {
    let gate = gate.clone();
    FakeHttp::start(move |_| Script::new().wait_for(&gate).raw(PAGE)).await
}

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";

#[tokio::test]
async fn a_graceful_stop_serves_what_is_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let mut server = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    until("the request is at the origin", || origin.requests() == 1).await;
    server.signal(Signal::QUIT);
    // It is told at once, not when the response is there.
    let told = client.receive_kind(FrameKind::GoAway).await;
    assert_eq!(told.code(), Some(ErrorCode::NO_ERROR));
    // What was sent before the client knew is served as well.
    client.send(headers(3, &GET, true)).await;
    until("both are at the origin", || origin.requests() == 2).await;
    gate.add_permits(2);
    for stream in [1, 3] {
        let reply = client.outcome(stream).await.reply.expect("a response");
        assert_eq!(reply.text(), "page", "{stream}");
    }
    while client.receive().await.is_some() {}
    drop(client);
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn a_graceful_stop_ends_connections_without_a_request() {
    let mut server = site("location / { return 200 page; }").await;
    let used = {
        let mut client = client(&server).await;
        assert_eq!(client.get("/").await.text(), "page");
        client
    };
    let mut fresh = frames(&server).await;
    fresh.receive_kind(FrameKind::Settings).await;
    let begun = Instant::now();
    server.signal(Signal::QUIT);
    used.ended().await;
    fresh.receive_kind(FrameKind::GoAway).await;
    while fresh.receive().await.is_some() {}
    drop(fresh);
    assert!(server.ended().await.success());
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_graceful_stop_ends_connections_that_have_not_said_what_they_speak() {
    let mut server = site("location / { return 200 page; }").await;
    let mut silent = server.connect().await;
    // The server has it once it has answered a later one.
    assert_eq!(server.target().get("/").await.text(), "page");
    let begun = Instant::now();
    server.signal(Signal::QUIT);
    assert!(silent.receive_all().await.is_empty());
    assert!(server.ended().await.success());
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_last_request_of_a_connection_is_served_with_those_beside_it() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let server = site(&format!(
        "keepalive_requests 2; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let mut client = client(&server).await;
    let (first, _) = client.begin("GET", "/", &[], true).await;
    let (second, _) = client.begin("GET", "/", &[], true).await;
    until("both are at the origin", || origin.requests() == 2).await;
    gate.add_permits(2);
    for incoming in [first, second] {
        assert_eq!(incoming.reply().await.expect("whole").text(), "page");
    }
    client.ended().await;
}

#[tokio::test]
async fn a_client_without_requests_is_left_after_its_time() {
    let server = site(
        "client_header_timeout 200ms; keepalive_timeout 300ms; location / { return 200 page; }",
    )
    .await;
    let mut silent = frames(&server).await;
    let told = silent.receive_kind(FrameKind::GoAway).await;
    assert_eq!(told.code(), Some(ErrorCode::NO_ERROR));
    let mut client = client(&server).await;
    assert_eq!(client.get("/").await.text(), "page");
    client.ended().await;
}

#[tokio::test]
async fn a_head_that_never_ends_has_its_time_beside_other_streams() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let server = site(&format!(
        "client_header_timeout 300ms; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    let mut unended = headers(3, &GET, true);
    // Without END_HEADERS.
    unended[4] &= !4;
    client.send(unended).await;
    assert_eq!(
        client.outcome(1).await.error,
        Some(ErrorCode::PROTOCOL_ERROR)
    );
}

#[tokio::test]
async fn an_upload_that_stops_has_its_time_and_no_other_stream_is_hurt() {
    let origin = FakeHttp::showing_requests("").await;
    let server = site(&format!(
        "client_header_timeout 100ms; client_body_timeout 400ms;\n\
         location / {{ proxy_pass {}; }} location = /page {{ return 200 page; }}",
        origin.url()
    ))
    .await;
    let mut client = frames(&server).await;
    client.send(headers(1, &POST, false)).await;
    // A part of a frame.
    client.send(&data(1, b"body", true)[..11]).await;
    client.outcome(1).await;
    client.send(b"dy").await;
    let mut page = GET;
    page[3].1 = "/page";
    client.send(headers(3, &page, true)).await;
    let reply = client.outcome(3).await.reply.expect("a response");
    assert_eq!(reply.text(), "page");
    assert_eq!(origin.requests(), 0);
}

#[tokio::test]
async fn a_client_that_opens_no_more_streams_is_left_behind_its_last() {
    let server = site("location / { return 200 page; }").await;
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    client
        .send([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .await;
    let reply = client.outcome(1).await.reply.expect("a response");
    assert_eq!(reply.text(), "page");
    while client.receive().await.is_some() {}
}

#[tokio::test]
async fn a_reload_leaves_open_streams_and_serves_the_next_by_the_new_configuration() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let slow = format!("location = /slow {{ proxy_pass {}; }}", origin.url());
    let server = site(&format!("{slow} location / {{ return 200 old; }}")).await;
    let mut client = client(&server).await;
    let (waiting, _) = client.begin("GET", "/slow", &[], true).await;
    until("the request is at the origin", || origin.requests() == 1).await;
    let directives = format!("http2 on; {slow} location / {{ return 200 new; }}");
    server.rewrite("", &crate::one_server("", &directives));
    server.signal(Signal::HUP);
    let begun = Instant::now();
    while client.get("/").await.text() != "new" {
        assert!(begun.elapsed() < Duration::from_secs(30), "no reload");
    }
    gate.add_permits(1);
    assert_eq!(waiting.reply().await.expect("whole").text(), "page");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_left_after_its_time() {
    let server = site("send_timeout 300ms; location / { try_files /page =404; }").await;
    server.write("page", vec![b'x'; 4 << 20]);
    // It reads nothing, then nothing but the end.
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    until("it is logged", || {
        server.error_log().contains("while sending response")
    })
    .await;
    let mut bytes = 0;
    while let Some(frame) = client.receive().await {
        bytes += frame.payload.len();
    }
    assert!(bytes < 4 << 20, "{bytes}");
}

#[tokio::test]
async fn a_stream_whose_window_stays_shut_is_reset_and_the_others_go_on() {
    let server = site("send_timeout 300ms; location / { try_files /page =404; }").await;
    server.write("page", "page");
    let mut client = testkit::http2::FrameClient::with_window(&server.path("http"), 0).await;
    client.send(headers(1, &GET, true)).await;
    assert_eq!(client.outcome(1).await.error, Some(ErrorCode::CANCEL));
    let mut head = GET;
    head[0].1 = "HEAD";
    client.send(headers(3, &head, true)).await;
    assert_eq!(
        client.outcome(3).await.reply.expect("a response").status,
        200
    );
}
