//! Fields on caching that an application sends with every page alike, which mean no page in particular.
//!
//! Some write `no-cache, private` into each answer, of the front page as of a letter: MyBB does, and all that is built on
//! Symfony. Chyrp sends `Vary: *` with all of its pages. If the pages of a site that guests have seen have the same fields, these are a default, as PHP's own are; the
//! answers then show what a page depends on. If more than one page of nine has other fields, they count again. `private`
//! and `no-store` without `no-cache` always count.

use std::hash::{BuildHasher, RandomState};

use page_evidence::Halves;
use parking_lot::Mutex;

use crate::session::{Field, PAST};

/// Sites of which it is remembered, in half the table.
const MAX_SITES: usize = 1024;
/// Pages of one site that are remembered.
const MAX_PAGES: usize = 128;
/// So many pages must say the same,
const MIN_PAGES: usize = 4;
/// and so many for each one that says something else: one address that a scanner has found is none of the pages that
/// visitors see.
const PAGES_FOR_OTHER: usize = 8;
/// Milliseconds for which a page counts since it was seen.
const REMEMBERED_MILLIS: u64 = 3_600_000;

/// A page that a guest was shown.
#[derive(Debug)]
struct SeenPage {
    page: u64,
    /// Stands for its fields on caching.
    said: u64,
    at: u64,
}

/// The fields on caching of the pages of all sites: those seen last of each.
#[derive(Debug, Default)]
pub struct SitePolicies {
    secret: RandomState,
    sites: Mutex<Halves<Vec<SeenPage>>>,
}

impl SitePolicies {
    /// A guest was shown a page of the site with these fields, at `now` in milliseconds.
    pub fn note(&self, site: &[u8], page: u64, fields: &[Field], now: u64) {
        let said = self.said(fields);
        let mut sites = self.sites.lock();
        let seen = sites.entry(self.secret.hash_one(site), MAX_SITES);
        seen.retain(|it| it.page != page);
        if seen.len() >= MAX_PAGES {
            seen.remove(0);
        }
        let at = now;
        seen.push(SeenPage { page, said, at });
    }

    /// Do all pages of the site say what these fields say, but for some that hardly count?
    #[must_use]
    pub fn is_said_of_all(&self, site: &[u8], fields: &[Field], now: u64) -> bool {
        if !is_default(fields) {
            return false;
        }
        let said = self.said(fields);
        let mut sites = self.sites.lock();
        let seen = sites.entry(self.secret.hash_one(site), MAX_SITES);
        let counts = seen
            .iter()
            .filter(|it| now.saturating_sub(it.at) < REMEMBERED_MILLIS);
        let (same, others): (Vec<_>, Vec<_>) = counts.partition(|it| it.said == said);
        same.len() >= MIN_PAGES.max(others.len() * PAGES_FOR_OTHER)
    }

    /// Stands for what the fields say: dates of the past and the order of directives do not count.
    fn said(&self, fields: &[Field]) -> u64 {
        let mut directives: Vec<Vec<u8>> = directives(fields).collect();
        let others = fields.iter().filter(|field| is_of_caching(field));
        directives.extend(others.map(|(name, _)| name.to_ascii_lowercase()));
        directives.sort();
        self.secret.hash_one(&directives).max(1)
    }
}

/// Do the fields say that nothing is to be shown again unasked? `Pragma` counts where the application has written it: PHP
/// sends one with each session, beside its own `Expires`.
fn is_default(fields: &[Field]) -> bool {
    let mut said = directives(fields).peekable();
    let has = |name: &[u8], is_such: fn(&[u8]) -> bool| {
        let mut fields = fields.iter();
        fields.any(|(it, value)| it.eq_ignore_ascii_case(name) && is_such(value.trim_ascii()))
    };
    said.peek().is_none()
        || said.any(|it| it == b"no-cache" || it == b"max-age=0")
        || has(b"pragma", |it| it.eq_ignore_ascii_case(b"no-cache"))
            && has(b"expires", |it| it != PAST)
}

fn directives(fields: &[Field]) -> impl Iterator<Item = Vec<u8>> {
    let controls = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
    let directives = controls.flat_map(|(_, value)| value.split(|&byte| byte == b','));
    directives.map(|it| it.trim_ascii().to_ascii_lowercase())
}

