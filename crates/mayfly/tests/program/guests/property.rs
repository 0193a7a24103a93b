//! Random applications that keep state in sessions, and random visitors: each has to get what the application gives to
//! their own session. The state of each visitor is kept here a second time.
//!
//! `MAYFLY_GUESTS=100000` asks for more requests; `MAYFLY_SEED` repeats a run. A failure shows all that has happened to the
//! first applications with a wrong answer: each run, each visit with its answer and, after the first wrong one, what the
//! server says of each page.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use testkit::client::Reply;
use tokio::task::JoinSet;

use super::application::{ApplicationState, Limiter, Look, Rules, Sessions, status_line};
use super::{FORGED, Form, GuestSite, Origin, Visitor};
use crate::attacks::random::Random;
use crate::visits::explained::explain_at;
use crate::visits::property::from_environment;
use crate::visits::{Application, Mark, Site, ask_port, is_from_memory, settle};

/// Requests without `MAYFLY_GUESTS`.
const REQUESTS: u64 = 20_000;
/// Requests to one application: enough for trials of its pages, and for visits after them.
const REQUESTS_EACH: u64 = 250;
/// Applications that are asked at the same time, behind two servers.
const APPLICATIONS_EACH: u64 = 40;
/// So many such groups at the same time: one begins or ends while the other works.
const GROUPS_AT_ONCE: usize = 2;
/// One in so many visits is preceded by a purge of all pages of its server, which twenty applications share.
const PURGES_ONE_IN: usize = 1_500;
/// Visitors of an application who come back.
const REGULARS: usize = 6;
/// How the only cookie begins that pages from memory set.
const SERVERS_COOKIE: &str = "XSRF-TOKEN=mayflyguest";
/// Examples of each kind that a failure shows, and applications of which it shows everything.
const MAX_EXAMPLES: usize = 3;
/// The pages that applications have.
const PAGES: [&str; 7] = [
    "/",
    "/page/1",
    "/page/2",
    "/page/3",
    "/missing",
    "/forbidden",
    "/broken",
];

/// What a visitor does.
#[derive(Clone, Debug)]
enum Step {
    Get(String),
    /// A request for the head, or for a part, or for what has changed.
    Other(&'static str, String, &'static str),
    Write(&'static str, String),
    /// Another site has the visitor's browser send a write with this form.
    Forged(Form, Origin),
    Leave,
}

impl Step {
    /// What it asks for; empty for a write.
    fn target(&self) -> &str {
        match self {
            Step::Get(target) | Step::Other(_, target, _) => target,
            Step::Write(..) | Step::Forged(..) | Step::Leave => "",
        }
    }

