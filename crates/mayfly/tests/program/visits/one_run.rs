//! One visit is one run: the application runs at most once for a visitor's request, whatever it
//! answers. Each answer is asked for by the usual browsers while nothing is stored, again, after a
//! purge, and after its lifetime.

use std::collections::HashMap;
use std::sync::Arc;

use testkit::client::Reply;
use testkit::fake_http::{Request, Script};
use tokio::sync::Semaphore;

use super::{Application, BROWSERS, Browser, Mark, Site, is_from_memory, settle};
use crate::gzip;

const PAGE: &str = "<p>a page of the application</p>";
/// Above every buffer between application and visitor.
const LARGE_BODY_BYTES: usize = 2 << 20;
/// The classes of User-Agents: each has a copy of a page, and so a shared run.
const CLASSES: usize = 3;
/// The values of `Accept-Language` in [`BROWSERS`], with its absence.
const LANGUAGES: usize = 6;
/// The values of `Cookie`, with its absence.
const COOKIES: usize = 3;

/// How the end of a body is announced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Length,
    Chunked,
    /// The connection ends before the body does.
    Truncated,
}

/// An answer of the application, the same for each run.
#[derive(Clone)]
struct Shape {
    /// The host is named for it.
    name: &'static str,
    status_line: &'static str,
    fields: &'static str,
    body: Vec<u8>,
    ending: Ending,
    /// Method of the visits.
    method: &'static str,
    /// More field lines of the visits.
    asks: &'static str,
    /// The answer may never be shared, so that there is nothing to try with a shared request.
    is_never_shared: bool,
    /// The most copies of it in a store.
    copies: usize,
}

impl Shape {
    fn new(name: &'static str, status_line: &'static str, fields: &'static str) -> Shape {
        Shape {
            name,
            status_line,
            fields,
            body: PAGE.into(),
            ending: Ending::Length,
            method: "GET",
            asks: "",
            is_never_shared: false,
            copies: CLASSES,
        }
    }

    /// One that is for its visitor alone.
    fn own(name: &'static str, status_line: &'static str, fields: &'static str) -> Shape {
        Shape {
            is_never_shared: true,
            ..Shape::new(name, status_line, fields)
        }
    }

    fn host(&self) -> String {
        format!("{}.test", self.name)
    }

    fn status(&self) -> u16 {
        self.status_line[..3].parse().expect("a status")
    }

    fn answer(&self, request: &Request) -> Script {
        let tag = "\"of-the-page\"";
        if self.name == "conditional" && request.field("if-none-match") == tag {
            return Script::new().raw(format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n"));
        }
        if self.name == "range" && request.field("range") == "bytes=0-1" {
            return Script::new().raw(format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Type: text/html\r\n\
                 Content-Range: bytes 0-1/{}\r\nContent-Length: 2\r\n\r\n<p",
                self.body.len()
            ));
        }
        let (line, fields) = (self.status_line, self.fields);
        let begin = format!("HTTP/1.1 {line}\r\n{fields}");
        let length = self.body.len();
        let head = match self.ending {
            Ending::Chunked => format!("{begin}Transfer-Encoding: chunked\r\n\r\n"),
            Ending::Length | Ending::Truncated => {
                format!("{begin}Content-Length: {length}\r\n\r\n")
            }
        };
        let script = Script::new().raw(head);
        if request.method == "HEAD" {
            return script;
        }
        match self.ending {
            Ending::Length => script.raw(&self.body),
            Ending::Chunked => script
                .raw(format!("{length:x}\r\n"))
                .raw(&self.body)
                .raw("\r\n0\r\n\r\n"),
            Ending::Truncated => script.raw(&self.body[..length / 2]).close(),
        }
    }

    /// Whether a visitor got the application's answer.
    fn is_answered_by(&self, reply: &Reply) -> bool {
        match reply.status {
            206 | 304 if !self.asks.is_empty() => true,
            status if status != self.status() => false,
            _ if self.method == "HEAD" => true,
            _ if self.ending == Ending::Truncated => !reply.is_complete,
            _ => reply.body == plain(&self.body, self.fields),
        }
    }
}

/// A body as its readers see it.
fn plain(body: &[u8], fields: &str) -> Vec<u8> {
    match fields.contains("Content-Encoding: gzip") {
        true => PAGE.into(),
        false => body.to_vec(),
    }
}

