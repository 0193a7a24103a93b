//! The meaning of a request, and the form of its response.

use testkit::fake_http::{FakeHttp, Script};
use testkit::http2::{ErrorCode, data, headers};
use testkit::wait::until;

use super::{GET, POST, client, frames, site, with};

#[tokio::test]
async fn a_page_and_its_head_and_what_is_not_there() {
    let server = site("location / { try_files $uri =404; }").await;
    server.write("page.html", "page");
    let mut client = client(&server).await;
    let page = client.get("/page.html").await;
    assert_eq!((page.status, page.text().as_str()), (200, "page"));
    assert_eq!(page.field("content-length"), "4");
    assert!(page.has("date") && page.has("etag"));
    for field in ["connection", "keep-alive", "transfer-encoding"] {
        assert!(!page.has(field), "{field}");
    }
    let head = client.ask("HEAD", "/page.html", &[], None).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.field("content-length"), "4");
    let missing = client.get("/other").await;
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("<h1>404 Not Found</h1>"));
}

#[tokio::test]
async fn a_response_without_a_body_ends_with_its_head_whatever_the_location_adds() {
    let server = site(
        "add_trailer X-Behind it; limit_rate 10;\n\
         location / { try_files $uri =404; }\n\
         location = /none { return 204; }",
    )
    .await;
    server.write("page", "x".repeat(30));
    let mut client = client(&server).await;
    let head = client.ask("HEAD", "/page", &[], None).await;
    assert_eq!((head.status, head.field("content-length")), (200, "30"));
    assert_eq!(client.get("/none").await.status, 204);
    let tag = head.field("etag").to_owned();
    let conditional = [("if-none-match", tag.as_str())];
    let known = client.ask("GET", "/page", &conditional, None).await;
    assert_eq!((known.status, known.has("content-length")), (304, false));
}

#[tokio::test]
async fn fields_added_behind_the_body_are_trailers() {
    let server = site("add_trailer X-Behind $uri; location / { try_files /page =404; }").await;
    server.write("page", "page");
    let page = client(&server).await.get("/a").await;
    assert_eq!(
        (page.text().as_str(), page.field("x-behind")),
        ("page", "/page")
    );
}

#[tokio::test]
async fn a_rate_holds_for_one_stream_and_not_for_another() {
    let server = site(
        "location / { try_files /page =404; }\n\
         location = /slow { limit_rate 1k; limit_rate_after 500; try_files /page =404; }",
    )
    .await;
    server.write("page", "x".repeat(3000));
    let mut client = client(&server).await;
    let begun = std::time::Instant::now();
    let (slow, _) = client.begin("GET", "/slow", &[], true).await;
    assert_eq!(client.get("/").await.body.len(), 3000);
    let quick = begun.elapsed();
    assert_eq!(slow.reply().await.expect("whole").body.len(), 3000);
    let took = begun.elapsed();
    assert!(
        took.as_millis() >= 500 && quick < took,
        "{quick:?} {took:?}"
    );
}

#[tokio::test]
async fn error_pages_are_those_of_the_location() {
    let server = site(
        "error_page 404 /sorry; location / { return 404; }\n\
         location = /sorry { return 200 sorry; }",
    )
    .await;
    let reply = client(&server).await.get("/a").await;
    assert_eq!((reply.status, reply.text().as_str()), (404, "sorry"));
}

#[tokio::test]
async fn status_444_resets_the_stream_and_leaves_the_others() {
    let server = site("location / { return 444; } location = /page { return 200 page; }").await;
    let mut client = client(&server).await;
    let (refused, _) = client.begin("GET", "/", &[], true).await;
    assert!(refused.reply().await.is_err());
    assert_eq!(client.get("/page").await.text(), "page");
}

