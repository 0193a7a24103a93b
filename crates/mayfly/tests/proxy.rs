//! HTTP upstreams as a client and a scripted upstream see them: what is asked,
//! what comes back, and what becomes of an upstream that lies.

use std::sync::Arc;

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::running::Running;
use tokio::sync::Semaphore;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mayfly");

/// A server with these directives; `UP` stands for the upstream's address.
async fn proxy(upstream: &FakeHttp, directives: &str) -> Running {
    let directives = directives.replace("UP", &upstream.address());
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{\n listen unix:%%/http;\n server_name site.test;\n{directives}\n}}"
    );
    Running::start(PROGRAM, "", &http).await
}

/// An upstream that says what it was asked.
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

/// Bytes behind the end of a response are no answer to the next request; what may be
/// asked twice is asked again on another connection.
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
    let server = Running::start(PROGRAM, "", &http).await;
    let passed = server.target().get("/no/").await;
    assert_eq!((passed.status, passed.field("x-tried")), (503, "503"));
    let reply = server.target().get("/").await;
    assert_eq!((reply.status, reply.field("x-tried")), (200, "503, 200"));
    // What may have changed something is not sent twice.
    let post = server.target().ask("POST", "/", "", "x").await;
    assert!(matches!(post.field("x-tried"), "503" | "200"), "{post:?}");
}

/// Whatever the framing of an error without a body: where `proxy_next_upstream` names
/// it, its server has failed. What is not there, or not allowed, is no fault of it.
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
        let server = Running::start(PROGRAM, "worker_processes 1;", &http).await;
        for _ in 0..4 {
            let reply = server.target().get("/").await;
            assert_eq!(reply.status, 200, "{status} {framing:?}");
        }
        let asked = if counts { 1 } else { 2 };
        assert_eq!(failing.requests(), asked, "{status} {framing:?}");
        assert_eq!(working.requests(), 4, "{status} {framing:?}");
    }
}

/// Each of these upstreams breaks its word. The client sees an error or a response
/// that does not end, and the next client asks the upstream again.
#[tokio::test]
async fn an_upstream_that_lies_is_never_stored_and_never_looks_whole() {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    let lies = [
        (
            "too short",
            format!("{head}Content-Length: 10\r\n\r\nshort"),
        ),
        (
            "no last chunk",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"),
        ),
        (
            "bad chunk size",
            format!("{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\nshort\r\n0\r\n\r\n"),
        ),
        (
            "a chunk longer than its size",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nshort\r\n0\r\n\r\n"),
        ),
        (
            "a chunk shorter than its size",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n9\r\nshort\r\n0\r\n\r\n"),
        ),
        (
            "a chunk size beyond all bounds",
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff5\r\nshort\r\n0\r\n\r\n"
            ),
        ),
        (
            "two lengths",
            format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nshort"),
        ),
        (
            "a length beside a coding",
            format!(
                "{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n\r\n"
            ),
        ),
        ("a head without end", head.to_owned()),
        (
            "a head above the limit",
            format!("{head}X: {}\r\n\r\n", "x".repeat(100_000)),
        ),
        ("no HTTP", "hello\r\n\r\n".to_owned()),
        ("nothing", String::new()),
    ];
    for (name, lie) in lies {
        let upstream = FakeHttp::start(move |_| Script::new().raw(lie.as_bytes()).close()).await;
        let server = proxy(
            &upstream,
            "location / { proxy_pass http://UP; proxy_cache zone; }",
        )
        .await;
        for round in 1..=2 {
            let mut client = server.connect().await;
            client
                .send("GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
                .await;
            let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
            let is_error = received.starts_with("HTTP/1.1 502 ");
            let is_cut = received.starts_with("HTTP/1.1 200 ")
                && !received.ends_with("0\r\n\r\n")
                && !received.contains("Content-Length: 5\r\n");
            assert!(is_error || is_cut, "{name}, round {round}: {received}");
            assert!(upstream.requests() >= round, "{name} was stored");
        }
        assert!(server.error_log().contains("upstream"), "{name}");
    }
}

