//! Compressed responses as visitors meet them: which coding they get, and that a
//! stored response is compressed once for all of them.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use crate::{gzip, site, start};

const ALL_ON: &str = "gzip on; brotli on; zstd on;";
const ALL: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";

/// A page of some 20 KB, as PHP makes them.
fn page(run: usize) -> String {
    let items = (0..400).map(|item| {
        let number = item * 7919 % 1000;
        format!("<li id=\"{number}\">item {item} of run {run}</li>\n")
    });
    items.collect()
}

async fn php() -> FakePhp {
    let runs = AtomicUsize::new(0);
    FakePhp::tcp(move |_| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        Script::page(
            "Content-Type: text/html\r\nETag: \"tag\"\r\nAccept-Ranges: bytes\r\n",
            page(run),
        )
    })
    .await
}

fn configuration(php: &FakePhp, directives: &str) -> String {
    let kept = "fastcgi_cache_valid any 1h; fastcgi_cache_purge $http_x_purge;";
    php.cached_site(&format!("{kept}\n{directives}"))
}

async fn cached(php: &FakePhp, directives: &str) -> RunningServer {
    start(&configuration(php, directives)).await
}

/// The body without its coding.
fn plain(reply: &Reply) -> String {
    let body = &reply.body[..];
    let mut text = String::new();
    let read = match reply.field("content-encoding") {
        "" => return reply.text(),
        "gzip" => flate2::read::GzDecoder::new(body)
            .read_to_string(&mut text)
            .map(drop),
        "br" => brotli::Decompressor::new(body, 4096)
            .read_to_string(&mut text)
            .map(drop),
        "zstd" => zstd::stream::read::Decoder::new(body)
            .and_then(|mut decoder| decoder.read_to_string(&mut text))
            .map(drop),
        other => panic!("a coding nobody asked for: {other}"),
    };
    read.expect("a whole body");
    text
}

/// Whether a response was sent from a stored form: it has a length then. A response that is
/// compressed on its way is sent in chunks.
fn is_from_form(reply: &Reply) -> bool {
    let length = reply.field("content-length");
    !reply.has("transfer-encoding") && length == reply.body.len().to_string()
}

#[tokio::test]
async fn clients_get_the_coding_they_like_best() {
    let php = php().await;
    let server = cached(&php, ALL_ON).await;
    let target = server.target();
    assert_eq!(plain(&target.get("/").await), page(1));
    for (accepted, coding) in [
        ("", ""),
        ("Accept-Encoding: gzip\r\n", "gzip"),
        ("Accept-Encoding: br\r\n", "br"),
        ("Accept-Encoding: zstd\r\n", "zstd"),
        (ALL, "br"),
        ("Accept-Encoding: gzip, zstd\r\n", "zstd"),
        (
            "Accept-Encoding: br;q=0.5, gzip;q=0.8, zstd;q=0.1\r\n",
            "gzip",
        ),
        ("Accept-Encoding: br;q=0, gzip\r\n", "gzip"),
        ("Accept-Encoding: br;q=0, gzip;q=0, zstd;q=0.0\r\n", ""),
        ("Accept-Encoding: identity, *\r\n", ""),
        ("Accept-Encoding: deflate\r\n", ""),
    ] {
        let reply = target.get_with("/", accepted).await;
        assert_eq!(reply.field("content-encoding"), coding, "{accepted:?}");
        assert_eq!(plain(&reply), page(1), "{accepted:?}");
        assert!(is_from_form(&reply), "{accepted:?} {reply:?}");
        assert_eq!(reply.x_cache(), "HIT");
    }
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn what_is_not_on_is_not_chosen() {
    let php = php().await;
    let server = cached(&php, "gzip on; zstd on; zstd_min_length 1m;").await;
    for _ in 0..2 {
        // The length is known from the second visitor on.
        server.target().get_with("/", "").await;
    }
    let reply = server.target().get_with("/", ALL).await;
    assert_eq!(reply.field("content-encoding"), "gzip");
}

#[tokio::test]
async fn the_first_visitor_is_compressed_for_on_the_way() {
    let php = php().await;
    let server = cached(&php, ALL_ON).await;
    let first = server.target().get_with("/", ALL).await;
    assert_eq!(first.field("content-encoding"), "br");
    assert_eq!(first.field("transfer-encoding"), "chunked");
    assert_eq!(plain(&first), page(1));
}

#[tokio::test]
async fn simultaneous_requests_get_one_encoded_form() {
    let php = php().await;
    let server = cached(&php, "brotli on; brotli_comp_level 11;").await;
    server.target().get("/").await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let target = server.target();
        clients.spawn(async move { target.get_with("/", ALL).await });
    }
    while let Some(reply) = clients.join_next().await {
        let reply = reply.expect("a response");
        // On a busy machine the form may take longer than an answer waits: then it is sent plain.
        assert!(matches!(reply.field("content-encoding"), "br" | ""));
        assert!(is_from_form(&reply), "nobody had it compressed for itself");
        assert_eq!(plain(&reply), page(1));
    }
    let target = server.target();
    let form = async { while target.get_with("/", ALL).await.field("content-encoding") != "br" {} };
    let in_time = tokio::time::timeout(TIMEOUT, form).await;
    in_time.expect("the form is there in the end");
}

