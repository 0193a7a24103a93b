//! Ten thousand clients of all classes, whose scripts have heavy tails, beside the queue; a seed decides
//! everything, and time passes by numbers.
//!
//! Each run checks that the queue keeps these promises:
//!
//! 1. **A bound of waiting.** Take a request that joins a line while its turn is idle there and not ahead of
//!    the virtual time `V`. Its start tag is `V`. Another turn of the line that is served before it had a
//!    tag of at most `V`; its next tag is at least its old one plus one, and the virtual time does not go
//!    back, so it is behind `V`, or ties with it and has used more. A turn that joins later comes in at `V`
//!    or behind. (One that is known goes before a newcomer of the same tag, and each once for the same
//!    reason.) So of the `T` other turns that wait or come, each that was there goes before it once at
//!    most. Between two requests that are taken from its line, at most `MAX_PASSED_OVER + LINES - 1`
//!    go to others: then the line is due, and at most the other lines that are due go first. Hence at most
//!    `(T + 1) * (MAX_PASSED_OVER + LINES)` requests of any kind are taken before it. Crawlers, who have a
//!    share, count those that are taken while their share is not used up: it is, for as long as a script.
//! 2. **No turn is shut out**, idle before or not: a turn is at most `MAX_LEAD` ahead of the virtual time,
//!    and each other turn is served for at most `MAX_LEAD + 2 * MAX_COST` of PHP time in a round of it.
//! 3. **Fairness**: of the clients of one class that always have a request waiting, Jain's index over their
//!    PHP time is at least 0.95.
//! 4. **Order of classes**: while all lines wait, one of visitors gets more of PHP than one of crawlers.

use std::collections::HashMap;

use crate::asset_marks::AssetMarks;
use crate::class::{Class, LINES, MAX_PASSED_OVER};
use crate::clients::{Clients, CrawlerName, NameEvidence, RequestFacts, Turn, Visit};
use crate::crawl_delays::CrawlDelays;
use crate::queue::{FairQueue, Search, StartedRequest};
use crate::slots::Slots;

/// A generator of xorshift: simulations need a sequence that is the same each time.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Pareto's distribution with a tail of 1.5, from 10 ms to 20 s.
    pub fn heavy(&mut self) -> u64 {
        let time = 10.0 / (1.0 - self.fraction()).powf(1.0 / 1.5);
        (time as u64).clamp(10, 20_000)
    }
}

/// An error that is planted: each has to be found.
#[derive(Clone, Copy, PartialEq)]
enum PlantedError {
    Nothing,
    /// The time of scripts is not charged.
    CostForgotten,
    /// Visitors are put into the line of crawlers, and the other way round.
    ClassesInverted,
    /// All requests are of one turn.
    OneTurn,
}

#[derive(Clone, Copy)]
struct Client {
    class: Class,
    /// Always has a request that waits, of scripts of about this length; `None`: comes now and then.
    greedy: Option<u64>,
    used: u64,
}

struct WaitingRequest {
    client: usize,
    bound: Option<usize>,
    taken_before: usize,
}

struct Simulation {
    queue: FairQueue<WaitingRequest>,
    clients: Vec<Client>,
    random: Random,
    planted: PlantedError,
    /// Requests taken, by the lines that were open at the time.
    taken: [usize; LINES],
    under_way: Vec<(u64, u64, usize, StartedRequest)>,
    now: u64,
    waiting_turns: [HashMap<usize, usize>; LINES],
    by_class: HashMap<Class, u64>,
}

const SLOTS: Slots = Slots {
    workers: Some(8),
    limit: Some(8),
    crawler_share: 25,
};
const GREEDY: usize = 40;

impl Simulation {
    fn new(clients: usize, seed: u64, planted: PlantedError) -> Self {
        let class = |at: usize| match at % 10 {
            0..=5 => Class::Visitor,
            6 => Class::Writer,
            7 => Class::Fragment,
            _ => Class::Crawler,
        };
        let greedy = |at: usize| (at < 2 * GREEDY).then_some(10 * (1 + at as u64 % 7));
        let clients = (0..clients).map(|at| Client {
            class: match greedy(at) {
                Some(_) if at < GREEDY => Class::Visitor,
                Some(_) => Class::Crawler,
                None => class(at),
            },
            greedy: greedy(at),
            used: 0,
        });
        Self {
            queue: FairQueue::new(true),
            clients: clients.collect(),
            random: Random(seed),
            planted,
            taken: [0; LINES],
            under_way: Vec::new(),
            now: 0,
            waiting_turns: Default::default(),
            by_class: HashMap::new(),
        }
    }

