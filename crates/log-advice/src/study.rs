//! Takes entries one after the other and simulates each lifetime for them.

use shared_request::{Class, NameSet, arguments};

use crate::entry::Entry;
use crate::names::{Names, hash_of};
use crate::pages::{LIFETIMES_MS, PageVisit, Pages};
use crate::patterns::{PatternId, Patterns};
use crate::timeline::{LoggedTime, Timeline};
use crate::visit::{Visit, path};

/// The memory that every stored page needs beside its body: key, fields, and its share of the tables.
const PAGE_OVERHEAD_BYTES: u64 = 1024;
/// Lifetimes for which the loss by arguments is simulated, in milliseconds.
pub const SPLIT_LIFETIMES_MS: [u32; 3] = [1_000, 60_000, 3_600_000];
const MINUTE_MS: u64 = 60_000;
/// `cache_crawler_valid` of `mayfly serve`.
const CRAWLER_LIFETIME_MS: u32 = 60_000;
const COUNT: usize = LIFETIMES_MS.len();

/// The parts of a page's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// The key of `cache_shared` and `cache_crawler_valid`: also by the class of the visitor, and pages
    /// of crawlers are fresh for a minute at least.
    #[default]
    Shared,
    /// Host and target alone.
    Plain,
}

/// Rules for names and paths that are set before any line is read.
#[derive(Debug, Default)]
pub struct Rules {
    pub keys: Keys,
    /// Arguments that no page depends on.
    pub ignored_arguments: NameSet,
    /// Cookies that no page depends on.
    pub ignored_cookies: NameSet,
    /// Cookies of visitors who have pages of their own.
    pub personal_cookies: NameSet,
    /// Parts of paths that lead to pages for one visitor: `wp-admin`.
    pub personal_parts: Vec<String>,
}

/// Counts of one pattern.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub visits: u64,
    pub crawler_visits: u64,
    /// Visits for which PHP runs whatever is stored.
    pub always: u64,
    pub pages: u64,
    pub runs: [u64; COUNT],
    pub run_ms: u64,
    pub timed_runs: u64,
}

impl Totals {
    /// How long PHP needs on the average, in milliseconds.
    pub fn mean_run_ms(&self) -> Option<f64> {
        (self.timed_runs > 0).then(|| self.run_ms as f64 / self.timed_runs as f64)
    }

    pub fn add(&mut self, other: &Totals) {
        self.visits += other.visits;
        self.crawler_visits += other.crawler_visits;
        self.always += other.always;
        self.pages += other.pages;
        self.run_ms += other.run_ms;
        self.timed_runs += other.timed_runs;
        for (sum, runs) in self.runs.iter_mut().zip(&other.runs) {
            *sum += runs;
        }
    }
}

/// A request, as far as the simulation needs it.
#[derive(Debug)]
struct Request {
    pattern: PatternId,
    is_page: bool,
    is_crawler: bool,
    key: u64,
    /// The key if no argument were ignored.
    split_key: u64,
    body_bytes: u32,
    run_ms: Option<u32>,
}

/// The number of requests of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub entries: u64,
    pub files: u64,
    pub refused: u64,
    pub personal: u64,
    pub writes: u64,
    pub not_stored: u64,
    pub pages: u64,
    pub crawlers: u64,
    /// The time of PHP for all, and for crawlers, in milliseconds.
    pub php_ms: u64,
    pub crawlers_php_ms: u64,
    pub exact: u64,
    pub timed: u64,
    pub with_cookies: u64,
    pub with_cache_status: u64,
    pub from_memory: u64,
}

/// Sums of one lifetime that need the order of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// PHP runs of the minute under way, and of the busiest.
    minute: u64,
    runs: u64,
    pub busiest_runs: u64,
    /// Bytes stored in the lifetime under way, and the most in any.
    span: u64,
    bytes: u64,
    pub most_bytes: u64,
}

