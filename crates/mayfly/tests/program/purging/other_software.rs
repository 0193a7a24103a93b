//! Purges of existing software, byte for byte. Each test names the source that it follows; the rows are
//! those of `crates/server/src/content/purging/doors.rs`.

use super::*;

const PAGES: &[&str] = &[
    "/",
    "/news/5",
    "/news/6",
    "/blog/a",
    "/cat_p_5",
    "/cat_p_50",
];

/// Sends these bytes, and gives the status with the pages that are gone.
async fn send(server: &RunningServer, bytes: &str) -> (u16, Vec<&'static str>) {
    let target = server.target();
    store(&target, PAGES).await;
    let mut client = server.connect().await;
    client.send(bytes).await;
    let reply = client.receive(false).await.expect("a response");
    (reply.status, gone(&target, PAGES).await)
}

/// Sends these bytes, which are answered with 200, and after which exactly these pages are gone.
async fn assert_purges(server: &RunningServer, bytes: &str, pages: &[&str]) {
    assert_eq!(send(server, bytes).await, (200, pages.to_vec()), "{bytes}");
}

/// A site where these methods purge.
async fn purged_by(methods: &[&str]) -> (FakePhp, RunningServer) {
    let php = tagged_pages().await;
    let lines = methods.iter();
    let lines: Vec<String> = lines
        .map(|method| format!("fastcgi_cache_purge {method} from local;"))
        .collect();
    let server = site(&php, "", &lines.join("\n")).await;
    (php, server)
}

#[tokio::test]
async fn mediawiki_sends_purge_with_a_whole_url() {
    // includes/deferred/CdnCacheUpdate.php, naivePurge(): PURGE, the URL, with Host beside it.
    let (_php, server) = purged_by(&["PURGE"]).await;
    let bytes = "PURGE http://site.test/news/5 HTTP/1.1\r\nHost: site.test\r\nConnection: Keep-Alive\r\n\
                 Proxy-Connection: Keep-Alive\r\nUser-Agent: MediaWiki/1.39 CdnCacheUpdate::purge\r\n\r\n";
    assert_purges(&server, bytes, &["/news/5"]).await;
}

#[tokio::test]
async fn magento_sends_a_pattern_of_tags() {
    // Magento 2: app/code/Magento/CacheInvalidate/Observer/InvalidateVarnishObserver.php makes the
    // pattern, Model/PurgeCache.php sends it.
    let (_php, server) = purged_by(&["PURGE"]).await;
    let head =
        "PURGE / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nX-Magento-Tags-Pattern: ";
    for (pattern, expected) in [
        ("((^|,)cat_p_5(,|$))", &["/cat_p_5"][..]),
        (
            "((^|,)cat_p_5(,|$))|((^|,)news/6(,|$))",
            &["/news/6", "/cat_p_5"],
        ),
        ("((^|,)none(,|$))", &[]),
        (".*", PAGES),
    ] {
        let bytes = format!("{head}{pattern}\r\n\r\n");
        assert_purges(&server, &bytes, expected).await;
    }
    let bytes = format!("{head}((^|,)cat_p_5(,|$)\r\n\r\n");
    assert_eq!(send(&server, &bytes).await, (400, vec![]));
}

