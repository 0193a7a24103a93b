//! `sub_filter`.

use testkit::fake_php::{FakePhp, Script};

use crate::{gzip, site, site_with};

const HTML: &str =
    "Content-Type: text/html\r\nLast-Modified: Wed, 25 Nov 2026 10:00:00 GMT\r\nETag: \"v\"\r\n";

/// Pages of PHP: short, long, compressed, with an include.
async fn pages() -> FakePhp {
    FakePhp::tcp(|request| match request.param("DOCUMENT_URI") {
        "/gzip" => Script::page(
            "Content-Type: text/html\r\nContent-Encoding: gzip\r\n",
            gzip("<p>old</p>"),
        ),
        "/long" => Script::page(HTML, "old text ".repeat(100_000)),
        "/included" => Script::page(HTML, "old part"),
        "/ssi" => Script::page(HTML, "<!--# include virtual=\"/OLD\" --> old page"),
        "/text" => Script::page("Content-Type: text/plain\r\n", "old"),
        "/partial" => Script::page(
            "Status: 206 Partial Content\r\nContent-Type: text/html\r\nContent-Range: bytes 0-2/9\r\n",
            "old",
        ),
        _ => Script::page(HTML, "<p>old and Old</p>"),
    })
    .await
}

fn location(php: &FakePhp, directives: &str) -> String {
    format!(
        "location / {{ fastcgi_pass {}; fastcgi_cache zone; fastcgi_cache_valid any 1h; fastcgi_cache_key $document_uri;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param DOCUMENT_URI $document_uri; {directives} }}",
        php.address()
    )
}

const ZONE: &str = "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;";

#[tokio::test]
async fn each_visitor_gets_the_replacements_of_their_own_request_for_a_stored_page() {
    let php = pages().await;
    let place = location(&php, "sub_filter old $arg_new; sub_filter </p> '!</p>';");
    let server = site_with(ZONE, &place).await;
    for (arg, wanted) in [
        ("one", "<p>one and Old!</p>"),
        ("two", "<p>two and Old!</p>"),
        ("", "<p> and Old!</p>"),
    ] {
        let reply = server.target().get(&format!("/page?new={arg}")).await;
        assert_eq!(reply.text(), wanted);
        assert!(!reply.has("etag") && !reply.has("last-modified") && !reply.has("accept-ranges"));
        // The body is another one, and so is its length.
        let head = server.target().ask("HEAD", "/page?new=one", "", "").await;
        assert!(!head.has("content-length"));
    }
    assert_eq!(php.requests(), 1, "the page is stored");
}

#[tokio::test]
async fn sub_filter_changes_the_types_and_the_validators_that_the_directives_say() {
    let php = pages().await;
    let all = "sub_filter old new; sub_filter_once off;";
    for (directives, path, wanted) in [
        ("", "/page", "<p>new and new</p>"),
        ("", "/text", "old"),
        ("sub_filter_types text/plain;", "/text", "new"),
        ("", "/partial", "old"),
        // Compressed for a client that does not accept it.
        ("gunzip on;", "/gzip", "<p>new</p>"),
        ("ssi on;", "/ssi", "new part new page"),
    ] {
        let place = location(&php, &format!("{all} {directives}"));
        let place = format!("{place} location /new {{ rewrite ^ /included; }}");
        let server = site_with(ZONE, &place).await;
        for _ in 0..2 {
            let reply = server.target().get(path).await;
            assert_eq!(reply.text(), wanted, "{directives} {path}");
        }
    }
    let place = location(
        &php,
        &format!("{all} sub_filter_last_modified on; gzip on; gzip_types *;"),
    );
    let server = site_with(ZONE, &place).await;
    let reply = server.target().get("/page").await;
    assert_eq!(reply.field("etag"), "W/\"v\"");
    assert!(reply.has("last-modified"));
    let same = server
        .target()
        .get_with("/page", "If-None-Match: \"v\"\r\n")
        .await;
    assert_eq!(same.status, 304);
    let long = server.target().get("/long").await;
    assert_eq!(long.text(), "new text ".repeat(100_000));
}

#[tokio::test]
async fn a_string_that_a_visitor_makes_long_is_not_looked_for() {
    let server =
        site("default_type text/html; location / { sub_filter $arg_a found; return 200 $arg_a; }")
            .await;
    for (length, is_found) in [(0, false), (256, true), (257, false)] {
        let text = "x".repeat(length);
        let reply = server.target().get(&format!("/?a={text}")).await.text();
        assert_eq!(reply == "found", is_found, "{length}");
    }
}
