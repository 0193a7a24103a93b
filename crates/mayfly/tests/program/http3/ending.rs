//! The end of connections, and the parts that a reload leaves as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testkit::fake_http::FakeHttp;
use testkit::http3::{Outcome, ask_raw, frame, headers};
use testkit::process::Signal;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{GET, held_page, site};

const NO_ERROR: u64 = 0x100;

pub fn code_of(error: &quinn::ConnectionError) -> Option<u64> {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => Some(close.error_code.into_inner()),
        _ => None,
    }
}

#[tokio::test]
async fn a_graceful_stop_serves_what_is_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let mut site = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    until("the request is at the origin", || origin.requests() == 1).await;
    site.server.signal(Signal::QUIT);
    gate.add_permits(1);
    assert_eq!(
        exchange.reply().await.expect("a response").reply.text(),
        "page"
    );
    assert_eq!(code_of(&client.ended().await), Some(NO_ERROR));
    assert!(site.server.ended().await.success());
}

#[tokio::test]
async fn a_graceful_stop_ends_connections_without_a_request() {
    let mut site = site("return 200 page;").await;
    let used = site.client().await;
    assert_eq!(used.get("/").await.text(), "page");
    let fresh = site.client().await;
    site.server.signal(Signal::QUIT);
    assert_eq!(code_of(&used.ended().await), Some(NO_ERROR));
    assert_eq!(code_of(&fresh.ended().await), Some(NO_ERROR));
    assert!(site.server.ended().await.success());
}

#[tokio::test]
async fn reloads_lose_no_request_and_no_connection() {
    let site = site("keepalive_requests 1000000; return 200 page;").await;
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let client = site.client().await;
    let load = tokio::spawn({
        let (stop, served) = (stop.clone(), served.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                assert!(client.get("/").await.text().starts_with("page"));
                served.fetch_add(1, Ordering::Relaxed);
            }
            client
        }
    });
    for times in 1..=10 {
        let before = served.load(Ordering::Relaxed);
        until("requests", || served.load(Ordering::Relaxed) > before + 5).await;
        let page = format!("keepalive_requests 1000000; return 200 page{times};");
        site.rewrite("", &page);
        site.reload(times).await;
        // This connection has the new configuration, and so has a new one.
        assert_eq!(
            site.client().await.get("/").await.text(),
            format!("page{times}")
        );
    }
    stop.store(true, Ordering::Relaxed);
    let client = load.await.expect("no request was lost");
    assert_eq!(client.get("/").await.text(), "page10");
}

#[tokio::test]
async fn a_listener_that_a_reload_takes_away_ends_its_connections() {
    let site = site("return 200 page;").await;
    let client = site.client().await;
    assert_eq!(client.get("/").await.text(), "page");
    site.server
        .rewrite("", "server { listen unix:%%/http; return 200 page; }");
    site.reload(1).await;
    // It learns that this request was not served, and that none will be.
    assert!(client.try_ask("GET", "/", &[], None).await.is_err());
    assert_eq!(code_of(&client.ended().await), Some(NO_ERROR));
}

/// An address comes back while a connection that began there before has a request under way: the
/// socket is free once that is served.
#[tokio::test]
async fn an_address_may_be_taken_away_and_come_back_beside_a_request() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = FakeHttp::start(move |_| held_page(&held, "page")).await;
    let directives = format!("location / {{ proxy_pass {}; }}", origin.url());
    let site = site(&directives).await;
    let client = site.client().await;
    let mut exchange = client.begin("GET", "/", &[]).await.expect("a stream");
    exchange.finish().await;
    until("the request is at the origin", || origin.requests() == 1).await;
    site.server
        .rewrite("", "server { listen unix:%%/http; return 200 page; }");
    site.reload(1).await;
    site.rewrite("", &directives);
    let count = |what| site.server.error_log().matches(what).count();
    for tries in 1.. {
        site.server.signal(Signal::HUP);
        until("the socket is asked for", || {
            count("try again to bind()") > 0 || count("reloaded") > 1
        })
        .await;
        if tries == 1 {
            assert_eq!(count("reloaded"), 1, "the first one has the address still");
            gate.add_permits(2);
            let reply = exchange.reply().await.expect("a response").reply;
            assert_eq!(reply.text(), "page");
        }
        until("the end of the reload", || {
            count("reloaded") > 1 || count("still could not bind()") == tries
        })
        .await;
        if count("reloaded") > 1 {
            break;
        }
    }
    assert_eq!(site.client().await.get("/").await.text(), "page");
    assert_eq!(code_of(&client.ended().await), Some(NO_ERROR));
}