    fn random(random: &mut Random, visitor: &Visitor, found: &Option<Form>) -> Step {
        let page = match random.one_in(12) {
            true => random.one_of(&PAGES[4..]),
            false => random.one_of(&PAGES[..4]),
        };
        let page = page.to_owned();
        let value = random.one_of(&["rose", "oak", "fern"]);
        match (random.below(32), &visitor.form, found) {
            (0, ..) => Step::Get(format!(
                "/set?language={}",
                random.one_of(&["fr", "es", "it"])
            )),
            (1, ..) => Step::Get(format!("/add?item={value}")),
            (2, ..) => Step::Get(format!("{page}?ref=partner{value}")),
            (3..7, Some(_), _) => {
                let what = ["cart", "name", "language", "order", "note"][random.below(5)];
                let number = Mark::next().0;
                Step::Write(what, format!("{value}{number}"))
            }
            (7, _, Some(form)) => {
                let origin = FORGED[random.below(FORGED.len())];
                Step::Forged(form.clone(), origin)
            }
            (8, Some(_), _) => Step::Leave,
            (10..12, ..) => Step::Get("/account".to_owned()),
            (12, ..) => Step::Get(format!("/enter?name={value}")),
            (13, ..) => Step::Get(format!("/once?word={}", word_of(Mark::next()))),
            // Many ask for it, so that it is tried whether guests may share it.
            (14..17, ..) => Step::Get("/choose/fr".to_owned()),
            (9, ..) => {
                let (method, fields) = [
                    ("HEAD", ""),
                    ("GET", "Range: bytes=0-5\r\n"),
                    ("GET", "If-None-Match: \"x\"\r\n"),
                    ("GET", "Accept-Encoding: gzip\r\n"),
                    ("GET", "Cache-Control: no-cache\r\n"),
                ][random.below(5)];
                Step::Other(method, "/page/2".to_owned(), fields)
            }
            _ => Step::Get(page),
        }
    }
}

/// A word of letters alone for a number.
fn word_of(mark: Mark) -> String {
    let digits = mark.0.to_string();
    let letters = digits.bytes().map(|digit| char::from(digit - b'0' + b'a'));
    letters.collect()
}

/// Answers so far.
#[derive(Default)]
struct Results {
    requests: u64,
    gets: u64,
    from_memory: u64,
    writes: u64,
    /// Of the applications.
    runs: usize,
    faults: BTreeMap<&'static str, u64>,
    examples: BTreeMap<&'static str, Vec<String>>,
    /// All that has happened to applications that gave wrong answers.
    histories: Vec<String>,
}

/// Which visitor was given a session.
type Owners = HashMap<String, u64>;

/// An application with its visitors.
struct Crowd {
    rules: Rules,
    host: String,
    sessions: Arc<Sessions>,
    results: Arc<Mutex<Results>>,
    owners: Arc<Mutex<Owners>>,
    port: u16,
    random: Random,
    /// A visitor has got a wrong answer.
    has_fault: bool,
}

impl Crowd {
    async fn visit(mut self, site: Arc<Site>) {
        let mut regulars: Vec<Visitor> = (0..REGULARS).map(|nth| self.guest(nth)).collect();
        let mut found = None;
        let mut left = REQUESTS_EACH;
        while left > 0 {
            if self.random.one_in(PURGES_ONE_IN) {
                site.purge().await;
            }
            if self.random.one_in(60) {
                settle().await;
            }
            let at_once = match self.random.one_in(5) {
                true => left.min(3) as usize,
                false => 1,
            };
            left -= at_once as u64;
            // Different visitors at the same time.
            let first = self.random.below(REGULARS);
            let mut visits = Vec::new();
            for nth in 0..at_once {
                let place = (first + nth) % REGULARS;
                if self.random.one_in(3) {
                    regulars[place] = self.guest(place);
                }
                let visitor = regulars[place].clone();
                let step = Step::random(&mut self.random, &visitor, &found);
                let (rules, port) = (self.rules, self.port);
                let visit = tokio::spawn(async move { visitor.take(&rules, port, step).await });
                visits.push((place, visit));
            }
            for (place, visit) in visits {
                let taken = visit.await.expect("no panic");
                let had_fault = self.has_fault;
                let target = taken.step.target().to_owned();
                let visitor = self.check(taken);
                if self.has_fault && !had_fault {
                    self.explain(&site, &target).await;
                }
                // The latest form that an attacker has found: no regular's.
                if self.random.one_in(6) {
                    found = visitor.form.clone().or(found);
                    regulars[place] = self.guest(place);
                } else {
                    regulars[place] = visitor;
                }
            }
        }
        if self.has_fault {
            let history = format!(
                "{}, {:?}\n{}",
                self.host,
                self.rules,
                self.sessions.history(&self.host)
            );
            self.results
                .lock()
                .expect("no panic")
                .histories
                .push(history);
        }
    }

    /// Notes what the server says of the pages.
    async fn explain(&self, site: &Site, target: &str) {
        for page in PAGES.into_iter().chain(["/choose/fr", "/account", target]) {
            let told = explain_at((site, &self.host), page, "", false).await;
            let told = format!("the server of {page}: {:?}", told.evidence);
            self.sessions.note(&self.host, told);
        }
    }

    fn guest(&mut self, place: usize) -> Visitor {
        Visitor::new(&self.host, place + REGULARS * self.random.below(20))
    }

