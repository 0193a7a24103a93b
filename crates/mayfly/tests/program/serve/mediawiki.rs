//! `serve` in front of a MediaWiki: how long its pages are kept, and the effect of its purges and edits.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::client::{Reply, Target};
use testkit::process::{KilledOnDrop, free_port};
use testkit::serving::{FolderServer, write_files};
use testkit::wait::{TIMEOUT, until};

use super::{seen, serve};
use crate::{has_php_fpm, program};

/// With `$wgUseCdn`: it lets proxies keep its pages for five hours. An edit is answered as MediaWiki 1.39 does.
const PAGE: &str = "<?php header('Content-Type: text/html');
    if ($_SERVER['REQUEST_METHOD'] == 'POST') {
        if (isset($_GET['changes'])) {
            header('Set-Cookie: UseCDNCache=false; path=/; httponly');
            echo '{\"edit\":{\"title\":\"\\\"nochange\\\":\",\"newrevid\":5}}';
        } elseif (isset($_GET['no_change'])) {
            header('Set-Cookie: UseCDNCache=false; path=/; httponly');
            $said = '{\"edit\":{\"result\":\"Success\",\"nochange\":true}}';
            if (isset($_GET['gzip'])) {
                header('Content-Encoding: gzip');
                $said = gzencode($said);
            }
            echo $said;
        } elseif (isset($_GET['refused'])) {
            header('Set-Cookie: UseCDNCache=false; path=/; httponly');
            header('MediaWiki-API-Error: badtoken');
        } elseif (isset($_GET['by_form'])) {
            header('Set-Cookie: my_wikiPostEditRevision5=saved; path=/');
            header('Location: /wiki/Page', true, 302);
        }
        exit;
    }
    header('Cache-Control: s-maxage=18000, must-revalidate, max-age=0');
    if (str_contains($_SERVER['REQUEST_URI'], 'Missing')) { http_response_code(404); }
    echo uniqid();";

fn files(settings: &str) -> Vec<(&'static str, String)> {
    vec![
        ("index.php", PAGE.to_owned()),
        ("api.php", PAGE.to_owned()),
        ("load.php", PAGE.to_owned()),
        ("includes/WebStart.php", "<?php".to_owned()),
        (
            "LocalSettings.php",
            format!("<?php\n$wgUseCdn = true;\n{settings}\n"),
        ),
    ]
}

