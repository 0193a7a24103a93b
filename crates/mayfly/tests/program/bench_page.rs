//! `mayfly bench --page`: a page with all that it needs, loaded as a browser loads it.

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::process::free_port;
use tokio::sync::Semaphore;

use crate::commands::output;
use crate::tls::Certificates;
use crate::{gzip, start};

async fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::program_with_tools());
    command.arg("bench").args(arguments);
    output(command).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn report(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat()).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn median(page: &Value, kind: &str, figure: &str) -> f64 {
    let value = &page[kind][figure]["median"];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no {figure}: {page}"))
}

/// The page of a WordPress theme, in short.
const PAGE: &str = r#"<!DOCTYPE html><html><head>
<link rel="stylesheet" href="/wp-includes/block.css?ver=6">
<link rel="stylesheet" media="print" href="/print.css">
<link rel="stylesheet" href="https://fonts.cdn.test/css?family=A">
<style>@font-face { font-family: Body; src: url(/body.woff2) }
@font-face { font-family: Unused; src: url(/unused.woff2) }
:root { --font: "Body", serif } body { font-family: var(--font) }</style>
<script src="/jquery.js"></script><script defer src="/defer.js"></script>
<script type="application/ld+json">{"image": "/not.png"}</script>
</head><body class="home">
<img src="/small.png" srcset="/small.png 300w, /large.png 1400w" sizes="(max-width: 1400px) 100vw, 1400px">
<picture><source type="image/webp" srcset="/photo.webp"><img src="/photo.png"></picture>
<img loading="lazy" src="/below.png">
<noscript><img src="/tracker.gif"></noscript>
<div style="background: url(/inline.png)"></div>
<script>document.write('<img src="/written.png">')</script>
</body></html>"#;

/// Everything that the page needs of its own host, in the order of names.
const NEEDED: [&str; 13] = [
    "/",
    "/base.css",
    "/body.woff2",
    "/defer.js",
    "/favicon.ico",
    "/hero.png",
    "/inline.png",
    "/jquery.js",
    "/large.png",
    "/photo.webp",
    "/print.css",
    "/wp-includes/block.css?ver=6",
    "/wp-includes/part.png",
];

fn answer(request: &Request) -> Script {
    let unchanged = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
    match request.target.as_str() {
        "/" => Script::page(
            "Content-Type: text/html\r\nContent-Encoding: gzip\r\nCache-Status: test; hit\r\n\
             Cache-Control: no-store\r\nSet-Cookie: visitor=one; HttpOnly\r\n",
            gzip(PAGE),
        ),
        "/wp-includes/block.css?ver=6" => Script::page(
            "Content-Type: text/css\r\nCache-Control: max-age=600\r\n",
            "@import '/base.css'; .home::before { content: url(part.png) } .gone { background: url(/gone.png) }",
        ),
        "/base.css" => Script::page(
            "Content-Type: text/css\r\nCache-Control: max-age=600\r\n",
            "body { background: url(hero.png) }",
        ),
        "/jquery.js" if !request.field("if-none-match").is_empty() => Script::new().raw(unchanged),
        "/jquery.js" => Script::page("ETag: \"a\"\r\nCache-Control: no-cache\r\n", "x()"),
        _ => Script::page("Cache-Control: max-age=600\r\n", "bytes"),
    }
}

