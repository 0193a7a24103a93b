//! Bounds on the server's work for clients: first packets, handshakes, requests that are taken back,
//! frames, responses that no client takes.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use testkit::fake_http::FakeHttp;
use testkit::http3::{QuicClient, destination, frame, headers};
use testkit::wait::{TIMEOUT, until};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

use super::ending::code_of;
use super::handshake::first_answer;
use super::{GET, Site, held_page, site};

/// A socket that speaks with the server alone.
async fn socket_to(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    socket.connect(address).await.expect("the server");
    socket
}

/// Begins this number of connections, goes on with none, and waits until the server has answered
/// each.
async fn begin_and_leave(site: &Site, count: usize) {
    let authority = &site.certificates.authority;
    let packets = QuicClient::first_packets(authority, "a.test", count).await;
    let socket = socket_to(site.address).await;
    let (mut answered, mut buffer) = (HashSet::new(), [0; 2048]);
    for packet in packets {
        socket.send(&packet).await.expect("sent");
        let before = answered.len();
        while answered.len() == before {
            let received = tokio::time::timeout(TIMEOUT, socket.recv(&mut buffer)).await;
            let length = received.expect("an answer in time").expect("a packet");
            // Packets of the server behind the handshake have a short header.
            if buffer[0] & LONG_HEADER != 0 {
                answered.insert(destination(&buffer[..length]));
            }
        }
    }
}

/// The form of a packet, and the type of one with a long header (RFC 9000 §17.2).
const LONG_HEADER: u8 = 0x80;
const TYPE: u8 = 0x30;
const INITIAL: u8 = 0x00;
const RETRY: u8 = 0x30;

#[tokio::test]
async fn beside_many_unfinished_handshakes_a_client_must_show_its_address() {
    let site = site("return 200 page;").await;
    begin_and_leave(&site, 200).await;
    assert_eq!(first_answer(&site).await & TYPE, INITIAL);
    begin_and_leave(&site, 56).await;
    assert_eq!(first_answer(&site).await & TYPE, RETRY);
}

#[tokio::test]
async fn a_handshake_that_does_not_go_on_has_its_time() {
    let site = site("client_header_timeout 300ms; return 200 page;").await;
    begin_and_leave(&site, 3).await;
    let message = "client timed out (110: Connection timed out) while SSL handshaking";
    until("three lines", || {
        site.server.error_log().matches(message).count() == 3
    })
    .await;
    assert_eq!(site.client().await.get("/").await.text(), "page");
}

#[tokio::test]
async fn a_connection_without_a_first_request_has_its_time() {
    let site = site("client_header_timeout 300ms; return 200 page;").await;
    let client = site.client().await;
    assert_eq!(code_of(&client.ended().await), Some(0x100), "H3_NO_ERROR");
}

/// Returns the number of accepted connections in the status.
fn accepted(status: &str) -> usize {
    let line = status.lines().nth(2).unwrap_or_default();
    let first = line.split_whitespace().next().unwrap_or_default();
    first.parse().expect("a number")
}

/// Handshakes are made one at a time, with turns for others in between: a request that came
/// behind many first packets is answered before most of them.
#[tokio::test]
async fn a_request_does_not_wait_for_all_handshakes_that_came_before_it() {
    const HANDSHAKES: usize = 40;
    let site = site("stub_status;").await;
    let client = site.client().await;
    let mut overtaken = Vec::new();
    // A client that sends them so slowly that the server is done with each has seen nothing.
    for _ in 0..5 {
        let authority = &site.certificates.authority;
        let packets = QuicClient::first_packets(authority, "a.test", HANDSHAKES).await;
        let before = accepted(&client.get("/").await.text());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for packet in packets {
            socket.send_to(&packet, site.address).expect("sent");
        }
        let all = before + HANDSHAKES;
        let mut after = accepted(&client.get("/").await.text());
        overtaken.push(all - after);
        if overtaken.last() > Some(&(HANDSHAKES / 2)) {
            return;
        }
        let start = Instant::now();
        while after < all {
            after = accepted(&client.get("/").await.text());
            assert!(start.elapsed() < TIMEOUT, "{after} of {all}");
        }
    }
    panic!("each waited for most of {HANDSHAKES}: {overtaken:?}");
}

#[tokio::test]
async fn requests_that_go_on_after_a_reset_count_as_open() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let site = site(&format!(
        "http3_max_concurrent_streams 4;\n\
         location / {{ proxy_ignore_client_abort on; proxy_pass {}; }}\n\
         location = /other {{ return 200 other; }}",
        origin.url()
    ))
    .await;
    let client = site.client().await;
    for nth in 1..=4 {
        let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
        exchange.finish().await;
        until("it is at the origin", || origin.requests() == nth).await;
        exchange.cancel();
    }
    let mut fifth = std::pin::pin!(client.get("/"));
    tokio::select! {
        biased;
        _ = &mut fifth => panic!("a fifth request is served"),
        other = async { site.client().await.get("/other").await } => {
            assert_eq!(other.text(), "other");
        }
    }
    assert_eq!(origin.requests(), 4);
    // Once they are done there is room again.
    gate.add_permits(100);
    assert_eq!(fifth.await.text(), "page");
}

#[tokio::test]
async fn control_frames_are_bounded() {
    let site = site("return 200 page;").await;
    let connection = site.quic().connect(site.address, "a.test").await;
    let connection = connection.expect("a handshake");
    let mut control = connection.open_uni().await.expect("a stream");
    control.write_all(&[0]).await.expect("sent");
    control.write_all(&frame(4, b"")).await.expect("sent");
    // A frame of an unknown type (RFC 9114 §7.2.8).
    let unknown = frame(0x21, b"");
    let mut sent = 0;
    while control.write_all(&unknown).await.is_ok() {
        sent += 1;
        // Beyond what is on its way when the server has had enough.
        assert!(sent < 1_000_000);
    }
    let closed = connection.closed().await;
    // The packet with the code may be lost among those that the client goes on to send; the next packet
    // is a reset then (RFC 9000 §10.3).
    let is_reset = matches!(closed, quinn::ConnectionError::Reset);
    assert!(
        is_reset || code_of(&closed) == Some(0x107),
        "H3_EXCESSIVE_LOAD: {closed}"
    );
    until("the server says why", || {
        site.server
            .error_log()
            .contains("sent too many control frames")
    })
    .await;
}

#[tokio::test]
async fn a_response_that_nobody_takes_is_given_up_and_others_are_not() {
    const LENGTH: usize = 8 << 20;
    let site = site("send_timeout 300ms; location = /page { return 200 page; }").await;
    site.server.write("file", vec![b'x'; LENGTH]);
    let client = site.client().await;
    let mut path = GET;
    path[3].1 = "/file";
    let (mut send, mut receive) = client.connection.open_bi().await.expect("a stream");
    send.write_all(&headers(&path)).await.expect("sent");
    send.finish().expect("an open stream");
    until("it is given up", || {
        site.server.error_log().contains("while sending response")
    })
    .await;
    assert_eq!(client.get("/page").await.text(), "page");
    let read = tokio::time::timeout(Duration::from_secs(10), receive.read_to_end(LENGTH + 100));
    let read = read.await.expect("an end");
    assert!(
        matches!(
            read,
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(_)))
        ),
        "it was cut off"
    );
}
