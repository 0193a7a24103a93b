//! Random requests, many alike in the parts of the key and each with values of its own in
//! everything else. The application shows all that it is sent; no visitor may find another
//! visitor's values in a page. Pages end by purges, counted, and not with time: how many visits are
//! answered from memory does not depend on the machine.
//!
//! `MAYFLY_PAIRS=200000` asks for as many pairs; `MAYFLY_SEED` repeats a run.

use testkit::client::{Client, Reply};
use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::running::RunningServer;

use super::random::Random;
use super::showing_requests;
use crate::start;

/// Pairs without `MAYFLY_PAIRS`.
const PAIRS: u64 = 2_000;
/// Visits between two purges of everything.
const VISITS_OF_A_PAGE: u64 = 1_000;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// One visitor's request. Values that they alone have are marked `v<number>v`.
struct Visit {
    text: String,
    mark: String,
    host: &'static str,
    language: Option<&'static str>,
    is_mobile: bool,
    page: &'static str,
}

const HOSTS: &[&str] = &["site.test", "other.test"];
const PAGES: &[&str] = &["/a", "/b/c", "/search"];
const ARGUMENTS: &[&str] = &[
    "",
    "p=1",
    "p=2",
    "utm_source=@&p=1",
    "utm%5Fsource=@",
    "gclid[]=@&p=2",
];
const LANGUAGES: &[&str] = &["de", "fr"];
const HARMLESS: &[&str] = &["_ga=@", "_gat=@; _ga_X=@"];
const UNKNOWN: &[&str] = &["_fbp=@; _gid=@", "theme=@", "x.y[z]=@"];
const PERSONAL: &[&str] = &["session=@", "session.x=@", "a=b; session", "session_[1]=@"];
/// Fields that do not concern a page.
const FIELDS: &[&str] = &[
    "X-Forwarded-Host: @",
    "X-Forwarded-Proto: @",
    "X-Forwarded-For: @",
    "X-Forwarded-Prefix: /@",
    "Forwarded: host=@",
    "X-Host: @",
    "Accept-Charset: @",
    "Accept-Encoding: @",
    "Range: bytes=0-1",
    "If-None-Match: \"@\"",
    "Cache-Control: no-cache, @",
    "Pragma: @",
    "Via: 1.1 @",
    "Sec-CH-UA: \"@\"",
    "TE: @",
    "Content-Type: @",
    "traceparent: @",
];
/// Fields that may shape a page: a visitor who sends one that is new has a page of their own first.
const TRIED_FIELDS: &[&str] = &[
    "Referer: http://@/",
    "Origin: http://@",
    "Accept-Language: @",
    "Accept: text/html, x/@",
    "DNT: @",
    "From: @",
    "Save-Data: @",
    "Sec-Fetch-Site: @",
];
/// The agents that the shared request sends in place of its visitor's.
const SHARED_AGENTS: [&str; 2] = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Mayfly",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36 Mayfly",
];
const OWN_FIELDS: &[&str] = &[
    "Authorization: Basic @",
    "X-Api-Key: @",
    "Remote-User: @",
    "X-HTTP-Method-Override: @",
    "X-Requested-With: @",
];

