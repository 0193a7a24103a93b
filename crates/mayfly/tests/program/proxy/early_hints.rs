//! Informational responses, such as early hints (RFC 8297), on their way from an upstream to the client.

use super::*;

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

const HINTS: &str = "HTTP/1.1 102 \r\nX-Kind: other\r\n\r\n\
                     HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n\
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
        // A page from memory has no hints.
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
