//! Counts the results of requests, in bounded memory.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::answer::Response;
use command_line::CacheWord;

/// Longer than any request may take: microseconds of an hour.
const MAX_MICROS: u64 = 3_600_000_000;
/// Intervals of the course; a longer run has longer ones.
const MAX_INTERVALS: u32 = 200;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The reason why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    Connect,
    Tls,
    /// The connection ended before the whole answer.
    Closed,
    /// The received bytes are no HTTP.
    Broken,
    Timeout,
    /// It was due, and the run ended before it could be asked.
    NotAsked,
}

impl Failure {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Failure::Connect => "could not connect",
            Failure::Tls => "TLS failed",
            Failure::Closed => "connection closed early",
            Failure::Broken => "not HTTP",
            Failure::Timeout => "timeout",
            Failure::NotAsked => "never asked, no connection was free",
        }
    }

    /// Whether the visitor waited until the end for nothing. Then the time is at least that of
    /// the wait.
    fn has_waited(self) -> bool {
        matches!(self, Failure::Timeout | Failure::NotAsked)
    }
}

/// The result of one request.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub url: usize,
    /// When it was due, counted from the beginning of the run.
    pub due: Duration,
    /// From when it was due to the end of its answer.
    pub latency: Duration,
    /// From when it was sent.
    pub service: Duration,
    pub result: Result<Response, Failure>,
}

/// Counts of one URL, or of all.
#[derive(Clone, Debug)]
pub struct Counts {
    pub latency: Histogram<u64>,
    pub service: Histogram<u64>,
    pub answers: u64,
    pub bytes: u64,
    pub statuses: BTreeMap<u16, u64>,
    pub failures: BTreeMap<Failure, u64>,
    pub cache: BTreeMap<CacheWord, u64>,
}

/// A part of the run.
#[derive(Clone, Debug)]
pub struct Interval {
    pub latency: Histogram<u64>,
    pub answers: u64,
    pub failures: u64,
    pub hits: u64,
}

/// Everything that is counted.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub all: Counts,
    pub by_url: Vec<Counts>,
    pub course: Vec<Interval>,
    pub interval: Duration,
    /// How late this client itself was with requests that were due.
    pub lateness: Histogram<u64>,
    /// How long was asked, over all turns.
    pub elapsed: Duration,
    /// Turns before this one.
    before: Duration,
}

/// The numbers shown during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    pub elapsed: Duration,
    pub answers: u64,
    pub failures: u64,
    pub p99: Duration,
    pub hit_ratio: Option<f64>,
}

fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_MICROS, digits).expect("these bounds are valid ones")
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(MAX_MICROS)
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            latency: histogram(3),
            service: histogram(3),
            answers: 0,
            bytes: 0,
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            cache: BTreeMap::new(),
        }
    }
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        let has_waited = match outcome.result {
            Ok(answer) => {
                self.answers += 1;
                self.bytes += answer.body_bytes;
                *self.statuses.entry(answer.status).or_default() += 1;
                if let Some(word) = answer.cache {
                    *self.cache.entry(word).or_default() += 1;
                }
                true
            }
            Err(failure) => {
                *self.failures.entry(failure).or_default() += 1;
                failure.has_waited()
            }
        };
        if has_waited {
            self.latency.saturating_record(micros(outcome.latency));
            self.service.saturating_record(micros(outcome.service));
        }
    }

    pub fn failures(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns the share of answers for which the application did not run, of all that have a
    /// cache status.
    pub fn hit_ratio(&self) -> Option<f64> {
        let all: u64 = self.cache.values().sum();
        let spared = self.cache.iter().filter(|(word, _)| word.is_spared());
        let hits: u64 = spared.map(|(_, count)| count).sum();
        (all > 0).then(|| hits as f64 / all as f64)
    }
}