/// The simulation.
#[derive(Debug)]
pub struct Study {
    pub(crate) rules: Rules,
    pub(crate) counts: Counts,
    pub(crate) patterns: Patterns,
    pub(crate) totals: Vec<Totals>,
    pub(crate) courses: [Course; COUNT],
    pub(crate) pages: Pages<COUNT>,
    split_pages: Pages<3>,
    pub(crate) split_runs: [u64; 3],
    pub(crate) arguments: Names,
    pub(crate) cookies: Names,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    timeline: Timeline<Request>,
    key: Vec<u8>,
}

impl Study {
    #[must_use]
    pub fn new(rules: Rules) -> Study {
        Study {
            rules,
            counts: Counts::default(),
            patterns: Patterns::default(),
            totals: Vec::new(),
            courses: [Course::default(); COUNT],
            pages: Pages::new(LIFETIMES_MS),
            split_pages: Pages::new(SPLIT_LIFETIMES_MS),
            split_runs: [0; 3],
            arguments: Names::default(),
            cookies: Names::default(),
            from_ms: u64::MAX,
            to_ms: 0,
            timeline: Timeline::new(),
            key: Vec::new(),
        }
    }

    /// Takes the next entry of the logs.
    pub fn take(&mut self, entry: &Entry<'_>) {
        self.from_ms = self.from_ms.min(entry.at_ms);
        let end = entry.at_ms + if entry.is_exact { 0 } else { 999 };
        self.to_ms = self.to_ms.max(end);
        let is_personal = self.is_personal(entry);
        let visit = Visit::of(entry, is_personal);
        let class = Class::of(entry.user_agent);
        self.count(entry, visit, class);
        if visit != Visit::Page && !visit.always_runs() {
            return;
        }
        let request = Request {
            pattern: self.patterns.of(path(entry.target)),
            is_page: visit == Visit::Page,
            is_crawler: class == Class::Crawler,
            key: 0,
            split_key: 0,
            body_bytes: entry
                .body_bytes
                .map_or(0, |it| u32::try_from(it).unwrap_or(u32::MAX)),
            run_ms: entry.run_ms(),
        };
        let request = match request.is_page {
            true => self.with_keys(entry, class, request),
            false => request,
        };
        let logged = LoggedTime {
            at_ms: entry.at_ms,
            is_exact: entry.is_exact,
            took_ms: entry.request_ms.or(entry.upstream_ms).unwrap_or(0),
        };
        self.timeline.put(logged, request);
        while let Some((at_ms, request)) = self.timeline.next() {
            self.simulate(at_ms, &request);
        }
    }

    /// Simulates the remaining requests.
    pub(crate) fn finish(&mut self) {
        while let Some((at_ms, request)) = self.timeline.any() {
            self.simulate(at_ms, &request);
        }
        for course in &mut self.courses {
            course.busiest_runs = course.busiest_runs.max(course.runs);
            course.most_bytes = course.most_bytes.max(course.bytes);
        }
    }

    fn is_personal(&self, entry: &Entry<'_>) -> bool {
        let is_named = |part: &[u8]| {
            let parts = &self.rules.personal_parts;
            parts.iter().any(|it| it.as_bytes() == part)
        };
        path(entry.target).split(|&byte| byte == b'/').any(is_named)
            || entry.cookies.is_some_and(|cookies| {
                cookies.split(|&byte| byte == b';').any(|pair| {
                    let name = pair.split(|&byte| byte == b'=').next();
                    let name = name.unwrap_or_default().trim_ascii();
                    !name.is_empty() && self.rules.personal_cookies.has(name)
                })
            })
    }

    fn count(&mut self, entry: &Entry<'_>, visit: Visit, class: Class) {
        let counts = &mut self.counts;
        counts.entries += 1;
        counts.exact += u64::from(entry.is_exact);
        let of_visit = match visit {
            Visit::Page => &mut counts.pages,
            Visit::Personal => &mut counts.personal,
            Visit::Write => &mut counts.writes,
            Visit::NotStored => &mut counts.not_stored,
            Visit::File => &mut counts.files,
            Visit::Refused => &mut counts.refused,
        };
        *of_visit += 1;
        if matches!(visit, Visit::File | Visit::Refused) {
            return;
        }
        counts.crawlers += u64::from(class == Class::Crawler);
        counts.timed += u64::from(entry.run_ms().is_some());
        let php_ms = u64::from(entry.run_ms().unwrap_or(0));
        counts.php_ms += php_ms;
        if class == Class::Crawler {
            counts.crawlers_php_ms += php_ms;
        }
        counts.with_cookies += u64::from(entry.cookies.is_some());
        if let Some(status) = entry.cache_status {
            counts.with_cache_status += 1;
            counts.from_memory += u64::from(status.is_from_memory());
        }
        if visit != Visit::Page {
            return;
        }
        if let Some(query) = entry.target.get(path(entry.target).len() + 1..) {
            self.arguments
                .count(query, b'&', &self.rules.ignored_arguments);
        }
        if let Some(cookies) = entry.cookies {
            self.cookies
                .count(cookies, b';', &self.rules.ignored_cookies);
        }
    }