const NOT_STORED: &str = "response not stored: The upstream sent more than the response says";

/// As with nginx, the client gets as much as was promised. Which part of it is the
/// lie nobody knows, so that the next client asks again.
#[tokio::test]
async fn an_upstream_that_says_more_than_it_promised_is_cut_and_never_stored() {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    let after_length = "more data than specified in \"Content-Length\" header";
    let after_head = "a body with a response that has none";
    // Name, method of the client, response, what the client gets, words of the log.
    let lies = [
        (
            "a length too short",
            "GET",
            format!("{head}Content-Length: 5\r\n\r\nshort and more"),
            "short",
            after_length,
        ),
        (
            "no length",
            "GET",
            format!("{head}Content-Length: 0\r\n\r\nshort"),
            "",
            after_length,
        ),
        (
            "data behind the last chunk",
            "GET",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n\r\nmore"),
            "short",
            "data after final chunk",
        ),
        (
            "a second response",
            "GET",
            format!("{head}Content-Length: 5\r\n\r\nshort{head}Content-Length: 4\r\n\r\nevil"),
            "short",
            after_length,
        ),
        (
            "a status without a body",
            "GET",
            "HTTP/1.1 204 Nothing\r\nX-Accel-Expires: 60\r\n\r\nmore".to_owned(),
            "",
            after_head,
        ),
        (
            "a HEAD that is asked as a GET",
            "HEAD",
            format!("{head}Content-Length: 5\r\n\r\nshort and more"),
            "",
            after_length,
        ),
    ];
    for (name, method, lie, wanted, words) in lies {
        let upstream = FakeHttp::start(move |_| Script::new().raw(lie.as_bytes())).await;
        let server = proxy(
            &upstream,
            "location / { proxy_pass http://UP; proxy_cache zone; proxy_cache_valid 204 1m; }",
        )
        .await;
        for round in 1..=2 {
            let reply = server.target().ask(method, "/", "", "").await;
            let seen = (reply.status / 100, reply.text(), reply.is_complete);
            assert_eq!(seen, (2, wanted.to_owned(), true), "{name}, round {round}");
            assert_eq!(upstream.requests(), round, "{name} was stored");
        }
        // Nor was the connection used again.
        assert_eq!(upstream.connections(), 2, "{name}");
        let log = server.error_log();
        assert!(log.contains(words), "{name}: {log}");
        assert!(log.contains(NOT_STORED), "{name}: {log}");
    }
}

/// They share the one fetch all the same: nobody is cut off for what only its end
/// brought to light.
#[tokio::test]
async fn followers_of_an_upstream_that_says_too_much_get_what_was_promised() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let upstream = FakeHttp::start(move |_| {
        Script::new()
            .raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nfirst")
            .wait_for(&held)
            .raw(",restand more")
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; proxy_cache zone; }",
    )
    .await;
    let mut crowd = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        let request = "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
        client.send(request).await;
        client.receive_until("first").await;
        crowd.push(client);
    }
    assert_eq!(upstream.requests(), 1);
    gate.add_permits(1);
    for mut client in crowd {
        assert_eq!(client.receive_all().await, b",rest");
    }
    gate.add_permits(1);
    assert_eq!(server.target().get("/").await.text(), "first,rest");
    assert_eq!(upstream.requests(), 2);
}

/// Neither the body behind it nor what its fields say.
#[tokio::test]
async fn a_304_with_more_behind_it_freshens_nothing() {
    let upstream = FakeHttp::start(|request| match request.field("if-none-match") {
        "" => Script::page("ETag: \"a\"\r\nX-Accel-Expires: 0\r\nX-Run: first\r\n", "page"),
        _ => Script::new().raw(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nX-Run: lie\r\n\r\nmore",
        ),
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; proxy_cache zone; proxy_cache_revalidate on;\n\
         proxy_cache_valid 1ms; proxy_ignore_headers X-Accel-Expires; }",
    )
    .await;
    server.target().get("/").await;
    for round in 2..=3 {
        // What is fresh for a millisecond only may still be so.
        let reply = loop {
            let reply = server.target().get("/").await;
            if upstream.requests() >= round {
                break reply;
            }
        };
        assert_eq!((reply.status, reply.text()), (200, "page".to_owned()));
        assert_eq!(reply.field("x-run"), "first");
        assert_eq!(upstream.requests(), round);
    }
    let log = server.error_log();
    assert!(
        log.contains("a body with a response that has none"),
        "{log}"
    );
    assert!(log.contains(NOT_STORED), "{log}");
}

