//! `php_concurrency` and `crawler_share`: who is served first while PHP is busy. PHP waits for a gate at each
//! request, and notes the requests, so that the order is seen without a clock.

use std::sync::{Arc, Mutex};

use testkit::client::{Client, Target};
use testkit::fake_dns::{DnsRecord, DnsReply, FakeDns};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::wait;
use tokio::sync::Semaphore;

use crate::start;

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0";
const CRAWLER: &str = "Mozilla/5.0 (compatible; GPTBot/1.2)";

/// As [`CRAWLER`], with the name of a search engine.
const SEARCH_ENGINE: &str =
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// PHP that is asked for one page at a time, and for one more by who has used little.
struct Site {
    php: FakePhp,
    gate: Arc<Semaphore>,
    asked: Arc<Mutex<Vec<String>>>,
    server: RunningServer,
}

impl Site {
    async fn new(group: &str, location: &str) -> Site {
        let (gate, asked) = (
            Arc::new(Semaphore::new(0)),
            Arc::new(Mutex::new(Vec::new())),
        );
        let (held, noted) = (gate.clone(), asked.clone());
        let php = FakePhp::tcp(move |request| {
            let uri = request.param("REQUEST_URI").to_owned();
            let cookie = match uri.strip_prefix("/session-") {
                Some(number) => format!("Set-Cookie: session={number:0>32}; path=/\r\n"),
                None => String::new(),
            };
            if uri == "/robots.txt" {
                let robots = "Content-Type: text/plain\r\n\r\nUser-agent: *\nCrawl-delay: 45\n";
                return Script::new().stdout(robots);
            }
            let script = match uri.contains("free") || uri.starts_with("/session-") {
                true => Script::new(),
                false => Script::new().wait_for(&held),
            };
            let page = format!("Content-Type: text/html\r\n{cookie}\r\n{uri}");
            noted.lock().expect("no panic").push(uri);
            script.stdout(page)
        })
        .await;
        let http = format!(
            "upstream php {{ server {} max_conns=6; php_concurrency 1; {group} }}\n\
             fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             server {{ listen unix:%%/http; server_name site.test; root %%;\n\
             set_real_ip_from unix:; real_ip_header X-Client;\n\
             location ~ \\.css$ {{ }}\n\
             location / {{ fastcgi_pass php; fastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param HTTP_COOKIE $http_cookie; {location} }} }}\n\
             server {{ listen unix:%%/metrics; server_name site.test; location / {{ metrics; }} }}",
            php.address()
        );
        let server = start(&http).await;
        Site {
            php,
            gate,
            asked,
            server,
        }
    }

    /// Asks, and leaves the answer to be read.
    async fn ask(&self, path: &str, address: &str, agent: &str, fields: &str) -> Client {
        let mut client = self.server.connect().await;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: site.test\r\nX-Client: {address}\r\nUser-Agent: {agent}\r\n{fields}\r\n"
        );
        client.send(request).await;
        client
    }

    /// Asks and joins the line.
    async fn join(&self, path: &str, address: &str, agent: &str, fields: &str) -> Client {
        let before = self.waiting().await;
        let client = self.ask(path, address, agent, fields).await;
        self.until_waiting(before + 1.0).await;
        client
    }

    /// Holds all places: the one that is for all, and the one that is for who has used little.
    async fn hold(&self) -> Vec<Client> {
        let mut held = Vec::new();
        for path in ["/held-1", "/held-2"] {
            let before = self.php.requests();
            held.push(self.ask(path, "192.0.2.200", BROWSER, "").await);
            wait::until("a place is held", || self.php.requests() == before + 1).await;
        }
        held
    }

    async fn waiting(&self) -> f64 {
        let metrics = Target(self.server.path("metrics")).get("/").await.text();
        let lines = metrics.lines().filter_map(|line| {
            line.strip_prefix("mayfly_upstream_waiting{")?
                .rsplit_once(' ')
        });
        lines
            .filter_map(|(_, value)| value.parse::<f64>().ok())
            .sum()
    }

    async fn until_waiting(&self, count: f64) {
        let mut tries = 0;
        while self.waiting().await != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            tries += 1;
            assert!(tries < 4000, "{} wait, not {count}", self.waiting().await);
        }
    }

    /// Whose turn a request of this client would have.
    async fn turn_of(&self, agent: &str, from: &str) -> control::explain::TurnPart {
        let request = control::ExplainRequest {
            url: "http://site.test/page".to_owned(),
            fields: vec![("User-Agent".to_owned(), agent.to_owned())],
            from: Some(from.parse().expect("an address")),
            ..control::ExplainRequest::default()
        };
        let socket = self.server.path("pid.control");
        let told = control::client::explain(&socket, &request).await;
        told.expect("an explanation").plan.turn.expect("a turn")
    }

    /// Lets one request end, and waits until PHP is asked for another: which one.
    async fn next(&self) -> String {
        let before = self.php.requests();
        self.gate.add_permits(1);
        wait::until("the next request", || self.php.requests() > before).await;
        let asked = self.asked.lock().expect("no panic");
        asked.last().cloned().expect("a request")
    }
}