const HTML: &str = "Content-Type: text/html\r\n";

/// Counts runs, and collects faults.
struct CheckedVisits<'a> {
    application: &'a Application,
    site: &'a Site,
    faults: Vec<String>,
}

impl CheckedVisits<'_> {
    async fn visit(&mut self, when: &str, shape: &Shape, browser: &Browser) -> Reply {
        let (mark, host) = (Mark::next(), shape.host());
        let fields = browser.fields(mark, &host) + shape.asks;
        let line = format!("{} /page", shape.method);
        let reply = self.site.ask(1, &line, &host, &fields).await;
        let own = self.application.own_runs(mark);
        let shared = self.application.shared_runs(&host);
        let is_right = match (is_from_memory(&reply), reply.x_cache()) {
            (true, _) => own == 0,
            (false, "BYPASS") => own == 1,
            (false, _) => own == 1 || own == 0 && shared > 0,
        };
        if !is_right {
            let cache = reply.x_cache();
            self.fault(when, shape, browser, format!("{own} own runs for {cache}"));
        }
        if !shape.is_answered_by(&reply) {
            let text = reply.text();
            let begin: String = text.chars().take(80).collect();
            let what = format!("another answer: {} {begin}", reply.status);
            self.fault(when, shape, browser, what);
        }
        reply
    }

    fn fault(&mut self, when: &str, shape: &Shape, browser: &Browser, what: String) {
        let (shape, browser) = (shape.name, browser.name);
        self.faults
            .push(format!("{shape}, {when}, {browser}: {what}"));
    }

    fn bound_shared_runs(&mut self, when: &str, shape: &Shape, most: usize) {
        let shared = self.application.shared_runs(&shape.host());
        let most = match shape.is_never_shared {
            true => 0,
            false => most,
        };
        if shared > most {
            let name = shape.name;
            self.faults
                .push(format!("{name}, {when}: {shared} shared runs of {most}"));
        }
    }

    /// Visits so far have caused no second own run, also later in the background.
    fn bound_own_runs(&mut self) {
        let mut own = HashMap::new();
        for run in self.application.runs.lock().expect("no panic").iter() {
            if let Some(mark) = run.mark {
                *own.entry(mark).or_insert(0) += 1;
                if own[&mark] == 2 {
                    let (host, head) = (&run.host, &run.head);
                    self.faults
                        .push(format!("{host}: two own runs for\n{head}"));
                }
            }
        }
    }
}

async fn application(shapes: &[Shape]) -> Application {
    let shapes: HashMap<String, Shape> = shapes
        .iter()
        .map(|shape| (shape.host(), shape.clone()))
        .collect();
    Application::start(move |request| shapes[request.field("host")].answer(request)).await
}

/// Pages that are kept for long: cold, warm, purged.
async fn faults_of_lasting_pages(shapes: &[Shape]) -> Vec<String> {
    let application = application(shapes).await;
    let site = Site::before(&application, "1h").await;
    let mut checked = CheckedVisits {
        application: &application,
        site: &site,
        faults: Vec::new(),
    };
    for (when, purges) in [("cold", 0), ("warm", 0), ("warmer", 0), ("purged", 1)] {
        if when == "purged" {
            site.purge().await;
        }
        for shape in shapes {
            for browser in &BROWSERS {
                checked.visit(when, shape, browser).await;
            }
        }
        settle().await;
        for shape in shapes {
            checked.bound_shared_runs(when, shape, shape.copies * (purges + 1));
        }
    }
    checked.bound_own_runs();
    checked.faults
}

/// Pages whose lifetime is over at each round of visits.
async fn faults_of_brief_pages(shapes: &[Shape]) -> Vec<String> {
    let application = application(shapes).await;
    let site = Site::before(&application, "20ms").await;
    let mut checked = CheckedVisits {
        application: &application,
        site: &site,
        faults: Vec::new(),
    };
    for round in 1..=4 {
        for shape in shapes {
            for browser in &BROWSERS {
                checked.visit("refreshed", shape, browser).await;
            }
        }
        settle().await;
        for shape in shapes {
            checked.bound_shared_runs("refreshed", shape, round * BROWSERS.len());
        }
    }
    checked.bound_own_runs();
    checked.faults
}

async fn check(shapes: &[Shape]) {
    let mut faults = faults_of_lasting_pages(shapes).await;
    faults.extend(faults_of_brief_pages(shapes).await);
    let count = faults.len();
    assert!(faults.is_empty(), "{count} faults:\n{}", faults.join("\n"));
}