/// Peak resident memory of a process.
fn peak_memory_bytes(server: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
    let status = status.expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.expect("VmHWM").parse().expect("a number");
    kilobytes << 10
}

#[tokio::test]
async fn a_hundred_megabytes_of_header_cost_no_memory() {
    const HEAD_BYTES: usize = 100 << 20;
    const MOST_BYTES: u64 = 8 << 20;
    let one_field = "x".repeat(1 << 20);
    let many_fields = "X-Field: and its value\r\n".repeat((1 << 20) / 24);
    for (name, part) in [("one field", one_field), ("many fields", many_fields)] {
        let upstream = FakeHttp::start(move |_| {
            let mut script =
                Script::new().raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nX: ");
            for _ in 0..HEAD_BYTES / part.len() {
                script = script.raw(&part);
            }
            script.raw("\r\n\r\nbody").close()
        })
        .await;
        let server = proxy(
            &upstream,
            "location / { proxy_pass http://UP; proxy_cache zone; }\n location /small { return 200 small; }",
        )
        .await;
        assert_eq!(server.target().get("/small").await.status, 200);
        let before = peak_memory_bytes(&server);
        for round in 1..=2 {
            assert_eq!(server.target().get("/").await.status, 502, "{name}");
            assert_eq!(upstream.requests(), round, "{name}");
        }
        let grown = peak_memory_bytes(&server) - before;
        assert!(grown < MOST_BYTES, "{name}: {grown} bytes");
        let log = server.error_log();
        assert!(
            log.contains("upstream sent too big header"),
            "{name}: {log}"
        );
    }
}

/// It has as long as `proxy_read_timeout` for each byte. One that takes longer
/// never gets to a response that looks whole, and what came of it is not stored.
#[tokio::test]
async fn an_upstream_that_dribbles_is_waited_for_byte_by_byte() {
    let page =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n0123456789";
    let chunks = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n";
    for wire in [page, chunks] {
        let head_end = wire.find("\r\n\r\n").expect("a head") + 4;
        // In the status line, in a field, before the body, in it, before its last byte.
        for stops_at in [5, 30, head_end, head_end + 5, wire.len() - 1] {
            let never = Arc::new(Semaphore::new(0));
            let upstream = FakeHttp::start(move |_| {
                let (said, rest) = wire.split_at(stops_at);
                let script = Script::new().in_pieces_of(1).raw(said);
                script.wait_for(&never).raw(rest)
            })
            .await;
            let server = proxy(
                &upstream,
                "location / { proxy_pass http://UP; proxy_cache zone; proxy_read_timeout 100ms; proxy_next_upstream off; }",
            )
            .await;
            for round in 1..=2 {
                let reply = server.target().get("/").await;
                let is_cut = stops_at >= head_end && !reply.is_complete;
                assert!(reply.status == 504 || is_cut, "{stops_at}: {reply:?}");
                assert_eq!(upstream.requests(), round, "{stops_at}");
            }
            assert!(server.error_log().contains("upstream timed out"));
        }
        let upstream = FakeHttp::start(move |_| Script::new().in_pieces_of(1).raw(wire)).await;
        let server = proxy(
            &upstream,
            "location / { proxy_pass http://UP; proxy_cache zone; }",
        )
        .await;
        for _ in 0..2 {
            assert_eq!(server.target().get("/").await.text(), "0123456789");
        }
        assert_eq!(upstream.requests(), 1);
    }
}

