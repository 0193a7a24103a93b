//! `slice`: a response that is fetched and stored in ranges of a fixed size.

use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::{site, start};

/// A PHP script that serves `whole` in parts; `/odd/...` does it wrong from its
/// second slice on.
fn part_of(whole: &str, request: &testkit::fake_php::Request) -> Script {
    let range = request.param("HTTP_RANGE").to_owned();
    let (uri, total) = (request.param("URI"), whole.len());
    let Some((start, end)) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
        .and_then(|(start, end)| Some((start.parse().ok()?, end.parse::<usize>().ok()? + 1)))
    else {
        return Script::page("Content-Type: text/plain\r\n", whole);
    };
    if start >= total {
        return Script::page("Status: 416\r\n", "");
    }
    let end = end.min(total);
    let is_later = start > 0;
    let etag = if uri == "/odd/etag" && is_later {
        "\"b\""
    } else {
        "\"a\""
    };
    let complete = if uri == "/odd/length" && is_later {
        total + 1
    } else {
        total
    };
    let shown = if uri == "/odd/range" && is_later {
        start - 1
    } else {
        start
    };
    let status = if uri == "/odd/status" && is_later {
        200
    } else {
        206
    };
    let body = match uri {
        "/odd/short" if is_later => &whole[start..end - 1],
        "/odd/long" if is_later => &whole[start - 1..end],
        _ => &whole[start..end],
    };
    Script::page(
        &format!(
            "Status: {status}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\nContent-Range: bytes {shown}-{}/{complete}\r\n",
            end - 1
        ),
        body,
    )
}

const WHOLE: &str = "0123456789abcdef";

/// Slices of four bytes, and the ranges that PHP was asked for.
async fn sliced(
    directives: &str,
) -> (
    RunningServer,
    FakePhp,
    std::sync::Arc<std::sync::Mutex<Vec<String>>>,
) {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = asked.clone();
    let php = FakePhp::tcp(move |request| {
        let mut noted = noted.lock().expect("nobody panicked");
        noted.push(request.param("HTTP_RANGE").to_owned());
        part_of(WHOLE, request)
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http;\n location / {{ slice 4; fastcgi_pass {};\n\
         fastcgi_param HTTP_RANGE $slice_range; fastcgi_param URI $uri; fastcgi_param REQUEST_METHOD $request_method;\n\
         add_header X-Cache $upstream_cache_status; {directives} }} }}",
        php.address()
    );
    (start(&http).await, php, asked)
}

const STORED: &str =
    "fastcgi_cache zone; fastcgi_cache_key $uri$slice_range; fastcgi_cache_valid 200 206 1h;";

#[tokio::test]
async fn ranges_are_put_together_from_slices_that_are_stored_one_by_one() {
    let (server, _php, asked) = sliced(STORED).await;
    let target = server.target();
    let cases: [(&str, u16, &str, &[&str]); 11] = [
        ("Range: bytes=5-6\r\n", 206, "56", &["bytes=4-7"]),
        ("Range: bytes=4-4\r\n", 206, "4", &[]),
        ("Range: bytes=6-9\r\n", 206, "6789", &["bytes=8-11"]),
        ("Range: bytes=10-\r\n", 206, "abcdef", &["bytes=12-15"]),
        ("Range: bytes=-3\r\n", 206, "def", &["bytes=0-3"]),
        ("", 200, WHOLE, &[]),
        ("Range: bytes=1-1,3-3\r\n", 200, WHOLE, &[]),
        ("Range: bytes=9-9\r\nIf-Range: \"a\"\r\n", 206, "9", &[]),
        ("Range: bytes=9-9\r\nIf-Range: \"x\"\r\n", 200, WHOLE, &[]),
        ("If-None-Match: \"a\"\r\n", 304, "", &[]),
        ("Range: bytes=16-\r\n", 416, "", &["bytes=16-19"]),
    ];
    for (fields, status, body, ranges) in cases {
        let reply = target.get_with("/page", fields).await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (status, body),
            "{fields}"
        );
        let asked = std::mem::take(&mut *asked.lock().expect("nobody panicked"));
        assert_eq!(asked, ranges, "{fields}");
    }
    let reply = target.get_with("/page", "Range: bytes=2-13\r\n").await;
    assert_eq!(reply.text(), "23456789abcd");
    assert_eq!(reply.field("content-range"), "bytes 2-13/16");
    assert_eq!(reply.field("content-length"), "12");
    assert_eq!(reply.x_cache(), "HIT");
    assert!(!reply.has("accept-ranges"));
    let head = target.ask("HEAD", "/page", "", "").await;
    assert_eq!((head.status, head.field("content-length")), (200, "16"));
}

