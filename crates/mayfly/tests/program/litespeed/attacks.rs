//! Attacks of a visitor or an upstream on the protocol.

use testkit::fake_php::{FakePhp, Script};

use super::{
    OF_GROUP, PRIVATE, PUBLIC, SUBSCRIBERS, configuration, logged_in, pages, php, site, store,
    visitor,
};
use crate::start;

/// Fields that a visitor sends beside the URL and the cookies reach no page that is kept.
#[tokio::test]
async fn no_field_of_a_visitor_gets_into_a_page_of_others() {
    let php = FakePhp::tcp(|request| {
        let seen: Vec<&str> = [
            "HTTP_X_FORWARDED_HOST",
            "HTTP_USER_AGENT",
            "HTTP_REFERER",
            "HTTP_ACCEPT_LANGUAGE",
        ]
        .map(|name| request.param(name))
        .into_iter()
        .filter(|value| value.contains("evil"))
        .collect();
        Script::page(OF_GROUP, seen.join(","))
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let evil = "X-Forwarded-Host: evil\r\nUser-Agent: evil lscache_runner\r\nReferer: evil\r\nAccept-Language: evil\r\n";
    for cookies in ["", "Cookie: a=1\r\n", &logged_in("mallory", SUBSCRIBERS)] {
        for _ in 0..4 {
            target.get_with("/", &format!("{cookies}{evil}")).await;
        }
        for _ in 0..2 {
            let page = target.get_with("/", cookies).await;
            assert_eq!(
                (page.text().as_str(), page.x_cache()),
                ("", "HIT"),
                "{cookies}"
            );
        }
    }
}

/// A page that sets a cookie and is declared public: the cookie is one visitor's.
#[tokio::test]
async fn a_page_with_a_cookie_of_its_own_is_not_kept() {
    for more in [
        "",
        "lsc-cookie: other=2\r\n",
        "lsc-cookie: session=1; path=/\r\n",
    ] {
        let php = FakePhp::tcp(move |request| {
            let fields = format!("{PUBLIC}Set-Cookie: session={}\r\n{more}", request.number);
            Script::page(&fields, "page")
        })
        .await;
        let server = site(&php).await;
        for fields in ["", "Cookie: a=1\r\n", &logged_in("carl", SUBSCRIBERS)] {
            let mut seen = Vec::new();
            for _ in 0..4 {
                let page = server.target().get_with("/", fields).await;
                assert_ne!(page.x_cache(), "HIT", "{more} {fields}");
                seen.push(page.field("set-cookie").to_owned());
            }
            seen.dedup();
            assert_eq!(seen.len(), 4, "{more} {fields}");
        }
    }
}

/// Values of `_lscache_vary` are the client's to choose: the copies of a page are bounded, and those that are
/// used stay, though the zone has forgotten the note about their group.
#[tokio::test]
async fn invented_groups_do_not_drive_out_real_ones() {
    let php = pages(OF_GROUP).await;
    let server = site(&php).await;
    let target = server.target();
    let carl = logged_in("carl", SUBSCRIBERS);
    store(&target, "/first/", &carl).await;
    store(&target, "/first/", "").await;
    for number in 0..900 {
        let fields = format!("Cookie: a=1; _lscache_vary=invented{number}\r\n");
        // The first request is noted, the second is stored.
        let times = if number < 40 { 2 } else { 1 };
        for _ in 0..times {
            target.get_with("/first/", &fields).await;
        }
    }
    assert_eq!(target.get_with("/first/", &carl).await.x_cache(), "HIT");
    assert_eq!(target.get("/first/").await.x_cache(), "HIT");
    let mut kept = 0;
    for number in 0..40 {
        let fields = format!(
            "Cookie: a=1; _lscache_vary=invented{number}\r\nCache-Control: only-if-cached\r\n"
        );
        kept += usize::from(target.get_with("/first/", &fields).await.x_cache() == "HIT");
    }
    assert!(kept <= 16, "{kept}");
}

/// No copy is found by parts of its key: other cookies, other names, other order of them.
#[tokio::test]
async fn a_private_copy_is_found_by_nobody_else() {
    let php = FakePhp::tcp(|request| Script::page(PRIVATE, request.param("HTTP_COOKIE"))).await;
    let server = site(&php).await;
    let target = server.target();
    let own = "session=0123456789abcdef; cart=1; _lscache_vary=x";
    store(&target, "/cart", &format!("Cookie: {own}\r\n")).await;
    for cookies in [
        "session=0123456789abcdef; cart=1",
        "session=0123456789abcdef; _lscache_vary=x",
        "session=0123456789abcdeF; cart=1; _lscache_vary=x",
        "SESSION=0123456789abcdef; cart=1; _lscache_vary=x",
        "session=0123456789abcdef; cart=1; _lscache_vary=x; a=1",
        "cart=1; _lscache_vary=x",
        "_lscache_vary=x",
        "",
    ] {
        for _ in 0..3 {
            let page = target
                .get_with("/cart", &format!("Cookie: {cookies}\r\n"))
                .await;
            assert_eq!(page.text(), cookies);
        }
    }
    // Two lines are one to PHP.
    let page = target.get_with(
        "/cart",
        "Cookie: session=0123456789abcdef; cart=1\r\nCookie: _lscache_vary=x\r\n",
    );
    assert!(
        page.await
            .text()
            .starts_with("session=0123456789abcdef; cart=1")
    );
}

/// A visitor is recognized by the address as well.
#[tokio::test]
async fn a_private_copy_is_of_one_address() {
    let php = php(|request| Script::page(PRIVATE, request.param("REMOTE_ADDR"))).await;
    let http = configuration(&php, "fastcgi_param REMOTE_ADDR $remote_addr;").replacen(
        "server {",
        "server { set_real_ip_from unix:; real_ip_header X-Real-IP;",
        1,
    );
    let server = start(&http).await;
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        let fields = format!("X-Real-IP: {address}\r\n{}", logged_in("carl", SUBSCRIBERS));
        assert_eq!(store(&server.target(), "/", &fields).await.text(), address);
    }
}

/// `cache_purge_fields off` is stronger than the directive; a visitor's own field has no effect at all.
#[tokio::test]
async fn who_is_not_trusted_purges_nothing() {
    let php = php(|request| match request.param("REQUEST_METHOD") {
        "POST" => Script::page("X-LiteSpeed-Purge: *\r\nX-LiteSpeed-Purge2: *\r\n", ""),
        _ => Script::page(PUBLIC, visitor(request)),
    })
    .await;
    let server = start(&configuration(&php, "cache_purge_fields off;")).await;
    let target = server.target();
    store(&target, "/first/", "").await;
    let done = target.ask("POST", "/", "", "").await;
    assert!(!done.has("x-litespeed-purge") && !done.has("x-litespeed-purge2"));
    assert_eq!(target.get("/first/").await.x_cache(), "HIT");
    let server = site(&php).await;
    let target = server.target();
    store(&target, "/first/", "").await;
    target
        .get_with(
            "/other/",
            "X-LiteSpeed-Purge: *\r\nX-LiteSpeed-Purge2: *\r\n",
        )
        .await;
    assert_eq!(target.get("/first/").await.x_cache(), "HIT");
}

/// The purge of one visitor's copies reaches no other visitor's, whatever cookies are invented for
/// it.
#[tokio::test]
async fn a_private_purge_ends_no_copies_of_others() {
    let php = php(|request| match request.param("REQUEST_METHOD") {
        "POST" => Script::page("X-LiteSpeed-Purge: private,*\r\n", ""),
        _ if request.param("HTTP_COOKIE").is_empty() => Script::page(PUBLIC, "all"),
        _ => Script::page(PRIVATE, visitor(request)),
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let carl = logged_in("carl", SUBSCRIBERS);
    store(&target, "/first/", &carl).await;
    store(&target, "/first/", "").await;
    for fields in [
        "",
        "Cookie: wordpress_logged_in_1b8a984d=carl\r\n",
        &format!("Cookie: {SUBSCRIBERS}\r\n"),
        &logged_in("dora", SUBSCRIBERS),
    ] {
        target.ask("POST", "/", fields, "").await;
    }
    assert_eq!(target.get_with("/first/", &carl).await.x_cache(), "HIT");
    assert_eq!(target.get("/first/").await.x_cache(), "HIT");
    target.ask("POST", "/", &carl, "").await;
    assert_eq!(target.get_with("/first/", &carl).await.x_cache(), "MISS");
}
