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
/// The first guest's own request, and the shared one that the second guest begins.
const OF_GUESTS: u64 = 2;
/// The first requests of the trial: the page as a new guest gets it, with the visitor's own fields, and the site's first page.
const AT_ONCE: u64 = 3;
/// All requests of the trial: the page three times, and once with the session; the first page twice, and once with it.
const OF_TRIAL: usize = 7;

/// An application that begins a session with each answer, and gives none before the gate opens.
struct SlowShop {
    begun: AtomicU64,
    gate: Arc<Semaphore>,
}

impl SlowShop {
    fn answer(&self, request: &Request) -> Script {
        let number = self.begun.fetch_add(1, SeqCst);
        let path = request.target.split('?').next().unwrap_or_default();
        let fields = format!(
            "Content-Type: text/html\r\nSet-Cookie: sid=5e{number:014x}; path=/; HttpOnly\r\n"
        );
        let body = format!("<!doctype html><p>page={path}</p>");
        let script = Script::new().wait_for(&self.gate);
        script.raw(answer_text("200 OK", &fields, &body))
    }
}

/// The requests of the trial that need nothing of one another are under way at the same time, and the answer to the shared
/// request waits for its end: the application is asked no more than that, so that a further request would wait for ever.
#[tokio::test]
async fn a_crowd_on_a_new_page_waits_for_one_trial_whose_requests_are_made_side_by_side() {
    let shop = Arc::new(SlowShop {
        begun: AtomicU64::new(0),
        gate: Arc::new(Semaphore::new(0)),
    });
    let answering = Arc::clone(&shop);
    let application = Application::start(move |request| answering.answer(request)).await;
    let site = Site::of_guests(&application, "1h").await;
    let begun = |least: u64| {
        let shop = &shop;
        move || shop.begun.load(SeqCst) >= least
    };
    let mut guests = JoinSet::new();
    let mut come = |nth: usize| {
        let (guest, port) = (Visitor::new(HOST, nth * AGENTS.len()), site.port);
        let text = guest.get_text("GET /page", Mark::next(), "");
        guests.spawn(async move { ask_port(port, guest.from, &text).await });
    };
    come(0);
    until("the first guest's request", begun(1)).await;
    (1..GUESTS).for_each(&mut come);
    until("the shared request", begun(OF_GUESTS)).await;
    shop.gate.add_permits(2);
    until("the trial", begun(OF_GUESTS + AT_ONCE)).await;
    shop.gate.add_permits(OF_TRIAL);
    let mut own = 0;
    while let Some(reply) = guests.join_next().await {
        let reply = reply.expect("no panic");
        assert_eq!(reply.status, 200);
        assert!(reply.text().contains("page=/page"), "{}", reply.text());
        own += usize::from(reply.has("set-cookie"));
    }
    assert_eq!(own, 1);
}
