//! `cache_learn auto`: pages are only watched until pages with addresses of the same shape were made again many times while
//! nothing had changed that is seen, and were the same each time. From then on they are kept. The first page of the shape that
//! comes out different although nothing had changed ends that for all of them.
//!
//! ```text
//! trial ─ enough comparisons agree ─► proven ─ one differs ─┐
//!   ▲                                                       ▼
//!   └── a day later, twice as many are needed ◄────────── refuted ─ a poll explains it ─► as before
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::pages::PageName;

/// How many comparisons have to agree at first.
const ENOUGH: u32 = 200;

/// How many have to agree after many refutations.
const MAX_NEEDED: u32 = 64 * ENOUGH;

/// Two pages of the same moment agree also where they depend on something that is not seen.
pub const MIN_AGE: Duration = Duration::from_secs(1);

/// Comparisons do not count for so long after one differed.
const REFUTED_FOR: Duration = Duration::from_secs(24 * 3600);

/// Pages of further shapes are only watched: visitors may ask for any address.
const MAX_SHAPES: usize = 2_000;

/// Pages of longer shapes are only watched.
const MAX_SHAPE_BYTES: usize = 512;

/// The shapes of addresses of one pool.
#[derive(Default)]
pub struct Trials {
    shapes: HashMap<Box<str>, ShapeTrial>,
}

struct ShapeTrial {
    /// Comparisons that agreed.
    agreed: u32,
    needed: u32,
    refutation: Option<Refutation>,
}

/// A page that came out different although nothing had changed that is seen.
struct Refutation {
    address: Box<str>,
    at: Instant,
    /// How many comparisons had agreed, and were needed.
    before: (u32, u32),
    /// The pages that differed, while the next poll may show a write of another program that explains each of them; then the
    /// shape is as before. Empty: one of them is not explained.
    open: Vec<PageName>,
}

/// More pages of one shape that differ at once are explained by nothing.
const MAX_OPEN: usize = 64;

/// A page that was compared with its known copy.
pub struct ComparedPage<'a> {
    pub shape: &'a str,
    pub name: &'a PageName,
    pub address: &'a str,
    /// How long ago the page was made first, or counted last.
    pub age: Duration,
    /// A write that the next poll shows may explain a difference.
    pub may_be_explained: bool,
}

impl Default for ShapeTrial {
    fn default() -> ShapeTrial {
        ShapeTrial {
            agreed: 0,
            needed: ENOUGH,
            refutation: None,
        }
    }
}

impl ShapeTrial {
    fn is_proven(&self) -> bool {
        self.agreed >= self.needed
    }

    fn is_refuted(&self, now: Instant) -> bool {
        let at = self.refutation.as_ref().map(|it| it.at);
        at.is_some_and(|at| now.saturating_duration_since(at) < REFUTED_FOR)
    }
}

impl Trials {
    /// Are pages of this shape kept?
    pub fn is_proven(&self, shape: &str) -> bool {
        self.shapes.get(shape).is_some_and(ShapeTrial::is_proven)
    }

    /// A page was the same. Returns a message for the error log if pages of the shape are kept from now on.
    pub fn agree(&mut self, page: &ComparedPage<'_>, now: Instant) -> Option<String> {
        let trial = self.trial(page.shape, now)?;
        if page.age < MIN_AGE || trial.is_proven() || trial.is_refuted(now) {
            return None;
        }
        trial.agreed += 1;
        trial.is_proven().then(|| {
            format!(
                "pages like {} are kept from now on until what they were made of changes: such pages were made again {} \
                 times while nothing had changed, and were the same",
                page.address, trial.agreed
            )
        })
    }

