//! The cookies that guests were given.
//!
//! A guest has cookies that the application gave to a visitor of whom it knew nothing, and has sent nothing since but
//! requests for pages that leave a session as it was. The first other request (a write, a page that was not compared)
//! removes the cookies from this table. They never return to it: only answers to guests' requests put cookies into it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use page_evidence::{AnswerOutline, Halves, PageName};
use parking_lot::Mutex;

use crate::place::is_drawn;

/// Cookies in half the table.
const MAX_COOKIES: usize = 32 * 1024;
/// Cookies that are the same for all guests, in half the table.
const MAX_CONSTANTS: usize = 1024;
/// Pages that a guest asked for before they were compared. A visitor who has asked for more is no guest.
const MAX_PENDING: usize = 32;

/// The shortest value that is drawn for one visitor, and the digits of a time.
const MIN_DRAWN: usize = 16;
const TIME_DIGITS: std::ops::RangeInclusive<usize> = 9..=13;

/// Is this value one visitor's alone, or a time? A choice (a language, a currency) is not: others have the same.
#[must_use]
pub fn is_of_one_visitor(value: &[u8]) -> bool {
    let is_time = || TIME_DIGITS.contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    value.len() >= MIN_DRAWN && is_drawn(value) || is_time()
}

/// So long, in milliseconds, a cookie is one of all guests since it was last seen given.
const CONSTANT_MILLIS: u64 = 3_600_000;

/// Stands for a cookie: its name, and both name and value. Other numbers in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieMark {
    name: u64,
    whole: u64,
}

/// The value of a cookie that guests of a site are given by default.
#[derive(Clone, Copy, Debug, Default)]
struct DefaultCookie {
    /// Stands for name and value.
    whole: u64,
    /// Several guests were given it.
    is_common: bool,
    /// When it was last seen given, in milliseconds.
    seen: u64,
}

/// Pages that a guest was shown from memory, the last ones: a write comes from one of them. The table may have as many
/// guests as cookies.
const MAX_SHOWN: usize = 8;

/// A page that a guest has asked the application for, before it was known to leave their session as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingPage {
    pub page: PageName,
    /// The state of the guest's answer, once it is there.
    pub answer: Option<AnswerOutline>,
}

/// The standing of a client who has a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieStanding {
    /// All guests of the site are given it.
    Constant,
    /// Guests were given it, and perhaps not all: a choice.
    Choice,
    /// A guest has it, who has asked for these pages before they were compared.
    Guest(Vec<PendingPage>),
    /// It may be the cookie of a visitor whom the application knows.
    Unknown,
}

/// A guest, whatever cookies they are given one after another.
#[derive(Debug, Default)]
struct KnownGuest {
    /// They have written something: an answer that is still under way may give them one more cookie.
    is_known: bool,
    pending: Vec<PendingPage>,
    /// Stand for the addresses of pages that came from memory: the application does not know that the guest has seen them.
    shown: VecDeque<u64>,
}

impl KnownGuest {
    fn ask_for(&mut self, asked: PendingPage) {
        if !self.pending.contains(&asked) {
            self.pending.push(asked);
        }
        self.is_known |= self.pending.len() > MAX_PENDING;
    }

    fn note_shown(&mut self, address: u64) {
        self.shown.retain(|it| *it != address);
        if self.shown.len() >= MAX_SHOWN {
            self.shown.pop_front();
        }
        self.shown.push_back(address);
    }

    /// A request for a page has been answered.
    fn note_answer(&mut self, answered: PendingPage) {
        let asked = PendingPage {
            page: answered.page,
            answer: None,
        };
        self.pending.retain(|it| *it != asked);
        self.ask_for(answered);
    }
}

/// The cookies of guests.
#[derive(Debug, Default)]
pub struct GuestCookies {
    secret: RandomState,
    has_any: AtomicBool,
    given: Mutex<Halves<Arc<Mutex<KnownGuest>>>>,
    /// By site and name.
    constants: Mutex<Halves<DefaultCookie>>,
    choices: Mutex<Halves<()>>,
}

