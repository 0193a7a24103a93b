//! Random applications, each of which reads parts of the request and sends no `Vary`, and random
//! visitors. Each visitor has to get the page that the application makes for their own request.
//!
//! `MAYFLY_VISITS=100000` asks for more visits; `MAYFLY_SEED` repeats a run.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use testkit::client::Reply;
use testkit::fake_http::Script;

use super::random_applications::{Fact, Page};
use super::{Application, Site, ask_port, is_from_memory, request};
use crate::attacks::random::Random;

/// Visits without `MAYFLY_VISITS`.
const VISITS: u64 = 4_000;
/// Visits of one application.
const VISITS_EACH: u64 = 80;
/// Examples of each kind that a failure shows.
const MAX_EXAMPLES: usize = 3;

/// Wrong answers that are accepted, in a thousand visits. An application may treat an address in a way
/// that shows only if a visitor from there is compared: they may miss a page that is for them alone.
/// Their page is never shown to others, which is another kind.
const TOLERATED: [(&str, u64); 1] = [("address", 20)];

pub fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Visitors have addresses from 127.0.0.2 on, so that a neutral address belongs to no visitor.
const FIRST_ADDRESS: u8 = 2;
const ADDRESSES: usize = 6;

const AGENTS: [&str; 9] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "curl/8.5.0",
];

#[derive(Clone, Debug)]
struct Visit {
    from: u8,
    head: String,
}

impl Visit {
    /// A visitor who may have something of everything.
    fn random(random: &mut Random, host: &str, path: &str) -> Visit {
        let mut fields = Visit::usual_fields(random, host);
        let mut cookies = Vec::new();
        for (name, one_in) in [
            ("_ga=GA1.1.7.8", 3),
            ("cookie_consent=1", 4),
            ("mp_theme=dark", 5),
            ("mp_theme=light", 8),
            ("PHPSESSID=abc", 12),
        ] {
            if random.one_in(one_in) {
                cookies.push(name);
            }
        }
        if !cookies.is_empty() {
            fields.push_str(&format!("Cookie: {}\r\n", cookies.join("; ")));
        }
        if random.one_in(12) {
            fields.push_str(random.one_of(&["X-Tenant: acme\r\n", "X-Invented: acme\r\n"]));
        }
        Visit::from_fields(random, host, path, &fields)
    }

    /// A visitor whose request may be answered from memory.
    fn usual(random: &mut Random, host: &str, path: &str) -> Visit {
        let mut fields = Visit::usual_fields(random, host);
        if random.one_in(2) {
            fields.push_str("Cookie: _ga=GA1.1.7.8\r\n");
        }
        Visit::from_fields(random, host, path, &fields)
    }

    fn usual_fields(random: &mut Random, host: &str) -> String {
        let agent = AGENTS[random.below(AGENTS.len())];
        let mut fields = format!("User-Agent: {agent}\r\nAccept: text/html,*/*;q=0.8\r\n");
        if agent.contains("bot") || agent.contains("curl") {
            return fields;
        }
        fields.push_str(random.one_of(&[
            "Accept-Language: de-AT,de;q=0.9,en;q=0.7\r\n",
            "Accept-Language: en-US,en;q=0.9\r\n",
            "Accept-Language: fr\r\n",
            "",
        ]));
        match random.below(4) {
            0 => fields.push_str(&format!("Referer: http://{host}/\r\n")),
            1 => fields.push_str("Referer: https://search.example/\r\n"),
            _ => {}
        }
        fields
    }

    fn from_fields(random: &mut Random, host: &str, path: &str, fields: &str) -> Visit {
        let nth = u8::try_from(random.below(ADDRESSES)).expect("small");
        Visit {
            from: FIRST_ADDRESS + nth,
            head: request(&format!("GET {path}"), host, fields),
        }
    }

    fn address(&self) -> String {
        format!("127.0.0.{}", self.from)
    }
}

