//! Guests who come at the same moment for a page that nobody has seen before.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use control::explain::SessionPart;
use testkit::fake_http::{Request, Script};
use testkit::wait::until;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{AGENTS, HOST, Visitor};
use crate::visits::explained::explain;
use crate::visits::{Application, Mark, Site, answer_text, ask_port, settle};

const GUESTS: usize = 20;
/// More requests than the application gets.
const MANY: usize = 200;
/// The first guest's own request, and the shared one that the second guest begins, which is the first one of the trial.
const OF_GUESTS: u64 = 2;

/// The requests of a crowd on a later page. The site's pages begin sessions, so that the page is asked for a second time, and
/// the site's first page, before the trial. Then come the page with the first session, the first page with the second one, and
/// the page without its argument. Guests are shown it, while the first page is asked for with the first session.
const LATER: (u64, u64, usize) = (OF_GUESTS + 2, 3, 4);

/// An application that begins a session with each answer, and gives none before the gate opens.
struct SlowShop {
    begun: AtomicU64,
    kind: ShopKind,
    /// The sessions that the first page knows.
    known: Mutex<HashSet<String>>,
    gate: Arc<Semaphore>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShopKind {
    Plain,
    /// Pages have a form with a key.
    WithKey,
    /// The first page shows who has seen another page.
    KnowsVisit,
    /// The first page shows who has seen another page with a session.
    KnowsReturn,
}

impl SlowShop {
    fn answer(&self, request: &Request) -> Script {
        let number = self.begun.fetch_add(1, SeqCst);
        let path = request.target.split('?').next().unwrap_or_default();
        let fields = format!(
            "Content-Type: text/html\r\nSet-Cookie: sid=5e{number:014x}; path=/; HttpOnly\r\n"
        );
        let key = match self.kind {
            ShopKind::WithKey => format!("<input type=hidden name=token value=5e0c{number:016x}>"),
            _ => String::new(),
        };
        let argument = request.target.split('?').nth(1).unwrap_or_default();
        let begun = format!("sid=5e{number:014x}");
        let note = match self.knows(path, (&begun, request.field("cookie"))) {
            true => "<p>You were here before.</p>",
            false => "",
        };
        let body = format!("<!doctype html><form>{key}</form><p>page={path} {argument}</p>{note}");
        let script = Script::new().wait_for(&self.gate);
        script.raw(answer_text("200 OK", &fields, &body))
    }

    /// Does the first page show that it knows the session? Other pages note it.
    fn knows(&self, path: &str, (begun, session): (&str, &str)) -> bool {
        let mut known = self.known.lock().expect("no panic");
        if path == "/" {
            return known.contains(session);
        }
        match self.kind {
            ShopKind::KnowsVisit if session.is_empty() => known.insert(begun.to_owned()),
            ShopKind::KnowsVisit | ShopKind::KnowsReturn => known.insert(session.to_owned()),
            ShopKind::Plain | ShopKind::WithKey => false,
        };
        known.remove("");
        false
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
    async fn new(kind: ShopKind) -> Crowd {
        let shop = Arc::new(SlowShop {
            begun: AtomicU64::new(0),
            kind,
            known: Mutex::default(),
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
    /// same time, and `of_trial` in all. Returns how many guests are given a session.
    async fn comes(
        &mut self,
        target: &str,
        (ahead, at_once, of_trial): (u64, u64, usize),
    ) -> usize {
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
        own
    }

    /// A crowd on a page of a site whose first page has begun a session before.
    async fn after_first_page(kind: ShopKind, target: &str, of_trial: usize) -> (Crowd, usize) {
        let mut crowd = Crowd::new(kind).await;
        crowd.shop.gate.add_permits(1);
        Visitor::new(HOST, 0).get(&crowd.site, "/").await;
        crowd.come += 1;
        let (ahead, at_once, _) = LATER;
        let own = crowd.comes(target, (ahead, at_once, of_trial)).await;
        (crowd, own)
    }
}

/// The requests of the trial that need nothing of one another are under way at the same time. The shared request is its
/// first one, and shown once the trial ends: the application is asked no more than that, so that a further request would
/// wait for ever.
#[tokio::test]
async fn a_crowd_on_a_new_page_waits_for_one_trial_whose_requests_are_made_side_by_side() {
    let mut crowd = Crowd::new(ShopKind::Plain).await;
    // The page with the visitor's own fields, a second time and with the session, and the site's first page; then this one
    // a second time and with the session.
    assert_eq!(crowd.comes("/page", (OF_GUESTS, 4, 6)).await, 1);
    assert_eq!(crowd.comes("/other?id=2", LATER).await, 1);
}

/// A token takes three answers: on a site whose pages are known to begin sessions, the first guest's own is one of them.
#[tokio::test]
async fn a_third_answer_is_asked_for_beside_the_second_where_a_form_has_a_key() {
    let mut crowd = Crowd::new(ShopKind::WithKey).await;
    assert_eq!(crowd.comes("/page", (OF_GUESTS, 5, 8)).await, 1);
    assert_eq!(crowd.comes("/other?id=2", LATER).await, 1);
}

/// Who has no session is shown the page before it is known what it does to the session of who comes back.
#[tokio::test]
async fn a_page_that_another_one_shows_to_who_comes_back_is_shared_with_nobody_in_the_end() {
    let target = "/other?id=2";
    let (_, at_once, _) = LATER;
    let before_return = at_once as usize;
    let (crowd, own) = Crowd::after_first_page(ShopKind::KnowsReturn, target, before_return).await;
    assert_eq!(own, 1);
    crowd.shop.gate.add_permits(MANY);
    let is_refused = async || {
        let told = explain(&crowd.site, target, "", false).await;
        let session = told.evidence.and_then(|evidence| evidence.session);
        matches!(session, Some(SessionPart::Refused { .. }))
    };
    for _ in 0..MANY {
        if is_refused().await {
            break;
        }
        settle().await;
    }
    let mut guest = Visitor::new(HOST, crowd.come);
    assert!(guest.get(&crowd.site, target).await.has("set-cookie"));
}

#[tokio::test]
async fn a_page_that_another_one_shows_to_who_has_seen_it_once_is_shown_to_no_other_guest() {
    let (_, own) = Crowd::after_first_page(ShopKind::KnowsVisit, "/other?id=2", MANY).await;
    assert_eq!(own, GUESTS);
}
