//! The cost of a page of fragments, whatever its depth and its languages: one budget, turns for
//! other visitors, and nothing for a visitor who has left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;
use testkit::wait;
use tokio::sync::Semaphore;

use super::{ASKS, PLAIN, PRIVATE, configuration, page, shown, site};
use crate::start;

/// Lines of one page at most, and one for each bound that it has met.
const MAX_LINES: usize = 20 + 4;

/// PHP with this number of workers, and room in line.
fn few_workers(php: &FakePhp, workers: usize, location: &str) -> String {
    let pass = format!("fastcgi_pass {};", php.address());
    let location = format!("access_log %%/access.log;\n{location}");
    let http = configuration(php, &location).replace(&pass, "fastcgi_pass php;");
    format!(
        "upstream php {{ server {} max_conns={workers}; queue 1000 timeout=60s; }}\n\
         {http}",
        php.address()
    )
}

/// Parts of SSI have the target of their page: pages differ by their path.
fn by_path(http: &str) -> String {
    http.replace("$request_uri", "$uri")
}

async fn one_worker_process(http: &str) -> RunningServer {
    RunningServer::start(crate::program(), "worker_processes 1;", http).await
}

/// Errors at a page whose address begins so, and at its fragments.
fn errors_at(server: &RunningServer, page: &str) -> usize {
    let request = format!("request: \"GET {page}");
    let is_one = |line: &&str| line.contains("[error]") && line.contains(&request);
    server.error_log().lines().filter(is_one).count()
}

#[tokio::test]
async fn a_stored_page_that_includes_itself_often_is_bounded_as_a_whole() {
    let esi = format!("x{}", "<esi:include src='/esi'/>".repeat(200));
    let ssi = format!("x{}", "<!--#include virtual=\"/ssi\" -->".repeat(200));
    let mixed = format!(
        "x{}",
        "<esi:include src='/mixed'/><!--#include virtual=\"/ssi\" -->".repeat(100)
    );
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/esi" => Script::page(ASKS, &esi),
        "/ssi" => Script::page("Content-Type: text/html\r\nX-Accel-Expires: 3600\r\n", &ssi),
        "/mixed" => Script::page(ASKS, &mixed),
        _ => shown(request),
    })
    .await;
    let http = configuration(
        &php,
        "ssi on; fastcgi_cache_key $uri; ssi_silent_errors on;",
    );
    let http = http.replacen("fastcgi_cache_key $host$request_uri;", "", 1);
    let server = one_worker_process(&http).await;
    let target = server.target();
    for path in ["/esi", "/ssi", "/mixed"] {
        for _ in 0..2 {
            let page = target.get(path).await;
            assert!(page.is_complete, "{path}");
            assert_eq!(
                page.text().matches('x').count(),
                201,
                "{path}: its own and 200 fragments"
            );
        }
    }
    assert_eq!(target.get("/other").await.text(), "[/other]");
    let log = server.error_log();
    let said = log
        .matches("more than esi_max_includes allows (200)")
        .count();
    assert_eq!(said, 4, "once for each of two pages, twice: {log}");
    let said = log
        .matches("more than ssi_max_includes allows (200)")
        .count();
    assert_eq!(said, 2, "{log}");
    assert!(errors_at(&server, "/esi") <= 2 * MAX_LINES);
}

#[tokio::test]
async fn a_page_writes_a_bounded_number_of_lines() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/many'/>".repeat(3)),
        "/many" => Script::page(ASKS, "<esi:include src='/fails'/><esi:wrong/>".repeat(60)),
        _ => Script::page("Status: 500\r\n", "").stderr("PHP message: it fails"),
    })
    .await;
    let server = site(&php, "").await;
    assert_eq!(server.target().get("/").await.text(), "");
    let lines = errors_at(&server, "/");
    assert!((20..=MAX_LINES).contains(&lines), "{lines} lines");
    let log = server.error_log();
    assert!(
        log.contains("further lines about this page are left out"),
        "{log}"
    );
}

