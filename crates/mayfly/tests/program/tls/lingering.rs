//! Bytes that a client still sends behind the response to a request that was refused, over
//! TLS and without.

use testkit::client::Client;
use testkit::fake_http::FakeHttp;
use testkit::wait::TIMEOUT;

use super::{Certificates, connect};

/// Much more than the kernel keeps for a server that does not read.
const MUCH_BYTES: usize = 8 << 20;

/// Sends a request that is refused.
async fn be_refused(client: &mut Client) {
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000000000\r\n\r\n";
    client.send(head).await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!((reply.status, reply.is_complete), (413, true));
    // The end, as far as the server is concerned.
    assert!(client.receive_all().await.is_empty());
}

/// Sends on until the server takes no more; false if it has taken `bytes`.
async fn is_ended_within(client: &mut Client, bytes: usize) -> bool {
    let piece = [b'x'; 16_384];
    let sending = async {
        for _ in 0..bytes / piece.len() {
            if client.try_send(piece).await.is_err() {
                return true;
            }
        }
        false
    };
    let sent = tokio::time::timeout(TIMEOUT, sending).await;
    sent.expect("the server reads or ends the connection")
}

#[tokio::test]
async fn what_is_on_its_way_behind_a_refused_request_is_read_for_its_time() {
    let certificates = Certificates::new();
    let origin = FakeHttp::showing_requests("").await;
    for (directives, bytes, ends) in [
        (
            "lingering_time 1h; lingering_timeout 1h;",
            MUCH_BYTES,
            false,
        ),
        ("lingering_close off;", MUCH_BYTES, true),
        ("lingering_time 200ms;", usize::MAX, true),
    ] {
        let server = certificates
            .site(&format!(
                "listen unix:%%/plain; client_max_body_size 1k; {directives}\n\
                 location / {{ proxy_pass {}; }}",
                origin.url()
            ))
            .await;
        let encrypted = connect(&certificates.client(), &server, "a.test").await;
        let plain = Client::connect(&server.path("plain")).await;
        for (case, mut client) in [("TLS", encrypted.client), ("plain", plain)] {
            be_refused(&mut client).await;
            let has_ended = is_ended_within(&mut client, bytes).await;
            assert_eq!(has_ended, ends, "{case} {directives}");
        }
    }
    assert_eq!(origin.requests(), 0);
}