    /// The visitor after a step, whose answer is looked at.
    fn check(&mut self, taken: VisitorStep) -> Visitor {
        let VisitorStep {
            mut visitor,
            step,
            mark,
            reply,
        } = taken;
        let mut faults: Vec<&'static str> = Vec::new();
        let is_hit = is_from_memory(&reply);
        let own = self.sessions.own_runs(mark);
        // A page of memory, or the answer to a shared request.
        let is_shared = is_hit || own == 0;
        let had_written = visitor.has_written && visitor.jar.contains_key("sid");
        if is_shared && had_written {
            faults.push("shared after a write");
        }
        // A page that says nothing is told from one whose session has not begun.
        let says_private = self.rules.limiter.is_own() && !self.rules.is_lazy;
        if is_shared && says_private && !self.rules.is_mixed {
            faults.push("shared although private");
        }
        let mut set = reply.fields.iter().filter(|(name, _)| name == "set-cookie");
        if is_shared && set.any(|(_, line)| !line.starts_with(SERVERS_COOKIE)) {
            faults.push("a cookie with a shared page");
        }
        let may_be_none = is_hit || ["MISS", "EXPIRED"].contains(&reply.x_cache());
        if own > 1 || own == 0 && !may_be_none || own > 0 && is_hit {
            faults.push("number of own runs");
        }
        let before = visitor.clone();
        let path = match &step {
            Step::Get(target) => target.as_str(),
            _ => "",
        };
        visitor.note(path, &reply);
        if !visitor.sid().is_empty() {
            let mut owners = self.owners.lock().expect("no panic");
            let owner = owners.entry(visitor.sid().to_owned());
            if *owner.or_insert(visitor.id) != visitor.id {
                faults.push("the session of another visitor");
            }
        }
        let mut results = self.results.lock().expect("no panic");
        match &step {
            Step::Get(target) => {
                results.gets += 1;
                results.from_memory += u64::from(is_hit);
                self.check_page(&mut visitor, target, &reply, &mut faults);
            }
            Step::Other(method, ..) => {
                let is_part = reply.status == 206 || reply.status == 304;
                if !is_part && reply.status != 200 {
                    faults.push("status");
                }
                if reply.status != 200 || *method == "HEAD" {
                    // The application has made the page all the same.
                    visitor.state.flash.clear();
                }
                if reply.status == 200 && *method == "GET" {
                    self.check_page(&mut visitor, "/page/2", &reply, &mut faults);
                }
                if reply.status == 206 && reply.body != b"page=/" {
                    faults.push("part");
                }
            }
            Step::Write(what, value) => {
                results.writes += 1;
                if reply.status != 303 {
                    faults.push("a write was refused");
                }
                visitor.state.write(what, value);
                visitor.has_written = true;
                visitor.form = None;
            }
            Step::Forged(..) => {
                if reply.status != 403 {
                    faults.push("a forged write was accepted");
                }
                visitor.has_written = true;
            }
            Step::Leave => {
                let form = visitor.form.take();
                let is_of_application =
                    form.is_some_and(|form| self.sessions.has_issued(&form.token));
                // Others may have written a link with the server's token: one by a member is not given another.
                let may_stay = !is_of_application && before.jar.contains_key("sid");
                match reply.status {
                    303 => {
                        visitor.state = ApplicationState::default();
                        visitor.has_written = false;
                    }
                    403 if may_stay => {}
                    _ => faults.push("who leaves stays"),
                }
            }
        }
        if let Some(state) = self.sessions.state(&self.host, visitor.sid())
            && state != visitor.state
        {
            faults.push("state of the session");
        }
        results.requests += 1;
        self.has_fault |= !faults.is_empty();
        let visit = format!(
            "visit {} by visitor {}, had [{}]: {step:?}, {own} own runs, {} {}, has [{}] {:?}: {}; {faults:?}",
            mark.0,
            before.id,
            before.sid(),
            reply.status,
            reply.x_cache(),
            visitor.sid(),
            visitor.state,
            reply.text().replace('\n', " | "),
        );
        self.sessions.note(&self.host, visit);
        for fault in &faults {
            *results.faults.entry(fault).or_default() += 1;
        }
        let first = faults.first().copied().unwrap_or_default();
        let examples = results.examples.entry(first).or_default();
        if !faults.is_empty() && examples.len() < MAX_EXAMPLES {
            let example = format!(
                "{faults:?}\n{:?}\n{step:?}, {own} own runs\nbefore {before:?}\nafter {visitor:?}\nin the session {:?}\n\
                 {} {:?}\n{}",
                self.rules,
                self.sessions.state(&self.host, visitor.sid()),
                reply.status,
                reply.fields,
                reply.text()
            );
            examples.push(example);
        }
        visitor
    }

