//! HTTP upstreams as a client and a scripted upstream see them: the requests, the
//! responses, and the treatment of an invalid response.

use crate::start;

mod early_hints;
mod invalid_responses;
mod ssl;
mod streaming;

use std::sync::Arc;

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::running::RunningServer;
use tokio::sync::Semaphore;

use crate::program;

/// A server with these directives; `UP` stands for the upstream's address.
async fn proxy(upstream: &FakeHttp, directives: &str) -> RunningServer {
    let directives = directives.replace("UP", &upstream.address());
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{\n listen unix:%%/http;\n server_name site.test;\n{directives}\n}}"
    );
    start(&http).await
}

/// An upstream that answers with the request it got.
async fn telling() -> FakeHttp {
    FakeHttp::start(|request| {
        let body = format!(
            "{} {} host={} connection={} x={} length={} body={}",
            request.method,
            request.target,
            request.field("host"),
            request.field("connection"),
            request.field("x"),
            request.field("content-length"),
            String::from_utf8_lossy(&request.body),
        );
        match request.method.as_str() {
            "HEAD" => Script::new().raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
            _ => Script::page("Content-Type: text/plain\r\n", body),
        }
    })
    .await
}

fn target(reply: &Reply) -> String {
    let text = reply.text();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn paths_are_mapped_as_nginx_maps_them() {
    let upstream = telling().await;
    let server = proxy(
        &upstream,
        "location /kept/ { proxy_pass http://UP; }\n\
         location /a/ { proxy_pass http://UP/b/; }\n\
         location /root/ { proxy_pass http://UP/; }\n\
         location /odd { proxy_pass http://UP/b; }\n\
         location /broken/ { rewrite ^/broken/(.*)$ /changed/$1 break; proxy_pass http://UP/b/; }\n\
         location /last/ { rewrite ^/last/(.*)$ /a/$1 last; }\n\
         location /vars/ { proxy_pass http://UP$request_uri; }\n\
         location /fixed/ { set $to /there; proxy_pass http://UP$to; }\n\
         location ~ ^/pattern/ { proxy_pass http://UP; }\n\
         location /error/ { error_page 404 = @named; return 404; }\n\
         location @named { proxy_pass http://UP; }",
    )
    .await;
    for (asked, wanted) in [
        ("/kept/x%20y?q=%41", "/kept/x%20y?q=%41"),
        ("/kept/../kept//x", "/kept/../kept//x"),
        ("/a/x%20y?q=%41", "/b/x%20y?q=%41"),
        ("/a/x%2Fy", "/b/x/y"),
        ("/a/", "/b/"),
        ("/root/x", "/x"),
        ("/oddx", "/bx"),
        ("/broken/x?q=1", "/changed/x?q=1"),
        ("/last/x", "/b/x"),
        ("/vars/x%20y?q", "/vars/x%20y?q"),
        ("/fixed/x", "/there"),
        ("/pattern/x%20y", "/pattern/x%20y"),
        ("/error/x%20y", "/error/x%20y"),
    ] {
        let reply = server.target().get(asked).await;
        assert_eq!(target(&reply), wanted, "{asked}");
    }
}

#[tokio::test]
async fn fields_and_bodies_are_sent_as_the_directives_say() {
    let upstream = telling().await;
    let address = upstream.address();
    let server = proxy(
        &upstream,
        "proxy_set_header X outer;\n\
         location /plain/ { proxy_pass http://UP; }\n\
         location /own/ { proxy_pass http://UP; proxy_set_header Host $host; proxy_set_header X \"\"; }\n\
         location /split/ { proxy_pass http://UP; set $bad \"a\r\nInjected: b\"; proxy_set_header Host $bad; }\n\
         location /body/ { proxy_pass http://UP; proxy_set_body said; proxy_method PUT; }\n\
         location /none/ { proxy_pass http://UP; proxy_pass_request_body off; proxy_pass_request_headers off; }\n\
         location /old/ { proxy_pass http://UP; proxy_http_version 1.0; }",
    )
    .await;
    let cases = [
        (
            "/plain/",
            format!("POST /plain/ host={address} connection= x=outer length=4 body=sent"),
        ),
        (
            "/own/",
            "POST /own/ host=site.test connection= x= length=4 body=sent".to_owned(),
        ),
        (
            "/body/",
            format!("PUT /body/ host={address} connection= x=outer length=4 body=said"),
        ),
        (
            "/old/",
            format!("POST /old/ host={address} connection=close x=outer length=4 body=sent"),
        ),
    ];
    for (path, wanted) in cases {
        let reply = server
            .target()
            .ask("POST", path, "X: client\r\n", "sent")
            .await;
        assert_eq!(reply.text(), wanted, "{path}");
    }
    let reply = server.target().ask("POST", "/none/", "", "sent").await;
    assert!(reply.text().ends_with(" body="), "{}", reply.text());
    let reply = server.target().get("/split/").await;
    let text = reply.text();
    assert!(text.contains("host=a  Injected: b "), "{text}");
}

#[tokio::test]
async fn connections_are_kept_for_the_next_request() {
    let upstream = telling().await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; }\n location /close/ { proxy_pass http://UP; proxy_set_header Connection close; }",
    )
    .await;
    for _ in 0..3 {
        server.target().get("/").await;
        server.target().ask("HEAD", "/", "", "").await;
    }
    assert_eq!((upstream.connections(), upstream.requests()), (1, 6));
    server.target().get("/close/").await;
    server.target().get("/").await;
    assert_eq!(upstream.requests(), 8);
    assert!(upstream.connections() >= 2);
}

