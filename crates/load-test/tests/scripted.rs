//! Load on a scripted server: its behaviour is known, so that the report can be checked.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use command_line::Target;
use load_test::{Load, Plan, Recorder, Report, Settings, Stop, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The behaviour of the server.
#[derive(Clone)]
struct Script {
    /// Every answer waits while the server is in this part of its life.
    stall: Option<(Duration, Duration)>,
    answer: fn(&str, usize) -> String,
    closes_after: Option<usize>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            stall: None,
            answer: |_, _| {
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Cache: HIT\r\n\r\nhello".to_owned()
            },
            closes_after: None,
        }
    }
}

#[derive(Default)]
struct ServerCounts {
    requests: AtomicUsize,
    connections: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

/// On a thread of its own, as a server is.
fn server(script: Script) -> (SocketAddr, Arc<ServerCounts>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let seen = Arc::new(ServerCounts::default());
    let own = seen.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let began = Rc::new(Cell::new(None));
            let local = tokio::task::LocalSet::new();
            local
                .run_until(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        own.connections.fetch_add(1, Ordering::SeqCst);
                        tokio::task::spawn_local(serve(
                            stream,
                            script.clone(),
                            own.clone(),
                            began.clone(),
                        ));
                    }
                })
                .await;
        });
    });
    (address, seen)
}

async fn serve(
    mut stream: tokio::net::TcpStream,
    script: Script,
    seen: Arc<ServerCounts>,
    began: Rc<Cell<Option<Instant>>>,
) {
    let mut received = Vec::new();
    let mut answered = 0;
    loop {
        let end = received.windows(4).position(|it| it == b"\r\n\r\n");
        let Some(end) = end else {
            if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end + 4);
        let number = seen.requests.fetch_add(1, Ordering::SeqCst);
        seen.heads.lock().unwrap().push(head.clone());
        let first = began.get().unwrap_or_else(Instant::now);
        began.set(Some(first));
        if let Some((from, until)) = script.stall
            && (from..until).contains(&first.elapsed())
        {
            tokio::time::sleep_until((first + until).into()).await;
        }
        let answer = (script.answer)(&head, number);
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        answered += 1;
        if script.closes_after == Some(answered) {
            return;
        }
    }
}

fn settings(load: Load) -> Settings {
    Settings {
        load,
        duration: Duration::from_secs(1),
        ramp: Duration::ZERO,
        timeout: Duration::from_secs(5),
        connections: 8,
        fields: Vec::new(),
        cookies: false,
        requests_per_visitor: None,
        anywhere: false,
    }
}

