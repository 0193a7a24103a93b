//! The results of the simulation, as values: `--json` prints them and [`Advice::to_text`] shows
//! them.

use serde::Serialize;

use crate::entry::Fault;
use crate::names::{NameStatistics, Names};
use crate::pages::LIFETIMES_MS;
use crate::patterns::REST;
use crate::study::{SPLIT_LIFETIMES_MS, Study, Totals};

/// Patterns with a smaller share of PHP's requests are shown as one.
const MIN_SHARE: f64 = 0.01;
const MAX_PATTERNS: usize = 12;
const MAX_NAMES: usize = 12;
/// The suggested lifetime spares at least this share of the runs that one minute spares.
const WELL_SPARED: f64 = 0.9;
const MINUTE_INDEX: usize = 8;
/// Arguments with fewer requests show nothing.
const MIN_REQUESTS: u64 = 100;
/// From this share of requests with a value of their own on, nearly each has another one.
const MOSTLY_UNIQUE: f64 = 0.9;

/// The advice drawn from the logs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    pub lines: u64,
    pub bad_lines: Vec<BadLines>,
    /// Seconds since the Unix epoch.
    pub from: f64,
    pub to: f64,
    /// The times of the log are whole seconds.
    pub whole_seconds: bool,
    pub requests: Requests,
    /// The share of answers from memory by the cache status in the log itself, of all requests
    /// that have one.
    pub logged_hit_ratio: Option<f64>,
    pub lifetimes: Vec<Lifetime>,
    /// The shortest lifetime that spares nine tenths of the runs that a minute spares.
    pub suggested_lifetime_ms: Option<u32>,
    pub patterns: Vec<Pattern>,
    pub arguments: Vec<Name>,
    pub cookies: Vec<Name>,
    pub cookies_are_logged: bool,
    /// The cost of ignored arguments if they were in the key.
    pub split: Vec<Split>,
    /// Lines of a configuration.
    pub directives: Vec<String>,
}

/// Lines that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BadLines {
    pub what: String,
    pub lines: u64,
    /// `FILE:LINE` of the first.
    pub first: String,
}

/// Crawlers that take this share of PHP's time are worth a limit (`crawler_share` is a quarter).
const MUCH_OF_PHP: f64 = 0.25;

/// The number of requests of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Requests {
    pub all: u64,
    /// Files and refused requests, which PHP never sees.
    pub without_php: u64,
    /// Requests for pages that may be stored.
    pub pages: u64,
    pub personal: u64,
    pub writes: u64,
    pub not_stored: u64,
    /// Requests of crawlers that need PHP or a stored page, and their share.
    pub crawlers: u64,
    pub crawlers_share: f64,
    /// Their share of the time of PHP; where the log has times.
    pub crawlers_php_share: Option<f64>,
}

/// One lifetime for all pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lifetime {
    pub lifetime_ms: u32,
    /// Requests of pages for which PHP does not run, of all requests of pages.
    pub hit_ratio: f64,
    /// PHP runs, those that no cache spares included.
    pub runs: u64,
    pub runs_per_second: f64,
    pub busiest_minute_runs_per_second: f64,
    /// PHP workers that are busy on the average; where the log has times.
    pub busy_workers: Option<f64>,
    /// The most that is fresh at one time.
    pub memory_bytes: u64,
    /// The simulation had to forget pages, since there were more than it remembers: the hit ratio
    /// is at least this.
    pub is_lower_bound: bool,
}

/// The pages of one path pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pattern {
    pub pattern: String,
    /// Requests that need PHP or a stored page.
    pub requests: u64,
    pub share: f64,
    /// PHP runs that happen whatever is stored.
    pub never_stored: u64,
    pub pages: u64,
    pub mean_php_ms: Option<f64>,
    /// By lifetime, in the order of `lifetimes`.
    pub hit_ratios: Vec<f64>,
    /// The shortest lifetime in which a stored page is asked for at least once more; none: no use.
    pub useful_from_ms: Option<u32>,
}

/// An argument or a cookie.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Name {
    pub name: String,
    pub requests: u64,
    pub values: usize,
    /// There were more values than are counted.
    pub more_values: bool,
    /// It is known that no page depends on it.
    pub splits_for_nothing: bool,
    /// Nearly each request has another value. The argument may choose the page, which only the
    /// application knows, so no directive is made of it.
    pub mostly_unique: bool,
}

/// The hit ratio of a lifetime, with and without the ignored arguments in the key.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    pub lifetime_ms: u32,
    pub hit_ratio: f64,
    pub hit_ratio_with_arguments: f64,
}

