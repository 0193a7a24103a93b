//! The microcache as visitors meet it, in front of a scripted PHP. Nothing here
//! sleeps for luck: whatever must happen first is held back by a gate of the test's.

use crate::start;

mod cache_key;
mod cache_methods;
mod cache_shared;
mod cache_status;
mod collapsed_requests;
mod default_memory;
mod deserted_fetches;
mod failing_disk;
mod invalid_responses;
pub mod kept_on_disk;
mod memory_files;
mod purge;
mod purge_key;
mod stale;
mod two_zones;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use tokio::sync::Semaphore;

/// A server with one cached location in front of `php`.
async fn cached(php: &FakePhp, directives: &str) -> RunningServer {
    start(&php.cached_site(directives)).await
}

/// PHP that answers with the number of its runs.
async fn counting(head: &'static str) -> FakePhp {
    let runs = AtomicUsize::new(0);
    FakePhp::tcp(move |_| {
        Script::page(
            head,
            format!("run {}", runs.fetch_add(1, Ordering::SeqCst) + 1),
        )
    })
    .await
}

#[tokio::test]
async fn the_second_visitor_is_answered_from_memory() {
    let php = counting("Content-Type: text/html\r\nX-Made-By: php\r\n").await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let first = server.target().get("/page").await;
    assert_eq!(
        (first.status, first.x_cache(), first.text().as_str()),
        (200, "MISS", "run 1")
    );
    let second = server.target().get("/page").await;
    assert_eq!(
        (second.status, second.x_cache(), second.text().as_str()),
        (200, "HIT", "run 1")
    );
    assert_eq!(second.field("x-made-by"), "php");
    assert_eq!(second.field("content-length"), "5");
    assert!(second.has("age"));
    assert!(
        second
            .field("cache-status")
            .starts_with("mayfly; hit; ttl="),
        "{second:?}"
    );
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn without_a_lifetime_nothing_is_stored() {
    let php = counting("Content-Type: text/html\r\n").await;
    let server = cached(&php, "").await;
    for run in 1..=3 {
        let reply = server.target().get("/").await;
        assert_eq!(
            (reply.x_cache(), reply.text()),
            ("MISS", format!("run {run}"))
        );
    }
}

#[tokio::test]
async fn what_is_one_visitors_is_never_stored() {
    for (head, fields, reason) in [
        ("Set-Cookie: a=b\r\n", "", "set-cookie"),
        ("Cache-Control: private\r\n", "", "private"),
        ("Cache-Control: no-store\r\n", "", "no-store"),
        ("Cache-Control: no-cache\r\n", "", "no-cache"),
        ("Vary: *\r\n", "", "vary-star"),
        (
            "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
            "",
            "zero-lifetime",
        ),
        ("X-Accel-Expires: 0\r\n", "", "zero-lifetime"),
        (
            "X-Plain: 1\r\n",
            "Authorization: Basic YTpi\r\n",
            "authorization",
        ),
    ] {
        let php = counting(head).await;
        let server = cached(
            &php,
            "fastcgi_cache_valid any 1h; add_header X-Reason $cache_reason;",
        )
        .await;
        for run in 1..=2 {
            let reply = server.target().get_with("/", fields).await;
            assert_eq!(reply.text(), format!("run {run}"), "{head:?}");
            assert_eq!(reply.field("x-reason"), reason, "{head:?}");
        }
    }
}

#[tokio::test]
async fn errors_are_not_stored_unless_a_rule_names_them() {
    let php = counting("Status: 404 Not Found\r\n").await;
    let server = cached(&php, "fastcgi_cache_valid 1h;").await;
    assert_eq!(server.target().get("/").await.text(), "run 1");
    assert_eq!(server.target().get("/").await.text(), "run 2");
    let named = cached(&php, "fastcgi_cache_valid 404 1h;").await;
    let first = named.target().get("/").await.text();
    let again = named.target().get("/").await;
    assert_eq!((again.status, again.text()), (404, first));
}

#[tokio::test]
async fn head_ranges_and_conditions_are_answered_from_memory() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "0123456789",
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let target = server.target();
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!(
        (head.status, head.field("content-length"), head.body.len()),
        (200, "", 0),
        "a HEAD fills the cache"
    );
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!(
        (
            head.x_cache(),
            head.field("content-length"),
            head.body.len()
        ),
        ("HIT", "10", 0)
    );
    let part = target.get_with("/", "Range: bytes=2-4\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.field("content-range"), "bytes 2-4/10");
    let parts = target.get_with("/", "Range: bytes=0-0,9-9\r\n").await;
    assert_eq!(parts.status, 206);
    assert!(
        parts
            .field("content-type")
            .starts_with("multipart/byteranges")
    );
    let none = target.get_with("/", "If-None-Match: \"v1\"\r\n").await;
    assert_eq!(
        (none.status, none.field("etag"), none.body.len()),
        (304, "\"v1\"", 0)
    );
    let since = target
        .get_with("/", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
        .await;
    assert_eq!(since.status, 304);
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn a_page_is_stored_once_it_was_asked_for_often_enough() {
    let php = counting("X-A: b\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; fastcgi_cache_min_uses 3;",
    )
    .await;
    let target = server.target();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(target.get("/").await.text());
    }
    assert_eq!(seen, ["run 1", "run 2", "run 3", "run 3", "run 3"]);
}

#[tokio::test]
async fn the_application_decides_with_x_accel_expires() {
    let php = FakePhp::tcp(|request| {
        let expires = match request.param("REQUEST_URI") {
            "/hour" => "3600",
            "/far" => "@99999999999",
            "/past" => "@1",
            _ => "0",
        };
        Script::page(
            &format!("X-Accel-Expires: {expires}\r\nCache-Control: no-cache\r\n"),
            "x",
        )
    })
    .await;
    let server = cached(&php, "").await;
    for (path, second) in [("/hour", "HIT"), ("/far", "HIT"), ("/never", "MISS")] {
        server.target().get(path).await;
        let reply = server.target().get(path).await;
        assert_eq!(reply.x_cache(), second, "{path}");
        assert!(!reply.has("x-accel-expires"));
    }
}

#[tokio::test]
async fn the_proxy_field_never_becomes_a_proxy_setting() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "X-A: b\r\n",
            format!(
                "[{}][{}]",
                request.param("HTTP_PROXY"),
                request.param("HTTP_X_OTHER")
            ),
        )
    })
    .await;
    let server = cached(&php, "").await;
    let reply = server
        .target()
        .get_with("/", "Proxy: http://evil\r\nX-Other: fine\r\n")
        .await;
    assert_eq!(reply.text(), "[][fine]");
}