#[tokio::test]
async fn a_connection_ends_behind_its_last_request_and_when_nobody_uses_it() {
    let site = site("keepalive_requests 2; keepalive_timeout 300ms; return 200 page;").await;
    let client = site.client().await;
    for _ in 0..2 {
        assert_eq!(client.get("/").await.text(), "page");
    }
    assert_eq!(code_of(&client.ended().await), Some(NO_ERROR));
    let idle = site.client().await;
    assert_eq!(idle.get("/").await.text(), "page");
    assert_eq!(code_of(&idle.ended().await), Some(NO_ERROR));
}

#[tokio::test]
async fn a_head_that_does_not_come_has_its_time() {
    let site = site("client_header_timeout 300ms; return 200 page;").await;
    let connection = site.quic().connect(site.address, "a.test").await;
    let connection = connection.expect("a handshake");
    let whole = headers(&GET);
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(&whole[..whole.len() - 1])
        .await
        .expect("sent");
    let read = receive.read_to_end(100).await;
    let Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) = read else {
        panic!("{read:?}");
    };
    assert_eq!(code.into_inner(), 0x10d, "H3_REQUEST_INCOMPLETE");
}

#[tokio::test]
async fn broken_frames_end_the_connection_with_the_code_of_the_standard() {
    let site = site("return 200 page;").await;
    let whole = headers(&GET);
    let behind = |frame: &[u8]| [&whole, frame].concat();
    for (bytes, code) in [
        (frame(0, b"body"), 0x105),
        (frame(4, b""), 0x105),
        (behind(&frame(5, b"")), 0x105),
        (behind(&frame(2, b"")), 0x105),
        (frame(1, b"\x00\x00\x80"), 0x200),
        (frame(1, b"\x00\x00\xff\xff"), 0x200),
        (whole[..whole.len() - 1].to_vec(), 0x106),
    ] {
        let connection = site.quic().connect(site.address, "a.test").await;
        let connection = connection.expect("a handshake");
        let _ = ask_raw(&connection, &bytes).await;
        let closed = connection.closed().await;
        assert_eq!(code_of(&closed), Some(code), "{bytes:?}");
    }
    for (bytes, code) in [
        (&b"\x00\x07\x01\x00"[..], 0x10a),
        (b"\x00\x04\x00\x04\x00", 0x105),
        (b"\x01\x00", 0x103),
        (b"\x02\x00", 0x201),
        (b"\x03\x80", 0x202),
    ] {
        let connection = site.quic().connect(site.address, "a.test").await;
        let connection = connection.expect("a handshake");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(bytes).await.expect("sent");
        assert_eq!(code_of(&connection.closed().await), Some(code), "{bytes:?}");
    }
    // Frames and streams of unknown types are left out.
    let connection = site.quic().connect(site.address, "a.test").await;
    let connection = connection.expect("a handshake");
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(b"\x21abc").await.expect("sent");
    let bytes = [frame(0x21, b"abc"), whole.clone(), frame(0x21, b"abc")].concat();
    assert_eq!(ask_raw(&connection, &bytes).await, Outcome::Status(200));
    assert_eq!(ask_raw(&connection, b"").await, Outcome::Reset(0x10d));
}
