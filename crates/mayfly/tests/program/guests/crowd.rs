//! Guests who come at the same moment for a page that nobody has seen before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use testkit::fake_http::{Request, Script};
use testkit::wait::until;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{AGENTS, HOST, Visitor};
use crate::visits::{Application, Mark, Site, answer_text, ask_port};

const GUESTS: usize = 20;
/// The first guest's own request, and the shared one that the second guest begins, which is the first one of the trial.
const OF_GUESTS: u64 = 2;

/// An application that begins a session with each answer, and gives none before the gate opens.
struct SlowShop {
    begun: AtomicU64,
    /// Pages have a form with a key.
    has_key: bool,
    gate: Arc<Semaphore>,
}

impl SlowShop {
    fn answer(&self, request: &Request) -> Script {
        let number = self.begun.fetch_add(1, SeqCst);
        let path = request.target.split('?').next().unwrap_or_default();
        let fields = format!(
            "Content-Type: text/html\r\nSet-Cookie: sid=5e{number:014x}; path=/; HttpOnly\r\n"
        );
        let key = match self.has_key {
            true => format!("<input type=hidden name=token value=5e0c{number:016x}>"),
            false => String::new(),
        };
        let argument = request.target.split('?').nth(1).unwrap_or_default();
        let body = format!("<!doctype html><form>{key}</form><p>page={path} {argument}</p>");
        let script = Script::new().wait_for(&self.gate);
        script.raw(answer_text("200 OK", &fields, &body))
    }
}

impl SlowShop {
    async fn has_begun(&self, what: &str, least: u64) {
        until(what, || self.begun.load(SeqCst) >= least).await;
    }
}

/// A shop behind the server, and guests who come at the same moment.
struct Crowd {
    shop: Arc<SlowShop>,
    /// Ends with this value.
    _application: Application,
    site: Site,
    come: usize,
}

impl Crowd {
    async fn new(has_key: bool) -> Crowd {
        let shop = Arc::new(SlowShop {
            begun: AtomicU64::new(0),
            has_key,
            gate: Arc::new(Semaphore::new(0)),
        });
        let answering = Arc::clone(&shop);
        let application = Application::start(move |request| answering.answer(request)).await;
        let site = Site::of_guests(&application, "1h").await;
        Crowd {
            shop,
            _application: application,
            site,
            come: 0,
        }
    }

    /// Guests come for a page. The application gets `ahead` requests before it answers one. Then the trial sends `at_once` at the
    /// same time, and `of_trial` in all.
    async fn comes(&mut self, target: &str, (ahead, at_once, of_trial): (u64, u64, usize)) {
        let shop = self.shop.clone();
        let before = shop.begun.load(SeqCst);
        let (first, port) = (self.come, self.site.port);
        self.come += GUESTS;
        let mut guests = JoinSet::new();
        let mut come = |nth: usize| {
            let guest = Visitor::new(HOST, nth * AGENTS.len());
            let text = guest.get_text(&format!("GET {target}"), Mark::next(), "");
            guests.spawn(async move { ask_port(port, guest.from, &text).await });
        };
        come(first);
        shop.has_begun("the first guest's request", before + 1)
            .await;
        (first + 1..first + GUESTS).for_each(&mut come);
        shop.has_begun("those before the trial", before + ahead)
            .await;
        shop.gate.add_permits(ahead as usize);
        shop.has_begun("the trial", before + ahead + at_once).await;
        shop.gate.add_permits(of_trial);
        let mut own = 0;
        while let Some(reply) = guests.join_next().await {
            let reply = reply.expect("no panic");
            assert_eq!(reply.status, 200);
            let page = target.replace('?', " ");
            assert!(
                reply.text().contains(&format!("page={page}")),
                "{}",
                reply.text()
            );
            own += usize::from(reply.has("set-cookie"));
        }
        assert_eq!(own, 1);
    }
}

/// The requests of the trial that need nothing of one another are under way at the same time. The shared request is its
/// first one, and shown once the trial ends: the application is asked no more than that, so that a further request would
/// wait for ever.
#[tokio::test]
async fn a_crowd_on_a_new_page_waits_for_one_trial_whose_requests_are_made_side_by_side() {
    let mut crowd = Crowd::new(false).await;
    // The page with the visitor's own fields, a second time and with the session, and the site's first page; then this one
    // a second time and with the session.
    crowd.comes("/page", (OF_GUESTS, 4, 6)).await;
    // The site's pages begin sessions. Ahead: its first page, and the page without its argument.
    let ahead = OF_GUESTS + 2;
    crowd.comes("/other?id=2", (ahead, 4, 6)).await;
}

/// A token takes three answers.
#[tokio::test]
async fn a_third_answer_is_asked_for_beside_the_second_where_a_form_has_a_key() {
    let mut crowd = Crowd::new(true).await;
    crowd.comes("/page", (OF_GUESTS, 5, 8)).await;
}
