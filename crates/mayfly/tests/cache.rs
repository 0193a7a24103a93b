//! The microcache as visitors meet it, in front of a scripted PHP. Nothing here
//! sleeps for luck: whatever must happen first is held back by a gate of the test's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use testkit::client::Reply;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::Running;
use tokio::sync::Semaphore;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mayfly");

/// A server with one cached location in front of `php`.
async fn cached(php: &FakePhp, directives: &str) -> Running {
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{\n listen unix:%%/http;\n server_name site.test;\n location / {{\n\
         fastcgi_pass {};\n fastcgi_param REQUEST_METHOD $request_method;\n fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_cache zone;\n fastcgi_cache_key $host$request_uri;\n\
         add_header X-Cache $upstream_cache_status always;\n{directives}\n }}\n}}",
        php.address()
    );
    Running::start(PROGRAM, "", &http).await
}

/// PHP that says how often it ran.
async fn counting(head: &'static str) -> FakePhp {
    let runs = AtomicUsize::new(0);
    FakePhp::tcp(move |_| {
        Script::page(
            head,
            format!("run {}", runs.fetch_add(1, Ordering::SeqCst) + 1),
        )
    })
    .await
}

fn cache(reply: &Reply) -> &str {
    reply.field("x-cache")
}

#[tokio::test]
async fn the_second_visitor_is_answered_from_memory() {
    let php = counting("Content-Type: text/html\r\nX-Made-By: php\r\n").await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let first = server.target().get("/page").await;
    assert_eq!(
        (first.status, cache(&first), first.text().as_str()),
        (200, "MISS", "run 1")
    );
    let second = server.target().get("/page").await;
    assert_eq!(
        (second.status, cache(&second), second.text().as_str()),
        (200, "HIT", "run 1")
    );
    assert_eq!(second.field("x-made-by"), "php");
    assert_eq!(second.field("content-length"), "5");
    assert!(second.has("age"));
    assert!(
        second
            .field("cache-status")
            .starts_with("mayfly; hit; ttl="),
        "{second:?}"
    );
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn without_a_lifetime_nothing_is_stored() {
    let php = counting("Content-Type: text/html\r\n").await;
    let server = cached(&php, "").await;
    for run in 1..=3 {
        let reply = server.target().get("/").await;
        assert_eq!(
            (cache(&reply), reply.text()),
            ("MISS", format!("run {run}"))
        );
    }
}

#[tokio::test]
async fn a_crowd_on_a_cold_page_is_one_execution() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .wait_for(&held)
            .stdout("Content-Type: text/html\r\n\r\nthe page")
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut client = server.connect().await;
        client
            .send("GET /hot HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        crowd.push(client);
    }
    gate.add_permits(1);
    for mut client in crowd {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (200, "the page"));
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn followers_read_while_the_leader_is_still_receiving() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .stdout("Content-Type: text/html\r\n\r\nfirst half,")
            .wait_for(&held)
            .stdout(" second half")
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let mut leader = server.connect().await;
    leader.send("GET /slow HTTP/1.0\r\n\r\n").await;
    leader.receive_until("first half,").await;
    let mut follower = server.connect().await;
    follower.send("GET /slow HTTP/1.0\r\nHost: \r\n\r\n").await;
    drop(follower);
    let mut follower = server.connect().await;
    follower.send("GET /slow HTTP/1.0\r\n\r\n").await;
    follower.receive_until("first half,").await;
    gate.add_permits(1);
    assert_eq!(leader.receive_all().await, b" second half");
    assert_eq!(follower.receive_all().await, b" second half");
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn the_fetch_goes_on_when_its_visitor_leaves() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .stdout("Content-Type: text/html\r\n\r\nbegun,")
            .wait_for(&held)
            .stdout(" done")
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let mut visitor = server.connect().await;
    visitor.send("GET / HTTP/1.0\r\n\r\n").await;
    visitor.receive_until("begun,").await;
    drop(visitor);
    gate.add_permits(1);
    let reply = server.target().get_with("/", "").await;
    assert_eq!(reply.text(), "begun, done");
    assert_eq!((php.requests(), php.aborted()), (1, 0));
}

