//! Fields on caching that an application sends with every page alike, which mean no page in particular.
//!
//! Some write `no-cache, private` into each answer, of the front page as of a letter: MyBB does, and all that is built on
//! Symfony. If all pages of a site that guests have seen have the same fields, these are a default, as PHP's own are; the
//! answers then show what a page depends on. After one page with other fields they count again. `private` and `no-store`
//! without `no-cache` always count.

use std::hash::{BuildHasher, RandomState};

use page_evidence::Halves;
use parking_lot::Mutex;

use crate::session::{Field, PAST};

/// Sites of which it is remembered, in half the table.
const MAX_SITES: usize = 1024;
/// So many pages must say the same.
const LEAST_PAGES: usize = 4;
/// Milliseconds for which the policy does not count after a page with other fields.
const MIXED_MILLIS: u64 = 3_600_000;

/// The fields on caching that the pages of one site had last.
#[derive(Debug, Default)]
struct SitePolicy {
    /// Stands for the fields; 0: none was seen.
    said: u64,
    /// Numbers of pages that had them.
    pages: Vec<u64>,
    mixed_until: u64,
}

/// The fields on caching of the pages of all sites.
#[derive(Debug, Default)]
pub struct SitePolicies {
    secret: RandomState,
    sites: Mutex<Halves<SitePolicy>>,
}

impl SitePolicies {
    /// A guest was shown a page of the site with these fields, at `now` in milliseconds.
    pub fn note(&self, site: &[u8], page: u64, fields: &[Field], now: u64) {
        let said = self.said(fields);
        let mut sites = self.sites.lock();
        let policy = sites.entry(self.secret.hash_one(site), MAX_SITES);
        if policy.said != said {
            if policy.said != 0 {
                policy.mixed_until = now.saturating_add(MIXED_MILLIS);
            }
            policy.said = said;
            policy.pages.clear();
        }
        if policy.pages.len() < LEAST_PAGES && !policy.pages.contains(&page) {
            policy.pages.push(page);
        }
    }

    /// Do all pages of the site say what these fields say, as far as was seen?
    #[must_use]
    pub fn is_said_of_all(&self, site: &[u8], fields: &[Field], now: u64) -> bool {
        if !is_default(fields) {
            return false;
        }
        let said = self.said(fields);
        let mut sites = self.sites.lock();
        let policy = sites.entry(self.secret.hash_one(site), MAX_SITES);
        policy.said == said && policy.pages.len() >= LEAST_PAGES && now >= policy.mixed_until
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

fn is_of_caching((name, _): &Field) -> bool {
    let names: [&[u8]; 3] = [b"cache-control", b"expires", b"pragma"];
    names.iter().any(|it| name.eq_ignore_ascii_case(it))
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
        for page in 0..LEAST_PAGES as u64 {
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
        assert!(!policies.is_said_of_all(b"other", &private, 0));
        assert!(!policies.is_said_of_all(b"forum", &control("no-cache"), 0));
    }

    #[test]
    fn one_page_that_says_something_else_ends_it_for_a_while() {
        let policies = SitePolicies::default();
        let private = control("no-cache");
        let note_all = |now| (0..20).for_each(|page| policies.note(b"shop", page, &private, now));
        note_all(0);
        assert!(policies.is_said_of_all(b"shop", &private, 1));
        policies.note(b"shop", 99, &[], 2);
        assert!(!policies.is_said_of_all(b"shop", &private, 3));
        note_all(4);
        assert!(!policies.is_said_of_all(b"shop", &private, 5));
        assert!(policies.is_said_of_all(b"shop", &private, 5 + MIXED_MILLIS));
    }
}
