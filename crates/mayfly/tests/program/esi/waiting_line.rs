//! Fragments in the line of an upstream: they stand behind visitors' own requests, whichever
//! request needs them.

use std::sync::{Arc, Mutex};

use testkit::client::{Client, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait;
use tokio::sync::Semaphore;

use super::{ASKS, PLAIN, PRIVATE, configuration, shown};
use crate::start;

/// The share of one client in a line for 20.
const SHARE: usize = 16;
const WORKERS: usize = 4;
/// The parts of one page, which asks for all of them at once: three of four workers.
const PARTS: usize = 3;

/// PHP with four workers and a line for 20. The page's fragments wait for the gate, unless the
/// visitor is called 0. `asked` has PHP's requests.
async fn site(gate: &Arc<Semaphore>, asked: &Arc<Mutex<Vec<String>>>) -> (FakePhp, RunningServer) {
    let (gate, asked) = (gate.clone(), asked.clone());
    let includes: String = (0..PARTS)
        .map(|number| format!("<esi:include src='/part{number}-$(HTTP_COOKIE{{n}})'/>"))
        .collect();
    let php = FakePhp::tcp(move |request| {
        let uri = request.param("REQUEST_URI");
        asked.lock().expect("no panic").push(uri.to_owned());
        match uri {
            "/" => Script::page(ASKS, format!("begin{includes}")),
            part if part.starts_with("/part") && !part.ends_with("-0") => {
                let head = Script::new().wait_for(&gate);
                head.stdout(format!("{PRIVATE}\r\npart"))
            }
            part if part.starts_with("/part") => Script::page(PLAIN, "part"),
            _ => shown(request),
        }
    })
    .await;
    let pass = format!("fastcgi_pass {};", php.address());
    let http = configuration(&php, "esi_timeout 1h; fragments_max_time 1h;")
        .replace(&pass, "fastcgi_pass php;");
    let http = format!(
        "upstream php {{ server {} max_conns={WORKERS}; queue 20 timeout=1h; }}\n\
         server {{ listen unix:%%/metrics; server_name site.test; location / {{ metrics; }} }}\n{http}",
        php.address()
    );
    let server = start(&http).await;
    (php, server)
}

/// Waits until a number of the metrics is so.
async fn until_said(server: &RunningServer, number: &str, is_so: impl Fn(f64) -> bool) {
    let metrics = Target(server.path("metrics"));
    let values = |text: &str| -> Vec<f64> {
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix(number)?.rsplit_once(' '));
        lines.filter_map(|(_, value)| value.parse().ok()).collect()
    };
    let said = async {
        while !values(&metrics.get("/").await.text())
            .into_iter()
            .any(&is_so)
        {
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(wait::TIMEOUT, said).await;
    in_time.expect("the metrics say so");
}

/// Waits until this number of requests stands in line.
async fn until_in_line(server: &RunningServer, requests: usize) {
    let is_so = |waiting| waiting == requests as f64;
    until_said(server, "mayfly_upstream_queued{", is_so).await;
}

/// A visitor of the page, who has its beginning.
async fn visit(server: &RunningServer, number: usize) -> Client {
    let mut client = server.connect().await;
    let request = format!("GET / HTTP/1.1\r\nHost: site.test\r\nCookie: n={number}\r\n\r\n");
    client.send(request).await;
    client.receive_until("begin").await;
    client
}

#[tokio::test]
async fn fragments_that_fill_the_line_keep_no_visitor_from_a_page() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::default());
    let (php, server) = site(&gate, &asked).await;
    let target = server.target();
    let page = target.get_with("/", "Cookie: n=0\r\n").await;
    assert_eq!(page.text(), format!("begin{}", "part".repeat(PARTS)));
    let before = php.requests();
    let mut crowd = Vec::new();
    for number in 1..=20 {
        crowd.push(visit(&server, number).await);
    }
    let refused = 20 * PARTS - WORKERS - SHARE;
    let said = || server.error_log().matches("upstream queue is full").count();
    wait::until("fragments are refused", || said() == refused).await;
    until_in_line(&server, SHARE).await;
    let before = before + WORKERS;
    wait::until("all workers are held", || php.requests() == before).await;
    for (number, path) in ["/a", "/b", "/c"].into_iter().enumerate() {
        let target = server.target();
        let visit = tokio::spawn(async move { target.get(path).await });
        until_in_line(&server, SHARE - number + 1).await;
        // One worker is free: the visitor gets it, and then a fragment.
        gate.add_permits(1);
        let reply = visit.await.expect("a response");
        assert_eq!((reply.status, reply.text()), (200, format!("[{path}]")));
        let has_begun = || php.requests() == before + 2 * (number + 1);
        wait::until("a fragment has the worker", has_begun).await;
    }
    drop(crowd);
    gate.add_permits(10_000);
}

/// A page that a visitor asks for is no less urgent because a fragment's fetch has it.
#[tokio::test]
async fn a_fragment_that_a_visitor_waits_for_is_served_as_a_visitor() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::default());
    let (php, server) = site(&gate, &asked).await;
    let target = server.target();
    target.get_with("/", "Cookie: n=0\r\n").await;
    let before = php.requests();
    let mut crowd = Vec::new();
    for number in 1..=4 {
        crowd.push(visit(&server, number).await);
        until_in_line(&server, (PARTS * number).saturating_sub(WORKERS)).await;
    }
    let before = before + WORKERS;
    wait::until("all workers are held", || php.requests() == before).await;
    let last = server.target();
    let last = tokio::spawn(async move { last.get("/part2-4").await });
    let late = server.target();
    until_said(&server, "mayfly_zone_collapsed", |requests| requests > 0.0).await;
    let late = tokio::spawn(async move { late.get("/late").await });
    until_in_line(&server, 4 * PARTS - WORKERS + 1).await;
    gate.add_permits(1);
    wait::until("the worker is taken", || php.requests() > before).await;
    let next = asked.lock().expect("no panic")[before].clone();
    assert_eq!(next, "/part2-4", "the one that came first is first");
    gate.add_permits(10_000);
    assert_eq!(last.await.expect("a response").text(), "part");
    assert_eq!(late.await.expect("a response").text(), "[/late]");
    drop(crowd);
}