#[tokio::test]
async fn a_response_that_changed_is_truncated_once_and_then_the_new_one_comes() {
    let version = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let current = version.clone();
    let php = FakePhp::tcp(move |request| {
        let whole = ["0123456789abcdef", "FEDCBA9876543210"];
        let version = current.load(std::sync::atomic::Ordering::SeqCst);
        let (start, end) = request.param("HTTP_RANGE")[6..]
            .split_once('-')
            .expect("a range");
        let (start, end): (usize, usize) = (
            start.parse().expect("a number"),
            end.parse().expect("a number"),
        );
        Script::page(
            &format!(
                "Status: 206\r\nETag: \"{version}\"\r\nContent-Range: bytes {start}-{end}/16\r\n"
            ),
            &whole[version][start..=end],
        )
    })
    .await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         server {{ listen unix:%%/http; location / {{ slice 4; fastcgi_pass {};\n\
         fastcgi_param HTTP_RANGE $slice_range; {STORED} }} }}",
        php.address()
    );
    let server = start(&http).await;
    let target = server.target();
    // The stored slices of the first version: all but the third.
    assert_eq!(
        target.get_with("/", "Range: bytes=0-7\r\n").await.text(),
        "01234567"
    );
    assert_eq!(
        target.get_with("/", "Range: bytes=12-\r\n").await.text(),
        "cdef"
    );
    version.store(1, std::sync::atomic::Ordering::SeqCst);
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
    assert!(
        !received.contains("cdef") && !received.contains("7654"),
        "{received:?}"
    );
    for _ in 0..2 {
        assert_eq!(target.get("/").await.text(), "FEDCBA9876543210");
    }
    assert_eq!(php.requests(), 8);
}

#[tokio::test]
async fn slices_need_no_cache() {
    let (server, _php, asked) = sliced("").await;
    let target = server.target();
    assert_eq!(target.get("/page").await.text(), WHOLE);
    assert_eq!(
        target
            .get_with("/page", "Range: bytes=7-8\r\n")
            .await
            .text(),
        "78"
    );
    let asked = asked.lock().expect("nobody panicked").clone();
    assert_eq!(
        asked,
        [
            "bytes=0-3",
            "bytes=4-7",
            "bytes=8-11",
            "bytes=12-15",
            "bytes=4-7",
            "bytes=8-11"
        ]
    );
}

#[tokio::test]
async fn slices_that_do_not_fit_together_never_look_whole() {
    for directives in ["", STORED] {
        let (server, _php, _) = sliced(directives).await;
        for (uri, why) in [
            ("/odd/etag", "etag mismatch in slice response"),
            (
                "/odd/length",
                "the response has 17 bytes according to this slice and 16 according to the first",
            ),
            ("/odd/range", "unexpected range in slice response: 3-8"),
            (
                "/odd/status",
                "unexpected status code 200 in slice response",
            ),
            (
                "/odd/short",
                "the slice is shorter than its Content-Range says",
            ),
            (
                "/odd/long",
                "the slice is longer than its Content-Range says",
            ),
        ] {
            let mut client = server.connect().await;
            client
                .send(format!("GET {uri} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
                .await;
            let received = String::from_utf8_lossy(&client.receive_all().await).into_owned();
            assert!(!received.contains("4567"), "{uri}: {received:?}");
            let log = server.error_log();
            let is_refused = uri == "/odd/short" && directives == STORED;
            assert!(is_refused || log.contains(why), "{uri}: {log}");
        }
    }
}

#[tokio::test]
async fn the_slices_of_a_response_that_is_no_part_are_not_looked_for() {
    let php = FakePhp::tcp(|_| Script::page("Content-Type: text/plain\r\n", WHOLE)).await;
    let server = site(&format!(
        "location / {{ slice 4; fastcgi_pass {0}; fastcgi_param HTTP_RANGE $slice_range; }}\n\
         location /off {{ fastcgi_pass {0}; fastcgi_param HTTP_RANGE \"[$slice_range]\"; }}",
        php.address()
    ))
    .await;
    for path in ["/", "/off"] {
        let reply = server.target().get_with(path, "Range: bytes=5-6\r\n").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, WHOLE));
    }
    assert_eq!(php.requests(), 2);
}

#[tokio::test]
async fn no_slice_is_asked_for_once_the_client_has_gone() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let php = FakePhp::tcp(move |request| {
        let range = request.param("HTTP_RANGE").trim_start_matches("bytes=");
        let start: usize = range
            .split('-')
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        let head = format!(
            "Status: 206\r\nContent-Range: bytes {start}-{}/1000\r\n\r\n",
            start + 3
        );
        let script = match start {
            0 => Script::new(),
            _ => Script::new().wait_for(&opened),
        };
        script.stdout(head).stdout("abcd")
    })
    .await;
    let server = start(&format!(
        "server {{ listen unix:%%/http; access_log %%/access.log; location / {{ fastcgi_pass {};\n\
         slice 4; fastcgi_param HTTP_RANGE $slice_range; }} }}",
        php.address()
    ))
    .await;
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    testkit::wait::until("the second slice is asked for", || php.requests() == 2).await;
    drop(client);
    let has_ended = || server.read("access.log").lines().count() == 1;
    testkit::wait::until("the response has ended", has_ended).await;
    gate.add_permits(10_000);
    testkit::wait::until("PHP has ended", || php.running() == 0).await;
    assert_eq!(php.requests(), 2);
}
