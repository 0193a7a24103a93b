//! Pages that are older than visitors expect: a page that was not asked for in the meantime must
//! not be handed out as if it had just been renewed, and the age of pages shown while the
//! application fails is bounded too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testkit::client::{Reply, Target};
use testkit::fake_http::{FakeHttp, Script};
use testkit::running::RunningServer;
use testkit::serving::FolderServer;
use testkit::wait::TIMEOUT;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::start;

/// An application whose pages have its name, until it fails.
struct Application {
    http: FakeHttp,
    /// The behaviour: 0 works, 1 hangs up, any other number is the status it answers with.
    status: Arc<AtomicUsize>,
}

impl Application {
    /// `fields` go with each page; it answers when `gate` lets it.
    async fn gated(fields: &'static str, gate: Option<Arc<Semaphore>>) -> Application {
        let status = Arc::new(AtomicUsize::new(0));
        let is = status.clone();
        let pages = AtomicUsize::new(0);
        let http = FakeHttp::start(move |request| {
            let script = match &gate {
                Some(gate) if request.target != "/free" => Script::new().wait_for(gate),
                _ => Script::new(),
            };
            match is.load(Ordering::SeqCst) {
                0 => {
                    let page = pages.fetch_add(1, Ordering::SeqCst) + 1;
                    let body = format!("page {page}");
                    script.raw(format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\
                         Content-Length: {}\r\n\r\n{body}",
                        body.len()
                    ))
                }
                1 => script.cut(),
                status => script.raw(format!(
                    "HTTP/1.1 {status} Bad\r\nContent-Length: 3\r\n\r\nbad"
                )),
            }
        })
        .await;
        Application { http, status }
    }

    async fn start(fields: &'static str) -> Application {
        Application::gated(fields, None).await
    }

    fn set(&self, status: usize) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// In front of it, a cache for 20 ms that shows stale pages.
    async fn cached(&self, directives: &str) -> RunningServer {
        let http = format!(
            "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             upstream site {{ server {} max_conns=1; queue 10; }}\n\
             server {{ listen unix:%%/http; location / {{ proxy_pass http://site;\n\
             proxy_cache zone; proxy_cache_key $uri; proxy_cache_valid 200 20ms;\n\
             proxy_cache_use_stale updating error timeout http_500;\n\
             proxy_cache_background_update on;\n\
             add_header X-Cache $upstream_cache_status always; {directives} }} }}",
            self.http.address()
        );
        start(&http).await
    }
}

fn seen(reply: &Reply) -> (&str, String) {
    (reply.x_cache(), reply.text())
}

