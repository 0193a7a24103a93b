//! A second model of RFC 9111, written from its text, and the cache of this crate: random histories of requests,
//! answers of the origin and passing time, and the same must be reused, with the same age. A planted error on either
//! side is found.
//!
//! `HISTORIES=100000` makes as many.

mod cache;
mod history;
mod model;

use std::sync::Arc;

use http_cache::StoredResponse;

use cache::{Cache, CacheFinding};
use history::{History, OriginAnswer, Request, Step};
use model::{Model, Reading, Reusable};

/// Histories where nothing else is asked for.
const HISTORIES: u64 = 3_000;
/// The number of histories within which a planted error must show.
const FOUND_WITHIN: u64 = 1_000;

/// Plants an error in the cache.
type Distortion = fn(&mut Cache);

/// A difference between the two sides.
#[derive(Debug)]
struct Difference {
    #[expect(dead_code, reason = "printed")]
    what: String,
    #[expect(dead_code, reason = "printed")]
    step: usize,
}

/// Counts of events in all histories: each kind must have come often.
#[derive(Debug, Default)]
struct Tally {
    reused: u64,
    validated: u64,
    not_modified: u64,
    fetched: u64,
    invalidated: u64,
    stale_in_need: u64,
}

/// One history on both sides.
struct Trial<'a> {
    cache: &'a Cache,
    model: Model,
    vary_is_steady: bool,
    tally: &'a mut Tally,
}

impl Trial<'_> {
    /// # Errors
    /// A difference between the two sides.
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Unsafe {
                url,
                method,
                now,
                succeeds,
            } => {
                self.cache.write(*url, method, *succeeds, *now);
                self.model.write(*url, method, *succeeds);
                self.tally.invalidated += 1;
                Ok(())
            }
            Step::Get {
                request,
                answer,
                now,
            } => {
                let reusable = self.model.reusable(request, *now);
                match self.cache.find(request, *now) {
                    CacheFinding::Fresh(found) => self.reuse(found, reusable),
                    CacheFinding::NotFresh {
                        stored,
                        may_stand_in,
                    } => {
                        self.leave_out(reusable)?;
                        self.stand_in(may_stand_in, request)?;
                        self.fetch(stored, (request, answer), *now)
                    }
                }
            }
        }
    }

    fn reuse(&mut self, found: Reusable, expected: Option<Reusable>) -> Result<(), String> {
        self.tally.reused += 1;
        match expected == Some(found) {
            true => Ok(()),
            false => Err(format!("{found:?} is reused, the model says {expected:?}")),
        }
    }

    fn leave_out(&self, reusable: Option<Reusable>) -> Result<(), String> {
        match reusable.filter(|_| self.vary_is_steady) {
            Some(expected) => Err(format!("{expected:?} is not reused")),
            None => Ok(()),
        }
    }

    fn stand_in(&mut self, stale: Option<u32>, request: &Request) -> Result<(), String> {
        let Some(body) = stale else {
            return Ok(());
        };
        self.tally.stale_in_need += 1;
        match self.model.may_be_stale(body, request) {
            true => Ok(()),
            false => Err(format!("{body} is shown stale")),
        }
    }

    fn fetch(
        &mut self,
        stored: Option<Arc<StoredResponse>>,
        (request, answer): (&Request, &OriginAnswer),
        now: i64,
    ) -> Result<(), String> {
        let validated = self.cache.validated(stored.as_ref());
        self.tally.fetched += 1;
        self.tally.validated += u64::from(validated.is_some());
        if let Some(body) = validated
            && !self.model.may_validate(body, request)
        {
            return Err(format!("{body} is validated"));
        }
        match validated.filter(|_| answer.is_not_modified) {
            Some(body) => {
                self.tally.not_modified += 1;
                self.cache.freshen(request, stored, answer, now);
                self.model.freshen(body, request, answer, now);
            }
            None => {
                self.cache.store(request, answer, now);
                self.model.store(request, answer, now);
            }
        }
        Ok(())
    }
}

fn compare(
    history: &History,
    cache: &Cache,
    reading: Reading,
    tally: &mut Tally,
) -> Option<Difference> {
    let mut trial = Trial {
        cache,
        model: Model::new(reading),
        vary_is_steady: history.vary_is_steady,
        tally,
    };
    let mut steps = history.steps.iter().enumerate();
    steps.find_map(|(number, step)| {
        let what = trial.step(step).err()?;
        Some(Difference { what, step: number })
    })
}

/// The first history in which the sides differ.
fn first_difference(
    histories: u64,
    reading: Reading,
    distort: impl Fn(&mut Cache),
    tally: &mut Tally,
) -> Option<(u64, Difference, History)> {
    for seed in 0..histories {
        let history = History::random(seed);
        let mut cache = Cache::new();
        distort(&mut cache);
        if let Some(difference) = compare(&history, &cache, reading, tally) {
            return Some((seed, difference, history));
        }
    }
    None
}

#[test]
fn the_cache_reuses_what_the_model_reuses() {
    let histories = std::env::var("HISTORIES").ok();
    let histories = histories.and_then(|text| text.parse().ok());
    let histories = histories.unwrap_or(HISTORIES);
    let mut tally = Tally::default();
    let found = first_difference(histories, Reading::AsWritten, |_| {}, &mut tally);
    if let Some((seed, difference, history)) = found {
        panic!("history {seed}: {difference:?}\n{history:#?}");
    }
    let kinds = [
        tally.reused,
        tally.validated,
        tally.not_modified,
        tally.fetched,
        tally.invalidated,
        tally.stale_in_need,
    ];
    assert!(
        kinds.iter().all(|times| *times > histories / 4),
        "{tally:?}"
    );
}

#[test]
fn an_error_in_the_model_is_found() {
    for reading in Reading::WRONG {
        let found = first_difference(FOUND_WITHIN, *reading, |_| {}, &mut Tally::default());
        assert!(found.is_some(), "{reading:?}");
    }
}

#[test]
fn an_error_in_the_cache_is_found() {
    let errors: [(&str, Distortion); 8] = [
        ("Vary is not read", |cache| cache.policy.ignore.vary = true),
        ("Expires is not read", |cache| {
            cache.policy.ignore.expires = true
        }),
        ("Cache-Control is not read", |cache| {
            cache.policy.ignore.cache_control = true
        }),
        ("what was made for credentials is shared", |cache| {
            cache.policy.store_authorized = true
        }),
        ("the heuristic share is twice as much", |cache| {
            cache.policy.heuristic = history::heuristic(20)
        }),
        ("a lifetime is cut", |cache| {
            cache.policy.max_fresh = Some(std::time::Duration::from_secs(4))
        }),
        ("the clock is a second behind", |cache| {
            cache.clock_behind = 1
        }),
        ("nothing is invalidated", |cache| cache.invalidates = false),
    ];
    for (what, distort) in errors {
        let found = first_difference(
            FOUND_WITHIN,
            Reading::AsWritten,
            distort,
            &mut Tally::default(),
        );
        assert!(found.is_some(), "{what}");
    }
}
