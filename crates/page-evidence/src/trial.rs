//! Finds out by trying why a visitor's own answer and the shared one differ: the page is made again, with
//! one thing altered at a time.
//!
//! ```text
//! shared, all ── the same ──────────────────► Agree         the difference was one of the moment
//!   └ shared again ── steady ─► each alone ─► Depends       those whose page differs
//!        │                        └ none ─► all again ──► Agree, or Depends on all together
//!        └ differs each time ─► all again ── alike in the lasting parts ──► Agree
//!                                  └ each alone, twice ────────────► Depends
//! ```
//!
//! A visitor's own answer that none of these requests was given, though the page is the same each time, was shaped by
//! something that is no trait, or the page has changed meanwhile: the trial has no result ([`TrialVerdict::Unexplained`]).
//! That is certain once the page is the same a little later, too: a page that names the second is made once more.
//!
//! A part that differs each time may be the same twice by chance: a page that prints the milliseconds it took. So a
//! difference counts once it was seen in [`SURE`] answers, and the first answer without it ends the doubt.
//!
//! A pure state machine: [`Trial::next`] returns the request to make, [`Trial::note`] takes its answer.

use std::ops::RangeInclusive;

use shared_request::{Trait, TraitSet};

use crate::page::AnswerOutline;
use crate::render::{Rendering, differ_in_what_stays};

/// This many answers make sure that a difference is not one of chance.
const SURE: usize = 4;

/// Why a visitor's answer differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialVerdict {
    /// No trait that was left out matters. `each_time`: the page differs each time it is made.
    Agree { each_time: bool },
    /// These matter.
    Depends(TraitSet),
    /// The visitor's own answer was another one than each of the trial, and the page does not differ by itself.
    Unexplained,
    /// The page cannot be shared at all, or could not be made.
    NotShareable,
    /// It cannot be shared, and leaves a session as it was where its answer shows this. `is_storable`: its answers could
    /// be stored, and differ.
    LeavesSession {
        answer: AnswerOutline,
        is_storable: bool,
    },
}

/// The next step of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialStep {
    /// The shared request, with the visitor's own fields for these traits.
    Fetch(TraitSet),
    /// The same, in another second.
    FetchLater(TraitSet),
    Done(TrialVerdict),
}

/// How a page changes while it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// The last answer is another one than those before.
    Open,
    /// All answers from the one with this number on are the same, and other ones than those before.
    Once {
        at: usize,
    },
    EachTime,
}

/// A trial under way.
#[derive(Debug)]
pub struct Trial {
    traits: TraitSet,
    /// The digest of the visitor's own answer, where it may be compared with those of the trial.
    own: Option<u64>,
    answers: Vec<(TraitSet, Rendering)>,
    has_failed: bool,
}

impl Trial {
    /// Creates a trial of the traits in which a visitor's request and the shared one differ.
    #[must_use]
    pub fn new(traits: TraitSet) -> Trial {
        Trial {
            traits,
            own: None,
            answers: Vec::new(),
            has_failed: false,
        }
    }

    /// Sets the digest of the visitor's own answer, which differed.
    #[must_use]
    pub fn of_answer(mut self, own: Option<u64>) -> Trial {
        self.own = own;
        self
    }

    /// Returns how many requests are set aside for it. If a page differs each time and seems to depend on something,
    /// the trial may take twice as many.
    #[must_use]
    pub fn usual_requests(traits: TraitSet) -> u32 {
        4 + 2 * traits.iter().count() as u32
    }

    /// Takes an answer; `None` if it could not have been stored.
    pub fn note(&mut self, with: TraitSet, answer: Option<Rendering>) {
        match answer {
            Some(answer) => self.answers.push((with, answer)),
            None if with.is_empty() => self.has_failed = true,
            // The visitor is refused, or given a cookie: it differs from any page.
            None => self.answers.push((with, Rendering::refused())),
        }
    }

    /// The answers to requests with these traits, since the page has changed.
    fn answers(&self, with: TraitSet) -> Vec<Rendering> {
        let since = match self.change() {
            Change::Once { at } => at,
            Change::None | Change::Open | Change::EachTime => 0,
        };
        let found = self.answers.iter().skip(since);
        let found = found.filter(|(of, _)| *of == with);
        found.map(|(_, answer)| answer.clone()).collect()
    }