    fn class_of(&self, client: usize) -> Class {
        match (self.planted, self.clients[client].class) {
            (PlantedError::ClassesInverted, Class::Visitor) => Class::Crawler,
            (PlantedError::ClassesInverted, Class::Crawler) => Class::Visitor,
            (_, class) => class,
        }
    }

    fn turn_of(&self, client: usize) -> Turn {
        Turn::numbered(match self.planted {
            PlantedError::OneTurn => 1,
            _ => client as u64 + 1,
        })
    }

    fn join(&mut self, client: usize) {
        let (class, turn) = (self.class_of(client), self.turn_of(client));
        let own = self.clients[client].class;
        let turns = &mut self.waiting_turns[own.line()];
        let is_idle = !turns.contains_key(&client) && self.clients[client].greedy.is_none();
        let has_used = self.clients[client].used > 0;
        // A client that was never served is not ahead of the line.
        let bound = (is_idle && !has_used).then(|| (turns.len() + 1) * (MAX_PASSED_OVER + LINES));
        *turns.entry(client).or_insert(0) += 1;
        let waiting = WaitingRequest {
            client,
            bound,
            taken_before: self.taken[class.line()],
        };
        self.queue.join(class, &turn, waiting, self.now);
    }

    /// Serves as many as there is room for.
    fn serve(&mut self) -> Result<(), String> {
        let mut search = Search::default();
        while self.under_way.len() < 8 {
            let Some((ticket, _)) = self.queue.next(SLOTS, &mut search, self.now) else {
                break;
            };
            let crawlers = Class::Crawler.line();
            let is_open = self.queue.is_open(Class::Crawler, SLOTS);
            let Some((waiting, started)) = self.queue.take(ticket, self.now) else {
                return Err("a ticket that is shown cannot be taken".to_owned());
            };
            search = Search::default();
            let at = self.class_of(waiting.client).line();
            let before = self.taken[at] - waiting.taken_before;
            if waiting.bound.is_some_and(|bound| before > bound) {
                return Err(format!(
                    "{before} requests went before one of {:?}, at most {:?} may",
                    self.clients[waiting.client].class, waiting.bound
                ));
            }
            for (line, taken) in self.taken.iter_mut().enumerate() {
                *taken += usize::from(line != crawlers || is_open);
            }
            let own = self.clients[waiting.client].class;
            let turns = &mut self.waiting_turns[own.line()];
            match turns.get_mut(&waiting.client) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(turns.remove(&waiting.client)),
            }
            let time = match self.clients[waiting.client].greedy {
                Some(mean) => mean / 2 + self.random.below(mean as usize) as u64,
                None => self.random.heavy(),
            };
            self.under_way
                .push((self.now + time, time, waiting.client, started));
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        // One of the many comes now and then.
        if self.random.below(3) == 0 {
            let client = 2 * GREEDY + self.random.below(self.clients.len() - 2 * GREEDY);
            self.join(client);
        }
        self.serve()?;
        let Some(first) = (0..self.under_way.len()).min_by_key(|&at| self.under_way[at].0) else {
            return Ok(());
        };
        let (end, time, client, started) = self.under_way.swap_remove(first);
        self.now = self.now.max(end);
        self.clients[client].used += time;
        *self.by_class.entry(self.clients[client].class).or_insert(0) += time;
        let charged = match self.planted {
            PlantedError::CostForgotten => 1,
            _ => time,
        };
        self.queue.end(started, charged, self.now);
        if self.clients[client].greedy.is_some() {
            self.join(client);
        }
        self.serve()
    }

    fn run(&mut self, steps: usize) -> Result<(), String> {
        for client in 0..2 * GREEDY {
            // Some come with one connection, and some with nine.
            for _ in 0..1 + client % 9 {
                self.join(client);
            }
        }
        for _ in 0..steps {
            self.step()?;
        }
        self.judge()
    }

    fn judge(&self) -> Result<(), String> {
        for class in [Class::Visitor, Class::Crawler] {
            let of_class = |client: &&Client| client.greedy.is_some() && client.class == class;
            let used = self
                .clients
                .iter()
                .filter(of_class)
                .map(|it| it.used as f64);
            let fairness = jain(used);
            if fairness < 0.95 {
                return Err(format!("Jain's index of {class:?} is {fairness:.3}"));
            }
        }
        let of = |class| self.by_class.get(&class).copied().unwrap_or(0);
        if of(Class::Crawler) == 0 || of(Class::Fragment) == 0 || of(Class::Writer) == 0 {
            return Err(format!("a class got nothing: {:?}", self.by_class));
        }
        if of(Class::Crawler) * 2 > of(Class::Visitor) {
            return Err(format!("crawlers got too much: {:?}", self.by_class));
        }
        Ok(())
    }
}

