//! The handshake of QUIC: certificates, ALPN, address validation, migration.

use quinn::ConnectionError;
use testkit::http3::{QuicClient, certificate_of};

use super::{free_address, site};
use crate::tls::Certificates;

/// What TLS refuses a handshake with: the alert is part of the code (RFC 9001 §4.8).
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

#[tokio::test]
async fn addresses_are_validated_before_the_handshake() {
    let site = site("quic_retry on; return 200 page;").await;
    let quic = site.quic();
    let client = quic.http3(site.address, "a.test").await;
    assert_eq!(client.get("/").await.text(), "page");
    // The first packet was answered with a Retry, and came again with its token.
    let sent = client.connection.stats().frame_tx.crypto;
    assert!(sent >= 2, "{sent} CRYPTO frames");
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