/// The kind of a wrong answer, where it is wrong.
fn fault(page: &Page, visit: &Visit, reply: &Reply) -> Option<&'static str> {
    let address = visit.address();
    let wanted = page.lines(&visit.head, &address);
    let text = reply.text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('<')).collect();
    if lines.len() != wanted.len() {
        return Some("no page of the application");
    }
    let of_effect = page.effect.map_or("status", |(fact, _, _)| fact.kind());
    let facts = page.reads.iter().map(|fact| fact.kind());
    let kinds = facts.chain([of_effect]);
    for ((kind, wanted), line) in kinds.zip(&wanted).zip(&lines) {
        if wanted == line {
            continue;
        }
        return Some(match shows_another_address(page, line) {
            true => "the address of another visitor",
            false => kind,
        });
    }
    let effect = page.effect_for(&visit.head, &address);
    match reply.status.to_string() == effect.status_line()[..3] {
        true => None,
        false => Some(of_effect),
    }
}

/// Whether a wrong line is what the application has for another address: a neutral one is no visitor's.
fn shows_another_address(page: &Page, line: &str) -> bool {
    let is_effect_for_one = matches!(
        page.effect,
        Some((Fact::Address, ..) | (Fact::IsInsider, "yes", _))
    );
    match line.split_once('=') {
        Some(("Address", address)) => address.starts_with("127.0.0.") && address != "127.0.0.1",
        Some(("IsInsider", value)) => value == "yes",
        Some(("effect", effect)) => effect != "None" && is_effect_for_one,
        _ => false,
    }
}

/// All applications are one upstream: the host selects the application, the path the page.
type Pages = BTreeMap<(String, String), Page>;

async fn application(pages: Pages) -> Application {
    let count = AtomicUsize::new(0);
    Application::start(move |request| {
        let key = (request.field("host").to_owned(), request.target.clone());
        let run = count.fetch_add(1, Relaxed);
        let address = request.field("x-real-ip");
        match pages.get(&key) {
            Some(page) => page.answer(&request.head, address, run),
            None => Script::page("", format!("no such page: {key:?}")),
        }
    })
    .await
}

/// Answers so far.
#[derive(Default)]
struct Results {
    from_memory: u64,
    /// Wrong answers by kind.
    faults: BTreeMap<&'static str, u64>,
    examples: BTreeMap<&'static str, Vec<String>>,
    /// Cookies that visitors were given.
    cookies: HashSet<String>,
}

impl Results {
    fn add(&mut self, page: &Page, visit: &Visit, reply: &Reply) {
        self.from_memory += u64::from(is_from_memory(reply));
        let cookie = reply.field("set-cookie").to_owned();
        let is_own = cookie.is_empty() || self.cookies.insert(cookie);
        let kind = match is_own {
            true => fault(page, visit, reply),
            false => Some("the session of another visitor"),
        };
        let Some(kind) = kind else {
            return;
        };
        *self.faults.entry(kind).or_default() += 1;
        let examples = self.examples.entry(kind).or_default();
        if examples.len() < MAX_EXAMPLES {
            examples.push(example(page, visit, reply));
        }
    }

    /// Wrong answers of a kind, which are not counted any more, with examples.
    fn take(&mut self, kind: &str) -> (u64, String) {
        let count = self.faults.remove(kind).unwrap_or_default();
        let examples = self.examples.remove(kind).unwrap_or_default();
        (count, examples.join("\n\n"))
    }
}

fn example(page: &Page, visit: &Visit, reply: &Reply) -> String {
    let address = visit.address();
    let wanted = page.lines(&visit.head, &address).join("\n");
    let (head, got, cache) = (&visit.head, reply.text(), reply.x_cache());
    let status = reply.status;
    format!(
        "{page:?}\n--- from {address}\n{head}--- wanted\n{wanted}\n--- got {status} {cache}\n{got}"
    )
}

const PATHS: [&str; 3] = ["/", "/news/1", "/search?q=a"];