/// Whatever a connection says between two requests answers neither.
#[tokio::test]
async fn an_answer_before_the_request_is_nobodys() {
    let gate = Arc::new(Semaphore::new(0));
    let said = Arc::new(Semaphore::new(1));
    let (held, told) = (gate.clone(), said.clone());
    let upstream = FakeHttp::start(move |request| {
        let page = Script::page("Cache-Control: max-age=60\r\n", &request.target);
        if request.connection > 1 {
            return page;
        }
        page.wait_for(&held)
            .raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil")
            .wait_for(&told)
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; proxy_cache zone; }",
    )
    .await;
    assert_eq!(server.target().get("/first").await.text(), "/first");
    gate.add_permits(1);
    while said.available_permits() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    for _ in 0..2 {
        assert_eq!(server.target().get("/second").await.text(), "/second");
    }
    assert_eq!((upstream.connections(), upstream.requests()), (2, 2));
}

#[tokio::test]
async fn a_response_is_passed_on_while_it_arrives() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let upstream = FakeHttp::start(move |_| {
        Script::new()
            .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            .wait_for(&held)
            .raw("6\r\nsecond\r\n0\r\n\r\n")
    })
    .await;
    for directives in [
        "proxy_buffering off;",
        "",
        "proxy_cache zone; proxy_cache_valid 1h;",
    ] {
        let server = proxy(
            &upstream,
            &format!("location / {{ proxy_pass http://UP; {directives} }}"),
        )
        .await;
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
            .await;
        client.receive_until("first").await;
        gate.add_permits(1);
        let rest = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        assert!(
            rest.ends_with("second\r\n0\r\n\r\n"),
            "{directives}: {rest}"
        );
    }
}

