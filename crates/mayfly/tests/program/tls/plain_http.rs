//! HTTP without TLS on a port that expects TLS: status 497, which clients see as 400.

use super::{Certificates, get};

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_the_page_of_nginx() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!(reply.status, 400);
    let page = reply.text();
    assert!(
        page.contains("<title>400 The plain HTTP request was sent to HTTPS port</title>"),
        "{page}"
    );
    assert_eq!(client.receive_all().await, b"", "the connection is closed");
    let log = server.error_log();
    assert!(
        log.contains(
            "client sent plain HTTP request to HTTPS port while reading client request headers"
        ),
        "{log}"
    );
    // And the next, with TLS, is served.
    let reply = get(&certificates.client(), &server, "a.test", "/").await;
    assert_eq!(reply.text(), "page");
}

#[tokio::test]
async fn error_page_497_leads_to_https() {
    let certificates = Certificates::new();
    let server = certificates
        .site("error_page 497 =301 https://$host$request_uri; location / { return 200 page; }")
        .await;
    let reply = server.target().get("/path?a").await;
    assert_eq!(reply.status, 301);
    assert_eq!(reply.field("location"), "https://site.test/path?a");
}

#[tokio::test]
async fn a_socket_with_and_a_socket_without_tls_serve_one_site() {
    let certificates = Certificates::new();
    let server = certificates
        .site("listen unix:%%/plain; return 200 \"$scheme $https\";")
        .await;
    let plain = testkit::client::Target(server.path("plain"));
    assert_eq!(plain.get("/").await.text(), "http ");
    let reply = get(&certificates.client(), &server, "a.test", "/").await;
    assert_eq!(reply.text(), "https on");
}