    /// How the answers to the shared request have changed.
    fn change(&self) -> Change {
        let shared = self.answers.iter().enumerate();
        let shared: Vec<_> = shared.filter(|(_, (of, _))| of.is_empty()).collect();
        let digest = |(_, (_, answer)): &(usize, &(TraitSet, Rendering))| answer.digest;
        let differ = |pair: &[(usize, _)]| digest(&pair[0]) != digest(&pair[1]);
        let mut changes = shared.windows(2).filter(|pair| differ(pair));
        match (changes.next(), changes.next()) {
            (None, _) => Change::None,
            (Some(_), Some(_)) => Change::EachTime,
            (Some(pair), None) if shared.last().is_some_and(|(at, _)| *at == pair[1].0) => {
                Change::Open
            }
            (Some(pair), None) => Change::Once { at: pair[1].0 },
        }
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> TrialStep {
        if self.has_failed {
            return TrialStep::Done(TrialVerdict::NotShareable);
        }
        let (shared, all) = (self.answers(TraitSet::NONE), self.answers(self.traits));
        let (Some(first), Some(own)) = (shared.first(), all.first()) else {
            return TrialStep::Fetch(match shared.is_empty() {
                true => TraitSet::NONE,
                false => self.traits,
            });
        };
        let is_steady = match self.change() {
            Change::Open => return TrialStep::Fetch(TraitSet::NONE),
            change => change != Change::EachTime,
        };
        if first.digest == own.digest && (is_steady || self.own.is_none()) {
            return self.agreed(&shared);
        }
        if shared.len() < 2 {
            return TrialStep::Fetch(TraitSet::NONE);
        }
        match is_steady {
            true => match self.steady(first, &all) {
                TrialStep::Done(TrialVerdict::Depends(_)) if shared.len() < SURE => {
                    TrialStep::Fetch(TraitSet::NONE)
                }
                step => step,
            },
            false => self.differing_each_time(&shared, &all),
        }
    }

    /// Do all traits give what the shared request gives, and was the visitor's answer another one so far? What is stored is
    /// older then.
    #[must_use]
    pub fn is_unexplained_yet(&self) -> bool {
        let (shared, all) = (self.answers(TraitSet::NONE), self.answers(self.traits));
        let (Some(first), Some(own)) = (self.answers.first(), self.own) else {
            return false;
        };
        let mut answers = shared.iter().chain(&all);
        !all.is_empty() && first.1.digest != own && answers.all(|it| it.digest == first.1.digest)
    }

    /// All traits give what the shared request gives: was it the visitor's own answer?
    fn agreed(&self, shared: &[Rendering]) -> TrialStep {
        let mut answers = self.answers.iter();
        let is_explained = |own| answers.any(|(_, answer)| answer.digest == own);
        if self.own.is_none_or(is_explained) {
            return TrialStep::Done(TrialVerdict::Agree { each_time: false });
        }
        match shared.len() {
            SURE.. => TrialStep::Done(TrialVerdict::Unexplained),
            number if number + 1 == SURE => TrialStep::FetchLater(TraitSet::NONE),
            _ => TrialStep::Fetch(TraitSet::NONE),
        }
    }

    fn steady(&self, shared: &Rendering, all: &[Rendering]) -> TrialStep {
        let shared_answers = self.answers(TraitSet::NONE);
        match self.singles(1..=1, |answers| {
            answers.iter().any(|it| it.digest != shared.digest)
        }) {
            Err(step) => step,
            Ok(depends) if !depends.is_empty() => TrialStep::Done(TrialVerdict::Depends(depends)),
            // Two together, or it has changed meanwhile.
            Ok(_) => match all.get(1) {
                None => TrialStep::Fetch(self.traits),
                Some(again) if again.digest == shared.digest => self.agreed(&shared_answers),
                Some(_) => TrialStep::Done(TrialVerdict::Depends(self.traits)),
            },
        }
    }

    fn differing_each_time(&self, shared: &[Rendering], all: &[Rendering]) -> TrialStep {
        if all.len() < 2 {
            return TrialStep::Fetch(self.traits);
        }
        if !differ_in_what_stays(shared, all) {
            return TrialStep::Done(TrialVerdict::Agree { each_time: true });
        }
        if shared.len() < SURE {
            return TrialStep::Fetch(TraitSet::NONE);
        }
        if all.len() < SURE {
            return TrialStep::Fetch(self.traits);
        }
        match self.singles(2..=SURE, |answers| differ_in_what_stays(shared, answers)) {
            Err(step) => step,
            Ok(depends) => TrialStep::Done(TrialVerdict::Depends(match depends.is_empty() {
                true => self.traits,
                false => depends,
            })),
        }
    }

    /// Returns the traits for which `differs` is true if each is sent alone: with at least the smaller number of
    /// answers, and at most the larger one while it is true. An error is the step that is missing.
    fn singles(
        &self,
        times: RangeInclusive<usize>,
        differs: impl Fn(&[Rendering]) -> bool,
    ) -> Result<TraitSet, TrialStep> {
        let mut depends = TraitSet::NONE;
        for one in self.traits.iter() {
            let alone = TraitSet::of(one);
            let answers = self.answers(alone);
            let is_asked = answers.len() >= *times.start();
            let is_different = is_asked && differs(&answers);
            if !is_asked || is_different && answers.len() < *times.end() {
                return Err(TrialStep::Fetch(alone));
            }
            if is_different {
                depends = depends.with(one);
            }
        }
        Ok(depends)
    }
}

/// Is it a trait of a verdict that a key can hold, and that the shared request then copies from the key?
#[must_use]
pub fn may_be_keyed(it: Trait) -> bool {
    matches!(it, Trait::Language | Trait::Cookies | Trait::Agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Renderer;

    /// Runs a trial against an application: its answer to these traits at the n-th request.
    fn tried(
        traits: &[Trait],
        application: impl Fn(TraitSet, usize) -> Option<String>,
    ) -> (TrialVerdict, usize) {
        let traits = traits.iter().fold(TraitSet::NONE, |set, it| set.with(*it));
        tried_after(None, traits, application)
    }

    fn rendered(text: &str) -> Rendering {
        let mut renderer = Renderer::new(200, std::iter::empty(), true);
        renderer.read(text.as_bytes());
        renderer.finish()
    }

    /// The same for a visitor who was given `own`.
    fn tried_after(
        own: Option<&str>,
        traits: TraitSet,
        application: impl Fn(TraitSet, usize) -> Option<String>,
    ) -> (TrialVerdict, usize) {
        tried_in_time(own, traits, |with, request, _| application(with, request))
    }

    /// The same with an application that knows the second.
    fn tried_in_time(
        own: Option<&str>,
        traits: TraitSet,
        application: impl Fn(TraitSet, usize, usize) -> Option<String>,
    ) -> (TrialVerdict, usize) {
        let own = own.map(|text| rendered(text).digest);
        let mut trial = Trial::new(traits).of_answer(own);
        let (mut requests, mut second) = (0, 0);
        loop {
            match trial.next() {
                TrialStep::Done(verdict) => return (verdict, requests),
                step @ (TrialStep::Fetch(with) | TrialStep::FetchLater(with)) => {
                    second += usize::from(matches!(step, TrialStep::FetchLater(_)));
                    let answer = application(with, requests, second).map(|text| rendered(&text));
                    trial.note(with, answer);
                    requests += 1;
                    assert!(requests <= 2 * Trial::usual_requests(traits) as usize);
                }
            }
        }
    }

    const ALL: [Trait; 7] = Trait::ALL;

    #[test]
    fn what_shapes_a_page_is_found() {
        for guilty in ALL {
            let page = |with: TraitSet, _| Some(format!("<p>{}", with.has(guilty)));
            assert_eq!(
                tried(&ALL, page).0,
                TrialVerdict::Depends(TraitSet::of(guilty))
            );
            let timed = |with: TraitSet, time| Some(format!("<p>{}<i>{time}", with.has(guilty)));
            assert_eq!(
                tried(&ALL, timed).0,
                TrialVerdict::Depends(TraitSet::of(guilty))
            );
            let refused = |with: TraitSet, _| (!with.has(guilty)).then(|| "page".to_owned());
            assert_eq!(
                tried(&ALL, refused).0,
                TrialVerdict::Depends(TraitSet::of(guilty))
            );
        }
    }

    #[test]
    fn a_page_that_depends_on_nothing_agrees() {
        let steady = |_, _| Some("page".to_owned());
        let (verdict, requests) = tried(&ALL, steady);
        assert_eq!(verdict, TrialVerdict::Agree { each_time: false });
        assert_eq!(requests, 2);
        let timed = |_, time| Some(format!("<p>page<i>{time}"));
        let (verdict, requests) = tried(&ALL, timed);
        assert_eq!(verdict, TrialVerdict::Agree { each_time: true });
        assert_eq!(requests, 5);
        // It changes once while it is tried.
        for at in 1..4 {
            let changed = |_, time| Some(if time < at { "old" } else { "new" }.to_owned());
            let (verdict, _) = tried(&ALL, changed);
            assert_eq!(verdict, TrialVerdict::Agree { each_time: false }, "{at}");
        }
    }

    /// Pages of visitors whose proxy names their country in a field of its own were those of the shared request: all
    /// traits gave the same as none, and nobody asked whether that was the visitor's answer.
    #[test]
    fn an_answer_that_no_trait_explains_is_no_agreement() {
        let steady = |_, _| Some("page".to_owned());
        let (verdict, requests) = tried_after(Some("another"), TraitSet::ALL, steady);
        assert_eq!((verdict, requests), (TrialVerdict::Unexplained, 1 + SURE));
        let (verdict, _) = tried_after(Some("page"), TraitSet::ALL, steady);
        assert_eq!(verdict, TrialVerdict::Agree { each_time: false });
        // The page names the second.
        let of_second = |_, _, second: usize| Some(format!("<p>page<i>{second}"));
        let (verdict, _) = tried_in_time(Some("<p>page<i>9"), TraitSet::ALL, of_second);
        assert_eq!(verdict, TrialVerdict::Agree { each_time: true });
        // It changed when it was tried.
        let changed = |_, time| Some(if time > 0 { "new" } else { "old" }.to_owned());
        for own in ["old", "new"] {
            let (verdict, _) = tried_after(Some(own), TraitSet::ALL, changed);
            assert!(matches!(verdict, TrialVerdict::Agree { .. }), "{own}");
        }
    }

    /// A page of MediaWiki prints how many milliseconds it took: two answers with the same number seemed to depend
    /// on the visitor, whose like then had no page from memory for half an hour.
    #[test]
    fn what_is_the_same_twice_by_chance_is_not_taken_for_the_visitors() {
        let mixed = |seed: u64, time: usize| {
            (0..3).fold(seed * 1000 + time as u64, |mixed, _| {
                (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
            })
        };
        let cases = (0..1000_u64).flat_map(|seed| [(seed, 0), (seed, 1)]);
        let wrong = cases.filter(|(seed, numbered)| {
            let took = |_, time: usize| {
                let (number, took) = (time * numbered, (mixed(*seed, time) >> 40) % 5);
                Some(format!("<i>{number}</i><p>took {took} ms"))
            };
            !matches!(tried(&ALL, took).0, TrialVerdict::Agree { .. })
        });
        let wrong = wrong.count();
        assert!(wrong <= 20, "{wrong} of 2000");
    }

    #[test]
    fn two_traits_together_count_as_all() {
        let both = |with: TraitSet, _| {
            let is_odd = with.has(Trait::Agent) && with.has(Trait::Referer);
            Some(is_odd.to_string())
        };
        assert_eq!(tried(&ALL, both).0, TrialVerdict::Depends(TraitSet::ALL));
    }

    #[test]
    fn a_page_that_may_not_be_stored_is_not_shareable() {
        assert_eq!(tried(&ALL, |_, _| None), (TrialVerdict::NotShareable, 1));
    }
}
