//! Stored responses: a response stored by one version of HTTP is given to the
//! other.

use testkit::client::Reply;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait::until;

use super::client;
use crate::start;

async fn cached(php: &FakePhp) -> RunningServer {
    let site = php.cached_site("fastcgi_cache_valid 200 1m; fastcgi_cache_lock on;");
    start(&format!("http2 on;\n{site}")).await
}

#[tokio::test]
async fn a_stored_response_is_given_to_both_versions() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "Content-Type: text/plain\r\nX-From: php\r\nKeep-Alive: timeout=5\r\n",
            "page",
        )
    })
    .await;
    let server = cached(&php).await;
    let mut client = client(&server).await;
    for wanted in ["MISS", "HIT"] {
        let reply = client.get("/a").await;
        assert_eq!((reply.x_cache(), reply.text().as_str()), (wanted, "page"));
        assert_eq!(reply.field("x-from"), "php");
        assert!(!reply.has("keep-alive") && !reply.has("connection"));
    }
    assert_eq!(server.target().get("/a").await.x_cache(), "HIT");
    assert_eq!(server.target().get("/b").await.x_cache(), "MISS");
    assert_eq!(client.get("/b").await.x_cache(), "HIT");
    let head = client.ask("HEAD", "/b", &[], None).await;
    assert_eq!((head.x_cache(), head.field("content-length")), ("HIT", "4"));
    let part = client
        .ask("GET", "/b", &[("range", "bytes=1-2")], None)
        .await;
    assert_eq!((part.status, part.text().as_str()), (206, "ag"));
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn requests_for_one_page_are_collapsed_and_outlive_the_stream_that_leads() {
    let (php, gate) = FakePhp::gated("", "Content-Type: text/plain\r\n\r\npage").await;
    let server = cached(&php).await;
    let mut client = client(&server).await;
    let (_, mut leader) = client.begin("GET", "/", &[], true).await;
    until("it is at PHP", || php.requests() == 1).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(client.begin("GET", "/", &[], true).await.0);
    }
    leader.reset();
    // The reset and the rest have been read once another request is answered.
    let missing = client.ask("GET", "/", &[("x-a", "b")], None);
    gate.add_permits(100);
    assert_eq!(missing.await.text(), "page");
    for incoming in waiting {
        assert_eq!(incoming.reply().await.expect("whole").text(), "page");
    }
    assert!(php.requests() <= 2, "{}", php.requests());
}

#[tokio::test]
async fn a_large_stored_response_is_whole_on_many_streams() {
    let page: String = (0..40_000).map(|nth| format!("{nth:05} ")).collect();
    let body = page.clone();
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .stdout("\r\n")
            .stdout(&body[..60_000])
            .stdout(&body[60_000..120_000])
            .stdout(&body[120_000..180_000])
            .stdout(&body[180_000..])
    })
    .await;
    let server = cached(&php).await;
    let mut client = client(&server).await;
    assert_eq!(client.get("/").await.text(), page);
    let mut waiting = Vec::new();
    for _ in 0..50 {
        waiting.push(client.begin("GET", "/", &[], true).await.0);
    }
    for incoming in waiting {
        let reply = incoming.reply().await.expect("whole");
        assert_eq!((reply.x_cache(), reply.body.len()), ("HIT", page.len()));
    }
}

#[tokio::test]
async fn the_date_and_the_server_field_of_an_application_are_sent_once() {
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    let php = FakePhp::tcp(|_| {
        Script::page(
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: app\r\n",
            "page",
        )
    })
    .await;
    let address = php.address();
    let server = super::site_with(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;",
        &format!(
            "location /passed {{ fastcgi_pass {address}; }} location /hidden {{ fastcgi_pass {address};\n\
             fastcgi_hide_header Date; fastcgi_hide_header Server; }}\n\
             location /stored {{ fastcgi_pass {address}; fastcgi_cache pages; fastcgi_cache_key $uri;\n\
             fastcgi_cache_valid 1h; }}"
        ),
    )
    .await;
    let mut client = client(&server).await;
    for path in ["/passed", "/stored", "/stored"] {
        let replies = [client.get(path).await, server.target().get(path).await];
        for reply in replies {
            assert_eq!(values(&reply, "date"), [DATE], "{path}");
            assert_eq!(values(&reply, "server"), ["app"], "{path}");
        }
    }
    let reply = client.get("/hidden").await;
    for (name, own) in [("date", DATE), ("server", "app")] {
        let values = values(&reply, name);
        assert!(values.len() == 1 && values != [own], "{name}: {values:?}");
    }
}

/// All values of a field.
fn values<'a>(reply: &'a Reply, name: &str) -> Vec<&'a str> {
    let fields = reply.fields.iter().filter(|(field, _)| field == name);
    fields.map(|(_, value)| value.as_str()).collect()
}
