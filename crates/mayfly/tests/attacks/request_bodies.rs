//! Bodies of requests: those that never come, those of methods that have none, and those
//! that are larger than the location allows which they are led to in the end.

use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::running::Running;
use testkit::serving::Serving;

/// A GET that says that a body follows, which does not.
async fn begin_and_never_end(server: &Serving, framing: &str) -> testkit::client::Client {
    let mut client = server.connect().await;
    let request = format!("GET /page HTTP/1.1\r\nHost: site.test\r\n{framing}\r\n\r\n");
    client.send(request).await;
    client
}

/// One silent client would hold up all others who want the page.
#[tokio::test]
async fn nobody_waits_for_the_body_of_another_client() {
    let upstream = FakeHttp::start(|_| Script::page("Content-Type: text/html\r\n", "page")).await;
    let url = format!("http://{}", upstream.address());
    let server = Serving::start(&crate::program(), &url, &["--ttl", "1h"]).await;
    let mut silent = Vec::new();
    for framing in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        silent.push(begin_and_never_end(&server, framing).await);
        // What it asks for is known to be under way once somebody else is answered.
        assert_eq!(server.target().get("/other").await.status, 200);
    }
    let replies = async {
        for _ in 0..3 {
            let reply = server.target().get("/page").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        }
    };
    // Well before anybody gives up waiting for whoever fetches (5 s).
    tokio::time::timeout(std::time::Duration::from_secs(3), replies)
        .await
        .expect("visitors do not wait for a silent client");
}

/// What the application makes of a body is nobody else's page.
#[tokio::test]
async fn what_comes_of_a_body_of_get_is_not_stored() {
    let upstream = FakeHttp::start(|request| {
        let text = format!("page {}", String::from_utf8_lossy(&request.body));
        Script::page("Content-Type: text/html\r\n", text)
    })
    .await;
    let url = format!("http://{}", upstream.address());
    let server = Serving::start(&crate::program(), &url, &["--ttl", "1h"]).await;
    let target = server.target();
    for method in ["GET", "HEAD"] {
        let reply = target.ask(method, "/page", "", "poison").await;
        assert_eq!(reply.field("x-cache"), "BYPASS", "{method}");
    }
    let reply = target.get("/page").await;
    assert_eq!(
        (reply.field("x-cache"), reply.text().as_str()),
        ("MISS", "page ")
    );
    // Nor does it get what is stored.
    let reply = target.ask("GET", "/page", "", "own").await;
    assert_eq!(
        (reply.field("x-cache"), reply.text().as_str()),
        ("BYPASS", "page own")
    );
}

#[tokio::test]
async fn a_body_that_is_not_passed_on_changes_nothing() {
    let php = FakePhp::tcp(|request| {
        fake_php::Script::page("Content-Type: text/plain\r\n", &request.body)
    })
    .await;
    let directives = "fastcgi_cache_valid 1h; fastcgi_pass_request_body off;";
    let server = Running::start(&crate::program(), "", &php.cached_site(directives)).await;
    let target = server.target();
    for wanted in ["MISS", "HIT"] {
        let reply = target.ask("GET", "/page", "", "body").await;
        assert_eq!(
            (reply.field("x-cache"), reply.text().as_str()),
            (wanted, "")
        );
    }
}