#[tokio::test]
async fn a_request_body_is_passed_on_while_it_arrives() {
    let upstream = telling().await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; proxy_request_buffering off; }",
    )
    .await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await;
    // The upstream hears of it before the rest is there.
    while upstream.connections() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    client.send("3\r\ndef\r\n0\r\n\r\n").await;
    let reply = client.receive(false).await.expect("a response");
    assert!(
        reply.text().ends_with("length= body=abcdef"),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn an_upgrade_makes_a_tunnel_that_outlives_a_reload() {
    let upstream = FakeHttp::start(|request| {
        if request.field("upgrade").is_empty() {
            return Script::page("", "plain");
        }
        Script::new()
            .raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello")
            .echo()
    })
    .await;
    let directives = "location / { proxy_pass http://UP; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }";
    let server = proxy(&upstream, directives).await;
    assert_eq!(server.target().get("/").await.text(), "plain");
    let mut client = server.connect().await;
    // The first frame comes along with the request.
    client
        .send(
            "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\none,",
        )
        .await;
    let head = String::from_utf8_lossy(&client.receive_until("one,").await).into_owned();
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nConnection: upgrade\r\n"), "{head}");
    assert!(head.contains("\r\nUpgrade: echo\r\n"), "{head}");
    assert!(head.contains("hello"), "{head}");
    server.signal("HUP");
    let big = "x".repeat(200_000);
    client.send(format!("{big}end")).await;
    let echoed = client.receive_until("end").await;
    assert_eq!(echoed.len(), big.len() + 3);
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
    assert_eq!((head.status, head.field("x-cache")), (200, "MISS"));
    let part = ask("GET", "Range: bytes=0-2\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "run"));
    assert_eq!(part.field("x-cache"), "HIT");
    let whole = ask("GET", "").await;
    assert_eq!(
        (whole.text().as_str(), whole.field("x-cache")),
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

/// What variables its commands name is not known when the configuration is read.
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

#[tokio::test]
async fn trailers_are_passed_on_where_that_is_asked_for() {
    let upstream = FakeHttp::start(|_| {
        Script::new().raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
        )
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { proxy_pass http://UP; }\n location /on/ { proxy_pass http://UP; proxy_pass_trailers on; }",
    )
    .await;
    for (path, end) in [("/", "0\r\n\r\n"), ("/on/", "0\r\nX-Sum: 1\r\n\r\n")] {
        let mut client = server.connect().await;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
        client.send(request).await;
        let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        assert!(
            received.ends_with(&format!("2\r\nok\r\n{end}")),
            "{path}: {received}"
        );
    }
}

/// The suite of nginx reads what a proxy sends by single reads, which fails now
/// and then when the end of a body leaves in a write of its own.
#[tokio::test]
async fn chunks_that_came_together_are_sent_on_together_and_their_end_with_them() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let http = format!(
        "server {{ listen unix:%%/http; location / {{\n\
         proxy_pass http://{address}; proxy_request_buffering off; }} }}"
    );
    let server = Running::start(PROGRAM, "", &http).await;
    let mut client = server.connect().await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nfirst\r\n4\r\nmore\r\n",
        )
        .await;
    let (mut upstream, _) = listener.accept().await.expect("a connection");
    let mut space = vec![0; 4096];
    let read = upstream.read(&mut space).await.expect("a head");
    let text = String::from_utf8_lossy(&space[..read]).into_owned();
    assert!(text.ends_with("\r\n\r\n9\r\nfirstmore\r\n"), "{text:?}");
    client.send("4\r\nlast\r\n1\r\n!\r\n0\r\n\r\n").await;
    let read = upstream.read(&mut space).await.expect("the rest");
    assert_eq!(&space[..read], b"5\r\nlast!\r\n0\r\n\r\n");
    upstream
        .write_all(b"HTTP/1.1 204 Done\r\n\r\n")
        .await
        .expect("a reader");
    let reply = client.receive(false).await.expect("a response");
    assert_eq!(reply.status, 204);
}

/// A 103, other interim responses around it, and a page once `gate` lets it.
async fn hinting(gate: &Arc<Semaphore>) -> FakeHttp {
    let held = gate.clone();
    FakeHttp::start(move |_| {
        Script::new()
            .raw(
                "HTTP/1.1 102 Processing\r\nX-Kind: other\r\n\r\n\
                 HTTP/1.1 103 \nLink: </style.css>; rel=preload\nX-Hidden: a\nX-Accel-Buffering: no\nDate: now\nConnection: close\n\n\
                 HTTP/1.1 103 Early Hints\r\nServer: nothing to pass on\r\n\r\n\
                 HTTP/1.1 103 Early Hints\r\nLink: </more.css>\r\n\r\n",
            )
            .wait_for(&held)
            .raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npage")
    })
    .await
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n\
                     HTTP/1.1 103 Early Hints\r\nLink: </more.css>\r\n\r\n";

fn get(path: &str, version: &str) -> String {
    format!("GET {path} HTTP/{version}\r\nHost: site.test\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn early_hints_reach_the_client_before_the_response() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = hinting(&gate).await;
    let server = proxy(
        &upstream,
        "proxy_hide_header X-Hidden; early_hints 1;\n\
         location / { proxy_pass http://UP; }\n\
         location /stored/ { proxy_pass http://UP; proxy_cache zone; }\n\
         location /one-of/ { early_hints \"\" 0 $arg_yes; proxy_pass http://UP; }\n\
         location /off/ { early_hints 0; proxy_pass http://UP; }\n\
         location /shown/ { proxy_pass_header Date; proxy_pass http://UP; }",
    )
    .await;
    for path in ["/", "/stored/x", "/one-of/?yes=please"] {
        let mut client = server.connect().await;
        client.send(get(path, "1.1")).await;
        let hints = client.receive_until("more.css>\r\n\r\n").await;
        assert_eq!(String::from_utf8_lossy(&hints), HINTS, "{path}");
        gate.add_permits(1);
        let reply = client.receive(false).await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        assert!(!reply.has("link"), "{path}: {reply:?}");
    }
    gate.add_permits(8);
    for (path, version) in [
        ("/off/", "1.1"),
        ("/one-of/?yes=0", "1.1"),
        // It would take the hints for the response.
        ("/", "1.0"),
        // What is in memory has no hints.
        ("/stored/x", "1.1"),
    ] {
        let mut client = server.connect().await;
        client.send(get(path, version)).await;
        let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        assert!(
            received.starts_with("HTTP/1.1 200 OK\r\n"),
            "{path}: {received}"
        );
        assert!(received.ends_with("\r\n\r\npage"), "{path}: {received}");
    }
    let mut client = server.connect().await;
    client.send(get("/shown/", "1.1")).await;
    let shown = String::from_utf8_lossy(&client.receive_all().await).into_owned();
    assert!(
        shown.contains("rel=preload\r\nDate: now\r\n\r\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn hints_are_for_the_request_itself_and_may_come_while_its_body_arrives() {
    let upstream = FakeHttp::start(|request| {
        let body = match request.target.as_str() {
            "/part" => "part".to_owned(),
            "/page" => "<!--#include virtual=\"/part\" -->".to_owned(),
            _ => String::from_utf8_lossy(&request.body).into_owned(),
        };
        let hint = format!(
            "HTTP/1.1 103 Early Hints\r\nLink: <{}>\r\n\r\n",
            request.target
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Script::new().raw(hint + &head + &body)
    })
    .await;
    let server = proxy(
        &upstream,
        "ssi on; early_hints 1; location / { proxy_pass http://UP; }\n\
         location /streamed { proxy_pass http://UP; proxy_request_buffering off; }",
    )
    .await;
    let mut client = server.connect().await;
    client.send(get("/page", "1.1")).await;
    let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
    let wanted = "HTTP/1.1 103 Early Hints\r\nLink: </page>\r\n\r\nHTTP/1.1 200 OK\r\n";
    assert!(received.starts_with(wanted), "{received}");
    assert_eq!(received.matches(" 103 ").count(), 1, "{received}");
    assert!(received.contains("part"), "{received}");
    for path in ["/", "/streamed"] {
        let mut client = server.connect().await;
        let fields = "Host: site.test\r\nConnection: close\r\nTransfer-Encoding: chunked";
        client
            .send(format!(
                "POST {path} HTTP/1.1\r\n{fields}\r\n\r\n4\r\nsent\r\n"
            ))
            .await;
        client.send("0\r\n\r\n").await;
        let hint = client.receive_until("\r\n\r\n").await;
        assert!(hint.starts_with(b"HTTP/1.1 103 "), "{path}");
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "sent"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn hints_of_a_fetch_that_many_wait_for_go_to_the_one_who_caused_it() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = hinting(&gate).await;
    let server = proxy(
        &upstream,
        "proxy_hide_header X-Hidden; location / { early_hints 1; proxy_pass http://UP; proxy_cache zone; }",
    )
    .await;
    let mut leader = server.connect().await;
    leader.send(get("/", "1.1")).await;
    leader.receive_until("more.css>\r\n\r\n").await;
    let mut follower = server.connect().await;
    follower.send(get("/", "1.1")).await;
    gate.add_permits(1);
    for client in [&mut leader, &mut follower] {
        let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    }
    assert_eq!(upstream.requests(), 1);
}

#[tokio::test]
async fn hints_that_no_response_follows_or_that_are_too_big_are_no_response() {
    let upstream = FakeHttp::start(|request| {
        let hint = |bytes| {
            let link = format!("</{}>", "x".repeat(bytes));
            format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n")
        };
        match request.target.as_str() {
            "/only" => Script::new().raw(hint(10)).close(),
            _ => Script::new()
                .raw(hint(600))
                .raw(hint(600))
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"),
        }
    })
    .await;
    let server = proxy(
        &upstream,
        "location / { early_hints 1; proxy_buffer_size 1k; proxy_pass http://UP; }",
    )
    .await;
    for (path, hints, status) in [("/only", 1, "502 Bad Gateway"), ("/big", 1, "200 OK")] {
        let mut client = server.connect().await;
        client.send(get(path, "1.1")).await;
        let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        let seen = received.matches("HTTP/1.1 103 Early Hints").count();
        assert_eq!(seen, hints, "{path}: {received}");
        let last = received.matches(&format!("HTTP/1.1 {status}\r\n")).count();
        assert_eq!(last, 1, "{path}: {received}");
    }
    assert!(
        server
            .error_log()
            .contains("upstream sent too big early hints")
    );
}