/// Visits of one application, some at the same time, and purges between them.
async fn visit_application(
    site: &Site,
    host: &str,
    pages: &Pages,
    random: &mut Random,
    results: &mut Results,
) {
    let mut left = VISITS_EACH;
    while left > 0 {
        if random.one_in(100) {
            site.purge().await;
        }
        let path = random.one_of(&PATHS);
        let page = &pages[&(host.to_owned(), path.to_owned())];
        let at_once = match random.one_in(6) {
            true => left.min(4),
            false => 1,
        };
        left -= at_once;
        let visits: Vec<Visit> = (0..at_once)
            .map(|_| Visit::random(random, host, path))
            .collect();
        let replies = visits.iter().map(|visit| {
            let (port, from, head) = (site.port, visit.from, visit.head.clone());
            tokio::spawn(async move { ask_port(port, from, &head).await })
        });
        let replies: Vec<_> = replies.collect();
        for (visit, reply) in visits.iter().zip(replies) {
            results.add(page, visit, &reply.await.expect("no panic"));
        }
    }
}

#[tokio::test]
async fn random_visitors_get_what_random_applications_give_to_their_own_requests() {
    let seed = from_environment("MAYFLY_SEED", u64::from(std::process::id()) + 1);
    let visits = from_environment("MAYFLY_VISITS", VISITS);
    let mut random = Random::new(seed);
    let hosts = (0..visits.div_ceil(VISITS_EACH)).map(|nth| format!("application{nth}.test"));
    let hosts: Vec<String> = hosts.collect();
    let mut pages = Pages::new();
    for host in &hosts {
        for path in PATHS {
            let key = (host.clone(), path.to_owned());
            pages.insert(key, Page::random(&mut random));
        }
    }
    let application = application(pages.clone()).await;
    let lasting = Site::before(&application, "1h").await;
    let brief = Site::before(&application, "20ms").await;
    let mut results = Results::default();
    for (nth, host) in hosts.iter().enumerate() {
        let site = [&lasting, &brief][nth % 2];
        visit_application(site, host, &pages, &mut random, &mut results).await;
    }
    let (from_memory, faults) = (results.from_memory, &results.faults);
    println!("seed {seed}: {visits} visits, {from_memory} from memory, wrong {faults:?}");
    for (kind, most) in TOLERATED {
        let (count, examples) = results.take(kind);
        assert!(
            count * 1000 <= most * visits,
            "seed {seed}: {count} of kind {kind}\n{examples}"
        );
    }
    let faults = results.faults;
    let examples: Vec<String> = results.examples.into_values().flatten().collect();
    let examples = examples.join("\n\n");
    assert!(faults.is_empty(), "seed {seed}: {faults:?}\n{examples}");
    // Most applications read something, and most visitors are new to each of their pages.
    assert!(from_memory * 25 > visits, "{from_memory} from memory");
}

/// Enough for each value of the visitors' fields to be seen once in each class of User-Agents.
const WARM_UP_VISITS: usize = 80;

#[tokio::test]
async fn applications_that_read_nothing_are_answered_from_memory() {
    let seed = from_environment("MAYFLY_SEED", u64::from(std::process::id()) + 1);
    let mut random = Random::new(seed);
    let hosts = ["one.test", "two.test", "three.test"];
    let pages = hosts.map(|host| ((host.to_owned(), "/".to_owned()), Page::default()));
    let application = application(Pages::from(pages)).await;
    let site = Site::before(&application, "1h").await;
    for host in hosts {
        let mut from_memory = 0;
        for nth in 0..WARM_UP_VISITS + 100 {
            let visit = Visit::usual(&mut random, host, "/");
            let reply = ask_port(site.port, visit.from, &visit.head).await;
            let is_counted = nth >= WARM_UP_VISITS && is_from_memory(&reply);
            from_memory += u64::from(is_counted);
        }
        assert!(from_memory >= 95, "seed {seed}: {from_memory} of 100");
    }
}
