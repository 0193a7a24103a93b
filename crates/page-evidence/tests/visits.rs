//! Random applications and random visitors over a server of a few lines that obeys the evidence: each
//! visitor gets what the application gives to their own request, and a visit runs it once.
//!
//! Half of the sites have all pages in one folder. What was seen on two pages then counts for others, and an
//! application that treats one value of many specially on one page alone is found out late: such answers
//! are counted, and bounded. Where each page has a folder of its own, there is none.
//!
//! Applications know one visitor by the address, who has voted there. A voter whose own answer said so is shown no other
//! one from then on; who was never compared may be.
//!
//! `MAYFLY_VISITS=10000000` asks for more visits, `MAYFLY_SEED` repeats a run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use page_evidence::{
    Evidence, OwnEnd, OwnRun, PageName, Part, Renderer, Rendering, Standing, Trial, TrialOrder,
    TrialStep,
};
use shared_request::{LeftOut, Trait, TraitSet};

const VISITS: u64 = 100_000;
/// Visits of one application.
const VISITS_EACH: u64 = 400;
const PAGES: usize = 4;
/// Values of each trait that visitors have; 0 is that of the shared request.
const VALUES: u32 = 4;

const VISITORS: u64 = 50;
/// The part of a page that only a voter sees.
const RESULTS: &str = "<b>results</b>";

fn address_of(visitor: u64) -> IpAddr {
    [203, visitor as u8, 113, 1].into()
}

/// A small generator (xorshift64*): a seed gives the same run everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 16) % most
    }

    fn one_in(&mut self, most: u64) -> bool {
        self.below(most) == 0
    }
}

/// The application's behaviour for one page.
#[derive(Clone, Debug, Default)]
struct Application {
    reads: TraitSet,
    /// It differs each time it is made.
    has_chance: bool,
    /// A value of a trait is refused, or given a cookie: its answer may not be stored.
    refuses: Option<(Trait, u32)>,
    /// Each answer has a cookie.
    sets_cookies: bool,
    /// The number of a visitor who has voted, and whether each answer to that one has a cookie.
    voter: Option<u64>,
    gives_voter_cookies: bool,
}

impl Application {
    fn random(random: &mut Random) -> Application {
        let mut reads = TraitSet::NONE;
        // Addresses are compared one by one for a while alone: they have a test of their own.
        for it in Trait::ALL.into_iter().filter(is_of_any_page) {
            if random.one_in(6) {
                reads = reads.with(it);
            }
        }
        let refused = Trait::ALL[random.below(5) as usize];
        let has_chance = random.one_in(4);
        Application {
            reads,
            has_chance,
            // Where a page differs each time, a voter is found by a trial alone.
            voter: (!has_chance && random.one_in(2)).then(|| random.below(VISITORS)),
            gives_voter_cookies: random.one_in(3),
            refuses: random
                .one_in(5)
                .then(|| (refused, random.below(u64::from(VALUES)) as u32)),
            sets_cookies: random.one_in(8),
        }
    }

    /// Returns the part of its answer that stays; the flag is false if it may not be stored.
    fn answer(&self, request: &LeftOut) -> (String, bool) {
        let mut text = String::from("<h1>page</h1>");
        for it in self.reads.iter() {
            text.push_str(&format!("<p>{}={}</p>", it.word(), request.value(it)));
        }
        let is_refused = self
            .refuses
            .is_some_and(|(it, value)| request.value(it) == value);
        if is_refused {
            text.push_str("<b>refused</b>");
        }
        let voter = self
            .voter
            .map(|it| LeftOut::default().from(Some(address_of(it))));
        let is_voter =
            voter.is_some_and(|it| it.value(Trait::Network) == request.value(Trait::Network));
        if is_voter {
            text.push_str(RESULTS);
        }
        let sets_cookies = self.sets_cookies || is_voter && self.gives_voter_cookies;
        (text, !is_refused && !sets_cookies)
    }

