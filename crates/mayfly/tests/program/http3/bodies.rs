//! Bodies of requests and of responses, and clients that leave.

use std::sync::Arc;

use bytes::Bytes;
use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{held_page, site};
use crate::http2::uploads::peak_memory;

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|nth| (nth % 251) as u8).collect()
}

#[tokio::test]
async fn bodies_reach_upstreams_with_and_without_a_length_and_whole_or_while_they_arrive() {
    let http = FakeHttp::start(|request| Script::page("", &request.body)).await;
    let php = FakePhp::tcp(|request| fake_php::Script::page("", &request.body)).await;
    let (url, address) = (http.url(), php.address());
    let site = site(&format!(
        "client_body_buffer_size 8k;\n\
         location /http {{ proxy_http_version 1.1; proxy_pass {url}; }}\n\
         location /http-stream {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {url}; }}\n\
         location /php {{ fastcgi_pass {address}; fastcgi_param CONTENT_LENGTH $content_length; }}\n\
         location /php-stream {{ fastcgi_request_buffering off; fastcgi_pass {address};\n\
         fastcgi_param CONTENT_LENGTH $content_length; }}"
    ))
    .await;
    let client = site.client().await;
    for size in [0, 1, 5000, 20_000, 300_000] {
        let body = pattern(size);
        let length = body.len().to_string();
        for place in ["/http", "/http-stream", "/php", "/php-stream"] {
            for fields in [&[][..], &[("content-length", length.as_str())]] {
                let reply = client.ask("POST", place, fields, Some(&body)).await;
                assert_eq!(reply.status, 200, "{place} {size} {fields:?}");
                assert!(reply.body == body, "{place} {size} {fields:?}");
            }
        }
    }
}

