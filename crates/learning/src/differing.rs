//! Pages that were made again while nothing had changed, and were others: they are made of something that is not seen,
//! such as the clock or chance, and are not kept for a while.
//!
//! A recent write of another program may be the reason. So the next poll of the database decides, and the next answer of the
//! object cache: a write to the page's tables or keys explains the difference.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pages::PageName;

/// How long such a page is not kept.
const DIFFERS_FOR: Duration = Duration::from_secs(3600);

/// The most pages of each kind. Further ones are kept.
const MAX_PAGES: usize = 10_000;

#[derive(Default)]
pub struct DifferingPages {
    since: HashMap<PageName, Instant>,
    suspected: HashMap<PageName, SuspectedPage>,
}

/// A page that differed a moment ago.
struct SuspectedPage {
    /// It reads these tables; none: no poll has found a write that explains it.
    tables: Box<[Arc<str>]>,
    /// The object cache may have been written as well.
    awaits_cache: bool,
    at: Instant,
}

/// The pages that a poll has decided about.
#[derive(Default)]
pub struct DecidedPages {
    /// A write of another program explains why they differed.
    pub explained: Vec<PageName>,
    pub unexplained: Vec<PageName>,
}

impl DifferingPages {
    /// The page was another than what is known of it, which counted as unchanged.
    pub fn suspect(
        &mut self,
        page: PageName,
        (tables, awaits_cache): (Box<[Arc<str>]>, bool),
        now: Instant,
    ) {
        if tables.is_empty() && !awaits_cache {
            self.put(page, now);
        } else if self.suspected.len() < MAX_PAGES {
            let suspected = SuspectedPage {
                tables,
                awaits_cache,
                at: now,
            };
            // The first time counts: a page that is made all the time is decided about, too.
            self.suspected.entry(page).or_insert(suspected);
        }
    }

    fn put(&mut self, page: PageName, now: Instant) {
        if self.since.len() < MAX_PAGES {
            self.since.insert(page, now);
        }
    }

    /// A poll that began then has found these tables written; `None`: any. That explains pages that were compared before its
    /// answer. That it found nothing proves nothing of pages that were compared after it began: the next one decides.
    pub fn polled(&mut self, written: Option<&[Arc<str>]>, began: Instant) -> DecidedPages {
        let mut decided = DecidedPages::default();
        let was_written = |it: &SuspectedPage| {
            let mut tables = it.tables.iter();
            tables.any(|table| written.is_none_or(|written| written.contains(table)))
        };
        for (page, _) in self.suspected.extract_if(|_, it| was_written(it)) {
            decided.explained.push(page);
        }
        let polled = self.suspected.values_mut().filter(|it| it.at <= began);
        polled.for_each(|it| it.tables = Box::default());
        decided.unexplained = self.take_unexplained(began);
        decided
    }

    /// The object cache has named a write to keys of these pages.
    pub fn cache_written<'a>(
        &mut self,
        pages: impl Iterator<Item = &'a PageName>,
    ) -> Vec<PageName> {
        let explained = pages.filter_map(|page| self.suspected.remove_entry(page));
        explained.map(|(page, _)| page).collect()
    }

    /// The object cache has answered a question that was put then, and named no other writes before. Returns pages that nothing
    /// explains.
    pub fn cache_asked(&mut self, began: Instant) -> Vec<PageName> {
        let asked = self.suspected.values_mut().filter(|it| it.at <= began);
        asked.for_each(|it| it.awaits_cache = false);
        self.take_unexplained(began)
    }

    fn take_unexplained(&mut self, now: Instant) -> Vec<PageName> {
        let is_over = |it: &SuspectedPage| it.tables.is_empty() && !it.awaits_cache;
        let over = self.suspected.extract_if(|_, it| is_over(it));
        let over: Vec<PageName> = over.map(|(page, _)| page).collect();
        over.iter().for_each(|page| self.put(page.clone(), now));
        over
    }

    pub fn has(&self, page: &PageName, now: Instant) -> bool {
        let since = self.since.get(page);
        since.is_some_and(|since| now.saturating_duration_since(*since) < DIFFERS_FOR)
    }

    pub fn forget_old(&mut self, now: Instant) {
        let is_new = |since: &Instant| now.saturating_duration_since(*since) < DIFFERS_FOR;
        self.since.retain(|_, since| is_new(since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_explains_pages_that_were_compared_before_its_answer_and_accuses_none_of_after_it_began()
     {
        let (page, table): (PageName, Arc<str>) = (b"a"[..].into(), "blog.post".into());
        let compared = Instant::now();
        let (before, after) = (compared - Duration::from_secs(1), compared);
        for (began, written, expected) in [
            (before, Some(&[table.clone()][..]), (1, 0)),
            (before, None, (1, 0)),
            (before, Some(&[]), (0, 0)),
            (after, Some(&[table.clone()][..]), (1, 0)),
            (after, Some(&[]), (0, 1)),
        ] {
            let mut pages = DifferingPages::default();
            pages.suspect(page.clone(), ([table.clone()].into(), false), compared);
            let again = compared + Duration::from_secs(9);
            pages.suspect(page.clone(), ([table.clone()].into(), false), again);
            let decided = pages.polled(written, began);
            let counts = (decided.explained.len(), decided.unexplained.len());
            assert_eq!(counts, expected, "{written:?}");
            assert_eq!(pages.has(&page, compared), expected.1 == 1);
            let waits = expected == (0, 0);
            assert_eq!(pages.suspected.len(), usize::from(waits));
        }
    }

    #[test]
    fn a_page_of_an_object_cache_waits_for_its_answer_and_that_of_the_database() {
        let (page, table): (PageName, Arc<str>) = (b"a"[..].into(), "blog.post".into());
        let expected = std::slice::from_ref(&page);
        let now = Instant::now();
        let before = now - Duration::from_secs(1);
        let suspects = |tables: &[Arc<str>]| {
            let mut pages = DifferingPages::default();
            pages.suspect(page.clone(), (tables.into(), true), now);
            pages
        };
        let mut pages = suspects(&[]);
        assert!(pages.cache_asked(before).is_empty(), "it was asked before");
        assert_eq!(pages.cache_written([&page].into_iter()), expected);
        assert!(pages.cache_asked(now).is_empty());
        assert_eq!(suspects(&[]).cache_asked(now), expected);
        let mut pages = suspects(std::slice::from_ref(&table));
        assert!(
            pages.cache_asked(now).is_empty(),
            "of the tables nothing is known"
        );
        assert!(!pages.has(&page, now));
        assert_eq!(pages.polled(Some(&[]), now).unexplained, expected);
        assert!(pages.has(&page, now));
        let mut pages = suspects(&[table]);
        assert!(pages.polled(Some(&[]), now).unexplained.is_empty());
        assert_eq!(pages.cache_asked(now), expected);
    }
}
