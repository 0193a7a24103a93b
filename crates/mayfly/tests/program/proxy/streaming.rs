//! Bodies that are passed on while they arrive, either way, and the bytes behind them.

use testkit::process::Signal;

use super::*;

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
    // The upstream gets the request before the rest is there.
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
    server.signal(Signal::HUP);
    let big = "x".repeat(200_000);
    client.send(format!("{big}end")).await;
    let echoed = client.receive_until("end").await;
    assert_eq!(echoed.len(), big.len() + 3);
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

/// The suite of nginx reads a proxy's bytes by single reads, which fails now and then
/// when the end of a body leaves in a write of its own.
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
    let server = start(&http).await;
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
