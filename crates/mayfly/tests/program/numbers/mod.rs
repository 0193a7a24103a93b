//! The server's numbers about itself: they agree with the access log, in all forms.

mod dashboard;
mod inside;
mod metrics;
mod page_names;
mod reload;

use control::client;
use numbers::{Number, Snapshot};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait::until;

use crate::start;

/// Logs the counted facts of each request. The location of the pages is in the cache, `/plain` is not.
const LOG: &str =
    "log_format counted '$status $upstream_cache_status $bytes_sent $request_length';";

/// PHP that takes some milliseconds for a page.
async fn slow_pages() -> FakePhp {
    FakePhp::tcp(|request| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let path = request.param("REQUEST_URI").to_owned();
        Script::page("Content-Type: text/html\r\n", format!("page {path}"))
    })
    .await
}

/// A site with a cache, a number of ways past it, and these lines.
fn configuration(php: &FakePhp, server: &str) -> String {
    let pages = php.cached_site(
        "fastcgi_cache_valid 200 1h; fastcgi_cache_bypass $arg_bypass; fastcgi_ignore_headers Expires;",
    );
    let more = format!(
        "server_name site.test; access_log %%/access.log counted;
         location = /plain {{ return 204; }}
         location = /limited {{ limit_req zone=few; try_files /none =404; }}
         {server}"
    );
    let http = format!("{LOG}\nlimit_req_zone $server_name zone=few:1m rate=1r/m;\n{pages}");
    http.replacen("server_name site.test;", &more, 1)
}

async fn numbers_of(server: &RunningServer) -> Snapshot {
    let numbers = client::numbers(&server.path("pid.control")).await;
    numbers.expect("the control socket answers")
}

/// The lines of the access log, once this number is there.
async fn logged(server: &RunningServer, lines: usize) -> Vec<Vec<String>> {
    let path = server.path("access.log");
    until("the lines of the log", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() >= lines)
    })
    .await;
    let text = std::fs::read_to_string(&path).expect("the access log");
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect();
    text.lines().map(fields).collect()
}

#[tokio::test]
async fn the_numbers_are_the_sums_of_the_access_log() {
    let php = slow_pages().await;
    let server = start(&configuration(&php, "")).await;
    let target = server.target();
    for path in [
        "/a",
        "/b",
        "/a",
        "/a",
        "/b",
        "/a?bypass=1",
        "/plain",
        "/plain",
        "/limited",
        "/limited",
        "/limited",
    ] {
        target.get(path).await;
    }
    target.ask("POST", "/c", "", "a=1").await;
    let mut client = server.connect().await;
    client.send("no request at all\r\n\r\n").await;
    client.receive_all().await;
    let lines = logged(&server, 13).await;
    let numbers = numbers_of(&server).await;
    let sum = |at: usize| {
        lines
            .iter()
            .map(|line| line[at].parse::<f64>().unwrap())
            .sum::<f64>()
    };
    let count = |at: usize, wanted: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|line| wanted(&line[at])).count() as f64
    };
    for status in numbers::table::CACHE_STATUSES {
        let expected = count(1, &|it| it == *status || (*status == "none" && it == "-"));
        assert_eq!(
            numbers.sum(Number::Requests, &[("cache", status)]),
            expected,
            "{status}"
        );
    }
    for class in ["2", "3", "4", "5"] {
        let expected = count(0, &|it| it.starts_with(class));
        let name = format!("{class}xx");
        assert_eq!(
            numbers.sum(Number::Responses, &[("class", &name)]),
            expected,
            "{name}"
        );
    }
    assert_eq!(numbers.sum(Number::SentBytes, &[]), sum(2));
    assert_eq!(numbers.sum(Number::ReceivedBytes, &[]), sum(3));
    assert_eq!(
        numbers.sum(Number::RefusedRequests, &[("limit", "limit_req")]),
        2.0
    );
    assert_eq!(numbers.sum(Number::Requests, &[("cache", "HIT")]), 3.0);
    // Three hits on pages that took five milliseconds each, at least.
    let spared = numbers.sum(Number::SparedSeconds, &[]);
    assert!((0.015..1.0).contains(&spared), "{spared}");
    let misses = numbers.distribution(Number::MissDuration);
    assert_eq!(misses.count, 3, "/a, /b and the bypass");
    assert!(misses.sum >= 0.012, "{misses:?}");
    let heads = numbers.distribution(Number::UpstreamHeadDuration);
    assert_eq!((heads.count, heads.buckets[0]), (4, 0), "the POST as well");
    assert_eq!(
        numbers.sum(Number::UpstreamRequests, &[("outcome", "success")]),
        4.0
    );
    assert_eq!(
        numbers.sum(Number::ZoneStoredResponses, &[("zone", "zone")]),
        3.0
    );
    assert_eq!(
        numbers.sum(Number::Connections, &[("protocol", "HTTP/1")]),
        12.0
    );
}

