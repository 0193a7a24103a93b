//! `mayfly warm`.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use testkit::fake_php::Script;
use testkit::process::{Signal, send_signal};
use testkit::running::RunningServer;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::Php;
use crate::commands::{code_and_text, ended, output};
use crate::{gzip, start};

/// Pages of an hour, some sitemaps, and pages that are not kept.
async fn php() -> Php {
    Php::new(|target, _| match target {
        "/sitemap.xml" => Script::page(
            "Content-Type: text/xml\r\nCache-Control: no-store\r\n",
            "<sitemapindex><sitemap><loc>https://site.test/news.xml.gz</loc></sitemap></sitemapindex>",
        ),
        "/news.xml.gz" => Script::page(
            "Content-Type: application/gzip\r\n",
            gzip(
                "<urlset><url><loc>https://site.test/news/1</loc></url>\
                 <url><loc>http://site.test/news/2?a=1&amp;b</loc></url></urlset>",
            ),
        ),
        "/nothing.xml" => Script::page("", "<html></html>"),
        "/personal" => Script::page("Set-Cookie: a=1\r\nX-Accel-Expires: 60\r\n", "for you"),
        "/missing" => Script::page("Status: 404 Not Found\r\n", "not there"),
        "/broken" => Script::page("Status: 500 Broken\r\n", ""),
        _ => Script::page("X-Accel-Expires: 3600\r\n", target),
    })
    .await
}

async fn site(php: &Php, upstream: &str) -> RunningServer {
    start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
         upstream php {{ server {} {upstream} }}\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
         access_log %%/access.log;\n\
         location / {{ fastcgi_pass php; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_cache zone; fastcgi_cache_key $host$request_uri;\n\
         add_header X-Cache $upstream_cache_status always; }}\n\
         location /purge {{ fastcgi_pass php; fastcgi_cache zone; fastcgi_cache_key $uri;\n\
         fastcgi_cache_purge GET from all; }}\n\
         location /uncached {{ fastcgi_pass php; fastcgi_param REQUEST_URI $request_uri; }}\n\
         location = /file {{ return 200 file; }} }}",
        php.fake.address()
    ))
    .await
}

fn command(server: &RunningServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::program());
    let socket = server.path("pid.control");
    command.arg("warm").arg("--socket").arg(socket);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn warm(server: &RunningServer, arguments: &[&str]) -> (i32, String) {
    code_and_text(&output(command(server, arguments)).await)
}

