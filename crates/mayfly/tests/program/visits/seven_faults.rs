//! Faults of answers that the application gave to a request of the server in place of the visitor's
//! own: one-time links that were used up, sessions that cost two runs, answers that depend on fields
//! that were not sent, and pages for one address. Old copies that stayed are in `old_copies.rs`.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

use testkit::fake_http::{Request, Script};
use testkit::serving::FolderServer;

use super::{Application, BROWSERS, Browser, Mark, Site, answer_text, chrome, settle};
use crate::attacks::random::Random;
use crate::has_php_fpm;

const HTML: &str = "Content-Type: text/html\r\n";

/// Fields of applications with the visitor, or the audience of the page.
pub const PERSONAL_FIELDS: [&str; 9] = [
    "X-Tenant",
    "X-Shop-Key",
    "DOLAPIKEY",
    "App-Token",
    "OCS-APIRequest",
    "phpipam-token",
    "Session-Token",
    "GROCY-API-KEY",
    "X-Invented",
];

fn answer(line: &str, fields: &str, body: &str) -> Script {
    Script::new().raw(answer_text(line, fields, body))
}

// One-time links.

/// The first run for an address uses up the link it names.
async fn one_time_links(line: &'static str, fields: &'static str) -> Application {
    let used = Mutex::new(HashSet::new());
    Application::start(move |request| {
        let is_first = used
            .lock()
            .expect("no panic")
            .insert(request.target.clone());
        match is_first {
            true => answer(line, fields, "ok"),
            false => answer("410 Gone", HTML, "used"),
        }
    })
    .await
}

/// Each browser has a link of its own, in each place where a link can have its secret.
async fn every_visitor_uses_their_own_link(line: &'static str, answer_fields: &'static str) {
    let application = one_time_links(line, answer_fields).await;
    let site = Site::before(&application, "1h").await;
    for (from, browser) in (1..).zip(&BROWSERS) {
        for place in ["/use?token=x", "/confirm/x", "/?key=x&mail=a"] {
            let mark = Mark::next();
            let path = format!("{place}{from}");
            let fields = browser.fields(mark, "site.test");
            let reply = site.get(from, &path, &fields).await;
            settle().await;
            let seen = (reply.status.to_string(), reply.text());
            let wanted = (line[..3].to_owned(), "ok".to_owned());
            let name = browser.name;
            assert_eq!(seen, wanted, "{line}, {answer_fields}: {path} of {name}");
            assert_eq!(application.own_runs(mark), 1, "{path} of {name}");
        }
    }
    assert_eq!(application.runs(), 3 * BROWSERS.len());
}

#[tokio::test]
async fn one_time_link_with_a_session_works() {
    let fields = "Content-Type: text/html\r\nSet-Cookie: session=1; HttpOnly\r\n";
    every_visitor_uses_their_own_link("200 OK", fields).await;
}

#[tokio::test]
async fn one_time_link_with_a_session_of_php_works() {
    let fields = "Content-Type: text/html\r\nSet-Cookie: PHPSESSID=5c1; path=/\r\n\
        Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n\
        Cache-Control: no-store, no-cache, must-revalidate\r\nPragma: no-cache\r\n";
    every_visitor_uses_their_own_link("200 OK", fields).await;
}

#[tokio::test]
async fn one_time_link_that_redirects_works() {
    for line in ["302 Found", "303 See Other", "307 Temporary Redirect"] {
        every_visitor_uses_their_own_link(line, "Location: /welcome\r\n").await;
        let fields = "Location: /welcome\r\nSet-Cookie: session=1\r\n";
        every_visitor_uses_their_own_link(line, fields).await;
    }
}

#[tokio::test]
async fn one_time_link_that_may_not_be_stored_works() {
    for control in ["no-cache", "no-store", "private", "max-age=0"] {
        let fields = match control {
            "no-cache" => "Cache-Control: no-cache\r\n",
            "no-store" => "Cache-Control: no-store\r\n",
            "private" => "Cache-Control: private\r\n",
            _ => "Cache-Control: max-age=0\r\n",
        };
        every_visitor_uses_their_own_link("200 OK", fields).await;
    }
}

#[tokio::test]
async fn one_time_link_that_looks_like_a_page_works() {
    every_visitor_uses_their_own_link("200 OK", HTML).await;
}