    /// A page was another. Returns a message for the error log if pages of the shape were kept.
    pub fn refute(&mut self, page: &ComparedPage<'_>, now: Instant) -> Option<String> {
        let trial = self.trial(page.shape, now)?;
        let was_proven = trial.is_proven();
        let agreed = trial.agreed;
        let is_refuted = trial.is_refuted(now);
        match &mut trial.refutation {
            Some(known) if !known.open.is_empty() => {
                match page.may_be_explained && known.open.len() < MAX_OPEN {
                    true => known.open.push(page.name.clone()),
                    false => known.open.clear(),
                }
            }
            // Others of the same day prove no more than the first.
            Some(_) if is_refuted => {}
            _ => {
                let open = page.may_be_explained.then(|| page.name.clone());
                trial.refutation = Some(Refutation {
                    address: page.address.into(),
                    at: now,
                    before: (agreed, trial.needed),
                    open: open.into_iter().collect(),
                });
                trial.needed = trial.needed.saturating_mul(2).min(MAX_NEEDED);
            }
        }
        trial.agreed = 0;
        was_proven.then(|| {
            format!(
                "pages like {0} are not kept any more: {0} was made again, and was another although nothing had changed that \
                 Mayfly sees; {agreed} comparisons had agreed before",
                page.address
            )
        })
    }

    /// A poll has explained why these pages differed, and found no reason for others.
    pub fn polled(&mut self, explained: &[PageName], unexplained: &[PageName]) {
        for trial in self.shapes.values_mut() {
            let Some(known) = trial.refutation.as_mut() else {
                continue;
            };
            if known.open.iter().any(|page| unexplained.contains(page)) {
                known.open.clear();
            }
            let was_open = !known.open.is_empty();
            known.open.retain(|page| !explained.contains(page));
            if was_open && known.open.is_empty() {
                (trial.agreed, trial.needed) = known.before;
                trial.refutation = None;
            }
        }
    }

    /// The state of a shape, for people.
    pub fn describe(&self, shape: &str, now: Instant) -> String {
        let first = ShapeTrial::default();
        let trial = self.shapes.get(shape).unwrap_or(&first);
        let progress = format!("{shape}: {} of {} comparisons", trial.agreed, trial.needed);
        match &trial.refutation {
            Some(it) => {
                let minutes = now.saturating_duration_since(it.at).as_secs() / 60;
                format!(
                    "{progress}; {} was another {minutes} minutes ago, after {} that agreed",
                    it.address, it.before.0
                )
            }
            None => progress,
        }
    }

    /// How many shapes are compared, kept and refuted.
    pub fn counts(&self, now: Instant) -> [u64; 3] {
        let count = |is_meant: &dyn Fn(&ShapeTrial) -> bool| {
            self.shapes.values().filter(|it| is_meant(it)).count() as u64
        };
        let (proven, refuted) = (
            count(&ShapeTrial::is_proven),
            count(&|it| it.is_refuted(now)),
        );
        [self.shapes.len() as u64 - proven - refuted, proven, refuted]
    }

