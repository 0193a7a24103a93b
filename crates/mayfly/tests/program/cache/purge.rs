//! Pages that are forgotten: by a purge, by a write, while they are fetched.

use std::time::{SystemTime, UNIX_EPOCH};

use testkit::wait;

use super::*;

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
    assert_eq!(target.get("/a/1").await.x_cache(), "MISS");
    assert_eq!(target.get("/a/2").await.x_cache(), "HIT");
    assert_eq!(target.get_with("/a/*", "X-Purge: 1\r\n").await.status, 200);
    assert_eq!(target.get("/a/1").await.x_cache(), "MISS");
    assert_eq!(target.get("/a/2").await.x_cache(), "MISS");
    assert_eq!(target.get("/b").await.x_cache(), "HIT");
}

/// Published as `map $request_method $purge_method { default off; PURGE on; }`: each request was a purge.
#[tokio::test]
async fn a_condition_that_says_off_purges_nothing() {
    let php = counting("X-A: b\r\n").await;
    let rules = "fastcgi_cache_valid 200 1h; fastcgi_cache_purge $http_x_purge;";
    let server = cached(&php, rules).await;
    let target = server.target();
    for expected in ["MISS", "HIT"] {
        let reply = target.get_with("/a", "X-Purge: off\r\n").await;
        assert_eq!((reply.status, reply.x_cache()), (200, expected));
    }
    assert_eq!(target.get_with("/a", "X-Purge: on\r\n").await.status, 200);
    assert_eq!(target.get("/a").await.x_cache(), "MISS");
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
    assert_eq!((own.x_cache(), own.text().as_str()), ("BYPASS", "run 3"));
    let others = target.get("/other").await;
    assert_eq!((others.x_cache(), others.text().as_str()), ("HIT", "run 1"));
    assert!(!others.has("set-cookie"));
    let forged = target
        .get_with("/other", "Cookie: mayfly_writer=99999999999999\r\n")
        .await;
    assert_eq!(
        forged.x_cache(),
        "HIT",
        "a value of our own making is never that far off"
    );
}

/// The time that the application takes for the write is no part of the time in which it is shown.
#[tokio::test]
async fn the_time_of_a_writer_begins_with_the_response() {
    let (php, gate) = FakePhp::gated("", "X-A: b\r\n\r\nwritten").await;
    let server = cached(&php, "cache_read_your_writes 1h;").await;
    let target = server.target();
    let written = tokio::spawn(async move { target.ask("POST", "/page", "", "text=hello").await });
    wait::until("PHP writes", || php.requests() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answered = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    gate.add_permits(1);
    let written = written.await.expect("a response");
    let cookie = written.field("set-cookie");
    let until = cookie
        .split(['=', ';'])
        .nth(1)
        .and_then(|until| until.parse::<u64>().ok());
    // Both clocks are the machine's; a correction may stand between them.
    let least = answered + Duration::from_secs(3600) - Duration::from_millis(100);
    assert!(
        until.is_some_and(|until| Duration::from_millis(until) >= least),
        "{cookie}"
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
    assert_eq!((after.x_cache(), after.text().as_str()), ("MISS", "run 3"));
}

/// A purge in MediaWiki's form: the whole address is in the request line, by the scheme that it knows
/// itself by, and visitors come by another.
#[tokio::test]
async fn an_application_on_this_machine_purges_all_variants_of_an_address() {
    let php = counting("Content-Type: text/html\r\n").await;
    let site = php.cached_site(
        "fastcgi_cache_valid 200 1h; cache_shared on; fastcgi_cache_purge PURGE from local;",
    );
    let server = start(&format!("trusted_proxy unix:;\n{site}")).await;
    let target = server.target();
    let page = "Accept: text/html\r\n";
    let behind_tls = format!("{page}X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n");
    let mobile = format!("{page}User-Agent: Mozilla/5.0 (iPhone) Mobile\r\n");
    let visitors = [page, &behind_tls, &mobile];
    // The first visitor of each kind has a page of their own.
    for path in ["/wiki/A", "/wiki/Ab"] {
        for fields in visitors {
            target.visit_until_hit(path, fields).await;
        }
    }
    let purge = async |fields: &str| {
        let mut client = server.connect().await;
        client
            .send(format!(
                "PURGE http://site.test/wiki/A HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n"
            ))
            .await;
        client.receive(false).await.expect("a response").status
    };
    // A visitor whom a proxy on this machine lets through is not the application.
    for field in [
        "X-Forwarded-For: 192.0.2.1",
        "Forwarded: for=192.0.2.1",
        "Via: 1.1 proxy",
        "X-Real-IP: 192.0.2.1",
    ] {
        purge(&format!("{field}\r\n")).await;
        for fields in visitors {
            let reply = target.get_with("/wiki/A", fields).await;
            assert_eq!(reply.x_cache(), "HIT", "{field}");
        }
    }
    assert_eq!(purge("User-Agent: MediaWiki/1.39\r\n").await, 200);
    for fields in visitors {
        let reply = target.get_with("/wiki/A", fields).await;
        assert_eq!(reply.x_cache(), "MISS", "{fields}");
    }
    assert_eq!(target.get_with("/wiki/Ab", page).await.x_cache(), "HIT");
    assert_eq!(purge("").await, 200);
    assert_eq!(purge("").await, 404, "nothing left to purge");
}

#[tokio::test]
async fn cache_max_valid_bounds_what_an_application_says() {
    let php = counting("Cache-Control: s-maxage=18000\r\n").await;
    let server = cached(&php, "cache_max_valid 30ms;").await;
    let target = server.target();
    assert_eq!(target.get("/").await.x_cache(), "MISS");
    let begun = std::time::Instant::now();
    while target.get("/").await.x_cache() == "HIT" {
        assert!(begun.elapsed() < testkit::wait::TIMEOUT, "it stays fresh");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(php.requests() >= 2);
}
