//! The fields of the protocol, one by one.

use testkit::fake_http::{FakeHttp, Script as HttpScript};
use testkit::fake_php::{FakePhp, Script};

use super::{configuration, pages, php, site};
use crate::start;

/// The fields of a page about storing, and whether it is stored.
#[tokio::test]
async fn litespeeds_word_counts_instead_of_others() {
    #[rustfmt::skip]
    let cases = [
        ("X-LiteSpeed-Cache-Control: public,max-age=60\r\nCache-Control: no-store, private\r\n", "HIT"),
        ("X-LiteSpeed-Cache-Control: public\r\nX-LiteSpeed-Cache-Control: s-maxage=60\r\n", "HIT"),
        ("X-LiteSpeed-Cache-Control: max-age=60\r\nExpires: 0\r\nX-Accel-Expires: 0\r\n", "HIT"),
        ("X-LiteSpeed-Cache-Control: no-cache\r\nCache-Control: public, max-age=60\r\n", "MISS"),
        ("X-LiteSpeed-Cache-Control: no-store,max-age=60\r\nX-Accel-Expires: 60\r\n", "MISS"),
        ("X-LiteSpeed-Cache-Control: private,max-age=60\r\nCDN-Cache-Control: max-age=60\r\n", "MISS"),
        ("X-LiteSpeed-Cache-Control: public,max-age=0\r\n", "MISS"),
        // A page without fields for LiteSpeed's cache is one like others.
        ("Cache-Control: max-age=60\r\n", "HIT"),
        ("X-LiteSpeed-Cache-Control: esi=on\r\nX-Accel-Expires: 60\r\n", "HIT"),
        ("", "MISS"),
    ];
    for (fields, expected) in cases {
        let php = php(move |_| Script::page(fields, "page")).await;
        let server = site(&php).await;
        server.target().get("/").await;
        let again = server.target().get("/").await;
        assert_eq!(again.x_cache(), expected, "{fields}");
        for name in [
            "x-litespeed-cache-control",
            "x-litespeed-vary",
            "x-litespeed-tag",
        ] {
            assert!(!again.has(name), "{name}");
        }
    }
}

/// The operator's ban on `Cache-Control` is not about LiteSpeed's field.
#[tokio::test]
async fn it_counts_where_cache_control_is_ignored() {
    let php = pages("X-LiteSpeed-Cache-Control: no-cache\r\nCache-Control: max-age=60\r\n").await;
    let lines = "fastcgi_ignore_headers Cache-Control Expires;\nfastcgi_cache_valid 200 1h;";
    let server = start(&configuration(&php, lines)).await;
    server.target().get("/").await;
    assert_eq!(server.target().get("/").await.x_cache(), "MISS");
}

/// litespeed-cache.php: the plug-in looks for these to know which server it is behind.
#[tokio::test]
async fn the_application_is_told_and_nobody_else_can() {
    let php = php(|request| {
        let told: Vec<String> = [
            "HTTP_X_LSCACHE",
            "X-LSCACHE",
            "HTTP_X_LSCACHE_VARY_VALUE",
            "HTTP_X_LITESPEED_PURGE",
        ]
        .map(|name| format!("{}={}", name, request.param(name)))
        .into();
        Script::page("", told.join(" "))
    })
    .await;
    let server = site(&php).await;
    let target = server.target();
    let forged = "X-LSCACHE: on,combine\r\nX_LSCACHE: on,crawler\r\nX-LSCACHE-VARY-VALUE: ismobile\r\n\
        X-LiteSpeed-Purge: *\r\n";
    let told =
        "HTTP_X_LSCACHE=on,esi X-LSCACHE=on,esi HTTP_X_LSCACHE_VARY_VALUE= HTTP_X_LITESPEED_PURGE=";
    for fields in [forged.to_owned(), format!("{forged}Cookie: a=1\r\n")] {
        for method in ["GET", "POST"] {
            let reply = target.ask(method, "/", &fields, "").await;
            assert_eq!(reply.text(), told, "{method} {fields}");
        }
    }
    let phone = target
        .get_with("/phone", "User-Agent: a telephone, Mobile\r\n")
        .await;
    assert!(
        phone.text().contains("VARY_VALUE=ismobile"),
        "{}",
        phone.text()
    );
    let server = start(&configuration(&php, "esi off;")).await;
    let without = server.target().get("/").await;
    assert!(
        without
            .text()
            .starts_with("HTTP_X_LSCACHE=on X-LSCACHE=on ")
    );
}

#[tokio::test]
async fn http_upstreams_are_told_as_well() {
    let upstream = FakeHttp::start(|request| {
        let told = format!(
            "{} {}",
            request.field("x-lscache"),
            request.head.matches("LSCACHE").count()
        );
        HttpScript::page("X-LiteSpeed-Cache-Control: public,max-age=60\r\n", told)
    })
    .await;
    let http = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m;\n\
         server {{\n listen unix:%%/http;\n cache_litespeed on;\n\
         location / {{\n proxy_pass {};\n proxy_cache zone;\n\
         add_header X-Cache $upstream_cache_status always;\n }}\n}}",
        upstream.url()
    );
    let server = start(&http).await;
    for expected in ["MISS", "HIT"] {
        let page = server.target().get("/").await;
        assert_eq!(
            (page.text().as_str(), page.x_cache()),
            ("on,esi 1", expected)
        );
        let page = server.target().get_with("/", "X-LSCACHE: forged\r\n").await;
        assert_eq!(
            (page.text().as_str(), page.x_cache()),
            ("on,esi 1", "BYPASS")
        );
    }
}

/// Without the directive none of it is sent, obeyed or hidden, but for tags and purges.
#[tokio::test]
async fn without_the_directive_nothing_is_said() {
    let php = FakePhp::tcp(|request| {
        let fields = "X-LiteSpeed-Cache-Control: public,max-age=60\r\n";
        Script::page(fields, request.param("HTTP_X_LSCACHE"))
    })
    .await;
    let server = start(&php.cached_site("")).await;
    for _ in 0..2 {
        let page = server.target().get("/").await;
        assert_eq!((page.text().as_str(), page.x_cache()), ("", "MISS"));
        assert!(page.has("x-litespeed-cache-control"));
    }
}

/// `X-LiteSpeed-Vary: value=` is for marked requests: only the server marks them.
#[tokio::test]
async fn a_value_that_nobody_sends_is_not_stored() {
    const PHONE: &str = "User-Agent: a telephone, Mobile\r\n";
    for (value, fields, expected) in [
        ("ismobile", "", "MISS"),
        ("ismobile", PHONE, "HIT"),
        ("winter", PHONE, "MISS"),
        ("", "", "HIT"),
    ] {
        let php = php(move |_| {
            let fields = format!("X-LiteSpeed-Cache-Control: public,max-age=60\r\nX-LiteSpeed-Vary: value={value}\r\n");
            Script::page(&fields, "page")
        })
        .await;
        let server = site(&php).await;
        // The first visit of a phone is its own.
        for _ in 0..2 {
            server.target().get_with("/", fields).await;
        }
        let again = server.target().get_with("/", fields).await;
        assert_eq!(again.x_cache(), expected, "{value} {fields}");
    }
}
