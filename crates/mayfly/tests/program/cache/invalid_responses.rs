//! Truncated, invalid and slow responses of PHP: nothing of them is stored or looks whole.

use super::*;

#[tokio::test]
async fn a_truncated_response_is_neither_stored_nor_looks_whole() {
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
    for round in 0..3 {
        let reply = server.target().get("/").await;
        assert!(
            !reply.is_complete || reply.status == 502,
            "round {round}: {reply:?}"
        );
    }
    let reply = server.target().get("/").await;
    assert_eq!((reply.text().as_str(), reply.is_complete), ("whole", true));
}

/// Whatever the fault of the response: the visitor gets an error, and the next one asks
/// again.
#[tokio::test]
async fn a_response_whose_head_or_pace_is_wrong_is_an_error_and_not_stored() {
    let never = Arc::new(Semaphore::new(0));
    let endless = "X-Field: and its value\r\n".repeat(60_000 / 24);
    let mut hundred_megabytes = Script::new();
    for _ in 0..(100 << 20) / endless.len() {
        hundred_megabytes = hundred_megabytes.stdout(&endless);
    }
    let responses = [
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
    for (name, status, response) in responses {
        let php = FakePhp::tcp(move |_| response.clone()).await;
        let read_timeout = if status == 502 { "60s" } else { "100ms" };
        let server = cached(
            &php,
            &format!("fastcgi_cache_valid 200 1h; fastcgi_read_timeout {read_timeout};"),
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

/// Visitors get as much as was promised, as with nginx; the next one asks again.
#[tokio::test]
async fn a_response_with_more_than_it_promises_is_cut_and_not_stored() {
    let length = "Content-Length: 5\r\n\r\n";
    let after_end = Script::new()
        .stdout("X-A: b\r\n\r\nshort")
        .close_stdout()
        .end(0, 0)
        .stdout("more")
        .at_once();
    let responses = [
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
    for (name, method, response, wanted) in responses {
        let php = FakePhp::tcp(move |_| response.clone()).await;
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