/// 40 fragments that include 40 more, each at an address of its own.
fn endless(request: &Request, script: Script) -> Script {
    let uri = request.param("REQUEST_URI");
    let includes: String = (0..40)
        .map(|number| format!("<esi:include src='{uri}{number}-'/>"))
        .collect();
    script.stdout(format!("Cache-Control: private\r\n{ASKS}\r\nx{includes}"))
}

/// Connections to an address of 127.0.0.1 that neither end has closed.
fn established(address: &str) -> usize {
    let port = address.rsplit_once(':').expect("a port").1;
    let port: u16 = port.parse().expect("a number");
    let (local, state) = (format!("0100007F:{port:04X}"), "01");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the table of the kernel");
    let words = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| words.get(1) == Some(&local.as_str()) && words.get(3) == Some(&state))
        .count()
}

#[tokio::test]
async fn no_fragment_begins_after_its_visitor_has_left() {
    for (cache, cut) in [("fastcgi_cache zone;", 0), ("fastcgi_cache off;", 3)] {
        let gate = Arc::new(Semaphore::new(0));
        let opened = gate.clone();
        let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
            "/" => endless(request, Script::new()),
            "/other" => shown(request),
            // The server hears it when it has sent the whole request.
            _ => endless(request, Script::new().stderr("begun").wait_for(&opened)),
        })
        .await;
        let http = few_workers(&php, 4, "").replace("fastcgi_cache zone;", cache);
        let server = start(&http).await;
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        // Three of four workers are for one page.
        let begun = || server.error_log().matches("begun").count();
        wait::until("fragments are asked for", || begun() == 3).await;
        assert_eq!(php.requests(), 4);
        drop(client);
        let has_ended = || server.read("access.log").lines().count() == 1;
        wait::until("the page has ended", has_ended).await;
        if cut > 0 {
            // PHP notices a cut when it writes: not before the server has closed.
            let is_closed = || established(&php.address()) == 0;
            wait::until("connections are closed", is_closed).await;
        }
        gate.add_permits(100_000);
        for _ in 0..10 {
            server.target().get_with("/other", "Cookie: a=b\r\n").await;
        }
        wait::until("what had begun has ended", || php.running() == 0).await;
        let others = php.requests() - 4;
        assert!(
            (1..=10).contains(&others),
            "no fragment has begun: {others}"
        );
        // With a cache, it is cut once its head says that it may not be stored, before PHP has sent all of it or after.
        if cut > 0 {
            assert_eq!(php.aborted(), cut, "what may not be stored is cut");
        }
    }
}

#[tokio::test]
async fn fragments_in_fragments_get_the_workers_that_their_siblings_had() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let php = FakePhp::tcp(move |request| {
        let uri = request.param("REQUEST_URI");
        let include = |number| format!("<esi:include src='{uri}{number}/'/>");
        let asks = format!("Cache-Control: private\r\n{ASKS}");
        match uri.matches('/').count() {
            _ if uri == "/other" => Script::page(PRIVATE, "other"),
            depth @ 1..=2 => {
                let page: String = (0..6).map(include).collect();
                let head = Script::new();
                let head = if depth == 2 {
                    head.wait_for(&opened)
                } else {
                    head
                };
                head.stdout(format!("{asks}\r\n({page})"))
            }
            _ => Script::page(PRIVATE, "x"),
        }
    })
    .await;
    let server = start(&few_workers(&php, 4, "")).await;
    let target = server.target();
    let page = tokio::spawn(async move { target.get("/").await });
    wait::until("fragments are asked for", || php.requests() == 4).await;
    let other = server.target().get("/other").await;
    assert_eq!(other.text(), "other", "a worker is left for other visitors");
    gate.add_permits(6);
    let page = page.await.expect("a page");
    assert_eq!(page.text(), format!("({})", "(xxxxxx)".repeat(6)));
    assert!(php.most_at_once() <= 4);
    assert!(
        !server.error_log().contains("[error]"),
        "{}",
        server.error_log()
    );
}

