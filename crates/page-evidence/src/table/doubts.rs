//! Visitors whose own answers were other ones than the shared answer, or were not compared, until the answers are the
//! same, or for half an hour. What others are given says nothing of these visitors: one address stands for all once it
//! was compared.

use std::hash::Hasher;

use shared_request::{LeftOut, Trait};
use twox_hash::XxHash64;

use crate::halves::Halves;
use crate::page_name::PageName;

/// Visitors in half of it: 4,000 of each shard of the table together, in some 100 KB.
const MAX_VISITORS: usize = 2048;
/// A visitor is forgotten after these seconds.
const DOUBT_SECONDS: u32 = 1800;

/// Traits that tell a person apart, whichever link or browser is used.
pub(super) const OF_PERSON: [Trait; 3] = [Trait::Network, Trait::Cookies, Trait::Session];

/// Why a visitor is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The answer that this stands for was not compared. Once the shared one is the same, nothing is in doubt.
    NotCompared(u32),
    /// The answer was another one than the shared one.
    Differs,
    /// The answer could not be stored.
    Refused,
}

/// A visitor who is in doubt.
#[derive(Debug)]
struct VisitorInDoubt {
    /// When the visitor is forgotten, in seconds.
    until: u32,
    /// Stands for the answer that was not compared; 0: it was.
    answer: u32,
}

/// A visitor is known twice: by all values, and by the address with the cookies. The same person may come by another link,
/// or with another browser.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    visitors: Halves<VisitorInDoubt>,
}

impl Doubts {
    /// Is the visitor in doubt? Not any more where the answer is the shared one by now, for which `shared` stands; 0: there is
    /// none yet.
    pub(super) fn has(&mut self, visitor: (PageName, &LeftOut), shared: u32, now: u32) -> bool {
        // Most tables have none.
        if self.visitors.is_empty() {
            return false;
        }
        let key = key_of(visitor);
        let own = self.visitors.get(key);
        if own.is_some_and(|it| it.answer != 0 && it.answer == shared) {
            self.visitors.remove(key);
        }
        let is_noted = |key| self.visitors.get(key).is_some_and(|it| now < it.until);
        is_noted(key) || is_noted(person_of(visitor))
    }

    /// Returns whether the visitor was in no doubt until now.
    pub(super) fn note(
        &mut self,
        visitor: (PageName, &LeftOut),
        (why, shared): (Doubt, u32),
        now: u32,
    ) -> bool {
        let is_new = !self.has(visitor, shared, now);
        let (answer, keys) = match why {
            Doubt::NotCompared(answer) => (answer, [Some(key_of(visitor)), None]),
            Doubt::Differs => (0, [Some(key_of(visitor)), Some(person_of(visitor))]),
            // A page that sets a cookie refuses each first visit. Invented links to it take no place of their own.
            Doubt::Refused => (0, [None, Some(person_of(visitor))]),
        };
        let until = now.saturating_add(DOUBT_SECONDS);
        for key in keys.into_iter().flatten() {
            let noted = VisitorInDoubt { until, answer };
            self.visitors.put(key, noted, MAX_VISITORS);
        }
        is_new
    }

    /// The visitor's answer was the shared one.
    pub(super) fn forget(&mut self, visitor: (PageName, &LeftOut)) {
        self.visitors.remove(key_of(visitor));
        self.forget_person(visitor);
    }

    /// Neither the address nor the cookies were the reason.
    pub(super) fn forget_person(&mut self, visitor: (PageName, &LeftOut)) {
        self.visitors.remove(person_of(visitor));
    }
}

/// Stands for the page and all values of the visitor together, with the address.
fn key_of(visitor: (PageName, &LeftOut)) -> u64 {
    hash_of(visitor, &Trait::ALL)
}

/// Stands for the page and the person, by what a link or another browser does not change.
fn person_of(visitor: (PageName, &LeftOut)) -> u64 {
    hash_of(visitor, &OF_PERSON)
}

fn hash_of((page, left_out): (PageName, &LeftOut), traits: &[Trait]) -> u64 {
    let mut hasher = XxHash64::with_seed(page.page ^ traits.len() as u64);
    for it in traits {
        hasher.write_u32(left_out.value(*it));
    }
    hasher.finish()
}
