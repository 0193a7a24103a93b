//! Logs whose truth is known: traffic is drawn, a plain simulation with exact times computes how much
//! a cache would have spared, and advice from the log has to agree.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use log_advice::{Advice, Format, Input, Rules, Study};
use shared_request::NameSet;

/// 23 November 2026.
const BEGIN_MS: u64 = 1_795_392_000_000;
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64)";

/// A visit: when, and which page.
struct Visit {
    at_ms: u64,
    page: usize,
}

struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Independent visitors at a rate; page `n` is wanted in proportion to 1/n.
fn traffic(rate: f64, pages: usize, seconds: u64) -> Vec<Visit> {
    let mut random = Random(88_172_645_463_325_252);
    let weights: Vec<f64> = (1..=pages).map(|rank| 1.0 / rank as f64).collect();
    let all: f64 = weights.iter().sum();
    let mut visits = Vec::new();
    let mut at = 0.0;
    while at < seconds as f64 * 1000.0 {
        at -= random.next().max(1e-12).ln() / rate * 1000.0;
        let mut left = random.next() * all;
        let page = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        visits.push(Visit {
            at_ms: BEGIN_MS + at as u64,
            page: page.unwrap_or(0),
        });
    }
    visits
}

/// Returns the share that a cache with this lifetime answers without PHP.
fn truth(visits: &[Visit], lifetime_ms: u64) -> f64 {
    let mut fresh_until = HashMap::new();
    let mut hits = 0;
    for visit in visits {
        let fresh_until = fresh_until.entry(visit.page).or_insert(0);
        match visit.at_ms < *fresh_until {
            true => hits += 1,
            false => *fresh_until = visit.at_ms + lifetime_ms,
        }
    }
    f64::from(hits) / visits.len() as f64
}

fn advice(text: &str, format: Option<&str>, rules: Rules) -> Advice {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    let format = format.map(|text| Format::parse(text).unwrap());
    let mut study = Study::new(rules);
    let input = Input::open([path], format).unwrap();
    assert_eq!(input.read(&mut study, |_| ()).unwrap(), []);
    study.advice()
}

fn combined(visits: &[Visit], query: impl Fn(usize) -> String) -> String {
    let mut log = String::new();
    for (number, visit) in visits.iter().enumerate() {
        let seconds = (visit.at_ms - BEGIN_MS) / 1000;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let _ = writeln!(
            log,
            "192.0.2.1 - - [23/Nov/2026:{hours:02}:{minutes:02}:{seconds:02} +0000] \
             \"GET /page/{}{} HTTP/1.1\" 200 4000 \"-\" \"{AGENT}\"",
            visit.page,
            query(number)
        );
    }
    log
}

#[track_caller]
fn holds(advice: &Advice, visits: &[Visit]) {
    for row in &advice.lifetimes {
        let truth = truth(visits, u64::from(row.lifetime_ms));
        assert!(
            (row.hit_ratio - truth).abs() < 0.02,
            "{} ms: {} for {truth}",
            row.lifetime_ms,
            row.hit_ratio
        );
    }
}

#[test]
fn hit_ratios_are_predicted_within_two_points_for_every_lifetime() {
    for (rate, pages, seconds) in [(20.0, 100, 3000), (200.0, 1000, 300), (0.5, 20, 50_000)] {
        let visits = traffic(rate, pages, seconds);
        let advice = advice(
            &combined(&visits, |_| String::new()),
            None,
            Rules::default(),
        );
        assert!(advice.whole_seconds);
        holds(&advice, &visits);
    }
}

#[test]
fn exact_times_of_a_format_are_used() {
    let visits = traffic(100.0, 50, 100);
    let mut log = String::new();
    for visit in &visits {
        let (seconds, millis) = (visit.at_ms / 1000, visit.at_ms % 1000);
        let _ = writeln!(log, "{seconds}.{millis:03}|/page/{}|200", visit.page);
    }
    let advice = advice(&log, Some("$msec|$request_uri|$status"), Rules::default());
    assert!(!advice.whole_seconds);
    for row in &advice.lifetimes {
        let truth = truth(&visits, u64::from(row.lifetime_ms));
        assert!((row.hit_ratio - truth).abs() < 0.001, "{row:?} for {truth}");
    }
}

