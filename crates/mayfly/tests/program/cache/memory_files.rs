//! Stored pages that are asked for often leave from a file in memory: visitors must get
//! the same bytes as without it.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::client::Reply;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::start;

const PAGE_BYTES: usize = 90_000;
/// More than enough for a file.
const OFTEN: usize = 40;

/// A page of digits that no other run makes; half its size when compressed.
fn page(run: usize) -> Vec<u8> {
    let mut number = run as u64;
    let digits = std::iter::repeat_with(|| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        b"0123456789abcdef"[(number >> 60) as usize]
    });
    digits.take(PAGE_BYTES).collect()
}

async fn php() -> FakePhp {
    let runs = AtomicUsize::new(0);
    FakePhp::tcp(move |_| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        Script::page("Content-Type: text/html\r\nETag: \"one\"\r\n", page(run))
    })
    .await
}

async fn cached(php: &FakePhp, directives: &str) -> RunningServer {
    let kept = "fastcgi_cache_valid 200 1h; fastcgi_cache_purge $http_x_purge;";
    let site = php.cached_site(&format!("{kept}\n{directives}"));
    start(&site).await
}

/// Files in memory that the server has open.
fn open_files(server: &RunningServer) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("readable");
    descriptors
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("/memfd:body"))
        .count()
}

/// Asks often and wants the page of this run each time.
async fn ask_often(server: &RunningServer, fields: &str, wanted: &[u8]) -> Reply {
    let mut last = None;
    for _ in 0..OFTEN {
        let reply = server.target().get_with("/", fields).await;
        assert_eq!(reply.status, 200);
        assert!(reply.body == wanted, "{} bytes", reply.body.len());
        last = Some(reply);
    }
    last.expect("asked")
}

#[tokio::test]
async fn a_page_from_a_file_is_the_page_and_a_purge_closes_the_file() {
    let php = php().await;
    let server = cached(&php, "").await;
    let reply = ask_often(&server, "", &page(1)).await;
    assert_eq!(reply.field("content-length"), PAGE_BYTES.to_string());
    assert_eq!(open_files(&server), 1);
    assert_eq!(php.requests(), 1);
    let target = server.target();
    assert_eq!(target.get_with("/", "X-Purge: 1\r\n").await.status, 200);
    assert!(target.get("/").await.body == page(2));
    assert_eq!(open_files(&server), 0);
    ask_often(&server, "", &page(2)).await;
    assert_eq!(open_files(&server), 1);
}

#[tokio::test]
async fn what_is_not_the_whole_page_comes_from_memory_all_the_same() {
    let php = php().await;
    let server = cached(&php, "").await;
    ask_often(&server, "", &page(1)).await;
    let target = server.target();
    let part = target.get_with("/", "Range: bytes=10-19\r\n").await;
    assert_eq!((part.status, &part.body[..]), (206, &page(1)[10..20]));
    let same = target.get_with("/", "If-None-Match: \"one\"\r\n").await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    let head = target.ask("HEAD", "/", "", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // One behind the other over one connection.
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n".repeat(3))
        .await;
    for _ in 0..3 {
        let reply = client.receive(false).await.expect("answered");
        assert!(reply.body == page(1));
    }
}

#[tokio::test]
async fn compressed_pages_get_files_of_their_own() {
    let php = php().await;
    let server = cached(&php, "gzip on; gzip_types text/html; gzip_comp_level 1;").await;
    let plain = ask_often(&server, "", &page(1)).await;
    assert!(!plain.has("content-encoding"));
    let target = server.target();
    let first = target.get_with("/", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(first.field("content-encoding"), "gzip");
    ask_often(&server, "Accept-Encoding: gzip\r\n", &first.body).await;
    assert_eq!(open_files(&server), 2);
}

#[tokio::test]
async fn sendfile_off_makes_no_files() {
    let php = php().await;
    let server = cached(&php, "sendfile off;").await;
    ask_often(&server, "", &page(1)).await;
    assert_eq!(open_files(&server), 0);
}

#[tokio::test]
async fn bytes_on_their_way_to_a_slow_client_stay_what_they_were() {
    let php = php().await;
    let server = cached(&php, "").await;
    ask_often(&server, "", &page(1)).await;
    // They have their answers under way, and read nothing of them yet.
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
            .await;
        client.receive_until("200 OK\r\n").await;
        slow.push(client);
    }
    let target = server.target();
    for run in 2..6 {
        assert_eq!(target.get_with("/", "X-Purge: 1\r\n").await.status, 200);
        ask_often(&server, "", &page(run)).await;
    }
    for mut client in slow {
        let rest = client.receive_all().await;
        let body = rest.len() - PAGE_BYTES;
        assert!(rest[body..] == page(1));
    }
}
