//! `Cache-Status` reports the course of a request, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::fake_php::{FakePhp, Script};
use testkit::wait::TIMEOUT;
use tokio::sync::Semaphore;

use crate::start;

const HTML: &str = "Content-Type: text/html\r\n";

#[tokio::test]
async fn a_page_that_is_stored_whole_says_stored() {
    let whole = || {
        Script::page(HTML, "page")
            .close_stdout()
            .end(0, 0)
            .at_once()
    };
    let php = FakePhp::tcp(move |_| whole()).await;
    let site = php.cached_site("fastcgi_cache_valid 1h;");
    let server = start(&site).await;
    let first = server.target().get("/").await;
    assert_eq!(first.field("cache-status"), "mayfly; fwd=uri-miss; stored");
    let second = server.target().get("/").await;
    assert!(
        second
            .field("cache-status")
            .starts_with("mayfly; hit; ttl=")
    );
}

#[tokio::test]
async fn stored_is_not_said_of_a_truncated_body() {
    let gate = Arc::new(Semaphore::new(0));
    let of_php = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/whole" => Script::page(HTML, "page"),
        _ => Script::page(HTML, "the beginning")
            .wait_for(&of_php)
            .close(),
    })
    .await;
    let site = php.cached_site("fastcgi_cache_valid 1h;");
    let server = start(&site).await;
    let mut client = server.connect().await;
    client
        .send("GET /cut HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    let head = client.receive_until("the beginning").await;
    gate.add_permits(1);
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(
        head.contains("Cache-Status: mayfly; fwd=uri-miss"),
        "{head}"
    );
    assert!(!head.contains("stored"), "{head}");
}

#[tokio::test]
async fn a_stale_answer_has_a_negative_ttl() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let php = FakePhp::tcp(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Script::page(
            "Content-Type: text/html\r\nX-Accel-Expires: 0.05\r\n",
            "old",
        ),
        _ => Script::page("Status: 500\r\n", "broken"),
    })
    .await;
    let site =
        php.cached_site("fastcgi_cache_valid 1h; fastcgi_cache_use_stale error timeout http_500;");
    let server = start(&site).await;
    let target = server.target();
    target.get("/").await;
    let begun = std::time::Instant::now();
    let stale = loop {
        let reply = target.get("/").await;
        if reply.x_cache() == "STALE" {
            break reply;
        }
        assert!(begun.elapsed() < TIMEOUT, "never stale");
    };
    assert_eq!(stale.text(), "old");
    let status = stale.field("cache-status");
    let ttl = status
        .split("ttl=")
        .nth(1)
        .and_then(|rest| rest.split(';').next());
    let ttl: i64 = ttl
        .and_then(|ttl| ttl.parse().ok())
        .unwrap_or_else(|| panic!("{status}"));
    assert!(ttl < 0, "{status}");
}