#[tokio::test]
async fn one_time_link_of_a_php_application_works() {
    if !has_php_fpm() {
        return;
    }
    let tokens = FolderServer::folder();
    let place = tokens.path().to_str().expect("a plain path");
    let begin = format!("<?php $token = '{place}/' . basename($_GET['token']);");
    let session = format!("{begin} session_start(); echo @unlink($token) ? 'ok' : 'used';");
    let plain = format!("{begin} echo @unlink($token) ? 'ok' : 'used';");
    let redirect =
        format!("{begin} header('Location: /' . (@unlink($token) ? 'ok' : 'used')); echo 'to';");
    let files = [
        ("session.php", &*session),
        ("plain.php", &*plain),
        ("redirect.php", &*redirect),
    ];
    let site = Site::with_php(&files, "1h").await;
    // PHP may run as another account, and removes the files.
    make_writable_by_all(tokens.path());
    for (from, browser) in (1..).zip(&BROWSERS) {
        for script in ["session", "plain", "redirect"] {
            let token = format!("{script}{from}");
            std::fs::write(tokens.path().join(&token), "").expect("a file");
            let fields = browser.fields(Mark::next(), "site.test");
            let path = format!("/{script}.php?token={token}");
            let reply = site.get(from, &path, &fields).await;
            let seen = match script {
                "redirect" => reply.field("location").replace("http://site.test", ""),
                _ => format!("/{}", reply.text()),
            };
            assert_eq!(seen, "/ok", "{path} of {}", browser.name);
        }
    }
}

fn make_writable_by_all(folder: &Path) {
    let mode = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder, mode).expect("a mode");
}

// Sessions.

const CRAWLED_PAGES: usize = 19;

/// A crawler is given a session by each page, since it never sends one.
#[tokio::test]
async fn a_crawl_of_pages_with_sessions_costs_one_run_for_each_page() {
    for fields in [
        "Content-Type: text/html\r\nSet-Cookie: session=1\r\n",
        "Content-Type: text/html\r\nSet-Cookie: PHPSESSID=5c1; path=/\r\n\
         Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n\
         Cache-Control: no-store, no-cache, must-revalidate\r\nPragma: no-cache\r\n",
    ] {
        for browser in &BROWSERS {
            let runs = runs_of_two_crawls(fields, browser).await;
            let wanted = [CRAWLED_PAGES, 2 * CRAWLED_PAGES];
            assert_eq!(runs, wanted, "{} with {fields}", browser.name);
        }
    }
}

/// The runs after one crawl and after two.
async fn runs_of_two_crawls(fields: &'static str, browser: &Browser) -> [usize; 2] {
    let application = Application::start(|_| Script::page(fields, "page")).await;
    let site = Site::before(&application, "1h").await;
    let mut runs = [0; 2];
    for runs in &mut runs {
        for page in 0..CRAWLED_PAGES {
            let fields = browser.fields(Mark::next(), "site.test");
            site.get(1, &format!("/page/{page}"), &fields).await;
        }
        settle().await;
        *runs = application.runs();
    }
    runs
}

// Fields that were not sent.

/// An application that gives files only to visitors of its own pages.
#[tokio::test]
async fn a_download_that_checks_the_referer_is_given_to_each_visitor_of_the_site() {
    let application = Application::start(|request| {
        match request.field("referer").starts_with("http://site.test/") {
            true => answer("200 OK", "Content-Type: text/html\r\n", "file"),
            false => answer("403 Forbidden", HTML, "no"),
        }
    })
    .await;
    let referers = [
        ("Referer: http://site.test/downloads\r\n", 200),
        ("Referer: http://other.test/\r\n", 403),
        ("", 403),
    ];
    for seed in 1..=6 {
        let site = Site::before(&application, "1h").await;
        let mut random = Random::new(seed);
        for nth in 0..60 {
            let (referer, status) = referers[random.below(referers.len())];
            let from = 1 + u8::try_from(random.below(4)).expect("small");
            let path = format!("/file/{}", random.below(3));
            let fields = format!("{}{referer}", BROWSERS[6].fields(Mark::next(), ""));
            let reply = site.get(from, &path, &fields).await;
            assert_eq!(
                reply.status,
                status,
                "seed {seed}, visit {nth}: {path} with {referer:?}, {}",
                reply.x_cache()
            );
        }
    }
}

