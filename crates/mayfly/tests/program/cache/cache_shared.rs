//! Answers that turn out to be for one visitor, although the request looked like everybody's
//! (`cache_shared`): they depend on that visitor's fields.

use testkit::fake_http::{FakeHttp, Script};
use testkit::serving::FolderServer;

use crate::program;

/// Answers with the request that it got and these fields.
async fn mirror(fields: &'static str) -> FakeHttp {
    FakeHttp::start(move |request| Script::page(fields, &request.head)).await
}

async fn serve(upstream: &FakeHttp) -> FolderServer {
    FolderServer::start(program(), &upstream.url(), &["--ttl", "1h"]).await
}

#[tokio::test]
async fn private_answer_is_made_of_what_its_visitor_sent() {
    for fields in [
        "Cache-Control: private\r\n",
        "Cache-Control: no-cache, private\r\nSet-Cookie: session=1\r\n",
        "Vary: *\r\n",
    ] {
        let upstream = mirror(fields).await;
        let server = serve(&upstream).await;
        // The second asks while it is known that the page is not shared.
        for (language, requests) in [("de", 1), ("fr", 2)] {
            let field = format!("Accept-Language: {language}\r\nDNT: {language}\r\n");
            let reply = server.target().get_with("/page", &field).await;
            let body = String::from_utf8_lossy(&reply.body).to_lowercase();
            for name in ["accept-language", "dnt"] {
                let sent = format!("{name}: {language}\r\n");
                assert!(body.contains(&sent), "{fields}: no {sent} in {body}");
            }
            assert_eq!(reply.x_cache(), "MISS", "{fields}");
            assert_eq!(upstream.requests(), requests, "{fields}");
        }
    }
}

#[tokio::test]
async fn visitor_who_sent_nothing_of_note_is_asked_for_once() {
    let upstream = mirror("Cache-Control: private\r\n").await;
    let server = serve(&upstream).await;
    let fields = "User-Agent: a crawler\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n";
    server.target().get_with("/page", fields).await;
    assert_eq!(upstream.requests(), 1);
}

#[tokio::test]
async fn what_is_not_there_or_fails_is_asked_for_once() {
    for status in [404, 500] {
        let upstream = FakeHttp::start(move |_| {
            Script::new().raw(format!(
                "HTTP/1.1 {status} No\r\nCache-Control: no-cache\r\nContent-Length: 0\r\n\r\n"
            ))
        })
        .await;
        let server = serve(&upstream).await;
        let reply = server
            .target()
            .get_with("/page", "Accept-Language: de\r\n")
            .await;
        assert_eq!((reply.status, upstream.requests()), (status, 1));
    }
}

#[tokio::test]
async fn shared_answer_is_made_without_what_its_visitor_sent() {
    let upstream = mirror("Cache-Control: max-age=60\r\n").await;
    let server = serve(&upstream).await;
    let fields = "Via: 1.1 invented\r\nX-Forwarded-Prefix: /invented\r\n";
    for wanted in ["MISS", "HIT"] {
        let reply = server.target().get_with("/page", fields).await;
        let body = String::from_utf8_lossy(&reply.body).to_lowercase();
        assert!(!body.contains("invented"), "{body}");
        assert_eq!(reply.x_cache(), wanted);
    }
    assert_eq!(upstream.requests(), 1);
}
