//! While two programs serve, a purge returns when both have applied it, whichever of them gets it.

use testkit::client::{Client, Reply};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::{is_alive, suspend};
use testkit::wait::until;

use super::ReplacedServer;
use crate::program;

/// PHP whose pages carry their path as a tag.
async fn tagged_pages() -> FakePhp {
    FakePhp::tcp(|request| {
        let path = request.param("REQUEST_URI");
        let tag = path.trim_start_matches('/');
        Script::page(
            &format!("Content-Type: text/html\r\nX-Cache-Tags: {tag}\r\n"),
            format!("{path} {}", request.number),
        )
    })
    .await
}

async fn start(php: &FakePhp) -> ReplacedServer {
    let pages = php.cached_site("fastcgi_cache_valid 200 1h;\n");
    let more = "server_name site.test;\nlocation = /purge { cache_purge_api; }\n\
                location = /who { return 200 $pid; }\n";
    let http = pages.replacen("server_name site.test;\n", more, 1);
    ReplacedServer::start("", &http).await
}

/// A connection that stays with one process.
struct Visitor(Client);

impl Visitor {
    /// One whose connection is accepted by this process.
    async fn of(replaced: &ReplacedServer, pid: u32) -> Visitor {
        loop {
            let mut visitor = Visitor(Client::connect(&replaced.server.path("http")).await);
            if visitor.ask("GET", "/who", "").await.text() == pid.to_string() {
                return visitor;
            }
        }
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Reply {
        let framing = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: site.test\r\n{framing}\r\n{body}");
        self.0.send(request).await;
        self.0.receive(false).await.expect("a response")
    }

    /// How the cache answers for a page.
    async fn sees(&mut self, path: &str) -> String {
        self.ask("GET", path, "").await.x_cache().to_owned()
    }

    async fn purge(&mut self, tag: &str) {
        self.carry_out(format!("{{\"tags\":[\"{tag}\"]}}")).await;
    }

    async fn purge_url(&mut self, path: &str) {
        self.carry_out(format!("{{\"urls\":[\"http://site.test{path}\"]}}"))
            .await;
    }

    async fn carry_out(&mut self, body: String) {
        let reply = self.ask("POST", "/purge", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[tokio::test]
async fn a_purge_in_one_process_holds_in_the_other_before_it_returns() {
    let php = tagged_pages().await;
    let mut replaced = start(&php).await;
    let mut old = Visitor::of(&replaced, replaced.pid()).await;
    for page in ["/a", "/b", "/c", "/d"] {
        old.sees(page).await;
        assert_eq!(old.sees(page).await, "HIT");
    }
    let (_, pid) = replaced.usr2().await;
    let mut new = Visitor::of(&replaced, pid).await;
    assert_eq!(old.sees("/a").await, "HIT", "it serves still");
    for page in ["/a", "/b", "/c", "/d"] {
        new.sees(page).await;
        assert_eq!(new.sees(page).await, "HIT");
    }
    for round in 0..50 {
        old.purge("a").await;
        assert_eq!(new.sees("/a").await, "MISS", "{round}");
        assert_eq!(new.sees("/a").await, "HIT");
    }
    new.purge("b").await;
    assert_eq!(old.sees("/b").await, "MISS");
    // Both store, and a purge in one of them holds for the page that the other has stored
    // meanwhile.
    assert_eq!(old.sees("/b").await, "HIT");
    new.purge("b").await;
    assert_eq!(old.sees("/b").await, "MISS");
    assert_eq!(
        (old.sees("/c").await, new.sees("/c").await),
        ("HIT".to_owned(), "HIT".to_owned())
    );

    let socket = replaced.server.path("pid.control");
    let purged = tokio::task::spawn_blocking(move || {
        let mut command = std::process::Command::new(program());
        command
            .args(["purge", "--tag", "c", "--socket"])
            .arg(socket);
        command.status().expect("the program")
    });
    assert!(purged.await.expect("a thread").success());
    assert_eq!(
        (old.sees("/c").await, new.sees("/c").await),
        ("MISS".to_owned(), "MISS".to_owned())
    );
    assert_eq!(old.sees("/d").await, "HIT", "others are not touched");
}

#[tokio::test]
async fn stored_pages_go_over_to_the_new_program() {
    let php = FakePhp::tcp(|request| {
        let (path, kind) = (request.param("REQUEST_URI"), request.param("HTTP_X_KIND"));
        let vary = if path == "/varying" {
            "Vary: X-Kind\r\n"
        } else {
            ""
        };
        let lines = if path == "/long" { 9000 } else { 1 };
        let line = format!("{path} {kind} {};", request.number);
        Script::page(&format!("X-Cache-Tags: tag\r\n{vary}"), line.repeat(lines))
    })
    .await;
    let mut replaced = start(&php).await;
    let mut old = Visitor::of(&replaced, replaced.pid()).await;
    let pages: Vec<String> = (0..200).map(|number| format!("/{number}")).collect();
    let mut texts = Vec::new();
    let paths = || {
        pages
            .iter()
            .map(String::as_str)
            .chain(["/long", "/varying"])
    };
    for path in paths() {
        texts.push(old.ask("GET", path, "").await.text());
    }
    old.purge_url("/7").await;
    let requests = php.requests();
    let (_, pid) = replaced.usr2().await;
    let mut new = Visitor::of(&replaced, pid).await;
    for (path, text) in paths().zip(&texts) {
        let reply = new.ask("GET", path, "").await;
        let expected = if path == "/7" { "MISS" } else { "HIT" };
        assert_eq!(reply.x_cache(), expected, "{path}");
        assert_eq!(reply.text() == *text, expected == "HIT", "{path}");
    }
    assert_eq!(php.requests(), requests + 1);
    // They have their tags and addresses there.
    new.purge_url("/8").await;
    assert_eq!(new.sees("/8").await, "MISS");
    assert_eq!(new.sees("/9").await, "HIT");
    new.purge("tag").await;
    assert_eq!(new.sees("/long").await, "MISS");
}

#[tokio::test]
async fn the_old_program_answers_from_memory_until_it_ends() {
    let php = tagged_pages().await;
    let mut replaced = start(&php).await;
    let mut visitor = Visitor::of(&replaced, replaced.pid()).await;
    replaced.usr2().await;
    assert_eq!(visitor.sees("/a").await, "MISS");
    assert_eq!(visitor.sees("/a").await, "HIT");
}

#[tokio::test]
async fn a_stopped_old_program_is_killed_and_the_purge_returns() {
    let php = tagged_pages().await;
    let mut replaced = start(&php).await;
    let (old, pid) = replaced.usr2().await;
    let mut new = Visitor::of(&replaced, pid).await;
    new.sees("/a").await;
    suspend(old).await;
    new.purge("a").await;
    // A process that is killed closes its sockets a moment before it is gone.
    until("the old program's end", || !is_alive(old)).await;
    assert_eq!(new.sees("/a").await, "MISS");
    replaced
        .logs(1.., "whose place this one has taken, has ended")
        .await;
}