#[tokio::test]
async fn php_is_told_when_the_visitor_of_a_private_page_leaves() {
    let gone = Arc::new(Semaphore::new(0));
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .stdout("Cache-Control: private\r\n\r\nyours")
            .hang()
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h; fastcgi_buffering off;").await;
    let mut visitor = server.connect().await;
    visitor.send("GET / HTTP/1.0\r\n\r\n").await;
    visitor.receive_until("yours").await;
    drop(visitor);
    drop(gone);
    while php.aborted() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn private_pages_do_not_queue_behind_each_other() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| {
        Script::new()
            .stdout("Set-Cookie: id=1\r\n\r\n")
            .wait_for(&held)
            .stdout("mine")
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h; fastcgi_buffering off;").await;
    let mut crowd = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client
            .send("GET /account HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        crowd.push(client);
    }
    // All of them have a PHP of their own before any of them is done.
    while php.requests() < 20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(20);
    for mut client in crowd {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(
            (reply.text().as_str(), reply.field("set-cookie")),
            ("mine", "id=1")
        );
    }
    assert_eq!(php.requests(), 20);
}

#[tokio::test]
async fn what_is_one_visitors_is_never_stored() {
    for (head, fields, reason) in [
        ("Set-Cookie: a=b\r\n", "", "set-cookie"),
        ("Cache-Control: private\r\n", "", "private"),
        ("Cache-Control: no-store\r\n", "", "no-store"),
        ("Cache-Control: no-cache\r\n", "", "no-cache"),
        ("Vary: *\r\n", "", "vary-star"),
        (
            "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
            "",
            "zero-lifetime",
        ),
        ("X-Accel-Expires: 0\r\n", "", "zero-lifetime"),
        (
            "X-Plain: 1\r\n",
            "Authorization: Basic YTpi\r\n",
            "authorization",
        ),
    ] {
        let php = counting(head).await;
        let server = cached(
            &php,
            "fastcgi_cache_valid any 1h; add_header X-Reason $cache_reason;",
        )
        .await;
        for run in 1..=2 {
            let reply = server.target().get_with("/", fields).await;
            assert_eq!(reply.text(), format!("run {run}"), "{head:?}");
            assert_eq!(reply.field("x-reason"), reason, "{head:?}");
        }
    }
}

#[tokio::test]
async fn errors_are_not_stored_unless_a_rule_names_them() {
    let php = counting("Status: 404 Not Found\r\n").await;
    let server = cached(&php, "fastcgi_cache_valid 1h;").await;
    assert_eq!(server.target().get("/").await.text(), "run 1");
    assert_eq!(server.target().get("/").await.text(), "run 2");
    let named = cached(&php, "fastcgi_cache_valid 404 1h;").await;
    let first = named.target().get("/").await.text();
    let again = named.target().get("/").await;
    assert_eq!((again.status, again.text()), (404, first));
}

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
    assert_eq!(cache(&target.get("/").await), "MISS");
    // The lifetime is over in a millisecond: within a few requests one is stale.
    let refreshing = loop {
        let reply = target.get("/").await;
        if cache(&reply) != "HIT" {
            break reply;
        }
    };
    assert_eq!(
        (cache(&refreshing), refreshing.text().as_str()),
        ("STALE", "run 1")
    );
    while php.requests() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let reply = target.get("/").await;
        assert_eq!(
            (cache(&reply), reply.text().as_str()),
            ("UPDATING", "run 1")
        );
    }
    assert_eq!(php.requests(), 2);
    gate.add_permits(100);
    while target.get("/").await.text() == "run 1" {}
}

#[tokio::test]
async fn who_goes_past_the_cache_does_not_keep_the_others_from_a_new_copy() {
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
        (cache(&private), private.text().as_str()),
        ("BYPASS", "run 2")
    );
    // Nobody refreshes but who finds the copy stale first.
    let first = loop {
        let reply = target.get("/").await;
        if cache(&reply) != "HIT" {
            break reply;
        }
    };
    assert_eq!((cache(&first), first.text().as_str()), ("STALE", "run 1"));
}

#[tokio::test]
async fn a_copy_is_shown_when_php_is_gone() {
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
        if cache(&reply) == "STALE" {
            break reply;
        }
    };
    assert!(stale.field("cache-status").contains("hit"), "{stale:?}");
    assert_eq!(target.get("/other").await.status, 502);
}

