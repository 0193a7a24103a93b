//! Fragments that fail, loop, are late or huge.

use std::sync::Arc;

use testkit::fake_php::{FakePhp, Script};
use tokio::sync::Semaphore;

use super::{ASKS, PLAIN, page, shown, site};

async fn failing(page: &'static str) -> FakePhp {
    FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, page),
        path if path.starts_with("/fails") => {
            Script::page("Status: 500 Internal Server Error\r\n", "a trace")
        }
        path if path.starts_with("/moved") => {
            Script::page("Status: 302 Found\r\nLocation: /\r\n", "elsewhere")
        }
        _ => shown(request),
    })
    .await
}

#[tokio::test]
async fn a_fragment_that_fails_leaves_a_gap_and_a_line_in_the_log() {
    for (path, failure) in [("/fails", "500"), ("/moved", "302")] {
        let text = match path {
            "/fails" => "a<esi:include src='/fails'/>b",
            _ => "a<esi:include src='/moved'/>b",
        };
        let php = failing(text).await;
        let server = site(&php, "").await;
        assert_eq!(server.target().get("/").await.text(), "ab");
        let log = server.error_log();
        let wanted = format!("ESI fragment \"{path}\" failed: it was answered {failure}");
        assert!(log.contains(&wanted), "{log}");
    }
}

#[tokio::test]
async fn the_alternative_takes_the_place_of_a_fragment_that_fails() {
    let php = failing("a<esi:include src='/fails' alt='/other'/>b").await;
    let server = site(&php, "").await;
    assert_eq!(server.target().get("/").await.text(), "a[/other]b");
    let php = failing("a<esi:include src='/fails' alt='/fails-too' onerror='continue'/>b").await;
    let server = site(&php, "").await;
    assert_eq!(server.target().get("/").await.text(), "ab");
    let log = server.error_log();
    assert!(!log.contains("[error]"), "it may fail: {log}");
}

#[tokio::test]
async fn a_try_shows_its_attempt_or_what_is_excepted() {
    let page = "<esi:try>\n<esi:attempt>1<esi:include src='/ok'/>2<esi:include src='/fails'/>3\
        </esi:attempt>\n<esi:except>sorry <esi:include src='/instead'/></esi:except></esi:try>\
        <esi:try><esi:attempt>4<esi:include src='/ok'/>5</esi:attempt>\
        <esi:except>never <esi:include src='/never'/></esi:except></esi:try>";
    let php = failing(page).await;
    let server = site(&php, "").await;
    for _ in 0..2 {
        assert_eq!(
            server.target().get("/").await.text(),
            "sorry [/instead]4[/ok]5"
        );
    }
    let within = "<esi:try><esi:attempt><esi:try><esi:attempt><esi:include src='/fails'/></esi:attempt>\
        <esi:except>inner</esi:except></esi:try></esi:attempt><esi:except>outer</esi:except></esi:try>";
    let php = failing(within).await;
    let server = site(&php, "").await;
    assert_eq!(server.target().get("/").await.text(), "inner");
}

#[tokio::test]
async fn a_page_that_includes_itself_ends() {
    let php = page("(<esi:include src='/'/>)").await;
    let server = site(&php, "esi_max_depth 3;").await;
    assert_eq!(server.target().get("/").await.text(), "(((())))");
    let log = server.error_log();
    let wanted = "ESI fragment \"/\" failed: fragments are nested too deep, or include each other";
    assert!(log.contains(wanted), "{log}");
}

#[tokio::test]
async fn a_page_has_a_bounded_number_of_fragments() {
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/f'/>".repeat(40)),
        _ => Script::page(PLAIN, "f"),
    })
    .await;
    let server = site(&php, "esi_max_includes 30;").await;
    assert_eq!(server.target().get("/").await.text(), "f".repeat(30));
    let log = server.error_log();
    assert!(log.contains("more than esi_max_includes allows"), "{log}");
}

#[tokio::test]
async fn a_fragment_that_is_late_is_left_out() {
    let never = Arc::new(Semaphore::new(0));
    let php = FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "a<esi:include src='/late' alt='/other'/>b"),
        "/late" => Script::new().wait_for(&never).stdout("\r\nlate"),
        _ => shown(request),
    })
    .await;
    let server = site(&php, "esi_timeout 100ms;").await;
    assert_eq!(server.target().get("/").await.text(), "a[/other]b");
    let log = server.error_log();
    assert!(log.contains("there was no answer within 100ms"), "{log}");
}

#[tokio::test]
async fn a_fragment_that_ends_early_ends_the_page_unless_it_may_fail() {
    let cut = |page: &'static str| {
        FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
            "/" => Script::page(ASKS, page),
            _ => Script::page("Content-Length: 100\r\nX-Accel-Expires: 0\r\n", "half").close(),
        })
    };
    let php = cut("a<esi:include src='/cut'/>b").await;
    let server = site(&php, "").await;
    let page = server.target().get("/").await;
    assert!(!page.is_complete, "{page:?}");
    let php = cut("a<esi:include src='/cut' onerror='continue'/>b").await;
    let server = site(&php, "").await;
    let page = server.target().get("/").await;
    assert_eq!((page.is_complete, page.text().as_str()), (true, "ahalfb"));
}

#[tokio::test]
async fn a_huge_fragment_passes_through_bounded_memory() {
    const PIECES: usize = 1000;
    let php = FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, "<esi:include src='/huge'/>"),
        _ => {
            let piece = "x".repeat(65_000);
            (0..PIECES).fold(
                Script::new().stdout("X-Accel-Expires: 0\r\n\r\n"),
                |script, _| script.stdout(&piece),
            )
        }
    })
    .await;
    let server = site(&php, "").await;
    server.target().get("/").await;
    let before = testkit::process::memory_bytes(server.pid(), "VmHWM");
    let page = server.target().get("/").await;
    assert_eq!(page.body.len(), PIECES * 65_000);
    let grown = testkit::process::memory_bytes(server.pid(), "VmHWM").saturating_sub(before);
    assert!(grown < 16 << 20, "65 MB grew it by {grown} bytes");
}