#[tokio::test]
async fn pages_and_errors_cost_one_run_for_each_visit() {
    check(&[
        Shape::new("plain", "200 OK", HTML),
        Shape::new("not-found", "404 Not Found", HTML),
        Shape::new("gone", "410 Gone", HTML),
        Shape::own("broken", "500 Internal Server Error", HTML),
        Shape::own("unavailable", "503 Service Unavailable", HTML),
        Shape::own("forbidden", "403 Forbidden", HTML),
    ])
    .await;
}

#[tokio::test]
async fn redirects_cost_one_run_for_each_visit() {
    check(&[
        Shape::new("moved", "301 Moved Permanently", "Location: /new\r\n"),
        Shape::own("found", "302 Found", "Location: /new\r\n"),
        Shape::own("see-other", "303 See Other", "Location: /new\r\n"),
        Shape::own("temporary", "307 Temporary Redirect", "Location: /new\r\n"),
        Shape::own(
            "found-with-cookie",
            "302 Found",
            "Location: /new\r\nSet-Cookie: session=1\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn answers_with_cookies_cost_one_run_for_each_visit() {
    check(&[
        Shape::own(
            "cookie",
            "200 OK",
            "Content-Type: text/html\r\nSet-Cookie: visited=1; Path=/\r\n",
        ),
        Shape::own(
            "php-session",
            "200 OK",
            "Content-Type: text/html\r\nSet-Cookie: PHPSESSID=5c1; path=/\r\n\
             Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\n\
             Cache-Control: no-store, no-cache, must-revalidate\r\nPragma: no-cache\r\n",
        ),
        Shape::own(
            "cookie-not-found",
            "404 Not Found",
            "Content-Type: text/html\r\nSet-Cookie: visited=1; Path=/\r\n",
        ),
        Shape::own(
            "cookie-public",
            "200 OK",
            "Content-Type: text/html\r\nCache-Control: public, max-age=60\r\nSet-Cookie: visited=1\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn answers_with_cache_control_cost_one_run_for_each_visit() {
    check(&[
        Shape::own(
            "private",
            "200 OK",
            "Content-Type: text/html\r\nCache-Control: private\r\n",
        ),
        Shape::own(
            "no-store",
            "200 OK",
            "Content-Type: text/html\r\nCache-Control: no-store\r\n",
        ),
        // A response that each visit has to validate may be stored.
        Shape {
            copies: 4 * BROWSERS.len(),
            ..Shape::new(
                "no-cache",
                "200 OK",
                "Content-Type: text/html\r\nCache-Control: no-cache\r\n",
            )
        },
        Shape {
            copies: 4 * BROWSERS.len(),
            ..Shape::new(
                "max-age-0",
                "200 OK",
                "Content-Type: text/html\r\nCache-Control: max-age=0\r\n",
            )
        },
        Shape::new(
            "max-age-60",
            "200 OK",
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn answers_with_vary_cost_one_run_for_each_visit() {
    check(&[
        Shape::own(
            "vary-all",
            "200 OK",
            "Content-Type: text/html\r\nVary: *\r\n",
        ),
        Shape {
            copies: CLASSES * COOKIES,
            ..Shape::new(
                "vary-cookie",
                "200 OK",
                "Content-Type: text/html\r\nVary: Cookie\r\n",
            )
        },
        Shape {
            copies: CLASSES * LANGUAGES,
            ..Shape::new(
                "vary-language",
                "200 OK",
                "Content-Type: text/html\r\nVary: Accept-Language\r\n",
            )
        },
        Shape::new(
            "vary-coding",
            "200 OK",
            "Content-Type: text/html\r\nVary: Accept-Encoding\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn bodies_of_each_kind_cost_one_run_for_each_visit() {
    check(&[
        Shape {
            body: Vec::new(),
            ..Shape::new("empty", "200 OK", HTML)
        },
        Shape {
            ending: Ending::Chunked,
            ..Shape::new("chunked", "200 OK", HTML)
        },
        Shape {
            body: vec![b'a'; LARGE_BODY_BYTES],
            ..Shape::new("large", "200 OK", "Content-Type: image/x-large\r\n")
        },
        Shape {
            body: gzip(PAGE),
            ..Shape::new(
                "gzip",
                "200 OK",
                "Content-Type: text/html\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n",
            )
        },
        Shape::new("no-type", "200 OK", ""),
        Shape {
            ending: Ending::Truncated,
            ..Shape::own("truncated", "200 OK", HTML)
        },
    ])
    .await;
}

#[tokio::test]
async fn requests_of_each_kind_cost_one_run_for_each_visit() {
    check(&[
        Shape {
            asks: "Range: bytes=0-1\r\n",
            ..Shape::new("range", "200 OK", HTML)
        },
        Shape {
            asks: "Range: bytes=0-1\r\n",
            ..Shape::new("range-not-known", "200 OK", HTML)
        },
        Shape {
            method: "HEAD",
            ..Shape::new("head", "200 OK", HTML)
        },
        Shape {
            asks: "If-None-Match: \"of-the-page\"\r\n",
            ..Shape::new(
                "conditional",
                "200 OK",
                "Content-Type: text/html\r\nETag: \"of-the-page\"\r\n",
            )
        },
        Shape {
            asks: "If-None-Match: \"of-another-page\"\r\n",
            ..Shape::new(
                "conditional-other",
                "200 OK",
                "Content-Type: text/html\r\nETag: \"of-the-page\"\r\n",
            )
        },
    ])
    .await;
}

/// Visits that come while the application works: each waits for its own run or for a shared one.
#[tokio::test]
async fn visits_while_the_application_works_cost_one_run_each() {
    visits_at_once(HTML, CLASSES).await;
    // The shared run begins when the second visitor comes, before the first has an answer.
    let fields = "Content-Type: text/html\r\nSet-Cookie: session=1\r\n";
    visits_at_once(fields, CLASSES).await;
}

/// Visits of all browsers, held until all have been sent, that may cost `most` shared runs.
async fn visits_at_once(fields: &'static str, most: usize) {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let application = Application::start(move |_| {
        let length = PAGE.len();
        Script::new().wait_for(&held).raw(format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{PAGE}"
        ))
    })
    .await;
    let site = Arc::new(Site::before(&application, "1h").await);
    let mut visits = Vec::new();
    for _ in 0..3 {
        for browser in &BROWSERS {
            let (mark, site) = (Mark::next(), Arc::clone(&site));
            let fields = browser.fields(mark, "site.test");
            let visit = tokio::spawn(async move { site.get(1, "/page", &fields).await });
            visits.push((mark, browser.name, visit));
        }
    }
    settle().await;
    gate.add_permits(1000);
    let mut marks = Vec::new();
    for (mark, name, visit) in visits {
        let reply = visit.await.expect("no panic");
        assert_eq!(reply.status, 200, "{name}");
        assert_eq!(reply.text(), PAGE, "{name}");
        marks.push((mark, name));
    }
    settle().await;
    for (mark, name) in marks {
        assert!(application.own_runs(mark) <= 1, "{name}, {fields}");
    }
    let shared = application.shared_runs("site.test");
    assert!(shared <= most, "{shared} shared runs, {fields}");
}

/// A connection that ends without an answer: the application may have carried the request out. Only where a
/// connection was kept, and ends before any byte of an answer, is a GET sent again on another, as nginx does: an
/// application may close a kept connection at any time.
#[tokio::test]
async fn a_request_that_got_no_answer_is_not_sent_again() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    for (before, sent) in [("Connection: close\r\n", ""), ("", begun)] {
        let application = Application::start(move |request| match &*request.target {
            "/page" => Script::new().raw(sent).cut(),
            _ => Script::page(&format!("{before}Cache-Control: no-store\r\n"), PAGE),
        })
        .await;
        let site = Site::before(&application, "1h").await;
        for cookie in ["", "Cookie: session=1\r\n"] {
            for browser in &BROWSERS {
                // The request for the page comes on a new connection, or on one that was kept.
                let fields = browser.fields(Mark::next(), "site.test");
                let reply = site.get(1, "/before", &fields).await;
                assert_eq!(reply.text(), PAGE, "{}", browser.name);
                let mark = Mark::next();
                let fields = browser.fields(mark, "site.test") + cookie;
                let reply = site.get(1, "/page", &fields).await;
                settle().await;
                let seen = (reply.status, application.own_runs(mark));
                assert_eq!(seen, (502, 1), "{}, {before}{sent}{cookie}", browser.name);
            }
        }
    }
}
