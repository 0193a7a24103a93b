//! Pages that a zone keeps on disk: after a stop, after `kill -9`, beside other servers and other files, and after
//! purges. Each page has the version of the data it was made of.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use control::PurgeRequest;
use numbers::Number;
use testkit::fake_php::{FakePhp, Script};
use testkit::process::{self, Signal, is_root};
use testkit::running::RunningServer;
use testkit::serving::{FolderServer, write_files};
use testkit::wait::until;

use super::cached;
use crate::commands::code_and_text;
use crate::counts::{counted, is_counted};
use crate::{file_names, program, start};

const RULES: &str = "fastcgi_cache_valid 200 404 1h; fastcgi_cache_purge PURGE from all;\n\
                     cache_tags on; fastcgi_cache_use_stale updating error;\n\
                     fastcgi_cache_background_update on;";

/// PHP that answers with the version of the data it has seen, with a tag; a long page for `/long`, and one that varies
/// for `/varying`.
pub struct Data {
    php: FakePhp,
    version: Arc<AtomicUsize>,
}

impl Data {
    pub async fn new() -> Data {
        let version = Arc::new(AtomicUsize::new(1));
        let seen = Arc::clone(&version);
        let php = FakePhp::tcp(move |request| {
            let version = seen.load(Ordering::SeqCst);
            let uri = request.param("REQUEST_URI");
            let head = match uri {
                "/varying" => "Cache-Tag: news\r\nVary: X-Kind\r\n",
                "/long" => "Cache-Tag: news\r\nContent-Type: text/plain\r\n",
                _ => "Cache-Tag: news\r\n",
            };
            let kind = request.param("HTTP_X_KIND");
            let line = format!("version {version} of {uri} {kind};");
            let lines = if uri == "/long" { 4000 } else { 1 };
            Script::page(head, line.repeat(lines))
        })
        .await;
        Data { php, version }
    }

