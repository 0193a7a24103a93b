//! The pages that are known, and the reasons for which others are not. Bounded: the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::log_state::LogState;
use crate::record::{ServerName, WhyNot};
use crate::sqlite::SqliteSeen;

/// Pages of one pool. At 2 KB each, which is about what a learned page takes.
pub const MAX_PAGES: usize = 100_000;

/// Pages whose reason for not being learned is kept.
pub const MAX_NOTES: usize = 10_000;

/// The name of a page: its zone, its key, and its variant.
pub type PageName = Arc<[u8]>;

/// The change that may have altered a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The statement or the file.
    pub text: String,
    pub at: Instant,
}

/// A page, and what it was made of.
// Large: facts of one page, which change together under the lock of the book.
#[derive(Debug, Clone)]
pub struct LearnedPage {
    pub name: PageName,
    /// Its URL.
    pub address: Box<str>,
    /// Of its address, with `cache_learn auto`.
    pub shape: Option<Box<str>>,
    pub server: Option<ServerName>,
    pub made_at: Instant,
    /// A comparison counts for the shape if it comes long enough after this time.
    pub counted_at: Instant,
    /// When it counts as unknown, whatever happens.
    pub ends_at: Instant,
    /// Until then it may be shown beyond its ordinary lifetime.
    pub kept_until: Instant,
    pub digest: u64,
    pub statements: u32,
    pub tables: Box<[Arc<str>]>,
    /// Numbers of the table of files.
    pub files: Box<[u32]>,
    /// The states of before the page was made.
    pub sqlite: Box<[SqliteSeen]>,
    /// The object cache that it was made of.
    pub cache: Option<CacheOfPage>,
    pub suspect: Option<Arc<Cause>>,
    /// Suspect for good: no statement that is run again makes it fresh.
    pub is_outdated: bool,
    /// The fetch by which it was made.
    pub fetch: u64,
    /// It was fetched while all that writes was heard, or seen by polls: not during an upgrade.
    pub is_guarded: bool,
    /// It is shown while nothing changes, up to `kept_until`.
    pub is_kept: bool,
    /// Why it is not shown beyond its ordinary lifetime.
    pub not_kept: Option<Box<WhyNot>>,
    /// How often it was the same, and another, when it was made again while it counted as fresh.
    pub same: u32,
    pub changed: u32,
    /// A visitor has asked for it since its statements were run again last.
    pub asked: Arc<AtomicBool>,
}

/// What a page was made of in an object cache.
#[derive(Debug, Clone)]
pub struct CacheOfPage {
    pub server: ServerName,
    pub keys: usize,
    /// When the first of the keys ends by itself.
    pub ends_at: Option<Instant>,
}

impl LearnedPage {
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.suspect.is_none() && now < self.ends_at
    }

    /// It is suspect, and its statements are run again.
    pub fn is_open(&self, now: Instant) -> bool {
        self.suspect.is_some() && !self.is_outdated && now < self.ends_at
    }

    /// It is open, and visitors ask for it.
    pub fn is_wanted(&self, now: Instant) -> bool {
        self.is_open(now) && self.asked.load(Ordering::Relaxed)
    }
}

/// Pages by name and by number. A number is used again once its page has gone.
#[derive(Default)]
pub struct Pages {
    by_name: HashMap<PageName, u32, foldhash::fast::RandomState>,
    pages: Vec<Option<LearnedPage>>,
    free: Vec<u32>,
    /// In the order in which they came.
    order: VecDeque<(u32, PageName)>,
}

impl Pages {
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn named(&self, name: &[u8]) -> Option<(u32, &LearnedPage)> {
        let number = *self.by_name.get(name)?;
        Some((number, self.get(number)?))
    }

    pub fn get(&self, number: u32) -> Option<&LearnedPage> {
        self.pages.get(number as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut LearnedPage> {
        self.pages.get_mut(number as usize)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &LearnedPage)> {
        let pages = self.pages.iter().zip(0..);
        pages.filter_map(|(page, number)| Some((number, page.as_ref()?)))
    }

    /// The one that was made longest ago, if there is no room for another.
    pub fn oldest_if_full(&mut self) -> Option<u32> {
        if self.len() < MAX_PAGES {
            return None;
        }
        while let Some((number, name)) = self.order.pop_front() {
            if self.by_name.get(&name) == Some(&number) {
                return Some(number);
            }
        }
        None
    }

    /// Its number. There is none of this name.
    pub fn insert(&mut self, page: LearnedPage) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.pages.push(None);
            u32::try_from(self.pages.len() - 1).unwrap_or(u32::MAX)
        });
        self.by_name.insert(page.name.clone(), number);
        self.order.push_back((number, page.name.clone()));
        if self.order.len() > 2 * MAX_PAGES {
            let by_name = &self.by_name;
            self.order
                .retain(|(number, name)| by_name.get(name) == Some(number));
        }
        if let Some(place) = self.pages.get_mut(number as usize) {
            *place = Some(page);
        }
        number
    }

    pub fn remove(&mut self, number: u32) -> Option<LearnedPage> {
        let page = self.pages.get_mut(number as usize)?.take()?;
        self.by_name.remove(&page.name);
        self.free.push(number);
        Some(page)
    }

    /// Numbers of those that count as unknown by now.
    pub fn ended(&self, now: Instant) -> Vec<u32> {
        let ended = self.iter().filter(|(_, page)| page.ends_at <= now);
        ended.map(|(number, _)| number).collect()
    }
}

