//! `dashboard`: who sees it, its content, and the rights of a browser with it.

use super::*;

const DASHBOARD: &str = "location = /dashboard { dashboard; }
    location = /open { dashboard; allow all; }";

#[tokio::test]
async fn the_page_and_what_it_asks_for_are_for_this_machine() {
    let php = slow_pages().await;
    let server = start(&configuration(&php, DASHBOARD)).await;
    let target = server.target();
    for (path, fields, expected) in [
        ("/dashboard", "", 200),
        ("/dashboard?numbers", "", 200),
        ("/dashboard?pages", "", 200),
        ("/dashboard?table", "", 200),
        ("/dashboard?history=0", "", 200),
        ("/dashboard?history=-1", "", 400),
        ("/dashboard?history", "", 400),
        ("/dashboard?numbers=1", "", 404),
        ("/dashboard?other", "", 404),
        ("/dashboard?%FF", "", 400),
        ("/dashboard", "X-Real-IP: 192.0.2.1\r\n", 403),
        ("/dashboard?numbers", "X-Forwarded-For: 127.0.0.1\r\n", 403),
        ("/dashboard?pages", "Forwarded: for=192.0.2.1\r\n", 403),
        ("/open?pages", "X-Forwarded-For: 192.0.2.1\r\n", 200),
    ] {
        let reply = target.ask("GET", path, fields, "").await;
        assert_eq!(reply.status, expected, "{path} {fields}");
        if expected == 200 {
            assert_eq!(reply.field("cache-control"), "no-store", "{path}");
            assert_eq!(reply.field("cross-origin-resource-policy"), "same-origin");
        }
    }
    assert_eq!(target.ask("POST", "/dashboard", "", "").await.status, 405);
    let page = target.get("/dashboard").await;
    let policy = page.field("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
}

#[tokio::test]
async fn pages_are_named_without_what_their_arguments_and_cookies_say() {
    let php = slow_pages().await;
    let server = start(&configuration(&php, DASHBOARD)).await;
    let target = server.target();
    for path in [
        "/a?token=secret1&b=secret2",
        "/a?secret3",
        "/b?c=1&secret4",
        "/d?bypass=secret5",
    ] {
        target
            .ask("GET", path, "Cookie: session=secret6\r\n", "")
            .await;
    }
    let pages = target.get("/dashboard?pages").await.text();
    for name in [
        "site.test/a?token=*&b=*",
        "site.test/a?*",
        "site.test/b?c=*&*",
        "site.test/d?bypass=*",
    ] {
        assert!(
            pages.contains(&format!("\"name\":\"{name}\"")),
            "{name}: {pages}"
        );
    }
    assert!(!pages.contains("secret"), "{pages}");
}