impl Fault {
    #[must_use]
    pub fn lines(self, lines: u64, first: String) -> BadLines {
        BadLines {
            what: self.words().to_owned(),
            lines,
            first,
        }
    }
}

impl Study {
    /// Simulates the remaining requests, and returns the advice.
    #[must_use]
    pub fn advice(mut self) -> Advice {
        self.finish();
        of(&self)
    }
}

fn of(study: &Study) -> Advice {
    let counts = study.counts;
    let mut sum = Totals::default();
    study.totals.iter().for_each(|totals| sum.add(totals));
    let from = if counts.entries == 0 {
        0
    } else {
        study.from_ms
    };
    let seconds = (study.to_ms.saturating_sub(from) as f64 / 1000.0).max(1.0);
    let lifetimes = lifetimes(study, &sum, seconds);
    let suggested = suggested(&sum);
    let arguments = names(&study.arguments);
    let cookies = names(&study.cookies);
    let mut advice = Advice {
        lines: counts.entries,
        bad_lines: Vec::new(),
        from: from as f64 / 1000.0,
        to: study.to_ms as f64 / 1000.0,
        whole_seconds: counts.exact < counts.entries,
        requests: Requests {
            all: counts.entries,
            without_php: counts.files + counts.refused,
            pages: counts.pages,
            personal: counts.personal,
            writes: counts.writes,
            not_stored: counts.not_stored,
            crawlers: counts.crawlers,
            crawlers_share: ratio(counts.crawlers, sum.visits + sum.always),
            crawlers_php_share: (counts.php_ms > 0)
                .then(|| ratio(counts.crawlers_php_ms, counts.php_ms)),
        },
        logged_hit_ratio: (counts.with_cache_status > 0)
            .then(|| ratio(counts.from_memory, counts.with_cache_status)),
        lifetimes,
        suggested_lifetime_ms: suggested.and_then(|it| LIFETIMES_MS.get(it).copied()),
        patterns: patterns(study, &sum),
        arguments,
        cookies,
        cookies_are_logged: counts.with_cookies > 0,
        split: split(study, &sum),
        directives: Vec::new(),
    };
    advice.directives = directives(&advice, suggested);
    advice
}

fn ratio(part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    part as f64 / all as f64
}

fn hit_ratio(totals: &Totals, index: usize) -> f64 {
    let runs = totals.runs.get(index).copied().unwrap_or_default();
    ratio(totals.visits.saturating_sub(runs), totals.visits)
}

fn lifetimes(study: &Study, sum: &Totals, seconds: f64) -> Vec<Lifetime> {
    let each = LIFETIMES_MS.iter().zip(&study.courses).enumerate();
    each.map(|(index, (lifetime_ms, course))| {
        let runs = sum.always + sum.runs.get(index).copied().unwrap_or_default();
        // Each pattern has its own mean: pages that are seldom wanted may be the dear ones.
        let run_ms: f64 = study
            .totals
            .iter()
            .map(|it| {
                let runs = it.always + it.runs.get(index).copied().unwrap_or_default();
                it.mean_run_ms().or(sum.mean_run_ms()).unwrap_or(0.0) * runs as f64
            })
            .sum();
        Lifetime {
            lifetime_ms: *lifetime_ms,
            hit_ratio: hit_ratio(sum, index),
            runs,
            runs_per_second: runs as f64 / seconds,
            busiest_minute_runs_per_second: course.busiest_runs as f64 / seconds.min(60.0),
            busy_workers: (sum.timed_runs > 0).then(|| run_ms / 1000.0 / seconds),
            memory_bytes: course.most_bytes,
            is_lower_bound: study.pages.exact_up_to_ms() < *lifetime_ms,
        }
    })
    .collect()
}

/// The index of the shortest lifetime that spares well; none if even a minute spares little.
fn suggested(sum: &Totals) -> Option<usize> {
    let wanted = hit_ratio(sum, MINUTE_INDEX) * WELL_SPARED;
    (0..=MINUTE_INDEX).find(|index| hit_ratio(sum, *index) >= wanted && wanted > 0.0)
}

