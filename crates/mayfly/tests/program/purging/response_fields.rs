//! `cache_purge_fields`: purges that a response asks for.

use testkit::client::Target;
use testkit::fake_php::{FakePhp, Script};

use super::{API, gone, site, store};

const PAGES: [&str; 3] = ["/news/5", "/news/6", "/list"];

/// Pages with their path as a tag; a POST to any address answers with the field that its body is.
async fn php() -> FakePhp {
    FakePhp::tcp(|request| match request.param("REQUEST_METHOD") {
        "POST" => Script::page(
            &format!("{}\r\n", String::from_utf8_lossy(&request.body)),
            "done",
        ),
        _ => {
            let path = request.param("REQUEST_URI").to_owned();
            Script::page(
                &format!("xkey: {} all\r\n", path.trim_start_matches('/')),
                path,
            )
        }
    })
    .await
}

async fn gone_after(target: &Target, field: &str) -> Vec<&'static str> {
    for path in PAGES {
        target.get(path).await;
    }
    store(target, &PAGES).await;
    let reply = target.ask("POST", "/write", "", field).await;
    assert_eq!(reply.status, 200);
    let (name, _) = field.split_once(':').expect("a field");
    assert!(!reply.has(&name.to_lowercase()), "{name} is for the server");
    gone(target, &PAGES).await
}

#[tokio::test]
async fn a_trusted_application_purges_by_its_response() {
    let php = php().await;
    let server = site(&php, API, "cache_purge_fields on;").await;
    let target = server.target();
    for (field, expected) in [
        ("X-Cache-Purge-Tags: news/5, other", &PAGES[..1]),
        ("X-Cache-Purge-Tags: all", &PAGES[..]),
        ("X-LiteSpeed-Purge: tag=news/6,/list", &PAGES[1..]),
        ("X-LiteSpeed-Purge: public,news/6;private,*", &PAGES[1..2]),
        ("X-LiteSpeed-Purge: private, tag=all", &[]),
        ("X-LiteSpeed-Purge: *", &PAGES[..]),
        ("X-LiteSpeed-Purge: /news/5", &PAGES[..1]),
        ("Cache-Group-Invalidation: \"news/5\"", &[]),
    ] {
        assert_eq!(gone_after(&target, field).await, expected, "{field}");
    }
    // Stale pages are shown while they are made again.
    store(&target, &PAGES).await;
    target
        .ask("POST", "/write", "", "X-LiteSpeed-Purge: stale,tag=news/5")
        .await;
    assert_eq!(target.get("/news/5").await.x_cache(), "STALE");
}

#[tokio::test]
async fn other_upstreams_purge_nothing_and_their_fields_are_removed() {
    let php = php().await;
    let server = site(&php, API, "").await;
    let target = server.target();
    for field in ["X-Cache-Purge-Tags: all", "X-LiteSpeed-Purge: *"] {
        assert!(gone_after(&target, field).await.is_empty(), "{field}");
    }
}

/// A visitor's field of the same name reaches the application, and no more.
#[tokio::test]
async fn a_request_with_such_a_field_purges_nothing() {
    let php = php().await;
    let server = site(&php, API, "cache_purge_fields on;").await;
    let target = server.target();
    store(&target, &PAGES).await;
    let fields = "X-Cache-Purge-Tags: all\r\nX-LiteSpeed-Purge: *\r\n";
    target.get_with("/news/5", fields).await;
    target.get_with("/new", fields).await;
    assert!(gone(&target, &PAGES).await.is_empty());
}
