//! Pages that look the visitor's address up, as polls do to see who has voted: they are shared while no address would be
//! found, and from the first vote on each visitor gets the page that PHP makes for that visitor.

use std::time::Instant;

use testkit::client::{Client, Reply};
use testkit::process::is_root;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use super::database_site::{DatabaseSite, PASSWORD};
use super::{PAUSE, explained};
use crate::program;

/// It shows a voter the results, and all others the form. It begins a transaction as MediaWiki does.
const POLL: &str = "<?php
require __DIR__ . '/connect.php';
$database->query('BEGIN /* Database::beginIfImplied (WikiPage::pageData)  */');
$version = $database->query('SELECT version FROM post WHERE id = 1')->fetch_row()[0];
$vote = $database->query(\"SELECT id FROM votes WHERE poll = 3 AND ip = '$_SERVER[REMOTE_ADDR]'\")->fetch_row();
echo ($vote ? 'results' : 'form') . \" $version\";
";

/// The same, with the number of its run, and the answer goes on for a while.
const STREAMED: &str = "<?php
require __DIR__ . '/connect.php';
$vote = $database->query(\"SELECT id FROM votes WHERE poll = 3 AND ip = '$_SERVER[REMOTE_ADDR]'\")->fetch_row();
echo ($vote ? 'results' : 'form') . \" $_SERVER[MAYFLY_FETCH].\";
while (ob_get_level()) ob_end_flush();
flush();
usleep(500000);
";

/// PHP goes on after its answer is over. What the page was made of is reported before.
const LATE: &str = "<?php
require __DIR__ . '/connect.php';
$vote = $database->query(\"SELECT id FROM votes WHERE poll = 3 AND ip = '$_SERVER[REMOTE_ADDR]'\")->fetch_row();
echo $vote ? 'results' : 'form';
fastcgi_finish_request();
usleep(400000);
";

const VOTE: &str = "<?php
require __DIR__ . '/connect.php';
$database->query(\"INSERT INTO votes (poll, ip) VALUES (3, '$_SERVER[REMOTE_ADDR]')\");
echo 'voted';
";

/// The visitor's address is part of the page.
const SHOWN: &str = "<?php
require __DIR__ . '/connect.php';
echo $database->query(\"SELECT CONCAT('for ', '$_SERVER[REMOTE_ADDR]')\")->fetch_row()[0];
";

const VOTER: &str = "203.0.113.9";

struct Site {
    site: DatabaseSite,
    server: RunningServer,
}

impl Site {
    async fn start(lines: &str) -> Option<Site> {
        Site::with_lifetime(lines, "1ms").await
    }

    async fn with_lifetime(lines: &str, lifetime: &str) -> Option<Site> {
        let site = DatabaseSite::make()?;
        site.database.run(
            "CREATE TABLE blog.votes (id INT AUTO_INCREMENT PRIMARY KEY, poll INT, ip VARCHAR(45) NOT NULL) ENGINE=InnoDB;
             INSERT INTO blog.votes (poll, ip) VALUES (3, '');",
        );
        for (name, text) in [
            ("poll.php", POLL),
            ("streamed.php", STREAMED),
            ("late.php", LATE),
            ("vote.php", VOTE),
            ("shown.php", SHOWN),
        ] {
            site.add(name, text);
        }
        let user = if is_root() { "user www-data;" } else { "" };
        let main = format!("php_pool site {{ workers 4; {user} }}");
        let http = format!(
            "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
             server {{ listen unix:%%/http; server_name site.test;\n\
             set_real_ip_from unix:; real_ip_header X-Real-IP;\n\
             location / {{ fastcgi_pass php:site; fastcgi_cache pages; fastcgi_cache_valid {lifetime}; {lines}\n\
             cache_learn_database unix:{} blog \"{}\";\n\
             fastcgi_param SCRIPT_FILENAME {}$uri; fastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param REMOTE_ADDR $remote_addr; add_header X-Cache $upstream_cache_status; }} }}",
            site.database.socket().display(),
            PASSWORD.replace('\\', "\\\\").replace('"', "\\\""),
            site.path().display()
        );
        let server = RunningServer::start(program(), &main, &http).await;
        Some(Site { site, server })
    }

    async fn ask(&self, method: &str, path: &str, visitor: &str) -> Reply {
        let fields = format!("X-Real-IP: {visitor}\r\n");
        let target = self.server.target();
        let reply = match method {
            "GET" => target.get_with(path, &fields).await,
            _ => target.ask(method, path, &fields, "").await,
        };
        assert_eq!(reply.status, 200, "{}", self.server.error_log());
        reply
    }

    fn vote(&self) {
        let vote = format!("INSERT INTO blog.votes (poll, ip) VALUES (3, '{VOTER}')");
        self.site.database.run(&vote);
    }

    /// Asks for the page whose answer goes on for a while, and returns its beginning.
    async fn begin_streamed(&self, visitor: &str) -> String {
        let mut client = Client::connect(&self.server.target().0).await;
        let request = "GET /streamed.php HTTP/1.1\r\nHost: site.test\r\nConnection: close";
        client
            .send(format!("{request}\r\nX-Real-IP: {visitor}\r\n\r\n"))
            .await;
        client.receive_until("\r\n\r\n").await;
        let body = String::from_utf8(client.receive_until(".").await).unwrap();
        // The client stays until the page is there.
        tokio::spawn(async move { client.receive_all().await });
        // The length of the chunk stands before it.
        let text = body.rsplit("\r\n").next();
        text.unwrap_or_default().to_owned()
    }

    /// Asks for the page as this number of other visitors, all at once.
    async fn crowd(&self, visitors: usize) -> Vec<String> {
        let asked = (1..=visitors).map(|number| {
            let target = self.server.target();
            tokio::spawn(async move {
                let fields = format!("X-Real-IP: 198.51.100.{number}\r\n");
                target.get_with("/streamed.php", &fields).await.text()
            })
        });
        let mut shown = Vec::new();
        for asked in asked.collect::<Vec<_>>() {
            shown.push(asked.await.expect("a reply"));
        }
        shown
    }

    /// The voter is shown the results, and another visitor the form, neither of them from memory.
    async fn shows_each_their_own(&self, version: u32, lines: &str) {
        for turn in 0..10 {
            for (visitor, shown) in [(VOTER, "results"), ("198.51.100.7", "form")] {
                let reply = self.ask("GET", "/poll.php", visitor).await;
                assert_eq!(reply.text(), format!("{shown} {version}"), "{lines} {turn}");
                assert_ne!(reply.x_cache(), "HIT", "{lines} {turn}");
            }
        }
        let why = explained(&self.server, "/poll.php").await.reason;
        assert_eq!(why.expect("a reason").word, "address-database", "{lines}");
    }

    /// Two visitors of other networks get the same page, from memory.
    async fn until_shared(&self, expected: &str) {
        let started = Instant::now();
        for turn in 0.. {
            let visitor = format!("198.51.{}.{}", turn % 200, turn % 7 + 1);
            let reply = self.ask("GET", "/poll.php", &visitor).await;
            assert_eq!(reply.text(), expected);
            let part = explained(&self.server, "/poll.php").await.learned;
            let is_kept = part
                .as_ref()
                .is_some_and(|it| it.sentence.contains("it is kept for"));
            if reply.x_cache() == "HIT" && is_kept {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{} {part:?}", reply.x_cache());
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// PHP is sent the visitors' own requests, and what it answers is shared.
const BY_PATH: &str = "fastcgi_cache_key $uri; cache_learn on;";

const MODES: [&str; 2] = [BY_PATH, "cache_shared on; cache_learn on;"];

#[tokio::test]
async fn poll_is_shared_until_somebody_votes_and_then_shows_each_visitor_their_own_page() {
    for lines in MODES {
        let Some(site) = Site::start(lines).await else {
            return;
        };
        site.until_shared("form 1").await;
        // A new version: the page is made anew for all, by whomever it is asked for.
        site.site
            .run_by_php(
                &site.server.target(),
                "UPDATE post SET version = 2 WHERE id = 1",
            )
            .await;
        site.until_shared("form 2").await;
        let voted = site.ask("POST", "/vote.php", VOTER).await;
        assert_eq!(voted.text(), "voted");
        site.shows_each_their_own(2, lines).await;
    }
}

/// Nothing is known of the page when the voter asks for it.
#[tokio::test]
async fn poll_that_somebody_has_voted_in_before_shows_each_visitor_their_own_page() {
    for lines in MODES {
        let Some(site) = Site::start(lines).await else {
            return;
        };
        site.vote();
        site.shows_each_their_own(1, lines).await;
    }
}

/// The voter comes when the answers to two others were the same, and the database may not have been asked yet.
#[tokio::test]
async fn page_is_shown_to_nobody_before_it_is_known_whose_address_it_looks_up() {
    for lifetime in ["1ms", "1m"] {
        let Some(site) = Site::with_lifetime(MODES[1], lifetime).await else {
            return;
        };
        site.vote();
        for visitor in ["198.51.100.7", "198.51.101.7"] {
            let reply = site.ask("GET", "/late.php", visitor).await;
            assert_eq!(reply.text(), "form", "{lifetime}");
        }
        let reply = site.ask("GET", "/late.php", VOTER).await;
        assert_eq!(reply.text(), "results", "{lifetime}");
    }
}

/// The others come while the voter's page is on its way.
#[tokio::test]
async fn voters_page_is_not_shown_to_others_while_it_arrives() {
    let Some(site) = Site::start(BY_PATH).await else {
        return;
    };
    site.vote();
    let first = site.begin_streamed(VOTER).await;
    assert!(first.starts_with("results"), "{first}");
    for other in site.crowd(2).await {
        assert!(other.starts_with("form"), "{other}");
    }
}

/// While no address would be found, they wait for the one run that is under way, or for a few on a slow machine: one a
/// second. The tables are known by then.
#[tokio::test]
async fn crowd_that_comes_while_a_page_arrives_is_answered_by_its_run() {
    let Some(site) = Site::start(BY_PATH).await else {
        return;
    };
    site.until_shared("form 1").await;
    let first = site.begin_streamed(VOTER).await;
    assert!(first.starts_with("form"), "{first}");
    let mut runs = site.crowd(20).await;
    runs.push(first);
    runs.sort();
    runs.dedup();
    assert!(runs.len() <= 5, "{runs:?}");
}

#[tokio::test]
async fn page_that_has_the_address_in_its_result_is_never_shared() {
    for lines in MODES {
        let Some(site) = Site::start(lines).await else {
            return;
        };
        let started = Instant::now();
        loop {
            site.ask("GET", "/shown.php", VOTER).await;
            let explained = explained(&site.server, "/shown.php").await;
            let why = explained.reason.map(|why| why.word);
            let is_one_s = ["address-database", "unproven", "depends"];
            if why.as_deref().is_some_and(|it| is_one_s.contains(&it)) {
                break;
            }
            assert!(started.elapsed() < TIMEOUT, "{why:?}");
            tokio::time::sleep(PAUSE).await;
        }
        for _ in 0..5 {
            for visitor in [VOTER, "198.51.100.7"] {
                let reply = site.ask("GET", "/shown.php", visitor).await;
                assert_eq!(reply.text(), format!("for {visitor}"), "{lines}");
            }
        }
    }
}
