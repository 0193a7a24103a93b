//! Two hosts in one request: the page is stored under one and made for the other.

use testkit::fake_php::{self, FakePhp};

use super::{showing_requests, start_before};
use crate::start;

async fn text(socket: &std::path::Path, request: &str) -> String {
    let mut client = testkit::client::Client::connect(socket).await;
    client.send(request).await;
    client.receive(false).await.expect("a response").text()
}

#[tokio::test]
async fn the_authority_of_an_absolute_target_replaces_the_host_field() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let socket = server.path("http");
    let attack = "GET http://site.test/a HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    let own = text(&socket, attack).await;
    assert!(
        own.contains("Host: site.test\r\n") && !own.contains("evil.test"),
        "{own}"
    );
    let other = text(&socket, "GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n").await;
    assert_eq!(own, other, "one page, one host");
    let evil = text(&socket, "GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n").await;
    assert!(evil.contains("Host: evil.test\r\n"), "{evil}");
}

#[tokio::test]
async fn an_absolute_target_without_a_path_asks_for_the_root() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let socket = server.path("http");
    let own = text(
        &socket,
        "GET http://site.test?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    assert!(own.starts_with("GET /?x=1 HTTP/1.1\r\n"), "{own}");
}

#[tokio::test]
async fn ports_and_trailing_dots_are_in_the_key_or_gone() {
    let upstream = showing_requests().await;
    let server = start_before(&upstream).await;
    let socket = server.path("http");
    let ask = |host: &str| format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for host in ["site.test:1337", "SITE.test.", "site.test.:1337"] {
        text(&socket, &ask(host)).await;
    }
    let own = text(&socket, &ask("site.test")).await;
    assert!(own.contains("Host: site.test\r\n"), "{own}");
    assert!(
        text(&socket, &ask("site.test:1337"))
            .await
            .contains("Host: site.test:1337\r\n")
    );
}

/// With the default key, which people have who write none.
#[tokio::test]
async fn the_default_key_holds_the_host_that_php_sees() {
    let php = FakePhp::tcp(|request| {
        let seen = format!(
            "{} {}",
            request.param("HTTP_HOST"),
            request.param("REQUEST_URI")
        );
        fake_php::Script::page("Content-Type: text/html\r\n", seen)
    })
    .await;
    let server = start(&format!(
        "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
             server {{ listen unix:%%/http; fastcgi_cache pages; fastcgi_cache_valid 1h;\n\
             fastcgi_param REQUEST_URI $request_uri;\n\
             location / {{ fastcgi_pass {}; }} }}",
        php.address()
    ))
    .await;
    let socket = server.path("http");
    for attack in [
        "GET /a HTTP/1.1\r\nHost: site.test:1337\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: site.test.\r\n\r\n",
        "GET http://site.test/a HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ] {
        text(&socket, attack).await;
    }
    let own = text(&socket, "GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n").await;
    assert_eq!(own, "site.test /a");
}