fn visit(number: u64, random: &mut Random) -> Visit {
    let mark = format!("v{number}v");
    let (host, page) = (random.one_of(HOSTS), random.one_of(PAGES));
    let arguments = random.one_of(ARGUMENTS).replace('@', &mark);
    let question = if arguments.is_empty() { "" } else { "?" };
    let target = format!("{page}{question}{arguments}");
    let is_mobile = random.one_in(3);
    // The requests of every other visitor are like the shared one, and get the stored page.
    let is_plain = random.one_in(2);
    let agent = match is_mobile {
        _ if is_plain => SHARED_AGENTS[usize::from(is_mobile)].to_owned(),
        true => format!("Mozilla/5.0 (Linux; Android 14) {mark} Mobile"),
        false => format!("Mozilla/5.0 (X11; Linux) {mark}"),
    };
    let mut text = match random.one_in(8) {
        true => format!("GET http://{host}{target} HTTP/1.1\r\nHost: {mark}.test\r\n"),
        false => format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n"),
    };
    text.push_str(&format!("User-Agent: {agent}\r\n"));
    let mut cookies = Vec::new();
    let language = random.one_in(3).then(|| random.one_of(LANGUAGES));
    cookies.extend(language.map(|language| format!("lang={language}")));
    if random.one_in(2) {
        cookies.push(random.one_of(HARMLESS).replace('@', &mark));
    }
    if !is_plain && random.one_in(2) {
        cookies.push(random.one_of(UNKNOWN).replace('@', &mark));
    }
    if random.one_in(10) {
        cookies.push(random.one_of(PERSONAL).replace('@', &mark));
    }
    if !cookies.is_empty() {
        text.push_str(&format!("Cookie: {}\r\n", cookies.join("; ")));
    }
    for _ in 0..random.below(6) {
        text.push_str(&format!(
            "{}\r\n",
            random.one_of(FIELDS).replace('@', &mark)
        ));
    }
    for _ in 0..random.below(if is_plain { 1 } else { 3 }) {
        let field = random.one_of(TRIED_FIELDS).replace('@', &mark);
        text.push_str(&format!("{field}\r\n"));
    }
    if random.one_in(12) {
        let invented = random.below(1_000_000);
        text.push_str(&format!(
            "X-New-{invented}: {mark}\r\nNew{invented}: {mark}\r\n"
        ));
    }
    if random.one_in(12) {
        text.push_str(&format!(
            "{}\r\n",
            random.one_of(OWN_FIELDS).replace('@', &mark)
        ));
    }
    text.push_str("\r\n");
    Visit {
        text,
        mark,
        host,
        language,
        is_mobile,
        page,
    }
}

/// Marks in a text.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            let number = word
                .strip_prefix('v')
                .and_then(|rest| rest.strip_suffix('v'));
            number.is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
            })
        })
}

/// Returns the fault of the answer to a visit.
fn fault(visit: &Visit, reply: &Reply) -> Option<&'static str> {
    let text = reply.text();
    if marks(&text).any(|mark| mark != visit.mark) {
        return Some("of another visitor");
    }
    // Cut by a range, or not modified: there is nothing of the request to see.
    if reply.status != 200 {
        return None;
    }
    let seen = text.to_ascii_lowercase();
    let has_right_language = |language: &&str| {
        seen.contains(&format!("lang={language}")) == (visit.language == Some(*language))
    };
    match () {
        () if !seen.contains(visit.host) => Some("another host"),
        () if !seen.contains(visit.page) => Some("another page"),
        () if !LANGUAGES.iter().all(has_right_language) => Some("another language"),
        () if seen.contains("mobile") != visit.is_mobile => Some("another class"),
        () => None,
    }
}

