//! `metrics`: who sees the numbers, and in which form.

use super::*;

const METRICS: &str = "location = /metrics { metrics; }
    location = /open { metrics; allow all; }
    location = /closed { metrics; deny all; }
    location = /listed { metrics; deny 192.0.2.7; allow 192.0.2.8; }";

async fn metrics() -> (FakePhp, RunningServer) {
    let php = slow_pages().await;
    let server = start(&configuration(&php, METRICS)).await;
    (php, server)
}

/// The status for a request with these fields.
async fn asked(server: &RunningServer, line: &str, fields: &str) -> testkit::client::Reply {
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
    #[rustfmt::skip]
    let cases = [
        ("GET /metrics", "Host: site.test\r\n", 200),
        ("HEAD /metrics", "Host: site.test\r\n", 200),
        ("GET /metrics", "Host: localhost:8080\r\n", 200),
        ("GET /metrics", "Host: LOCALHOST\r\n", 200),
        ("GET /metrics", "Host: 127.0.0.1\r\n", 200),
        ("GET /metrics", "Host: [::1]:8080\r\n", 200),
        ("POST /metrics", "Host: site.test\r\nContent-Length: 0\r\n", 405),
        // A proxy on this machine asks for another client.
        ("GET /metrics", "Host: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n", 403),
        ("GET /metrics", "Host: site.test\r\nForwarded: for=127.0.0.1\r\n", 403),
        ("GET /metrics", "Host: site.test\r\nVia: 1.1 proxy\r\n", 403),
        // A page of another site, whose name leads here by now.
        ("GET /metrics", "Host: rebound.example\r\n", 403),
        ("GET /metrics", "Host: localhost.example\r\n", 403),
        ("GET /metrics", "Host: 127.0.0.1.example\r\n", 403),
        ("GET /metrics", "Host: site.test.\r\n", 200),
        ("GET http://rebound.example/metrics", "Host: site.test\r\n", 403),
        ("GET /open", "Host: rebound.example\r\nX-Forwarded-For: 192.0.2.1\r\n", 200),
        // A list of bad addresses does not open it to all others.
        ("GET /listed", "Host: site.test\r\n", 200),
        ("GET /listed", "Host: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n", 403),
        ("GET /closed", "Host: site.test\r\n", 403),
    ];
    for (line, fields, expected) in cases {
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

/// A page of another site, whose name leads to this machine by now: the rules let the address of the
/// browser.
#[tokio::test]
async fn rules_of_a_location_do_not_open_it_to_rebound_names() {
    let php = slow_pages().await;
    let locations = ["metrics", "stub_status", "dashboard"].map(|directive| {
        format!(
            "location = /{directive} {{ {directive}; allow unix:; allow 127.0.0.1; deny all; }}"
        )
    });
    let server = start(&configuration(&php, &locations.join("\n"))).await;
    for path in [
        "/metrics",
        "/stub_status",
        "/dashboard",
        "/dashboard?numbers",
    ] {
        let line = format!("GET {path}");
        for (fields, expected) in [
            ("Host: localhost\r\n", 200),
            ("Host: localhost\r\nAccept-Language: en\r\n", 200),
            ("Host: rebound.example\r\n", 403),
            ("Host: rebound.example\r\nAccept-Language: en\r\n", 403),
            // A script of another site.
            ("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
            ("Host: localhost\r\nOrigin: http://other.example\r\n", 403),
            // A link there, which its user has followed.
            (
                "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\
                 Sec-Fetch-Dest: document\r\n",
                200,
            ),
        ] {
            let reply = asked(&server, &line, fields).await;
            assert_eq!(reply.status, expected, "{path} {fields}");
        }
    }
}

/// Other people have domains on the machine, and lead them where they like.
#[tokio::test]
async fn the_name_of_another_server_opens_nothing() {
    let other = "server { listen unix:%%/other; server_name other.example; return 200 other; }";
    let php = slow_pages().await;
    let http = format!("{}\n{other}", configuration(&php, METRICS));
    let server = start(&http).await;
    for (host, expected) in [("site.test", 200), ("other.example", 403)] {
        let reply = asked(&server, "GET /metrics", &format!("Host: {host}\r\n")).await;
        assert_eq!(reply.status, expected, "{host}");
    }
}

/// A list of bad addresses, and a password, for a whole site.
#[tokio::test]
async fn lines_around_a_location_open_nothing_for_the_operator() {
    let php = slow_pages().await;
    let inside = |rules: &str| {
        ["metrics", "stub_status", "dashboard", "cache_purge_api"]
            .map(|directive| format!("location = /{directive} {{ {directive}; {rules} }}"))
            .join("\n")
    };
    let around = "deny 192.0.2.7; allow all;\n";
    for (server_rules, own_rules, expected) in [
        (around, "", 403),
        (
            "satisfy any; allow all;\n",
            "auth_basic x; auth_basic_user_file %%/users;",
            403,
        ),
        ("satisfy any;\n", "auth_request /ask;", 200),
        ("auth_request /ask;\n", "", 403),
        ("", "allow 192.0.2.0/24;", 403),
        ("", "deny 192.0.2.0/24;", 403),
        (around, "deny 192.0.2.0/24; allow all;", 200),
        (around, "auth_request /ask;", 200),
    ] {
        let locations = format!(
            "{server_rules}{}\nlocation = /ask {{ return 204; }}",
            inside(own_rules)
        );
        let server = start(&configuration(&php, &locations)).await;
        server.write("users", "me:{PLAIN}word\n");
        for path in ["/metrics", "/stub_status", "/dashboard?numbers"] {
            let forwarded = "Host: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n";
            let reply = asked(&server, &format!("GET {path}"), forwarded).await;
            assert_eq!(reply.status, expected, "{path} {server_rules} {own_rules}");
        }
        let body = r#"{"everything":true}"#;
        let fields = "Content-Type: application/json\r\nX-Forwarded-For: 192.0.2.1\r\n";
        let target = server.target();
        let reply = target.ask("POST", "/cache_purge_api", fields, body).await;
        assert_eq!(reply.status, expected, "{server_rules} {own_rules}");
    }
}

#[tokio::test]
async fn each_field_by_which_a_proxy_tells_of_its_client_counts() {
    let (_php, server) = metrics().await;
    for field in [
        "X_Forwarded_For: 192.0.2.1",
        "X-Forwarded-For:",
        "Forwarded:",
        "CF-Connecting-IP: 192.0.2.1",
        "True-Client-IP: 192.0.2.1",
        "X-Client-IP: 192.0.2.1",
        "X_Real_IP: 192.0.2.1",
        "X.Real.IP: 192.0.2.1",
        "X-Forwarded: 192.0.2.1",
        "Fastly-Client-IP: 192.0.2.1",
        "CDN-Loop: cdn",
    ] {
        let fields = format!("Host: site.test\r\n{field}\r\n");
        let reply = asked(&server, "GET /metrics", &fields).await;
        assert_eq!(reply.status, 403, "{field}");
    }
    let fields = "Host: site.test\r\nX-Membership: 1\r\nProxy-Connection: keep-alive\r\n";
    assert_eq!(asked(&server, "GET /metrics", fields).await.status, 200);
}
