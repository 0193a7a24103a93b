//! Bodies of requests, and long ones of responses.

use bytes::Bytes;
use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::http2::{ErrorCode, data, headers};
use testkit::process::{descendants, memory_bytes};
use testkit::running::RunningServer;

use super::{POST, client, frames, site, with};

/// Peak resident memory of all processes of a server.
pub fn peak_memory(server: &RunningServer) -> u64 {
    descendants(server.pid())
        .into_iter()
        .chain([server.pid()])
        .map(|pid| memory_bytes(pid, "VmHWM"))
        .max()
        .unwrap_or(0)
}

#[tokio::test]
async fn bodies_reach_upstreams_with_and_without_a_length_and_whole_or_while_they_arrive() {
    let http = FakeHttp::start(|request| Script::page("", &request.body)).await;
    let php = FakePhp::tcp(|request| fake_php::Script::page("", &request.body)).await;
    let (url, address) = (http.url(), php.address());
    let server = site(&format!(
        "client_body_buffer_size 8k;\n\
         location /http {{ proxy_http_version 1.1; proxy_pass {url}; }}\n\
         location /http-stream {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {url}; }}\n\
         location /php {{ fastcgi_pass {address}; fastcgi_param CONTENT_LENGTH $content_length; }}\n\
         location /php-stream {{ fastcgi_request_buffering off; fastcgi_pass {address};\n\
         fastcgi_param CONTENT_LENGTH $content_length; }}"
    ))
    .await;
    let mut client = client(&server).await;
    for size in [0, 1, 5000, 20_000, 300_000] {
        let body: Vec<u8> = (0..size).map(|nth: u32| (nth % 251) as u8).collect();
        let length = body.len().to_string();
        for place in ["/http", "/http-stream", "/php", "/php-stream"] {
            for fields in [&[][..], &[("content-length", length.as_str())]] {
                let reply = client.ask("POST", place, fields, Some(&body)).await;
                assert_eq!(reply.status, 200, "{place} {size} {fields:?}");
                assert_eq!(reply.body, body, "{place} {size} {fields:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_while_it_is_sent() {
    let origin = FakeHttp::showing_requests("").await;
    let server = site(&format!(
        "client_max_body_size 100k; location / {{ proxy_pass {}; }}\n\
         location = /page {{ return 200 page; }}",
        origin.url()
    ))
    .await;
    let mut client = client(&server).await;
    for fields in [&[][..], &[("content-length", "10000000")]] {
        let (incoming, mut outgoing) = client.begin("POST", "/", fields, false).await;
        let sending = tokio::spawn(async move {
            for _ in 0..100 {
                let piece = Bytes::from(vec![b'x'; 100_000]);
                outgoing.send(piece, false).await?;
            }
            Ok::<(), h2::Error>(())
        });
        let (reply, _) = incoming.head().await.expect("a head");
        assert_eq!(reply.status, 413, "{fields:?}");
        assert!(sending.await.expect("no panic").is_err(), "it is stopped");
        assert_eq!(client.get("/page").await.text(), "page", "{fields:?}");
    }
    assert_eq!(origin.requests(), 0);
}

#[tokio::test]
async fn an_upload_that_nobody_reads_stops_neither_its_response_nor_other_streams() {
    let server = site("location / { return 200 page; }").await;
    let mut client = frames(&server).await;
    for nth in 0..50 {
        let stream = 2 * nth + 1;
        client.send(headers(stream, &POST, false)).await;
        client.send(data(stream, &[b'x'; 16_000], false)).await;
        client.send(data(stream, &[b'x'; 16_000], false)).await;
        let outcome = client.outcome(stream).await;
        assert_eq!(outcome.reply.expect("a response").text(), "page");
    }
}

#[tokio::test]
async fn a_length_that_the_body_does_not_have_is_an_error() {
    let origin = FakeHttp::showing_requests("").await;
    let server = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    for (length, end) in [("3", true), ("3", false), ("5", true)] {
        let mut client = frames(&server).await;
        let fields = with(&POST, &[("content-length", length)]);
        client.send(headers(1, &fields, false)).await;
        client.send(data(1, b"body", end)).await;
        let outcome = client.outcome(1).await;
        assert_eq!(
            outcome.reply.expect("a response").status,
            400,
            "{length} {end}"
        );
        // Behind the answer the stream is reset.
        let reset = client
            .receive_kind(testkit::http2::FrameKind::ResetStream)
            .await;
        assert_eq!(reset.code(), Some(ErrorCode::PROTOCOL_ERROR));
    }
    assert_eq!(origin.requests(), 0);
}

#[tokio::test]
async fn a_hundred_megabytes_go_up_and_down_in_bounded_memory() {
    const BYTES: usize = 100 << 20;
    let origin = FakeHttp::start(|request| Script::page("", request.body.len().to_string())).await;
    let server = site(&format!(
        "client_max_body_size 0;\n\
         location / {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {}; }}\n\
         location = /file {{ try_files /file =404; }}",
        origin.url()
    ))
    .await;
    let file = std::fs::File::create(server.path("file")).expect("a file");
    file.set_len(BYTES as u64).expect("a length");
    let mut client = client(&server).await;
    let before = peak_memory(&server);
    let (incoming, mut outgoing) = client.begin("POST", "/", &[], false).await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    for nth in 1..=100 {
        let sent = outgoing.send(piece.clone(), nth == 100).await;
        sent.expect("it is taken");
    }
    let reply = incoming.reply().await.expect("a response");
    assert_eq!(reply.text(), BYTES.to_string());
    let (incoming, _) = client.begin("GET", "/file", &[], true).await;
    let (_, mut body) = incoming.head().await.expect("a head");
    let mut received = 0;
    while let Some(bytes) = body.data().await {
        let bytes = bytes.expect("more of it");
        received += bytes.len();
        let _ = body.flow_control().release_capacity(bytes.len());
    }
    assert_eq!(received, BYTES);
    let grown = peak_memory(&server).saturating_sub(before);
    assert!(grown < 16 << 20, "{} MB", grown >> 20);
}