/// The first answer that is no hit any more.
async fn past_its_lifetime(server: &RunningServer) -> Reply {
    let begun = Instant::now();
    loop {
        let reply = server.target().get("/page").await;
        if reply.x_cache() != "HIT" {
            return reply;
        }
        assert!(begun.elapsed() < TIMEOUT, "it stays fresh");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn three_visitors(target: &Target) -> [JoinHandle<Reply>; 3] {
    [(); 3].map(|()| {
        let target = target.clone();
        tokio::spawn(async move { target.get("/page").await })
    })
}

/// The attack on `serve` as it is: an old page for the first visitor.
#[tokio::test]
async fn a_page_that_nobody_asked_for_meanwhile_is_made_anew() {
    let application = Application::start("").await;
    let url = format!("http://{}", application.http.address());
    let server = FolderServer::start(crate::program(), &url, &["--ttl", "50ms"]).await;
    let target = server.target();
    let reply = target.get("/page").await;
    assert_eq!(seen(&reply), ("MISS", "page 1".to_owned()));
    // Lifetime and bound have to pass, by the clock.
    tokio::time::sleep(Duration::from_millis(10_200)).await;
    let reply = target.get("/page").await;
    assert_eq!(seen(&reply), ("EXPIRED", "page 2".to_owned()));
    // An application that fails is another matter.
    tokio::time::sleep(Duration::from_millis(10_200)).await;
    for status in [500, 1] {
        application.set(status);
        let reply = target.get("/page").await;
        assert_eq!(seen(&reply), ("STALE", "page 2".to_owned()), "{status}");
    }
}

#[tokio::test]
async fn past_the_first_time_visitors_wait_for_one_new_page() {
    let gate = Arc::new(Semaphore::new(1));
    let application = Application::gated("", Some(gate.clone())).await;
    let server = application.cached("cache_stale 0 1h;").await;
    assert_eq!(server.target().get("/page").await.text(), "page 1");
    let target = server.target();
    // Fresh for 20 ms: later visitors wait, all of them for one page.
    tokio::time::sleep(Duration::from_millis(30)).await;
    let visitors = three_visitors(&target);
    let asked = async {
        while application.http.requests() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asked)
        .await
        .expect("a new page is asked for");
    gate.add_permits(1);
    for visitor in visitors {
        assert_eq!(visitor.await.expect("a visitor").text(), "page 2");
    }
    assert_eq!(application.http.requests(), 2);
}

#[tokio::test]
async fn what_a_response_allows_is_bounded_as_well() {
    let fields = "Cache-Control: stale-while-revalidate=36000, stale-if-error=36000\r\n";
    let application = Application::start(fields).await;
    let server = application.cached("cache_stale 0 0;").await;
    server.target().get("/page").await;
    let reply = past_its_lifetime(&server).await;
    assert_eq!(reply.x_cache(), "EXPIRED");
    assert_ne!(reply.text(), "page 1");
    application.set(500);
    assert_eq!(past_its_lifetime(&server).await.status, 500);
}

#[tokio::test]
async fn while_the_application_fails_the_last_response_is_shown_for_the_second_time() {
    for status in [500, 1] {
        let application = Application::start("").await;
        let server = application.cached("cache_stale 0 400ms;").await;
        server.target().get("/page").await;
        application.set(status);
        let reply = past_its_lifetime(&server).await;
        assert_eq!(seen(&reply), ("STALE", "page 1".to_owned()), "{status}");
        let ended = async {
            while server.target().get("/page").await.status == 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ended).await.expect("an end");
        // It is back, and so are its pages.
        application.set(0);
        let back = async {
            while server.target().get("/page").await.text() != "page 2" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, back).await.expect("pages");
    }
}

/// A visitor who comes after a failure does not wait for the next one.
#[tokio::test]
async fn after_a_failure_nobody_waits_for_an_application_that_hangs() {
    let gate = Arc::new(Semaphore::new(2));
    let application = Application::gated("", Some(gate.clone())).await;
    let server = application.cached("cache_stale 0 1h;").await;
    server.target().get("/page").await;
    application.set(500);
    let reply = past_its_lifetime(&server).await;
    assert_eq!(seen(&reply), ("STALE", "page 1".to_owned()));
    // No request gets through the gate any more.
    for _ in 0..3 {
        let target = server.target();
        let reply = tokio::time::timeout(Duration::from_secs(3), target.get("/page"))
            .await
            .expect("an answer at once");
        assert_eq!(reply.text(), "page 1");
    }
}

#[tokio::test]
async fn while_too_many_wait_the_last_response_is_shown_for_the_second_time() {
    let gate = Arc::new(Semaphore::new(0));
    let application = Application::gated("", Some(gate.clone())).await;
    let server = application
        .cached("cache_stale 0 1h; cache_queue_stale 0;")
        .await;
    let first = server.target();
    gate.add_permits(1);
    assert_eq!(first.get("/page").await.text(), "page 1");
    // One request is with the application, another waits for its turn.
    let busy: Vec<_> = ["/a", "/b"]
        .into_iter()
        .map(|path| {
            let target = server.target();
            tokio::spawn(async move { target.get(path).await })
        })
        .collect();
    let shown = async {
        loop {
            // If the response is stale before there is a line, a visitor joins it.
            let pause = Duration::from_millis(200);
            match tokio::time::timeout(pause, first.get("/page")).await {
                Ok(reply) if reply.x_cache() == "STALE" => return reply,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let reply = tokio::time::timeout(TIMEOUT, shown).await.expect("a page");
    assert_eq!(reply.text(), "page 1");
    gate.add_permits(10);
    for request in busy {
        assert_eq!(request.await.expect("a visitor").status, 200);
    }
}

/// An application that hangs is as good as one that fails, for the visitor who asks as for those
/// who wait for the same response.
#[tokio::test]
async fn nobody_waits_long_for_an_application_that_hangs() {
    let gate = Arc::new(Semaphore::new(1));
    let application = Application::gated("", Some(gate.clone())).await;
    let directives = "cache_stale 0 1h; proxy_cache_lock_timeout 100ms;";
    let server = application.cached(directives).await;
    let target = server.target();
    assert_eq!(target.get("/page").await.text(), "page 1");
    // Fresh for 20 ms.
    tokio::time::sleep(Duration::from_millis(30)).await;
    let visitors = three_visitors(&target);
    for visitor in visitors {
        let reply = visitor.await.expect("a visitor");
        assert_eq!(seen(&reply), ("STALE", "page 1".to_owned()));
    }
    // Their one request goes on, and its response is stored.
    assert_eq!(application.http.requests(), 2);
    gate.add_permits(1);
    let renewed = async {
        while target.get("/page").await.text() != "page 2" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, renewed)
        .await
        .expect("a page");
}