#[tokio::test]
async fn an_encoded_form_has_a_weak_tag_and_no_ranges() {
    for directives in ["", "expires 1h; add_header X-More more;"] {
        let php = php().await;
        let server = cached(&php, &format!("{ALL_ON} {directives}")).await;
        let target = server.target();
        let as_stored = target.get("/").await;
        assert_eq!(as_stored.field("etag"), "\"tag\"");
        let range = format!("{ALL}Range: bytes=0-9\r\n");
        let reply = target.get_with("/", &range).await;
        assert_eq!((reply.status, reply.field("etag")), (200, "W/\"tag\""));
        assert_eq!(reply.field("content-encoding"), "br");
        assert!(!reply.has("accept-ranges") && !reply.has("content-range"));
        assert_eq!(plain(&reply), page(1));
        assert_eq!(reply.has("expires"), !directives.is_empty());
        let part = target.get_with("/", "Range: bytes=0-9\r\n").await;
        assert_eq!((part.status, part.text().as_str()), (206, "<li id=\"0\""));

        let head = target.ask("HEAD", "/", ALL, "").await;
        for field in ["content-encoding", "content-length", "etag", "content-type"] {
            assert_eq!(head.field(field), reply.field(field), "{field}");
        }
        for (tag, status) in [("W/\"tag\"", 304), ("\"tag\"", 304), ("\"other\"", 200)] {
            let condition = format!("{ALL}If-None-Match: {tag}\r\n");
            let reply = target.get_with("/", &condition).await;
            assert_eq!(reply.status, status, "{tag}");
        }
        let condition = format!("{ALL}If-Match: W/\"tag\"\r\n");
        assert_eq!(target.get_with("/", &condition).await.status, 412);
    }
}

#[tokio::test]
async fn a_head_makes_no_form_and_needs_none() {
    let php = php().await;
    let server = cached(&php, ALL_ON).await;
    server.target().get("/").await;
    let head = server.target().ask("HEAD", "/", ALL, "").await;
    assert_eq!((head.status, head.field("content-encoding")), (200, "br"));
    assert!(!head.has("content-length"));
}

#[tokio::test]
async fn vary_is_said_whatever_is_sent() {
    let php = php().await;
    let server = cached(&php, &format!("{ALL_ON} gzip_vary on;")).await;
    for accepted in ["", ALL, ALL, "Accept-Encoding: gzip\r\n", ""] {
        let reply = server.target().get_with("/", accepted).await;
        assert_eq!(reply.field("vary"), "Accept-Encoding", "{accepted:?}");
    }
}

#[tokio::test]
async fn a_page_that_does_not_shrink_is_sent_as_it_is() {
    let noise: Vec<u8> = (0..20_000u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 23).wrapping_mul(at | 1))
        .map(|mixed| (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8)
        .collect();
    let sent = noise.clone();
    let php = FakePhp::tcp(move |_| Script::page("Content-Type: text/html\r\n", &sent)).await;
    let server = cached(&php, ALL_ON).await;
    server.target().get("/").await;
    for _ in 0..3 {
        let reply = server.target().get_with("/", ALL).await;
        assert!(!reply.has("content-encoding"), "{:?}", reply.fields);
        assert!(reply.body == noise && is_from_form(&reply));
    }
}