#[tokio::test]
async fn pages_of_sitemaps_are_stored_and_fresh_ones_are_left_alone() {
    let php = php().await;
    let server = site(&php, ";").await;
    let (code, text) = warm(&server, &["https://site.test/sitemap.xml", "--jobs", "1"]).await;
    assert_eq!(code, 0, "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("2 pages in "), "{text}");
    assert!(
        last.ends_with("2 stored, 0 fresh, 0 not stored, 0 failed"),
        "{text}"
    );
    let pages = ["/news/1", "/news/2?a=1&b"];
    for path in pages {
        assert_eq!(server.target().get(path).await.x_cache(), "HIT", "{path}");
    }
    php.take();
    let (code, text) = warm(
        &server,
        &["--sitemap", "https://site.test/sitemap.xml", "--json"],
    )
    .await;
    assert_eq!(code, 0, "{text}");
    assert_eq!(
        text.matches("\"result\":\"fresh\",\"status\":200").count(),
        2
    );
    assert!(
        text.contains(
            "{\"pages\":2,\"stored\":0,\"fresh\":2,\"not_stored\":0,\"failed\":0,\"stopped\":false,"
        ),
        "{text}"
    );
    assert_eq!(php.take().len(), 2, "the sitemaps alone are read again");
    // Requests of the server itself are no visits.
    assert!(!server.read("access.log").contains("192.0.0.8"));
}

#[tokio::test]
async fn what_is_not_stored_is_said_with_the_reason() {
    let php = php().await;
    let server = site(&php, ";").await;
    server.target().get("/purge").await;
    for (url, code, words, is_asked) in [
        ("https://site.test/a", 0, "stored  ", true),
        (
            "https://site.test/personal",
            1,
            "/personal  (set-cookie)",
            true,
        ),
        ("https://site.test/missing", 1, "(404, ", true),
        ("https://site.test/broken", 1, "(500, ", true),
        // No upstream is asked for a page that is not kept, and nothing is purged.
        ("https://site.test/uncached", 1, "(off)", false),
        ("https://site.test/purge", 1, "(purge)", false),
        ("https://site.test/file", 1, "/file  (off)", false),
        (
            "https://elsewhere.test/",
            1,
            "this server has no site elsewhere.test",
            false,
        ),
        ("ftp://site.test/", 1, "ftp://site.test/: ", false),
        ("https://site.test:x/", 1, "the host of this URL", false),
    ] {
        php.take();
        let (exit, text) = warm(&server, &[url]).await;
        assert_eq!(exit, code, "{url}: {text}");
        assert!(text.contains(words), "{url}: {text}");
        assert_eq!(!php.take().is_empty(), is_asked, "{url}: {text}");
    }
    let (exit, text) = warm(&server, &["https://site.test/nothing.xml"]).await;
    assert_eq!(exit, 1, "{text}");
    assert!(text.contains("it has no urlset"), "{text}");
}

#[tokio::test]
async fn files_and_standard_input_have_a_url_in_each_line() {
    let php = php().await;
    let server = site(&php, ";").await;
    server.write(
        "pages",
        "# important\nhttps://site.test/1\n\nhttps://site.test/2\n",
    );
    let pages = server.path("pages").display().to_string();
    let mut child = command(&server, &[&pages, "-", "--jobs", "8"]);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("the program");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(b"https://site.test/3\r\nhttps://site.test/1\n")
        .expect("it is read");
    drop(input);
    let (code, text) = code_and_text(&ended(child).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("3 pages in "), "{text}");
    let asked = php.take_sorted();
    assert_eq!(asked, ["/1", "/2", "/3"], "{text}");
    let (code, text) = warm(&server, &["/nonexistent"]).await;
    assert_eq!(code, 1, "{text}");
    let mut lost = Command::new(crate::program());
    lost.args(["warm", "https://site.test/", "--socket", "/nonexistent"]);
    let (code, text) = code_and_text(&output(lost).await);
    assert_eq!(code, 2, "{text}");
}

/// One worker is busy with a visitor, and another visitor waits: nothing else is asked meanwhile.
#[tokio::test]
async fn visitors_come_first() {
    let gate = Arc::new(Semaphore::new(0));
    let own = gate.clone();
    let php = Php::new(move |target, _| {
        let page = Script::new().wait_for(&own);
        page.stdout(format!("X-Accel-Expires: 3600\r\n\r\n{target}"))
    })
    .await;
    let server = site(&php, "max_conns=1; queue 10 timeout=60s;").await;
    let visit = |path: &'static str| {
        let target = server.target();
        tokio::spawn(async move { target.get(path).await.status })
    };
    let first = visit("/first");
    until("the first", || php.asked.lock().len() == 1).await;
    let warming = command(&server, &["https://site.test/warm"])
        .spawn()
        .expect("the program");
    let second = visit("/second");
    let third = visit("/third");
    for asked in 2..=3 {
        gate.add_permits(1);
        until("the next", || php.asked.lock().len() == asked).await;
    }
    gate.add_permits(10);
    for visitor in [first, second, third] {
        assert_eq!(visitor.await.expect("an answer"), 200);
    }
    let (code, text) = code_and_text(&ended(warming).await);
    assert_eq!(code, 0, "{text}");
    assert_eq!(php.take().last().map(String::as_str), Some("/warm"));
}

#[tokio::test]
async fn an_interrupted_command_says_how_far_it_came() {
    let gate = Arc::new(Semaphore::new(1));
    let own = gate.clone();
    let php = Php::new(move |target, _| {
        let page = Script::new().wait_for(&own);
        page.stdout(format!("X-Accel-Expires: 3600\r\n\r\n{target}"))
    })
    .await;
    let server = site(&php, ";").await;
    let urls = ["https://site.test/1", "https://site.test/2"];
    let warming = command(&server, &[&urls[..], &["--jobs", "1"]].concat())
        .spawn()
        .expect("the program");
    until("the second page", || php.asked.lock().len() == 2).await;
    send_signal(warming.id(), Signal::INT);
    let (code, text) = code_and_text(&ended(warming).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("Stopped after 1 of 2 pages"), "{text}");
    // The server goes on with the requests it has begun.
    gate.add_permits(1);
    assert_eq!(server.target().get("/2").await.status, 200);
    assert_eq!(php.take().len(), 2);
}