#[tokio::test]
async fn five_megabytes_up_and_down() {
    let body = pattern(5 << 20);
    let http = FakeHttp::start(|request| Script::page("", &request.body)).await;
    let site = site(&format!(
        "client_max_body_size 10m;\n\
         location /up {{ proxy_http_version 1.1; proxy_request_buffering off; proxy_pass {}; }}",
        http.url()
    ))
    .await;
    site.server.write("file", &body);
    let client = site.client().await;
    assert!(client.ask("POST", "/up", &[], Some(&body)).await.body == body);
    assert!(client.get("/file").await.body == body);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_while_it_is_sent() {
    let origin = FakeHttp::showing_requests("").await;
    let site = site(&format!(
        "client_max_body_size 100k; location / {{ proxy_pass {}; }}\n\
         location = /page {{ return 200 page; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    for fields in [&[][..], &[("content-length", "10000000")]] {
        let mut exchange = client.begin("POST", "/", fields).await.expect("a stream");
        for _ in 0..100 {
            let piece = Bytes::from(vec![b'x'; 100_000]);
            if exchange.send(piece).await.is_err() {
                break;
            }
        }
        assert_eq!(
            exchange.head().await.expect("a head").status,
            413,
            "{fields:?}"
        );
        assert_eq!(client.get("/page").await.text(), "page", "{fields:?}");
    }
}

#[tokio::test]
async fn trailers_of_a_request_end_it_and_those_of_a_response_follow_it() {
    let origin = FakeHttp::start(|request| Script::page("", &request.body)).await;
    let site = site(&format!(
        "location / {{ proxy_http_version 1.1; proxy_pass {}; }}\n\
         location /trailers {{ add_trailer X-Sum sum; proxy_pass {}; }}",
        origin.url(),
        origin.url()
    ))
    .await;
    let client = site.client().await;
    let mut exchange = client.begin("POST", "/", &[]).await.expect("a stream");
    exchange
        .send(Bytes::from_static(b"body"))
        .await
        .expect("sent");
    exchange.send_trailers("x-sum", "1").await;
    exchange.finish().await;
    assert_eq!(
        exchange.reply().await.expect("a response").reply.text(),
        "body"
    );

    let asked = client
        .try_ask("POST", "/trailers", &[], Some(b"body"))
        .await;
    let whole = asked.expect("a response");
    assert_eq!(whole.reply.text(), "body");
    assert_eq!(whole.trailers, [("x-sum".to_owned(), "sum".to_owned())]);
}

#[tokio::test]
async fn a_cancelled_request_is_given_up_at_the_upstream() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let site = site(&format!(
        "access_log %%/access.log combined; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    until("the request is at the origin", || origin.requests() == 1).await;
    exchange.cancel();
    let log = || site.server.read("access.log");
    until("it is given up", || {
        log().contains("\"GET / HTTP/3.0\" 499 0")
    })
    .await;
    // Others are served on the same connection.
    gate.add_permits(2);
    assert_eq!(client.get("/").await.text(), "page");
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_as_one_that_cancels() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let site = site(&format!(
        "access_log %%/access.log combined; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    until("the request is at the origin", || origin.requests() == 1).await;
    client.connection.close(0u32.into(), b"");
    let log = || site.server.read("access.log");
    until("it is given up", || {
        log().contains("\"GET / HTTP/3.0\" 499 0")
    })
    .await;
}

#[tokio::test]
async fn a_slow_response_comes_as_it_is_made() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| {
        fake_php::Script::new()
            .stdout("Content-Type: text/plain\r\n\r\nfirst")
            .wait_for(&held)
            .stdout("second")
    })
    .await;
    let site = site(&format!(
        "location / {{ fastcgi_buffering off; fastcgi_pass {}; }}",
        php.address()
    ))
    .await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    assert_eq!(exchange.head().await.expect("a head").status, 200);
    assert_eq!(
        exchange.piece().await.expect("bytes").as_deref(),
        Some(&b"first"[..])
    );
    gate.add_permits(1);
    assert_eq!(
        exchange.piece().await.expect("bytes").as_deref(),
        Some(&b"second"[..])
    );
    assert_eq!(exchange.piece().await.expect("the end"), None);
}

#[tokio::test]
async fn long_bodies_take_no_memory() {
    /// How many megabytes there are each way, as for `scripts/checks/clients`.
    const MEGABYTES: &str = "MAYFLY_LARGE_MB";
    let megabytes = std::env::var(MEGABYTES).map_or(64, |text| text.parse().expect(MEGABYTES));
    let bytes: usize = megabytes << 20;
    let origin = FakeHttp::start(|request| Script::page("", request.body.len().to_string())).await;
    let site = site(&format!(
        "client_max_body_size 0; proxy_request_buffering off; proxy_http_version 1.1;\n\
         location /up {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let file = std::fs::File::create(site.server.path("file")).expect("a file");
    file.set_len(bytes as u64).expect("its length");
    let client = site.client().await;
    assert_eq!(client.get("/none").await.status, 404);
    let before = peak_memory(&site.server);

    let mut exchange = client.begin("GET", "/file", &[]).await.expect("a stream");
    exchange.finish().await;
    assert_eq!(exchange.head().await.expect("a head").status, 200);
    let mut received = 0;
    while let Some(piece) = exchange.piece().await.expect("bytes") {
        received += piece.len();
    }
    assert_eq!(received, bytes);

    let mut exchange = client.begin("POST", "/up", &[]).await.expect("a stream");
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..megabytes {
        exchange.send(piece.clone()).await.expect("it is taken");
    }
    exchange.finish().await;
    let reply = exchange.reply().await.expect("a response").reply;
    assert_eq!(reply.text(), bytes.to_string());
    let grown = peak_memory(&site.server) - before;
    assert!(grown < 16 << 20, "{grown} bytes");
}

#[tokio::test]
async fn two_hundred_requests_are_under_way_at_once() {
    const REQUESTS: usize = 200;
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let site = site(&format!(
        "http3_max_concurrent_streams {REQUESTS}; location / {{ proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    let mut exchanges = Vec::new();
    for number in 0..REQUESTS {
        let exchange = client.begin("GET", &format!("/{number}"), &[]).await;
        let mut exchange = exchange.expect("a stream");
        exchange.finish().await;
        exchanges.push(exchange);
    }
    until("all are at the origin", || origin.requests() == REQUESTS).await;
    gate.add_permits(REQUESTS);
    for mut exchange in exchanges {
        let reply = exchange.reply().await.expect("a response").reply;
        assert_eq!(reply.text(), "page");
    }
}