/// Jain's fairness index: 1 where all are equal, 1/n where one has everything.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    sum * sum / (count * squares)
}

#[test]
fn ten_thousand_clients_wait_within_the_bound_and_are_served_fairly() {
    for seed in 1..=3 {
        let mut simulation = Simulation::new(10_000, seed, PlantedError::Nothing);
        if let Err(error) = simulation.run(30_000) {
            panic!("seed {seed}: {error}");
        }
    }
}

#[test]
fn planted_errors_are_found() {
    for planted in [
        PlantedError::CostForgotten,
        PlantedError::ClassesInverted,
        PlantedError::OneTurn,
    ] {
        let mut simulation = Simulation::new(10_000, 1, planted);
        assert!(simulation.run(30_000).is_err());
    }
}

/// A turn that had a long script, or many at once, is served again while others keep coming.
#[test]
fn a_turn_that_has_used_much_is_served_again() {
    let mut queue: FairQueue<u64> = FairQueue::new(true);
    let heavy = Turn::numbered(1);
    let slots = Slots::default();
    for _ in 0..8 {
        let started = queue.begin(Class::Visitor, &heavy, 0);
        queue.end(started, 60_000, 0);
    }
    queue.join(Class::Visitor, &heavy, 1, 0);
    let mut used_by_others = 0;
    for other in 2.. {
        queue.join(Class::Visitor, &Turn::numbered(2), other, 0);
        let (ticket, _) = queue.next(slots, &mut Search::default(), 0).unwrap();
        let (waiter, started) = queue.take(ticket, 0).unwrap();
        queue.end(started, 100, 0);
        if waiter == 1 {
            break;
        }
        used_by_others += 100;
        assert!(used_by_others <= crate::queue::MAX_LEAD + 2 * crate::flow::MAX_COST);
    }
    assert!(used_by_others > 0, "it has used much and comes later");
}

#[test]
fn a_newcomer_goes_before_sixty_requests_of_one_turn() {
    let mut queue: FairQueue<&str> = FairQueue::new(true);
    let (bot, visitor) = (Turn::numbered(1), Turn::numbered(2));
    for _ in 0..60 {
        queue.join(Class::Visitor, &bot, "bot", 0);
    }
    let first = queue.next(Slots::default(), &mut Search::default(), 0);
    let (ticket, _) = first.unwrap();
    let (_, started) = queue.take(ticket, 0).unwrap();
    queue.join(Class::Visitor, &visitor, "visitor", 0);
    queue.end(started, 80, 80);
    let (_, next) = queue
        .next(Slots::default(), &mut Search::default(), 80)
        .unwrap();
    assert_eq!(*next, "visitor");
}

#[test]
fn who_is_known_goes_before_a_storm_of_newcomers() {
    let mut queue: FairQueue<&str> = FairQueue::new(true);
    for number in 0..60 {
        queue.join(Class::Visitor, &Turn::numbered(number), "newcomer", 0);
    }
    let (ticket, _) = queue
        .next(Slots::default(), &mut Search::default(), 0)
        .unwrap();
    let (_, started) = queue.take(ticket, 0).unwrap();
    queue.end(started, 80, 80);
    queue.join(
        Class::Visitor,
        &Turn {
            is_known: true,
            ..Turn::numbered(101)
        },
        "visitor",
        80,
    );
    let (_, next) = queue
        .next(Slots::default(), &mut Search::default(), 80)
        .unwrap();
    assert_eq!(*next, "visitor");
}

#[test]
fn who_leaves_gives_the_place_back() {
    let mut queue: FairQueue<u32> = FairQueue::new(true);
    let (one, other) = (Turn::numbered(1), Turn::numbered(2));
    let leaving = queue.join(Class::Visitor, &one, 1, 0);
    let staying = queue.join(Class::Visitor, &one, 2, 0);
    queue.join(Class::Visitor, &other, 3, 0);
    assert_eq!(queue.leave(leaving, 0), Some(1));
    assert_eq!(queue.leave(leaving, 0), None);
    assert_eq!(queue.len_of(Class::Visitor), 2);
    let (ticket, _) = queue
        .next(Slots::default(), &mut Search::default(), 0)
        .unwrap();
    assert_eq!(ticket, staying, "the turn stays where it was");
}