    fn rendering(&self, request: &LeftOut, chance: u64) -> Option<Rendering> {
        let (text, is_storable) = self.answer(request);
        let mut renderer = Renderer::new(200, std::iter::empty(), true);
        renderer.read(text.as_bytes());
        if self.has_chance {
            renderer.read(format!("<i>{chance}</i>").as_bytes());
        }
        is_storable.then(|| renderer.finish())
    }
}

/// A visitor who has come and has no answer yet.
#[derive(Clone, Debug)]
struct WaitingVisit {
    page: usize,
    request: LeftOut,
    visitor: u64,
}

enum UnderWay {
    Own(OwnRun, WaitingVisit),
    /// For the key that the traits in the key make.
    Shared(PageName, usize, LeftOut),
    Trial(TrialOrder, usize),
}

/// The copy of a page that is stored: what stays of it, and its digest.
struct Copy {
    text: String,
    digest: u64,
}

struct Site {
    evidence: Evidence,
    applications: Vec<Application>,
    copies: HashMap<PageName, Copy>,
    under_way: VecDeque<UnderWay>,
    waiting: Vec<WaitingVisit>,
    random: Random,
    now: u64,
    chance: u64,
    runs: u64,
    own: u64,
    shared: u64,
    trials: u64,
    answered: u64,
    from_memory: u64,
    is_one_folder: bool,
    /// The requests of voters, by page, whose own answers were seen.
    seen_voters: HashSet<(PageName, String)>,
    /// Answers that missed what the application has for one value alone.
    late: u64,
}

impl Site {
    fn new(seed: u64) -> Site {
        let mut random = Random(seed);
        Site {
            evidence: Evidence::default(),
            applications: (0..PAGES)
                .map(|_| Application::random(&mut random))
                .collect(),
            copies: HashMap::new(),
            under_way: VecDeque::new(),
            waiting: Vec::new(),
            random,
            now: 1_000,
            chance: 0,
            runs: 0,
            own: 0,
            shared: 0,
            trials: 0,
            answered: 0,
            from_memory: 0,
            is_one_folder: seed % 4 == 1,
            late: 0,
            seen_voters: HashSet::new(),
        }
    }

    fn visitor(&mut self) -> WaitingVisit {
        let page = self.random.below(PAGES as u64) as usize;
        // Voters come again and again, most often with the same browser.
        let voter = self.applications[page].voter;
        let voter = voter.filter(|_| self.random.one_in(5));
        let mut request = LeftOut::default();
        for it in Trait::ALL.into_iter().filter(is_of_any_page) {
            if self.random.one_in(if voter.is_some() { 30 } else { 3 }) {
                request.set(it, 1 + self.random.below(u64::from(VALUES) - 1) as u32);
            }
        }
        let visitor = voter.unwrap_or_else(|| self.random.below(VISITORS));
        WaitingVisit {
            page,
            request: request.from(Some(address_of(visitor))),
            visitor,
        }
    }

    /// The name of a page as the key makes it, the request less what is in the key, and the shared request.
    fn keyed(&self, page: usize, request: &LeftOut) -> (PageName, LeftOut, LeftOut) {
        let path = match self.is_one_folder {
            true => format!("/pages/{page}"),
            false => format!("/{page}/page"),
        };
        let plain = PageName::new(b"site", path.as_bytes());
        let keyed = self.evidence.keyed(plain);
        let (mut left_out, mut shared) = (*request, LeftOut::default());
        let mut key = path.clone();
        for it in keyed.iter() {
            key.push_str(&format!("\0{}={}", it.word(), request.value(it)));
            shared.set(it, request.value(it));
            left_out.set(it, 0);
        }
        (PageName::new(b"site", key.as_bytes()), left_out, shared)
    }

    fn run(&mut self, page: usize, request: &LeftOut) -> Option<Rendering> {
        self.runs += 1;
        self.chance += 1;
        self.applications[page].rendering(request, self.chance)
    }