/// `Vary: *` names nothing that a page depends on.
fn is_of_caching((name, value): &Field) -> bool {
    let names: [&[u8]; 3] = [b"cache-control", b"expires", b"pragma"];
    names.iter().any(|it| name.eq_ignore_ascii_case(it))
        || name.eq_ignore_ascii_case(b"vary") && value.trim_ascii() == b"*"
}

/// The fields without those that say something of caching.
#[must_use]
pub fn without_caching(fields: &[Field]) -> Vec<Field> {
    let others = fields.iter().filter(|field| !is_of_caching(field));
    others.cloned().collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn control(value: &'static str) -> Vec<Field> {
        let name = Bytes::from_static(b"Cache-Control");
        vec![(name, Bytes::from_static(value.as_bytes()))]
    }

    #[test]
    fn what_every_page_says_says_nothing_of_one() {
        let policies = SitePolicies::default();
        let private = control("no-cache, private");
        for page in 0..MIN_PAGES as u64 {
            assert!(!policies.is_said_of_all(b"forum", &private, 0));
            // A page that is noted again is no other one.
            policies.note(b"forum", page, &private, 0);
            policies.note(b"forum", page, &control("Private,no-cache"), 0);
        }
        assert!(policies.is_said_of_all(b"forum", &private, 0));
        let private_alone = control("private");
        (0..20).for_each(|page| policies.note(b"ledger", page, &private_alone, 0));
        assert!(!policies.is_said_of_all(b"ledger", &private_alone, 0));
        // PHP's session has begun beside it; or the application has written all of it.
        for (expires, is_default) in [
            ("Thu, 19 Nov 1981 08:52:00 GMT", false),
            ("Mon, 26 Jul 1997 05:00:00 GMT", true),
        ] {
            let more = [("Pragma", "no-cache"), ("Expires", expires)];
            let more = more.map(|(name, value)| (Bytes::from(name), Bytes::from(value)));
            let all: Vec<Field> = private_alone.iter().cloned().chain(more).collect();
            (0..20).for_each(|page| policies.note(expires.as_bytes(), page, &all, 0));
            let found = policies.is_said_of_all(expires.as_bytes(), &all, 0);
            assert_eq!(found, is_default, "{expires}");
        }
        // `Vary: *` of each page; fields that a page varies on stay.
        let varies = |value| vec![(Bytes::from_static(b"Vary"), Bytes::from_static(value))];
        (0..20).for_each(|page| policies.note(b"blog", page, &varies(b"*"), 0));
        assert!(policies.is_said_of_all(b"blog", &varies(b"*"), 0));
        assert!(!policies.is_said_of_all(b"blog", &varies(b"Cookie"), 1 + REMEMBERED_MILLIS));
        assert!(without_caching(&varies(b" * ")).is_empty());
        assert_eq!(without_caching(&varies(b"Cookie")).len(), 1);
        assert!(!policies.is_said_of_all(b"other", &private, 0));
        assert!(!policies.is_said_of_all(b"forum", &control("no-cache"), 0));
    }

    #[test]
    fn pages_that_say_something_else_end_it_while_they_are_many() {
        let policies = SitePolicies::default();
        let private = control("no-cache");
        let note = |pages: std::ops::Range<u64>, fields: &[Field], now| {
            pages.for_each(|page| policies.note(b"shop", page, fields, now));
        };
        let is_said = |now| policies.is_said_of_all(b"shop", &private, now);
        note(0..7, &private, 0);
        note(90..91, &[], 0);
        // One of eight.
        assert!(!is_said(1));
        note(7..8, &private, 1);
        assert!(is_said(1));
        note(91..93, &control("public, max-age=60"), 2);
        assert!(!is_said(2));
        // One that says the same now.
        note(90..93, &private, 3);
        assert!(is_said(3));
        note(200..202, &[], 4);
        assert!(!is_said(4));
        note(0..8, &private, 5 + REMEMBERED_MILLIS);
        assert!(is_said(5 + REMEMBERED_MILLIS));
        note(1000..5000, &[], 5 + REMEMBERED_MILLIS);
        assert!(!is_said(5 + REMEMBERED_MILLIS));
    }
}