#[test]
fn crawlers_have_their_share_while_visitors_wait_and_all_when_none_does() {
    let mut queue: FairQueue<u32> = FairQueue::new(true);
    let crawler = Turn::numbered(1);
    let mut under_way = Vec::new();
    for _ in 0..20 {
        queue.join(Class::Crawler, &crawler, 0, 0);
    }
    while let Some((ticket, _)) = queue.next(SLOTS, &mut Search::default(), 0) {
        under_way.push(queue.take(ticket, 0).unwrap().1);
    }
    assert_eq!(
        under_way.len(),
        7,
        "one of eight is for who has used little"
    );
    for number in 2..40 {
        queue.join(Class::Visitor, &Turn::numbered(number), 1, 0);
    }
    let mut most = 0;
    for _ in 0..30 {
        let (ticket, _) = queue.next(SLOTS, &mut Search::default(), 0).unwrap();
        let (_, started) = queue.take(ticket, 0).unwrap();
        queue.end(under_way.remove(0), 80, 0);
        under_way.push(started);
        let [.., (_, crawlers, _), _] = queue.by_line();
        most = most.max(crawlers);
    }
    assert!(queue.visitors() > 0);
    let [.., (_, crawlers, _), _] = queue.by_line();
    assert!((1..=2).contains(&crawlers), "{crawlers}");
}

#[test]
fn the_operator_sees_who_has_used_most_and_what_it_asked_for_last() {
    let mut queue: FairQueue<u32> = FairQueue::new(true);
    for (number, took, latest) in [(1, 50, "/a"), (2, 900, "/calendar/"), (2, 900, "/diff/")] {
        let turn = Turn {
            request: RequestFacts {
                latest: latest.into(),
                ..RequestFacts::default()
            },
            ..Turn::numbered(number)
        };
        let started = queue.begin(Class::Visitor, &turn, 0);
        queue.end(started, took, 0);
    }
    let seen: Vec<_> = queue
        .top(2, 0)
        .into_iter()
        .map(|turn| (turn.latest, turn.minute_ms as u64))
        .collect();
    assert_eq!(seen, [("/diff/".into(), 1800), ("/a".into(), 50)]);
}

#[test]
fn a_crawler_that_comes_before_its_delay_is_over_is_charged_the_delay() {
    let mut clients = Clients::default();
    let delays = CrawlDelays::read(b"User-agent: hasty\nUser-agent: patient\nCrawl-delay: 2\n");
    clients.set_crawl_delays(b"site", delays, 0);
    let assets = AssetMarks::default();
    let mut turn_of = |name, now| {
        let visit = Visit {
            address: Some([192, 0, 2, 1].into()),
            crawler: Some(CrawlerName {
                name,
                evidence: NameEvidence::NoSearchEngine,
            }),
            page: (b"site", b"/"),
            ..Visit::default()
        };
        clients.assess(&visit, &assets, now).turn
    };
    let mut queue: FairQueue<&str> = FairQueue::new(true);
    // The hasty one has asked often, and each of them has three requests that wait.
    for now in 0..5 {
        turn_of("hasty", now);
    }
    for name in ["hasty", "patient", "free"] {
        for number in 0..3 {
            let turn = turn_of(name, 10_000 + number * 2000);
            queue.join(Class::Crawler, &turn, name, 0);
        }
    }
    for _ in 0..3 {
        queue.join(Class::Crawler, &turn_of("hasty", 14_001), "hasty early", 0);
    }
    let mut served = Vec::new();
    while let Some((ticket, _)) = queue.next(Slots::default(), &mut Search::default(), 0) {
        let (name, started) = queue.take(ticket, 0).unwrap();
        queue.end(started, 100, 0);
        served.push(name);
    }
    let mut first = served[..9].to_vec();
    first.sort_unstable();
    assert_eq!(
        first,
        [
            "free", "free", "free", "hasty", "hasty", "hasty", "patient", "patient", "patient"
        ],
        "obeyed delays cost nothing: {served:?}"
    );
    // It is far ahead of the line now, and has used no more PHP than the requests took.
    queue.join(Class::Crawler, &turn_of("hasty", 14_002), "hasty early", 0);
    queue.join(Class::Crawler, &turn_of("free", 20_000), "free", 0);
    let (_, next) = queue
        .next(Slots::default(), &mut Search::default(), 0)
        .unwrap();
    assert_eq!(*next, "free");
    let used = queue.uses(1, 0);
    assert_eq!(
        (&*used[0].name, used[0].minute_ms as u64),
        ("crawler", 1200)
    );
}
