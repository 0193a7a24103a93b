//! A visitor who plays the proxy in front: claims about address, scheme and host.

use testkit::fake_http::FakeHttp;
use testkit::serving::FolderServer;

use super::showing_requests;

const CLAIMS: &str = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\
    X-Forwarded-Host: claimed.test\r\n";

/// Further names of hosts and schemes.
const OTHER_CLAIMS: &str = "CF-Visitor: {\"scheme\":\"https\"}\r\nX-Host: claimed.test\r\nX-URL-Scheme: https\r\nFront-End-Https: on\r\n\
    X-Forwarded-Protocol: https\r\nX-Forwarded-Scheme: https\r\nX-Forwarded-Ssl: on\r\n";

async fn serve(upstream: &FakeHttp, arguments: &[&str]) -> FolderServer {
    let all = [&["--ttl", "1h"], arguments].concat();
    FolderServer::start(crate::program(), &upstream.url(), &all).await
}

/// Forwarded whole, so that the believed fields show.
const PERSONAL: &str = "Cookie: session=1\r\n";

#[tokio::test]
async fn nobody_is_believed_unless_named() {
    let upstream = showing_requests().await;
    let server = serve(&upstream, &[]).await;
    let target = server.target();
    for fields in ["", PERSONAL] {
        let fields = format!("{CLAIMS}{OTHER_CLAIMS}{fields}");
        let seen = target.get_with("/", &fields).await.text();
        assert!(seen.contains("X-Forwarded-Proto: http\r\n"), "{seen}");
        assert!(!seen.contains("203.0.113.9"), "{seen}");
        assert!(!seen.contains("claimed.test"), "{seen}");
        for claim in OTHER_CLAIMS.lines() {
            assert!(!seen.contains(claim), "{claim}: {seen}");
        }
    }
}

#[tokio::test]
async fn a_named_proxy_is_believed_and_what_it_says_is_in_the_key() {
    let upstream = showing_requests().await;
    let server = serve(&upstream, &["--behind", "unix:"]).await;
    let target = server.target();
    let seen = target
        .get_with("/", &format!("{CLAIMS}{PERSONAL}"))
        .await
        .text();
    assert!(seen.contains("X-Forwarded-Proto: https\r\n"), "{seen}");
    assert!(seen.contains("X-Real-IP: 203.0.113.9\r\n"), "{seen}");
    assert!(seen.contains("Host: claimed.test\r\n"), "{seen}");
    let encrypted = target.get_with("/a", "X-Forwarded-Proto: https\r\n").await;
    assert!(encrypted.text().contains("X-Forwarded-Proto: https\r\n"));
    let plain = target.get("/a").await;
    assert_eq!(plain.x_cache(), "MISS");
    assert!(plain.text().contains("X-Forwarded-Proto: http\r\n"));
    let odd = target
        .get_with("/a", "X-Forwarded-Proto: javascript\r\n")
        .await;
    assert_eq!(odd.text(), plain.text(), "http or https, nothing else");
}

#[tokio::test]
async fn an_address_that_a_visitor_claims_before_the_proxy_does_not_count() {
    let upstream = showing_requests().await;
    let server = serve(&upstream, &["--behind", "unix:", "--behind", "10.0.0.0/8"]).await;
    let fields = "X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.0.0.3\r\n";
    let seen = server
        .target()
        .get_with("/", &format!("{fields}{PERSONAL}"))
        .await;
    assert!(
        seen.text().contains("X-Real-IP: 203.0.113.9\r\n"),
        "{}",
        seen.text()
    );
}
