//! Each fragment is a page of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::fake_php::{FakePhp, Script};
use testkit::wait;
use tokio::sync::Semaphore;

use super::{ASKS, PLAIN, PRIVATE, configuration, page, shown, site};
use crate::{gzip, start};

#[tokio::test]
async fn fragments_take_the_place_of_their_tags() {
    let text = "a<esi:include src=\"/one?x=1&amp;y=2\"/>b<esi:include src='/two'></esi:include>c";
    let php = page(text).await;
    let server = site(&php, "").await;
    let first = server.target().get("/").await;
    assert_eq!(first.text(), "a[/one?x=1&y=2]b[/two]c");
    assert_eq!(php.requests(), 3);
    for _ in 0..3 {
        let again = server.target().get("/").await;
        assert_eq!(again.text(), first.text());
        assert_eq!(again.x_cache(), "HIT");
    }
    assert_eq!(php.requests(), 3, "page and fragments are in memory");
}

#[tokio::test]
async fn a_shared_page_holds_what_is_for_one_visitor_alone() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "Hello <esi:include src='/name'/>!"),
        _ => Script::page(PRIVATE, request.param("HTTP_COOKIE")),
    })
    .await;
    let server = site(&php, "").await;
    for name in ["Ada", "Grace", "Ada"] {
        let page = server
            .target()
            .get_with("/", &format!("Cookie: name={name}\r\n"))
            .await;
        assert_eq!(page.text(), format!("Hello name={name}!"));
        assert_eq!(page.field("cache-control"), "private, no-cache");
    }
    assert_eq!(php.requests(), 4, "the page once, the name for each");
}

#[tokio::test]
async fn fragments_have_lifetimes_and_tags_of_their_own() {
    // Each counts for itself: fragments are asked for side by side.
    let (news, never) = (AtomicUsize::new(1), AtomicUsize::new(1));
    let count = |of: &AtomicUsize| of.fetch_add(1, Ordering::SeqCst);
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(
            ASKS,
            "<esi:include src='/news'/> <esi:include src='/never'/>",
        ),
        "/news" => Script::page("Surrogate-Key: news\r\n", format!("news {}", count(&news))),
        _ => Script::page("X-Accel-Expires: 0\r\n", format!("never {}", count(&never))),
    })
    .await;
    let api = "location = /purge { cache_purge_api; } location / {";
    let http = configuration(&php, "").replacen("location / {", api, 1);
    let server = start(&http).await;
    let target = server.target();
    assert_eq!(target.get("/").await.text(), "news 1 never 1");
    assert_eq!(target.get("/").await.text(), "news 1 never 2");
    let purge = "{\"tags\":[\"news\"]}";
    let json = "Content-Type: application/json\r\n";
    let purged = target.ask("POST", "/purge", json, purge).await;
    assert_eq!(purged.status, 200, "{purged:?}");
    assert_eq!(target.get("/").await.text(), "news 2 never 3");
    assert_eq!(target.get("/news").await.x_cache(), "HIT");
}

#[tokio::test]
async fn fragments_are_fetched_side_by_side_and_sent_in_order() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(
            ASKS,
            "<esi:include src='/1'/><esi:include src='/2'/><esi:include src='/3'/>",
        ),
        "/3" => shown(request),
        _ => Script::new()
            .wait_for(&opened)
            .stdout(format!("\r\n[{}]", request.param("REQUEST_URI"))),
    })
    .await;
    let server = site(&php, "").await;
    let target = server.target();
    let asked = tokio::spawn(async move { target.get("/").await });
    wait::until("all are asked for", || php.requests() == 4).await;
    gate.add_permits(2);
    assert_eq!(asked.await.expect("answered").text(), "[/1][/2][/3]");
}

#[tokio::test]
async fn what_comes_before_a_slow_fragment_is_sent() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "the head <esi:include src='/slow'/>"),
        _ => Script::new().wait_for(&opened).stdout("\r\nslow"),
    })
    .await;
    let server = site(&php, "").await;
    let mut client = server.connect().await;
    let request = "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    client.send(request).await;
    client.receive_until("the head ").await;
    gate.add_permits(1);
    let rest = client.receive_all().await;
    assert!(rest.windows(4).any(|bytes| bytes == b"slow"));
}

#[tokio::test]
async fn fragments_of_fragments_are_relative_to_them() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='a/b'/>"),
        "/a/b" => Script::page(ASKS, "(<esi:include src='c'/><esi:include src='?d=1'/>)"),
        "/a/b?d=1" => Script::page(PLAIN, "query"),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "").await;
    assert_eq!(server.target().get("/").await.text(), "([/a/c]query)");
}