#[test]
fn arguments_of_statistics_are_ignored_and_their_cost_is_told() {
    let visits = traffic(50.0, 20, 200);
    let rules = Rules {
        ignored_arguments: NameSet::new([&b"utm_*"[..]]),
        ..Rules::default()
    };
    let log = combined(&visits, |number| format!("?utm_id={number}&a=1"));
    let advice = advice(&log, None, rules);
    holds(&advice, &visits);
    let split = &advice.split[0];
    assert!(
        split.hit_ratio > 0.5 && split.hit_ratio_with_arguments == 0.0,
        "{split:?}"
    );
    let name = &advice.arguments[0];
    assert!(name.name == "utm_id" && name.splits_for_nothing && name.more_values);
    assert!(
        !advice
            .arguments
            .iter()
            .any(|it| it.name == "a" && it.splits_for_nothing)
    );
    let directive = "cache_ignore_args utm_id;".to_owned();
    assert!(
        advice.directives.contains(&directive),
        "{:?}",
        advice.directives
    );
}

/// `id` may choose the page. That a stranger asks for many of them makes no directive of it.
#[test]
fn an_argument_with_many_values_is_told_and_never_ignored() {
    let visits = traffic(50.0, 20, 100);
    let log = combined(&visits, |number| format!("?id={number}"));
    let advice = advice(&log, None, Rules::default());
    let id = &advice.arguments[0];
    assert!(id.name == "id" && id.mostly_unique && !id.splits_for_nothing);
    let is_ignored = |line: &String| line.contains("cache_ignore_args");
    assert!(!advice.directives.iter().any(is_ignored));
}

#[test]
fn memory_is_what_is_fresh_at_one_time() {
    let visits = traffic(200.0, 100, 300);
    let advice = advice(
        &combined(&visits, |_| String::new()),
        None,
        Rules::default(),
    );
    let day = advice.lifetimes.last().unwrap();
    assert_eq!(day.memory_bytes, 100 * (4000 + 1024));
    let short = &advice.lifetimes[0];
    assert!(short.memory_bytes < 30 * 5024, "{short:?}");
}

#[test]
fn load_is_told_in_runs_and_in_busy_workers() {
    let mut log = String::new();
    for second in 0..60 {
        for (status, time) in [("MISS", "0.500"), ("HIT", "0.000")] {
            let _ = writeln!(
                log,
                "::1 [23/Nov/2026:00:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 100 {time} {status} \"{AGENT}\""
            );
        }
        let _ = writeln!(
            log,
            "::1 [23/Nov/2026:00:00:{second:02} +0000] \"POST / HTTP/1.1\" 200 100 0.500 BYPASS \"{AGENT}\""
        );
    }
    let advice = advice(&log, None, Rules::default());
    assert_eq!(advice.requests.writes, 60);
    assert_eq!(advice.logged_hit_ratio, Some(60.0 / 180.0));
    let day = advice.lifetimes.last().unwrap();
    assert_eq!(day.runs, 61);
    assert!(
        (day.runs_per_second - 61.0 / 59.999).abs() < 0.01,
        "{day:?}"
    );
    assert!((day.busy_workers.unwrap() - 0.508).abs() < 0.01, "{day:?}");
}

#[test]
fn patterns_say_where_a_cache_is_of_no_use() {
    let mut log = String::new();
    for number in 0..3000 {
        let (minute, second) = (number / 60, number % 60);
        let path = match number % 3 {
            0 => format!("/search/{number}"),
            _ => "/news/today".to_owned(),
        };
        let _ = writeln!(
            log,
            "::1 - - [23/Nov/2026:00:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 10 \"-\" \"{AGENT}\""
        );
    }
    let advice = advice(&log, None, Rules::default());
    let of = |name: &str| {
        advice
            .patterns
            .iter()
            .find(|it| it.pattern == name)
            .unwrap()
    };
    assert_eq!(of("/search/*").useful_from_ms, None);
    assert_eq!(of("/search/*").pages, 1000);
    assert_eq!(of("/news/*").useful_from_ms, Some(2_000));
    let text = advice.to_text();
    for words in [
        "no use",
        "PHP runs/s",
        "<- suggested",
        "fastcgi_cache_valid",
        "whole seconds",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = serde_json::to_string(&advice).unwrap();
    assert!(json.contains("\"useful_from_ms\":null"), "{json}");
}

#[test]
fn an_empty_log_has_an_answer() {
    let advice = advice("", None, Rules::default());
    assert_eq!((advice.lines, advice.suggested_lifetime_ms), (0, None));
    assert!(advice.to_text().contains("nothing to store"));
    assert!(serde_json::to_string(&advice).is_ok());
}
