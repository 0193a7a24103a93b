//! A whole site on one server: pages from PHP behind one cache, assets from an
//! HTTP server behind another. Every promise is held while both are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use testkit::client::{Reply, Target};
use testkit::fake_http::{self, FakeHttp};
use testkit::fake_php::{self, FakePhp};
use testkit::running::RunningServer;
use tokio::sync::Semaphore;

use crate::start;

const ASSET: &str = "0123456789abcdef";

/// The answer of both upstreams from now on: a status, or none.
type Behaviour = Arc<AtomicU16>;
const SILENT: u16 = 0;

async fn pages(behaviour: &Behaviour) -> FakePhp {
    let behaviour = Arc::clone(behaviour);
    FakePhp::tcp(move |request| {
        let body = format!(
            "{} {} {} run {}",
            request.param("REQUEST_METHOD"),
            request.param("REQUEST_URI"),
            String::from_utf8_lossy(&request.body),
            request.number
        );
        match behaviour.load(Ordering::SeqCst) {
            SILENT => fake_php::Script::new().hang(),
            status => fake_php::Script::page(&format!("Status: {status}\r\n"), body),
        }
    })
    .await
}

/// Serves parts of [`ASSET`] where a range is asked for, and the whole otherwise.
async fn assets(behaviour: &Behaviour) -> FakeHttp {
    let behaviour = Arc::clone(behaviour);
    let never = Arc::new(Semaphore::new(0));
    FakeHttp::start(move |request| {
        let status = behaviour.load(Ordering::SeqCst);
        let range = request.field("range").strip_prefix("bytes=");
        match range.and_then(|range| range.split_once('-')) {
            _ if status == SILENT => fake_http::Script::new().wait_for(&never),
            _ if status != 200 => fake_http::Script::new().raw(format!(
                "HTTP/1.1 {status} Sorry\r\nContent-Length: 5\r\n\r\nsorry"
            )),
            None => fake_http::Script::page("", ASSET),
            Some((start, end)) => {
                let start: usize = start.parse().expect("a slice has a start");
                let end: usize = end.parse().expect("a slice has an end");
                let part = &ASSET[start..(end + 1).min(ASSET.len())];
                fake_http::Script::new().raw(format!(
                    "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: {}\r\n\
                     Content-Range: bytes {start}-{}/{}\r\n\r\n{part}",
                    part.len(),
                    start + part.len() - 1,
                    ASSET.len()
                ))
            }
        }
    })
    .await
}

/// The site. Pages in `/brief/` are fresh for a millisecond, all else for an hour.
async fn site(php: &FakePhp, http: &FakeHttp) -> RunningServer {
    let configuration = format!(
        "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=8m;\n\
         proxy_cache_path %%/assets keys_zone=assets:1m memory=8m;\n\
         server {{\n\
           listen unix:%%/http; server_name site.test;\n\
           add_header X-Cache $upstream_cache_status always;\n\
           fastcgi_param REQUEST_METHOD $request_method;\n\
           fastcgi_param REQUEST_URI $request_uri;\n\
           fastcgi_read_timeout 1s; proxy_read_timeout 1s;\n\
           fastcgi_cache pages; fastcgi_cache_key $host$request_uri;\n\
           fastcgi_cache_valid 200 1h; fastcgi_cache_use_stale error timeout http_500 http_503;\n\
           fastcgi_cache_purge PURGE;\n\
           proxy_cache assets; proxy_cache_key $host$uri$slice_range;\n\
           proxy_cache_valid 200 206 1h; proxy_cache_use_stale error timeout http_500 http_503;\n\
           proxy_cache_purge PURGE;\n\
           location / {{ fastcgi_pass {php}; }}\n\
           location /brief/ {{ fastcgi_pass {php}; fastcgi_cache_valid 200 1ms; }}\n\
           location /search {{ fastcgi_pass {php}; fastcgi_cache_methods GET HEAD POST;\n\
             fastcgi_cache_key $request_method$host$request_uri$request_body; }}\n\
           location /assets/ {{ proxy_pass http://{http}; }}\n\
           location /assets/brief/ {{ proxy_pass http://{http}; proxy_cache_valid 200 1ms; }}\n\
           location /assets/film {{ slice 4; proxy_pass http://{http}; proxy_set_header Range $slice_range; }}\n\
         }}",
        php = php.address(),
        http = http.address(),
    );
    start(&configuration).await
}

/// Asks until the stored response is no longer fresh.
async fn once_stale(target: &Target, path: &str) -> Reply {
    loop {
        let reply = target.get(path).await;
        if reply.x_cache() != "HIT" {
            return reply;
        }
    }
}

