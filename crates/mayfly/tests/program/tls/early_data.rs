//! `ssl_early_data`: requests that come ahead of the end of the handshake (RFC 8446 §2.3, RFC 8470).

use rustls::version;
use testkit::fake_http::{FakeHttp, Script};
use testkit::http2::{PREFACE, data, headers};
use testkit::running::RunningServer;
use testkit::tls_client::{EarlyConnection, Offer, TlsClient};

use super::{Certificates, connect, get};

/// A server and its origin, whose answers describe the request.
struct Scene {
    server: RunningServer,
    client: TlsClient,
    origin: FakeHttp,
}

/// A server with these directives, and a client that has been there once.
async fn scene(directives: &str, protocols: &[&str]) -> Scene {
    let certificates = Certificates::new();
    let origin = FakeHttp::start(|request| {
        let told = format!("{} early:{}.", request.method, request.field("early-data"));
        Script::page("", told)
    })
    .await;
    let server = certificates
        .site(&format!(
            "{directives}\nlocation / {{ return 200 early:$ssl_early_data.; }}\n\
             location /pass {{ proxy_pass {}; }}",
            origin.url()
        ))
        .await;
    let client = certificates.client_of(&Offer {
        versions: &[&version::TLS13],
        protocols,
        early_data: true,
        ..Offer::default()
    });
    meet(&client, &server).await;
    Scene {
        server,
        client,
        origin,
    }
}

/// A connection from which the client takes a session along.
async fn meet(client: &TlsClient, server: &RunningServer) {
    let mut connection = connect(client, server, "a.test").await;
    if connection.protocol.as_deref() == Some("h2") {
        // The first bytes of the server come behind the session.
        connection.client.receive_some().await;
    } else {
        let reply = super::ask(&mut connection.client, "a.test", "/").await;
        assert_eq!(reply.text(), "early:.");
    }
}

fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n")
}

impl Scene {
    /// Sends these, each in a record of its own, ahead of the end of the handshake.
    async fn begin(&self, pieces: &[&[u8]]) -> (EarlyConnection, Vec<Vec<u8>>) {
        let socket = self.server.path("http");
        let begun = self.client.begin_early(&socket, "a.test", pieces);
        begun.await.expect("a session for early data")
    }

    async fn send(&self, pieces: &[&[u8]]) -> EarlyConnection {
        let (mut connection, records) = self.begin(pieces).await;
        connection.send_raw(&records.concat()).await;
        connection
    }
}

#[tokio::test]
async fn a_request_is_answered_ahead_of_the_end_of_the_handshake() {
    let scene = scene("ssl_early_data on;", &[]).await;
    let (one, other) = (request("GET", "/"), request("GET", "/pass"));
    let (mut connection, records) = scene.begin(&[one.as_bytes(), other.as_bytes()]).await;
    let (last, first) = records.split_last().expect("records");
    connection.send_raw(&first.concat()).await;
    connection.receive_until("early:1.").await;
    assert!(connection.is_accepted());
    // More may come ahead of the end. The upstream that is asked instead learns of it.
    connection.send_raw(last).await;
    connection.receive_until("GET early:1.").await;
    // The client ends the handshake.
    for (method, path, told) in [
        ("GET", "/", "early:."),
        ("GET", "/pass", "GET early:."),
        ("POST", "/pass", "POST early:."),
    ] {
        connection.send(request(method, path).as_bytes()).await;
        connection.receive_until(told).await;
    }
}

#[tokio::test]
async fn a_request_that_ends_behind_the_handshake_is_like_any_other() {
    let scene = scene("ssl_early_data on;", &[]).await;
    let post = request("POST", "/pass");
    let (first, rest) = post.split_at(10);
    let mut connection = scene.send(&[first.as_bytes()]).await;
    // The head is not whole: there is nothing to be answered.
    connection.receive_handshake().await;
    connection.send(rest.as_bytes()).await;
    connection.receive_until("POST early:.").await;
    assert!(connection.is_accepted());
}

#[tokio::test]
async fn a_request_that_changes_something_is_too_early() {
    let scene = scene("ssl_early_data on;", &[]).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "UNKNOWN"] {
        let mut connection = scene.send(&[request(method, "/pass").as_bytes()]).await;
        let said = connection.receive_until("</html>").await;
        assert!(
            said.starts_with("HTTP/1.1 425 Too Early\r\n"),
            "{method}: {said}"
        );
        assert!(connection.is_accepted(), "{method}");
        meet(&scene.client, &scene.server).await;
    }
    assert_eq!(scene.origin.requests(), 0);
    for method in ["HEAD", "OPTIONS"] {
        let mut connection = scene.send(&[request(method, "/pass").as_bytes()]).await;
        let said = connection.receive_until("\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{method}: {said}");
        meet(&scene.client, &scene.server).await;
    }
}

#[tokio::test]
async fn what_came_early_does_nothing_when_somebody_sends_it_again() {
    let scene = scene("ssl_early_data on;", &[]).await;
    let get_early = request("GET", "/pass");
    let (mut connection, records) = scene.begin(&[get_early.as_bytes()]).await;
    connection.send_raw(&records.concat()).await;
    connection.receive_until("GET early:1.").await;
    assert_eq!(scene.origin.requests(), 1);
    for _ in 0..3 {
        let mut again = scene.server.connect().await;
        again.send(records.concat()).await;
        // The server's part of a handshake, which this client cannot end.
        assert!(!again.receive_some().await.is_empty());
    }
    let reply = get(&scene.client, &scene.server, "a.test", "/pass").await;
    assert_eq!(reply.text(), "GET early:.");
    assert_eq!(scene.origin.requests(), 2);
}

#[tokio::test]
async fn requests_of_http2_may_come_early_as_well() {
    let scene = scene("ssl_early_data on; http2 on;", &["h2"]).await;
    let fields = |method, path| {
        [
            (":method", method),
            (":scheme", "https"),
            (":authority", "a.test"),
            (":path", path),
        ]
    };
    let mut opening = PREFACE.to_vec();
    opening.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let early = headers(1, &fields("GET", "/pass"), true);
    let refused = headers(3, &fields("POST", "/pass"), false);
    let (mut connection, records) = scene.begin(&[&opening, &early, &refused]).await;
    connection.send_raw(&records.concat()).await;
    connection.receive_until("<h1>425 Too Early</h1>").await;
    connection.receive_until("GET early:1.").await;
    assert_eq!(scene.origin.requests(), 1);
    let post = [
        headers(5, &fields("POST", "/pass"), false),
        data(5, b"body", true),
    ];
    connection.send(&post.concat()).await;
    connection.receive_until("POST early:.").await;
}

#[tokio::test]
async fn nothing_may_come_early_unless_the_configuration_says_so() {
    for directives in ["", "ssl_early_data off;", "ssl_early_data off; http2 on;"] {
        let scene = scene(directives, &[]).await;
        let socket = scene.server.path("http");
        let begun = scene.client.begin_early(&socket, "a.test", &[b"GET"]).await;
        assert!(begun.is_none(), "{directives}");
    }
}