#[tokio::test]
async fn each_key_of_an_interface_has_its_own_answers() {
    let application = Application::start(|request| {
        let values = PERSONAL_FIELDS.map(|name| request.field(name).to_owned());
        match values.iter().find(|value| !value.is_empty()) {
            Some(value) => Script::page(HTML, format!("for {value}")),
            None => answer("401 Unauthorized", HTML, "no key"),
        }
    })
    .await;
    let site = Site::before(&application, "1h").await;
    let mut visits = 0;
    for name in PERSONAL_FIELDS {
        let values = ["", "", "", "acme", "bee", "acme", "", "bee"];
        let of_first_path = values.map(|value| ("first", value));
        let of_second_path = values.map(|value| ("second", value));
        // The second begins with a key.
        for (path, value) in of_first_path.iter().chain(&of_second_path[3..]) {
            let path = format!("/api/{path}/{name}");
            let field = match *value {
                "" => String::new(),
                value => format!("{name}: {value}\r\n"),
            };
            let reply = site.get(1, &path, &(chrome() + &field)).await;
            let wanted = match *value {
                "" => (401, "no key".to_owned()),
                value => (200, format!("for {value}")),
            };
            assert_eq!((reply.status, reply.text()), wanted, "{name}: {value}");
            visits += 1;
        }
    }
    settle().await;
    assert_eq!(application.runs(), visits, "one run for each visit");
}

/// The shop of a tenant, where visitors without the field see the shop of all.
#[tokio::test]
async fn a_tenant_is_answered_by_their_own_shop() {
    let application = Application::start(|request| {
        let tenant = request.field("x-tenant").to_owned();
        Script::page(HTML, format!("shop of {tenant}."))
    })
    .await;
    let site = Site::before(&application, "1h").await;
    for round in 0..4 {
        for from in 1..4 {
            for tenant in ["", "acme", "bee"] {
                let field = match tenant {
                    "" => String::new(),
                    tenant => format!("X-Tenant: {tenant}\r\n"),
                };
                let reply = site.get(from, "/shop", &(chrome() + &field)).await;
                let text = reply.text();
                assert_eq!(text, format!("shop of {tenant}."), "round {round}");
            }
        }
    }
}

// Languages and cookies.

/// Visitors come in a random order; each has to see the page that `wanted` returns for their fields.
async fn each_sees_their_own(
    fields: &[&str],
    answer: impl Fn(&Request) -> String + Send + Sync + Clone + 'static,
    wanted: impl Fn(&str) -> String,
) {
    for seed in 1..=6 {
        let answer = answer.clone();
        let application =
            Application::start(move |request| Script::page(HTML, answer(request))).await;
        let site = Site::before(&application, "1h").await;
        let mut random = Random::new(seed);
        for nth in 0..120 {
            let own = random.one_of(fields);
            let from = 1 + u8::try_from(random.below(4)).expect("small");
            let path = format!("/page/{}", random.below(3));
            let browser = [&BROWSERS[5], &BROWSERS[6], &BROWSERS[7]][random.below(3)];
            let all = browser.fields(Mark::next(), "site.test") + own;
            let reply = site.get(from, &path, &all).await;
            assert_eq!(
                reply.text(),
                wanted(own),
                "seed {seed}, visit {nth} of {path} by {} with {own:?}, {}",
                browser.name,
                reply.x_cache()
            );
        }
    }
}

/// The language of a site that has three, English where nothing is known.
fn language(accepted: &str) -> &'static str {
    let mut tags = accepted.split([',', ';', '-']).map(str::trim);
    let known = ["de", "en", "fr"];
    let named = tags.find_map(|tag| known.into_iter().find(|known| *known == tag));
    named.unwrap_or("en")
}

#[tokio::test]
async fn each_visitor_reads_their_language_where_the_site_says_no_vary() {
    let fields = [
        "Accept-Language: de-AT,de;q=0.9,en;q=0.5\r\n",
        "Accept-Language: en-US,en;q=0.9\r\n",
        "Accept-Language: fr\r\n",
        "",
    ];
    let answer = |request: &Request| language(request.field("accept-language")).to_owned();
    each_sees_their_own(&fields, answer, |fields| {
        let value = fields.trim_start_matches("Accept-Language: ");
        language(value.trim()).to_owned()
    })
    .await;
}

