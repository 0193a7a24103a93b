//! Handshakes of clients that are slow, silent or wrong.

use std::time::{Duration, Instant};

use testkit::client::Client;
use testkit::tls_client::TlsClient;
use testkit::wait::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Certificates, ask, get};

/// Connects through a relay that passes on the client's bytes one at a time.
async fn connect_byte_by_byte(client: &TlsClient, server: &std::path::Path) -> Client {
    let (near, far) = UnixStream::pair().unwrap();
    let (mut from_client, mut to_client) = far.into_split();
    let (mut from_server, mut to_server) = UnixStream::connect(server).await.unwrap().into_split();
    tokio::spawn(async move {
        let mut byte = [0];
        while from_client.read_exact(&mut byte).await.is_ok() {
            if to_server.write_all(&byte).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    client.connect_over(near, "a.test").await.unwrap().client
}

#[tokio::test]
async fn a_handshake_and_requests_that_come_byte_by_byte_are_served() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let mut client = connect_byte_by_byte(&certificates.client(), &server.path("http")).await;
    for _ in 0..3 {
        assert_eq!(ask(&mut client, "a.test", "/").await.text(), "page");
    }
}

/// The first message of a client.
async fn client_hello(client: &TlsClient) -> Vec<u8> {
    let (near, mut far) = UnixStream::pair().unwrap();
    let client = client.clone();
    let connecting = tokio::spawn(async move { client.connect_over(near, "a.test").await.is_ok() });
    let mut head = [0; 5];
    far.read_exact(&mut head).await.unwrap();
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    let mut hello = head.to_vec();
    hello.resize(5 + length, 0);
    far.read_exact(&mut hello[5..]).await.unwrap();
    connecting.abort();
    hello
}

#[tokio::test]
async fn a_client_that_stalls_in_its_handshake_is_closed_after_client_header_timeout() {
    let certificates = Certificates::new();
    let server = certificates
        .site("client_header_timeout 300ms; return 200 page;")
        .await;
    let hello = client_hello(&certificates.client()).await;
    // Before the first byte, within the first message, and behind it.
    for sent in [0, 1, 5, 100, hello.len()] {
        let start = Instant::now();
        let mut client = server.connect().await;
        client.send(&hello[..sent]).await;
        let answer = client.receive_all().await;
        assert_eq!(answer.is_empty(), sent < hello.len(), "{sent}");
        assert!(start.elapsed() >= Duration::from_millis(300), "{sent}");
    }
    let message = "client timed out (110: Connection timed out) while SSL handshaking";
    until("five lines", || {
        server.error_log().matches(message).count() == 5
    })
    .await;
    for line in server
        .error_log()
        .lines()
        .filter(|line| line.contains(message))
    {
        assert!(
            line.contains("[info]") && line.contains(", client: unix:, server: "),
            "{line}"
        );
    }
    let reply = get(&certificates.client(), &server, "a.test", "/").await;
    assert_eq!(reply.text(), "page");
}

/// Sends this instead of a handshake: the alert's number, and the server's log.
async fn answer_to(bytes: &[u8]) -> (Vec<u8>, String) {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let mut client = server.connect().await;
    client.send(bytes).await;
    let answer = client.receive_all().await;
    let end = "while SSL handshaking";
    until("a line", || server.error_log().contains(end)).await;
    let reply = get(&certificates.client(), &server, "a.test", "/").await;
    assert_eq!(reply.text(), "page", "others are served");
    let log = server.error_log();
    let line = log.lines().find(|line| line.contains(end));
    (answer, line.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn garbage_gets_an_alert_and_a_line_at_info() {
    let mut wrong_hello = b"\x16\x03\x01\x00\x08\x01\x00\x00\x04".to_vec();
    wrong_hello.extend([0xff; 4]);
    for bytes in [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"\x16garbage that is no record at all",
        // How a handshake of SSL 2.0 begins.
        b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10and so on, and so forth, and so on",
        &wrong_hello,
    ] {
        let (answer, line) = answer_to(bytes).await;
        assert!(
            answer.starts_with(&[21, 3]) && answer.len() == 7,
            "{bytes:?}: {answer:?}"
        );
        assert_eq!(answer[5], 2, "a fatal alert");
        assert!(line.contains("[info]"), "{line}");
        assert!(line.contains("SSL_do_handshake() failed"), "{line}");
        assert!(line.contains(", client: unix:, server: "), "{line}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_its_handshake_is_noted_at_info() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let hello = client_hello(&certificates.client()).await;
    for sent in [1, 100, hello.len()] {
        let mut client = server.connect().await;
        client.send(&hello[..sent]).await;
        drop(client);
    }
    let message = "while SSL handshaking";
    until("three lines", || {
        server.error_log().matches(message).count() == 3
    })
    .await;
    let log = server.error_log();
    assert!(!log.contains("[error]"), "{log}");
}

#[tokio::test]
async fn bytes_that_are_no_record_behind_the_handshake_end_the_connection() {
    let certificates = Certificates::new();
    let server = certificates.site("return 200 page;").await;
    let (near, far) = UnixStream::pair().unwrap();
    let (mut from_client, mut to_client) = far.into_split();
    let stream = UnixStream::connect(server.path("http")).await.unwrap();
    let (mut from_server, mut to_server) = stream.into_split();
    let (send_garbage, garbage) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
            _ = garbage => {
                let record = [&[23, 3, 3, 0, 100][..], &[7; 100]].concat();
                to_server.write_all(&record).await.unwrap();
                std::future::pending::<()>().await;
            }
        }
    });
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
        drop(to_client);
    });
    let connected = certificates.client().connect_over(near, "a.test").await;
    let mut client = connected.unwrap().client;
    assert_eq!(ask(&mut client, "a.test", "/").await.text(), "page");
    send_garbage.send(()).unwrap();
    assert_eq!(client.receive_all().await, b"");
    // The alert for a record that could not be decrypted.
    assert_eq!(client.error(), Some(std::io::ErrorKind::InvalidData));
}