#[tokio::test]
async fn a_purge_takes_the_forms_along() {
    let php = php().await;
    let server = cached(&php, ALL_ON).await;
    let target = server.target();
    for run in 1..=3 {
        for _ in 0..3 {
            assert_eq!(plain(&target.get_with("/", ALL).await), page(run));
        }
        assert_eq!(target.get_with("/", "X-Purge: 1\r\n").await.status, 200);
    }
}

#[tokio::test]
async fn after_a_reload_the_new_level_counts() {
    let php = php().await;
    let server = cached(&php, "brotli on; brotli_comp_level 1;").await;
    let target = server.target();
    target.get("/").await;
    let fast = target.get_with("/", ALL).await;
    assert!(is_from_form(&fast));
    server.rewrite("", &configuration(&php, "brotli on; brotli_comp_level 11;"));
    server.signal(Signal::HUP);
    let reloaded = async {
        loop {
            let reply = target.get_with("/", ALL).await;
            assert_eq!((plain(&reply), reply.x_cache()), (page(1), "HIT"));
            if reply.body.len() < fast.body.len() {
                return reply;
            }
        }
    };
    let small = tokio::time::timeout(TIMEOUT, reloaded).await;
    assert!(is_from_form(&small.expect("the new level is used")));
    assert_eq!(php.requests(), 1);
}

#[tokio::test]
async fn ratios_are_those_of_the_coding_that_was_sent() {
    let php = php().await;
    let http = "log_format ratios \"$gzip_ratio $brotli_ratio $zstd_ratio\";\n".to_owned()
        + &configuration(&php, &format!("{ALL_ON} access_log %%/log ratios;"));
    let server = start(&http).await;
    let target = server.target();
    let original = page(1).len();
    let mut expected = String::new();
    for (accepted, coding) in [("gzip", 0), ("gzip", 0), ("br", 1), ("br", 1), ("zstd", 2)] {
        let fields = format!("Accept-Encoding: {accepted}\r\n");
        let reply = target.get_with("/", &fields).await;
        let ratio = original as f64 / reply.body.len() as f64;
        let mut ratios = ["-".to_owned(), "-".to_owned(), "-".to_owned()];
        ratios[coding] = format!("{ratio:.2}");
        expected += &format!("{}\n", ratios.join(" "));
    }
    let logged = async {
        while std::fs::read_to_string(server.path("log")).is_ok_and(|log| log != expected) {
            tokio::task::yield_now().await;
        }
    };
    let logged = tokio::time::timeout(TIMEOUT, logged).await;
    let log = std::fs::read_to_string(server.path("log"));
    assert!(logged.is_ok(), "{log:?} is not {expected:?}");
}

#[tokio::test]
async fn files_compressed_beforehand_are_sent_in_the_coding_that_is_there() {
    let server = start(
        "server { listen unix:%%/http; root %%; gzip_vary on;\n\
         location / { brotli_static on; zstd_static on; gzip_static on; }\n\
         location /always/ { alias %%/; brotli_static always; gzip_static on; } }",
    )
    .await;
    for name in [
        "a.css",
        "a.css.br",
        "a.css.zst",
        "a.css.gz",
        "b.css",
        "b.css.gz",
    ] {
        std::fs::write(server.path(name), name).expect("a file");
    }
    for (path, accepted, sent, coding, vary) in [
        ("/a.css", "gzip, br, zstd", "a.css.br", "br", true),
        ("/a.css", "gzip, zstd", "a.css.zst", "zstd", true),
        ("/a.css", "gzip;q=0.9, zstd;q=0.8", "a.css.gz", "gzip", true),
        ("/a.css", "br;q=0", "a.css", "", true),
        ("/b.css", "gzip, br, zstd", "b.css.gz", "gzip", true),
        ("/b.css", "br", "b.css", "", true),
        ("/always/a.css", "identity", "a.css.br", "br", false),
        ("/always/b.css", "gzip", "b.css.gz", "gzip", true),
    ] {
        let fields = format!("Accept-Encoding: {accepted}\r\n");
        let reply = server.target().get_with(path, &fields).await;
        assert_eq!(
            (reply.text().as_str(), reply.field("content-encoding")),
            (sent, coding),
            "{path} {accepted}"
        );
        assert_eq!(reply.has("vary"), vary, "{path} {accepted}");
    }
}

