//! The simulated store: for each page and each lifetime, until when it is fresh.
//!
//! One visit of a page is a hit for some lifetimes and makes PHP run for the others:
//!
//! ```text
//! visit ──► PHP runs ──► stored          fresh            │ the next visit runs PHP
//!           └── others wait for it ──┘└──── lifetime ─────┘
//! ```
//!
//! Memory is bounded: with [`MAX_PAGES`] pages known, the least recently requested ones are
//! forgotten. That changes nothing if they would not be fresh anyway; for longer lifetimes it
//! counts too many runs, and [`Pages::exact_up_to_ms`] returns the lifetime up to which the
//! counts are exact.

use hashbrown::HashMap;

/// The lifetimes that are compared, in milliseconds: 100 ms to a day.
pub const LIFETIMES_MS: [u32; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
];
/// Pages that are known at the same time: 90 bytes each.
const MAX_PAGES: usize = 1 << 19;
/// Times are kept in 32 bits, from a beginning that is moved when half of them are used.
const MOVE_MS: u64 = 1 << 31;

/// The result of a visit for each lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitResult {
    /// Bit `n`: PHP ran with the lifetime of this index.
    pub runs: u32,
    /// The page was not known.
    pub is_new: bool,
    /// Bytes of the page, the largest body that was seen.
    pub body_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct PageVisit {
    /// The hash of its key.
    pub key: u64,
    /// When; never earlier than the visit before.
    pub at_ms: u64,
    /// How long PHP needs to make it.
    pub run_ms: u32,
    /// Zero where it is not known.
    pub body_bytes: u32,
    /// The shortest lifetime of such a page.
    pub least_lifetime_ms: u32,
}

#[derive(Clone, Copy, Debug)]
struct Page<const N: usize> {
    /// From the beginning on; 0: never stored.
    fresh_until: [u32; N],
    last_visit: u32,
    body_bytes: u32,
}

/// Pages under `N` lifetimes.
#[derive(Debug)]
pub struct Pages<const N: usize> {
    lifetimes_ms: [u32; N],
    pages: HashMap<u64, Page<N>, foldhash::fast::FixedState>,
    begins_at_ms: u64,
    exact_up_to_ms: u32,
    most_pages: usize,
}

impl<const N: usize> Pages<N> {
    pub fn new(lifetimes_ms: [u32; N]) -> Pages<N> {
        Pages {
            lifetimes_ms,
            pages: HashMap::default(),
            begins_at_ms: 0,
            exact_up_to_ms: u32::MAX,
            most_pages: MAX_PAGES,
        }
    }

    /// The longest lifetime for which no page was forgotten too early.
    pub fn exact_up_to_ms(&self) -> u32 {
        self.exact_up_to_ms
    }

    pub fn visit(&mut self, visit: PageVisit) -> VisitResult {
        let now = self.moment(visit.at_ms);
        if self.pages.len() >= self.most_pages && !self.pages.contains_key(&visit.key) {
            self.forget_some(now);
        }
        let is_new = !self.pages.contains_key(&visit.key);
        let page = self.pages.entry(visit.key).or_insert(Page {
            fresh_until: [0; N],
            last_visit: now,
            body_bytes: 0,
        });
        page.last_visit = now;
        page.body_bytes = page.body_bytes.max(visit.body_bytes);
        let mut runs = 0;
        let times = page.fresh_until.iter_mut().zip(&self.lifetimes_ms);
        for (index, (fresh_until, lifetime_ms)) in times.enumerate() {
            if now >= *fresh_until {
                runs |= 1 << index;
                let lifetime_ms = visit.least_lifetime_ms.max(*lifetime_ms);
                *fresh_until = now.saturating_add(visit.run_ms).saturating_add(lifetime_ms);
            }
        }
        VisitResult {
            runs,
            is_new,
            body_bytes: page.body_bytes,
        }
    }

    /// Milliseconds since the beginning, which moves with the log. Never 0.
    fn moment(&mut self, at_ms: u64) -> u32 {
        if self.begins_at_ms == 0 {
            self.begins_at_ms = at_ms.saturating_sub(1);
        }
        let passed = at_ms.saturating_sub(self.begins_at_ms);
        if passed > MOVE_MS {
            // A page that was fresh then has been stale for weeks, or is for as long as it
            // was.
            let by = u32::try_from(passed - 1).unwrap_or(u32::MAX).max(1);
            for page in self.pages.values_mut() {
                page.last_visit = page.last_visit.saturating_sub(by);
                for fresh_until in &mut page.fresh_until {
                    *fresh_until = fresh_until.saturating_sub(by);
                }
            }
            self.begins_at_ms = at_ms - 1;
            return 1;
        }
        u32::try_from(passed).unwrap_or(u32::MAX).max(1)
    }

    /// Forgets the least recently requested quarter.
    fn forget_some(&mut self, now: u32) {
        let mut visits: Vec<u32> = self.pages.values().map(|page| page.last_visit).collect();
        let quarter = visits.len() / 4;
        let (_, &mut limit, _) = visits.select_nth_unstable(quarter);
        self.pages.retain(|_, page| page.last_visit > limit);
        self.exact_up_to_ms = self.exact_up_to_ms.min(now.saturating_sub(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64, run_ms: u32) -> PageVisit {
        PageVisit {
            key: 1,
            at_ms,
            run_ms,
            body_bytes: 10,
            least_lifetime_ms: 0,
        }
    }

    #[test]
    fn php_runs_once_in_a_lifetime_which_begins_when_the_page_is_made() {
        let mut pages = Pages::new([1000, 5000]);
        let runs = [
            (10_000, 0b11),
            (10_999, 0),
            (11_199, 0),
            (11_200, 0b01),
            (15_200, 0b11),
        ]
        .map(|(moment, expected)| (pages.visit(at(moment, 200)).runs, expected));
        assert!(
            runs.iter().all(|(runs, expected)| runs == expected),
            "{runs:?}"
        );
    }

    #[test]
    fn a_log_of_years_is_simulated_to_its_end() {
        let mut pages = Pages::new([60_000]);
        let mut now = 1_000_000_000_000;
        for _ in 0..200 {
            now += 7 * 86_400_000;
            assert_eq!(pages.visit(at(now, 0)).runs, 1);
            assert_eq!(pages.visit(at(now + 59_999, 0)).runs, 0);
        }
    }

    #[test]
    fn pages_are_forgotten_that_nobody_asked_for() {
        let mut pages = Pages::new([1000, 100_000]);
        pages.most_pages = 100;
        for number in 0..1000_u64 {
            let visit = PageVisit {
                key: number,
                ..at(5_000 + number * 100, 0)
            };
            assert!(pages.visit(visit).is_new);
            assert!(pages.pages.len() <= 100);
        }
        assert!((1_000..=10_000).contains(&pages.exact_up_to_ms()));
    }
}
