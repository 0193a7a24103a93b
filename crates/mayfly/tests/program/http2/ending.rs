//! How connections end: without a request lost that the client cannot send again.

use std::time::{Duration, Instant};

use std::sync::Arc;
use testkit::fake_http::{FakeHttp, Script};
use testkit::http2::{ErrorCode, FrameKind, data, headers};
use testkit::process::Signal;
use testkit::wait::{TIMEOUT, until};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{GET, POST, client, frames, site, with};

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
    // It gets GOAWAY at once, not when the response is there.
    let told = client.receive_kind(FrameKind::GoAway).await;
    assert_eq!(told.code(), Some(ErrorCode::NO_ERROR));
    // A request that was sent before the client knew is served as well.
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
async fn a_head_that_does_not_come_costs_its_stream_alone() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let server = site(&format!(
        "client_header_timeout 300ms; location / {{ proxy_pass {}; }}\n\
         location = /page {{ return 200 page; }}",
        origin.url()
    ))
    .await;
    let mut page = GET;
    page[3].1 = "/page";
    let whole = headers(3, &page, true);
    let mut without_end = whole.clone();
    // END_HEADERS is in an empty CONTINUATION behind it.
    without_end[4] &= !4;
    let end = vec![0, 0, 0, 9, 4, 0, 0, 0, 3];
    for (case, first, rest) in [
        (
            "a part of a frame",
            whole[..20].to_vec(),
            whole[20..].to_vec(),
        ),
        ("a frame of several", without_end, end),
    ] {
        let asked = origin.requests();
        let mut client = frames(&server).await;
        client.send(headers(1, &GET, true)).await;
        until("the request is at the origin", || origin.requests() > asked).await;
        client.send(first).await;
        let outcome = client.outcome(3).await;
        assert_eq!(outcome.error, Some(ErrorCode::PROTOCOL_ERROR), "{case}");
        // The other one is served while it is unknown whether the rest comes.
        gate.add_permits(1);
        let reply = client.outcome(1).await.reply.expect("a response");
        assert_eq!(reply.text(), "page", "{case}");
        client.send(rest).await;
        client.send(headers(5, &page, true)).await;
        let reply = client.outcome(5).await.reply.expect("a response");
        assert_eq!(reply.text(), "page", "{case}");
    }
    assert!(server.error_log().contains("client timed out"));
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_has_no_longer_time() {
    let server = site("client_header_timeout 2s; location / { return 200 page; }").await;
    let mut client = frames(&server).await;
    let long = "x".repeat(100);
    let fields: Vec<(&str, &str)> = (0..60).map(|_| ("x-filler", long.as_str())).collect();
    let whole = headers(1, &with(&GET, &fields), true);
    client.send(&whole[..9]).await;
    let mut sent = 9;
    // Each byte comes long before the time is over.
    let reset = loop {
        let frame = tokio::time::timeout(Duration::from_millis(20), client.receive()).await;
        match frame {
            Ok(frame) => {
                let frame = frame.expect("an open connection");
                if frame.kind == FrameKind::ResetStream {
                    break frame;
                }
            }
            Err(_) => {
                client.send(&whole[sent..=sent]).await;
                sent += 1;
                assert!(sent < whole.len(), "all of it was waited for");
            }
        }
    };
    assert_eq!(reset.stream, 1);
    // One that goes on all the same is left, with all that it has.
    while sent < whole.len() {
        match tokio::time::timeout(Duration::from_millis(20), client.receive()).await {
            Ok(Some(frame)) => assert_eq!(frame.kind, FrameKind::GoAway),
            Ok(None) => return,
            Err(_) => client.send(&whole[sent..=sent]).await,
        }
        sent += 1;
    }
    panic!("it was waited for again");
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
    let server = site(
        "send_timeout 300ms; location / { try_files /page =404; } location = /status { stub_status; }",
    )
    .await;
    server.write("page", vec![b'x'; 4 << 20]);
    let mut asking = client(&server).await;
    // It reads nothing, then nothing but the end.
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    until("it is logged", || {
        server.error_log().contains("while sending response")
    })
    .await;
    let alone = async {
        while !(asking.get("/status").await.text()).starts_with("Active connections: 1 ") {}
    };
    timeout(TIMEOUT, alone).await.expect("its connection ends");
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

/// A refused upload is the last request of its connection. The bytes that the client had on their
/// way when it was refused must be read: unread bytes of a socket become a reset when it is
/// closed, which may take the response from the client.
#[tokio::test]
async fn what_is_on_its_way_behind_a_refused_request_is_read_for_its_time() {
    let origin = FakeHttp::showing_requests("").await;
    for (directives, reads) in [
        ("lingering_time 1s;", true),
        ("lingering_time 1s; lingering_close always;", true),
        ("lingering_close off;", false),
    ] {
        let server = site(&format!(
            "keepalive_requests 1; client_max_body_size 1k; {directives}\n\
             location / {{ proxy_pass {}; }}",
            origin.url()
        ))
        .await;
        let mut client = frames(&server).await;
        let post = with(&POST, &[("content-length", "100000000")]);
        client.send(headers(1, &post, false)).await;
        let reply = client.outcome(1).await.reply.expect("a response");
        assert_eq!(
            (reply.status, reply.is_complete),
            (413, true),
            "{directives}"
        );
        while client.receive().await.is_some() {}
        // Much more than the kernel keeps, and without a pause.
        let (piece, begun, mut sent) = (data(1, &[b'x'; 16_000], false), Instant::now(), 0);
        let sending = async {
            while client.try_send(&piece).await.is_ok() {
                sent += piece.len();
            }
        };
        let ended = tokio::time::timeout(TIMEOUT, sending).await;
        assert!(ended.is_ok(), "{directives}: the time ends");
        match reads {
            true => {
                assert!(sent > 2 << 20, "{directives}: {sent}");
                assert!(begun.elapsed() > Duration::from_millis(900), "{directives}");
            }
            false => assert!(sent < 1 << 20, "{directives}: {sent}"),
        }
    }
    assert_eq!(origin.requests(), 0);
}

#[tokio::test]
async fn a_client_that_sends_nothing_behind_a_refused_request_is_left_earlier() {
    let server = site(
        "keepalive_requests 1; client_max_body_size 1k; lingering_time 1h; lingering_timeout 300ms;\n\
         location / { proxy_pass http://127.0.0.1:9; }",
    )
    .await;
    let mut client = frames(&server).await;
    let post = with(&POST, &[("content-length", "100000000")]);
    client.send(headers(1, &post, false)).await;
    let reply = client.outcome(1).await.reply.expect("a response");
    assert_eq!(reply.status, 413);
    while client.receive().await.is_some() {}
    let ended = tokio::time::timeout(TIMEOUT, client.shut()).await;
    assert!(ended.is_ok(), "it is still read");
}