#[tokio::test]
async fn the_banner_is_gone_for_visitors_who_have_agreed_and_there_for_others() {
    let fields = [
        "Cookie: cookie_consent=1\r\n",
        "Cookie: _ga=GA1.1.5; cookie_consent=1\r\n",
        "Cookie: _ga=GA1.1.5\r\n",
        "",
    ];
    let page = |cookies: &str| match cookies.contains("cookie_consent=1") {
        true => "page".to_owned(),
        false => "page with banner".to_owned(),
    };
    let answer = move |request: &Request| page(request.field("cookie"));
    each_sees_their_own(&fields, answer, page).await;
}

#[tokio::test]
async fn each_visitor_has_the_colours_of_their_cookie() {
    let fields = [
        "Cookie: mp_theme=dark\r\n",
        "Cookie: mp_theme=light\r\n",
        "Cookie: _ga=GA1.1.5; mp_theme=dark\r\n",
        "",
    ];
    let page = |cookies: &str| match cookies {
        cookies if cookies.contains("mp_theme=dark") => "dark".to_owned(),
        cookies if cookies.contains("mp_theme=light") => "light".to_owned(),
        _ => "as the system".to_owned(),
    };
    let answer = move |request: &Request| page(request.field("cookie"));
    each_sees_their_own(&fields, answer, page).await;
}

// The client's address.

/// The address of the visitor who sees more.
const INSIDER: u8 = 2;

/// Each order of three visitors, several times on an address of its own.
async fn only_the_insider_sees_more(site: &Site, claim: &str) {
    for (nth, order) in [[1, 2, 3], [2, 1, 3], [3, 2, 1], [2, 3, 1]]
        .into_iter()
        .enumerate()
    {
        let path = format!("/index.php?page={nth}");
        for round in 0..4 {
            for from in order {
                let claim = match from {
                    INSIDER => "",
                    _ => claim,
                };
                let reply = site.get(from, &path, &(chrome() + claim)).await;
                let text = reply.text();
                assert!(text.contains("page"), "{text}");
                let sees_more = text.contains("inside");
                let is_first = round == 0 && order[0] == from;
                assert!(
                    !sees_more || from == INSIDER,
                    "{order:?}, round {round}: 127.0.0.{from} sees it, {}",
                    reply.x_cache()
                );
                assert!(
                    sees_more || from != INSIDER || !is_first,
                    "{order:?}: the first visit is an own run"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_page_for_one_address_is_not_shown_to_others() {
    for field in ["x-real-ip", "x-forwarded-for"] {
        let application = Application::start(move |request| {
            let text = match request.field(field) == "127.0.0.2" {
                true => "page, inside",
                false => "page",
            };
            Script::page(HTML, text)
        })
        .await;
        let site = Site::before(&application, "1h").await;
        only_the_insider_sees_more(&site, "").await;
        let site = Site::before(&application, "1h").await;
        let claim = "X-Forwarded-For: 127.0.0.2\r\nX-Real-IP: 127.0.0.2\r\n";
        only_the_insider_sees_more(&site, claim).await;
    }
}

#[tokio::test]
async fn a_page_of_php_for_one_address_is_not_shown_to_others() {
    if !has_php_fpm() {
        return;
    }
    let page = "<?php echo 'page', $_SERVER['REMOTE_ADDR'] === '127.0.0.2' ? ', inside' : '';";
    let site = Site::with_php(&[("index.php", page)], "1h").await;
    only_the_insider_sees_more(&site, "").await;
}

/// A page that prints the address gives each visitor their own, and none is stored for others.
#[tokio::test]
async fn a_page_that_prints_the_address_prints_that_of_its_visitor() {
    let application = Application::start(|request| {
        let address = request.field("x-real-ip");
        Script::page(HTML, format!("you are {address}."))
    })
    .await;
    let site = Site::before(&application, "1h").await;
    for _ in 0..4 {
        for from in [1, 2, 3] {
            let reply = site.get(from, "/page", &chrome()).await;
            assert_eq!(reply.text(), format!("you are 127.0.0.{from}."));
        }
    }
}