#[tokio::test]
async fn a_visitor_goes_before_sixty_waiting_requests_of_one_client() {
    let site = Site::new("queue 1000 timeout=1h;", "").await;
    let mut clients = site.hold().await;
    for number in 0..60 {
        let path = format!("/bot-{number}");
        clients.push(site.ask(&path, "192.0.2.1", BROWSER, "").await);
    }
    site.until_waiting(60.0).await;
    clients.push(site.join("/visitor", "198.51.100.1", BROWSER, "").await);
    // The bot has two turns, that of its address and the one of its network, which both had nothing.
    let served = [site.next().await, site.next().await, site.next().await];
    assert!(served.contains(&"/visitor".to_owned()), "{served:?}");
}

#[tokio::test]
async fn crawlers_wait_for_visitors_and_are_served_while_visitors_keep_coming() {
    let site = Site::new("queue 1000 timeout=1h;", "").await;
    let mut clients = site.hold().await;
    clients.push(site.join("/crawler", "192.0.2.1", CRAWLER, "").await);
    for number in 0..20 {
        let address = format!("198.51.100.{number}");
        clients.push(
            site.join(&format!("/visitor-{number}"), &address, BROWSER, "")
                .await,
        );
    }
    let mut served = Vec::new();
    for _ in 0..12 {
        served.push(site.next().await);
    }
    let at = served.iter().position(|path| path == "/crawler");
    assert!(at.is_some_and(|at| at >= 4), "{served:?}");
}

#[tokio::test]
async fn who_leaves_while_waiting_gives_the_place_back() {
    let site = Site::new("queue 1000 timeout=1h;", "").await;
    let held = site.hold().await;
    let mut leaving = Vec::new();
    for number in 0..10 {
        let path = format!("/leaving-{number}");
        leaving.push(site.join(&path, "192.0.2.1", BROWSER, "").await);
    }
    let staying = site.join("/staying", "198.51.100.1", BROWSER, "").await;
    drop(leaving);
    site.until_waiting(1.0).await;
    assert_eq!(site.next().await, "/staying");
    drop((held, staying));
    assert_eq!(site.php.requests(), 3);
}

#[tokio::test]
async fn sessions_behind_one_address_are_turns_of_their_own_once_the_site_gave_them() {
    const SESSIONS: usize = 12;
    let site = Site::new("queue 1000 timeout=1h;", "").await;
    let address = "192.0.2.1";
    let client = format!("X-Client: {address}\r\nUser-Agent: {BROWSER}\r\n");
    for number in 0..SESSIONS {
        let reply = site
            .server
            .target()
            .get_with(&format!("/session-{number}"), &client)
            .await;
        assert!(reply.field("set-cookie").starts_with("session="));
    }
    let mut clients = site.hold().await;
    for number in 0..30 {
        let path = format!("/bot-{number}");
        // The site has not given this session.
        let cookie = format!("Cookie: session={:0>32}\r\n", 1000 + number);
        clients.push(site.join(&path, address, BROWSER, &cookie).await);
    }
    for number in 0..SESSIONS {
        let cookie = format!("Cookie: session={number:0>32}\r\n");
        let path = format!("/visitor-{number}");
        clients.push(site.join(&path, address, BROWSER, &cookie).await);
    }
    let mut served = Vec::new();
    for _ in 0..SESSIONS + 2 {
        served.push(site.next().await);
    }
    let visitors = served.iter().filter(|path| path.starts_with("/visitor"));
    assert!(visitors.count() >= SESSIONS, "{served:?}");
}

