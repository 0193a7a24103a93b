//! The handshake of QUIC: certificates, ALPN, address validation, migration.

use quinn::ConnectionError;
use testkit::http3::{QuicClient, certificate_of};
use testkit::wait::until;
use tokio::net::UdpSocket;

use super::{Site, free_address, site};
use crate::tls::Certificates;

/// The alert with which TLS refuses a handshake: it is part of the code (RFC 9001 §4.8).
fn alert_of(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::ConnectionClosed(close) => {
            let code = u64::from(close.error_code);
            (0x100..0x200).contains(&code).then_some(code & 0xff)
        }
        _ => None,
    }
}

#[tokio::test]
async fn the_name_that_a_client_asks_for_chooses_certificate_and_server() {
    let (certificates, address) = (Certificates::new(), free_address());
    let own = certificates.add("a", "a.test");
    let other = certificates.add("b", "b.test");
    let http = format!(
        "server {{ listen {address} quic; server_name a.test; return 200 a;\n\
         ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key; }}\n\
         server {{ listen {address} quic; server_name b.test; return 200 b;\n\
         ssl_certificate FILES/b.pem; ssl_certificate_key FILES/b.key; }}\n\
         server {{ listen {address} quic; server_name off.test; http3 off; }}\n\
         server {{ listen {address} quic; server_name no.test; ssl_reject_handshake on; }}"
    );
    let _server = certificates.start(&http).await;
    let quic = QuicClient::new(&certificates.authority, &["h3"], None);
    for (name, identity, page) in [("a.test", &own, "a"), ("b.test", &other, "b")] {
        let client = quic.http3(address, name).await;
        assert!(certificate_of(&client.connection) == identity.certificate_der());
        assert_eq!(client.get("/").await.text(), page);
    }
    for name in ["off.test", "no.test"] {
        let refused = quic.connect(address, name).await.expect_err("no handshake");
        assert_eq!(alert_of(&refused), Some(112), "{name}: {refused}");
    }
}

#[tokio::test]
async fn other_protocols_are_refused() {
    let site = site("return 200 page;").await;
    for protocols in [&["h2"][..], &["hq-interop", "http/1.1"]] {
        let quic = QuicClient::new(&site.certificates.authority, protocols, None);
        let refused = quic.connect(site.address, "a.test").await;
        let refused = refused.expect_err("no handshake");
        assert_eq!(alert_of(&refused), Some(120), "{refused}");
    }
    let quic = QuicClient::new(&site.certificates.authority, &["x", "h3"], None);
    assert!(quic.connect(site.address, "a.test").await.is_ok());
}

#[tokio::test]
async fn clients_are_verified_as_over_tcp() {
    let site = site(
        "ssl_client_certificate FILES/ca.pem; ssl_verify_client on;\n\
         return 200 $ssl_client_verify;",
    )
    .await;
    let authority = &site.certificates.authority;
    let known = authority.identity("client.test");
    let quic = QuicClient::new(authority, &["h3"], Some(&known));
    let client = quic.http3(site.address, "a.test").await;
    assert_eq!(client.get("/").await.text(), "SUCCESS");
    assert_eq!(site.client().await.get("/").await.status, 400);
}

/// The first byte that a server answers a client's first packet with. Passes packets on between
/// the two until the client has its page.
pub async fn first_answer(site: &Site) -> u8 {
    let relay = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let at = relay.local_addr().expect("an address");
    let to_server = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    to_server.connect(site.address).await.expect("the server");
    let quic = site.quic();
    let page = async { quic.http3(at, "a.test").await.get("/").await.text() };
    let mut page = std::pin::pin!(page);
    let (mut one, mut other) = ([0; 2048], [0; 2048]);
    let (mut client, mut first) = (at, None);
    loop {
        tokio::select! {
            page = &mut page => {
                assert_eq!(page, "page");
                return first.expect("an answer");
            }
            received = relay.recv_from(&mut one) => {
                let (length, from) = received.expect("a packet");
                client = from;
                to_server.send(&one[..length]).await.expect("sent");
            }
            received = to_server.recv(&mut other) => {
                let length = received.expect("a packet");
                first = first.or(Some(other[0]));
                relay.send_to(&other[..length], client).await.expect("sent");
            }
        }
    }
}

#[tokio::test]
async fn addresses_are_validated_before_the_handshake() {
    // A long header and its type (RFC 9000 §17.2): Initial or Retry. Other bits are protected, or
    // greased (RFC 9287).
    const TYPE: u8 = 0xb0;
    for (directives, expected) in [("", 0x80), ("quic_retry on;", 0xb0)] {
        let site = site(&format!("{directives} return 200 page;")).await;
        assert_eq!(first_answer(&site).await & TYPE, expected, "{directives}");
    }
}

/// A client sends its first packet and never answers: the server sends its certificate, sends parts of
/// that again, and reports in the end that it gives up.
#[tokio::test]
async fn an_address_that_answers_nothing_is_sent_three_times_what_it_sent() {
    let site = site("client_header_timeout 4s; return 200 page;").await;
    let authority = &site.certificates.authority;
    for packet in QuicClient::first_packets(authority, "a.test", 3).await {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        socket.connect(site.address).await.expect("the server");
        socket.send(&packet).await.expect("sent");
        let given_up = || site.server.error_log().matches("client timed out").count();
        let (before, mut sent) = (given_up(), 0);
        let mut buffer = [0; 2048];
        until("the handshake is given up", || {
            while let Ok(length) = socket.try_recv(&mut buffer) {
                sent += length;
            }
            given_up() > before
        })
        .await;
        // Before this client has its page, all packets to the other have left.
        assert_eq!(site.client().await.get("/").await.text(), "page");
        while let Ok(length) = socket.try_recv(&mut buffer) {
            sent += length;
        }
        assert!(sent > packet.len(), "{sent}");
        assert!(sent <= 3 * packet.len(), "{sent} for {}", packet.len());
    }
}

#[tokio::test]
async fn a_client_whose_address_changes_keeps_its_connection() {
    let site = site("return 200 $connection;").await;
    let quic = site.quic();
    let client = quic.http3(site.address, "a.test").await;
    let serial = client.get("/").await.text();
    quic.move_away();
    for _ in 0..3 {
        assert_eq!(client.get("/").await.text(), serial);
    }
}

#[tokio::test]
async fn the_kernel_need_not_cut_packets() {
    let site = site("quic_gso off; quic_host_key FILES/a.key;").await;
    site.server.write("file", vec![b'x'; 300_000]);
    assert_eq!(site.client().await.get("/file").await.body.len(), 300_000);
}
