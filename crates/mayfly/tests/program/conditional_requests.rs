//! `If-Match` and its kin are judged once, by the maker of the answer: a write that the
//! upstream has carried out is not reported as refused.

use testkit::fake_php::{FakePhp, Script};

use crate::start;

const FIELDS: &str = "Content-Type: text/plain\r\nETag: \"new\"\r\n\
                      Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

#[tokio::test]
async fn a_write_that_the_upstream_carried_out_is_not_answered_412() {
    let php = FakePhp::tcp(|_| Script::page(FIELDS, "written")).await;
    let server = start(&php.cached_site("fastcgi_cache_valid 1h;")).await;
    let target = server.target();
    for condition in [
        "If-Match: \"old\"\r\n",
        "If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT\r\n",
        "If-None-Match: \"new\"\r\n",
        "If-None-Match: *\r\n",
    ] {
        for method in ["PUT", "PATCH", "DELETE", "POST"] {
            let reply = target.ask(method, "/doc", condition, "x").await;
            assert_eq!(
                (reply.status, reply.text().as_str()),
                (200, "written"),
                "{method} {condition}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_cached_is_answered_as_the_upstream_says() {
    let php = FakePhp::tcp(|_| Script::page(FIELDS, "page")).await;
    let site = php.cached_site("fastcgi_cache_bypass 1; fastcgi_no_cache 1;");
    let server = start(&site).await;
    // It has judged the condition itself, and sends all of it.
    let reply = server
        .target()
        .get_with("/", "If-None-Match: \"new\"\r\n")
        .await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
}

#[tokio::test]
async fn cached_pages_and_own_files_are_judged_here() {
    let php = FakePhp::tcp(|_| Script::page(FIELDS, "page")).await;
    let site = php.cached_site("fastcgi_cache_valid 1h; } location /file { ");
    let server = start(&site).await;
    server.write("file", "file");
    let target = server.target();
    for (method, path, condition, status) in [
        // Stored by the first of them.
        ("GET", "/", "If-None-Match: \"new\"\r\n", 304),
        ("GET", "/", "If-None-Match: \"new\"\r\n", 304),
        ("HEAD", "/", "If-None-Match: \"new\"\r\n", 304),
        ("GET", "/", "If-Match: \"old\"\r\n", 412),
        ("GET", "/", "If-Match: \"new\"\r\n", 200),
        ("GET", "/file", "If-Match: \"old\"\r\n", 412),
        ("GET", "/file", "If-None-Match: *\r\n", 304),
    ] {
        let reply = target.ask(method, path, condition, "").await;
        assert_eq!(reply.status, status, "{method} {path} {condition}");
    }
}
