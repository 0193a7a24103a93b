//! Fetches whose visitors leave while they stand in line for the upstream: requests that have begun
//! finish, and the rest is not sent.

use std::sync::Mutex;

use testkit::client::Client;
use testkit::wait;

use super::*;

const STORED: &str = "fastcgi_cache_valid 200 1h;";

/// PHP with two workers, which wait for the gate at pages named `slow`.
struct Site {
    php: FakePhp,
    gate: Arc<Semaphore>,
    /// The requests that PHP got.
    asked: Arc<Mutex<Vec<String>>>,
    server: RunningServer,
}

impl Site {
    async fn new(directives: &str) -> Site {
        let (gate, asked) = (
            Arc::new(Semaphore::new(0)),
            Arc::new(Mutex::new(Vec::new())),
        );
        let (held, noted) = (gate.clone(), asked.clone());
        let php = FakePhp::tcp(move |request| {
            let uri = request.param("REQUEST_URI");
            noted.lock().expect("no panic").push(uri.to_owned());
            let head = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
            match uri {
                "/page" => Script::page(head, "begin<esi:include src='/part-$(HTTP_COOKIE{n})'/>"),
                _ if uri.contains("slow") => {
                    let script = Script::new().wait_for(&held);
                    script.stdout(format!("{head}\r\n{uri}"))
                }
                _ => Script::page(head, uri),
            }
        })
        .await;
        let pass = format!("fastcgi_pass {};", php.address());
        let http = php.cached_site(&format!("access_log %%/access.log; esi on; {directives}"));
        let http = format!(
            "upstream php {{ server {} max_conns=2; queue 100 timeout=1h; }}\n{}",
            php.address(),
            http.replace(&pass, "fastcgi_pass php;")
        );
        let server = start(&http).await;
        Site {
            php,
            gate,
            asked,
            server,
        }
    }

    async fn visit(&self, path: &str) -> Client {
        let mut client = self.server.connect().await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n");
        client.send(request).await;
        client
    }

    /// Two visitors hold the workers.
    async fn hold_workers(&self) -> [Client; 2] {
        let before = self.php.requests();
        let held = [self.visit("/slow-1").await, self.visit("/slow-2").await];
        wait::until("the workers are held", || self.php.requests() == before + 2).await;
        held
    }

    async fn until_ended(&self, requests: usize) {
        let ended = || self.server.read("access.log").lines().count() == requests;
        wait::until("the requests have ended", ended).await;
    }

    /// Lets the workers go on. The line is served in order, and so a visitor who comes now is the last.
    async fn finish(&self) -> Vec<String> {
        self.gate.add_permits(1000);
        assert_eq!(self.server.target().get("/last").await.text(), "/last");
        let mut asked = self.asked.lock().expect("no panic").clone();
        asked.sort();
        asked
    }
}

#[tokio::test]
async fn what_waits_in_line_is_not_sent_once_its_visitors_have_left() {
    let site = Site::new(STORED).await;
    assert_eq!(site.server.target().get("/begun").await.text(), "/begun");
    let held = site.hold_workers().await;
    let mut waiting = Vec::new();
    for path in ["/a", "/a", "/b", "/c", "/page"] {
        waiting.push(site.visit(path).await);
    }
    drop((held, waiting));
    site.until_ended(1 + 2 + 5).await;
    assert_eq!(
        site.finish().await,
        ["/begun", "/last", "/slow-1", "/slow-2"]
    );
    // Fetches that had begun belong to the cache.
    for path in ["/slow-1", "/slow-2"] {
        assert_eq!(site.server.target().get(path).await.x_cache(), "HIT");
    }
    assert_eq!(site.php.aborted(), 0);
    let log = site.server.error_log();
    assert!(!log.contains("were not sent"), "{log}");
}

#[tokio::test]
async fn a_fragment_that_waits_in_line_is_not_sent_once_its_visitor_has_left() {
    let site = Site::new(STORED).await;
    let target = site.server.target();
    let page = target.get_with("/page", "Cookie: n=1\r\n").await;
    assert_eq!(page.text(), "begin/part-1");
    let held = site.hold_workers().await;
    let mut visitor = site.visit("/page").await;
    visitor.receive_until("begin").await;
    drop((held, visitor));
    site.until_ended(1 + 2 + 1).await;
    let asked = site.finish().await;
    assert_eq!(asked, ["/last", "/page", "/part-1", "/slow-1", "/slow-2"]);
}

#[tokio::test]
async fn what_a_follower_waits_for_is_sent_when_its_leader_has_left() {
    let site = Site::new(STORED).await;
    let held = site.hold_workers().await;
    let leader = site.visit("/a").await;
    let mut follower = site.visit("/a").await;
    drop(leader);
    site.until_ended(1).await;
    site.gate.add_permits(1000);
    let reply = follower.receive(false).await.expect("a response");
    assert_eq!(reply.text(), "/a");
    drop(held);
}

/// Stale pages are shown at once, and the visitor never waits for their renewal.
#[tokio::test]
async fn a_refresh_in_line_is_sent_although_its_visitor_has_left() {
    let stale = "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale updating; \
                 fastcgi_cache_background_update on;";
    let site = Site::new(stale).await;
    assert_eq!(site.server.target().get("/a").await.x_cache(), "MISS");
    let held = site.hold_workers().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(site.server.target().get("/a").await.x_cache(), "STALE");
    let runs = || {
        let asked = site.asked.lock().expect("no panic");
        asked.iter().filter(|path| *path == "/a").count()
    };
    assert_eq!(runs(), 1);
    site.gate.add_permits(1000);
    wait::until("the refresh is sent", || runs() == 2).await;
    drop(held);
}