/// Why pages are not learned.
#[derive(Default)]
pub struct Notes {
    by_name: HashMap<PageName, (WhyNot, Instant), foldhash::fast::RandomState>,
    order: VecDeque<PageName>,
}

impl Notes {
    pub fn put(&mut self, name: PageName, why: WhyNot, now: Instant) {
        if self.by_name.insert(name.clone(), (why, now)).is_some() {
            return;
        }
        self.order.push_back(name);
        while self.order.len() > MAX_NOTES {
            if let Some(oldest) = self.order.pop_front() {
                self.by_name.remove(&oldest);
            }
        }
    }

    pub fn of(&self, name: &[u8]) -> Option<&(WhyNot, Instant)> {
        self.by_name.get(name)
    }

    pub fn remove(&mut self, name: &[u8]) {
        if self.by_name.remove(name).is_some() {
            self.order.retain(|known| **known != *name);
        }
    }
}

/// The facts that people are shown about a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageReport {
    NotLearned {
        why: WhyNot,
        ago: Duration,
    },
    Learned {
        made_ago: Duration,
        /// `None`: nothing that it was made of has changed.
        suspect: Option<(String, Duration)>,
        /// Until it is made anew, whatever happens.
        left: Duration,
        /// It is shown beyond its ordinary lifetime.
        is_kept: bool,
        /// Why it is not.
        not_kept: Option<WhyNot>,
        statements: u32,
        tables: Vec<String>,
        files: Vec<String>,
        /// Whether the binary log of its server is followed.
        log: LogState,
        /// Paths of SQLite databases.
        databases: Vec<String>,
        /// How much of the time replays of the pool took lately, if its statements are run again.
        replay_percent: Option<u32>,
        same: u32,
        changed: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Reason;

    fn page(name: &str, now: Instant) -> LearnedPage {
        LearnedPage {
            name: name.as_bytes().into(),
            address: "/".into(),
            shape: None,
            server: None,
            made_at: now,
            counted_at: now,
            ends_at: now + Duration::from_secs(60),
            kept_until: now + Duration::from_secs(60),
            digest: 0,
            statements: 0,
            tables: Box::default(),
            files: Box::default(),
            sqlite: Box::default(),
            cache: None,
            suspect: None,
            is_outdated: false,
            fetch: 1,
            is_guarded: false,
            is_kept: false,
            not_kept: None,
            same: 0,
            changed: 0,
            asked: Arc::default(),
        }
    }

    #[test]
    fn a_number_is_used_again_and_the_page_before_is_not_found_by_it() {
        let now = Instant::now();
        let mut pages = Pages::default();
        let first = pages.insert(page("one", now));
        assert_eq!(pages.remove(first).unwrap().name[..], *b"one");
        let second = pages.insert(page("two", now));
        assert_eq!(first, second);
        assert!(pages.named(b"one").is_none());
        assert_eq!(pages.named(b"two").unwrap().0, second);
        assert!(pages.ended(now).is_empty());
        assert_eq!(pages.ended(now + Duration::from_secs(60)), [second]);
    }

    #[test]
    fn notes_are_bounded_and_the_oldest_goes() {
        let now = Instant::now();
        let mut notes = Notes::default();
        for number in 0..=MAX_NOTES {
            let name = number.to_string();
            let why = WhyNot::new(Reason::Elsewhere, "");
            notes.put(name.as_bytes().into(), why, now);
        }
        assert!(notes.of(b"0").is_none());
        assert!(notes.of(b"1").is_some());
        assert_eq!(
            (notes.by_name.len(), notes.order.len()),
            (MAX_NOTES, MAX_NOTES)
        );
        notes.remove(b"1");
        assert!(notes.of(b"1").is_none());
    }
}
