//! `cache_refill`: a purged page is fetched again, if a visitor without a history can ask for it.

use testkit::client::Target;
use testkit::fake_php::Script;
use testkit::running::RunningServer;
use testkit::wait::{until, until_or};

use super::Php;
use crate::start;

/// Pages that are stored for an hour. `/vary...` vary on the language, `/own...` on the cookie.
async fn php() -> Php {
    Php::new(|target, request| {
        let vary = match target {
            _ if target.starts_with("/vary") => "Vary: Accept-Language\r\n",
            _ if target.starts_with("/own") => "Vary: Cookie\r\n",
            _ => "",
        };
        let head = format!("X-Accel-Expires: 3600\r\nSurrogate-Key: every\r\n{vary}");
        Script::page(&head, format!("{target} {}", request.number))
    })
    .await
}

async fn site(php: &Php, locations: &str) -> RunningServer {
    start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m; cache_refill on;\n\
         upstream php {{ server {}; }}\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_param REMOTE_ADDR $remote_addr;\n\
         fastcgi_cache zone; fastcgi_cache_key $scheme$request_method$host$request_uri;\n\
         fastcgi_cache_purge PURGE from all; add_header X-Cache $upstream_cache_status always;\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         location / {{ fastcgi_pass php; }}\n\
         location = /purge {{ cache_purge_api; }}\n{locations} }}",
        php.fake.address()
    ))
    .await
}

/// Visits until a page is shown from memory. With `cache_shared`, the first visit with new fields is the visitor's own,
/// and whether the fields matter is tried out in the background: each run has its number on the page.
async fn store(target: &Target, pages: &[(&str, &str)]) {
    for (path, fields) in pages {
        target.visit_until_hit(path, fields).await;
    }
}

/// Purges, and returns PHP's requests after that, once there are `count` of them.
async fn asked_after_purge(target: &Target, php: &Php, json: &str, count: usize) -> Vec<String> {
    php.take();
    let fields = "Content-Type: application/json\r\n";
    let reply = target.ask("POST", "/purge", fields, json).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    until_or(
        || php.asked.lock().len() >= count,
        || format!("{count} pages: {:?}", php.asked.lock()),
    )
    .await;
    php.take_sorted()
}

const EVERYTHING: &str = "{\"everything\":true}";
/// The address of the server's own requests.
const NOBODY: &str = "from=192.0.0.8";

#[tokio::test]
async fn purged_pages_are_fetched_for_nobody_in_particular() {
    let php = php().await;
    let server = site(&php, "").await;
    let target = server.target();
    let pages = ["/", "/a?b=1&c", "/caf%C3%A9"];
    for json in [
        EVERYTHING,
        "{\"tags\":[\"every\"]}",
        "{\"hosts\":[\"site.test\"]}",
        "{\"tags\":[\"every\"],\"soft\":true}",
    ] {
        store(&target, &pages.map(|path| (path, ""))).await;
        let asked = asked_after_purge(&target, &php, json, pages.len()).await;
        let expected = pages.map(|path| format!("{path} {NOBODY}"));
        assert_eq!(asked, expected, "{json}");
        for path in pages {
            // The answer may still be on its way: it is waited for, or the stale page is shown.
            let mut reply = target.get(path).await;
            while reply.x_cache() == "UPDATING" {
                reply = target.get(path).await;
            }
            assert!(["HIT", "MISS"].contains(&reply.x_cache()), "{path} {json}");
        }
        assert!(php.take().is_empty(), "each page is made once: {json}");
    }
}

#[tokio::test]
async fn a_page_that_is_removed_by_its_key_is_fetched_again() {
    let php = php().await;
    let server = site(&php, "").await;
    let target = server.target();
    store(&target, &[("/a", ""), ("/b", "")]).await;
    php.take();
    assert_eq!(target.ask("PURGE", "/a", "", "").await.status, 200);
    until("the page", || !php.asked.lock().is_empty()).await;
    assert_eq!(target.get("/a").await.x_cache(), "HIT");
    assert_eq!(php.take(), [format!("/a {NOBODY}")]);
}

