//! Crowds: many visitors of one page while the application works on it.

use std::sync::Arc;

use testkit::client::Reply;
use testkit::fake_http::Script;
use testkit::wait::until;
use tokio::sync::Semaphore;

use super::{Application, BROWSERS, Mark, Site, is_from_memory, settle};

const CLIENTS: u8 = 200;
const CLASSES: usize = 3;
/// More than a crowd can need.
const MANY: usize = 10_000;

/// An application that is held by a gate, and a site in front of it.
struct HeldSite {
    application: Application,
    site: Arc<Site>,
    gate: Arc<Semaphore>,
}

impl HeldSite {
    async fn start(fields: &'static str, ttl: &str) -> HeldSite {
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let application = Application::start(move |request| {
            let mark = Mark::of(&request.head);
            let body = match fields.contains("Set-Cookie") {
                true => format!("{mark:?}"),
                false => "page".to_owned(),
            };
            let length = body.len();
            Script::new().wait_for(&held).raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
            ))
        })
        .await;
        let site = Arc::new(Site::before(&application, ttl).await);
        HeldSite {
            application,
            site,
            gate,
        }
    }

    fn open(&self) {
        self.gate.add_permits(MANY);
    }

    fn close(&self) {
        while let Ok(permit) = self.gate.try_acquire() {
            permit.forget();
        }
    }

    /// All visits at once; the application is let go when all have been sent.
    async fn crowd(&self, visitors: impl Fn(u8) -> (u8, usize)) -> Vec<(Mark, Reply)> {
        let runs = self.application.runs();
        let mut visits = Vec::new();
        for nth in 0..CLIENTS {
            let (from, browser) = visitors(nth);
            let (mark, site) = (Mark::next(), Arc::clone(&self.site));
            let fields = BROWSERS[browser].fields(mark, "site.test");
            let visit = tokio::spawn(async move { site.get(from, "/page", &fields).await });
            visits.push((mark, visit));
        }
        until("a run", || self.application.runs() > runs).await;
        for _ in 0..10 {
            settle().await;
        }
        self.open();
        let mut replies = Vec::new();
        for (mark, visit) in visits {
            replies.push((mark, visit.await.expect("no panic")));
        }
        settle().await;
        self.close();
        replies
    }

    /// The runs that a crowd has cost.
    async fn runs_of(&self, visitors: impl Fn(u8) -> (u8, usize)) -> usize {
        let runs = self.application.runs();
        for (_, reply) in self.crowd(visitors).await {
            assert_eq!((reply.status, &*reply.text()), (200, "page"));
        }
        self.application.runs() - runs
    }
}

/// Addresses of its own for each visitor.
fn alike(nth: u8) -> (u8, usize) {
    (1 + nth % CLIENTS, 0)
}

/// All browsers, from some addresses.
fn of_all_kinds(nth: u8) -> (u8, usize) {
    (1 + nth % 7, usize::from(nth) % BROWSERS.len())
}

#[tokio::test]
async fn a_crowd_of_visitors_alike_on_a_cold_page_costs_two_runs_and_one_after_a_purge() {
    let held = HeldSite::start("", "1h").await;
    let runs = held.runs_of(alike).await;
    assert!(runs <= 2, "{runs} runs");
    // Whether two were needed or not, the page is shared now.
    held.open();
    for from in [1, 2] {
        let fields = BROWSERS[0].fields(Mark::next(), "site.test");
        held.site.get(from, "/page", &fields).await;
    }
    held.close();
    for _ in 0..2 {
        held.site.purge().await;
        assert_eq!(held.runs_of(alike).await, 1);
    }
}

#[tokio::test]
async fn a_crowd_from_one_address_on_a_cold_page_costs_two_runs() {
    let held = HeldSite::start("", "1h").await;
    let runs = held.runs_of(|_| (1, 0)).await;
    assert!(runs <= 2, "{runs} runs");
}

/// Each class of User-Agents has a page of its own, and each kind of browser values that have not been
/// seen before.
#[tokio::test]
async fn a_crowd_of_all_browsers_costs_two_runs_for_each_class_and_one_for_each_new_kind() {
    let held = HeldSite::start("", "1h").await;
    let runs = held.runs_of(of_all_kinds).await;
    let most = 2 * CLASSES + BROWSERS.len();
    assert!(runs <= most, "{runs} runs");
    // Visitors who shared a run with others have shown nothing: the next of their kind may.
    held.open();
    for _ in 0..3 {
        for nth in 0..16 {
            let (from, browser) = of_all_kinds(nth);
            let fields = BROWSERS[browser].fields(Mark::next(), "site.test");
            held.site.get(from, "/page", &fields).await;
        }
        settle().await;
    }
    held.close();
    held.site.purge().await;
    let runs = held.runs_of(of_all_kinds).await;
    assert!(runs <= CLASSES, "{runs} runs after a purge");
}

#[tokio::test]
async fn a_crowd_on_a_stale_page_costs_one_run_and_waits_for_none() {
    let held = HeldSite::start("", "20ms").await;
    held.open();
    let get = async |from: u8| {
        let fields = BROWSERS[0].fields(Mark::next(), "site.test");
        held.site.get(from, "/page", &fields).await
    };
    let mut visit = 1;
    while !is_from_memory(&get(visit).await) {
        visit += 1;
        assert!(visit < 20, "the page is not shared");
    }
    settle().await;
    held.close();
    let runs = held.application.runs();
    for nth in 0..CLIENTS {
        let reply = get(alike(nth).0).await;
        assert_eq!((reply.status, &*reply.text()), (200, "page"));
        assert!(is_from_memory(&reply), "{}", reply.x_cache());
    }
    let runs = held.application.runs() - runs;
    assert!(runs <= 1, "{runs} runs");
    held.open();
}

/// The page turns out to be for one visitor each: visitors who waited for it get an own run each.
#[tokio::test]
async fn a_crowd_on_a_page_with_a_session_gets_a_page_for_each_visitor() {
    let held = HeldSite::start("Set-Cookie: session=1\r\n", "1h").await;
    let replies = held.crowd(alike).await;
    for (mark, reply) in replies {
        let own = format!("{:?}", Some(mark));
        assert_eq!((reply.status, reply.text()), (200, own));
        assert_eq!(held.application.own_runs(mark), 1);
    }
    let shared = held.application.shared_runs("site.test");
    assert!(shared <= 1, "{shared} shared runs");
}
