//! Stored pages past their time: when they are shown, and when not any more.

use super::*;

#[tokio::test]
async fn stale_is_shown_while_one_request_refreshes_in_the_background() {
    let gate = Arc::new(Semaphore::new(1));
    let held = gate.clone();
    let runs = AtomicUsize::new(0);
    let php = FakePhp::tcp(move |_| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        Script::new()
            .wait_for(&held)
            .stdout(format!("Content-Type: text/html\r\n\r\nrun {run}"))
    })
    .await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/").await.x_cache(), "MISS");
    // The lifetime is over in a millisecond: within a few requests one is stale.
    let refreshing = loop {
        let reply = target.get("/").await;
        if reply.x_cache() != "HIT" {
            break reply;
        }
    };
    assert_eq!(
        (refreshing.x_cache(), refreshing.text().as_str()),
        ("STALE", "run 1")
    );
    while php.requests() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let reply = target.get("/").await;
        assert_eq!(
            (reply.x_cache(), reply.text().as_str()),
            ("UPDATING", "run 1")
        );
    }
    assert_eq!(php.requests(), 2);
    gate.add_permits(100);
    while target.get("/").await.text() == "run 1" {}
}

#[tokio::test]
async fn who_goes_past_the_cache_does_not_keep_the_others_from_a_new_response() {
    let php = counting("Content-Type: text/html\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;\n\
         fastcgi_cache_bypass $http_cookie; fastcgi_no_cache $http_cookie;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/").await.text(), "run 1");
    let private = target.get_with("/", "Cookie: session=7\r\n").await;
    assert_eq!(
        (private.x_cache(), private.text().as_str()),
        ("BYPASS", "run 2")
    );
    // Only the request that finds the response stale first refreshes it.
    let first = loop {
        let reply = target.get("/").await;
        if reply.x_cache() != "HIT" {
            break reply;
        }
    };
    assert_eq!((first.x_cache(), first.text().as_str()), ("STALE", "run 1"));
}

#[tokio::test]
async fn a_stored_response_is_shown_when_php_is_gone() {
    let php = counting("Content-Type: text/html\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale error timeout invalid_header;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/").await.text(), "run 1");
    drop(php);
    let stale = loop {
        let reply = target.get("/").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "run 1"));
        if reply.x_cache() == "STALE" {
            break reply;
        }
    };
    assert!(stale.field("cache-status").contains("hit"), "{stale:?}");
    assert_eq!(target.get("/other").await.status, 502);
}

/// A refresh that may not be stored left the old response in the cache, and it was shown
/// for as long as anybody asked for the page.
#[tokio::test]
async fn a_page_that_is_gone_or_private_now_is_not_shown_from_memory() {
    for head in ["Status: 404 Not Found\r\n", "Cache-Control: private\r\n"] {
        let runs = AtomicUsize::new(0);
        let php = FakePhp::tcp(move |_| match runs.fetch_add(1, Ordering::SeqCst) {
            0 => Script::page("X-A: b\r\n", "old"),
            _ => Script::page(head, "new"),
        })
        .await;
        let server = cached(
            &php,
            "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale updating error http_500;\n\
             fastcgi_cache_background_update on;",
        )
        .await;
        let target = server.target();
        assert_eq!(target.get("/").await.text(), "old");
        let seen_anew = async { while target.get("/").await.text() == "old" {} };
        tokio::time::timeout(testkit::wait::TIMEOUT, seen_anew)
            .await
            .expect("the new page is shown");
        for _ in 0..3 {
            assert_eq!(target.get("/").await.text(), "new", "{head}");
        }
    }
}