#[tokio::test]
async fn a_page_is_loaded_with_what_a_browser_would_ask_for_cold_and_warm() {
    let asked: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let log = asked.clone();
    let server = FakeHttp::start(move |request| {
        let cookie = request.field("cookie").to_owned();
        let mut log = log.lock().expect("no panic");
        log.push((request.target.clone(), cookie));
        answer(request)
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let url = format!("{}/", server.url());
    let (har, drawing) = (file("load.har"), file("load.html"));
    let report = report(&[
        "--page", &url, "--runs", "1", "--har", &har, "--report", &drawing,
    ])
    .await;
    let asked = asked.lock().expect("no panic").clone();
    let (cold, warm) = asked.split_at(NEEDED.len());
    let mut targets: Vec<&str> = cold.iter().map(|it| it.0.as_str()).collect();
    targets.sort_unstable();
    assert_eq!(targets, NEEDED);
    let first = cold.first().expect("a request");
    assert_eq!((first.0.as_str(), first.1.as_str()), ("/", ""));
    assert!(cold[1..].iter().all(|it| it.1 == "visitor=one"), "{cold:?}");
    let mut targets: Vec<&str> = warm.iter().map(|it| it.0.as_str()).collect();
    targets.sort_unstable();
    assert_eq!(targets, ["/", "/jquery.js"]);

    let page = &report["pages"][0];
    for (kind, figure, expected) in [
        ("cold", "requests", 13.0),
        ("cold", "browser_cache", 0.0),
        ("cold", "server_memory", 1.0),
        ("warm", "requests", 2.0),
        ("warm", "unchanged", 1.0),
        ("warm", "browser_cache", 11.0),
        ("warm", "failed", 0.0),
    ] {
        assert_eq!(median(page, kind, figure), expected, "{kind} {figure}");
    }
    let left_out = &page["cold_load"]["left_out"];
    assert_eq!(left_out["third_party"]["fonts.cdn.test"], 1);
    assert_eq!(left_out["lazy"], 1);
    assert!(median(page, "cold", "render_blocking_ms") <= median(page, "cold", "everything_ms"));
    assert!(median(page, "cold", "decoded_bytes") > PAGE.len() as f64);

    let har: Value = serde_json::from_slice(&std::fs::read(&har).expect("a file")).expect("JSON");
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 26);
    assert!(!har.to_string().contains("visitor=one"));
    let drawing = std::fs::read_to_string(&drawing).expect("a file");
    assert_eq!(drawing.matches("<svg").count(), 2);
}

#[tokio::test]
async fn six_connections_load_a_page_over_http1_and_what_blocks_rendering_goes_first() {
    let images: String = (0..20).map(|it| format!("<img src=/{it}.png>")).collect();
    let page = format!("<head></head>{images}<link rel=stylesheet href=/a.css>");
    let gate = Arc::new(Semaphore::new(0));
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let (open, log) = (gate.clone(), order.clone());
    let server = FakeHttp::start(move |request| {
        log.lock().expect("no panic").push(request.target.clone());
        match request.target.as_str() {
            "/" => Script::page("Content-Type: text/html\r\n", &page),
            _ => Script::new()
                .wait_for(&open)
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        }
    })
    .await;
    let url = format!("{}/", server.url());
    let loading = tokio::spawn(async move { report(&["--page", &url, "--runs", "1"]).await });
    testkit::wait::until("six requests beside the page", || server.requests() == 7).await;
    assert_eq!(server.connections(), 6);
    let first: Vec<String> = order.lock().expect("no panic").clone();
    assert!(first.contains(&"/a.css".to_owned()), "{first:?}");
    gate.add_permits(1000);
    let report = loading.await.expect("a report");
    assert_eq!(median(&report["pages"][0], "cold", "connections"), 6.0);
    assert_eq!(median(&report["pages"][0], "cold", "requests"), 23.0);
}

#[tokio::test]
async fn one_connection_of_http2_loads_a_page_over_tls() {
    let certificates = Certificates::new();
    let port = free_port();
    let images: String = (0..30).map(|it| format!("<img src=/{it}.svg>")).collect();
    let server = certificates
        .start(&format!(
            "server {{ listen unix:%%/http; listen 127.0.0.1:{port} ssl; http2 on;\n\
             ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key; root %%; default_type text/html;\n\
             location ~ svg$ {{ return 200 x; }} location = /favicon.ico {{ return 404; }} }}"
        ))
        .await;
    std::fs::write(server.path("index.html"), images).expect("a file");
    let url = format!("https://127.0.0.1:{port}/");
    let report = report(&["--page", &url, "--runs", "2"]).await;
    let page = &report["pages"][0];
    assert_eq!(median(page, "cold", "connections"), 1.0);
    assert_eq!(median(page, "cold", "requests"), 32.0);
    assert_eq!(median(page, "cold", "failed"), 1.0);
    let resources = page["cold_load"]["resources"]
        .as_array()
        .expect("resources");
    for resource in resources {
        assert_eq!(resource["answer"]["version"], "HTTP/2", "{resource}");
    }
    let connect = &resources[0]["times"]["connect"];
    assert!(
        connect["encrypted"].as_f64() > connect["connected"].as_f64(),
        "{connect}"
    );
}

#[tokio::test]
async fn other_hosts_are_asked_only_where_the_user_allows_it() {
    let secrets: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = secrets.clone();
    let other = FakeHttp::start(move |request| {
        let secret = request.field("authorization").to_owned();
        log.lock().expect("no panic").push(secret);
        Script::page("Content-Type: image/png\r\n", "x")
    })
    .await;
    let address = other.url().replace("127.0.0.1", "localhost");
    let address_of_other = address.replace("http://", "");
    let page = format!("<img src={address}/a.png><img src={address}/b.png>");
    let server = FakeHttp::start(move |request| match request.target.as_str() {
        "/away" => Script::new().raw(format!(
            "HTTP/1.1 302 Found\r\nLocation: {address}/\r\nContent-Length: 0\r\n\r\n"
        )),
        "/here" => {
            Script::new().raw("HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
        }
        _ => Script::page("Content-Type: text/html\r\n", &page),
    })
    .await;
    let url = |path: &str| format!("{}{path}", server.url());
    let loaded = report(&["--page", &url("/here"), "--runs", "1"]).await;
    assert_eq!(other.requests(), 0);
    let left_out = &loaded["pages"][0]["cold_load"]["left_out"]["third_party"];
    assert_eq!(left_out[address_of_other.as_str()], 2);
    let away = bench(&["--page", &url("/away"), "--runs", "1"]).await;
    let said = text(&away.stderr);
    assert_eq!(away.status.code(), Some(1), "{said}");
    assert!(
        said.contains("leads to another server, localhost"),
        "{said}"
    );
    assert_eq!(other.requests(), 0);
    for path in ["/here", "/away"] {
        let page = url(path);
        let secret = "Authorization: Basic secret";
        let arguments = [
            "--page",
            &page,
            "--runs",
            "1",
            "--third-party",
            "-H",
            secret,
        ];
        report(&arguments).await;
    }
    let secrets = secrets.lock().expect("no panic").clone();
    assert!(
        secrets.len() >= 3 && secrets.iter().all(String::is_empty),
        "{secrets:?}"
    );
}

#[tokio::test]
async fn other_ports_of_the_pages_own_host_are_asked_only_where_the_user_names_them() {
    let other = FakeHttp::start(|_| Script::page("Content-Type: text/html\r\n", "x")).await;
    let address = other.url();
    let server = FakeHttp::start(move |request| match request.target.as_str() {
        "/away" => Script::new().raw(format!(
            "HTTP/1.1 302 Found\r\nLocation: {address}/\r\nContent-Length: 0\r\n\r\n"
        )),
        _ => {
            let named = format!(
                "<link rel=stylesheet href={address}/a.css><img src={address}/a.png>\
                 <iframe src={address}/frame></iframe><script src={address}/a.js></script>"
            );
            let link = format!("Link: <{address}/b.css>; rel=preload; as=style\r\n");
            Script::page(&format!("Content-Type: text/html\r\n{link}"), named)
        }
    })
    .await;
    let url = server.url() + "/";
    let loaded = report(&["--page", &url, "--runs", "1"]).await;
    assert_eq!(other.requests(), 0);
    let left_out = &loaded["pages"][0]["cold_load"]["left_out"]["third_party"];
    let address = other.url().replace("http://", "");
    assert_eq!(left_out[address.as_str()], 5, "{left_out}");
    let away = bench(&["--page", &(url.clone() + "away"), "--runs", "1"]).await;
    let said = text(&away.stderr);
    assert!(said.contains("leads to another server"), "{said}");
    assert_eq!(other.requests(), 0);
    let named = other.url() + "/";
    report(&["--page", &url, "--beside", &named, "--runs", "1"]).await;
    assert!(other.requests() > 5, "{}", other.requests());
}

#[tokio::test]
async fn two_addresses_are_loaded_in_turns_and_shown_side_by_side() {
    let (port, other) = (free_port(), free_port());
    let _server = start(&format!(
        "default_type text/html;\n\
         server {{ listen unix:%%/http; listen 127.0.0.1:{port}; location / {{ return 200 '<img src=/a.png>'; }} }}\n\
         server {{ listen 127.0.0.1:{other}; location / {{ return 503; }} }}"
    ))
    .await;
    let (first, second) = (
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{other}/"),
    );
    let output = bench(&["--page", &first, "--beside", &second, "--runs", "2"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for words in ["cold [1]", "warm [2]", "everything there", "/a.png", "503"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        said.lines().all(|line| line.chars().count() <= 200),
        "{said}"
    );
}

#[tokio::test]
async fn what_cannot_be_loaded_is_said_plainly() {
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let circle = FakeHttp::start(|_| {
        Script::new().raw("HTTP/1.1 302 Found\r\nLocation: /?again\r\nContent-Length: 0\r\n\r\n")
    })
    .await;
    let circle = circle.url() + "/";
    let password = "http://me:secret@127.0.0.1/";
    for (arguments, status, words) in [
        (vec!["--page", &nobody], 1, "no connection to 127.0.0.1"),
        (vec!["--page", &circle], 1, "redirect"),
        (vec!["--page", "ftp://a/"], 1, "expected http://"),
        (vec!["--page", "localhost:80"], 1, "expected http://"),
        (vec!["--page", password], 1, "password"),
        (
            vec!["--page", &nobody, "-H", "nonsense"],
            1,
            "expected a field",
        ),
        (vec!["--page", &nobody, "--rate", "1"], 2, "--rate"),
        (
            vec!["--page", &nobody, "--viewport", "big"],
            2,
            "WIDTHxHEIGHT",
        ),
        (vec![&nobody, "--har", "x"], 2, "--har"),
        (vec![&nobody, "--runs", "2"], 2, "--runs"),
        (vec!["--page", &nobody, "--runs", "1000"], 2, "--runs"),
    ] {
        let output = bench(&arguments).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
