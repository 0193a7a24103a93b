//! Pages that were made again while nothing had changed, and were others: they are made of something that is not seen,
//! such as the clock or chance, and are not kept for a while.
//!
//! A recent write of another program may be the reason. So the next poll decides: a page whose tables
//! were written is none of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pages::PageName;

/// How long such a page is not kept.
const DIFFERS_FOR: Duration = Duration::from_secs(3600);

/// The most pages of each kind. Further ones are kept.
const MOST_PAGES: usize = 10_000;

#[derive(Default)]
pub struct DifferingPages {
    since: HashMap<PageName, Instant>,
    suspected: HashMap<PageName, SuspectedPage>,
}

/// A page that differed a moment ago.
struct SuspectedPage {
    /// It reads these tables.
    tables: Box<[Arc<str>]>,
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
    pub fn suspect(&mut self, page: PageName, tables: Box<[Arc<str>]>, now: Instant) {
        if tables.is_empty() {
            self.put(page, now);
        } else if self.suspected.len() < MOST_PAGES {
            self.suspected
                .insert(page, SuspectedPage { tables, at: now });
        }
    }

    fn put(&mut self, page: PageName, now: Instant) {
        if self.since.len() < MOST_PAGES {
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
        let is_decided = |it: &SuspectedPage| it.at <= began || was_written(it);
        for (page, suspected) in self.suspected.extract_if(|_, it| is_decided(it)) {
            match was_written(&suspected) {
                true => decided.explained.push(page),
                false => decided.unexplained.push(page),
            }
        }
        for page in &decided.unexplained {
            self.put(page.clone(), began);
        }
        decided
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
            pages.suspect(page.clone(), [table.clone()].into(), compared);
            let decided = pages.polled(written, began);
            let counts = (decided.explained.len(), decided.unexplained.len());
            assert_eq!(counts, expected, "{written:?}");
            assert_eq!(pages.has(&page, compared), expected.1 == 1);
            let waits = expected == (0, 0);
            assert_eq!(pages.suspected.len(), usize::from(waits));
        }
    }
}