/// Answers from memory, and the faults of answers.
struct PairResults {
    hits: u64,
    faults: Vec<(&'static str, String)>,
}

/// Asks for `pairs` pairs on one connection.
async fn run(server: &RunningServer, pairs: u64) -> PairResults {
    let seed = from_environment("MAYFLY_SEED", u64::from(std::process::id()) + 1);
    let mut random = Random::new(seed);
    let mut client: Option<Client> = None;
    let mut found = PairResults {
        hits: 0,
        faults: Vec::new(),
    };
    for number in 0..pairs * 2 {
        if (number + 1).is_multiple_of(VISITS_OF_A_PAGE) {
            let reply = server.target().ask("PURGE", "/", "", "").await;
            assert_eq!(reply.status, 200);
        }
        let visit = visit(number, &mut random);
        let connection = match &mut client {
            Some(client) => client,
            None => client.insert(server.connect().await),
        };
        connection.send(&visit.text).await;
        let reply = connection.receive(false).await.expect("a response");
        if let Some(fault) = fault(&visit, &reply) {
            let (sent, got) = (&visit.text, reply.text());
            let context = format!("seed {seed}\n--- sent\n{sent}--- got\n{got}");
            found.faults.push((fault, context));
        }
        found.hits += u64::from(reply.x_cache() == "HIT");
        if reply.field("connection") == "close" {
            client = None;
        }
    }
    let (hits, faults) = (found.hits, found.faults.len());
    println!("seed {seed}: {pairs} pairs, {hits} answers from memory, {faults} faults");
    found
}

const RULES: &str = "cache_shared on; cache_unknown_cookies remove; cache_key_cookies lang;\n\
    cache_personal_cookies session*; cache_ignore_args utm_* gclid; cache_ignore_cookies _ga*;\n\
    add_header X-Cache $upstream_cache_status always; keepalive_requests 100000;\n";

#[tokio::test]
async fn random_visitors_of_an_http_upstream_never_share_what_differs() {
    let upstream = FakeHttp::start(|request| {
        Script::page(
            "Content-Type: text/html\r\nVary: Accept-Language, Save-Data\r\nETag: \"e\"\r\n",
            &request.head,
        )
    })
    .await;
    let server = start(&format!(
            "proxy_cache_path %%/pages keys_zone=pages:1m memory=64m;\n\
             server {{ listen unix:%%/http; server_name site.test other.test; {RULES} proxy_cache pages; proxy_cache_valid 1h; proxy_cache_purge PURGE purge_all from unix:;\n\
             proxy_http_version 1.1; proxy_set_header Connection '';\n\
             proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
             proxy_set_header X-Everything \"$request $http_referer $http_x_forwarded_host $args $cookie__ga $http_user_agent\";\n\
             location / {{ proxy_pass http://{}; }} }}",
            upstream.address()
        ),
    )
    .await;
    let pairs = from_environment("MAYFLY_PAIRS", PAIRS);
    let found = run(&server, pairs).await;
    assert_eq!(found.faults, []);
    assert!(found.hits > pairs / 4, "too few hits to say anything");
}

#[tokio::test]
async fn random_visitors_of_php_never_share_what_differs() {
    let php = FakePhp::tcp(|request| {
        let seen: Vec<String> = request
            .params
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        fake_php::Script::page("Content-Type: text/html\r\n", seen.join("\n"))
    })
    .await;
    let server = start(&format!(
        "fastcgi_cache_path %%/pages keys_zone=pages:1m memory=64m;\n\
             server {{ listen unix:%%/http; server_name site.test other.test; {RULES} fastcgi_cache pages; fastcgi_cache_valid 1h; fastcgi_cache_purge PURGE purge_all from unix:;\n\
             set $referring \"<$http_referer>\";\n\
             fastcgi_param REQUEST_URI $request_uri; fastcgi_param QUERY_STRING $args;\n\
             fastcgi_param REMOTE_USER $remote_user; fastcgi_param REQUEST $request;\n\
             fastcgi_param EVERYTHING \"$http_x_forwarded_host $cookie__ga $http_user_agent\";\n\
             location / {{ fastcgi_pass {}; }} }}",
        php.address()
    ))
    .await;
    let pairs = from_environment("MAYFLY_PAIRS", PAIRS);
    let found = run(&server, pairs).await;
    assert_eq!(found.faults, []);
    // The value that `set` gives a field is in the key: a request with such a field shares no
    // response.
    assert!(found.hits > pairs / 4, "too few hits to say anything");
}

/// So that the two above can be believed.
#[tokio::test]
async fn the_check_finds_what_is_shared_without_care() {
    let upstream = showing_requests().await;
    let server = start(&format!(
        "proxy_cache_path %%/pages keys_zone=pages:1m memory=64m;\n\
             server {{ listen unix:%%/http; proxy_cache pages; proxy_cache_valid 1h;\n\
             proxy_set_header Host $host;\n\
             location / {{ proxy_pass http://{}; }} }}",
        upstream.address()
    ))
    .await;
    let faults = run(&server, 200).await.faults;
    assert!(
        faults
            .iter()
            .any(|(fault, _)| *fault == "of another visitor")
    );
}
