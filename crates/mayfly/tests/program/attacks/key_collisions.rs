//! Two requests that the application answers differently and that the cache takes for one.

use testkit::fake_http::{FakeHttp, Script};

use super::start_site;
use crate::start;

const MIRROR: &str = "<?php header('Content-Type: text/html');
    echo json_encode([$_GET, $_SERVER['QUERY_STRING'], $_SERVER['PATH_INFO'] ?? '']);";

/// The text behind `#` is no argument for a reader of the target, and becomes one when the
/// arguments before it are removed together with the `#`: `/?utm_source=x#&page=2` was
/// stored as `/?page=2` and made without `page`.
#[tokio::test]
async fn nothing_behind_a_fragment_becomes_an_argument() {
    let server = start_site(&[("index.php", MIRROR)]).await;
    let target = server.target();
    let pairs = [
        ("utm_source=x#&page=", "page="),
        ("utm_source=#&a=1&page=", "a=1&page="),
        ("a=1&gclid=#&page=", "a=1&page="),
        ("gclid#&page=", "page="),
        ("utm_source=x#?&page=", "page="),
        ("utm_source=x&fbclid=#y&page=", "page="),
    ];
    for (number, (forged, honest)) in pairs.into_iter().enumerate() {
        target.get(&format!("/index.php?{forged}{number}")).await;
        let reply = target.get(&format!("/index.php?{honest}{number}")).await;
        let page = format!("\"page\":\"{number}\"");
        assert!(reply.text().contains(&page), "{forged}: {}", reply.text());
    }
}

/// An application whose answers have its name.
async fn named(name: &'static str) -> FakeHttp {
    FakeHttp::start(move |_| Script::page("Content-Type: text/html\r\n", name)).await
}

const CACHE: &str = "proxy_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
    proxy_cache pages; proxy_cache_valid 200 1h; cache_shared on;\n\
    add_header X-Cache $upstream_cache_status;\n";

/// A field or a cookie may choose the location, and the location the application: what a
/// tester of the next version sees was stored for everybody.
#[tokio::test]
async fn a_location_that_a_field_has_chosen_is_in_the_key() {
    let (old, new) = (named("old").await, named("new").await);
    for way in [
        "error_page 418 = @new; if ($http_via) { return 418; }",
        "if ($http_via) { proxy_pass http://NEW; break; }",
        "if ($http_via = 2) { proxy_pass http://OLD; } if ($http_via) { proxy_pass http://NEW; }",
    ] {
        let text = format!(
            "{CACHE} server {{ listen unix:%%/http; location / {{ {way} proxy_pass http://OLD; }}\n\
             location @new {{ proxy_pass http://NEW; }} }}"
        );
        let text = text.replace("OLD", &old.address().to_string());
        let text = text.replace("NEW", &new.address().to_string());
        let server = start(&text).await;
        let target = server.target();
        for wanted in ["MISS", "HIT"] {
            let reply = target.get_with("/", "Via: 1\r\n").await;
            assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "new"), "{way}");
            let reply = target.get("/").await;
            assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "old"), "{way}");
        }
    }
}

/// Two servers with one zone that differ in the address they listen on only: pages seen by
/// those inside were shown to visitors who named the same host outside.
#[tokio::test]
async fn servers_of_two_addresses_never_share_a_page() {
    let (inside, outside) = (named("inside").await, named("outside").await);
    let text = format!(
        "{CACHE} server {{ listen unix:%%/inside; location / {{ proxy_pass http://{}; }} }}\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass http://{}; }} }}",
        inside.address(),
        outside.address()
    );
    let server = start(&text).await;
    let within = testkit::client::Target(server.path("inside"));
    for wanted in ["MISS", "HIT"] {
        let reply = within.get("/").await;
        assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "inside"));
        let reply = server.target().get("/").await;
        assert_eq!((reply.x_cache(), &*reply.text()), (wanted, "outside"));
    }
}

/// The way to an internal location may be one that an application has shown. Its fields
/// about the visitor on the way were sent on to the application behind, and are in no key.
#[tokio::test]
async fn what_an_upstream_says_on_the_way_shapes_no_shared_page() {
    let gatekeeper = FakeHttp::start(|request| {
        let names = ["x-forwarded-host", "x-name"].map(|name| request.field(name));
        let name = names.concat();
        Script::page(
            &format!("X-Accel-Redirect: /inside/\r\nX-User: {name}\r\n"),
            "",
        )
    })
    .await;
    let inside = FakeHttp::start(|request| {
        let page = format!("page of {}.", request.field("x-user"));
        Script::page("Content-Type: text/html\r\n", page)
    })
    .await;
    let text = format!(
        "{CACHE} log_format ways '$upstream_addr';\n\
         server {{ listen unix:%%/http; access_log %%/ways ways;\n\
         location / {{ proxy_cache off; proxy_pass http://{}; }}\n\
         location /inside/ {{ internal; proxy_pass http://{};\n\
         proxy_set_header X-User $upstream_http_x_user; }} }}",
        gatekeeper.address(),
        inside.address()
    );
    let server = start(&text).await;
    for name in ["alice", "bob"] {
        // A request with this field is personal: its visitor has a page of their own.
        let target = server.target();
        let reply = target.get_with("/", &format!("X-Name: {name}\r\n")).await;
        assert_eq!(reply.text(), format!("page of {name}."));
        let reply = target
            .get_with("/", &format!("X-Forwarded-Host: {name}\r\n"))
            .await;
        assert_eq!(reply.text(), "page of .", "for {name}");
        assert_eq!(target.get("/").await.text(), "page of .", "after {name}");
    }
    // The log reports both nevertheless. The lines may be written a moment later.
    let begun = std::time::Instant::now();
    let log = loop {
        let log = std::fs::read_to_string(server.path("ways")).unwrap_or_default();
        if log.contains('\n') || begun.elapsed() > testkit::wait::TIMEOUT {
            break log;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    };
    let first = log.lines().next().unwrap_or_default();
    for upstream in [&gatekeeper, &inside] {
        assert!(first.contains(&upstream.address().to_string()), "{log}");
    }
}
