//! Stored responses, the methods for which they are used, and requests that go
//! past the cache.

use testkit::wait::TIMEOUT;

use super::*;
use crate::start;

#[tokio::test]
async fn a_redirect_of_the_application_is_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 302 1h;").await;
        site.put("/", |request| {
            let body = format!("answer {}", request.number);
            OriginAnswer::status(302, "Location: http://site.test/there\r\n").then(body)
        });
        for wanted in ["MISS", "HIT"] {
            let reply = site.get("/").await;
            assert_eq!((reply.status, reply.x_cache()), (302, wanted));
            assert_eq!(reply.field("location"), "http://site.test/there");
            assert_eq!(reply.text(), "answer 1");
        }
        let head = site.head("/").await;
        assert_eq!((head.status, head.body.len()), (302, 0));
    }
}

#[tokio::test]
async fn what_php_complains_of_does_not_keep_a_page_from_being_stored() {
    use testkit::fake_php::{FakePhp, Script};
    let php = FakePhp::tcp(|request| {
        Script::new()
            .stderr("something is not quite right ".repeat(512))
            .stdout(format!(
                "Content-Type: text/html\r\n\r\nanswer {}",
                request.number
            ))
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m;\n\
         server {{ listen unix:%%/http; location / {{ fastcgi_pass {};\n\
         fastcgi_cache zone; fastcgi_cache_valid 1h; }} }}",
        php.address()
    );
    let server = start(&http).await;
    for _ in 0..2 {
        assert_eq!(server.target().get("/").await.text(), "answer 1");
    }
}

#[tokio::test]
async fn get_and_head_share_what_is_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h;").await;
        site.page("/a", "", "the page");
        site.page("/b", "", "the page");
        site.expect(&[("/a", "MISS", "the page")]).await;
        site.page("/a", "", "another");
        site.expect(&[("/a", "HIT", "the page")]).await;
        assert_eq!(site.head("/b").await.text(), "");
        site.expect(&[("/b", "HIT", "the page")]).await;
        let head = site.head("/b").await;
        assert_eq!((head.x_cache(), head.text().as_str()), ("HIT", ""));
        assert_eq!(head.field("content-length"), "8");
    }
}

#[tokio::test]
async fn an_empty_body_is_stored_like_any_other() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h;").await;
        site.page("/empty", "", "");
        for (method, path, wanted) in [
            ("HEAD", "/empty?head", "MISS"),
            ("HEAD", "/empty?head", "HIT"),
            ("GET", "/empty", "MISS"),
            ("GET", "/empty", "HIT"),
        ] {
            let reply = site.server.target().ask(method, path, "", "").await;
            assert_eq!((reply.x_cache(), reply.body.len()), (wanted, 0), "{path}");
        }
    }
}

#[tokio::test]
async fn a_stale_page_is_sent_in_any_coding_when_the_origin_has_lost_it() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(
            spelling,
            "*_cache_valid 200 20ms; gzip on; gzip_min_length 0;\n\
             *_cache_use_stale error timeout invalid_header http_500 http_404;",
        )
        .await;
        let long = "a page worth compressing, ".repeat(100);
        for (path, body) in [("/full", long.as_str()), ("/empty", "")] {
            site.page(path, "Content-Type: text/html\r\n", body);
            assert_eq!(site.get(path).await.x_cache(), "MISS");
            site.remove(path);
            let zipped = "Accept-Encoding: gzip\r\n";
            let reply = site.past_its_lifetime(path, zipped).await;
            assert_eq!((reply.status, reply.x_cache()), (200, "STALE"), "{path}");
            let text = match reply.field("content-encoding") {
                "gzip" => std::io::read_to_string(flate2::read::GzDecoder::new(&*reply.body))
                    .expect("gzip"),
                _ => reply.text(),
            };
            assert_eq!(text, body, "{spelling:?} {path}");
        }
    }
}