#[tokio::test]
async fn a_response_that_breaks_off_is_neither_stored_nor_looks_whole() {
    let runs = AtomicUsize::new(0);
    let php = FakePhp::tcp(move |_| match runs.fetch_add(1, Ordering::SeqCst) {
        0 => Script::new()
            .stdout("Content-Length: 100\r\n\r\nonly this")
            .close(),
        1 => Script::new().stdout("Content-Length: 100\r\n\r\nonly this"),
        2 => Script::new().stdout("X-A: b\r\n\r\nonly this").close(),
        _ => Script::page("X-A: b\r\n", "whole"),
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    for lie in 0..3 {
        let reply = server.target().get("/").await;
        assert!(
            !reply.is_complete || reply.status == 502,
            "lie {lie}: {reply:?}"
        );
    }
    let reply = server.target().get("/").await;
    assert_eq!((reply.text().as_str(), reply.is_complete), ("whole", true));
}

/// Whatever is wrong with it: the visitor is told, and the next one asks again.
#[tokio::test]
async fn a_response_whose_head_or_pace_is_wrong_is_an_error_and_not_stored() {
    let never = Arc::new(Semaphore::new(0));
    let endless = "X-Field: and its value\r\n".repeat(60_000 / 24);
    let mut hundred_megabytes = Script::new();
    for _ in 0..(100 << 20) / endless.len() {
        hundred_megabytes = hundred_megabytes.stdout(&endless);
    }
    let lies = [
        (
            "a head without end",
            502,
            Script::new().stdout("X-A: b\r\n"),
        ),
        ("100 MB of head", 502, hundred_megabytes),
        (
            "two lengths",
            502,
            Script::new().stdout("Content-Length: 5\r\nContent-Length: 6\r\n\r\nshort"),
        ),
        (
            "no length",
            502,
            Script::new().stdout("Content-Length: many\r\n\r\nshort"),
        ),
        (
            "no records",
            502,
            Script::new().raw("HTTP/1.1 200 OK\r\n\r\n"),
        ),
        (
            "a head byte by byte, and no more",
            504,
            Script::new()
                .in_pieces_of(1)
                .stdout("X-A: b\r\n")
                .wait_for(&never),
        ),
        (
            "a body byte by byte, and no more",
            200,
            Script::new()
                .in_pieces_of(1)
                .stdout("X-A: b\r\n\r\nshor")
                .wait_for(&never),
        ),
    ];
    for (name, status, lie) in lies {
        let php = FakePhp::tcp(move |_| lie.clone()).await;
        let patience = if status == 502 { "60s" } else { "100ms" };
        let server = cached(
            &php,
            &format!("fastcgi_cache_valid 200 1h; fastcgi_read_timeout {patience};"),
        )
        .await;
        for round in 1..=2 {
            let reply = server.target().get("/").await;
            // On a busy machine it may run out before the head is there.
            let is_told = reply.status == status || reply.status == 504;
            assert!(is_told, "{name}, round {round}: {reply:?}");
            assert!(
                reply.status != 200 || !reply.is_complete,
                "{name}: {reply:?}"
            );
            assert_eq!(php.requests(), round, "{name} was stored");
        }
        assert!(server.error_log().contains("[error]"), "{name}");
    }
}

/// As with nginx, visitors get as much as was promised; the next one asks again.
#[tokio::test]
async fn a_response_with_more_than_it_promises_is_cut_and_not_stored() {
    let length = "Content-Length: 5\r\n\r\n";
    let after_end = Script::new()
        .stdout("X-A: b\r\n\r\nshort")
        .close_stdout()
        .end(0, 0)
        .stdout("more")
        .at_once();
    let lies = [
        (
            "in the same record",
            "GET",
            Script::new().stdout(format!("{length}short and more")),
            "short",
        ),
        (
            "in another record",
            "GET",
            Script::new()
                .stdout(format!("{length}short"))
                .stdout("more"),
            "short",
        ),
        (
            "without END_REQUEST",
            "GET",
            Script::new()
                .stdout(format!("{length}short and more"))
                .close(),
            "short",
        ),
        (
            "for a HEAD that is asked as a GET",
            "HEAD",
            Script::new().stdout(format!("{length}short and more")),
            "",
        ),
        ("behind END_REQUEST", "GET", after_end, "short"),
    ];
    for (name, method, lie, wanted) in lies {
        let php = FakePhp::tcp(move |_| lie.clone()).await;
        let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
        for round in 1..=2 {
            let reply = server.target().ask(method, "/", "", "").await;
            let seen = (reply.status, reply.text(), reply.is_complete);
            assert_eq!(seen, (200, wanted.to_owned(), true), "{name}, {round}");
            assert_eq!(php.requests(), round, "{name} was stored");
        }
        let log = server.error_log();
        assert!(log.contains("upstream sent"), "{name}: {log}");
        let why = "response not stored: The upstream sent more than the response says";
        assert!(log.contains(why), "{name}: {log}");
    }
}

#[tokio::test]
async fn head_ranges_and_conditions_are_answered_from_memory() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "0123456789",
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let target = server.target();
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!(
        (head.status, head.field("content-length"), head.body.len()),
        (200, "", 0),
        "a HEAD fills the cache"
    );
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!(
        (cache(&head), head.field("content-length"), head.body.len()),
        ("HIT", "10", 0)
    );
    let part = target.get_with("/", "Range: bytes=2-4\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.field("content-range"), "bytes 2-4/10");
    let parts = target.get_with("/", "Range: bytes=0-0,9-9\r\n").await;
    assert_eq!(parts.status, 206);
    assert!(
        parts
            .field("content-type")
            .starts_with("multipart/byteranges")
    );
    let none = target.get_with("/", "If-None-Match: \"v1\"\r\n").await;
    assert_eq!(
        (none.status, none.field("etag"), none.body.len()),
        (304, "\"v1\"", 0)
    );
    let since = target
        .get_with("/", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
        .await;
    assert_eq!(since.status, 304);
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn a_purge_by_condition_removes_one_key_or_a_prefix() {
    let php = counting("X-A: b\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; fastcgi_cache_purge $http_x_purge;",
    )
    .await;
    let target = server.target();
    for path in ["/a/1", "/a/2", "/b"] {
        target.get(path).await;
    }
    let purged = target.get_with("/a/1", "X-Purge: 1\r\n").await;
    assert_eq!(purged.status, 200);
    assert_eq!(
        target.get_with("/a/1", "X-Purge: 1\r\n").await.status,
        404,
        "nothing left to purge"
    );
    assert_eq!(cache(&target.get("/a/1").await), "MISS");
    assert_eq!(cache(&target.get("/a/2").await), "HIT");
    assert_eq!(target.get_with("/a/*", "X-Purge: 1\r\n").await.status, 200);
    assert_eq!(cache(&target.get("/a/1").await), "MISS");
    assert_eq!(cache(&target.get("/a/2").await), "MISS");
    assert_eq!(cache(&target.get("/b").await), "HIT");
}

#[tokio::test]
async fn a_fetch_begun_before_a_purge_is_not_stored() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let runs = AtomicUsize::new(0);
    let php = FakePhp::tcp(move |_| match runs.fetch_add(1, Ordering::SeqCst) {
        0 => Script::page("X-A: b\r\n", "old"),
        1 => Script::new().wait_for(&held).stdout("X-A: b\r\n\r\nold"),
        _ => Script::page("X-A: b\r\n", "new"),
    })
    .await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; fastcgi_cache_purge $http_x_purge;",
    )
    .await;
    let target = server.target();
    target.get("/").await;
    assert_eq!(target.get_with("/", "X-Purge: 1\r\n").await.status, 200);
    let mut slow = server.connect().await;
    slow.send("GET / HTTP/1.0\r\nHost: site.test\r\n\r\n").await;
    while php.requests() < 2 {
        tokio::task::yield_now().await;
    }
    target.get_with("/", "X-Purge: 1\r\n").await;
    gate.add_permits(1);
    slow.receive_all().await;
    assert_eq!(target.get("/").await.text(), "new");
}

#[tokio::test]
async fn a_writer_sees_the_own_write_and_others_keep_the_cache() {
    let php = counting("X-A: b\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; cache_read_your_writes 1h;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/other").await.text(), "run 1");
    let written = target.ask("POST", "/page", "", "text=hello").await;
    let cookie = written
        .field("set-cookie")
        .split(';')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert!(cookie.starts_with("mayfly_writer="), "{written:?}");
    let own = target
        .get_with("/other", &format!("Cookie: {cookie}\r\n"))
        .await;
    assert_eq!((cache(&own), own.text().as_str()), ("BYPASS", "run 3"));
    let others = target.get("/other").await;
    assert_eq!((cache(&others), others.text().as_str()), ("HIT", "run 1"));
    assert!(!others.has("set-cookie"));
    let forged = target
        .get_with("/other", "Cookie: mayfly_writer=99999999999999\r\n")
        .await;
    assert_eq!(
        cache(&forged),
        "HIT",
        "a value of our own making is never that far off"
    );
}

#[tokio::test]
async fn a_write_invalidates_its_own_target() {
    let php = counting("X-A: b\r\n").await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let target = server.target();
    assert_eq!(target.get("/item").await.text(), "run 1");
    target.ask("POST", "/item", "", "comment=1").await;
    let after = target.get("/item").await;
    assert_eq!((cache(&after), after.text().as_str()), ("MISS", "run 3"));
}

#[tokio::test]
async fn cookies_and_arguments_that_do_not_count_share_one_copy() {
    let php = counting("Vary: Cookie\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; cache_ignore_cookies _ga* _gid; cache_ignore_args utm_* gclid;\n\
         fastcgi_cache_bypass $http_cookie; fastcgi_no_cache $http_cookie;",
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/?a=1").await.text(), "run 1");
    for (path, fields) in [
        ("/?a=1&utm_source=x", ""),
        ("/?gclid=7&a=1", "Cookie: _ga=GA1.2\r\n"),
        ("/?a=1", "Cookie: _ga_X=1; _gid=2\r\n"),
    ] {
        let reply = target.get_with(path, fields).await;
        assert_eq!(
            (cache(&reply), reply.text().as_str()),
            ("HIT", "run 1"),
            "{path} {fields}"
        );
    }
    let session = target
        .get_with("/?a=1", "Cookie: _ga=1; session=7\r\n")
        .await;
    assert_eq!(
        (cache(&session), session.text().as_str()),
        ("BYPASS", "run 2")
    );
}

#[tokio::test]
async fn vary_keeps_a_copy_for_each_value() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Vary: Accept-Language\r\n",
            request.param("HTTP_ACCEPT_LANGUAGE"),
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let target = server.target();
    for _ in 0..2 {
        for language in ["de", "fr"] {
            let fields = format!("Accept-Language: {language}\r\n");
            assert_eq!(target.get_with("/", &fields).await.text(), language);
        }
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn a_session_gets_copies_of_its_own() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "Cache-Control: private\r\n",
            format!("for {}", request.param("HTTP_COOKIE")),
        )
    })
    .await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h; cache_private session;").await;
    let target = server.target();
    for round in 0..3 {
        for user in ["session=anna", "session=bert"] {
            let reply = target.get_with("/", &format!("Cookie: {user}\r\n")).await;
            assert_eq!(reply.text(), format!("for {user}"));
            assert_eq!(cache(&reply), if round == 0 { "MISS" } else { "HIT" });
        }
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn a_page_is_stored_once_it_was_asked_for_often_enough() {
    let php = counting("X-A: b\r\n").await;
    let server = cached(
        &php,
        "fastcgi_cache_valid 200 1h; fastcgi_cache_min_uses 3;",
    )
    .await;
    let target = server.target();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(target.get("/").await.text());
    }
    assert_eq!(seen, ["run 1", "run 2", "run 3", "run 3", "run 3"]);
}