impl Recorder {
    /// For `urls` URLs and a run of this length.
    #[must_use]
    pub fn new(urls: usize, duration: Duration) -> Recorder {
        Recorder {
            all: Counts::default(),
            by_url: vec![Counts::default(); if urls > 1 { urls } else { 0 }],
            course: Vec::new(),
            interval: (duration / MAX_INTERVALS).max(SHORTEST_INTERVAL),
            lateness: histogram(3),
            elapsed: Duration::ZERO,
            before: Duration::ZERO,
        }
    }

    /// Another turn begins, or the only one.
    pub fn begin_turn(&mut self) {
        self.before = self.elapsed;
    }

    /// Ends the turn, which took this time.
    pub fn end_turn(&mut self, lasted: Duration) {
        self.elapsed = self.before + lasted;
    }

    pub fn add(&mut self, outcome: &Outcome) {
        self.all.add(outcome);
        if let Some(counts) = self.by_url.get_mut(outcome.url) {
            counts.add(outcome);
        }
        let at = (self.before + outcome.due).as_nanos() / self.interval.as_nanos().max(1);
        let last = MAX_INTERVALS as usize * 2;
        let at = usize::try_from(at).unwrap_or(last).min(last);
        while self.course.len() <= at {
            self.course.push(Interval {
                latency: histogram(2),
                answers: 0,
                failures: 0,
                hits: 0,
            });
        }
        let Some(interval) = self.course.get_mut(at) else {
            return;
        };
        match outcome.result {
            Ok(answer) => {
                interval.answers += 1;
                let is_hit = answer.cache.is_some_and(CacheWord::is_spared);
                interval.hits += u64::from(is_hit);
                interval.latency.saturating_record(micros(outcome.latency));
            }
            Err(failure) => {
                interval.failures += 1;
                if failure.has_waited() {
                    interval.latency.saturating_record(micros(outcome.latency));
                }
            }
        }
    }

    /// A request that was due was taken up so much later.
    pub fn add_lateness(&mut self, late: Duration) {
        self.lateness.saturating_record(micros(late));
    }

    /// The numbers to show `elapsed` after the turn began.
    #[must_use]
    pub fn live(&self, elapsed: Duration) -> Live {
        Live {
            elapsed: self.before + elapsed,
            answers: self.all.answers,
            failures: self.all.failures(),
            p99: Duration::from_micros(self.all.latency.value_at_quantile(0.99)),
            hit_ratio: self.all.hit_ratio(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(due_ms: u64, latency_ms: u64, result: Result<Response, Failure>) -> Outcome {
        Outcome {
            url: 1,
            due: Duration::from_millis(due_ms),
            latency: Duration::from_millis(latency_ms),
            service: Duration::from_millis(1),
            result,
        }
    }

    #[test]
    fn each_request_is_counted_once_where_it_was_due() {
        let mut recorder = Recorder::new(2, Duration::from_secs(1));
        let answer = Response {
            status: 200,
            body_bytes: 10,
            cache: Some(CacheWord::Hit),
            closes: false,
        };
        recorder.begin_turn();
        recorder.add(&outcome(50, 3, Ok(answer)));
        recorder.add(&outcome(250, 800, Err(Failure::Timeout)));
        recorder.add(&outcome(260, 1, Err(Failure::Connect)));
        recorder.end_turn(Duration::from_secs(1));
        recorder.begin_turn();
        recorder.add(&outcome(50, 3, Ok(answer)));
        let counts = &recorder.all;
        assert_eq!(
            (counts.answers, counts.failures(), counts.bytes),
            (2, 2, 20)
        );
        assert_eq!(counts.latency.len(), 3, "a refused connection has no time");
        assert!(counts.latency.max() >= 799_000);
        assert_eq!(recorder.by_url[1].answers, 2);
        assert_eq!(recorder.by_url[0].answers, 0);
        let course: Vec<(u64, u64)> = recorder
            .course
            .iter()
            .map(|it| (it.answers, it.failures))
            .collect();
        assert_eq!(course.len(), 11, "the second turn is behind the first");
        assert_eq!((course[0], course[2], course[10]), ((1, 0), (0, 2), (1, 0)));
        assert_eq!(counts.hit_ratio(), Some(1.0));
    }
}
