//! Refreshes that keep visitors waiting: a large store is read, all of it stale, and a visitor of a
//! page that is not stored stands behind the refreshes of all others.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testkit::client::Reply;
use testkit::fake_http::{FakeHttp, Script};
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;
use tokio::sync::Semaphore;

use crate::start;

/// An application with `workers` workers. Pages come at once when they are asked for first;
/// after that `gate` has to let them.
async fn site(
    workers: usize,
    gate: &Arc<Semaphore>,
    directives: &str,
) -> (FakeHttp, RunningServer) {
    let gate = gate.clone();
    let known = Mutex::new(HashSet::new());
    let http = FakeHttp::start(move |request| {
        let script = match known.lock().unwrap().insert(request.target.clone()) {
            true => Script::new(),
            false => Script::new().wait_for(&gate),
        };
        script.raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage")
    })
    .await;
    let configuration = format!(
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         upstream site {{ server {} max_conns={workers}; queue 20; }}\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass http://site;\n\
         proxy_cache zone; proxy_cache_key $uri; proxy_cache_valid 200 20ms;\n\
         proxy_cache_use_stale updating; proxy_cache_background_update on;\n\
         add_header X-Cache $upstream_cache_status always; {directives} }} }}",
        http.address()
    );
    let server = start(&configuration).await;
    (http, server)
}

fn seen(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.x_cache())
}

async fn pass_lifetime() {
    tokio::time::sleep(Duration::from_millis(40)).await;
}

#[tokio::test]
async fn a_visitor_does_not_wait_for_the_refreshes_of_a_large_store() {
    let gate = Arc::new(Semaphore::new(0));
    let (http, server) = site(4, &gate, "").await;
    let target = server.target();
    for page in 0..200 {
        assert_eq!(seen(&target.get(&format!("/{page}")).await), (200, "MISS"));
    }
    pass_lifetime().await;
    for page in 0..200 {
        let reply = target.get(&format!("/{page}")).await;
        assert_eq!(reply.status, 200);
        assert!(["STALE", "UPDATING"].contains(&reply.x_cache()));
    }
    // All refreshes stand still, and visitors get on.
    for page in ["/search", "/login", "/comment"] {
        let reply = tokio::time::timeout(TIMEOUT / 2, target.get(page)).await;
        assert_eq!(seen(&reply.expect("no wait")), (200, "MISS"));
    }
    let refreshing = http.requests() - 203;
    assert!((1..=3).contains(&refreshing), "{refreshing} refreshes");
    let log = server.error_log();
    assert!(!log.contains("[error]"), "{log}");
    assert_eq!(log.matches("were not sent").count(), 1, "{log}");
    // The requests that wait in line come to their turn.
    gate.add_permits(1000);
    let begun = Instant::now();
    while http.requests() < 203 + 3 + 16 {
        assert!(begun.elapsed() < TIMEOUT, "{}", http.requests());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_refresh_that_a_visitor_comes_to_wait_for_is_a_visitors() {
    let gate = Arc::new(Semaphore::new(0));
    // With two workers one refresh is under way.
    let (http, server) = site(2, &gate, "cache_stale 2s 1h;").await;
    let target = server.target();
    for page in ["/a", "/b"] {
        assert_eq!(seen(&target.get(page).await), (200, "MISS"));
    }
    pass_lifetime().await;
    for page in ["/a", "/b"] {
        assert_eq!(seen(&target.get(page).await), (200, "STALE"));
    }
    // The second waits in line until its page is too old to be shown.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(http.requests(), 3);
    let visitor = tokio::spawn(async move { target.get("/b").await });
    let begun = Instant::now();
    while http.requests() < 4 {
        assert!(begun.elapsed() < TIMEOUT, "it still waits behind /a");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gate.add_permits(2);
    assert_eq!(visitor.await.unwrap().status, 200);
}
