//! `metrics`: who sees the numbers, and in which form.

use super::*;

const METRICS: &str = "location = /metrics { metrics; }
    location = /open { metrics; allow all; }
    location = /closed { metrics; deny all; }
    location = /listed { metrics; deny 192.0.2.7; allow 192.0.2.8; }";

async fn metrics() -> (FakePhp, Running) {
    let php = slow_pages().await;
    let server = start(&configuration(&php, METRICS)).await;
    (php, server)
}

/// The status for a request with these fields.
async fn asked(server: &Running, line: &str, fields: &str) -> testkit::client::Reply {
    let mut client = server.connect().await;
    let request = format!("{line} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
    client.send(request).await;
    client
        .receive(line.starts_with("HEAD"))
        .await
        .expect("a response")
}

#[tokio::test]
async fn the_numbers_are_for_this_machine_unless_the_location_says_otherwise() {
    let (_php, server) = metrics().await;
    for (line, fields, expected) in [
        ("GET /metrics", "Host: site.test\r\n", 200),
        ("HEAD /metrics", "Host: site.test\r\n", 200),
        ("GET /metrics", "Host: localhost:8080\r\n", 200),
        ("GET /metrics", "Host: LOCALHOST\r\n", 200),
        ("GET /metrics", "Host: 127.0.0.1\r\n", 200),
        ("GET /metrics", "Host: [::1]:8080\r\n", 200),
        (
            "POST /metrics",
            "Host: site.test\r\nContent-Length: 0\r\n",
            405,
        ),
        // A proxy on this machine asks for somebody else.
        (
            "GET /metrics",
            "Host: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n",
            403,
        ),
        (
            "GET /metrics",
            "Host: site.test\r\nForwarded: for=127.0.0.1\r\n",
            403,
        ),
        ("GET /metrics", "Host: site.test\r\nVia: 1.1 proxy\r\n", 403),
        // A page of somebody else, whose name leads here by now.
        ("GET /metrics", "Host: rebound.example\r\n", 403),
        ("GET /metrics", "Host: localhost.example\r\n", 403),
        ("GET /metrics", "Host: 127.0.0.1.example\r\n", 403),
        ("GET /metrics", "Host: site.test.\r\n", 200),
        (
            "GET http://rebound.example/metrics",
            "Host: site.test\r\n",
            403,
        ),
        (
            "GET /open",
            "Host: rebound.example\r\nX-Forwarded-For: 192.0.2.1\r\n",
            200,
        ),
        // A list of bad addresses does not open it to all others.
        ("GET /listed", "Host: site.test\r\n", 200),
        (
            "GET /listed",
            "Host: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n",
            403,
        ),
        ("GET /closed", "Host: site.test\r\n", 403),
    ] {
        let reply = asked(&server, line, fields).await;
        assert_eq!(reply.status, expected, "{line} {fields}");
        let says_numbers = reply.text().contains("mayfly_requests_total");
        assert_eq!(
            says_numbers,
            expected == 200 && line.starts_with("GET"),
            "{line} {fields}"
        );
    }
}

#[tokio::test]
async fn a_client_gets_the_format_that_it_prefers_and_keeps_nothing() {
    let (_php, server) = metrics().await;
    let site = "Host: site.test\r\n";
    let older = asked(&server, "GET /metrics", site).await;
    assert_eq!(
        older.field("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert!(
        older
            .text()
            .contains("# TYPE mayfly_requests_total counter\n")
    );
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let newer = asked(&server, "GET /metrics", &format!("{site}{accept}")).await;
    let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(newer.field("content-type"), expected);
    assert!(newer.text().ends_with("# EOF\n"));
    for reply in [older, newer] {
        assert_eq!(reply.field("cache-control"), "no-store");
        assert_eq!(reply.field("x-content-type-options"), "nosniff");
        assert_eq!(reply.field("cross-origin-resource-policy"), "same-origin");
    }
}

#[tokio::test]
async fn no_client_can_add_a_series() {
    let (_php, server) = metrics().await;
    let series = async || {
        let text = asked(&server, "GET /metrics", "Host: site.test\r\n")
            .await
            .text();
        let names = text.lines().filter(|line| !line.starts_with('#'));
        let names = names.map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
        names.collect::<Vec<_>>()
    };
    let before = series().await;
    assert!(before.len() > 100, "{}", before.len());
    for (line, fields) in [
        ("GET /x?a=1", "Host: other.example\r\nUser-Agent: a\"b\r\n"),
        ("QUERY /y", "Host: site.test\r\n"),
        ("PURGE /", "Host: site.test\r\n"),
        ("GET /%FF%00", "Host: site.test\r\n"),
    ] {
        asked(&server, line, fields).await;
    }
    assert_eq!(series().await, before);
}