fn as_text<'f>(files: &'f [(&'static str, String)]) -> Vec<(&'static str, &'f str)> {
    files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect()
}

async fn wiki(settings: &str) -> FolderServer {
    serve(&as_text(&files(settings)), "20ms").await
}

/// One whose purges are sent to where it is listened for.
async fn wiki_with_purges() -> FolderServer {
    let listen = format!("127.0.0.1:{}", free_port());
    let settings = format!("  $wgCdnServers = [ '{listen}' ]; # the server\n");
    let files = files(&settings);
    let arguments = ["--ttl", "20ms", "--workers", "2", "--listen", &listen];
    FolderServer::start_site(program(), &as_text(&files), &arguments).await
}

async fn purge(target: &Target, url: &str) -> u16 {
    let reply = target
        .ask("PURGE", url, "User-Agent: MediaWiki/1.39\r\n", "")
        .await;
    reply.status
}

/// Whether the page is in memory for longer than `--ttl`.
async fn is_kept(target: &Target, path: &str) -> bool {
    target.get(path).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    target.get(path).await.x_cache() == "HIT"
}

/// Asks until the page is kept so: a refresh that is under way may have begun before the purge.
async fn becomes_kept(target: &Target, path: &str) {
    let begun = Instant::now();
    while !is_kept(target, path).await {
        assert!(begun.elapsed() < TIMEOUT, "{path} is not kept");
    }
}

/// Asks until the page does not come from memory any more.
async fn ends(target: &Target, path: &str) {
    let begun = Instant::now();
    while target.get(path).await.x_cache() == "HIT" {
        assert!(begun.elapsed() < TIMEOUT, "{path} stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn pages_are_kept_until_a_purge_where_purges_are_sent_here() {
    if !has_php_fpm() {
        return;
    }
    let server = wiki_with_purges().await;
    let target = server.target();
    for (path, status) in [("/wiki/Page", 200), ("/wiki/Missing", 404)] {
        assert!(is_kept(&target, path).await, "{path}");
        assert_eq!(seen(&target.get(path).await), (status, "HIT"));
        assert_eq!(
            purge(&target, &format!("http://site.test{path}")).await,
            200
        );
        assert_eq!(seen(&target.get(path).await), (status, "MISS"));
    }
}

#[tokio::test]
async fn pages_are_kept_for_the_ttl_where_purges_go_elsewhere_until_one_arrives() {
    if !has_php_fpm() {
        return;
    }
    for settings in [
        "",
        "$wgCdnServers = [];",
        "$wgCdnServers = [ '192.0.2.7:6081' ];",
        "# $wgCdnServers = [ '127.0.0.1:8080' ];",
    ] {
        let server = wiki(settings).await;
        let target = server.target();
        for path in ["/wiki/Page", "/index.php"] {
            target.get(path).await;
            ends(&target, path).await;
        }
        purge(&target, "http://site.test/wiki/Other").await;
        becomes_kept(&target, "/wiki/Page").await;
    }
}

#[tokio::test]
async fn an_edit_that_no_purge_follows_ends_what_is_kept() {
    if !has_php_fpm() {
        return;
    }
    // In a file, beyond `client_body_buffer_size`.
    let long = format!("action=edit&text={}", "a".repeat(100_000));
    tokio::join!(
        ends_what_is_kept("/index.php?by_form=1", "wpTextbox1=a"),
        ends_what_is_kept("/api.php?changes=1", "action=edit&text=a"),
        ends_what_is_kept("/api.php?changes=1", &long),
        ends_what_is_kept("/api.php?changes=1", "action=revisiondelete"),
        ends_what_is_kept("/index.php?changes=1&action=delete", "wpConfirmB=1"),
        ends_what_is_kept("/wiki/Spezial:Verschieben?changes=1", "wpOldTitle=A"),
        ends_what_is_kept("/index.php?changes=1&action=submit", "target=A&restore=1"),
    );
}

async fn ends_what_is_kept(path: &str, form: &str) {
    let server = wiki_with_purges().await;
    let target = server.target();
    assert!(is_kept(&target, "/wiki/Page").await);
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    let edited: Reply = target.ask("POST", path, kind, form).await;
    assert!(edited.status < 400, "{edited:?}");
    if path.contains("changes") {
        assert!(edited.text().ends_with("\"newrevid\":5}}"), "{edited:?}");
    }
    ends(&target, "/wiki/Page").await;
    // It is written once the pages are gone.
    until("the message", || {
        let log = server.error_log();
        log.contains("no purge came within 5 seconds of an edit")
    })
    .await;
    assert!(!is_kept(&target, "/wiki/Other").await, "{path}");
    if path.contains("by_form") {
        // What is stored since then is not kept for long, and nothing more is removed.
        let _: Reply = target.ask("POST", path, kind, form).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(server.error_log().matches("no purge came").count(), 1);
    }
    // Until one arrives.
    purge(&target, "http://site.test/wiki/Page").await;
    becomes_kept(&target, "/wiki/Other").await;
}

#[tokio::test]
async fn what_is_no_edit_and_what_a_purge_follows_ends_nothing() {
    if !has_php_fpm() {
        return;
    }
    let server = wiki_with_purges().await;
    let target = server.target();
    assert!(is_kept(&target, "/wiki/Page").await);
    // An edit with its purge.
    target.ask("POST", "/index.php?by_form=1", "", "a=b").await;
    purge(&target, "http://site.test/wiki/Edited").await;
    for (path, form) in [
        ("/index.php?other=1", "search=a"),
        ("/index.php?changes=1&action=protect", "restoration=a"),
        ("/api.php?changes=1", "action=options&change=a"),
        ("/api.php?refused=1", "action=edit"),
        ("/api.php?no_change=1", "action=edit"),
        ("/api.php?no_change=1&gzip=1", "action=edit"),
    ] {
        let reply: Reply = target.ask("POST", path, "", form).await;
        if path.ends_with("no_change=1") {
            assert!(reply.text().ends_with("\"nochange\":true}}"), "{reply:?}");
        }
    }
    let waited = Instant::now();
    while waited.elapsed() < Duration::from_secs(6) {
        assert_eq!(target.get("/wiki/Page").await.x_cache(), "HIT");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.error_log();
    assert!(!log.contains("no purge came"), "{log}");
}

/// Starts `serve` with these arguments, and waits until it has printed its address.
async fn started(settings: &str, arguments: &[&str]) -> (tempfile::TempDir, KilledOnDrop) {
    let folder = FolderServer::folder();
    write_files(folder.path(), &as_text(&files(settings)));
    let announced = folder.path().join("announced.txt");
    let mut command = Command::new(program());
    command.arg("serve").arg(folder.path()).args(arguments);
    command
        .args(["--ttl", "20ms"])
        .env("STATE_DIRECTORY", folder.path().join("state"))
        .env("CACHE_DIRECTORY", folder.path().join("cache"))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&announced).unwrap());
    let server = KilledOnDrop(command.spawn().unwrap());
    until("the announcement", || {
        let text = std::fs::read_to_string(&announced).unwrap();
        text.contains("Ctrl-C")
    })
    .await;
    (folder, server)
}

fn curl(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--include", "--insecure", "--max-time", "10"]);
    let output = curl.args(arguments).output().expect("curl");
    String::from_utf8_lossy(&output.stdout).to_lowercase()
}

/// Visits a page until it is shown from memory: the first visit is the visitor's own.
async fn until_stored(get: impl Fn() -> String) {
    until("the page is stored", || get().contains("x-cache: hit")).await;
}

/// Sends a purge in MediaWiki's form: to this server, whatever the URL names.
fn by_proxy(port: u16, more: &[&str], url: &str) -> String {
    let proxy = format!("http://127.0.0.1:{port}");
    let start = ["--proxy", &proxy, "--noproxy", ""];
    curl(&[&start, more, &[url]].concat())
}

/// MediaWiki sends its purges in plain HTTP, also to the port that visitors come to over TLS.
#[tokio::test]
async fn with_tls_a_purge_in_plain_http_removes_what_visitors_get() {
    if !has_php_fpm() {
        return;
    }
    let port = free_port();
    let settings = format!(
        "$wgServer = 'https://localhost:{port}';\n$wgInternalServer = 'http://localhost:{port}';\n\
         $wgCdnServers = [ '127.0.0.1:{port}' ];"
    );
    let listen = format!("127.0.0.1:{port}");
    let _server = started(&settings, &["--tls", "--listen", &listen]).await;
    let page = format!("https://localhost:{port}/wiki/Page");
    let url = format!("http://localhost:{port}/wiki/Page");
    let get = || curl(&["--noproxy", "*", &page]);
    until_stored(get).await;
    // Longer than --ttl.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(get().contains("x-cache: hit"), "{}", get());
    let purged = by_proxy(port, &["--request", "PURGE"], &url);
    assert!(purged.starts_with("http/1.1 200"), "{purged}");
    let made = get();
    assert!(made.contains("x-cache: miss"), "{made}");
    // Without TLS, only purges are served.
    let plain = by_proxy(port, &[], &url);
    assert!(plain.starts_with("http/1.1 400"), "{plain}");
}

#[tokio::test]
async fn with_a_domain_a_purge_in_plain_http_is_not_redirected_but_carried_out() {
    if !has_php_fpm() {
        return;
    }
    let (tls, plain) = (free_port(), free_port());
    let settings = format!(
        "$wgServer = 'https://a.example';\n$wgInternalServer = 'http://a.example';\n\
         $wgCdnServers = [ '127.0.0.1:{plain}' ];"
    );
    let (listen, listen_http) = (format!("127.0.0.1:{tls}"), format!("127.0.0.1:{plain}"));
    let state = tempfile::tempdir().unwrap();
    // The issuer is not there: until it is, the certificate is one that is not trusted.
    let _server = started(
        &settings,
        &[
            "--domain",
            "a.example",
            "--listen",
            &listen,
            "--listen-http",
            &listen_http,
            "--acme-directory",
            "https://127.0.0.1:1/directory",
            "--acme-state",
            state.path().to_str().unwrap(),
        ],
    )
    .await;
    let resolve = format!("a.example:{tls}:127.0.0.1");
    let page = format!("https://a.example:{tls}/wiki/Page");
    let get = || curl(&["--noproxy", "*", "--resolve", &resolve, &page]);
    until_stored(get).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(get().contains("x-cache: hit"), "{}", get());
    let url = "http://a.example/wiki/Page";
    let purge = |more: &[&str]| by_proxy(plain, &[&["--request", "PURGE"], more].concat(), url);
    // A purge that came through a proxy for another address is refused.
    let refused = purge(&["--header", "X-Forwarded-For: 192.0.2.7"]);
    assert!(!refused.starts_with("http/1.1 2"), "{refused}");
    assert!(get().contains("x-cache: hit"), "{}", get());
    let purged = purge(&[]);
    assert!(purged.starts_with("http/1.1 200"), "{purged}");
    let made = get();
    assert!(made.contains("x-cache: miss"), "{made}");
    // Visitors are led to HTTPS as before.
    let visited = by_proxy(plain, &[], "http://a.example/wiki/Page?a=b");
    assert!(visited.starts_with("http/1.1 301"), "{visited}");
    let location = format!("location: https://a.example:{tls}/wiki/page?a=b");
    assert!(visited.contains(&location), "{visited}");
}