    /// Checks an answer against the application's answer to the visitor's own request.
    fn give(&mut self, visit: &WaitingVisit, text: &str) {
        let application = &self.applications[visit.page];
        let (wanted, _) = application.answer(&visit.request);
        let usual = Application {
            refuses: None,
            ..application.clone()
        }
        .answer(&visit.request)
        .0;
        let name = self.keyed(visit.page, &visit.request).0;
        let is_unseen = !(self.seen_voters).contains(&(name, format!("{:?}", visit.request)));
        let is = |answer: &str| text == answer || is_unseen && text == answer.replace(RESULTS, "");
        let is_late = self.is_one_folder && !is(&wanted) && is(&usual);
        assert!(
            is(&wanted) || is_late,
            "{text}, not {wanted}: {visit:?} of {application:?}"
        );
        self.late += u64::from(is_late);
        self.answered += 1;
    }

    fn arrive(&mut self, visit: WaitingVisit) {
        let (name, left_out, shared) = self.keyed(visit.page, &visit.request);
        let standing = self.evidence.standing(name, &left_out, self.now);
        if standing == Standing::Shared {
            return self.share(visit, name, shared);
        }
        let has_copy = self.copies.contains_key(&name);
        let part = match standing {
            Standing::Depends(_) => Part::Own {
                compared: None,
                shared: false,
            },
            _ => self
                .evidence
                .begin(name, &left_out, (visit.visitor, has_copy), self.now),
        };
        let begins_shared = match part {
            Part::Shared => return self.share(visit, name, shared),
            Part::Own {
                compared,
                shared: begins,
            } => {
                match compared {
                    Some(run) => self.under_way.push_back(UnderWay::Own(run, visit.clone())),
                    None => drop(self.own_answer(&visit)),
                }
                begins
            }
            Part::Wait { shared: begins } => {
                self.waiting.push(visit.clone());
                begins
            }
        };
        if begins_shared {
            self.under_way
                .push_back(UnderWay::Shared(name, visit.page, shared));
        }
    }

    /// The shared answer is the visitor's, from memory or made for it, whatever comes back.
    fn share(&mut self, visit: WaitingVisit, name: PageName, shared: LeftOut) {
        if let Some(copy) = self.copies.get(&name) {
            let text = copy.text.clone();
            self.from_memory += 1;
            return self.give(&visit, &text);
        }
        let text = self.shared_answer(name, visit.page, &shared);
        self.give(&visit, &text);
    }

    fn shared_answer(&mut self, name: PageName, page: usize, shared: &LeftOut) -> String {
        self.shared += 1;
        let answer = self.run(page, shared);
        let (text, _) = self.applications[page].answer(shared);
        match answer {
            Some(answer) => {
                let digest = answer.digest;
                self.copies.insert(
                    name,
                    Copy {
                        text: text.clone(),
                        digest,
                    },
                );
                self.evidence.shared_ended(name, Some(digest), self.now);
            }
            None => {
                self.copies.remove(&name);
                self.evidence.shared_ended(name, None, self.now);
            }
        }
        text
    }

    fn own_answer(&mut self, visit: &WaitingVisit) -> Option<Rendering> {
        self.own += 1;
        let answer = self.run(visit.page, &visit.request);
        let (text, _) = self.applications[visit.page].answer(&visit.request);
        self.give(visit, &text);
        answer
    }

