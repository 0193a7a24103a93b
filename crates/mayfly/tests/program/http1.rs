//! HTTP/1 as well-behaved and hostile clients speak it: connections, heads, bodies and their limits.
//! Also `stub_status`, `add_before_body`, `add_after_body` and trailers.

use testkit::client::Client;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::start;

async fn plain(directives: &str) -> RunningServer {
    let http = format!(
        "server {{ listen unix:%%/http; server_name site.test;\n\
         location / {{ return 200 \"$request_method $uri?$args $http_x\"; }}\n{directives} }}"
    );
    start(&http).await
}

/// PHP that answers with the number of bytes it got.
async fn measuring() -> (FakePhp, RunningServer) {
    measuring_with("").await
}

async fn measuring_with(directives: &str) -> (FakePhp, RunningServer) {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "X-A: b\r\n",
            format!(
                "{} of {}",
                request.body.len(),
                request.param("CONTENT_LENGTH")
            ),
        )
    })
    .await;
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass {}; fastcgi_param CONTENT_LENGTH $content_length; {directives} }} }}",
        php.address()
    );
    let server = start(&http).await;
    (php, server)
}

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    let server = plain("").await;
    let mut client = server.connect().await;
    for path in ["/a", "/b?x=1", "/c%20d"] {
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
            .await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(
            (reply.status, reply.field("connection")),
            (200, "keep-alive")
        );
    }
}

/// Returns the text of `stub_status`, once it is `wanted`, and at the latest after a thousand times.
async fn status_when(asking: &mut testkit::client::Client, wanted: &str) -> String {
    let mut said = String::new();
    for _ in 0..1000 {
        asking
            .send("GET /status HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        said = asking.receive(false).await.expect("a response").text();
        if said.contains(wanted) {
            break;
        }
    }
    said
}

#[tokio::test]
async fn stub_status_tells_what_connections_are_doing() {
    let server = plain("location = /status { stub_status; }").await;
    let (mut waiting, mut reading) = (server.connect().await, server.connect().await);
    waiting
        .send("GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    waiting.receive(false).await.expect("a response");
    reading.send("GET /b HTTP/1.1\r\nHost: si").await;
    let mut asking = server.connect().await;
    let wanted = "Reading: 1 Writing: 1 Waiting: 1 \n";
    let said = status_when(&mut asking, wanted).await;
    assert!(said.starts_with("Active connections: 3 \n"), "{said}");
    assert!(said.ends_with(wanted), "{said}");
    reading.send("te.test\r\n\r\n").await;
    reading.receive(false).await.expect("a response");
    drop(waiting);
    let said = status_when(&mut asking, "Reading: 0 Writing: 1 Waiting: 1 \n").await;
    assert!(said.starts_with("Active connections: 2 \n"), "{said}");
    // The two requests, and every time it was asked.
    let requests: u64 = said.split_whitespace().nth(9).unwrap().parse().unwrap();
    assert!(requests >= 4, "{said}");
}

#[tokio::test]
async fn each_request_of_a_connection_goes_to_the_server_that_it_names() {
    let named = |name: &str, says: &str| {
        format!("server {{ listen unix:%%/http; server_name {name}; return 200 {says}; }}\n")
    };
    let http = [
        named("\"\"", "'nobody: $host'"),
        named("one.test", "'one: $host$is_request_port$request_port'"),
        named("*.wide.test", "'wide: $host'"),
        named("~^(?<who>.+)\\.match\\.test$", "'matched: $who'"),
    ]
    .concat();
    let server = start(&http).await;
    let mut client = server.connect().await;
    for (request, wanted) in [
        ("GET / HTTP/1.1\r\nHost: one.test", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: one.test", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: ONE.test", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: one.test", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: one.test:81", "one: one.test:81"),
        ("GET / HTTP/1.1\r\nHost: one.test:81", "one: one.test:81"),
        ("GET / HTTP/1.1\r\nHost: one.test.", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: one.test.", "one: one.test"),
        ("GET / HTTP/1.1\r\nHost: a.match.test", "matched: a"),
        ("GET / HTTP/1.1\r\nHost: a.match.test", "matched: a"),
        (
            "GET http://b.wide.test/ HTTP/1.1\r\nHost: a.match.test",
            "wide: b.wide.test",
        ),
        ("GET / HTTP/1.1\r\nHost: a.match.test", "matched: a"),
        ("GET / HTTP/1.1\r\nHost: b.wide.test", "wide: b.wide.test"),
        (
            "GET http://one.test/ HTTP/1.1\r\nHost: b.wide.test",
            "one: one.test",
        ),
        ("GET / HTTP/1.0\r\nConnection: keep-alive", "nobody: "),
        ("GET / HTTP/1.1\r\nHost: one.test", "one: one.test"),
    ] {
        client.send(format!("{request}\r\n\r\n")).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.text(), wanted, "{request}");
    }
    client.send("GET / HTTP/1.1\r\nHost:\r\n\r\n").await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!(reply.status, 400);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = plain("").await;
    let mut client = server.connect().await;
    let request = |path: &str| format!("GET /{path} HTTP/1.1\r\nHost: site.test\r\n\r\n");
    client
        .send(format!("{}{}{}", request("1"), request("2"), request("3")))
        .await;
    for path in ["1", "2", "3"] {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.text(), format!("GET /{path}? "));
    }
}

#[tokio::test]
async fn bare_line_feeds_and_old_versions_are_accepted() {
    let server = plain("").await;
    for (request, wanted) in [
        ("GET /lf HTTP/1.0\n\n", "GET /lf? "),
        ("\r\n\nGET /x HTTP/1.0\r\nX: 1\n\r\n", "GET /x? 1"),
        ("GET /a//b/./c/../d HTTP/1.0\r\n\r\n", "GET /a/b/d? "),
        (
            "GET http://site.test/abs?q HTTP/1.1\r\nHost: other\r\n\r\nGET",
            "GET /abs?q ",
        ),
    ] {
        let mut client = server.connect().await;
        client.send(request).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, wanted),
            "{request:?}"
        );
    }
    let mut client = server.connect().await;
    client.send("GET /old\n").await;
    assert_eq!(client.receive_all().await, b"GET /old? ");
}