#[tokio::test]
async fn cookies_in_several_fields_are_one() {
    let server = site("location / { return 200 \"$http_cookie|$cookie_b\"; }").await;
    let mut client = frames(&server).await;
    let cookies = [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")];
    client.send(headers(1, &with(&GET, &cookies), true)).await;
    let reply = client.outcome(1).await.reply.expect("a response");
    assert_eq!(reply.text(), "a=1; b=2; c=3|2");
}

#[tokio::test]
async fn there_is_one_host_and_a_head_that_names_two_is_malformed() {
    let server = site("location / { return 200 $http_host; }").await;
    let without = [GET[0], GET[1], GET[3]];
    #[rustfmt::skip]
    let cases = [
        ("authority", GET.to_vec(), Some("site.test")),
        ("host", with(&without, &[("host", "site.test")]), Some("site.test")),
        ("both", with(&GET, &[("host", "site.test")]), Some("site.test")),
        ("differ", with(&GET, &[("host", "other.test")]), None),
        ("none", without.to_vec(), None),
        ("twice", with(&without, &[("host", "a.test"), ("host", "a.test")]), None),
        ("user", with(&[GET[0], GET[1], GET[3], (":authority", "a@site.test")], &[]), None),
    ];
    for (name, fields, wanted) in cases {
        let mut client = frames(&server).await;
        client.send(headers(1, &fields, true)).await;
        let outcome = client.outcome(1).await;
        let reply = outcome.reply.expect("a response");
        match wanted {
            Some(host) => assert_eq!((reply.status, reply.text().as_str()), (200, host), "{name}"),
            None => assert_eq!(reply.status, 400, "{name}"),
        }
    }
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_answered_as_a_bad_request() {
    let server = site("large_client_header_buffers 2 64; location / { return 200; }").await;
    let mut client = frames(&server).await;
    let long = "x".repeat(100);
    client
        .send(headers(1, &with(&GET, &[("x-long", &long)]), true))
        .await;
    let outcome = client.outcome(1).await;
    assert_eq!(outcome.reply.expect("a response").status, 400);
    client.send(headers(3, &GET, true)).await;
    let outcome = client.outcome(3).await;
    assert_eq!(outcome.reply.expect("a response").status, 200);
}

#[tokio::test]
async fn neither_a_websocket_nor_a_tunnel_is_opened() {
    let server = site("location / { return 200; }").await;
    let connect = [(":method", "CONNECT"), (":authority", "site.test")];
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        GET[1],
        GET[2],
        GET[3],
    ];
    for (name, fields, wanted) in [
        ("upgrade", with(&GET, &[("upgrade", "websocket")]), 400),
        ("connection", with(&GET, &[("connection", "upgrade")]), 400),
        ("connect", connect.to_vec(), 405),
        ("extended connect", extended.to_vec(), 400),
    ] {
        let mut client = frames(&server).await;
        client.send(headers(1, &fields, true)).await;
        let reply = client.outcome(1).await.reply.expect("a response");
        assert_eq!(reply.status, wanted, "{name}");
    }
}

#[tokio::test]
async fn an_upstream_that_switches_protocols_gets_nowhere() {
    let origin = FakeHttp::start(|_| {
        Script::new()
            .raw("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\nsmuggled")
    })
    .await;
    let server = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let mut client = client(&server).await;
    let (incoming, _) = client.begin("GET", "/", &[], true).await;
    match incoming.reply().await {
        Ok(reply) => assert_eq!(reply.status, 502),
        Err(error) => assert!(error.is_reset(), "{error}"),
    }
}

#[tokio::test]
async fn early_hints_come_before_the_response() {
    let origin = FakeHttp::start(|_| {
        Script::new().raw(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: close\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage",
        )
    })
    .await;
    let server = site(&format!(
        "location / {{ early_hints 1; proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let mut client = frames(&server).await;
    client.send(headers(1, &GET, true)).await;
    let reply = client.outcome(1).await.reply.expect("a response");
    // The fields of both heads, and the status of the last.
    assert_eq!(reply.field("link"), "</a.css>; rel=preload");
    assert!(!reply.has("connection"));
    assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
}

#[tokio::test]
async fn includes_and_slices_are_put_together() {
    let origin = FakeHttp::start(|request| {
        let whole = "0123456789";
        let range = request.field("range").trim_start_matches("bytes=").to_owned();
        let Some((start, end)) = range.split_once('-') else {
            return Script::page("", whole);
        };
        let start: usize = start.parse().unwrap_or(0);
        let end = end.parse().map_or(whole.len(), |end: usize| (end + 1).min(whole.len()));
        let part = &whole[start..end];
        Script::new().raw(format!(
            "HTTP/1.1 206 Partial\r\nContent-Range: bytes {start}-{}/10\r\nContent-Length: {}\r\n\r\n{part}",
            end - 1,
            part.len()
        ))
    })
    .await;
    let server = site(&format!(
        "location / {{ ssi on; try_files /page.html =404; }}\n\
         location = /part {{ return 200 part; }}\n\
         location = /slices {{ slice 4; proxy_set_header Range $slice_range; proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    server.write(
        "page.html",
        "<!--#include virtual=\"/part\" -->-<!--#echo var=\"server_protocol\" -->",
    );
    let mut client = client(&server).await;
    assert_eq!(client.get("/").await.text(), "part-HTTP/2.0");
    assert_eq!(client.get("/slices").await.text(), "0123456789");
}

#[tokio::test]
async fn every_request_has_one_line_in_the_log_that_counts_its_bytes() {
    let server = site_logged().await;
    let mut client = frames(&server).await;
    let block = headers(1, &GET, true);
    client.send(&block).await;
    client.outcome(1).await;
    client
        .send(headers(3, &with(&POST, &[("connection", "close")]), true))
        .await;
    client.outcome(3).await;
    client.send(headers(5, &POST, false)).await;
    client.send(data(5, b"body", true)).await;
    client.outcome(5).await;
    drop(client);
    until("three lines", || {
        server.read("access.log").lines().count() == 3
    })
    .await;
    let log = server.read("access.log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[0],
        format!("GET / HTTP/2.0 200 4 HTTP/2.0 h2c {}", block.len() - 9)
    );
    assert!(lines[1].starts_with(" 400 "), "{log}");
    assert!(lines[2].starts_with("POST / HTTP/2.0 200 4 "), "{log}");
}

async fn site_logged() -> testkit::running::RunningServer {
    super::site_with(
        "log_format two '$request $status $body_bytes_sent $server_protocol $http2 $request_length';",
        "access_log %%/access.log two; location / { return 200 page; }",
    )
    .await
}

#[tokio::test]
async fn a_client_that_breaks_the_protocol_is_told_how() {
    let server = site("location / { return 200; }").await;
    let mut client = frames(&server).await;
    // A stream of the server's.
    client.send(headers(2, &GET, true)).await;
    assert_eq!(
        client.outcome(2).await.error,
        Some(ErrorCode::PROTOCOL_ERROR)
    );
    assert!(client.receive().await.is_none(), "it is closed");
}