    fn trial(&mut self, shape: &str, now: Instant) -> Option<&mut ShapeTrial> {
        if !self.shapes.contains_key(shape) {
            if shape.len() > MAX_SHAPE_BYTES {
                return None;
            }
            if self.shapes.len() >= MAX_SHAPES {
                // Those about which least is known make room.
                self.shapes
                    .retain(|_, trial| trial.agreed > 1 || trial.is_refuted(now));
            }
            if self.shapes.len() >= MAX_SHAPES {
                return None;
            }
            self.shapes.insert(shape.into(), ShapeTrial::default());
        }
        self.shapes.get_mut(shape)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn name(name: &str) -> PageName {
        Arc::from(name.as_bytes())
    }

    fn page<'a>(shape: &'a str, name: &'a PageName) -> ComparedPage<'a> {
        ComparedPage {
            shape,
            name,
            address: "http://a/blog/1",
            age: MIN_AGE,
            may_be_explained: false,
        }
    }

    fn agree(trials: &mut Trials, times: u32, now: Instant) -> usize {
        let name = name("1");
        let notices = (0..times).filter_map(|_| trials.agree(&page("/blog/", &name), now));
        notices.count()
    }

    #[test]
    fn pages_are_kept_after_enough_comparisons_and_not_beyond_the_first_that_differs() {
        let (mut trials, now, one) = (Trials::default(), Instant::now(), name("1"));
        assert_eq!(agree(&mut trials, ENOUGH - 1, now), 0);
        assert!(!trials.is_proven("/blog/"));
        let early = ComparedPage {
            age: Duration::ZERO,
            ..page("/blog/", &one)
        };
        assert_eq!(trials.agree(&early, now), None, "of the same moment");
        assert_eq!(agree(&mut trials, 2, now), 1, "it is said once");
        assert!(trials.is_proven("/blog/") && !trials.is_proven("/"));
        assert_eq!(trials.counts(now), [0, 1, 0]);
        let notice = trials.refute(&page("/blog/", &one), now).unwrap();
        assert!(notice.contains("200 comparisons"), "{notice}");
        assert!(!trials.is_proven("/blog/"));
        assert_eq!(trials.counts(now), [0, 0, 1]);
        let described = trials.describe("/blog/", now + Duration::from_secs(60));
        assert_eq!(
            described,
            "/blog/: 0 of 400 comparisons; http://a/blog/1 was another 1 minutes ago, after 200 that agreed"
        );
        // What comes on the same day counts for nothing.
        trials.refute(&page("/blog/", &one), now);
        assert_eq!(agree(&mut trials, 2 * ENOUGH, now), 0);
        let next_day = now + REFUTED_FOR;
        assert_eq!(agree(&mut trials, 2 * ENOUGH - 1, next_day), 0);
        assert_eq!(agree(&mut trials, 1, next_day), 1);
    }

    #[test]
    fn the_shape_is_as_before_once_writes_of_other_programs_explain_every_page_that_differed() {
        let now = Instant::now();
        for (differing, explained, unexplained, is_proven) in [
            ("1", "1", "", true),
            ("1 1", "1", "", true),
            ("1", "", "1", false),
            ("1 2", "1 2", "", true),
            ("1 2", "1", "", false),
            ("1 2", "1", "2", false),
            ("1", "2", "", false),
        ] {
            let names = |text: &str| text.split_whitespace().map(name).collect::<Vec<_>>();
            let mut trials = Trials::default();
            agree(&mut trials, ENOUGH, now);
            for name in &names(differing) {
                let differs = ComparedPage {
                    may_be_explained: true,
                    ..page("/blog/", name)
                };
                trials.refute(&differs, now);
                assert!(!trials.is_proven("/blog/"), "not before the poll");
            }
            trials.polled(&names(explained), &names(unexplained));
            let case = (differing, explained, unexplained);
            assert_eq!(trials.is_proven("/blog/"), is_proven, "{case:?}");
        }
        let (mut trials, one) = (Trials::default(), name("1"));
        agree(&mut trials, ENOUGH, now);
        trials.refute(&page("/blog/", &one), now);
        trials.polled(&[one], &[]);
        assert!(!trials.is_proven("/blog/"), "it had no tables");
    }

    #[test]
    fn shapes_are_bounded_and_those_with_evidence_stay() {
        let (mut trials, now, one) = (Trials::default(), Instant::now(), name("1"));
        agree(&mut trials, ENOUGH, now);
        trials.refute(&page("/refuted/", &one), now);
        for number in 0..3 * MAX_SHAPES {
            trials.agree(&page(&format!("/{number}/"), &one), now);
        }
        let long = "/".repeat(MAX_SHAPE_BYTES + 1);
        trials.agree(&page(&long, &one), now);
        assert!(trials.shapes.len() <= MAX_SHAPES);
        assert!(trials.is_proven("/blog/"));
        assert_eq!(trials.counts(now)[1..], [1, 1]);
    }
}
