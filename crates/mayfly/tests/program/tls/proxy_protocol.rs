//! `listen ... ssl proxy_protocol`: the header of the PROXY protocol comes ahead of the
//! handshake, unencrypted.

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::{Certificates, ask};

const VERSION_1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 443\r\n";
const VERSION_2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x7b\x01\xbb";

#[tokio::test]
async fn headers_of_both_versions_are_read_ahead_of_the_handshake() {
    let certificates = Certificates::new();
    let http = super::site(
        "set_real_ip_from unix:; return 200 \"$proxy_protocol_addr $proxy_protocol_port $scheme $proxy_protocol_server_port\";",
    );
    let http = http.replace("http ssl;", "http ssl proxy_protocol;");
    let server = certificates.start(&http).await;
    let client = certificates.client();
    for header in [VERSION_1, VERSION_2] {
        // Whole, and one byte after another.
        for piece_bytes in [header.len(), 1] {
            let mut stream = UnixStream::connect(server.path("http")).await.unwrap();
            for piece in header.chunks(piece_bytes) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            let connection = client.connect_over(stream, "a.test").await.unwrap();
            let mut client = connection.client;
            for _ in 0..2 {
                let page = ask(&mut client, "a.test", "/").await.text();
                assert_eq!(page, "192.0.2.1 123 https 443");
            }
        }
    }
}

#[tokio::test]
async fn a_handshake_without_the_header_is_refused() {
    let certificates = Certificates::new();
    let http = super::site("return 200 page;").replace("http ssl;", "http ssl proxy_protocol;");
    let server = certificates.start(&http).await;
    let client = certificates.client();
    let connected = client.connect(&server.path("http"), "a.test").await;
    assert!(connected.is_err());
    let log = server.error_log();
    assert!(log.contains("while reading PROXY protocol"), "{log}");
}

#[tokio::test]
async fn plain_http_behind_the_header_gets_400() {
    let certificates = Certificates::new();
    let http = super::site("return 200 page;").replace("http ssl;", "http ssl proxy_protocol;");
    let server = certificates.start(&http).await;
    let mut client = server.connect().await;
    client.send(VERSION_1).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!(reply.status, 400);
    assert!(
        reply
            .text()
            .contains("The plain HTTP request was sent to HTTPS port")
    );
}
