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

    /// Others had written these tables when a poll began; `None`: any. It says nothing of pages that were made after it.
    pub fn polled(&mut self, written: Option<&[Arc<str>]>, began: Instant) -> DecidedPages {
        let mut decided = DecidedPages::default();
        for (page, suspected) in self.suspected.extract_if(|_, it| it.at <= began) {
            let was_written = |table| written.is_none_or(|written| written.contains(table));
            match suspected.tables.iter().any(was_written) {
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
