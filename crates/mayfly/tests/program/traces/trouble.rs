//! Collectors that are away, slow or full: visitors never notice, and lost spans are counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use testkit::fake_http::Script;
use testkit::process::Signal;
use testkit::tls::Authority;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::*;

const TRACED: &str = "location / { otel_trace on; return 200; }\n\
                      location = /metrics { metrics; }";

/// A request or a stop that waited for a collector would take longer: a batch is given up after 60 s.
const GIVES_UP: Duration = Duration::from_secs(30);

/// `mayfly_spans_total` with this result.
async fn counted(server: &RunningServer, result: &str) -> u64 {
    let reply = server.target().get("/metrics").await;
    let text = reply.text();
    let wanted = format!("mayfly_spans_total{{result=\"{result}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&wanted));
    line.unwrap_or_else(|| panic!("no {wanted} in {text}"))
        .parse::<f64>()
        .expect("a number") as u64
}

#[tokio::test]
async fn a_batch_that_is_refused_for_now_is_sent_again_when_the_collector_says() {
    for (status, fields) in [
        ("429 Too Many Requests", "Retry-After: 1\r\n"),
        ("503 Service Unavailable", ""),
    ] {
        let refusal = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 0\r\n\r\n");
        let collector = Collector::answering(Box::new(move |request| match request.number {
            1 => Script::new().raw(&refusal),
            _ => Script::page("", ""),
        }))
        .await;
        let server = traced(&collector, "", TRACED).await;
        let began = Instant::now();
        server.target().get("/").await;
        assert_eq!(collector.wait_for(1).await.len(), 1);
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert_eq!(collector.taken.asked.load(Ordering::SeqCst), 2);
        assert!(!server.error_log().contains("otel_exporter"));
        // It is counted once its answer was read.
        while counted(&server, "sent").await == 0 {}
        assert_eq!(counted(&server, "sent").await, 1);
    }
}

#[tokio::test]
async fn a_batch_that_is_refused_for_good_is_dropped_and_told_once() {
    let collector = Collector::answering(Box::new(|_| {
        Script::new().raw("HTTP/1.1 401 Unauthorized\r\nContent-Length: 7\r\n\r\nno key!")
    }))
    .await;
    let server = traced(&collector, "", TRACED).await;
    for sent in 1..=3 {
        server.target().get("/").await;
        let asked = || collector.taken.asked.load(Ordering::SeqCst) >= sent;
        until("the batch", asked).await;
    }
    let told = "otel_exporter: 1 spans were dropped: it answered 401: no key!, collector: ";
    until("the line", || server.error_log().contains(told)).await;
    assert_eq!(server.error_log().matches("otel_exporter").count(), 1);
    let mut failed = 0;
    while failed < 3 {
        failed = counted(&server, "failed").await;
    }
}

#[tokio::test]
async fn a_collector_that_hangs_or_is_away_slows_nobody_down_and_takes_a_bounded_number() {
    let gate = Arc::new(Semaphore::new(0));
    let hanging = Collector::answering(Box::new(move |_| Script::new().wait_for(&gate))).await;
    let port = testkit::process::free_port();
    for endpoint in [hanging.endpoint().to_owned(), format!("127.0.0.1:{port}")] {
        let server = start(&format!(
            "otel_exporter {{ endpoint {endpoint}; interval 20ms; batch_size 10; batch_count 2; }}\n\
             server {{ listen unix:%%/http; server_name site.test; {TRACED} }}"
        ))
        .await;
        let began = Instant::now();
        let mut client = server.connect().await;
        for _ in 0..200 {
            client
                .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
                .await;
            assert_eq!(client.receive(false).await.expect("an answer").status, 200);
        }
        assert!(began.elapsed() < GIVES_UP);
        // One batch is on its way, and two wait.
        assert!(counted(&server, "dropped").await >= 160);
        // A stop does not wait for it either.
        let mut server = server;
        let began = Instant::now();
        server.signal(Signal::QUIT);
        server.ended().await;
        assert!(began.elapsed() < GIVES_UP);
        assert!(
            server.error_log().contains("spans were dropped"),
            "{}",
            server.error_log()
        );
    }
}

#[tokio::test]
async fn a_graceful_stop_sends_what_waits() {
    let collector = Collector::start().await;
    let mut server = start(&format!(
        "otel_exporter {{ endpoint {}; interval 1h; }}\n\
         server {{ listen unix:%%/http; server_name site.test; {TRACED} }}",
        collector.endpoint()
    ))
    .await;
    server.target().get("/").await;
    server.signal(Signal::QUIT);
    server.ended().await;
    assert_eq!(collector.spans().len(), 1);
}

#[tokio::test]
async fn a_reload_changes_the_collector_and_loses_nothing() {
    let (first, second) = (Collector::start().await, Collector::start().await);
    let http = |collector: &Collector| {
        format!(
            "otel_exporter {{ endpoint {}; interval 1h; }}\n\
             server {{ listen unix:%%/http; location / {{ otel_trace on; return 200; }} }}",
            collector.endpoint()
        )
    };
    let mut server = start(&http(&first)).await;
    server.target().get("/one").await;
    server.rewrite("", &http(&second));
    server.signal(Signal::HUP);
    let spans = first.wait_for(1).await;
    assert_eq!(attribute(&spans[0], "http.target").as_deref(), Some("/one"));
    server.target().get("/two").await;
    // An unchanged configuration keeps the spans that wait.
    server.rewrite("", &format!("{}\n", http(&second)));
    server.signal(Signal::HUP);
    server.target().get("/three").await;
    server.signal(Signal::QUIT);
    server.ended().await;
    let targets: Vec<_> = second
        .spans()
        .iter()
        .map(|it| attribute(it, "http.target"))
        .collect();
    assert_eq!(
        targets,
        [Some("/two".to_owned()), Some("/three".to_owned())]
    );
    assert_eq!(first.spans().len(), 1);
}

#[tokio::test]
async fn a_collector_is_spoken_to_by_grpc_where_the_endpoint_has_no_path() {
    // UNAVAILABLE, then 0.
    let collector = Collector::grpc(&["14"]).await;
    let server = start(&format!(
        "otel_exporter {{ endpoint {}; interval 20ms; header X-Token secret; }}\n\
         server {{ listen unix:%%/http; server_name site.test; {TRACED} }}",
        collector.endpoint()
    ))
    .await;
    for _ in 0..3 {
        server.target().get("/").await;
    }
    let spans = collector.wait_for(3).await;
    assert!(spans.iter().all(is_server));
    let heads = collector.taken.heads.lock().join("\n");
    for text in [
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        "\"application/grpc\"",
        "\"x-token\": \"secret\"",
        "\"te\": \"trailers\"",
    ] {
        assert!(heads.contains(text), "{heads}");
    }
}

#[tokio::test]
async fn a_collector_is_verified() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let collector = Collector::encrypted(&authority).await;
    for (trusted, is_good) in [(&authority, true), (&other, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, trusted.pem()).expect("a file");
        let mut server = start(&format!(
            "otel_exporter {{ endpoint {}; interval 20ms; trusted_certificate {}; header X-Token secret; }}\n\
             server {{ listen unix:%%/http; server_name site.test; {TRACED} }}",
            collector.endpoint(),
            path.display()
        ))
        .await;
        server.target().get("/").await;
        if is_good {
            collector.wait_for(1).await;
            assert!(collector.taken.heads.lock()[0].contains("x-token: secret"));
        }
        server.signal(Signal::QUIT);
        server.ended().await;
        assert_eq!(
            server.error_log().contains("certificate"),
            !is_good,
            "{}",
            server.error_log()
        );
    }
    assert_eq!(collector.spans().len(), 1);
}
