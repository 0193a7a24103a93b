//! Requests sent without waiting for answers. Answers from memory leave together;
//! for the client this must make no difference.

use std::sync::Arc;

use testkit::client::Client;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use tokio::sync::Semaphore;

use crate::start;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")
}

/// PHP behind a cache: `/slow` waits for the gate, other pages are there at once.
struct Site {
    gate: Arc<Semaphore>,
    server: RunningServer,
    _php: FakePhp,
}

impl Site {
    async fn new(directives: &str) -> Site {
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let php = FakePhp::tcp(move |request| {
            let path = request.param("REQUEST_URI");
            let page = format!("Content-Type: text/html\r\n\r\npage {path}");
            match path {
                "/slow" => Script::new().wait_for(&held).stdout(page),
                "/large" => Script::new().stdout(page).stdout("x".repeat(40_000)),
                _ => Script::new().stdout(page),
            }
        })
        .await;
        let http = format!(
            "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             log_format line '$request_uri $status $pipe $connection_requests';\n\
             server {{ listen unix:%%/http; server_name site.test; root %%;\n\
             access_log %%/access.log line;\n\
             location / {{ fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri;\n\
             fastcgi_cache zone; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1h; }}\n\
             location /text {{ return 200 \"$uri\"; }}\n\
             location /paced {{ limit_rate 1m; return 200 \"$uri\"; }}\n\
             location /none {{ return 444; }}\n\
             location /file/ {{ alias %%/; }}\n\
             {directives} }}",
            php.address()
        );
        let server = start(&http).await;
        server.write("small.txt", "a small file");
        server.write("large.txt", "y".repeat(100_000));
        for path in ["/a", "/b", "/large"] {
            assert_eq!(server.target().get(path).await.status, 200);
        }
        Site {
            gate,
            server,
            _php: php,
        }
    }

    /// A client that has sent all of `requests` in one go.
    async fn sent(&self, requests: impl AsRef<[u8]>) -> Client {
        let mut client = self.server.connect().await;
        client.send(requests).await;
        client
    }
}

async fn expect(client: &mut Client, path: &str, wanted: &str) {
    let reply = client.receive(path.starts_with("HEAD")).await;
    let reply = reply.unwrap_or_else(|| panic!("an answer to {path}"));
    assert!(reply.is_complete, "{path}");
    let (text, wanted_length) = (reply.text(), wanted.len());
    assert_eq!(text.len(), wanted_length, "{path}");
    assert_eq!(text, wanted, "{path}");
}

#[tokio::test]
async fn hundreds_of_requests_of_every_kind_are_answered_in_order() {
    let site = Site::new("").await;
    let large_page = format!("page /large{}", "x".repeat(40_000));
    let large_file = "y".repeat(100_000);
    let kinds = [
        ("/a", "page /a"),
        ("/text/1", "/text/1"),
        ("/file/small.txt", "a small file"),
        ("/large", &large_page),
        ("/b", "page /b"),
        ("/text/2", "/text/2"),
        ("/paced", "/paced"),
        ("/a", "page /a"),
        ("/file/large.txt", &large_file),
    ];
    let mut requests = String::new();
    // More of the small ones in a row than are gathered at once.
    for _ in 0..300 {
        requests += &get("/a");
    }
    for _ in 0..20 {
        for (path, _) in kinds {
            requests += &get(path);
        }
        requests += "HEAD /b HTTP/1.1\r\nHost: site.test\r\n\r\n";
    }
    requests += &get("/b");
    let mut client = site.sent(requests).await;
    for _ in 0..300 {
        expect(&mut client, "/a", "page /a").await;
    }
    for _ in 0..20 {
        for (path, wanted) in kinds {
            expect(&mut client, path, wanted).await;
        }
        expect(&mut client, "HEAD /b", "").await;
    }
    expect(&mut client, "/b", "page /b").await;
}

#[tokio::test]
async fn what_is_ready_does_not_wait_for_a_slow_answer_behind_it() {
    let site = Site::new("").await;
    let mut client = site
        .sent(format!(
            "{}{}{}{}",
            get("/a"),
            get("/text/1"),
            get("/slow"),
            get("/b")
        ))
        .await;
    // PHP answers only when these have arrived.
    expect(&mut client, "/a", "page /a").await;
    expect(&mut client, "/text/1", "/text/1").await;
    site.gate.add_permits(1);
    expect(&mut client, "/slow", "page /slow").await;
    expect(&mut client, "/b", "page /b").await;
}

#[tokio::test]
async fn what_is_ready_does_not_wait_for_the_rest_of_a_request() {
    let site = Site::new("").await;
    for rest in [
        "GET /b HTT",
        "\r\n",
        "\r\n\r\n",
        "POST /text/1 HTTP/1.1\r\nHost: site.test\r\nContent-Length: 5\r\n\r\nab",
    ] {
        let mut client = site.sent(format!("{}{}{rest}", get("/a"), get("/b"))).await;
        expect(&mut client, "/a", "page /a").await;
        expect(&mut client, "/b", "page /b").await;
    }
}

#[tokio::test]
async fn answers_before_the_end_of_a_connection_arrive() {
    let site = Site::new("location /twice { keepalive_requests 2; return 200 two; }").await;
    for (last, statuses) in [
        (
            "GET /b HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
            &["200", "200", "200"][..],
        ),
        ("GET / HTTP/1.1\r\n\r\n", &["200", "200", "400"]),
        ("no request\r\n\r\n", &["200", "200", "400"]),
        (&get("/none"), &["200", "200"]),
        (&get("/twice"), &["200", "200", "200"]),
        ("GET /text/9\r\n\r\n", &["200", "200", "/text/9"]),
    ] {
        let mut client = site
            .sent(format!(
                "{}{}{last}{}",
                get("/a"),
                get("/text/1"),
                get("/a")
            ))
            .await;
        let all = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        let mut rest = &all[..];
        for status in statuses {
            let at = rest.find(status).unwrap_or_else(|| panic!("{last}: {all}"));
            rest = &rest[at + status.len()..];
        }
        assert_eq!(
            all.matches("HTTP/1.1 ").count(),
            statuses.iter().filter(|status| status.len() == 3).count(),
            "{last}: {all}"
        );
    }
}

#[tokio::test]
async fn each_has_its_line_in_the_log() {
    let site = Site::new("").await;
    let last = "GET /text/2 HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    let mut client = site
        .sent(format!("{}{}{last}", get("/a"), get("/text/1")))
        .await;
    client.receive_all().await;
    let log = std::fs::read_to_string(site.server.path("access.log")).unwrap();
    let lines: Vec<&str> = log.lines().rev().take(3).collect();
    assert_eq!(
        lines,
        ["/text/2 200 p 3", "/text/1 200 p 2", "/a 200 . 1"],
        "{log}"
    );
}