/// One page for each worker, each longer than the kernel's buffer, and not stored.
#[tokio::test]
async fn a_long_page_has_no_worker_while_it_waits_for_its_fragments() {
    const LONG: usize = 3 << 20;
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/part" => Script::page(PRIVATE, "part"),
        _ => {
            let asks = format!("Cache-Control: private\r\n{ASKS}\r\n<esi:include src='/part'/>");
            let script = Script::new().stdout(asks);
            (0..LONG / 0x8000).fold(script, |script, _| script.stdout("y".repeat(0x8000)))
        }
    })
    .await;
    let server = start(&few_workers(&php, 2, "esi_timeout 60s;")).await;
    let pages = (0..4).map(|number| {
        let target = server.target();
        tokio::spawn(async move { target.get(&format!("/{number}")).await })
    });
    for page in pages.collect::<Vec<_>>() {
        let page = page.await.expect("a page");
        assert_eq!(page.body.len(), "part".len() + LONG);
    }
}

#[tokio::test]
async fn upstreams_are_asked_as_often_as_fragments_max_fetches_allows() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(
            ASKS,
            "<esi:include src='/1'/><esi:include src='/2' alt='/1'/><esi:include src='/3'/>\
             <esi:include src='/1'/>",
        ),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "fragments_max_fetches 1;").await;
    assert_eq!(server.target().get("/1").await.text(), "[/1]");
    let page = server.target().get("/").await;
    assert_eq!(page.text(), "[/1][/2][/1]", "what is stored costs none");
    assert_eq!(php.requests(), 3);
    let log = server.error_log();
    assert_eq!(
        log.matches("fragments_max_fetches allows (1)").count(),
        1,
        "{log}"
    );
    assert_eq!(log.matches("[error]").count(), 1, "{log}");
}

#[tokio::test]
async fn fragments_are_as_long_as_fragments_max_bytes_allows() {
    let php = page(
        "<esi:include src='/12345678' alt='/1'/><esi:include src='/12345678' alt='/1'/>\
         <esi:vars>$(HTTP_USER_AGENT)</esi:vars>.",
    )
    .await;
    let server = site(&php, "fragments_max_bytes 20;").await;
    let agent = format!("User-Agent: {}\r\n", "a".repeat(100));
    for _ in 0..3 {
        let page = server.target().get_with("/", &agent).await;
        let text = page.text();
        assert!(
            text.len() <= 21 && text.starts_with("[/12345678]"),
            "{text}"
        );
    }
    let log = server.error_log();
    assert_eq!(
        log.matches("fragments_max_bytes allows (20 bytes)").count(),
        3,
        "{log}"
    );
}

#[tokio::test]
async fn a_page_waits_for_its_fragments_as_long_as_fragments_max_time_allows() {
    let never = Arc::new(Semaphore::new(0));
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/esi" => Script::page(ASKS, "a<esi:include src='/late' alt='/later'/>b"),
        "/ssi" => Script::page(PLAIN, "a<!--#include virtual=\"/late\" -->b"),
        _ => Script::new().wait_for(&never).stdout("\r\nlate"),
    })
    .await;
    let http = configuration(&php, "ssi on; fragments_max_time 200ms;");
    let server = start(&by_path(&http)).await;
    let target = server.target();
    assert_eq!(target.get("/esi").await.text(), "ab");
    let page = target.get("/ssi").await.text();
    assert_eq!(page, "a[an error occurred while processing the directive]b");
    let log = server.error_log();
    assert_eq!(
        log.matches("fragments_max_time allows (200ms)").count(),
        2,
        "{log}"
    );
}

/// Each command may double a value.
#[tokio::test]
async fn the_variables_of_ssi_have_bounded_room() {
    let page = format!(
        "<!--#set var=\"a\" value=\"0123456789\" -->{}<!--#echo var=\"b\" -->",
        "<!--#set var=\"a\" value=\"$a$a\" --><!--#set var=\"b\" value=\"$a$a\" -->".repeat(40)
    );
    let php = FakePhp::tcp(move |_| Script::page(PLAIN, &page)).await;
    let server = site(&php, "ssi on;").await;
    let before = testkit::process::memory_bytes(server.pid(), "VmHWM");
    assert!(server.target().get("/").await.is_complete);
    let grown = testkit::process::memory_bytes(server.pid(), "VmHWM") - before;
    assert!(grown < 16 << 20, "{grown} bytes");
}