    fn check_page(
        &self,
        visitor: &mut Visitor,
        target: &str,
        reply: &Reply,
        faults: &mut Vec<&'static str>,
    ) {
        let path = target.split('?').next().unwrap_or_default();
        let is_led_on = match path {
            "/set" | "/add" => self.rules.redirects,
            "/account" => visitor.state.name.is_empty(),
            "/enter" | "/once" => true,
            _ => false,
        };
        visitor.state.follow(target, &self.rules);
        let has_session = !self.rules.is_lazy || visitor.jar.contains_key("sid");
        if is_led_on && has_session && reply.status == 302 {
            return;
        }
        if reply.status.to_string() != status_line(path)[..3] {
            return faults.push("status");
        }
        visitor.state.visits += u32::from(path == "/" && self.counts(visitor));
        let wanted = self
            .rules
            .lines(path, &visitor.state, &self.sessions.edition());
        visitor.state.flash.clear();
        let text = reply.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('<')).collect();
        if lines != wanted {
            faults.push("another page");
        }
        let form = Form::of(path, reply);
        if let Some(form) = form
            && self.sessions.has_issued(&form.token)
            && !self
                .sessions
                .is_token_of(&self.host, visitor.sid(), &visitor.bound(), &form.token)
        {
            faults.push("the token of another session");
        }
        // Who is given a session gets its tokens.
        if text.contains("name=\"") && !visitor.jar.contains_key("sid") && !is_from_memory(reply) {
            let token = Form::of(path, reply).map(|form| form.token);
            if token.is_some_and(|token| self.sessions.has_issued(&token)) {
                faults.push("a token without a session");
            }
        }
    }

    /// Does a view of the first page count?
    fn counts(&self, visitor: &Visitor) -> bool {
        self.rules.counts_visits && (!self.rules.is_lazy || visitor.jar.contains_key("sid"))
    }
}

/// A step that was taken.
struct VisitorStep {
    visitor: Visitor,
    step: Step,
    mark: Mark,
    reply: Reply,
}

impl Visitor {
    async fn take(self, rules: &Rules, port: u16, step: Step) -> VisitorStep {
        let mark = Mark::next();
        let text = match &step {
            Step::Get(target) => self.get_text(&format!("GET {target}"), mark, ""),
            Step::Other(method, target, fields) => {
                self.get_text(&format!("{method} {target}"), mark, fields)
            }
            Step::Write(what, value) => {
                let origin = Origin::Own(self.browser);
                self.write_text(rules, (what, value), origin, mark)
            }
            Step::Forged(form, origin) => {
                let mut victim = self.clone();
                victim.form = Some(form.clone());
                victim.write_text(rules, ("cart", "forged"), *origin, mark)
            }
            Step::Leave => {
                let form = self.form.as_ref().expect("a form");
                self.link_text(&form.link, mark, Origin::Own(self.browser))
            }
        };
        let reply = ask_port(port, self.from, &text).await;
        VisitorStep {
            visitor: self,
            step,
            mark,
            reply,
        }
    }
}

