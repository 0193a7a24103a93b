//! Many visitors at once: who runs PHP, who reads along, who waits and who gets an answer to
//! come back later.

use super::*;

#[tokio::test]
async fn simultaneous_requests_for_a_cold_page_are_one_execution() {
    let (php, gate) = FakePhp::gated("", "Content-Type: text/html\r\n\r\nthe page").await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h;").await;
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = server.connect().await;
        client
            .send("GET /hot HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        clients.push(client);
    }
    gate.add_permits(1);
    for mut client in clients {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (200, "the page"));
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn followers_read_while_the_leader_is_still_receiving() {
    let (php, gate) =
        FakePhp::gated("Content-Type: text/html\r\n\r\nfirst half,", " second half").await;
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
    let (php, gate) = FakePhp::gated("Content-Type: text/html\r\n\r\nbegun,", " done").await;
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
    let (php, gate) = FakePhp::gated("Set-Cookie: id=1\r\n\r\n", "mine").await;
    let server = cached(&php, "fastcgi_cache_valid 200 1h; fastcgi_buffering off;").await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client
            .send("GET /account HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        clients.push(client);
    }
    // All of them have a PHP of their own before any of them is done.
    while php.requests() < 20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(20);
    for mut client in clients {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(
            (reply.text().as_str(), reply.field("set-cookie")),
            ("mine", "id=1")
        );
    }
    assert_eq!(php.requests(), 20);
}

#[tokio::test]
async fn requests_past_what_php_can_do_wait_in_order_and_then_are_told_to_come_back() {
    let (php, gate) = FakePhp::gated("", "X-A: b\r\n\r\ndone").await;
    let http = format!(
        "upstream php {{ server {} max_conns=1; queue 1 timeout=1h; }}\n\
         server {{ listen unix:%%/http; location / {{ fastcgi_pass php; fastcgi_param X y; }} }}",
        php.address()
    );
    let server = start(&http).await;
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

/// The line has room for one: a follower that gave up on a leader that
/// waits there would be turned away, and PHP would make the page twice.
#[tokio::test]
async fn the_lock_timeout_does_not_run_while_the_leader_waits_for_a_worker() {
    const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
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
         fastcgi_cache_lock_timeout {timeout}ms; fastcgi_cache_lock_age {timeout}ms; }} }}",
        php.address(),
        timeout = LOCK_TIMEOUT.as_millis(),
    );
    let server = start(&http).await;
    let target = server.target();
    let get = |path: &'static str| {
        let target = target.clone();
        tokio::spawn(async move { target.get(path).await })
    };
    let slow = get("/slow");
    while php.requests() < 1 {
        tokio::task::yield_now().await;
    }
    let clients = [get("/page"), get("/page")];
    tokio::time::sleep(2 * LOCK_TIMEOUT).await;
    gate.add_permits(1);
    for (waiting, body) in [slow]
        .into_iter()
        .chain(clients)
        .zip(["slow", "page", "page"])
    {
        let reply = waiting.await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (200, body));
    }
}
