//! `101 Switching Protocols`: a proxy before Mayfly takes a 101 for the beginning of a
//! tunnel and looks at nothing behind it. So a client gets a 101 only if it asked for it
//! and Mayfly is a tunnel from then on.

use testkit::client::Client;
use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::running::RunningServer;

use super::start_before;
use crate::start;

const ASKS: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
const SWITCHES: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/// Answers everybody with 101, and repeats the bytes that follow.
async fn switches_always() -> FakeHttp {
    FakeHttp::start(|_| Script::new().raw(SWITCHES).raw("hello ").echo()).await
}

async fn ask(client: &mut Client, path: &str, fields: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
    client.send(request).await;
}

async fn proxy(upstream: &FakeHttp, location: &str) -> RunningServer {
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; proxy_http_version 1.1;\n\
         location / {{ proxy_pass http://{}; {location} }} }}",
        upstream.address()
    );
    start(&http).await
}

const PASSES_ON: &str = "proxy_set_header Upgrade $http_upgrade; \
                         proxy_set_header Connection upgrade;";
const CACHES: &str = "proxy_cache zone; proxy_cache_valid any 1h; proxy_cache_key $uri; \
                      add_header X-Cache $upstream_cache_status always;";

#[tokio::test]
async fn a_101_that_nobody_asked_for_is_a_502() {
    let upstream = switches_always().await;
    for location in [
        String::new(),
        CACHES.to_owned(),
        PASSES_ON.to_owned(),
        format!("{CACHES}{PASSES_ON}"),
        format!("{CACHES} proxy_cache_lock off;"),
        "proxy_buffering off;".to_owned(),
    ] {
        let server = proxy(&upstream, &location).await;
        for fields in ["", "Upgrade: websocket\r\n", "Connection: Upgrade\r\n"] {
            let reply = server.target().get_with("/", fields).await;
            assert_eq!(reply.status, 502, "{location} {fields}");
        }
    }
}

/// The upgrade was asked for, but does not reach the upstream.
#[tokio::test]
async fn a_101_that_was_not_passed_on_as_a_question_is_a_502() {
    let upstream = switches_always().await;
    for location in ["", CACHES] {
        let server = proxy(&upstream, location).await;
        let mut client = server.connect().await;
        ask(&mut client, "/", ASKS).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, 502, "{location}");
    }
}

#[tokio::test]
async fn a_101_of_a_script_is_a_502() {
    let php = FakePhp::tcp(|_| {
        let head = "Status: 101 Switching Protocols\r\nUpgrade: websocket\r\n";
        fake_php::Script::page(head, "tunnel")
    })
    .await;
    let cached = php.cached_site("fastcgi_cache_valid any 1h;");
    for http in [cached.replace("fastcgi_cache zone;", ""), cached] {
        let server = start(&http).await;
        let mut client = server.connect().await;
        ask(&mut client, "/", ASKS).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, 502, "{http}");
    }
}

/// Answers pages, and switches protocols for those who ask.
async fn application() -> FakeHttp {
    FakeHttp::start(|request| match request.field("upgrade") {
        "websocket" => Script::new().raw(SWITCHES).raw("hello ").echo(),
        _ => Script::page("Content-Type: text/html\r\n", "page"),
    })
    .await
}

/// A masked text frame of a client (RFC 6455 §5.2).
fn frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    let mask = [1, 2, 3, 4];
    let masked = text.bytes().zip(mask.iter().cycle()).map(|(a, b)| a ^ b);
    [0x81, 0x80 | length]
        .into_iter()
        .chain(mask)
        .chain(masked)
        .collect()
}

async fn frames_go_both_ways(client: &mut Client) {
    let head = client.receive_until("\r\n\r\n").await;
    let head = String::from_utf8_lossy(&head);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(
        head.to_ascii_lowercase()
            .contains("\r\nupgrade: websocket\r\n"),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase()
            .contains("\r\nconnection: upgrade\r\n"),
        "{head}"
    );
    client.receive_until("hello ").await;
    for text in ["first~", "second~"] {
        let sent = frame(text);
        client.send(&sent).await;
        // The upstream repeats it as it came.
        let mut got = Vec::new();
        while got.len() < sent.len() {
            got.extend(client.receive_some().await);
        }
        assert_eq!(got, sent);
    }
}

#[tokio::test]
async fn websocket_goes_through_serve_past_the_page_that_is_stored() {
    let upstream = application().await;
    let server = start_before(&upstream).await;
    for wanted in ["MISS", "HIT"] {
        assert_eq!(server.target().get("/").await.x_cache(), wanted);
    }
    // Twice: nothing of a tunnel is stored or waited for.
    let mut tunnels = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        ask(&mut client, "/", ASKS).await;
        frames_go_both_ways(&mut client).await;
        tunnels.push(client);
    }
    assert_eq!(server.target().get("/").await.x_cache(), "HIT");
}

#[tokio::test]
async fn upgrades_go_past_a_cache_that_passes_them_on() {
    let upstream = application().await;
    let server = proxy(&upstream, &format!("{CACHES}{PASSES_ON}")).await;
    let mut client = server.connect().await;
    ask(&mut client, "/", ASKS).await;
    frames_go_both_ways(&mut client).await;
    // While the tunnel is open, pages are fetched, stored and served.
    for wanted in ["MISS", "HIT"] {
        assert_eq!(server.target().get("/").await.x_cache(), wanted);
    }
}