#[tokio::test]
async fn pages_from_php_and_assets_over_http_share_a_server_and_keep_every_promise() {
    let behaviour = Arc::new(AtomicU16::new(200));
    let (php, http) = (pages(&behaviour).await, assets(&behaviour).await);
    let server = site(&php, &http).await;
    let target = server.target();

    each_cache_answers_for_its_own(&target, &php, &http).await;
    a_purge_removes_one_and_leaves_the_other(&target).await;
    ranges_come_from_slices(&target, &http).await;
    questions_asked_by_post_are_stored_by_their_body(&target, &php).await;

    let brief = ["/brief/page", "/assets/brief/a.css"];
    let mut known = Vec::new();
    for path in brief {
        known.push(target.get(path).await.text());
    }
    for (trouble, without_a_copy) in [(500, 500), (503, 503), (SILENT, 504)] {
        behaviour.store(trouble, Ordering::SeqCst);
        for (path, known) in brief.iter().zip(&known) {
            let stale = once_stale(&target, path).await;
            assert_eq!(
                (stale.status, stale.x_cache(), &stale.text()),
                (200, "STALE", known),
                "{path} during {trouble}"
            );
            let other = target.get(&format!("{path}-{trouble}")).await;
            assert_eq!(other.status, without_a_copy, "{path} during {trouble}");
        }
    }
    // A fresh page never meets the upstream.
    assert_eq!(target.get("/page").await.x_cache(), "HIT");
    assert_eq!(target.get("/assets/film").await.x_cache(), "HIT");

    behaviour.store(200, Ordering::SeqCst);
    for path in brief {
        assert_ne!(once_stale(&target, path).await.x_cache(), "STALE", "{path}");
    }
    assert_eq!(php.faults(), 0);
}

async fn each_cache_answers_for_its_own(target: &Target, php: &FakePhp, http: &FakeHttp) {
    for wanted in ["MISS", "HIT", "HIT"] {
        let page = target.get("/page").await;
        assert_eq!(
            (page.x_cache(), page.text().as_str()),
            (wanted, "GET /page  run 1")
        );
        let asset = target.get("/assets/a.css").await;
        assert_eq!((asset.x_cache(), asset.text().as_str()), (wanted, ASSET));
    }
    assert_eq!((php.requests(), http.requests()), (1, 1));
}

async fn a_purge_removes_one_and_leaves_the_other(target: &Target) {
    for (purged, kept) in [("/page", "/assets/a.css"), ("/assets/a.css", "/page")] {
        for status in [200, 404] {
            let reply = target.ask("PURGE", purged, "", "").await;
            assert_eq!(reply.status, status, "{purged}");
        }
        assert_eq!(target.get(kept).await.x_cache(), "HIT", "{kept}");
        assert_eq!(target.get(purged).await.x_cache(), "MISS", "{purged}");
        // The form in which applications behind a CDN send it.
        let absolute = format!("http://site.test{purged}");
        assert_eq!(target.ask("PURGE", &absolute, "", "").await.status, 200);
        assert_eq!(target.get(purged).await.x_cache(), "MISS", "{absolute}");
    }
}

async fn ranges_come_from_slices(target: &Target, http: &FakeHttp) {
    let before = http.requests();
    for (range, status, content, slices) in [
        ("Range: bytes=5-6\r\n", 206, "56", 1),
        ("Range: bytes=4-9\r\n", 206, "456789", 2),
        ("Range: bytes=-2\r\n", 206, "ef", 4),
        ("", 200, ASSET, 4),
    ] {
        let reply = target.get_with("/assets/film", range).await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (status, content),
            "{range}"
        );
        assert_eq!(http.requests() - before, slices, "{range}");
    }
}

async fn questions_asked_by_post_are_stored_by_their_body(target: &Target, php: &FakePhp) {
    let before = php.requests();
    let first = target.ask("POST", "/search", "", "q=one").await.text();
    assert!(first.starts_with("POST /search q=one run "), "{first}");
    for (body, wanted) in [("q=one", "HIT"), ("q=two", "MISS"), ("q=two", "HIT")] {
        let reply = target.ask("POST", "/search", "", body).await;
        assert_eq!(reply.x_cache(), wanted, "{body}");
        assert!(reply.text().contains(body), "{}", reply.text());
    }
    assert_eq!(php.requests() - before, 2);
    // A body that does not fit the buffer is not in the key: no client gets the answer to
    // another's.
    for last in ["a", "b"] {
        let body = format!("q={}{last}", "x".repeat(20_000));
        let reply = target.ask("POST", "/search", "", &body).await;
        assert!(reply.text().contains(&body));
        assert!(!reply.has("age"), "{reply:?}");
    }
}
