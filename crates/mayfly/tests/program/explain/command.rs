//! `mayfly explain` as it is typed.

use std::process::Command;

use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait::until;

use crate::commands::{code_and_text, output};
use crate::start;

async fn site() -> (FakePhp, RunningServer) {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/cookie" => Script::page("Set-Cookie: a=b\r\nX-Accel-Expires: 60\r\n", "for you"),
        _ => Script::page("X-Accel-Expires: 3600\r\n", "page"),
    })
    .await;
    let server = start(&php.cached_site("fastcgi_cache_bypass $cookie_login;")).await;
    (php, server)
}

async fn typed(server: &RunningServer, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(crate::program());
    // Found by the configuration.
    command
        .arg("explain")
        .arg("-c")
        .arg(server.path("test.conf"));
    command.args(arguments);
    code_and_text(&output(command).await)
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_page_is_explained_before_it_is_asked_for_and_afterwards() {
    let (php, server) = site().await;
    let (exit, text) = typed(&server, &["http://site.test/news"]).await;
    assert_eq!(exit, 0, "{text}");
    has(
        &text,
        &[
            "GET http://site.test/news",
            "site.test, on unix:",
            "asks FastCGI at",
            "nothing is stored for it (MISS)",
            "--ask makes the request",
        ],
    );
    assert_eq!(php.requests(), 0);
    let (exit, text) = typed(&server, &["http://site.test/news", "--ask"]).await;
    assert_eq!(exit, 0, "{text}");
    has(
        &text,
        &[
            "200, MISS, 4 bytes",
            "answered from memory (HIT)",
            "the field X-Accel-Expires",
        ],
    );
    let (_, text) = typed(&server, &["--search", "/news"]).await;
    has(&text, &["site.test/news", "1 found among 1"]);
    let id = text
        .split_whitespace()
        .find(|word| word.ends_with("-zone"))
        .expect("an id");
    let (_, text) = typed(&server, &["--entry", id]).await;
    has(
        &text,
        &[
            "site.test/news",
            "lifetime    60 min, from the field X-Accel-Expires of the response",
        ],
    );
}

#[tokio::test]
async fn a_page_that_is_not_stored_says_why_and_what_helps() {
    let (_php, server) = site().await;
    let (exit, text) = typed(&server, &["http://site.test/", "-H", "Cookie: login=1"]).await;
    assert_eq!(exit, 0, "{text}");
    has(
        &text,
        &[
            "it goes past the cache (BYPASS)",
            "bypass: A configured condition",
            "test.conf:",
            "fastcgi_cache_bypass $cookie_login",
            "advice",
        ],
    );
    server.target().get("/cookie").await;
    let (_, text) = typed(&server, &["http://site.test/cookie"]).await;
    has(
        &text,
        &[
            "set-cookie: The response sets a cookie.",
            "status 200",
            "cache_store_set_cookie",
        ],
    );
    let (_, json) = typed(&server, &["http://site.test/cookie", "--json"]).await;
    let told: control::Explanation = serde_json::from_str(&json).expect("JSON");
    assert_eq!(told.reason.expect("a reason").word, "set-cookie");
}

#[tokio::test]
async fn a_request_is_explained_as_one_from_here_unless_another_address_is_given() {
    let (_php, server) = site().await;
    let (exit, text) = typed(&server, &["http://site.test/"]).await;
    assert_eq!(exit, 0, "{text}");
    has(&text, &["  client      127.0.0.1\n"]);
    let (_, text) = typed(&server, &["http://site.test/", "--from", "2001:db8::1"]).await;
    has(&text, &["  client      2001:db8::1\n"]);
}

#[tokio::test]
async fn wrong_use_and_no_server_are_told_apart() {
    let (_php, mut server) = site().await;
    for (arguments, exit, words) in [
        (
            &["http://site.test/", "-H", "nonsense"][..],
            2,
            "expected NAME: VALUE",
        ),
        (&["/news"], 1, "expected an absolute URL"),
        (&["http://other.test/"], 1, "no site other.test"),
        (
            &["http://site.test/", "-X", "POST", "--ask"],
            1,
            "only GET and HEAD",
        ),
        (&["--entry", "x"], 1, "expected the id"),
    ] {
        let (code, text) = typed(&server, arguments).await;
        assert_eq!(code, exit, "{arguments:?}: {text}");
        has(&text, &[words]);
    }
    server.end().await;
    let (code, text) = typed(&server, &["http://site.test/"]).await;
    assert_eq!(code, 2, "{text}");
}

/// `explain` asks each server of the machine whether it serves a URL.
#[tokio::test]
async fn an_explanation_writes_no_line_about_a_visit_that_nobody_made() {
    let php = FakePhp::tcp(|_| Script::page("", "page")).await;
    let site = php.cached_site("location /closed { deny all; }");
    let server = start(&site).await;
    let (exit, text) = typed(&server, &["http://site.test/closed"]).await;
    assert_eq!(exit, 0, "{text}");
    has(&text, &["403"]);
    assert_eq!(server.target().get("/closed").await.status, 403);
    let lines = || {
        server
            .error_log()
            .matches("access forbidden by rule")
            .count()
    };
    until("the visit is logged", || lines() > 0).await;
    assert_eq!(lines(), 1, "{}", server.error_log());
}
