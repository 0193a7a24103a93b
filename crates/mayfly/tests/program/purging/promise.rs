//! The promise of purges, end to end: when a purge has returned, no answer begun afterwards shows data older
//! than it. One writer changes, purges and reads, beside a crowd that reads all the time; for each door.
//!
//! `MAYFLY_PURGES=10000 cargo test -p mayfly --test program purging::promise` asks for this number of changes per door;
//! `MAYFLY_READERS` sets the number of readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;

use crate::start;

const PAGES: usize = 5;
const PURGES: usize = 200;
const READERS: usize = 40;

/// The data of the application.
#[derive(Default)]
struct Data {
    version: [AtomicU64; PAGES],
    runs: AtomicU64,
}

impl Data {
    /// A page, or a change of one; a page is read first and shown in pieces.
    fn answer(&self, request: &Request) -> Script {
        let page = page_of(request.param("REQUEST_URI"));
        let Some(version) = self.version.get(page) else {
            return Script::page("Status: 404\r\n", "");
        };
        if request.param("REQUEST_METHOD") == "POST" {
            version.fetch_add(1, SeqCst);
            let name = match is_litespeed(request) {
                true => "X-LiteSpeed-Purge: public,",
                false => "X-Cache-Purge-Tags: ",
            };
            return Script::page(&format!("{name}page:{page}\r\n"), "changed");
        }
        self.runs.fetch_add(1, SeqCst);
        let shown = version.load(SeqCst);
        let is_private = request.param("HTTP_COOKIE").contains("session=");
        let head = match (is_litespeed(request), is_private) {
            (false, _) => {
                format!("X-Accel-Expires: 3600\r\nSurrogate-Key: page:{page} every\r\n")
            }
            (true, false) => format!(
                "X-LiteSpeed-Cache-Control: public,max-age=3600\r\n\
                 X-LiteSpeed-Tag: page:{page},every\r\n"
            ),
            (true, true) => format!(
                "X-LiteSpeed-Cache-Control: private,max-age=3600\r\n\
                 X-LiteSpeed-Tag: own,public:page:{page}\r\n"
            ),
        };
        Script::page(&head, format!("version {shown};")).in_pieces_of(7)
    }
}

fn is_litespeed(request: &Request) -> bool {
    !request.param("HTTP_X_LSCACHE").is_empty()
}

fn page_of(target: &str) -> usize {
    let digits = target.rsplit('/').next().unwrap_or_default();
    digits.parse().unwrap_or(PAGES)
}

#[derive(Clone, Copy, Debug)]
enum PurgeMethod {
    ApiByUrl,
    ApiByTag,
    Method,
    Response,
    /// The fields of LiteSpeed's protocol, for readers without cookies, of a group, and with copies of their own.
    LiteSpeed,
}

impl PurgeMethod {
    /// Returns the cookie of a reader.
    fn cookie(self, reader: usize) -> String {
        match (self, reader % 3) {
            (PurgeMethod::LiteSpeed, 1) => "Cookie: _lscache_vary=group\r\n".to_owned(),
            (PurgeMethod::LiteSpeed, 2) => format!("Cookie: session={:016}\r\n", reader % 9),
            _ => String::new(),
        }
    }
}

struct Site {
    data: Arc<Data>,
    server: RunningServer,
    /// Kept while the server asks it.
    _php: FakePhp,
}

async fn site(door: PurgeMethod) -> Site {
    let data = Arc::new(Data::default());
    let asked = data.clone();
    let php = FakePhp::tcp(move |request| asked.answer(request)).await;
    let litespeed = match door {
        PurgeMethod::LiteSpeed => "cache_litespeed on;",
        _ => "",
    };
    let server = start(&php.cached_site(&format!(
        "{litespeed} keepalive_requests 1000000000; fastcgi_cache_purge PURGE from all; cache_purge_fields on;\n}}\n\
         location = /purge {{ cache_purge_api;"
    )))
    .await;
    Site {
        data,
        server,
        _php: php,
    }
}