/// A page stored under one key was made for that key's request, and no visitor's cookie is sent again.
#[tokio::test]
async fn what_depends_on_a_visitor_is_left_to_visitors() {
    let php = php().await;
    let locations = "location /session/ { fastcgi_pass php; fastcgi_cache_key $uri$cookie_session; }\n\
         location /off/ { fastcgi_pass php; cache_refill off; }\n\
         location /guarded/ { allow unix:; deny all; fastcgi_pass php; }\n\
         location /limited/ { limit_req zone=one; fastcgi_pass php; }\n\
         location /bypass/ { fastcgi_pass php; fastcgi_cache_bypass $bypass; }";
    let limits = "limit_req_zone $server_name zone=one:1m rate=1r/m;\n\
         map $remote_addr $bypass { 192.0.0.8 1; default 0; }";
    let server = start(&format!(
        "{limits}\nfastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m; cache_refill on;\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_param REMOTE_ADDR $remote_addr;\n\
         fastcgi_cache zone; fastcgi_cache_key $host$request_uri;\n\
         add_header X-Cache $upstream_cache_status always;\n\
         upstream php {{ server {}; }}\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         location / {{ fastcgi_pass php; }} location = /purge {{ cache_purge_api; }}\n\
         {locations} }}",
        php.fake.address()
    ))
    .await;
    let target = server.target();
    target.get("/limited/a").await;
    store(
        &target,
        &[
            ("/a", ""),
            ("/session/a", "Cookie: session=1\r\n"),
            ("/session/b", ""),
            ("/off/a", ""),
            ("/guarded/a", ""),
            ("/bypass/a", ""),
            ("/own/a", "Cookie: a=1\r\n"),
            ("/own/b", ""),
            ("/vary/a", "Accept-Language: de\r\n"),
            ("/vary/a", "Accept-Language: fr;q=0.5, en\r\n"),
            ("/vary/b", ""),
        ],
    )
    .await;
    let expected = [
        format!("/a {NOBODY}"),
        format!("/limited/a {NOBODY}"),
        format!("/own/b {NOBODY}"),
        format!("/session/b {NOBODY}"),
        format!("/vary/a language=de {NOBODY}"),
        format!("/vary/a language=fr;q=0.5,en {NOBODY}"),
        format!("/vary/b {NOBODY}"),
    ];
    let asked = asked_after_purge(&target, &php, EVERYTHING, expected.len()).await;
    assert_eq!(asked, expected);
    for (path, fields, cache) in [
        ("/session/a", "Cookie: session=1\r\n", "MISS"),
        ("/off/a", "", "MISS"),
        ("/guarded/a", "", "MISS"),
        ("/bypass/a", "", "MISS"),
        ("/own/a", "Cookie: a=1\r\n", "MISS"),
        ("/session/b", "", "HIT"),
        ("/vary/a", "Accept-Language: de\r\n", "HIT"),
    ] {
        let reply = target.get_with(path, fields).await;
        assert_eq!(reply.x_cache(), cache, "{path} {fields}");
    }
}

/// From its second answer on, the page purges itself: it would have itself fetched for ever.
#[tokio::test]
async fn what_a_fetched_page_purges_is_left_to_visitors() {
    let php = Php::new(|target, request| {
        let purges = match (target, request.number) {
            ("/a", 2..) => "X-Cache-Purge-Tags: every\r\n",
            _ => "",
        };
        let head = format!("X-Accel-Expires: 3600\r\nSurrogate-Key: every\r\n{purges}");
        Script::page(&head, target)
    })
    .await;
    let server = site(&php, "cache_purge_fields on;").await;
    let target = server.target();
    store(&target, &[("/a", "")]).await;
    let asked = asked_after_purge(&target, &php, EVERYTHING, 1).await;
    assert_eq!(asked, [format!("/a {NOBODY}")]);
    for other in 0..50 {
        target.get(&format!("/other/{other}")).await;
    }
    let asked = php.take();
    assert!(!asked.iter().any(|it| it.starts_with("/a ")), "{asked:?}");
}

#[tokio::test]
async fn shared_pages_are_fetched_again_for_desktops_and_phones() {
    let php = php().await;
    let server = start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m; cache_refill on; cache_shared on;\n\
         fastcgi_param REQUEST_URI $request_uri; fastcgi_cache zone;\n\
         add_header X-Cache $upstream_cache_status always;\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         location / {{ fastcgi_pass {}; }} location = /purge {{ cache_purge_api; }} }}",
        php.fake.address()
    ))
    .await;
    let target = server.target();
    let phone = "User-Agent: Mozilla/5.0 (Linux; Android 10; K) Mobile\r\n";
    let crawler = "User-Agent: Googlebot/2.1\r\n";
    store(
        &target,
        &[
            ("/a%20b", ""),
            ("/a%20b", phone),
            ("/c", crawler),
            ("/d", ""),
        ],
    )
    .await;
    let asked = asked_after_purge(&target, &php, EVERYTHING, 3).await;
    assert_eq!(asked, ["/a%20b", "/a%20b", "/d"]);
    for (path, fields, cache) in [
        ("/a%20b", "", "HIT"),
        ("/a%20b", phone, "HIT"),
        ("/d", "", "HIT"),
        ("/c", crawler, "MISS"),
    ] {
        let reply = target.get_with(path, fields).await;
        assert_eq!(reply.x_cache(), cache, "{path} {fields}");
    }
}