#[tokio::test]
async fn what_two_readers_could_read_in_two_ways_is_refused_and_the_connection_closed() {
    let server = plain("").await;
    let line = "POST / HTTP/1.1\r\nHost: site.test\r\n";
    #[rustfmt::skip]
    let cases = [
        ("two lengths that differ", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        ("two lengths alike", "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        ("a list of lengths", "Content-Length: 1, 1\r\n\r\na"),
        ("length and coding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("a signed length", "Content-Length: +1\r\n\r\na"),
        ("a length in hexadecimal", "Content-Length: 0x1\r\n\r\na"),
        ("a length with a space", "Content-Length: 1 1\r\n\r\na"),
        ("no length", "Content-Length:\r\n\r\n"),
        ("too long a length", "Content-Length: 99999999999999999999\r\n\r\n"),
        ("an unknown coding", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ("two codings", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("a coding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("obsolete folding", "X: a\r\n b\r\n\r\n"),
        ("folding the first line", " X: a\r\n\r\n"),
        ("a space before the colon", "Content-Length : 1\r\n\r\na"),
        ("a NUL in a value", "X: a\0b\r\n\r\n"),
        ("a CR in a value", "X: a\rb\r\n\r\n"),
        ("a CR in a name", "X\r: a\r\n\r\n"),
        ("no colon", "X a\r\n\r\n"),
        ("two hosts", "Host: other\r\n\r\n"),
    ];
    for (name, rest) in cases {
        let mut client = server.connect().await;
        client.send(format!("{line}{rest}")).await;
        let reply = client.receive(false).await.expect("a response");
        assert!(
            matches!(reply.status, 400 | 501),
            "{name}: {}",
            reply.status
        );
        assert_eq!(reply.field("connection"), "close", "{name}");
        assert!(client.receive_all().await.is_empty(), "{name}");
    }
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        .await;
    assert_eq!(client.receive(false).await.expect("a response").status, 400);
}

#[tokio::test]
async fn broken_chunks_are_refused_and_never_reach_php_as_whole() {
    let (php, server) = measuring().await;
    for (name, body) in [
        ("no size", "\r\nabc\r\n0\r\n\r\n"),
        ("a size that is none", "g\r\nabc\r\n0\r\n\r\n"),
        ("a negative size", "-1\r\na\r\n0\r\n\r\n"),
        ("0x before the size", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("too large a size", "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
        ("more data than said", "2\r\nabc\r\n0\r\n\r\n"),
        ("a bare CR after the size", "3\rabc\r\n0\r\n\r\n"),
        ("a space before the size", " 3\r\nabc\r\n0\r\n\r\n"),
    ] {
        let mut client = server.connect().await;
        client
            .send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
            ))
            .await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, 400, "{name}");
        client.receive_all().await;
    }
    assert_eq!(php.requests(), 0);
}

/// The server could not find the next request behind such a body.
#[tokio::test]
async fn broken_chunks_are_refused_where_no_handler_reads_the_body() {
    let server = crate::site("location / { return 200 fine; }").await;
    for (body, status) in [
        ("4\r\nSEE-THIS\r\n0\r\n\r\n", 400),
        ("4\r\nTHIS\r\n0\r\n\r\n", 200),
    ] {
        let mut client = server.connect().await;
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{body}")).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, status, "{body}");
    }
}

/// Sends a POST with these framing fields and body; returns PHP's measurements.
async fn measured(client: &mut Client, fields: &str, body: &str) -> String {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(format!("{head}{body}")).await;
    client.receive(false).await.expect("a response").text()
}

/// Sends a body that is far beyond client_body_buffer_size, so that it goes through a file.
async fn measured_large(client: &mut Client) -> String {
    let large = "x".repeat(300_000);
    measured(client, "Content-Length: 300000\r\n", &large).await
}

#[tokio::test]
async fn bodies_reach_php_whole_however_they_were_sent() {
    let (_php, server) = measuring().await;
    let mut client = server.connect().await;
    let seen = measured(&mut client, "Content-Length: 5\r\n", "hello").await;
    assert_eq!(seen, "5 of 5");
    let chunks = "3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nT: x\r\n\r\n";
    let seen = measured(&mut client, "Transfer-Encoding: chunked\r\n", chunks).await;
    assert_eq!(seen, "13 of 13");
    assert_eq!(measured_large(&mut client).await, "300000 of 300000");
}

#[tokio::test]
async fn a_large_body_is_served_although_its_folder_cannot_be_made() {
    // A file is in the way, also of root.
    let (_php, server) = measuring_with("client_body_temp_path %%/error.log/body;").await;
    let mut client = server.connect().await;
    assert_eq!(measured_large(&mut client).await, "300000 of 300000");
}

#[tokio::test]
async fn a_body_is_handed_on_while_it_arrives() {
    let (_php, server) = measuring_with("fastcgi_request_buffering off;").await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client
            .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
            .await;
        for _ in 0..20 {
            client.send("y".repeat(10_000)).await;
        }
        assert_eq!(
            client.receive(false).await.expect("a response").text(),
            "200000 of 200000"
        );
    }
}

#[tokio::test]
async fn a_client_that_waits_for_a_go_ahead_gets_it() {
    let (_php, server) = measuring().await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .await;
    assert_eq!(client.receive(true).await.expect("a go-ahead").status, 100);
    client.send("ok").await;
    assert_eq!(
        client.receive(false).await.expect("a response").text(),
        "2 of 2"
    );
}

#[tokio::test]
async fn too_large_a_body_is_refused_before_it_is_read() {
    let (php, server) = measuring_with("client_max_body_size 1k;").await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000000\r\n\r\n")
        .await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!((reply.status, reply.field("connection")), (413, "close"));
    let mut client = server.connect().await;
    client
        .send(format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n{}\r\n0\r\n\r\n", "z".repeat(2048)))
        .await;
    assert_eq!(client.receive(false).await.expect("a response").status, 413);
    assert_eq!(php.requests(), 0);
}

#[tokio::test]
async fn heads_beyond_the_buffers_are_refused_by_name() {
    let server = plain("large_client_header_buffers 2 1k;").await;
    for (request, status) in [
        (format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(2000)), 414),
        (
            format!("GET / HTTP/1.0\r\nX: {}\r\n\r\n", "a".repeat(2000)),
            400,
        ),
    ] {
        let mut client = server.connect().await;
        client.send(request).await;
        assert_eq!(
            client.receive(false).await.expect("a response").status,
            status
        );
    }
}

#[tokio::test]
async fn a_value_with_a_line_break_cannot_split_the_response() {
    let server = plain("location /out { add_header X-Echo $arg_x; return 200 ok; } location ~ ^/to(.*) { return 302 /at$1; }").await;
    let reply = server.target().get("/out?x=a%0d%0aSet-Cookie:%20b=c").await;
    assert!(!reply.has("set-cookie"), "{reply:?}");
    let reply = server.target().get("/to%0d%0aSet-Cookie:%20b=c").await;
    assert!(!reply.has("set-cookie"), "{reply:?}");
}

#[tokio::test]
async fn other_paths_are_put_around_a_response_and_trailers_behind_it() {
    let php =
        FakePhp::tcp(|_| Script::page("Content-Type: text/html\r\nContent-Length: 4\r\n", "main"))
            .await;
    let http = format!(
        "server {{ listen unix:%%/http; add_trailer X-End $status;\n\
         location / {{ fastcgi_pass {}; add_before_body /before; add_after_body /after?x; }}\n\
         location /before {{ return 200 before,; }} location /after {{ return 200 ,$args; }} }}",
        php.address()
    );
    let server = start(&http).await;
    let reply = server.target().get("/").await;
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "before,main,x")
    );
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await;
    let all = client.receive_all().await;
    assert!(
        all.ends_with(b"0\r\nX-End: 200\r\n\r\n"),
        "{:?}",
        String::from_utf8_lossy(&all)
    );
    let head = server.target().ask("HEAD", "/", "", "").await;
    assert_eq!(head.status, 200);
}