impl GuestCookies {
    #[must_use]
    pub fn mark(&self, name: &[u8], value: &[u8]) -> CookieMark {
        CookieMark {
            name: self.secret.hash_one(name),
            whole: self.secret.hash_one((name, value)),
        }
    }

    fn of_site(&self, site: &[u8], number: u64) -> u64 {
        self.secret.hash_one((site, number))
    }

    /// Is no guest known?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Acquire)
    }

    /// Two guests of the site were given this cookie, at `now` in milliseconds.
    pub fn note_constant(&self, site: &[u8], mark: CookieMark, now: u64) {
        self.has_any.store(true, Ordering::Release);
        let given = DefaultCookie {
            whole: mark.whole,
            is_common: true,
            seen: now,
        };
        let number = self.of_site(site, mark.name);
        self.constants.lock().put(number, given, MAX_CONSTANTS);
    }

    /// A visitor without a cookie was given this one. If all guests of the site were given a cookie of this name until
    /// now, and this value is another one, they no longer are.
    pub fn note_default(&self, site: &[u8], mark: CookieMark, now: u64) {
        let number = self.of_site(site, mark.name);
        let mut constants = self.constants.lock();
        if constants.get(number).is_none() {
            return;
        }
        let known = constants.entry(number, MAX_CONSTANTS);
        known.is_common = known.whole == mark.whole;
        (known.whole, known.seen) = (mark.whole, now);
    }

    fn is_constant(&self, site: &[u8], mark: CookieMark, now: u64) -> bool {
        let constants = self.constants.lock();
        let known = constants.get(self.of_site(site, mark.name));
        known.is_some_and(|known| {
            let is_known = known.is_common && known.whole == mark.whole;
            is_known && now.saturating_sub(known.seen) < CONSTANT_MILLIS
        })
    }

    /// A guest of the site was given this cookie, whose value others have, too.
    pub fn note_choice(&self, site: &[u8], mark: CookieMark) {
        let number = self.of_site(site, mark.whole);
        self.choices.lock().put(number, (), MAX_CONSTANTS);
    }

    /// The standing of who has this cookie, at `now` in milliseconds.
    #[must_use]
    pub fn standing(&self, site: &[u8], mark: CookieMark, now: u64) -> CookieStanding {
        if self.is_constant(site, mark, now) {
            return CookieStanding::Constant;
        }
        let is_choice = || {
            self.choices
                .lock()
                .get(self.of_site(site, mark.whole))
                .is_some()
        };
        let guest = self.given.lock().get(mark.whole).cloned();
        let guest = guest.as_ref().map(|guest| guest.lock());
        match guest.filter(|guest| !guest.is_known) {
            Some(guest) => CookieStanding::Guest(guest.pending.clone()),
            None if is_choice() => CookieStanding::Choice,
            None => CookieStanding::Unknown,
        }
    }

    /// A guest who has the cookies `had` (none: who came without) was given these in answer to a request for `page`, which
    /// has not been compared. Nothing is noted where one of `had` is no guest's by now.
    pub fn give(&self, had: &[CookieMark], given: &[CookieMark], page: Option<PendingPage>) {
        let mut table = self.given.lock();
        let known: Option<Vec<_>> = had
            .iter()
            .map(|mark| table.get(mark.whole).cloned())
            .collect();
        let Some(known) = known else {
            return;
        };
        if known.iter().any(|guest| guest.lock().is_known) {
            return;
        }
        let guest = known.first().cloned().unwrap_or_default();
        let others = known.iter().filter(|other| !Arc::ptr_eq(other, &guest));
        let pending: Vec<PendingPage> = others.flat_map(|it| it.lock().pending.clone()).collect();
        let mut pages = guest.lock();
        pending
            .into_iter()
            .chain(page)
            .for_each(|page| pages.ask_for(page));
        drop(pages);
        self.has_any.store(true, Ordering::Release);
        for mark in given.iter().chain(had) {
            table.put(mark.whole, guest.clone(), MAX_COOKIES);
        }
    }

    fn known(&self, marks: &[CookieMark]) -> Vec<Arc<Mutex<KnownGuest>>> {
        let table = self.given.lock();
        let known = marks
            .iter()
            .filter_map(|mark| table.get(mark.whole).cloned());
        known.collect()
    }

    /// Guests with these cookies ask the application for a page that has not been compared.
    pub fn note_pending(&self, marks: &[CookieMark], page: PageName) {
        for guest in self.known(marks) {
            guest.lock().ask_for(PendingPage { page, answer: None });
        }
    }

    /// Such a request has been answered.
    pub fn note_answer(&self, marks: &[CookieMark], answered: PendingPage) {
        for guest in self.known(marks) {
            guest.lock().note_answer(answered);
        }
    }

    /// Guests with these cookies are shown a page from memory, whose address this number stands for.
    pub fn note_shown(&self, marks: &[CookieMark], address: u64) {
        for guest in self.known(marks) {
            guest.lock().note_shown(address);
        }
    }

    /// Was a guest with these cookies shown a page of this address from memory?
    #[must_use]
    pub fn was_shown(&self, marks: &[CookieMark], address: u64) -> bool {
        let known = self.known(marks);
        known
            .iter()
            .any(|guest| guest.lock().shown.contains(&address))
    }

    /// These pages were compared since: they leave a session as it was.
    pub fn settle(&self, marks: &[CookieMark], is_settled: &dyn Fn(&PendingPage) -> bool) {
        for guest in self.known(marks) {
            guest.lock().pending.retain(|asked| !is_settled(asked));
        }
    }

    /// A visitor with these cookies is no guest from now on.
    pub fn forget(&self, marks: &[CookieMark]) {
        for guest in self.known(marks) {
            guest.lock().is_known = true;
        }
        let mut table = self.given.lock();
        for mark in marks {
            table.remove(mark.whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(key: &str) -> PageName {
        PageName::new(b"zone\0host", key.as_bytes())
    }

    #[test]
    fn a_guest_is_known_from_the_first_write_on() {
        let cookies = GuestCookies::default();
        let mark = cookies.mark(b"PHPSESSID", b"abc");
        assert_eq!(cookies.standing(b"site", mark, 0), CookieStanding::Unknown);
        cookies.give(&[], &[mark], None);
        assert_eq!(
            cookies.standing(b"site", mark, 0),
            CookieStanding::Guest(vec![])
        );
        cookies.forget(&[mark]);
        assert_eq!(cookies.standing(b"site", mark, 0), CookieStanding::Unknown);
        // An answer that was under way gives the same cookie once more.
        cookies.give(&[mark], &[mark], None);
        assert_eq!(cookies.standing(b"site", mark, 0), CookieStanding::Unknown);
    }

    #[test]
    fn pages_that_a_guest_was_shown_from_memory_are_known_by_each_cookie_and_bounded() {
        let cookies = GuestCookies::default();
        let [first, second, stranger] =
            ["1", "2", "3"].map(|value| cookies.mark(b"sid", value.as_bytes()));
        cookies.give(&[], &[first], None);
        cookies.note_shown(&[first], 1);
        cookies.give(&[first], &[second], None);
        assert!(cookies.was_shown(&[second], 1));
        assert!(!cookies.was_shown(&[stranger], 1));
        cookies.note_shown(&[second], 2);
        // Shown once more: it is the youngest.
        cookies.note_shown(&[second], 1);
        (3..=9).for_each(|address| cookies.note_shown(&[second], address));
        assert!(!cookies.was_shown(&[first], 2));
        assert!(cookies.was_shown(&[first], 1) && cookies.was_shown(&[first], 9));
        // The first write ends what is known of a guest.
        cookies.forget(&[first]);
        assert!(!cookies.was_shown(&[first], 9));
    }

    #[test]
    fn a_guest_who_was_given_several_cookies_is_known_by_each_of_them() {
        let cookies = GuestCookies::default();
        let [first, second, third] =
            ["1", "2", "3"].map(|value| cookies.mark(b"sid", value.as_bytes()));
        cookies.give(&[], &[first], None);
        cookies.give(&[first], &[second], None);
        cookies.forget(&[second]);
        assert_eq!(cookies.standing(b"", first, 0), CookieStanding::Unknown);
        // An answer to a request with the first one was under way.
        cookies.give(&[first], &[third], None);
        assert_eq!(cookies.standing(b"", third, 0), CookieStanding::Unknown);
    }

    #[test]
    fn a_choice_is_not_of_one_visitor() {
        for (value, is_own) in [
            ("de", false),
            ("en-gb", false),
            ("dark-mode-for-everybody", false),
            ("c4f81e0b2d83ab1c77e0190bb2f", true),
            ("1732850000", true),
            ("12", false),
        ] {
            assert_eq!(is_of_one_visitor(value.as_bytes()), is_own, "{value}");
        }
    }

    #[test]
    fn pages_that_were_not_compared_wait_with_the_cookie() {
        let cookies = GuestCookies::default();
        let mark = cookies.mark(b"sid", b"1");
        let (one, two) = (page("http://a/1\0"), page("http://a/2\0"));
        let of = |page| PendingPage { page, answer: None };
        cookies.give(&[], &[mark], Some(of(one)));
        cookies.note_pending(&[mark], two);
        assert_eq!(
            cookies.standing(b"", mark, 0),
            CookieStanding::Guest(vec![of(one), of(two)])
        );
        let next = cookies.mark(b"sid", b"2");
        cookies.give(&[mark], &[next], None);
        assert_eq!(
            cookies.standing(b"", next, 0),
            CookieStanding::Guest(vec![of(one), of(two)])
        );
        cookies.settle(&[mark], &|asked| asked.page == one);
        assert_eq!(
            cookies.standing(b"", mark, 0),
            CookieStanding::Guest(vec![of(two)])
        );
        let led = AnswerOutline {
            digest: 7,
            ..AnswerOutline::default()
        };
        let answered = PendingPage {
            page: two,
            answer: Some(led),
        };
        cookies.note_answer(&[mark], answered);
        assert_eq!(
            cookies.standing(b"", mark, 0),
            CookieStanding::Guest(vec![answered])
        );
        for number in 0..MAX_PENDING {
            cookies.note_pending(&[mark], page(&format!("http://a/{number}x\0")));
        }
        assert_eq!(cookies.standing(b"", mark, 0), CookieStanding::Unknown);
    }

    #[test]
    fn what_all_guests_are_given_is_of_their_site() {
        let cookies = GuestCookies::default();
        let mark = cookies.mark(b"currency", b"USD");
        cookies.note_constant(b"one", mark, 0);
        assert_eq!(cookies.standing(b"one", mark, 0), CookieStanding::Constant);
        assert_eq!(cookies.standing(b"two", mark, 0), CookieStanding::Unknown);
        cookies.forget(&[mark]);
        assert_eq!(cookies.standing(b"one", mark, 0), CookieStanding::Constant);
    }

    /// When a shop changed the currency of new guests, those who had the old one were shown the new one.
    #[test]
    fn a_cookie_of_all_guests_ends_with_another_default_and_after_an_hour() {
        let cookies = GuestCookies::default();
        let [dollars, euros] = [&b"USD"[..], b"EUR"].map(|value| cookies.mark(b"currency", value));
        let standing = |mark, now| cookies.standing(b"one", mark, now);
        cookies.note_default(b"one", dollars, 0);
        assert_eq!(standing(dollars, 0), CookieStanding::Unknown);
        cookies.note_constant(b"one", dollars, 0);
        cookies.note_default(b"one", dollars, 1000);
        assert_eq!(standing(dollars, CONSTANT_MILLIS), CookieStanding::Constant);
        let end = CONSTANT_MILLIS + 1000;
        assert_eq!(standing(dollars, end), CookieStanding::Unknown);
        cookies.note_default(b"one", euros, 2000);
        assert_eq!(standing(dollars, 2000), CookieStanding::Unknown);
        assert_eq!(
            standing(euros, 2000),
            CookieStanding::Unknown,
            "one guest alone"
        );
        cookies.note_default(b"one", euros, 3000);
        assert_eq!(standing(euros, 3000), CookieStanding::Constant);
        cookies.note_constant(b"one", dollars, 4000);
        assert_eq!(standing(euros, 4000), CookieStanding::Unknown);
    }
}