#[tokio::test]
async fn a_stored_page_with_commands_is_compressed_after_they_ran() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "Content-Type: text/html\r\n",
            "you like <!--#echo var=\"cookie_taste\" -->, <!--#echo var=\"cookie_taste\" -->",
        )
    })
    .await;
    let server = cached(&php, "ssi on; gzip on; gzip_min_length 1;").await;
    for taste in ["tea", "coffee", "water"] {
        let reply = server
            .target()
            .get_with(
                "/",
                &format!("Accept-Encoding: gzip\r\nCookie: taste={taste}\r\n"),
            )
            .await;
        assert_eq!(reply.field("content-encoding"), "gzip");
        assert_eq!(plain(&reply), format!("you like {taste}, {taste}"));
    }
    assert_eq!(php.requests(), 1);
}

/// Asks for `/page.html` until its form in this coding is stored: that one has a length, one
/// compressed on its way has none.
async fn stored_form(target: &Target, coding: &str, run: usize) -> Reply {
    let fields = format!("Accept-Encoding: {coding}\r\n");
    let start = std::time::Instant::now();
    loop {
        let reply = target.get_with("/page.html", &fields).await;
        assert_eq!(reply.field("content-encoding"), coding);
        assert!(plain(&reply) == page(run), "{coding}, run {run}");
        if reply.has("content-length") {
            return reply;
        }
        // A file is kept once it was left alone for two seconds.
        assert!(start.elapsed() < TIMEOUT, "it is not kept");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_file_is_compressed_once_and_anew_when_it_changes() {
    let server = start(&format!(
        "types {{ text/html html; }} {ALL_ON}\n\
             server {{ listen unix:%%/http; location / {{ }} }}"
    ))
    .await;
    let write = |run| server.write("page.html", page(run));
    let target = server.target();
    for run in [1, 2] {
        write(run);
        for coding in ["br", "zstd", "gzip"] {
            let reply = stored_form(&target, coding, run).await;
            assert_eq!(reply.field("content-length"), reply.body.len().to_string());
            assert!(reply.field("etag").starts_with("W/"));
        }
        let head = target.ask("HEAD", "/page.html", ALL, "").await;
        assert_eq!((head.field("content-encoding"), head.body.len()), ("br", 0));
        assert!(target.get("/page.html").await.text() == page(run));
        let range = target.get_with("/page.html", "Range: bytes=0-3\r\n").await;
        assert_eq!((range.status, range.text().as_str()), (206, "<li "));
    }
}

#[tokio::test]
async fn head_of_an_expanded_file_has_the_fields_of_get() {
    let server = site("location / { gunzip on; gzip_vary on; gzip_static always; }").await;
    server.write("a.gz", gzip(b"the text"));
    let target = server.target();
    let got = target.get("/a").await;
    assert_eq!(
        (got.text().as_str(), got.field("vary")),
        ("the text", "Accept-Encoding")
    );
    let head = target.ask("HEAD", "/a", "", "").await;
    assert_eq!((head.status, head.field("vary")), (200, "Accept-Encoding"));
    assert!(!head.has("content-encoding"));
}

#[tokio::test]
async fn vary_is_not_said_twice() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "Content-Type: text/html\r\nVary: Accept-Encoding\r\n",
            "x".repeat(1000),
        )
    })
    .await;
    let server = site(&format!(
        "location / {{ gzip on; gzip_vary on; fastcgi_pass {}; }}",
        php.address()
    ))
    .await;
    let reply = server
        .target()
        .get_with("/", "Accept-Encoding: gzip\r\n")
        .await;
    assert_eq!(reply.field("content-encoding"), "gzip");
    assert_eq!(
        reply
            .fields
            .iter()
            .filter(|(name, _)| name == "vary")
            .count(),
        1
    );
}