fn patterns(study: &Study, sum: &Totals) -> Vec<Pattern> {
    let all = sum.visits + sum.always;
    let requests = |totals: &Totals| totals.visits + totals.always;
    let mut named: Vec<(String, Totals)> = study
        .patterns
        .names()
        .into_iter()
        .zip(study.totals.iter().cloned())
        .collect();
    named.sort_by_key(|(_, totals)| std::cmp::Reverse(requests(totals)));
    let mut rest = Totals::default();
    let mut shown = 0;
    named.retain(|(name, totals)| {
        let is_shown =
            name != REST && shown < MAX_PATTERNS && ratio(requests(totals), all) >= MIN_SHARE;
        match is_shown {
            true => shown += 1,
            false => rest.add(totals),
        }
        is_shown
    });
    if requests(&rest) > 0 {
        named.push((REST.to_owned(), rest));
    }
    let pattern = |(pattern, totals): (String, Totals)| {
        let hit_ratios: Vec<f64> = (0..LIFETIMES_MS.len())
            .map(|index| hit_ratio(&totals, index))
            .collect();
        // The lifetime with at least as many hits as runs: each stored page is asked for once
        // more.
        let useful = hit_ratios.iter().position(|it| *it >= 0.5);
        Pattern {
            pattern,
            requests: requests(&totals),
            share: ratio(requests(&totals), all),
            never_stored: totals.always,
            pages: totals.pages,
            mean_php_ms: totals.mean_run_ms(),
            hit_ratios,
            useful_from_ms: useful.and_then(|it| LIFETIMES_MS.get(it).copied()),
        }
    };
    named.into_iter().map(pattern).collect()
}

fn names(names: &Names) -> Vec<Name> {
    let all = names.all();
    let shown = all
        .iter()
        .filter(|(_, sent)| sent.is_ignored || is_mostly_unique(sent));
    let others = all
        .iter()
        .filter(|(_, sent)| !sent.is_ignored && !is_mostly_unique(sent));
    shown
        .map(|(name, sent)| self::name(name, sent))
        .take(MAX_NAMES)
        .chain(others.take(3).map(|(name, sent)| self::name(name, sent)))
        .collect()
}

fn is_mostly_unique(sent: &NameStatistics) -> bool {
    sent.requests >= MIN_REQUESTS && sent.unique_share() >= MOSTLY_UNIQUE
}

fn name(name: &str, sent: &NameStatistics) -> Name {
    let (values, more_values) = sent.values();
    Name {
        name: name.to_owned(),
        requests: sent.requests,
        values,
        more_values,
        splits_for_nothing: sent.is_ignored,
        mostly_unique: is_mostly_unique(sent),
    }
}

fn split(study: &Study, sum: &Totals) -> Vec<Split> {
    let each = SPLIT_LIFETIMES_MS.iter().zip(&study.split_runs);
    each.filter_map(|(lifetime_ms, runs)| {
        let index = LIFETIMES_MS.iter().position(|it| it == lifetime_ms)?;
        Some(Split {
            lifetime_ms: *lifetime_ms,
            hit_ratio: hit_ratio(sum, index),
            hit_ratio_with_arguments: ratio(sum.visits.saturating_sub(*runs), sum.visits),
        })
    })
    .collect()
}

/// The size of a zone is that of the fresh pages, and as much again for pages kept for the time
/// when PHP fails.
fn directives(advice: &Advice, suggested: Option<usize>) -> Vec<String> {
    let Some(lifetime) = suggested.and_then(|it| advice.lifetimes.get(it)) else {
        return Vec::new();
    };
    let text = crate::lifetime_text(lifetime.lifetime_ms);
    let kept = advice
        .lifetimes
        .iter()
        .find(|it| it.lifetime_ms == 3_600_000);
    let bytes = kept.map_or(lifetime.memory_bytes, |it| it.memory_bytes);
    let megabytes = (bytes * 2 / 1_048_576).next_power_of_two().max(16);
    let mut lines = vec![
        format!(
            "fastcgi_cache_path /dev/shm/pages keys_zone=pages:8m memory={megabytes}m inactive=1h;"
        ),
        "fastcgi_cache pages;".to_owned(),
        format!("fastcgi_cache_valid 200 301 302 404 {text};"),
        "fastcgi_cache_use_stale error timeout http_500 http_503 updating;".to_owned(),
        "fastcgi_cache_background_update on;".to_owned(),
        "cache_shared on;".to_owned(),
    ];
    let ignored = |names: &[Name]| {
        let names = names.iter().filter(|it| it.splits_for_nothing);
        let is_plain = |it: &&Name| {
            let mut bytes = it.name.bytes();
            bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        names
            .filter(is_plain)
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (directive, names) in [
        ("cache_ignore_args", ignored(&advice.arguments)),
        ("cache_ignore_cookies", ignored(&advice.cookies)),
    ] {
        if !names.is_empty() {
            lines.push(format!("{directive} {names};"));
        }
    }
    let requests = &advice.requests;
    if requests.crawlers_share >= 0.1 {
        lines.push("cache_crawler_valid 60s;".to_owned());
    }
    let php_share = requests.crawlers_php_share;
    if php_share.unwrap_or(requests.crawlers_share) >= MUCH_OF_PHP {
        lines.push("php_concurrency auto;".to_owned());
    }
    lines
}