/// Bytes behind the end of a response are no answer to the next request; a request
/// that may be sent twice is sent again on another connection.
#[tokio::test]
async fn leftovers_on_a_kept_connection_are_not_taken_for_an_answer() {
    for (method, wanted) in [("GET", 200), ("POST", 502)] {
        let seen = std::sync::atomic::AtomicUsize::new(0);
        let upstream = FakeHttp::start(move |_| {
            match seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                1 => Script::new().raw("-BUT-NOT-THIS\n").close(),
                _ => Script::page("", "this"),
            }
        })
        .await;
        let server = proxy(&upstream, "location / { proxy_pass http://UP; }").await;
        assert_eq!(server.target().get("/").await.text(), "this");
        let reply = server.target().ask(method, "/", "", "").await;
        assert_eq!(reply.status, wanted, "{method}");
        if wanted == 200 {
            assert_eq!(reply.text(), "this");
        }
    }
}

#[tokio::test]
async fn connections_come_from_the_address_they_are_bound_to() {
    let upstream = FakeHttp::start(|request| {
        Script::page("", format!("{} {}", request.peer.ip(), request.connection))
    })
    .await;
    let server = proxy(
        &upstream,
        "proxy_bind 127.0.0.2;\n\
         location / { proxy_pass http://UP; }\n\
         location /off/ { proxy_bind off; proxy_pass http://UP; }\n\
         location /own/ { proxy_bind 127.0.0.3; proxy_pass http://UP; }\n\
         location /probed/ { proxy_socket_keepalive on; proxy_pass http://UP; }\n\
         location /named/ { proxy_bind $arg_from; proxy_pass http://UP; }",
    )
    .await;
    // Twice: a kept connection serves only those who would have made it so.
    for turn in ["first", "kept"] {
        for (path, wanted) in [
            ("/", "127.0.0.2 1"),
            ("/off/", "127.0.0.1 2"),
            ("/own/", "127.0.0.3 3"),
            ("/probed/", "127.0.0.2 4"),
            ("/named/?from=127.0.0.2", "127.0.0.2 1"),
            ("/named/?from=127.0.0.4", "127.0.0.4 5"),
            ("/named/?from=", "127.0.0.1 2"),
            ("/named/?from=nowhere", "127.0.0.1 2"),
        ] {
            let reply = server.target().get(path).await;
            assert_eq!(reply.text(), wanted, "{turn} {path}");
        }
    }
    // The server is not to blame and stays in use.
    for _ in 0..2 {
        let reply = server.target().get("/named/?from=192.0.2.1").await;
        assert_eq!(reply.status, 500);
    }
    assert_eq!(server.target().get("/").await.text(), "127.0.0.2 1");
    let log = server.error_log();
    for line in [
        "[error]",
        "invalid local address \"nowhere\"",
        "[crit]",
        "bind(192.0.2.1) failed (99: Cannot assign requested address) while connecting to upstream",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
}

#[tokio::test]
async fn redirects_and_cookies_lead_back_here() {
    let upstream = FakeHttp::start(|request| {
        let here = request.field("host").to_owned();
        Script::new().raw(format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{here}/app/x?y\r\nRefresh: 5; url=http://{here}/app/z\r\n\
             Set-Cookie: a=b; Domain=.internal; Path=/app/c; HttpOnly\r\nContent-Length: 0\r\n\r\n"
        ))
    })
    .await;
    let server = proxy(
        &upstream,
        "location /front/ { proxy_pass http://UP/app/; }\n\
         location /off/ { proxy_pass http://UP/app/; proxy_redirect off; }\n\
         location /own/ { proxy_pass http://UP; proxy_redirect ~^http://[^/]+/app/(.*)$ https://site.test/$1;\n\
           proxy_cookie_domain internal site.test; proxy_cookie_path ~^/app(/.*)$ $1; proxy_cookie_flags a secure nohttponly samesite=lax; }\n\
         location /cached/ { proxy_pass http://UP/app/; proxy_cache zone; proxy_cache_valid 302 1h; proxy_cookie_flags ~ secure; proxy_ignore_headers Set-Cookie; cache_store_set_cookie on; }",
    )
    .await;
    let plain = server.target().get("/front/").await;
    assert_eq!(plain.field("location"), "http://site.test/front/x?y");
    assert_eq!(plain.field("refresh"), "5; url=/front/z");
    let off = server.target().get("/off/").await;
    assert!(off.field("location").ends_with("/app/x?y"), "{off:?}");
    let own = server.target().get("/own/").await;
    assert_eq!(own.field("location"), "https://site.test/x?y");
    assert_eq!(
        own.field("set-cookie"),
        "a=b; Domain=.site.test; Path=/c; Secure; SameSite=Lax"
    );
    // Stored responses are rewritten for each client, too.
    for _ in 0..2 {
        let cached = server.target().get("/cached/").await;
        assert_eq!(cached.field("location"), "http://site.test/cached/x?y");
    }
    assert_eq!(upstream.requests(), 4);
}