#[tokio::test]
async fn what_finds_no_place_is_told_when_to_come_again_and_the_log_says_so_once() {
    let site = Site::new("queue 8 timeout=1h;", "").await;
    let mut clients = site.hold().await;
    for number in 0..2 {
        let path = format!("/mine-{number}");
        clients.push(site.join(&path, "192.0.2.1", BROWSER, "").await);
    }
    for number in 2..5 {
        let path = format!("/mine-{number}");
        let mut client = site.ask(&path, "192.0.2.1", BROWSER, "").await;
        let reply = client.receive(false).await.expect("an answer");
        assert_eq!(reply.status, 429);
        let seconds: u32 = reply.field("retry-after").parse().expect("seconds");
        assert!((1..=120).contains(&seconds), "{seconds}");
    }
    // Another has a place.
    clients.push(site.join("/another", "198.51.100.1", BROWSER, "").await);
    let log = site.server.error_log();
    let lines = log
        .lines()
        .filter(|line| line.contains("too many requests of this client wait"));
    assert_eq!(lines.count(), 1, "{log}");
    assert!(log.contains("the turn of 192.0.2.1"), "{log}");
}

#[tokio::test]
async fn crawlers_get_a_stored_page_that_is_too_old_while_visitors_wait() {
    let cached = "fastcgi_cache zone; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 100ms;\n\
                  cache_stale 0 1h; fastcgi_cache_use_stale error; add_header X-Cache $upstream_cache_status always;";
    let site = Site::new("queue 1000 timeout=1h;", cached).await;
    let fields = |agent: &str| format!("X-Client: 192.0.2.1\r\nUser-Agent: {agent}\r\n");
    let first = site
        .server
        .target()
        .get_with("/free", &fields(CRAWLER))
        .await;
    assert_eq!(first.x_cache(), "MISS");
    let mut clients = site.hold().await;
    clients.push(site.join("/visitor", "198.51.100.1", BROWSER, "").await);
    let mut shown = None;
    for _ in 0..200 {
        let reply = site
            .server
            .target()
            .get_with("/free", &fields(CRAWLER))
            .await;
        if reply.x_cache() != "HIT" {
            shown = Some(reply);
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let shown = shown.expect("a page that is too old");
    assert_eq!((shown.x_cache(), shown.text().as_str()), ("STALE", "/free"));
    // A visitor waits for a new one.
    clients.push(site.join("/free", "198.51.100.2", BROWSER, "").await);
}

#[tokio::test]
async fn explain_says_whose_turn_a_request_has() {
    let site = Site::new("queue 1000 timeout=1h; crawler_share 50%;", "").await;
    let visitor = site.turn_of(BROWSER, "203.0.113.7").await;
    assert_eq!(
        (visitor.class.as_str(), visitor.of.as_str()),
        ("visitor", "203.0.113.7")
    );
    assert_eq!((visitor.limit, visitor.waits_milliseconds), (1, 0));
    let crawler = site.turn_of(CRAWLER, "203.0.113.7").await;
    assert_eq!(
        (crawler.class.as_str(), crawler.of.as_str()),
        ("crawler", "gptbot")
    );
    let clients = site.hold().await;
    let waits = site
        .turn_of(CRAWLER, "203.0.113.7")
        .await
        .waits_milliseconds;
    assert!(waits > 0 && !crawler.has_used_little, "{waits}");
    drop(clients);
}

#[tokio::test]
async fn a_search_engine_is_verified_by_dns_while_its_requests_go_on() {
    let dns = FakeDns::start(|question| match question.name.as_str() {
        "1.66.249.66.in-addr.arpa" | "66.2.0.192.in-addr.arpa" => {
            DnsReply::Records(vec![DnsRecord::Host(60, "crawl-1.googlebot.com")])
        }
        "crawl-1.googlebot.com" => DnsReply::Records(vec![DnsRecord::address(60, "66.249.66.1")]),
        _ => DnsReply::Code(3),
    });
    let site = Site::new(&format!("resolver {};", dns.address()), "").await;
    for (address, of) in [
        ("66.249.66.1", "googlebot (verified)"),
        ("192.0.2.66", "googlebot (not verified)"),
    ] {
        let fields = format!("X-Client: {address}\r\nUser-Agent: {SEARCH_ENGINE}\r\n");
        let reply = site.server.target().get_with("/free", &fields).await;
        assert_eq!(reply.status, 200);
        let asked = || dns.asked_for("crawl-1.googlebot.com") > 0;
        wait::until("DNS is asked", asked).await;
        let mut turn = site.turn_of(SEARCH_ENGINE, address).await;
        for _ in 0..2000 {
            if turn.of == of {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            turn = site.turn_of(SEARCH_ENGINE, address).await;
        }
        assert_eq!((turn.class.as_str(), turn.of.as_str()), ("crawler", of));
    }
    let of_a_language_model = site.turn_of(CRAWLER, "66.249.66.1").await;
    assert_eq!(of_a_language_model.of, "gptbot");
}

/// Where the file is one, and where PHP makes it; through the cache and past it.
#[tokio::test]
async fn the_crawl_delay_of_robots_txt_says_when_to_come_again() {
    let cached = "fastcgi_cache zone; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1h;";
    for (robots, location) in [
        ("", ""),
        ("", cached),
        (
            "User-agent: *\nCrawl-delay: 45\n",
            "location = /robots.txt { }",
        ),
    ] {
        let site = Site::new("queue 4 timeout=1h;", location).await;
        let get = format!("X-Client: 198.51.100.9\r\nUser-Agent: {BROWSER}\r\n");
        if !robots.is_empty() {
            std::fs::write(site.server.path("robots.txt"), robots).expect("a file");
        }
        let reply = site.server.target().get_with("/robots.txt", &get).await;
        assert!(reply.text().contains("Crawl-delay: 45"), "{}", reply.text());
        let mut clients = site.hold().await;
        clients.push(site.join("/crawler-1", "192.0.2.1", CRAWLER, "").await);
        let mut seconds = 0;
        for number in 2..200 {
            let path = format!("/crawler-{number}");
            let mut client = site.ask(&path, "192.0.2.1", CRAWLER, "").await;
            let reply = client.receive(false).await.expect("an answer");
            assert_eq!(reply.status, 429);
            seconds = reply.field("retry-after").parse().expect("seconds");
            // The file is read by another thread.
            if seconds >= 45 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(seconds, 45, "{location}");
    }
}

#[tokio::test]
async fn the_operator_sees_what_php_is_used_for() {
    let site = Site::new("queue 1000 timeout=1h;", "").await;
    for number in 0..3 {
        let path = format!("/free/{number}");
        let fields = format!("X-Client: 192.0.2.{number}\r\nUser-Agent: {CRAWLER}\r\n");
        assert_eq!(
            site.server.target().get_with(&path, &fields).await.status,
            200
        );
    }
    let socket = site.server.path("pid.control");
    let mut names = Vec::new();
    // A request counts when PHP has ended.
    for _ in 0..2000 {
        let pages = control::client::pages(&socket).await.expect("pages");
        names = pages.uses.into_iter().map(|it| it.name).collect::<Vec<_>>();
        if names.len() >= 5 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let wanted = [
        "limit 1 (configured), 0 under way, 0 wait at php",
        "class crawler at php",
        "network 192.0.2.0/24 at php",
        "program Mozilla/5.0 (compatible; GPTBot/1.2) at php",
        "pages site.test/free/* at php",
    ];
    assert_eq!(names, wanted);
}
