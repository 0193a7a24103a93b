//! Invalid responses of upstreams: they are truncated, refused or waited for, and never stored.

use testkit::process::memory_bytes;

use super::*;

/// Each of these upstreams breaks its word. The client sees an error or a response
/// that does not end, and the next client asks the upstream again.
#[tokio::test]
async fn an_invalid_response_is_never_stored_and_never_looks_whole() {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    #[rustfmt::skip]
    let responses = [
        ("too short", format!("{head}Content-Length: 10\r\n\r\nshort")),
        ("no last chunk", format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n")),
        ("bad chunk size", format!("{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\nshort\r\n0\r\n\r\n")),
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
            format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff5\r\nshort\r\n0\r\n\r\n"),
        ),
        ("two lengths", format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nshort")),
        (
            "a length beside a coding",
            format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n\r\n"),
        ),
        ("a head without end", head.to_owned()),
        ("a head above the limit", format!("{head}X: {}\r\n\r\n", "x".repeat(100_000))),
        ("no HTTP", "hello\r\n\r\n".to_owned()),
        ("nothing", String::new()),
    ];
    for (name, response) in responses {
        let upstream =
            FakeHttp::start(move |_| Script::new().raw(response.as_bytes()).close()).await;
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

/// The client gets as much as was promised, as with nginx. Which part of it is the invalid response
/// is unknown, so that the next client asks again.
#[tokio::test]
async fn an_upstream_that_says_more_than_it_promised_is_cut_and_never_stored() {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    let after_length = "more data than specified in \"Content-Length\" header";
    let after_head = "a body with a response that has none";
    // Name, method of the client, response, what the client gets, words of the log.
    #[rustfmt::skip]
    let responses = [
        (
            "a length too short", "GET", format!("{head}Content-Length: 5\r\n\r\nshort and more"), "short",
            after_length,
        ),
        ("no length", "GET", format!("{head}Content-Length: 0\r\n\r\nshort"), "", after_length),
        (
            "data behind the last chunk", "GET",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n\r\nmore"), "short",
            "data after final chunk",
        ),
        (
            "a second response", "GET",
            format!("{head}Content-Length: 5\r\n\r\nshort{head}Content-Length: 4\r\n\r\nevil"), "short",
            after_length,
        ),
        (
            "a status without a body", "GET", "HTTP/1.1 204 Nothing\r\nX-Accel-Expires: 60\r\n\r\nmore".to_owned(),
            "", after_head,
        ),
        (
            "a HEAD that is asked as a GET", "HEAD", format!("{head}Content-Length: 5\r\n\r\nshort and more"), "",
            after_length,
        ),
    ];
    for (name, method, response, wanted, words) in responses {
        let upstream = FakeHttp::start(move |_| Script::new().raw(response.as_bytes())).await;
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
        // The connection was not used again either.
        assert_eq!(upstream.connections(), 2, "{name}");
        let log = server.error_log();
        assert!(log.contains(words), "{name}: {log}");
        assert!(log.contains(NOT_STORED), "{name}: {log}");
    }
}

/// They share the one fetch all the same: no client is cut off for a fault that only the end
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
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        let request = "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
        client.send(request).await;
        client.receive_until("first").await;
        clients.push(client);
    }
    assert_eq!(upstream.requests(), 1);
    gate.add_permits(1);
    for mut client in clients {
        assert_eq!(client.receive_all().await, b",rest");
    }
    gate.add_permits(1);
    assert_eq!(server.target().get("/").await.text(), "first,rest");
    assert_eq!(upstream.requests(), 2);
}

/// A 304 with more behind it freshens a page neither by the body behind it nor by its fields.
#[tokio::test]
async fn a_304_with_more_behind_it_freshens_nothing() {
    let upstream = FakeHttp::start(|request| match request.field("if-none-match") {
        "" => Script::page("ETag: \"a\"\r\nX-Accel-Expires: 0\r\nX-Run: first\r\n", "page"),
        _ => Script::new().raw(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nX-Run: invalid\r\n\r\nmore",
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
        // A page that is fresh for a millisecond only may still be so.
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
fn peak_memory_bytes(server: &RunningServer) -> u64 {
    memory_bytes(server.pid(), "VmHWM")
}

#[tokio::test]
async fn a_hundred_megabytes_of_header_cost_no_memory() {
    const HEAD_BYTES: usize = 100 << 20;
    const MAX_BYTES: u64 = 8 << 20;
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
        assert!(grown < MAX_BYTES, "{name}: {grown} bytes");
        let log = server.error_log();
        assert!(
            log.contains("upstream sent too big header"),
            "{name}: {log}"
        );
    }
}

/// It has as long as `proxy_read_timeout` for each byte. One that takes longer never gets to a
/// response that looks whole, and its bytes are not stored.
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

/// Bytes that a connection sends between two requests answer neither.
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
