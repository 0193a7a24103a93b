//! Pages that are forgotten: by a purge, by a write, while they are fetched.

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
