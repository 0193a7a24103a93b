//! Applications that fail, or refuse some requests, while it is found out what guests share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use testkit::fake_http::{Request, Script};

use super::application::cookies;
use super::{HOST, Visitor, warm};
use crate::visits::{Application, Mark, Site, answer_text, ask_port, is_from_memory};

/// `/choose/fr` writes into the session, which the first page shows.
#[derive(Default)]
struct Choosing {
    chosen: Mutex<HashSet<String>>,
    drawn: AtomicU64,
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
        let fields = format!("Content-Type: text/html\r\nSet-Cookie: sid={sid}; path=/\r\n");
        match self.is_down.load(Relaxed) {
            true => Script::new().cut(),
            false => Script::new().raw(answer_text("200 OK", &fields, &body)),
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
