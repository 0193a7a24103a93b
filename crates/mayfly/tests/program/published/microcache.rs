//! The FastCGI microcache on a small machine: pages for all in a zone of their own, pages
//! for a session, a cookie of two seconds for writers, more time for crawlers.

use testkit::process::Signal;

use super::*;
use crate::start;

/// The configuration that its author printed, but for the addresses.
fn configuration(php: &FakePhp) -> String {
    format!(
        r#"
fastcgi_cache_path %%/cache levels=1:2 keys_zone=microcache:5m max_size=100m inactive=1h;
fastcgi_cache_path %%/sessions levels=1:2 keys_zone=sessions:5m max_size=10m inactive=10m;
log_format cache '$remote_addr - $remote_user [$time_local] "$request" $status '
                 '$upstream_cache_status $ssl_protocol $http2 "$http_user_agent"';
map $request_method $no_cache {{ default 1; GET 0; HEAD 0; }}
map $http_cookie $session {{ default ""; "~(?:^|;\s*)sid=(?P<sid>[a-z0-9]+)" $sid; }}
map $http_user_agent $is_crawler {{ default 0; ~*bot 1; }}
server {{
    listen unix:%%/http default_server;
    server_name site.test;
    access_log %%/cache.log cache;
    location ~ ^/(admin|login) {{
        {FASTCGI_PARAMS}
        fastcgi_pass {php};
    }}
    location @crawler {{
        {FASTCGI_PARAMS}
        fastcgi_pass {php};
        fastcgi_cache microcache;
        fastcgi_cache_key crawler$scheme$host$request_uri$request_method;
        fastcgi_cache_valid 200 1h;
        fastcgi_ignore_headers Cache-Control Expires;
        add_header X-Cache "crawler $upstream_cache_status";
    }}
    location / {{
        # Setup var defaults
        set $no_cache "";
        error_page 418 = @crawler;
        if ($is_crawler) {{ return 418; }}
        # If non GET/HEAD, don't cache & mark user as uncacheable for 2 seconds via cookie
        if ($request_method !~ ^(GET|HEAD)$) {{ set $no_cache "1"; }}
        # Drop no cache cookie if need be
        # (for some reason, add_header fails if included in prior if-block)
        if ($no_cache = "1") {{
            add_header Set-Cookie "_mcnc=1; Max-Age=2; Path=/";
            add_header X-Microcachable "0";
        }}
        # Bypass cache if no-cache cookie is set
        if ($http_cookie ~* "_mcnc") {{ set $no_cache "1"; }}
        fastcgi_no_cache $no_cache;
        fastcgi_cache_bypass $no_cache;
        fastcgi_cache microcache;
        fastcgi_cache_key $session$scheme$host$request_uri$request_method;
        fastcgi_cache_valid 200 301 302 1h;
        fastcgi_cache_use_stale updating error timeout invalid_header http_500;
        fastcgi_pass_header Set-Cookie;
        fastcgi_pass_header Cookie;
        fastcgi_ignore_headers Cache-Control Expires Set-Cookie;
        fastcgi_cache_purge PURGE from all;
        fastcgi_max_temp_file_size 1m;
        {FASTCGI_PARAMS}
        fastcgi_pass {php};
        add_header X-Cache $upstream_cache_status;
    }}
}}
"#,
        php = php.address()
    )
}

#[tokio::test]
async fn the_microcache_set_up_starts_as_printed_and_does_what_it_says() {
    let php = pages("Content-Type: text/html\r\nCache-Control: no-cache\r\n").await;
    let server = start(&configuration(&php)).await;
    let target = server.target();

    // Pages for everybody: once made, then from memory; HEAD has a stored response of its own.
    let first = target.get("/page").await;
    assert_eq!((first.status, first.x_cache()), (200, "MISS"));
    assert_eq!(target.get("/page").await.x_cache(), "HIT");
    assert_eq!(target.ask("HEAD", "/page", "", "").await.status, 200);

    // A visitor who writes goes past the cache for a while, and leaves nothing there.
    let written = target.ask("POST", "/page", "", "text=1").await;
    assert!(
        written.text().starts_with("POST /page text=1"),
        "{written:?}"
    );
    assert_eq!(written.field("set-cookie"), "_mcnc=1; Max-Age=2; Path=/");
    assert_eq!(written.field("x-microcachable"), "0");
    let before = target.get("/other").await;
    let own = target.get_with("/other", "Cookie: _mcnc=1\r\n").await;
    assert_eq!(own.x_cache(), "BYPASS");
    assert_ne!(own.text(), before.text());
    assert_eq!(target.get("/other").await.text(), before.text());

    // A session's pages are its own.
    let anna = "Cookie: sid=anna1\r\n";
    let hers = target.get_with("/mine", anna).await;
    assert_eq!(target.get_with("/mine", anna).await.text(), hers.text());
    for other in ["Cookie: sid=bert2\r\n", ""] {
        assert_ne!(target.get_with("/mine", other).await.text(), hers.text());
    }

    // Crawlers have stored responses that last, exempt paths none.
    let crawler = "User-Agent: somebot/1.0\r\n";
    assert_eq!(
        target.get_with("/page", crawler).await.x_cache(),
        "crawler MISS"
    );
    assert_eq!(
        target.get_with("/page", crawler).await.x_cache(),
        "crawler HIT"
    );
    let admin = target.get("/admin").await.text();
    assert_ne!(target.get("/admin").await.text(), admin);

    // A purge finds the response that GET stored, although the key holds the method.
    assert_eq!(target.ask("PURGE", "/other", "", "").await.status, 200);
    assert_eq!(target.get("/other").await.x_cache(), "MISS");
    assert_eq!(target.ask("PURGE", "/never", "", "").await.status, 404);
}

#[tokio::test]
async fn its_log_has_a_dash_for_tls_and_nothing_for_http2() {
    let php = pages("Content-Type: text/html\r\n").await;
    let mut server = start(&configuration(&php)).await;
    let log = server.path("cache.log");
    server.target().get("/page").await;
    server.signal(Signal::QUIT);
    server.ended().await;
    let lines = std::fs::read_to_string(log).expect("a log");
    assert!(
        lines.contains("\"GET /page HTTP/1.1\" 200 MISS -  \"-\""),
        "{lines}"
    );
}