    pub fn change(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    pub async fn server(&self) -> RunningServer {
        cached(&self.php, RULES).await
    }
}

/// Waits until this many responses have been written to the disk since the start.
async fn written(server: &RunningServer, count: f64) {
    counted(server, Number::ZoneDiskWrites, count).await;
}

/// Starts again, and waits until this many responses are found on the disk: the server answers before.
pub async fn start_with(server: &mut RunningServer, count: f64) {
    server.start_again(program()).await;
    counted(server, Number::ZoneDiskResponses, count).await;
}

/// Ends all processes of a server at once, as a power cut would.
pub async fn kill(server: &mut RunningServer) {
    for pid in process::descendants(server.pid()) {
        process::send_signal(pid, Signal::KILL);
    }
    server.signal(Signal::KILL);
    server.ended().await;
}

/// Returns the content of a page, and its source.
pub async fn shown(server: &RunningServer, path: &str) -> (String, String) {
    let reply = server.target().get(path).await;
    let text = reply.text();
    let version = text.split(" of ").next().unwrap_or_default().to_owned();
    let is_from_disk = reply.field("cache-status").contains("detail=disk");
    let from = match (reply.x_cache(), is_from_disk) {
        ("HIT", true) => "disk",
        ("HIT", false) => "memory",
        ("STALE" | "UPDATING", _) => "stale",
        _ => "php",
    };
    (version, from.to_owned())
}

pub fn is(shown: &(String, String), version: &str, from: &str) -> bool {
    shown.0 == version && shown.1 == from
}

#[tokio::test]
async fn a_page_outlives_a_stop() {
    let data = Data::new().await;
    let mut server = data.server().await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
    assert!(is(&shown(&server, "/a").await, "version 1", "memory"));
    data.change();
    server.end().await;
    let log = server.error_log();
    assert!(
        log.contains("responses that only memory had were written"),
        "{log}"
    );
    start_with(&mut server, 1.0).await;
    let first = server.target().get("/a").await;
    assert_eq!(first.text(), "version 1 of /a ;", "{first:?}");
    assert!(first.field("cache-status").contains("hit"), "{first:?}");
    assert!(
        first.field("cache-status").contains("detail=disk"),
        "{first:?}"
    );
    assert!(is(&shown(&server, "/a").await, "version 1", "memory"));
    assert_eq!(data.php.requests(), 1);
}

#[tokio::test]
async fn a_long_page_and_each_variant_outlive_a_kill() {
    let data = Data::new().await;
    let mut server = data.server().await;
    let long = server.target().get("/long").await.text();
    assert!(long.len() > 50_000);
    for kind in ["a", "b"] {
        let fields = format!("X-Kind: {kind}\r\n");
        server.target().get_with("/varying", &fields).await;
    }
    written(&server, 3.0).await;
    kill(&mut server).await;
    start_with(&mut server, 3.0).await;
    let again = server.target().get("/long").await;
    assert!(
        again.text() == long && again.x_cache() == "HIT",
        "{:?}",
        again.field("cache-status")
    );
    for kind in ["b", "a", "c"] {
        let fields = format!("X-Kind: {kind}\r\n");
        let reply = server.target().get_with("/varying", &fields).await;
        assert_eq!(reply.text(), format!("version 1 of /varying {kind};"));
        let expected = if kind == "c" { "MISS" } else { "HIT" };
        assert_eq!(reply.x_cache(), expected, "{kind}: {reply:?}");
    }
}

#[tokio::test]
async fn a_long_page_is_sent_from_the_disk_until_something_needs_its_bytes() {
    let data = Data::new().await;
    let rules = format!("{RULES} gzip on; gzip_types text/plain;");
    let mut server = cached(&data.php, &rules).await;
    let long = server.target().get("/long").await.body;
    written(&server, 1.0).await;
    kill(&mut server).await;
    start_with(&mut server, 1.0).await;
    let target = server.target();
    for _ in 0..2 {
        let reply = target.get("/long").await;
        assert!(reply.body == long && reply.has("age"), "{reply:?}");
        assert!(reply.field("cache-status").contains("detail=disk"));
        assert_eq!(reply.field("content-length"), long.len().to_string());
    }
    let head = target.ask("HEAD", "/long", "", "").await;
    assert_eq!(head.field("content-length"), long.len().to_string());
    let part = target
        .get_with("/long", "Range: bytes=40000-60009\r\n")
        .await;
    assert_eq!((part.status, part.x_cache()), (206, "HIT"));
    assert!(part.body == long[40_000..60_010]);
    // One behind the other over one connection.
    let mut client = server.connect().await;
    let request = "GET /long HTTP/1.1\r\nHost: site.test\r\n\r\n";
    client.send(request.repeat(3)).await;
    for _ in 0..3 {
        assert!(client.receive(false).await.expect("answered").body == long);
    }
    let packed = target.get_with("/long", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(packed.field("content-encoding"), "gzip");
    assert!(is(&shown(&server, "/long").await, "version 1", "memory"));
    assert_eq!(data.php.requests(), 1);
}

#[tokio::test]
async fn a_purge_ends_what_is_sent_from_the_disk() {
    let data = Data::new().await;
    let mut server = data.server().await;
    server.target().get("/long").await;
    written(&server, 1.0).await;
    kill(&mut server).await;
    start_with(&mut server, 1.0).await;
    for _ in 0..2 {
        assert!(is(&shown(&server, "/long").await, "version 1", "disk"));
    }
    data.change();
    server.target().ask("PURGE", "/long", "", "").await;
    assert!(is(&shown(&server, "/long").await, "version 2", "php"));
}

#[tokio::test]
async fn a_purge_that_was_answered_holds_through_a_kill() {
    let data = Data::new().await;
    let mut server = data.server().await;
    for path in ["/a", "/b", "/c"] {
        assert!(is(&shown(&server, path).await, "version 1", "php"));
    }
    written(&server, 3.0).await;
    data.change();
    let purged = server.target().ask("PURGE", "/a", "", "").await;
    assert_eq!(purged.status, 200);
    kill(&mut server).await;
    start_with(&mut server, 3.0).await;
    assert!(is(&shown(&server, "/a").await, "version 2", "php"));
    assert!(is(&shown(&server, "/b").await, "version 1", "disk"));
    // A purge of a page that is on the disk alone, after the restart.
    let purged = server.target().ask("PURGE", "/c", "", "").await;
    assert_eq!(purged.status, 404, "memory has nothing of it");
    assert!(is(&shown(&server, "/c").await, "version 2", "php"));
    kill(&mut server).await;
    start_with(&mut server, 3.0).await;
    assert_eq!(shown(&server, "/c").await.0, "version 2");
}

#[tokio::test]
async fn a_tag_purged_softly_makes_pages_on_disk_stale_and_not_gone() {
    let data = Data::new().await;
    let mut server = data.server().await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
    written(&server, 1.0).await;
    server.end().await;
    start_with(&mut server, 1.0).await;
    data.change();
    let order = PurgeRequest {
        tags: vec!["news".to_owned()],
        soft: true,
        ..PurgeRequest::default()
    };
    control::client::purge(&server.path("pid.control"), &order)
        .await
        .expect("purged");
    assert!(is(&shown(&server, "/a").await, "version 1", "stale"));
    wait_for_version(&server, "/a", "version 2").await;
}

async fn wait_for_version(server: &RunningServer, path: &str, version: &str) {
    for _ in 0..600 {
        if shown(server, path).await.0 == version {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no {version}: {}", server.error_log());
}

#[tokio::test]
async fn a_purge_said_while_the_server_is_stopped_holds_after_the_start() {
    let data = Data::new().await;
    let mut server = data.server().await;
    for path in ["/a", "/b"] {
        assert!(is(&shown(&server, path).await, "version 1", "php"));
    }
    server.end().await;
    data.change();
    let purge = |arguments: &[&str]| {
        let conf = server.path("test.conf");
        let mut command = Command::new(program());
        let command = command.arg("purge").args(arguments).arg("-c").arg(conf);
        code_and_text(&command.output().expect("the command runs"))
    };
    let (code, said) = purge(&["http://site.test/a"]);
    assert!(code == 0 && said.contains("next start"), "{code} {said}");
    // The number of pages that would be purged is not known.
    let (code, said) = purge(&["--dry-run", "http://site.test/b"]);
    assert_eq!(code, 2, "{said}");
    start_with(&mut server, 2.0).await;
    assert!(is(&shown(&server, "/a").await, "version 2", "php"));
    assert!(is(&shown(&server, "/b").await, "version 1", "disk"));
}

/// Leaves purges as PHP does while no server runs.
fn leave(server: &RunningServer, files: &[(&str, &str)]) {
    let folder = server.path("cache").join("left-purges/shop");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[tokio::test]
async fn purges_left_while_the_server_is_stopped_hold_after_the_start() {
    let data = Data::new().await;
    let mut server = data.server().await;
    for path in ["/a", "/b"] {
        assert!(is(&shown(&server, path).await, "version 1", "php"));
    }
    server.end().await;
    data.change();
    let left = [
        ("1.json", r#"{"urls":["http://site.test/a"]}"#),
        ("2.json", r#"{"tags":["other"]}"#),
    ];
    leave(&server, &left);
    start_with(&mut server, 2.0).await;
    assert!(is(&shown(&server, "/a").await, "version 2", "php"));
    assert!(is(&shown(&server, "/b").await, "version 1", "disk"));
    let folder = server.path("cache").join("left-purges/shop");
    testkit::wait::until("they are removed", || file_names(&folder).is_empty()).await;
    let log = server.error_log();
    assert!(log.contains("left by \"shop\""), "{log}");
    // The journal has them.
    kill(&mut server).await;
    server.start_again(program()).await;
    assert_eq!(shown(&server, "/a").await.0, "version 2");
}

#[tokio::test]
async fn a_left_purge_that_is_not_understood_purges_everything() {
    let data = Data::new().await;
    let mut server = data.server().await;
    for path in ["/a", "/b"] {
        assert!(is(&shown(&server, path).await, "version 1", "php"));
    }
    server.end().await;
    data.change();
    leave(&server, &[("1.json", r#"{"urls":["http://si"#)]);
    start_with(&mut server, 2.0).await;
    for path in ["/a", "/b"] {
        assert!(is(&shown(&server, path).await, "version 2", "php"));
    }
}

#[tokio::test]
async fn a_purge_said_while_serve_is_stopped_holds_after_the_start() {
    let site = FolderServer::folder();
    let version = site.path().join("version");
    std::fs::write(&version, "1").unwrap();
    let page = "<?php echo 'version ', file_get_contents(__DIR__ . '/version');";
    write_files(site.path(), &[("index.php", page)]);
    let kept = FolderServer::folder();
    let cache = kept.path().to_str().expect("a plain path");
    let served = site.path().to_str().expect("a plain path");
    let started = || {
        FolderServer::start_with_cache(program(), served, &["--ttl", "1h", "--workers", "1"], cache)
    };
    let shown = async |server: &FolderServer, path: &str| {
        let reply = server.target().get(path).await;
        (reply.text(), reply.x_cache().to_owned())
    };
    let is = |shown: (String, String), version: &str, from: &str| {
        assert_eq!((&*shown.0, &*shown.1), (version, from));
    };
    let unused = kept.path().join("0123456789abcdef");
    write_files(
        &unused,
        &[("site", "/no/such/site"), ("mayfly-pages/seg-000001", "")],
    );
    for path in ["site", "mayfly-pages/seg-000001", "mayfly-pages", "."] {
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(48 * 3600);
        let changed =
            std::fs::File::open(unused.join(path)).and_then(|it| it.set_modified(long_ago));
        changed.expect("a file of its own");
    }
    let mut server = started().await;
    // Pages of a site that is gone go at the start of another one.
    until("the folder is removed", || !unused.exists()).await;
    for path in ["/?a", "/?b"] {
        is(shown(&server, path).await, "version 1", "MISS");
    }
    server.end().await;
    std::fs::write(&version, "2").unwrap();
    // PHP of pages that were learned loads it from there.
    write_files(kept.path(), &[("library/mayfly-learn.so", "")]);
    let purge = |url: &str| {
        let mut command = Command::new(program());
        command.args(["purge", url]).env("CACHE_DIRECTORY", cache);
        let command = command.env("RUNTIME_DIRECTORY", cache);
        code_and_text(&command.output().expect("the command runs"))
    };
    let (code, said) = purge("http://site.test/?a&utm_source=x");
    assert!(code == 0 && said.contains("next start"), "{code} {said}");
    if is_root() {
        // The account without a name that served before is taken at the next start.
        give_pages_to(61_190, kept.path());
    }
    let server = started().await;
    assert!(is_counted(&server.control(), Number::ZoneDiskResponses, 2.0).await);
    is(shown(&server, "/?a").await, "version 2", "MISS");
    is(shown(&server, "/?b").await, "version 1", "HIT");
    // Now it runs: the folder is its own.
    let (code, said) = purge("http://site.test/?a");
    assert!(code == 2 && said.contains("in use"), "{code} {said}");
}

/// Everything in the folders of pages belongs to this account from now on.
fn give_pages_to(account: u32, cache: &Path) {
    for site in std::fs::read_dir(cache).unwrap() {
        for pages in std::fs::read_dir(site.unwrap().path())
            .into_iter()
            .flatten()
        {
            let pages = pages.unwrap().path();
            let files = std::fs::read_dir(&pages).into_iter().flatten();
            let files = files.map(|file| file.unwrap().path());
            for path in files.chain([pages.clone()]) {
                std::os::unix::fs::chown(path, Some(account), Some(account)).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn what_others_have_left_in_the_path_stays_as_it_is() {
    let data = Data::new().await;
    let mut server = data.server().await;
    shown(&server, "/a").await;
    server.end().await;
    let of_nginx = server.path("cache/c/29");
    std::fs::create_dir_all(&of_nginx).unwrap();
    let file = of_nginx.join("b7f54b2df7773722d382f4809d65029c");
    std::fs::write(&file, "KEY: http://site.test/a").unwrap();
    start_with(&mut server, 1.0).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "disk"));
    server.end().await;
    assert_eq!(std::fs::read(&file).unwrap(), b"KEY: http://site.test/a");
    assert_eq!(file_names(&server.path("cache")), ["c", "mayfly-zone"]);
    let mode = std::fs::metadata(server.path("cache/mayfly-zone")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn damaged_files_are_a_miss_and_a_line_in_the_log() {
    let data = Data::new().await;
    let mut server = data.server().await;
    for number in 0..20 {
        shown(&server, &format!("/{number}")).await;
    }
    server.end().await;
    data.change();
    let folder = server.path("cache/mayfly-zone");
    // The path of the zone, or its folder below it.
    let verify = |folder: &Path| {
        let output = Command::new(program())
            .args(["cache", "verify"])
            .arg(folder)
            .output();
        let output = output.expect("the command runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, said) = verify(&server.path("cache"));
    assert!(
        code == Some(0) && said.contains("20 records are of use"),
        "{said}"
    );
    for name in file_names(&folder) {
        if name.starts_with("seg") {
            let path = folder.join(name);
            let mut bytes = std::fs::read(&path).unwrap();
            // One byte in each 512.
            bytes
                .iter_mut()
                .skip(300)
                .step_by(512)
                .for_each(|byte| *byte ^= 0x55);
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let (code, said) = verify(&folder);
    assert!(code == Some(1) && said.contains("damaged"), "{said}");
    server.start_again(program()).await;
    for number in 0..20 {
        let reply = server.target().get(&format!("/{number}")).await;
        let (first, second) = (
            format!("version 1 of /{number} ;"),
            format!("version 2 of /{number} ;"),
        );
        assert!([first, second].contains(&reply.text()), "{reply:?}");
        assert_eq!(reply.status, 200);
    }
}

/// Root without an account for the server serves as a number that nothing runs as. Right after a `kill -9` a worker
/// may still run as the number that owns the pages: the next start must take that number all the same.
#[tokio::test]
async fn after_a_kill_the_server_takes_the_number_that_owns_the_pages() {
    if !is_root() {
        return;
    }
    let data = Data::new().await;
    let rules = data.php.cached_site(RULES);
    let mut server = RunningServer::start_as_chosen(program(), "", &rules).await;
    for _ in 0..9 {
        shown(&server, "/a").await;
    }
    written(&server, 1.0).await;
    data.change();
    kill(&mut server).await;
    let pages = server.path("cache/mayfly-zone");
    let owner = std::fs::metadata(&pages).expect("a folder").uid();
    let worker = Command::new("setpriv")
        .args([&format!("--reuid={owner}"), "--clear-groups"])
        .args(["flock", "--no-fork"])
        .arg(pages.join("lock"))
        .args(["sleep", "1000"])
        .spawn();
    let worker = process::KilledOnDrop(worker.expect("a process with the number"));
    let name = format!("/proc/{}/comm", worker.0.id());
    until("the pages are in use", || {
        std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")
    })
    .await;
    server.start_again(program()).await;
    drop(worker);
    counted(&server, Number::ZoneDiskResponses, 1.0).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "disk"));
    assert_eq!(std::fs::metadata(&pages).expect("a folder").uid(), owner);
}

/// Root makes the folder of a zone for the account that serves. When that failed at the start, as on a full disk, the
/// zone stayed off until the next start.
#[tokio::test]
async fn a_folder_that_cannot_be_made_at_the_start_is_made_later() {
    if !is_root() {
        return;
    }
    let data = Data::new().await;
    let rules = data.php.cached_site(RULES);
    let mut server = RunningServer::start_as_chosen(program(), "", &rules).await;
    server.end().await;
    let cache = server.path("cache");
    std::fs::remove_dir_all(&cache).expect("the folder was there");
    std::fs::write(&cache, "in the way").expect("a file");
    server.start_again(program()).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
    assert!(server.error_log().contains("nothing is kept on disk"));
    std::fs::remove_file(&cache).expect("the file was there");
    until("pages are kept on disk", || {
        server
            .error_log()
            .contains("pages are kept on disk from now on")
    })
    .await;
    for path in ["/b", "/b", "/b"] {
        shown(&server, path).await;
    }
    written(&server, 1.0).await;
}

#[tokio::test]
async fn a_second_server_on_the_folder_serves_without_it() {
    let data = Data::new().await;
    let first = data.server().await;
    shown(&first, "/a").await;
    let rules = data.php.cached_site(RULES);
    let path = first.path("cache").display().to_string();
    let second = start(&rules.replace("%%/cache", &path)).await;
    assert!(is(&shown(&second, "/a").await, "version 1", "php"));
    assert!(is(&shown(&second, "/a").await, "version 1", "memory"));
    let log = second.error_log();
    assert!(log.contains("is in use by another process"), "{log}");
    assert!(is(&shown(&first, "/a").await, "version 1", "memory"));
}

#[tokio::test]
async fn with_disk_off_nothing_is_kept() {
    let data = Data::new().await;
    let http = data
        .php
        .cached_site(RULES)
        .replace("memory=8m", "memory=8m disk=off");
    let mut server = start(&http).await;
    shown(&server, "/a").await;
    server.end().await;
    assert!(!server.path("cache").exists());
    server.start_again(program()).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
}

#[tokio::test]
async fn a_purge_is_repeated_for_a_database_that_is_behind() {
    let data = Data::new().await;
    let http = data.php.cached_site(RULES);
    let server = start(&format!("cache_purge_again 300ms;\n{http}")).await;
    assert!(is(&shown(&server, "/a").await, "version 1", "php"));
    let purged = server.target().ask("PURGE", "/a", "", "").await;
    assert_eq!(purged.status, 200);
    // The copy of the database does not have the change yet.
    assert_eq!(shown(&server, "/a").await.0, "version 1");
    data.change();
    wait_for_version(&server, "/a", "version 2").await;
}