impl Site {
    /// Changes a page, purges it, and comes back when the purge has returned.
    async fn change(&self, page: usize, door: PurgeMethod) {
        let target = self.server.target();
        if !matches!(door, PurgeMethod::Response | PurgeMethod::LiteSpeed) {
            self.data.version[page].fetch_add(1, SeqCst);
        }
        let json = "Content-Type: application/json\r\n";
        let url = format!("http://site.test/p/{page}");
        let reply = match door {
            PurgeMethod::ApiByUrl => {
                let body = format!("{{\"urls\":[\"{url}\"]}}");
                target.ask("POST", "/purge", json, &body).await
            }
            PurgeMethod::ApiByTag => {
                let body = format!("{{\"tags\":[\"page:{page}\"]}}");
                target.ask("POST", "/purge", json, &body).await
            }
            PurgeMethod::Method => target.ask("PURGE", &format!("/p/{page}"), "", "").await,
            PurgeMethod::Response | PurgeMethod::LiteSpeed => {
                target.ask("POST", &format!("/p/{page}"), "", "x").await
            }
        };
        // 404: nothing was stored just then.
        assert!(matches!(reply.status, 200 | 404), "{door:?} {reply:?}");
    }
}

fn version_in(text: &str) -> u64 {
    let number = text
        .strip_prefix("version ")
        .and_then(|text| text.strip_suffix(';'));
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("a whole page, not {text:?}"))
}

fn from_environment(name: &str, otherwise: usize) -> usize {
    let given = std::env::var(name).ok();
    given
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

async fn holds_for(door: PurgeMethod) {
    let site = Arc::new(site(door).await);
    let purged: Arc<[AtomicU64; PAGES]> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..from_environment("MAYFLY_READERS", READERS))
        .map(|number| {
            let (site, purged, is_over) = (site.clone(), purged.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut client = site.server.connect().await;
                let cookie = door.cookie(number);
                let (mut answers, mut page) = (0u64, number % PAGES);
                while !is_over.load(SeqCst) {
                    page = (page + 1) % PAGES;
                    let least = purged[page].load(SeqCst);
                    client
                        .send(format!(
                            "GET /p/{page} HTTP/1.1\r\nHost: site.test\r\n{cookie}\r\n"
                        ))
                        .await;
                    let reply = client.receive(false).await.expect("an answer");
                    let shown = version_in(&reply.text());
                    assert!(shown >= least, "{door:?}: {shown} after a purge at {least}");
                    answers += 1;
                }
                answers
            })
        })
        .collect();
    let purges = from_environment("MAYFLY_PURGES", PURGES);
    for change in 0..purges {
        let page = change % PAGES;
        site.change(page, door).await;
        let version = site.data.version[page].load(SeqCst);
        purged[page].store(version, SeqCst);
        let reply = site.server.target().get(&format!("/p/{page}")).await;
        assert!(
            version_in(&reply.text()) >= version,
            "{door:?}: the writer reads what it wrote"
        );
    }
    is_over.store(true, SeqCst);
    let mut answers = 0;
    for reader in readers {
        answers += reader.await.expect("no old answer");
    }
    assert!(answers > purges as u64, "there was a crowd: {answers}");
    // Each page is made once after a purge, and once more by those who came between the change and
    // the purge.
    let runs = site.data.runs.load(SeqCst);
    let copies_each = matches!(door, PurgeMethod::LiteSpeed);
    assert!(
        copies_each || runs <= 3 * (purges + PAGES) as u64,
        "{runs} runs for {purges} purges"
    );
}

#[tokio::test]
async fn the_api_by_url_keeps_the_promise() {
    holds_for(PurgeMethod::ApiByUrl).await;
}

#[tokio::test]
async fn the_api_by_tag_keeps_the_promise() {
    holds_for(PurgeMethod::ApiByTag).await;
}

#[tokio::test]
async fn purge_requests_keep_the_promise() {
    holds_for(PurgeMethod::Method).await;
}

#[tokio::test]
async fn fields_of_responses_keep_the_promise() {
    holds_for(PurgeMethod::Response).await;
}

#[tokio::test]
async fn litespeeds_fields_keep_the_promise() {
    holds_for(PurgeMethod::LiteSpeed).await;
}