    fn with_keys(&mut self, entry: &Entry<'_>, class: Class, request: Request) -> Request {
        let class = match self.rules.keys {
            Keys::Shared => class.letter(),
            Keys::Plain => b'-',
        };
        let mut key_of = |removed: &NameSet| {
            self.key.clear();
            self.key.push(class);
            self.key.extend_from_slice(entry.host);
            self.key.push(0);
            arguments::put_target(entry.target, removed, &mut self.key);
            hash_of(&self.key)
        };
        Request {
            key: key_of(&self.rules.ignored_arguments),
            split_key: key_of(&NameSet::default()),
            ..request
        }
    }

    fn simulate(&mut self, at_ms: u64, request: &Request) {
        let index = usize::from(request.pattern.0);
        if self.totals.len() <= index {
            self.totals.resize(index + 1, Totals::default());
        }
        let Some(totals) = self.totals.get_mut(index) else {
            return;
        };
        totals.crawler_visits += u64::from(request.is_crawler);
        if let Some(run_ms) = request.run_ms {
            totals.run_ms += u64::from(run_ms);
            totals.timed_runs += 1;
        }
        if !request.is_page {
            totals.always += 1;
            for course in &mut self.courses {
                course.run(at_ms);
            }
            return;
        }
        totals.visits += 1;
        let run_ms = request
            .run_ms
            .or_else(|| totals.mean_run_ms().map(|mean| mean as u32))
            .unwrap_or(0);
        let is_for_crawlers = request.is_crawler && self.rules.keys == Keys::Shared;
        let visit = PageVisit {
            key: request.key,
            at_ms,
            run_ms,
            body_bytes: request.body_bytes,
            least_lifetime_ms: if is_for_crawlers {
                CRAWLER_LIFETIME_MS
            } else {
                0
            },
        };
        let visited = self.pages.visit(visit);
        totals.pages += u64::from(visited.is_new);
        let each = self.courses.iter_mut().zip(&mut totals.runs);
        for (index, (course, runs)) in each.enumerate() {
            if visited.runs & (1 << index) != 0 {
                *runs += 1;
                course.run(at_ms);
                let bytes = u64::from(visited.body_bytes) + PAGE_OVERHEAD_BYTES;
                course.store(at_ms, LIFETIMES_MS.get(index).copied(), bytes);
            }
        }
        let visit = PageVisit {
            key: request.split_key,
            ..visit
        };
        let visited = self.split_pages.visit(visit);
        for (index, runs) in self.split_runs.iter_mut().enumerate() {
            *runs += u64::from(visited.runs >> index & 1);
        }
    }
}

impl Course {
    fn run(&mut self, at_ms: u64) {
        let minute = at_ms / MINUTE_MS;
        if minute != self.minute {
            self.busiest_runs = self.busiest_runs.max(self.runs);
            (self.minute, self.runs) = (minute, 0);
        }
        self.runs += 1;
    }

    /// Counts a stored page. The pages stored within a lifetime are those fresh at its end: each is
    /// stored once in it.
    fn store(&mut self, at_ms: u64, lifetime_ms: Option<u32>, bytes: u64) {
        let span = at_ms / u64::from(lifetime_ms.unwrap_or(1)).max(1);
        if span != self.span {
            self.most_bytes = self.most_bytes.max(self.bytes);
            (self.span, self.bytes) = (span, 0);
        }
        self.bytes += bytes;
    }
}