#[tokio::test]
async fn the_application_decides_with_x_accel_expires() {
    let php = FakePhp::tcp(|request| {
        let expires = match request.param("REQUEST_URI") {
            "/hour" => "3600",
            "/far" => "@99999999999",
            "/past" => "@1",
            _ => "0",
        };
        Script::page(
            &format!("X-Accel-Expires: {expires}\r\nCache-Control: no-cache\r\n"),
            "x",
        )
    })
    .await;
    let server = cached(&php, "").await;
    for (path, second) in [("/hour", "HIT"), ("/far", "HIT"), ("/never", "MISS")] {
        server.target().get(path).await;
        let reply = server.target().get(path).await;
        assert_eq!(cache(&reply), second, "{path}");
        assert!(!reply.has("x-accel-expires"));
    }
}

#[tokio::test]
async fn requests_past_what_php_can_do_wait_in_order_and_then_are_told_to_come_back() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php =
        FakePhp::tcp(move |_| Script::new().wait_for(&held).stdout("X-A: b\r\n\r\ndone")).await;
    let http = format!(
        "upstream php {{ server {} max_conns=1; queue 1 timeout=1h; }}\n\
         server {{ listen unix:%%/http; location / {{ fastcgi_pass php; fastcgi_param X y; }} }}",
        php.address()
    );
    let server = Running::start(PROGRAM, "", &http).await;
    let mut first = server.connect().await;
    first.send("GET /1 HTTP/1.0\r\n\r\n").await;
    while php.requests() < 1 {
        tokio::task::yield_now().await;
    }
    // One waits, the other is one too many; which is which is theirs to settle.
    let target = server.target();
    let (one, two) = (target.clone(), target.clone());
    let mut both = tokio::task::JoinSet::new();
    both.spawn(async move { one.get("/2").await });
    both.spawn(async move { two.get("/3").await });
    let refused = both
        .join_next()
        .await
        .expect("two requests")
        .expect("a response");
    assert_eq!((refused.status, refused.field("retry-after")), (503, "1"));
    assert_eq!(php.most_at_once(), 1);
    gate.add_permits(2);
    assert!(String::from_utf8_lossy(&first.receive_all().await).ends_with("done"));
    while php.requests() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(php.most_at_once(), 1);
}

