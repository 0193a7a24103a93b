//! Applications that fail, or refuse some requests, while it is found out what guests share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use testkit::fake_http::{Request, Script};
use tokio::task::JoinSet;

use super::application::cookies;
use super::{HOST, Visitor, warm};
use crate::visits::{Application, Mark, Site, answer_text, ask_port, is_from_memory, settle};

/// `/choose/fr` writes into the session, which the first page shows.
#[derive(Default)]
struct Choosing {
    chosen: Mutex<HashSet<String>>,
    drawn: AtomicU64,
    /// A target, and the status with which the server's own requests for it fail. They come from addresses of no visitor.
    fails: (&'static str, &'static str),
    /// It answers nothing.
    is_down: AtomicBool,
}

impl Choosing {
    fn answer(&self, request: &Request) -> Script {
        let number = self.drawn.fetch_add(1, Relaxed);
        let cookies = cookies(request.field("cookie"));
        let sid = cookies.get("sid").cloned();
        let sid = sid.unwrap_or_else(|| format!("5e{number:014x}"));
        let path = request.target.split('?').next().unwrap_or_default();
        let mut chosen = self.chosen.lock().expect("no panic");
        if path == "/choose/fr" {
            chosen.insert(sid.clone());
        }
        let body = match path {
            "/" => format!("chosen={}", chosen.contains(&sid)),
            _ => format!("page={path}"),
        };
        let (failing, status) = self.fails;
        let is_visitors = request.field("x-real-ip").starts_with("127.");
        let line = match request.target == failing && !is_visitors {
            true => status,
            false => "200 OK",
        };
        let fields = format!("Content-Type: text/html\r\nSet-Cookie: sid={sid}; path=/\r\n");
        match self.is_down.load(Relaxed) {
            true => Script::new().cut(),
            false => Script::new().raw(answer_text(line, &fields, &body)),
        }
    }

    async fn start(self) -> (Arc<Choosing>, Application, Site) {
        let choosing = Arc::new(self);
        let answering = Arc::clone(&choosing);
        let application = Application::start(move |request| answering.answer(request)).await;
        let site = Site::of_guests(&application, "1h").await;
        (choosing, application, site)
    }
}

/// Where the page without an argument failed, the argument was taken to show, and what it wrote into the session was lost.
#[tokio::test]
async fn an_argument_does_not_show_where_the_page_without_it_fails() {
    let mut at_once = JoinSet::new();
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        at_once.spawn(does_not_show(status));
    }
    at_once.join_all().await;
}

async fn does_not_show(status: &'static str) {
    let fails = ("/page", status);
    let choosing = Choosing {
        fails,
        ..Choosing::default()
    };
    let (_choosing, _application, site) = choosing.start().await;
    for nth in 0..30 {
        let mut visitor = Visitor::new(HOST, nth);
        let reply = visitor.get(&site, "/page?ref=rose").await;
        assert!(!is_from_memory(&reply), "{status}");
        settle().await;
    }
}

/// Who has chosen a language is not shown everybody's page while the application fails.
#[tokio::test]
async fn no_copy_stands_in_for_a_guest_in_whose_session_a_page_may_have_written() {
    let (choosing, _application, site) = Choosing::default().start().await;
    warm(&site, "/").await;
    let mut chooser = Visitor::new(HOST, 0);
    chooser.get(&site, "/choose/fr").await;
    choosing.is_down.store(true, Relaxed);
    // One of whom nothing is known yet, and whose own request is made.
    for (visitor, is_shown) in [(Visitor::new(HOST, 0), true), (chooser, false)] {
        let text = visitor.get_text("GET /", Mark::next(), "DNT: 1\r\n");
        let reply = ask_port(site.port, visitor.from, &text).await;
        assert_eq!(is_from_memory(&reply), is_shown, "{}", reply.text());
    }
}