#[tokio::test]
async fn foshttpcache_sends_ban_with_patterns() {
    // FOSHttpCache: src/ProxyClient/Varnish.php, ban(), banPath() and invalidateByBan().
    let (_php, server) = purged_by(&["BAN", "PURGE"]).await;
    #[rustfmt::skip]
    let cases = [
        (
            "X-Host: .*\r\nX-Url: .*\r\nX-Content-Type: .*\r\nX-Cache-Tags: (^|,)(news/5|cat_p_5)(,|$)\r\n", 200,
            &["/news/5", "/cat_p_5"][..],
        ),
        ("X-Host: .*\r\nX-Url: ^/news/.*\r\nX-Content-Type: .*\r\n", 200, &["/news/5", "/news/6"]),
        ("X-Host: ^(site.test|b)$\r\nX-Url: /cat\r\nX-Content-Type: .*\r\n", 200, &["/cat_p_5", "/cat_p_50"]),
        ("X-Host: ^other$\r\nX-Url: .*\r\nX-Content-Type: .*\r\n", 200, &[]),
        ("X-Host: .*\r\nX-Url: .*\r\nX-Content-Type: .*\r\n", 200, PAGES),
        ("X-Host: .*\r\nX-Url: .*\r\nX-Content-Type: text/html\r\n", 400, &[]),
        ("X-Host: a\r\nX-Url: .*\r\nX-Content-Type: .*\r\nX-Cache-Tags: (^|,)(all)(,|$)\r\n", 400, &[]),
    ];
    for (fields, status, expected) in cases {
        let bytes = format!("BAN / HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
        assert_eq!(
            send(&server, &bytes).await,
            (status, expected.to_vec()),
            "{fields}"
        );
    }
    let bytes = "PURGE /news/5 HTTP/1.1\r\nHost: site.test\r\nUser-Agent: Symfony HttpClient (Curl)\r\n\r\n";
    assert_purges(&server, bytes, &["/news/5"]).await;
}

#[tokio::test]
async fn purgekeys_and_xkey_fields_name_tags() {
    // FOSHttpCache with tag_mode=purgekeys (src/ProxyClient/Varnish.php, invalidateByPurgekeys()),
    // Ibexa, and the example of varnish-modules' vmod xkey.
    let (_php, server) = purged_by(&["PURGEKEYS", "PURGE"]).await;
    for (method, fields, expected) in [
        (
            "PURGEKEYS",
            "xkey-purge: news/5 cat_p_5\r\n",
            &["/news/5", "/cat_p_5"][..],
        ),
        ("PURGE", "xkey-purge: news/6\r\n", &["/news/6"]),
        // A stale page is no hit either.
        ("PURGEKEYS", "xkey-softpurge: news/5\r\n", &["/news/5"]),
    ] {
        let bytes = format!("{method} / HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
        assert_purges(&server, &bytes, expected).await;
    }
}

#[tokio::test]
async fn foshttpcache_for_symfony_sends_purgetags_and_clears_all() {
    // FOSHttpCache: src/ProxyClient/Symfony.php, invalidateTags() and clear().
    let (_php, server) = purged_by(&["PURGETAGS", "PURGE"]).await;
    let bytes = "PURGETAGS / HTTP/1.1\r\nHost: site.test\r\nX-Cache-Tags: news/5,news/6\r\n\r\n";
    assert_purges(&server, bytes, &["/news/5", "/news/6"]).await;
    let bytes = "PURGE / HTTP/1.1\r\nHost: site.test\r\nClear-Cache: true\r\n\r\n";
    assert_purges(&server, bytes, PAGES).await;
}

#[tokio::test]
async fn drupals_purgers_send_ban_with_cache_tags() {
    // The modules purge_purger_http and varnish_purge: BAN with the field Cache-Tags, one tag or
    // several with | between them, as in their example VCL.
    let (_php, server) = purged_by(&["BAN"]).await;
    for (tags, expected) in [
        ("news/5", &["/news/5"][..]),
        ("news/5|cat_p_5", &["/news/5", "/cat_p_5"]),
        ("news/5 news/6", &["/news/5", "/news/6"]),
    ] {
        let bytes = format!("BAN / HTTP/1.1\r\nHost: site.test\r\nCache-Tags: {tags}\r\n\r\n");
        assert_purges(&server, &bytes, expected).await;
    }
}

#[tokio::test]
async fn wordpress_proxy_cache_purge_sends_a_method_of_matching() {
    // varnish-http-purge.php, purge_url(): one page, or all below a path.
    let (_php, server) = purged_by(&["PURGE"]).await;
    let rest = "User-Agent: WordPress/6.4; http://site.test\r\nAccept: */*\r\n\
                Accept-Encoding: deflate, gzip\r\nConnection: close\r\n\r\n";
    for (path, method, expected) in [
        ("/news/5", "default", &["/news/5"][..]),
        ("/blog/.*", "regex", &["/blog/a"]),
        ("/.*", "regex", PAGES),
    ] {
        let bytes = format!(
            "PURGE {path} HTTP/1.1\r\nHost: site.test\r\nX-Purge-Method: {method}\r\n{rest}"
        );
        assert_purges(&server, &bytes, expected).await;
    }
}

#[tokio::test]
async fn wordpress_proxy_cache_purge_with_tags_sends_a_pattern_of_them() {
    // varnish-http-purge.php from 5.4 on, purge_tags(). In the VCL that its settings show, the pattern
    // is searched for in the tags: so p_5 finds p_50 as well.
    let (_php, server) = purged_by(&["PURGE"]).await;
    let head =
        "PURGE / HTTP/1.1\r\nhost: site.test\r\nX-Purge-Method: tags\r\nX-Cache-Tags-Pattern: ";
    for (pattern, expected) in [
        ("news/5|news/6", &["/news/5", "/news/6"][..]),
        ("none|cat_p_5", &["/cat_p_5", "/cat_p_50"]),
        ("none", &[]),
    ] {
        let bytes = format!("{head}{pattern}\r\nConnection: close\r\n\r\n");
        assert_purges(&server, &bytes, expected).await;
    }
}

#[tokio::test]
async fn w3_total_cache_sends_purge_and_a_star_for_all() {
    // W3 Total Cache: Varnish_Flush.php, _request() and do_flush().
    let (_php, server) = purged_by(&["PURGE"]).await;
    for (path, expected) in [("/news/5", &["/news/5"][..]), ("/.*", PAGES)] {
        let bytes = format!(
            "PURGE {path} HTTP/1.1\r\nHost: site.test\r\nUser-Agent: W3 Total Cache\r\nConnection: close\r\n\r\n"
        );
        assert_purges(&server, &bytes, expected).await;
    }
}

#[tokio::test]
async fn nginx_helper_gets_a_page_below_purge() {
    // rtCamp's Nginx Helper: admin/class-fastcgi-purger.php, purge_url() with get_request; and
    // FOSHttpCache's src/ProxyClient/Nginx.php with purge_location.
    let rest = "User-Agent: WordPress/6.4; http://site.test\r\nConnection: close\r\n\r\n";
    let php = tagged_pages().await;
    let by_key = "location ~ /purge(/.*) { fastcgi_cache_purge zone $host$1; }";
    let by_api = "location /purge/ { cache_purge_api; }";
    for location in [by_key, by_api] {
        let server = site(&php, location, "").await;
        for method in ["GET", "PURGE"] {
            let bytes = format!("{method} /purge/news/5 HTTP/1.1\r\nHost: site.test\r\n{rest}");
            assert_purges(&server, &bytes, &["/news/5"]).await;
        }
    }
}

#[tokio::test]
async fn a_location_that_purges_finds_addresses_with_escapes() {
    let php = tagged_pages().await;
    let by_key = "location ~ /purge(?<page>/.*) { allow 127.0.0.1; allow unix:; deny all; fastcgi_cache_purge zone KEY; }";
    for key in ["$host$1", "$host$page"] {
        let server = site(&php, &by_key.replace("KEY", key), "").await;
        let target = server.target();
        for (page, purged) in [
            ("/plain", "/plain"),
            ("/%C3%BCber/", "/%C3%BCber/"),
            ("/%c3%bcber/", "/%c3%bcber/"),
            ("/%c3%bcber/", "/%C3%BCber/"),
            ("/%C3%BCber/", "/%c3%bcber/"),
            ("/%D8%B3%D9%84%D8%A7%D9%85", "/%d8%b3%d9%84%d8%a7%d9%85"),
            ("/a%20b", "/a%20b"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%2fb", "/a%2fb"),
            ("/100%25", "/100%25"),
        ] {
            store(&target, &[page]).await;
            let purge = target.get(&format!("/purge{purged}")).await;
            assert_eq!(purge.status, 200, "{key} {page} {purged}");
            assert_eq!(
                gone(&target, &[page]).await,
                [page],
                "{key} {page} {purged}"
            );
        }
    }
}

#[tokio::test]
async fn a_purge_is_of_what_was_sent_where_one_script_makes_all_pages() {
    // Most sites of PHP have these two locations. The front page is the one of an index, and all others
    // are found by an internal redirect.
    let php = tagged_pages().await;
    let site = php.cached_site(
        "fastcgi_cache_valid 200 1h; fastcgi_cache_purge PURGE from local; fastcgi_cache_purge BAN from local;",
    );
    let lines = "root %%/site; index index.php;\n\
                 location / { try_files $uri $uri/ /index.php?$args; }\nlocation ~ \\.php$ {";
    let server = start(&site.replacen("location / {", lines, 1)).await;
    std::fs::create_dir(server.path("site")).expect("a folder");
    server.write("site/index.php", "");
    let target = server.target();
    let pages = ["/", "/news/5", "/blog/a"];
    for (method, path, fields, expected) in [
        ("PURGE", "/", "", &["/"][..]),
        ("PURGE", "/news/5", "", &["/news/5"]),
        (
            "PURGE",
            "/",
            "X-Magento-Tags-Pattern: ^blog\r\n",
            &["/blog/a"],
        ),
        ("BAN", "/", "Cache-Tags: news/5\r\n", &["/news/5"]),
        ("PURGE", "/blog/.*", "", &["/blog/a"]),
        (
            "PURGE",
            "/news/.*",
            "X-Purge-Method: regex\r\n",
            &["/news/5"],
        ),
        ("PURGE", "/.*", "X-Purge-Method: regex\r\n", &pages),
    ] {
        store(&target, &pages).await;
        let reply = target.ask(method, path, fields, "").await;
        assert_eq!(reply.status, 200, "{method} {path} {fields}");
        assert_eq!(gone(&target, &pages).await, expected, "{method} {path}");
    }
    std::fs::remove_file(server.path("site/index.php")).expect("a file");
    assert_eq!(target.ask("PURGE", "/", "", "").await.status, 405);
}

#[tokio::test]
async fn whoever_may_not_purge_is_passed_on_as_any_request() {
    let (php, server) = purged_by(&["PURGE", "BAN", "PURGETAGS", "PURGEKEYS"]).await;
    for (method, field) in [
        ("PURGE", "X-Magento-Tags-Pattern: .*"),
        ("PURGE", "Clear-Cache: true"),
        ("PURGE", "X-Purge-Method: regex"),
        ("PURGE", "X-Cache-Tags-Pattern: all"),
        ("BAN", "X-Url: .*"),
        ("BAN", "Cache-Tags: all"),
        ("PURGETAGS", "X-Cache-Tags: all"),
        ("PURGEKEYS", "xkey-purge: all"),
        // A field alone purges nothing.
        ("GET", "xkey-purge: all"),
        ("POST", "X-Cache-Tags: all"),
    ] {
        let before = php.requests();
        let bytes = format!(
            "{method} /other HTTP/1.1\r\nHost: site.test\r\nX-Forwarded-For: 192.0.2.1\r\n{field}\r\n\r\n"
        );
        let (_, gone) = send(&server, &bytes).await;
        assert!(gone.is_empty(), "{method} {field}: {gone:?}");
        assert!(php.requests() > before, "{method} {field}");
    }
}
