//! Several visitors at the same time, of whom one leads the fetch that all wait for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use testkit::client::Client;
use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::serving::FolderServer;
use testkit::wait::until;
use tokio::sync::Semaphore;

/// Marks text of a visitor.
const MARK: &str = "of-one-visitor";

async fn serve(upstream: &FakeHttp, lifetime: &str) -> FolderServer {
    FolderServer::start(crate::program(), &upstream.url(), &["--ttl", lifetime]).await
}

/// Thirty visitors wait for one page, which then begins a session: each gets one of their
/// own, with or without a cookie of their own.
#[tokio::test]
async fn a_page_that_turns_out_personal_is_shown_to_nobody_who_waited_for_it() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let upstream = FakeHttp::start(move |request: &Request| {
        let number = request.number;
        let fields = format!("Content-Type: text/html\r\nSet-Cookie: session={number}\r\n");
        let page = format!("session {number} {}.", request.field("cookie"));
        Script::new().wait_for(&gate).raw(format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{page}",
            page.len()
        ))
    })
    .await;
    let server = serve(&upstream, "1h").await;
    let mut visitors = Vec::new();
    for number in 0..30 {
        let mut client: Client = server.connect().await;
        let fields = match number % 5 {
            3 => format!("Cookie: login={number}\r\n"),
            4 => "Cookie: _ga=1\r\n".to_owned(),
            _ => String::new(),
        };
        let request = format!("GET / HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
        client.send(request).await;
        visitors.push((number, client));
    }
    // The leader and those who have a cookie of their own.
    until("seven requests", || upstream.requests() >= 7).await;
    opened.add_permits(1000);
    let mut sessions = HashSet::new();
    for (number, mut client) in visitors {
        let reply = client.receive(false).await.expect("a response");
        let text = reply.text();
        assert_ne!(reply.x_cache(), "HIT", "{text}");
        let session = reply.field("set-cookie").replace('=', " ");
        assert!(text.starts_with(&session), "{session}: {text}");
        assert!(sessions.insert(session), "twice: {text}");
        let login = format!("login={number}.");
        assert_eq!(text.contains("login"), text.ends_with(&login), "{text}");
    }
}

/// A page that is stale is renewed because a visitor asks for it, with a request that has
/// nothing of theirs.
#[tokio::test]
async fn a_renewal_carries_nothing_of_who_caused_it() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let upstream = FakeHttp::start(move |request: &Request| {
        seen.lock().expect("heads").push(request.head.clone());
        Script::page("Content-Type: text/html\r\nETag: \"1\"\r\n", "page")
    })
    .await;
    let server = serve(&upstream, "1ms").await;
    let target = server.target();
    target.get("/").await;
    let fields = [
        "X-Forwarded-Host: @\r\n",
        "Accept-Language: @\r\n",
        "Cookie: _ga=@\r\n",
        "If-None-Match: \"@\"\r\n",
        "If-None-Match: \"1\"\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"@\"\r\n",
        "User-Agent: @\r\nReferer: @\r\n",
        "X-Request-Id: @\r\ntraceparent: @\r\n",
    ];
    // Fields that could matter are sent with a visitor's own request, until they are seen to
    // have no effect.
    for line in fields {
        target.get_with("/", &line.replace('@', MARK)).await;
    }
    let own = heads
        .lock()
        .expect("heads")
        .iter()
        .filter(|head| head.contains(MARK))
        .count();
    assert_eq!(own, 2, "a language, and a browser with a referer");
    let mut renewed = 0;
    for round in 0..4 {
        for line in fields {
            let before = upstream.requests();
            let reply = target.get_with("/", &line.replace('@', MARK)).await;
            assert_ne!(reply.x_cache(), "MISS", "{round} {line}");
            renewed += usize::from(matches!(reply.x_cache(), "STALE" | "UPDATING"));
            // The visitor who was shown the stale response has begun a renewal.
            if reply.x_cache() == "STALE" {
                until("another request", || upstream.requests() > before).await;
            }
        }
    }
    assert!(renewed > 4, "{renewed}: hardly anything was renewed");
    let heads = heads.lock().expect("heads");
    assert_eq!(
        heads.iter().filter(|head| head.contains(MARK)).count(),
        own,
        "{heads:#?}"
    );
}

/// A write that succeeds while the page is being made: who asks afterwards is not shown the
/// page from before.
#[tokio::test]
async fn a_page_that_was_begun_before_a_write_is_not_kept_after_it() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let upstream = FakeHttp::start(move |request: &Request| {
        let page = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\n{}",
            request.number
        );
        match request.number {
            1 => Script::new().wait_for(&gate).raw(page),
            _ => Script::new().raw(page),
        }
    })
    .await;
    let server = serve(&upstream, "1h").await;
    let target = server.target();
    let mut first = server.connect().await;
    first
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    until("a request", || upstream.requests() == 1).await;
    let written = target.ask("POST", "/", "", "a=b").await;
    assert_eq!(written.text(), "2");
    opened.add_permits(1);
    assert_eq!(first.receive(false).await.expect("a response").text(), "1");
    assert_eq!(target.get("/").await.text(), "3");
}

/// More than a response may have to be stored.
const LARGE_BYTES: usize = 24 << 20;

/// A response that is too large to store is kept until all who wait for it have it. One of
/// them who did not read kept all others from reading on.
#[tokio::test]
async fn who_does_not_read_does_not_keep_others_from_reading() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let upstream = FakeHttp::start(move |_: &Request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
        let script = Script::new().wait_for(&gate).raw(head);
        script.raw(vec![b'x'; LARGE_BYTES]).close()
    })
    .await;
    let server = serve(&upstream, "1h").await;
    let request = "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    let mut attacker = server.connect().await;
    attacker.send(request).await;
    until("a request", || upstream.requests() == 1).await;
    let mut visitor = server.connect().await;
    visitor.send(request).await;
    // The visitor's request has been read when one that came after it is answered.
    assert_eq!(server.target().ask("TRACE", "/", "", "").await.status, 405);
    opened.add_permits(100);
    let reply = visitor.receive(false).await.expect("a response");
    assert_eq!((reply.is_complete, reply.body.len()), (true, LARGE_BYTES));
}