    /// One of those that are under way ends; who waits looks again.
    fn step(&mut self) {
        let Some(at) =
            (!self.under_way.is_empty()).then(|| self.random.below(self.under_way.len() as u64))
        else {
            return;
        };
        match self.under_way.remove(at as usize).expect("it is there") {
            UnderWay::Own(run, visit) => {
                let answer = self.own_answer(&visit);
                let end = answer.map_or(OwnEnd::NotStorable, |answer| {
                    OwnEnd::Storable(answer.digest)
                });
                let copy = self.copies.get(&run.page).map(|copy| copy.digest);
                let application = &self.applications[visit.page];
                if application.answer(&visit.request).0.contains(RESULTS) {
                    let voter = (run.page, format!("{:?}", visit.request));
                    self.seen_voters.insert(voter);
                }
                if let Some(order) = self.evidence.own_ended(&run, end, copy, self.now) {
                    self.under_way.push_back(UnderWay::Trial(order, visit.page));
                }
            }
            UnderWay::Shared(name, page, shared) => {
                self.shared_answer(name, page, &shared);
            }
            UnderWay::Trial(order, page) => self.try_out(&order, page),
        }
        for visit in std::mem::take(&mut self.waiting) {
            self.arrive(visit);
        }
    }

    fn try_out(&mut self, order: &TrialOrder, page: usize) {
        let mut trial = Trial::new(order.traits);
        let mut requests = 0;
        let verdict = loop {
            match trial.next() {
                TrialStep::Done(verdict) => break verdict,
                TrialStep::Fetch(with) | TrialStep::FetchLater(with) => {
                    let mut request = LeftOut::default();
                    with.iter()
                        .for_each(|it| request.set(it, order.left_out.value(it)));
                    requests += 1;
                    let answer = self.run(page, &request);
                    trial.note(with, answer);
                }
            }
        };
        self.trials += u64::from(requests);
        self.evidence
            .trial_ended(order, Some(verdict), requests, self.now);
        if verdict == page_evidence::TrialVerdict::NotShareable {
            self.copies.remove(&order.page);
        }
    }

    fn visit_all(&mut self, visits: u64) {
        for _ in 0..visits {
            self.now += self.random.below(200);
            // A purge, or the end of a lifetime.
            if self.random.one_in(20) {
                self.copies.clear();
            }
            let visit = self.visitor();
            self.arrive(visit);
            while self.under_way.len() > 3 || self.random.one_in(2) && !self.under_way.is_empty() {
                self.step();
            }
        }
        while !self.under_way.is_empty() {
            self.step();
        }
        assert!(
            self.waiting.is_empty(),
            "{:?} wait for nothing",
            self.waiting
        );
        assert_eq!(self.answered, visits);
        // One visit is one run: each answer was the visitor's own, shared, or from memory.
        assert!(self.own + self.from_memory <= visits);
        assert_eq!(self.runs, self.own + self.shared + self.trials);
    }
}

fn environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Addresses have rules of their own here, and sessions a trial of their own (`guest-pages`).
fn is_of_any_page(it: &Trait) -> bool {
    !matches!(it, Trait::Network | Trait::Session)
}

#[test]
fn each_visitor_gets_what_their_own_request_is_given_and_each_visit_is_one_run() {
    let visits = environment("MAYFLY_VISITS", VISITS);
    let seed = environment("MAYFLY_SEED", 1);
    let (mut from_memory, mut trials, mut late) = (0, 0, 0);
    for number in 0..visits.div_ceil(VISITS_EACH) {
        println!("MAYFLY_SEED={}", seed + number);
        let mut site = Site::new((seed + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        site.visit_all(VISITS_EACH);
        from_memory += site.from_memory;
        trials += site.trials;
        late += site.late;
    }
    println!(
        "{visits} visits, {from_memory} from memory, {trials} requests of trials, {late} late"
    );
    assert!(late * 200 < visits, "{late} late");
    assert!(from_memory * 10 > visits, "{from_memory} from memory");
}

#[test]
fn applications_that_read_nothing_come_from_memory() {
    let mut site = Site::new(7);
    site.applications = vec![Application::default(); PAGES];
    site.visit_all(300);
    site.from_memory = 0;
    for _ in 0..1000 {
        let visit = site.visitor();
        site.arrive(visit);
        while !site.under_way.is_empty() {
            site.step();
        }
    }
    assert!(site.from_memory >= 950, "{}", site.from_memory);
}