/// An addition before a response must not wait for the worker that makes the response.
#[tokio::test]
async fn a_response_has_no_worker_while_it_waits_for_its_addition() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/part" => Script::page(PRIVATE, "part"),
        _ => Script::page(PRIVATE, "y".repeat(1 << 20)),
    })
    .await;
    let http = few_workers(&php, 1, "add_before_body /part;");
    let server = start(&by_path(&http)).await;
    for _ in 0..2 {
        let page = server.target().get("/page").await;
        assert_eq!(page.body.len(), "part".len() + (1 << 20));
    }
}

/// Random pages: stored or not, failing, endless, in depth, whose visitors leave at random.
#[tokio::test]
async fn random_pages_of_php_stay_within_their_budget() {
    const PAGES: usize = 40;
    const FETCHES: usize = 12;
    // By page, whose number stands in the addresses of its fragments as well. So a run for a
    // visitor who has left does not count for the next one.
    let runs = Arc::new([const { AtomicUsize::new(0) }; PAGES]);
    let counted = runs.clone();
    let php = FakePhp::tcp(move |request| {
        let uri = request.param("REQUEST_URI");
        if uri == "/stored" {
            return Script::page("X-Accel-Expires: 3600\r\n", "stored");
        }
        let page = uri
            .split('/')
            .nth(1)
            .and_then(|name| name.strip_prefix("page"));
        let page: usize = page.expect("a page").parse().expect("its number");
        counted[page].fetch_add(1, SeqCst);
        let seed = uri.bytes().fold(7, |seed: u64, byte| {
            seed.wrapping_mul(7919).wrapping_add(byte.into())
        });
        let mut random = crate::attacks::random::Random::new(seed);
        let includes: String = (0..random.below(12))
            .map(|_| match random.below(4) {
                0 => "<esi:include src='/stored'/>".to_owned(),
                1 => format!("<!--#include virtual=\"{uri}s{}\" -->", random.below(9)),
                _ => format!("<esi:include src='{uri}e{}'/>", random.below(9)),
            })
            .collect();
        let kept = random.one_of(&["Cache-Control: private\r\n", "X-Accel-Expires: 3600\r\n"]);
        match random.below(6) {
            0 => Script::page("Status: 500\r\n", "fails"),
            1 => Script::page("Content-Length: 1000\r\n", "breaks off").close(),
            _ => Script::page(&format!("{kept}{ASKS}"), includes).in_pieces_of(50),
        }
    })
    .await;
    let limits = format!("ssi on; ssi_silent_errors on; fragments_max_fetches {FETCHES};");
    let server = one_worker_process(&by_path(&few_workers(&php, 3, &limits))).await;
    let target = server.target();
    assert_eq!(target.get("/stored").await.text(), "stored");
    for number in 0..PAGES {
        let mut client = server.connect().await;
        let request =
            format!("GET /page{number}/ HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
        client.send(request).await;
        assert_eq!(target.get("/stored").await.x_cache(), "HIT");
        if number % 3 > 0 {
            client.receive_all().await;
        }
        drop(client);
        let ended = || server.read("access.log").matches("GET /page").count() == number + 1;
        wait::until("the page has ended", ended).await;
    }
    wait::until("PHP has ended", || php.running() == 0).await;
    for (number, runs) in runs.iter().enumerate() {
        let asked = runs.load(SeqCst);
        assert!(asked <= 1 + FETCHES, "page {number}: {asked} runs of PHP");
        assert!(errors_at(&server, &format!("/page{number}/")) <= MAX_LINES);
    }
    assert!(php.most_at_once() <= 3);
}