#[tokio::test]
async fn a_connection_goes_on_after_a_head_that_is_not_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h; *_no_cache $arg_e;").await;
        site.page("/big", "", &"x".repeat(100_000));
        site.page("/small", "", "small");
        let mut client = site.server.connect().await;
        client
            .send("HEAD /big?e=1 HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        let head = client.receive(true).await.expect("a response");
        assert_eq!(head.field("connection"), "keep-alive");
        client
            .send("GET /small HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        assert_eq!(response(&mut client).await.text(), "small");
    }
}

#[tokio::test]
async fn a_bypass_renews_what_is_stored() {
    for spelling in Spelling::BOTH {
        let rules = "*_cache_key $uri; *_cache_bypass $arg_bypass; *_cache_valid any 1h;";
        let site = Site::caching(spelling, rules).await;
        site.page("/t", "", "old");
        site.expect(&[("/t", "MISS", "old")]).await;
        site.page("/t", "", "new");
        site.expect(&[
            ("/t", "HIT", "old"),
            ("/t?bypass=0", "HIT", "old"),
            ("/t?bypass=1", "BYPASS", "new"),
            ("/t", "HIT", "new"),
        ])
        .await;
    }
}

#[tokio::test]
async fn a_bypass_renews_a_stored_error_that_has_a_page_of_its_own() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "",
            "location / { PASS; *_cache zone; *_cache_key $uri; *_cache_bypass $arg_bypass;\n\
             *_cache_valid any 1h; *_intercept_errors on; error_page 404 = @fallback; }\n\
             location @fallback { return 403; }",
        )
        .await;
        assert_eq!(site.get("/t").await.status, 403);
        site.page("/t", "", "here now");
        assert_eq!(site.get("/t").await.status, 403);
        assert_eq!(site.origin.requests(), 1);
        site.expect(&[
            ("/t?bypass=1", "BYPASS", "here now"),
            ("/t", "HIT", "here now"),
        ])
        .await;
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid any 1h;").await;
        site.put("/", |_| {
            let fields = "X-Test: kept\r\n";
            OriginAnswer::page(fields, "one part,")
                .then(" another")
                .of_open_length()
        });
        for wanted in ["MISS", "HIT"] {
            let reply = site.get("/").await;
            assert_eq!((reply.x_cache(), reply.field("x-test")), (wanted, "kept"));
            assert_eq!(reply.text(), "one part, another");
        }
    }
}

#[tokio::test]
async fn head_is_fetched_by_get_unless_conversion_is_off() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "*_cache zone; *_cache_valid 200 1h; *_cache_key $request_uri;",
            "location / { PASS; *_cache_convert_head off;\n\
             location /inner { PASS; *_cache_convert_head on; } }\n\
             location /on { PASS; *_cache_convert_head on; }",
        )
        .await;
        for path in ["/", "/on", "/inner"] {
            site.put(path, |request| {
                OriginAnswer::page(format!("X-Method: {}\r\n", request.method), "body")
            });
        }
        for (method, path, asked) in [
            ("GET", "/", "GET"),
            ("HEAD", "/?2", "HEAD"),
            ("GET", "/on", "GET"),
            ("HEAD", "/on?2", "GET"),
            ("GET", "/inner", "GET"),
            ("HEAD", "/inner?2", "GET"),
        ] {
            let reply = site.server.target().ask(method, path, "", "").await;
            assert_eq!(
                reply.field("x-method"),
                asked,
                "{spelling:?} {method} {path}"
            );
        }
        // The entry that HEAD left behind, if any, is no page without its body.
        assert_eq!(site.get("/?2").await.text(), "body");
    }
}

#[tokio::test]
async fn a_head_whose_response_is_truncated_leaves_nothing_behind() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_read_timeout 50ms;").await;
        site.put("/big", |_| {
            OriginAnswer::page(FOR_HOURS, "begun").claiming(1024).hang()
        });
        let head = site.head("/big").await;
        assert_eq!((head.status, head.text().as_str()), (200, ""));
        site.page("/big", FOR_HOURS, "whole");
        // Until the first fetch has timed out, others read along with it.
        let whole = async { while site.get("/big").await.text() != "whole" {} };
        tokio::time::timeout(TIMEOUT, whole)
            .await
            .expect("the end of what hangs");
        assert!(!site.server.error_log().contains("[alert]"));
    }
}