/// The line has room for one: a follower that lost patience with a leader who
/// stands there would be turned away, and PHP would make the page twice.
#[tokio::test]
async fn patience_does_not_run_out_while_the_leader_waits_for_a_worker() {
    const PATIENCE: Duration = Duration::from_millis(200);
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/slow" => Script::new().wait_for(&held).stdout("X-A: b\r\n\r\nslow"),
        _ => Script::page("X-A: b\r\n", "page"),
    })
    .await;
    let http = format!(
        "upstream php {{ server {} max_conns=1; queue 1 timeout=1h; }}\n\
         fastcgi_cache_path %%/cache keys_zone=zone:1m;\n\
         server {{ listen unix:%%/http; location / {{\n\
         fastcgi_pass php; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_cache zone; fastcgi_cache_key $request_uri; fastcgi_cache_valid 1h; fastcgi_cache_lock on;\n\
         fastcgi_cache_lock_timeout {patience}ms; fastcgi_cache_lock_age {patience}ms; }} }}",
        php.address(),
        patience = PATIENCE.as_millis(),
    );
    let server = Running::start(PROGRAM, "", &http).await;
    let target = server.target();
    let get = |path: &'static str| {
        let target = target.clone();
        tokio::spawn(async move { target.get(path).await })
    };
    let slow = get("/slow");
    while php.requests() < 1 {
        tokio::task::yield_now().await;
    }
    let crowd = [get("/page"), get("/page")];
    tokio::time::sleep(2 * PATIENCE).await;
    gate.add_permits(1);
    for (waiting, body) in [slow]
        .into_iter()
        .chain(crowd)
        .zip(["slow", "page", "page"])
    {
        let reply = waiting.await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (200, body));
    }
}

#[tokio::test]
async fn the_proxy_field_never_becomes_a_proxy_setting() {
    let php = FakePhp::tcp(|request| {
        Script::page(
            "X-A: b\r\n",
            format!(
                "[{}][{}]",
                request.param("HTTP_PROXY"),
                request.param("HTTP_X_OTHER")
            ),
        )
    })
    .await;
    let server = cached(&php, "").await;
    let reply = server
        .target()
        .get_with("/", "Proxy: http://evil\r\nX-Other: fine\r\n")
        .await;
    assert_eq!(reply.text(), "[][fine]");
}

/// A refresh that may not be stored left the old copy in place, and it was shown
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
        tokio::time::timeout(testkit::client::PATIENCE, seen_anew)
            .await
            .expect("the new page is shown");
        for _ in 0..3 {
            assert_eq!(target.get("/").await.text(), "new", "{head}");
        }
    }
}
