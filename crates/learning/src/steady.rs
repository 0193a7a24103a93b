//! For how long pages may be kept, as far as the clock goes. Nothing shows whether a page depends on the time. So a page is
//! kept for as long as it has been seen to stay the same, a minute at first, and not beyond midnight. The time counts from
//! the last change of what the page was made of: new data may name a time that is near, such as the end of an offer.
//!
//! To ask PHP with its clock put on would show more, and does harm: such a request ends sessions and lets caches expire for all visitors, and
//! makes opcache trust scripts until that time (docs/design/2026-11-27-clock.md).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::pages::{MAX_PAGES, PageName};

/// For a page about which nothing is known yet.
const AT_FIRST: Duration = Duration::from_secs(60);

/// A page that was not made for so long makes room for others.
const REMEMBERED: Duration = Duration::from_secs(2 * DAY_SECONDS as u64);

const DAY_SECONDS: i64 = 24 * 3600;

#[derive(Default)]
pub struct SteadyPages {
    pages: HashMap<PageName, SteadyPage, foldhash::fast::RandomState>,
}

struct SteadyPage {
    digest: u64,
    /// When it was first made as it is, of the data that it is made of now.
    since: Instant,
    made_at: Instant,
}

/// A page that was made.
pub struct MadePage {
    pub digest: u64,
    /// Its data may have changed since it was made before.
    pub is_suspect: bool,
    pub at: Instant,
}

impl SteadyPages {
    /// For how long the page that was made now may be kept, up to `most`.
    pub fn made(&mut self, name: &PageName, page: &MadePage, most: Duration) -> Duration {
        let now = page.at;
        if let Some(known) = self.pages.get_mut(name) {
            known.see(page);
            let same_for = now.saturating_duration_since(known.since);
            return same_for.max(AT_FIRST).min(most);
        }
        if self.pages.len() >= MAX_PAGES {
            let is_new = |it: &SteadyPage| now.saturating_duration_since(it.made_at) < REMEMBERED;
            self.pages.retain(|_, known| is_new(known));
        }
        if self.pages.len() < MAX_PAGES {
            let first = SteadyPage {
                digest: page.digest,
                since: now,
                made_at: now,
            };
            self.pages.insert(name.clone(), first);
        }
        AT_FIRST.min(most)
    }
}

impl SteadyPage {
    fn see(&mut self, page: &MadePage) {
        self.made_at = page.at;
        if self.digest != page.digest || page.is_suspect {
            (self.digest, self.since) = (page.digest, page.at);
        }
    }
}

/// The rest of the day in which a fetch began, at `began_at` (unix seconds).
pub fn left_of_today(began_at: i64) -> Duration {
    let now = i64::try_from(clock::wall_now() / 1000).unwrap_or(i64::MAX);
    let offset = clock::local(began_at).offset().seconds();
    left_of_day(began_at, now, offset.into())
}

/// The rest of the day in which a fetch began, at `began_at` and `now` (unix seconds), in UTC and in a zone that is `offset` seconds
/// before it: many pages have today's date, or ask the database for what comes after it.
fn left_of_day(began_at: i64, now: i64, offset: i64) -> Duration {
    let midnight =
        |offset: i64| began_at - (began_at + offset).rem_euclid(DAY_SECONDS) + DAY_SECONDS;
    let left = midnight(0).min(midnight(offset)) - now;
    Duration::from_secs(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(DAY_SECONDS as u64);

    fn kept_for(pages: &mut SteadyPages, (digest, is_suspect): (u64, bool), at: Instant) -> u64 {
        let name: PageName = b"pages\0/".as_slice().into();
        let page = MadePage {
            digest,
            is_suspect,
            at,
        };
        pages.made(&name, &page, DAY).as_secs()
    }

    #[test]
    fn page_is_kept_for_as_long_as_it_has_been_the_same_since_its_data_changed() {
        let (mut pages, begin) = (SteadyPages::default(), Instant::now());
        for (minutes, made, minutes_kept) in [
            (0, (1, false), 1),
            (1, (1, false), 1),
            (2, (1, false), 2),
            (9, (1, false), 9),
            // Its data has changed, and may name a time that is near.
            (10, (2, true), 1),
            (11, (2, false), 1),
            (30, (2, false), 20),
            // The page is the same, and its data is not.
            (31, (2, true), 1),
            (34, (2, false), 3),
            (5000, (2, false), 24 * 60),
            // Nothing was, and it is another.
            (5001, (3, false), 1),
            (5003, (3, false), 2),
        ] {
            let at = begin + Duration::from_secs(60 * minutes);
            assert_eq!(
                kept_for(&mut pages, made, at),
                60 * minutes_kept,
                "{minutes}"
            );
        }
    }

    #[test]
    fn no_page_is_kept_longer_than_the_site_says() {
        let mut pages = SteadyPages::default();
        let page = MadePage {
            digest: 1,
            is_suspect: false,
            at: Instant::now(),
        };
        let most = Duration::from_secs(7);
        assert_eq!(pages.made(&b"a".as_slice().into(), &page, most), most);
    }

    #[test]
    fn pages_are_bounded_and_those_of_long_ago_make_room() {
        let (mut pages, now) = (SteadyPages::default(), Instant::now());
        let made = |pages: &mut SteadyPages, number: usize, at| {
            let page = MadePage {
                digest: 1,
                is_suspect: false,
                at,
            };
            pages.made(&number.to_be_bytes().as_slice().into(), &page, DAY);
        };
        for number in 0..=MAX_PAGES {
            made(&mut pages, number, now);
        }
        assert_eq!(pages.pages.len(), MAX_PAGES);
        made(&mut pages, MAX_PAGES, now + REMEMBERED);
        assert_eq!(pages.pages.len(), 1);
    }

    #[test]
    fn day_ends_at_midnight_here_and_in_utc() {
        const NOON: i64 = 1_795_780_800;
        let hours =
            |began, now, offset: i64| left_of_day(began, now, offset * 3600).as_secs_f64() / 3600.0;
        assert_eq!(NOON % DAY_SECONDS, DAY_SECONDS / 2);
        assert!((hours(NOON, NOON, 0) - 12.0).abs() < 0.01);
        assert!((hours(NOON, NOON, 2) - 10.0).abs() < 0.01);
        assert!((hours(NOON, NOON, -5) - 12.0).abs() < 0.01);
        assert!((hours(NOON + 10 * 3600 + 1, NOON + 11 * 3600, 2) - 1.0).abs() < 0.01);
        assert!((hours(NOON, NOON, -13) - 1.0).abs() < 0.01);
        let yesterday = NOON - DAY_SECONDS / 2 - 1;
        assert!(
            hours(yesterday, NOON, 0).abs() < 0.01,
            "the day of the fetch is over"
        );
    }
}
