//! `mayfly serve` for applications that it knows, with a real PHP.

mod behind_proxy;
mod dashboard;
mod htaccess;
pub mod http_upstream;
mod learn;
mod linked_folder;
mod mediawiki;
mod not_found;
mod options;
mod several_applications;
mod symfony;
mod tls;
mod unreadable_folders;
mod wordpress_home;
mod wordpress_plugin;

use std::io::Read as _;
use std::time::Duration;

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::serving::FolderServer;
use testkit::wait::until_or;

use crate::program;

async fn serve(files: &[(&str, &str)], ttl: &str) -> FolderServer {
    FolderServer::start_site(program(), files, &["--ttl", ttl, "--workers", "2"]).await
}

/// Every page is another one; wrong addresses get the answer of WordPress.
const WORDPRESS: &[(&str, &str)] = &[
    (
        "index.php",
        "<?php header('Content-Type: text/html');
        $path = strtok($_SERVER['REQUEST_URI'], '?');
        if ($path == '/favicon.ico') { header('Location: /logo.png', true, 302); exit; }
        if ($path != '/' && $_SERVER['REQUEST_METHOD'] == 'GET') {
            http_response_code(404);
            header('Expires: Wed, 11 Jan 1984 05:00:00 GMT');
            header('Cache-Control: no-cache, must-revalidate, max-age=0');
        }
        echo str_repeat('<p>', 1000), uniqid();",
    ),
    ("wp-load.php", "<?php"),
    ("wp-settings.php", "<?php"),
    ("wp-includes/version.php", "<?php"),
    ("wp-includes/style.css", "body { color: black }"),
];

fn seen(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.x_cache())
}

#[tokio::test]
async fn wrong_addresses_and_their_like_reach_wordpress_once() {
    let server = serve(WORDPRESS, "1h").await;
    let target = server.target();
    for (path, status) in [
        ("/no/such/page", 404),
        ("/wp-content/no.png", 404),
        ("/favicon.ico", 302),
        ("/?replytocom=5", 200),
    ] {
        let first = target.get(path).await;
        assert_eq!(seen(&first), (status, "MISS"), "{path}");
        let second = target.get(path).await;
        assert_eq!(seen(&second), (status, "HIT"), "{path}");
        assert_eq!(first.text(), second.text(), "{path}");
    }
}

#[tokio::test]
async fn whoever_is_logged_in_gets_an_answer_of_their_own_and_a_write_drops_all() {
    let server = serve(WORDPRESS, "1h").await;
    let target = server.target();
    let own = "Cookie: wordpress_logged_in_x=1\r\n";
    for path in ["/a", "/b"] {
        target.get(path).await;
        assert_eq!(seen(&target.get(path).await), (404, "HIT"));
        assert_eq!(seen(&target.get_with(path, own).await), (404, "BYPASS"));
    }
    let home = target.get("/").await.text();
    let written = target.ask("POST", "/new", own, "title=a").await;
    assert_eq!(written.status, 200);
    for path in ["/a", "/b"] {
        assert_eq!(seen(&target.get(path).await), (404, "MISS"));
        assert_eq!(seen(&target.get(path).await), (404, "HIT"));
    }
    assert_eq!(target.get("/").await.text(), home, "other pages stay");
}

#[tokio::test]
async fn pages_and_files_are_compressed() {
    let server = serve(WORDPRESS, "1h").await;
    let target = server.target();
    let plain = target.get("/").await.text();
    for coding in ["br", "zstd", "gzip"] {
        let fields = format!("Accept-Encoding: {coding}\r\n");
        let reply = target.get_with("/", &fields).await;
        assert_eq!(reply.field("content-encoding"), coding);
        assert!(reply.body.len() < 200);
        assert!(expanded(&reply) == plain);
    }
}

pub fn expanded(reply: &Reply) -> String {
    let body = &reply.body[..];
    let mut text = String::new();
    let read = match reply.field("content-encoding") {
        "br" => brotli::Decompressor::new(body, 4096).read_to_string(&mut text),
        "gzip" => flate2::read::GzDecoder::new(body).read_to_string(&mut text),
        _ => zstd::stream::read::Decoder::new(body)
            .and_then(|mut decoder| decoder.read_to_string(&mut text)),
    };
    read.expect("it can be expanded");
    text
}

/// The log names the reason why a crawler keeps the application busy.
#[tokio::test]
async fn a_flood_of_answers_that_are_not_stored_is_told_with_its_reason() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let http = FakeHttp::start(move |_| {
        Script::new()
            .wait_for(&held)
            .raw("HTTP/1.1 404 No\r\nCache-Control: no-cache\r\nContent-Length: 2\r\n\r\nno")
    })
    .await;
    let server = FolderServer::start(program(), &http.url(), &["--ttl", "1s"]).await;
    let mut crawlers = Vec::new();
    for page in 0..60 {
        let mut client = server.connect().await;
        client
            .send(format!("GET /{page} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
            .await;
        crawlers.push(client);
    }
    // Sixty times this is how long the application was busy.
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.add_permits(60);
    for mut client in crawlers {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, 404);
    }
    let line = "answers that are not stored keep the upstream busy";
    // An answer is counted once it has been sent: a client may have it before.
    until_or(|| server.error_log().contains(line), || server.error_log()).await;
    let log = server.error_log();
    assert_eq!(log.matches(line).count(), 1, "{log}");
    assert!(log.contains("for the reason \"no-cache\""), "{log}");
}
