//! `*_cache_purge METHOD` finds the responses stored by GET and HEAD, with or without the
//! method in the cache key.

use testkit::fake_php::FakePhp;

use crate::published::pages;
use crate::start;

fn cached(php: &FakePhp, maps: &str, directives: &str) -> String {
    let site = php.cached_site(&format!("fastcgi_cache_valid 200 1h;\n{directives}"));
    // A key of the test's own in the place of the usual one.
    let site = site.replace("fastcgi_cache_key $host$request_uri;", "");
    format!("{maps}\n{site}")
}

#[tokio::test]
async fn a_purge_finds_what_get_and_head_stored_under_a_key_with_the_method() {
    for (maps, key) in [
        ("", "$scheme$request_method$host$request_uri"),
        ("", "$request_method:$host$request_uri"),
        (
            "map $request_method $kind { default other; GET read; HEAD look; }",
            "$kind$host$request_uri",
        ),
    ] {
        let php = pages("Content-Type: text/html\r\n").await;
        let rules = format!(
            "fastcgi_cache_key {key}; fastcgi_cache_convert_head off; fastcgi_cache_purge PURGE from all;\n\
             set $seen $request_method;"
        );
        let server = start(&cached(&php, maps, &rules)).await;
        let target = server.target();
        for path in ["/a", "/b"] {
            assert_eq!(target.get(path).await.x_cache(), "MISS", "{key}");
            assert_eq!(target.get(path).await.x_cache(), "HIT", "{key}");
        }
        assert_eq!(target.ask("PURGE", "/a", "", "").await.status, 200, "{key}");
        assert_eq!(target.ask("PURGE", "/a", "", "").await.status, 404, "{key}");
        assert_eq!(target.get("/a").await.x_cache(), "MISS", "{key}");
        assert_eq!(target.get("/b").await.x_cache(), "HIT", "{key}");
    }
}

#[tokio::test]
async fn a_purge_removes_what_head_stored_as_well() {
    let php = pages("Content-Type: text/html\r\n").await;
    let rules =
        "fastcgi_cache_key $request_method$request_uri; fastcgi_cache_purge PURGE from all;";
    let server = start(&cached(&php, "", rules)).await;
    let target = server.target();
    for wanted in ["MISS", "HIT"] {
        assert_eq!(target.ask("HEAD", "/a", "", "").await.x_cache(), wanted);
    }
    assert_eq!(target.ask("PURGE", "/a", "", "").await.status, 200);
    assert_eq!(target.ask("HEAD", "/a", "", "").await.x_cache(), "MISS");
}

#[tokio::test]
async fn purge_all_empties_the_zone() {
    let php = pages("Content-Type: text/html\r\n").await;
    let rules = "fastcgi_cache_key $request_uri; fastcgi_cache_purge PURGE purge_all from all;";
    let server = start(&cached(&php, "", rules)).await;
    let target = server.target();
    for path in ["/a", "/b"] {
        target.get(path).await;
        assert_eq!(target.get(path).await.x_cache(), "HIT");
    }
    assert_eq!(target.ask("PURGE", "/anything", "", "").await.status, 200);
    for path in ["/a", "/b"] {
        assert_eq!(target.get(path).await.x_cache(), "MISS");
    }
}