#[tokio::test]
async fn hits_that_are_timed_stand_for_those_that_are_not() {
    let php = slow_pages().await;
    let server = start(&configuration(&php, "")).await;
    let mut client = server.connect().await;
    // No more than a connection may have.
    const HITS: usize = 960;
    for _ in 0..=HITS {
        client
            .send("GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        assert_eq!(client.receive(false).await.expect("a response").status, 200);
    }
    let numbers = numbers_of(&server).await;
    let timed = numbers.distribution(Number::HitDuration);
    // Within four standard deviations of it.
    let hits = HITS as u64;
    assert!(
        (hits * 2 / 3..hits * 4 / 3).contains(&timed.count),
        "{timed:?}"
    );
    assert!(timed.sum > 0.0 && timed.sum < 60.0, "{timed:?}");
    let pages = client::pages(&server.path("pid.control")).await;
    let wanted = &pages.expect("the control socket answers").wanted[0];
    assert_eq!(
        (wanted.name.as_str(), wanted.weight),
        ("site.test/a", timed.count)
    );
    assert!((127..hits / 2).contains(&wanted.count), "{wanted:?}");
}

#[tokio::test]
async fn a_crowd_for_one_page_is_counted_as_collapsed_and_a_stale_page_as_refreshed() {
    let php = slow_pages().await;
    let stale =
        "fastcgi_cache_valid 200 1h; fastcgi_cache_lock on; fastcgi_cache_use_stale updating;
        fastcgi_cache_background_update on; ";
    let http = configuration(&php, "location = /purge { cache_purge_api; }");
    let server = start(&http.replacen("fastcgi_cache_valid 200 1h; ", stale, 1)).await;
    let target = server.target();
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let target = target.clone();
            tokio::spawn(async move { target.get("/crowd").await.status })
        })
        .collect();
    for asked in asked {
        assert_eq!(asked.await.unwrap(), 200);
    }
    let numbers = numbers_of(&server).await;
    let collapsed = numbers.sum(Number::ZoneCollapsed, &[]);
    assert!((1.0..=7.0).contains(&collapsed), "{collapsed}");
    assert_eq!(numbers.sum(Number::UpstreamRequests, &[]), 1.0);

    let soft = r#"{"everything":true,"soft":true}"#;
    let reply = target
        .ask("POST", "/purge", "Content-Type: application/json\r\n", soft)
        .await;
    assert_eq!(reply.status, 200);
    target.get("/crowd").await;
    until_numbers(&server, |numbers| {
        numbers.sum(Number::UpstreamRequests, &[("outcome", "success")]) == 2.0
    })
    .await;
    let numbers = numbers_of(&server).await;
    assert_eq!(numbers.sum(Number::ZoneRefreshes, &[]), 1.0);
    assert_eq!(numbers.sum(Number::ZonePurged, &[]), 1.0);
}

/// Waits until the numbers are so.
async fn until_numbers(server: &RunningServer, is_so: impl Fn(&Snapshot) -> bool) {
    let waited = async {
        while !is_so(&numbers_of(server).await) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(testkit::wait::TIMEOUT, waited).await;
    waited.expect("the numbers in time");
}