#[tokio::test]
async fn another_server_is_tried_where_the_directive_says_so() {
    let failing =
        FakeHttp::start(|_| Script::new().raw("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
            .await;
    let working = telling().await;
    let http = format!(
        "upstream both {{ server {}; server {} backup; }}\n\
         server {{ listen unix:%%/http; add_header X-Tried $upstream_status always;\n\
         location / {{ proxy_pass http://both; proxy_next_upstream http_503; }}\n\
         location /no/ {{ proxy_pass http://both; proxy_next_upstream off; }} }}",
        failing.address(),
        working.address()
    );
    let server = start(&http).await;
    let passed = server.target().get("/no/").await;
    assert_eq!((passed.status, passed.field("x-tried")), (503, "503"));
    let reply = server.target().get("/").await;
    assert_eq!((reply.status, reply.field("x-tried")), (200, "503, 200"));
    // A request that may have changed something is not sent twice.
    let post = server.target().ask("POST", "/", "", "x").await;
    assert!(matches!(post.field("x-tried"), "503" | "200"), "{post:?}");
}

/// For any framing of an error without a body: if `proxy_next_upstream` names it, its
/// server has failed. A missing or forbidden page is no fault of the server.
#[tokio::test]
async fn an_empty_error_counts_as_a_failure_of_its_server() {
    let framings = [
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Connection: close\r\n\r\n",
    ];
    let statuses = [("500", true), ("503", true), ("504", true), ("404", false)];
    for (framing, (status, counts)) in framings
        .into_iter()
        .flat_map(|framing| statuses.map(|status| (framing, status)))
    {
        let failing = FakeHttp::start(move |_| {
            let script = Script::new().raw(format!("HTTP/1.1 {status} Oh\r\n{framing}"));
            match framing.starts_with("Connection") {
                true => script.close(),
                false => script,
            }
        })
        .await;
        let working = telling().await;
        let http = format!(
            "upstream both {{ server {} max_fails=1 fail_timeout=1h; server {}; }}\n\
             server {{ listen unix:%%/http;\n\
             location / {{ proxy_pass http://both; proxy_next_upstream http_{status}; }} }}",
            failing.address(),
            working.address()
        );
        let server = RunningServer::start(program(), "worker_processes 1;", &http).await;
        for _ in 0..4 {
            let reply = server.target().get("/").await;
            assert_eq!(reply.status, 200, "{status} {framing:?}");
        }
        let asked = if counts { 1 } else { 2 };
        assert_eq!(failing.requests(), asked, "{status} {framing:?}");
        assert_eq!(working.requests(), 4, "{status} {framing:?}");
    }
}

#[tokio::test]
async fn the_cache_knows_no_protocol() {
    let upstream = FakeHttp::start(|request| {
        if request.field("if-none-match") == "\"v1\"" {
            return Script::new().raw(
                "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=3600\r\n\r\n",
            );
        }
        let body = format!("run {} range={}", request.number, request.field("range"));
        Script::page("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", body)
    })
    .await;
    let server = proxy(
        &upstream,
        "add_header X-Cache $upstream_cache_status always;\n\
         location / { proxy_pass http://UP; proxy_cache zone; proxy_ignore_headers Cache-Control; proxy_cache_valid 1h; proxy_cache_purge PURGE from 127.0.0.1; }",
    )
    .await;
    let ask = |method: &'static str, fields: &'static str| {
        let target = server.target();
        async move { target.ask(method, "/", fields, "").await }
    };
    // A HEAD is asked as a GET, and a range does not keep the whole from being stored.
    let head = ask("HEAD", "").await;
    assert_eq!((head.status, head.x_cache()), (200, "MISS"));
    let part = ask("GET", "Range: bytes=0-2\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "run"));
    assert_eq!(part.x_cache(), "HIT");
    let whole = ask("GET", "").await;
    assert_eq!(
        (whole.text().as_str(), whole.x_cache()),
        ("run 1 range=", "HIT")
    );
    assert_eq!(upstream.requests(), 1);
}

#[tokio::test]
async fn pages_are_put_together_from_parts() {
    let page = "[<!--#include virtual=\"/parts/one?a=b\" -->][<!--#set var=\"who\" value=\"$arg_who\" -->\
        <!--#if expr=\"$who = you\" --><!--#echo var=\"who\" --><!--#else -->nobody<!--#endif -->]";
    let upstream = FakeHttp::start(move |request| match request.target.as_str() {
        "/parts/one?a=b" => Script::page("Content-Type: text/html\r\n", "one"),
        _ => Script::page("Content-Type: text/html\r\n", page),
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; }\n location = /page { ssi on; proxy_pass http://UP; }",
    )
    .await;
    for (asked, wanted) in [
        ("/page?who=you", "[one][you]"),
        ("/page?who=%3Cme", "[one][nobody]"),
    ] {
        assert_eq!(server.target().get(asked).await.text(), wanted, "{asked}");
    }
}

/// The variables that a page's commands name are not known when the configuration is
/// read.
#[tokio::test]
async fn a_page_may_name_fields_of_its_upstream_that_nothing_else_does() {
    let page = "[<!--#echo var=\"upstream_http_x_made_by\" -->]<!--#include virtual=\"/part\" -->\
                <!--#if expr=\"$upstream_http_x_made_by = me\" -->mine<!--#endif -->";
    let part = "(<!--#echo var=\"upstream_http_x_part\" -->)";
    let upstream = FakeHttp::start(move |request| match request.target.as_str() {
        "/part" => Script::page("Content-Type: text/html\r\nX-Part: own\r\n", part),
        _ => Script::page("Content-Type: text/html\r\nX-Made-By: me\r\n", page),
    })
    .await;
    let server = proxy(
        &upstream,
        "ssi on; location / { proxy_pass http://UP; }\n\
         location /stored { proxy_pass http://UP; proxy_cache zone; proxy_cache_valid 1h; }",
    )
    .await;
    for path in ["/page", "/stored"] {
        let reply = server.target().get(path).await;
        assert_eq!(reply.text(), "[me](own)mine", "{path}");
    }
}

/// The head of several parts has no range of its own (RFC 9110 §15.3.7.2).
#[tokio::test]
async fn a_content_range_of_the_upstream_does_not_reach_a_response_of_several_ranges() {
    let upstream = FakeHttp::start(|_| {
        Script::new().raw(
            "HTTP/1.1 200 OK\r\nContent-Range: stray\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nSEE-THIS",
        )
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; proxy_cache zone; }",
    )
    .await;
    let target = server.target();
    target.get("/").await;
    for (ranges, expected) in [("0-2", "bytes 0-2/8"), ("0-2,4-", "")] {
        let fields = format!("Range: bytes={ranges}\r\n");
        let reply = target.get_with("/", &fields).await;
        assert_eq!(
            (reply.status, reply.field("content-range")),
            (206, expected),
            "{ranges}"
        );
    }
    assert_eq!(upstream.requests(), 1);
}