async fn report(urls: &[String], settings: Settings) -> Report {
    let targets: Vec<Target> = urls.iter().map(|it| Target::parse(it).unwrap()).collect();
    let plan = Rc::new(Plan::new(&targets, settings).unwrap());
    let duration = plan.settings.duration;
    let recorder = Recorder::new(plan.urls.len(), duration);
    let recorder = run(plan.clone(), duration, recorder, &Stop::default(), |_| ()).await;
    Report::new(&plan, &recorder)
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

/// A server stalls for a second of five. 200 requests in a second are due: 200 of 1000 wait up to a
/// second, half of them more than half of one. A tester that waits for answers would send eight
/// requests in that second, and see eight slow answers among a thousand.
#[tokio::test]
async fn a_stall_of_a_second_is_in_the_percentiles() {
    let script = Script {
        stall: Some((Duration::from_secs(2), Duration::from_secs(3))),
        ..Script::default()
    };
    let (address, _) = server(script);
    let report = report(
        &[url(address, "/")],
        Settings {
            duration: Duration::from_secs(5),
            ..settings(Load::Open { rate: 200.0 })
        },
    )
    .await;
    assert_eq!(
        (report.requests, report.answers),
        (1000, 1000),
        "{:?}",
        report.errors
    );
    let latency = &report.latency;
    assert!((950.0..1150.0).contains(&latency.p99_9), "{latency:?}");
    assert!((850.0..1100.0).contains(&latency.p99), "{latency:?}");
    assert!((400.0..700.0).contains(&latency.p90), "{latency:?}");
    assert!(latency.p75 < 100.0, "{latency:?}");
    // The latency that a closed client would measure for the same requests: it hides all but the
    // eight.
    assert!(report.service.p90 < 100.0, "{:?}", report.service);
}

#[tokio::test]
async fn requests_are_due_at_the_rate_and_each_is_counted() {
    let (address, seen) = server(Script::default());
    let report = report(&[url(address, "/")], settings(Load::Open { rate: 500.0 })).await;
    assert_eq!(
        (report.requests, report.answers),
        (500, 500),
        "{:?}",
        report.errors
    );
    assert_eq!(seen.requests.load(Ordering::SeqCst), 500);
    assert_eq!((report.bytes, report.hit_ratio), (2500, Some(1.0)));
    assert_eq!(report.statuses.get(&200), Some(&500));
}

#[tokio::test]
async fn a_ramp_asks_for_half() {
    let (address, _) = server(Script::default());
    let ramp = Duration::from_secs(1);
    let report = report(
        &[url(address, "/")],
        Settings {
            ramp,
            ..settings(Load::Open { rate: 400.0 })
        },
    )
    .await;
    assert_eq!(report.requests, 200);
}

#[tokio::test]
async fn the_closed_model_keeps_its_connections_and_weighs_urls() {
    let (address, seen) = server(Script::default());
    let urls = [url(address, "/a"), format!("3@{}", url(address, "/b"))];
    let report = report(&urls, settings(Load::Closed)).await;
    assert_eq!(seen.connections.load(Ordering::SeqCst), 8);
    assert!(
        report.answers > 100 && report.errors.is_empty(),
        "{report:?}"
    );
    let [a, b] = &report.urls[..] else {
        panic!("{report:?}")
    };
    let share = b.answers as f64 / (a.answers + b.answers) as f64;
    assert!((0.65..0.85).contains(&share), "{share}");
}

#[tokio::test]
async fn errors_have_their_kinds() {
    let cases: [(Script, &str); 3] = [
        (
            Script {
                answer: |_, _| "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal".to_owned(),
                closes_after: Some(1),
                ..Script::default()
            },
            "connection closed early",
        ),
        (
            Script {
                answer: |_, _| "220 mail ready\r\n\r\n".to_owned(),
                ..Script::default()
            },
            "not HTTP",
        ),
        (
            Script {
                answer: |_, _| String::new(),
                ..Script::default()
            },
            "timeout",
        ),
    ];
    for (script, words) in cases {
        let (address, _) = server(script);
        let timeout = Duration::from_millis(200);
        let report = report(
            &[url(address, "/")],
            Settings {
                timeout,
                ..settings(Load::Open { rate: 20.0 })
            },
        )
        .await;
        assert_eq!((report.answers, report.requests), (0, 20), "{words}");
        let kinds: Vec<&&str> = report.errors.keys().collect();
        assert!(kinds.contains(&&words), "{words}: {kinds:?}");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let report = report(&[url(address, "/")], settings(Load::Open { rate: 20.0 })).await;
    assert_eq!(report.errors.get("could not connect"), Some(&20));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_between_requests_is_no_error() {
    let (address, seen) = server(Script {
        closes_after: Some(3),
        ..Script::default()
    });
    let report = report(&[url(address, "/")], settings(Load::Open { rate: 200.0 })).await;
    assert_eq!(
        (report.answers, report.errors.len()),
        (200, 0),
        "{:?}",
        report.errors
    );
    assert!(seen.connections.load(Ordering::SeqCst) >= 60);
}

#[tokio::test]
async fn visitors_send_back_the_cookies_of_their_own() {
    let script = Script {
        answer: |_, number| {
            format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: visitor={number}; Path=/\r\nContent-Length: 0\r\n\r\n"
            )
        },
        ..Script::default()
    };
    let (address, seen) = server(script);
    let settings = Settings {
        cookies: true,
        requests_per_visitor: Some(2),
        connections: 1,
        ..settings(Load::Open { rate: 20.0 })
    };
    report(&[url(address, "/")], settings).await;
    let heads = seen.heads.lock().unwrap();
    for (number, head) in heads.iter().enumerate() {
        let cookie = head.lines().find_map(|line| line.strip_prefix("Cookie: "));
        match number % 2 {
            0 => assert_eq!(cookie, None, "a new visitor: {head}"),
            _ => assert_eq!(cookie, Some(&*format!("visitor={}", number - 1)), "{head}"),
        }
    }
    assert_eq!(seen.connections.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn a_report_is_text_json_and_a_page_that_loads_nothing() {
    let (address, _) = server(Script::default());
    let report = report(&[url(address, "/<x>")], settings(Load::Open { rate: 50.0 })).await;
    let text = report.to_text();
    for words in [
        "p99.9",
        "Open model",
        "200 50",
        "100.0 % without the application",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["answers"], 50);
    let html = report.to_html();
    assert!(html.contains("<svg") && html.contains("<polyline") && html.contains("/&lt;x&gt;"));
    for word in ["<script", "src=", "href=", "url(", "NaN"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[tokio::test]
async fn a_run_can_be_stopped() {
    let (address, _) = server(Script {
        answer: |_, _| String::new(),
        ..Script::default()
    });
    let target = [Target::parse(&url(address, "/")).unwrap()];
    let duration = Duration::from_secs(600);
    let plan = Settings {
        duration,
        timeout: duration,
        ..settings(Load::Open { rate: 100.0 })
    };
    let plan = Rc::new(Plan::new(&target, plan).unwrap());
    let stop = Stop::default();
    let recorder = Recorder::new(1, duration);
    let began = Instant::now();
    let asked = run(plan, duration, recorder, &stop, |live| {
        if live.elapsed > Duration::from_millis(300) {
            stop.now();
        }
    });
    asked.await;
    assert!(began.elapsed() < Duration::from_secs(60));
}