/// Some applications, each behind one of two servers.
async fn visit_applications(mut random: Random, count: u64, results: Arc<Mutex<Results>>) {
    let rules = (0..count).map(|nth| {
        let host = format!("application{nth}.test");
        (host, Rules::random(&mut random))
    });
    let rules: Vec<(String, Rules)> = rules.collect();
    let sessions = Arc::new(Sessions::new(rules.iter().cloned()));
    let answering = Arc::clone(&sessions);
    let application = Application::start(move |request| answering.answer(request)).await;
    let lasting = Arc::new(Site::of_guests(&application, "1h").await);
    let brief = Arc::new(Site::of_guests(&application, "20ms").await);
    let owners = Arc::default();
    let mut crowds = JoinSet::new();
    for (nth, (host, rules)) in rules.into_iter().enumerate() {
        let site = [&lasting, &brief][nth % 2];
        let crowd = Crowd {
            rules,
            host,
            sessions: Arc::clone(&sessions),
            results: Arc::clone(&results),
            owners: Arc::clone(&owners),
            port: site.port,
            random: Random::new(random.below(1 << 30) as u64),
            has_fault: false,
        };
        crowds.spawn(crowd.visit(Arc::clone(site)));
    }
    crowds.join_all().await;
    results.lock().expect("no panic").runs += application.runs();
}

#[tokio::test]
async fn random_visitors_get_what_random_applications_give_to_their_own_sessions() {
    let seed = from_environment("MAYFLY_SEED", u64::from(std::process::id()) + 1);
    let requests = from_environment("MAYFLY_GUESTS", REQUESTS);
    let mut random = Random::new(seed);
    let results = Arc::new(Mutex::new(Results::default()));
    let mut left = requests.div_ceil(REQUESTS_EACH);
    let mut groups = JoinSet::new();
    let is_right = || results.lock().expect("no panic").faults.is_empty();
    while left > 0 && is_right() {
        let some = left.min(APPLICATIONS_EACH);
        let random = Random::new(random.below(1 << 30) as u64);
        groups.spawn(visit_applications(random, some, Arc::clone(&results)));
        left -= some;
        if groups.len() == GROUPS_AT_ONCE
            && let Some(group) = groups.join_next().await
        {
            group.expect("no panic");
        }
    }
    groups.join_all().await;
    let results = results.lock().expect("no panic");
    let Results {
        requests,
        gets,
        from_memory,
        writes,
        runs,
        faults,
        examples,
        histories,
    } = &*results;
    println!(
        "seed {seed}: {requests} requests, {from_memory} of {gets} pages from memory, {writes} writes, \
         {runs} runs of applications, wrong {faults:?}"
    );
    let histories = histories.iter().take(MAX_EXAMPLES);
    let examples: Vec<&String> = examples.values().flatten().chain(histories).collect();
    let examples: Vec<&str> = examples.into_iter().map(String::as_str).collect();
    let examples = examples.join("\n\n");
    assert!(faults.is_empty(), "seed {seed}: {faults:?}\n{examples}");
    // Half of the visitors have written, and a third of the applications share little.
    assert!(
        from_memory * 10 > *gets,
        "{from_memory} of {gets} from memory"
    );
}

/// Pages of guests until what can be found out is known.
const WARM_UP: usize = 60;

#[tokio::test]
async fn pages_that_do_not_depend_on_their_session_come_from_memory() {
    let hosts = ["one.test", "two.test", "three.test"].map(str::to_owned);
    let rules = [
        Rules::default(),
        Rules {
            gives_currency: true,
            shows_time: true,
            ..Rules::default()
        },
        Rules {
            look: Look::Base64,
            limiter: Limiter::Private,
            ..Rules::default()
        },
    ];
    let guests = GuestSite::with_hosts(hosts.iter().cloned().zip(rules)).await;
    let guests = Arc::new(guests);
    let mut at_once = JoinSet::new();
    for host in hosts {
        at_once.spawn(come_from_memory(Arc::clone(&guests), host));
    }
    at_once.join_all().await;
}

async fn come_from_memory(guests: Arc<GuestSite>, host: String) {
    let pages = ["/", "/page/1", "/page/2"];
    let mut from_memory = 0;
    for nth in 0..WARM_UP + 100 {
        let mut visitor = Visitor::new(&host, nth);
        let reply = visitor.get(&guests.site, pages[nth % pages.len()]).await;
        if nth < WARM_UP {
            settle().await;
        } else {
            from_memory += usize::from(is_from_memory(&reply));
        }
    }
    assert!(from_memory >= 90, "{host}: {from_memory} of 100");
}
