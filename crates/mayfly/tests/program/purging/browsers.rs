//! Purges that a browser sends for a page of another site, or for one that has led its own name here
//! (DNS rebinding). The fields are those that browsers send.

use super::*;

const FROM_LOCAL: &str =
    "fastcgi_cache_purge PURGE from local; fastcgi_cache_purge BAN from local;";
const REBOUND: &str = "Origin: http://rebound.example\r\nReferer: http://rebound.example/\r\n\
                       Accept-Language: en\r\n";

async fn send(server: &RunningServer, line: &str, host: &str, fields: &str) -> Reply {
    let mut client = server.connect().await;
    let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    client.send(head).await;
    client.receive(false).await.expect("a response")
}

#[tokio::test]
async fn a_rebound_page_purges_nothing_by_the_methods_of_other_software() {
    let php = tagged_pages().await;
    for rules in [
        FROM_LOCAL,
        "fastcgi_cache_purge PURGE from unix: 127.0.0.1; fastcgi_cache_purge BAN from unix:;",
        "fastcgi_cache_purge PURGE from all; fastcgi_cache_purge BAN from all;",
    ] {
        let server = site(&php, "", rules).await;
        let target = server.target();
        store(&target, &["/news/5"]).await;
        for (line, fields) in [
            ("PURGE /news/5", ""),
            ("PURGE /news/5", "Clear-Cache: true\r\n"),
            ("PURGE /", "xkey-purge: all\r\n"),
            ("PURGE /", "xkey-softpurge: all\r\n"),
            ("PURGE /", "X-Magento-Tags-Pattern: .*\r\n"),
            (
                "PURGE /.*",
                "X-Purge-Method: regex\r\nX-Host: site.test\r\n",
            ),
            ("BAN /", "X-Host: site.test\r\nX-Url: .*\r\n"),
            ("BAN /", "Cache-Tags: all\r\n"),
        ] {
            let fields = format!("{fields}{REBOUND}");
            let reply = send(&server, line, "rebound.example", &fields).await;
            assert_eq!(reply.status, 403, "{rules} {line} {fields}");
            // A page of another site, which names this one by its true name.
            let reply = send(&server, line, "site.test", &fields).await;
            assert_eq!(reply.status, 403, "{rules} {line} {fields}");
        }
        assert_eq!(target.get("/news/5").await.x_cache(), "HIT", "{rules}");
        // A page of this site, and a program.
        let own = "Origin: https://site.test\r\nSec-Fetch-Site: same-origin\r\n";
        for fields in [own, ""] {
            store(&target, &["/news/5"]).await;
            let reply = send(&server, "PURGE /news/5", "site.test", fields).await;
            assert_eq!(reply.status, 200, "{rules} {fields}");
            assert_eq!(gone(&target, &["/news/5"]).await, ["/news/5"], "{rules}");
        }
    }
}

/// Behind `server_name _`, an application names its own host, which no `server_name` is.
#[tokio::test]
async fn a_program_that_names_an_unknown_host_purges_pages_of_that_host_alone() {
    let php = tagged_pages().await;
    for key in ["$host$request_uri", "$request_uri"] {
        let rules = format!("{FROM_LOCAL} fastcgi_cache_key {key};");
        let http = configuration(&php, "", "", &rules).replacen(
            "fastcgi_cache_key $host$request_uri;",
            "",
            1,
        );
        let server = start(&http).await;
        let target = server.target();
        store(&target, &["/news/5"]).await;
        for (line, fields, status) in [
            ("PURGE /news/5", "", 404),
            ("PURGE /news/5", "Clear-Cache: true\r\n", 403),
            ("PURGE /", "xkey-purge: all\r\n", 403),
            ("PURGE /", "X-Magento-Tags-Pattern: .*\r\n", 403),
            ("BAN /", "X-Host: site.test\r\nX-Url: .*\r\n", 403),
        ] {
            let reply = send(&server, line, "unknown.example", fields).await;
            assert_eq!(reply.status, status, "{key} {line} {fields}");
        }
        assert_eq!(target.get("/news/5").await.x_cache(), "HIT", "{key}");
        let get = async || send(&server, "GET /page", "unknown.example", "").await;
        get().await;
        let other = "/page".to_owned();
        let reply = send(&server, &format!("PURGE {other}"), "unknown.example", "").await;
        assert_eq!(reply.status, 200, "{key}");
        assert_ne!(get().await.x_cache(), "HIT", "{key}");
    }
}

#[tokio::test]
async fn an_image_of_another_site_purges_nothing() {
    let php = tagged_pages().await;
    let by_key = "location ~ ^/purge(/.*) { fastcgi_cache_purge zone $host$1; }";
    let by_api = "location /purge/ { cache_purge_api; }";
    let open = "location /purge/ { allow all; cache_purge_api; }";
    let server_name = "server_name 127.0.0.1;";
    for location in [by_key, by_api, open] {
        let server = site(&php, &format!("{server_name}\n{location}"), "").await;
        for host in ["127.0.0.1", "site.test"] {
            let page = async || send(&server, "GET /news/5", host, "").await;
            page().await;
            for fields in [
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
                "Sec-Fetch-Site: same-site\r\n",
                // The user clicks on a link there.
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
                "Referer: http://other.example/\r\n",
                "Origin: null\r\n",
                // By plain HTTP, with `referrerpolicy=no-referrer`.
                "Accept-Language: en\r\nAccept: image/avif,image/webp,*/*;q=0.8\r\n",
            ] {
                let reply = send(&server, "GET /purge/news/5", host, fields).await;
                assert_eq!(reply.status, 403, "{location} {host} {fields}");
                assert_eq!(page().await.x_cache(), "HIT", "{location} {fields}");
            }
            for fields in [
                "",
                "Accept-Language: en\r\nSec-Fetch-Site: same-origin\r\n",
                "Accept-Language: en\r\nSec-Fetch-Site: none\r\n",
            ] {
                page().await;
                let reply = send(&server, "GET /purge/news/5", host, fields).await;
                assert_eq!(reply.status, 200, "{location} {host} {fields}");
                assert_ne!(page().await.x_cache(), "HIT", "{location} {fields}");
            }
        }
    }
}