#[tokio::test]
async fn the_page_has_no_validators_and_is_not_judged_by_them() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(
            &format!("{ASKS}ETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            "<esi:include src='/f'/>",
        ),
        _ => {
            let fields = ["HTTP_IF_NONE_MATCH", "HTTP_RANGE", "HTTP_IF_MODIFIED_SINCE"];
            let sent: String = fields.map(|field| request.param(field)).concat();
            Script::page(
                PRIVATE,
                format!("{} [{sent}]", request.param("REQUEST_METHOD")),
            )
        }
    })
    .await;
    let server = site(&php, "").await;
    let target = server.target();
    let conditions = "If-None-Match: \"a\"\r\nRange: bytes=0-1\r\n\
        If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for fields in ["", conditions, conditions] {
        let page = target.get_with("/", fields).await;
        assert_eq!((page.status, page.text().as_str()), (200, "GET []"));
        for gone in [
            "etag",
            "last-modified",
            "surrogate-control",
            "content-length",
            "accept-ranges",
        ] {
            assert!(!page.has(gone), "{gone}: {page:?}");
        }
    }
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(!head.has("content-length"), "{head:?}");
}

#[tokio::test]
async fn the_application_is_told_what_the_server_can() {
    let php = FakePhp::tcp(|request| {
        let told = request.param("HTTP_SURROGATE_CAPABILITY");
        let accepted = request.param("HTTP_ACCEPT_ENCODING");
        Script::page(PRIVATE, format!("{told} {accepted}"))
    })
    .await;
    let claims = "Surrogate-Capability: x=\"ESI/2.0\"\r\nAccept-Encoding: gzip\r\n";
    let server = site(&php, "").await;
    let page = server.target().get_with("/", claims).await;
    assert_eq!(page.text(), "mayfly=\"ESI/1.0\" ");
    let server = site(&php, "esi off;").await;
    let page = server.target().get_with("/", claims).await;
    assert_eq!(page.text(), "x=\"ESI/2.0\" gzip");
}

#[tokio::test]
async fn an_http_upstream_is_told_too() {
    use testkit::fake_http::{FakeHttp, Script};
    let upstream = FakeHttp::start(|request| match request.target.as_str() {
        "/" => Script::page(ASKS, "<esi:include src='/f'/>"),
        _ => Script::page(PLAIN, request.field("surrogate-capability")),
    })
    .await;
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ esi on; proxy_pass {}; }} }}",
        upstream.url()
    );
    let server = start(&http).await;
    let page = server.target().get("/").await;
    assert_eq!(page.text(), "mayfly=\"ESI/1.0\"");
}

#[tokio::test]
async fn compressed_fragments_are_expanded_and_a_compressed_page_is_left_alone() {
    let zipped = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/zipped'/>"),
        "/page" => Script::page(
            &format!("{ASKS}Content-Encoding: gzip\r\n"),
            gzip("<esi:include src='/f'/>"),
        ),
        _ => Script::page(zipped, gzip("[a fragment]")),
    })
    .await;
    let server = site(&php, "gunzip on;").await;
    let target = server.target();
    assert_eq!(target.get("/").await.text(), "[a fragment]");
    target.get_with("/page", "Accept-Encoding: gzip\r\n").await;
    let log = server.error_log();
    assert!(
        log.contains("ESI is not run because the response is compressed"),
        "{log}"
    );
}

#[tokio::test]
async fn the_whole_page_is_compressed_for_clients_that_take_it() {
    let php = page("<esi:include src='/one'/> and <esi:include src='/two'/>").await;
    let server = site(&php, "gzip on; gzip_min_length 1;").await;
    let fields = "Accept-Encoding: gzip\r\n";
    let page = server.target().get_with("/", fields).await;
    assert_eq!(page.field("content-encoding"), "gzip");
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(page.body.as_slice());
    std::io::Read::read_to_string(&mut reader, &mut text).expect("gzip");
    assert_eq!(text, "[/one] and [/two]");
}

/// A page larger than one piece of a stored body, with tags that lie across the pieces.
#[tokio::test]
async fn large_pages_are_put_together_from_memory_as_from_php() {
    let mut body = String::new();
    let mut wanted = String::new();
    for number in 0..150 {
        let filler = "x".repeat(2000 + number);
        body.push_str(&format!("{filler}<esi:include src='/{number}'/>"));
        wanted.push_str(&format!("{filler}[/{number}]"));
    }
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, &body),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "").await;
    for _ in 0..3 {
        assert_eq!(server.target().get("/").await.text(), wanted);
    }
    assert_eq!(php.requests(), 151);
}
