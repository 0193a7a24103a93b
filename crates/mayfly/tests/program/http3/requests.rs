//! Requests without bodies, their variables, fields and lines in the log.

use std::sync::Arc;

use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{held_page, site, site_with};

#[tokio::test]
async fn a_page_its_head_and_its_conditions() {
    let site = site("location / { default_type text/plain; return 200 page; }").await;
    site.server.write("file.txt", "a file\n");
    let client = site.client().await;
    let reply = client.get("/").await;
    assert_eq!((reply.status, &*reply.text()), (200, "page"));
    assert_eq!(reply.field("content-length"), "4");
    assert!(reply.field("server").starts_with("mayfly"));
    assert!(reply.has("date") && !reply.has("connection"));
    let head = client.ask("HEAD", "/", &[], None).await;
    assert_eq!((head.status, head.field("content-length")), (200, "4"));
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn files_with_ranges_and_conditions() {
    let site = site("").await;
    site.server.write("file.txt", "a file\n");
    site.server.write("empty.txt", "");
    let client = site.client().await;
    let reply = client.get("/file.txt").await;
    assert_eq!((reply.status, &*reply.text()), (200, "a file\n"));
    let tag = reply.field("etag").to_owned();
    let part = client
        .ask("GET", "/file.txt", &[("range", "bytes=2-5")], None)
        .await;
    assert_eq!((part.status, &*part.text()), (206, "file"));
    let known = client
        .ask("GET", "/file.txt", &[("if-none-match", &tag)], None)
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(client.get("/empty.txt").await.body, b"");
    assert_eq!(client.get("/none").await.status, 404);
}

#[tokio::test]
async fn variables_and_the_log_say_what_is_spoken() {
    let site = site_with(
        "",
        "log_format test '$remote_addr $request $status $body_bytes_sent $http3$http2 \
         $ssl_protocol $ssl_server_name $connection_requests';\n\
         limit_conn_zone $binary_remote_addr zone=clients:1m;",
        "access_log %%/access.log test; limit_conn clients 10;\n\
         add_header X-Port $server_port; add_header X-Addr $server_addr;\n\
         location / { return 200 '$http3 $server_protocol $scheme $https $host $request_uri \
         $ssl_protocol $ssl_server_name $ssl_alpn_protocol $http_x_a'; }",
    )
    .await;
    let client = site.client().await;
    let reply = client.ask("GET", "/a?b=c", &[("x-a", "1")], None).await;
    assert_eq!(
        reply.text(),
        "h3 HTTP/3.0 https on a.test /a?b=c TLSv1.3 a.test h3 1"
    );
    assert_eq!(reply.field("x-port"), site.address.port().to_string());
    assert_eq!(reply.field("x-addr"), "127.0.0.1");
    let length = reply.body.len();
    let line = format!("127.0.0.1 GET /a?b=c HTTP/3.0 200 {length} h3 TLSv1.3 a.test 1\n");
    until("the line", || site.server.read("access.log") == line).await;
}

#[tokio::test]
async fn a_hundred_requests_at_once_share_a_connection() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |request| held_page(&held, &request.target)).await;
    let site = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let client = Arc::new(site.client().await);
    let asked: Vec<_> = (0..100)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { client.get(&format!("/{number}")).await })
        })
        .collect();
    until("all are at the origin", || origin.requests() == 100).await;
    gate.add_permits(100);
    for (number, asked) in asked.into_iter().enumerate() {
        let reply = asked.await.expect("no panic");
        assert_eq!((reply.status, reply.text()), (200, format!("/{number}")));
    }
}

#[tokio::test]
async fn php_gets_the_request_and_the_cache_keeps_the_response() {
    let php = FakePhp::tcp(|_| {
        fake_php::Script::page("Content-Type: text/plain\r\nX-From: php\r\n", "page")
    })
    .await;
    let http = "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;";
    let location = format!(
        "location / {{ fastcgi_pass {}; fastcgi_param REQUEST_METHOD $request_method;\n\
         fastcgi_cache zone; fastcgi_cache_key $host$request_uri; fastcgi_cache_valid 200 1m;\n\
         add_header X-Cache $upstream_cache_status; }}",
        php.address()
    );
    let site = site_with("", http, &location).await;
    let client = site.client().await;
    for wanted in ["MISS", "HIT", "HIT"] {
        let reply = client.get("/a").await;
        assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "page"));
        assert_eq!(reply.field("x-from"), "php");
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn hints_come_ahead_of_the_response() {
    let origin = FakeHttp::start(|_| {
        Script::new().raw(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage",
        )
    })
    .await;
    let site = site(&format!(
        "early_hints 1; location / {{ proxy_http_version 1.1; proxy_pass {}; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    let hints = exchange.head().await.expect("hints");
    assert_eq!((hints.status, hints.field("link")), (103, "</a.css>"));
    assert_eq!(exchange.reply().await.expect("a page").reply.text(), "page");
}

#[tokio::test]
async fn the_protocol_is_advertised_where_the_configuration_says_so() {
    let site = site(
        "listen unix:%%/http ssl; add_header Alt-Svc 'h3=\":443\"; ma=86400' always;\n\
         return 200 page;",
    )
    .await;
    let client = site.client().await;
    assert_eq!(
        client.get("/").await.field("alt-svc"),
        "h3=\":443\"; ma=86400"
    );
}

#[tokio::test]
async fn variables_say_what_the_client_offered_and_what_its_session_is_called() {
    let site = site("return 200 '$ssl_ciphers|$ssl_curves|$ssl_early_data|$ssl_session_id';").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let said = site.client().await.get("/").await.text();
        let (offered, id) = said.rsplit_once('|').expect("four values");
        assert_eq!(
            offered,
            "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256|\
             X25519MLKEM768:X25519:prime256v1:secp384r1|"
        );
        assert_eq!(id.len(), 64, "{id}");
        ids.push(id.to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}
