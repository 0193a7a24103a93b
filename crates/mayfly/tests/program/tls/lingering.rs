//! What a client still sends behind the response to a request that was refused, over TLS and
//! without.

use std::time::{Duration, Instant};

use testkit::client::Client;
use testkit::fake_http::FakeHttp;
use testkit::wait::TIMEOUT;

use super::{Certificates, connect};

/// Asks for what is refused, sends on until the server takes nothing more; how much it took, and
/// for how long.
async fn send_on(client: &mut Client) -> (usize, Duration) {
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000000000\r\n\r\n";
    client.send(head).await;
    let reply = client.receive(false).await.expect("a response");
    assert_eq!((reply.status, reply.is_complete), (413, true));
    // The end, as far as the server is concerned.
    assert!(client.receive_all().await.is_empty());
    let (begun, mut sent) = (Instant::now(), 0);
    let sending = async {
        while client.try_send([b'x'; 16_000]).await.is_ok() {
            sent += 16_000;
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, sending).await;
    assert!(ended.is_ok(), "the time ends");
    (sent, begun.elapsed())
}

#[tokio::test]
async fn what_is_on_its_way_behind_a_refused_request_is_read_for_its_time() {
    let certificates = Certificates::new();
    let origin = FakeHttp::showing_requests("").await;
    for (directives, reads) in [
        ("lingering_time 1s;", true),
        ("lingering_close off;", false),
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
            let (sent, time) = send_on(&mut client).await;
            match reads {
                true => {
                    // Much more than the kernel keeps.
                    assert!(sent > 2 << 20, "{case} {directives}: {sent}");
                    assert!(time > Duration::from_millis(900), "{case} {directives}");
                }
                false => assert!(sent < 1 << 20, "{case} {directives}: {sent}"),
            }
        }
    }
    assert_eq!(origin.requests(), 0);
}
