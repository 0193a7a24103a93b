//! Which statements ask for a value: from (a place of a shape, a content) to statements.
//!
//! An entry is eight bytes: a fingerprint of place and content, and a statement. Fingerprints may be
//! the same for different contents, which finds a statement too many. A fingerprint of many statements
//! (all that are published) narrows little; it is crowded then, and only counted.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use hashbrown::HashTable;

use crate::value::{Comparable, fold};

/// Statements that one fingerprint is followed to.
pub(crate) const MAX_OF_ONE_VALUE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u32);

#[derive(Debug, Clone, Copy)]
struct Entry {
    fingerprint: Fingerprint,
    statement: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Postings {
    entries: HashTable<Entry>,
    /// How many statements have the fingerprint.
    crowded: HashMap<u32, u32>,
    hasher: RandomState,
}

impl Fingerprint {
    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// Spreads the 32 bits over those that the table looks at.
    const fn hash(self) -> u64 {
        (self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

impl Postings {
    /// `None`: a content of which the rules say nothing.
    pub(crate) fn fingerprint(&self, place: u32, content: Option<Comparable<'_>>) -> Fingerprint {
        let mut hasher = self.hasher.build_hasher();
        place.hash(&mut hasher);
        match content {
            None => hasher.write_u8(0),
            Some(Comparable::Null) => hasher.write_u8(1),
            Some(Comparable::Integer(number)) => {
                hasher.write_u8(2);
                hasher.write_i64(number);
            }
            // Texts that may be equal have the same fingerprint.
            Some(Comparable::Text(text)) => {
                hasher.write_u8(3);
                let mut piece = [0; 64];
                let mut length = 0;
                for byte in fold(text) {
                    piece[length] = byte;
                    length += 1;
                    if length == piece.len() {
                        hasher.write(&piece);
                        length = 0;
                    }
                }
                hasher.write(&piece[..length]);
            }
            Some(Comparable::Date(text)) => {
                hasher.write_u8(4);
                hasher.write(text);
            }
        }
        let hash = hasher.finish();
        Fingerprint((hash ^ (hash >> 32)) as u32)
    }

    pub(crate) fn insert(&mut self, fingerprint: Fingerprint, statement: u32) {
        if let Some(count) = self.crowded.get_mut(&fingerprint.0) {
            *count += 1;
            return;
        }
        let count = self.of(fingerprint).count();
        if count >= MAX_OF_ONE_VALUE {
            for _ in 0..count {
                if let Ok(entry) = self
                    .entries
                    .find_entry(fingerprint.hash(), |it| it.fingerprint == fingerprint)
                {
                    entry.remove();
                }
            }
            let count = u32::try_from(count + 1).unwrap_or(u32::MAX);
            self.crowded.insert(fingerprint.0, count);
            return;
        }
        let entry = Entry {
            fingerprint,
            statement,
        };
        self.entries
            .insert_unique(fingerprint.hash(), entry, |it| it.fingerprint.hash());
    }

    pub(crate) fn remove(&mut self, fingerprint: Fingerprint, statement: u32) {
        if let Some(count) = self.crowded.get_mut(&fingerprint.0) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.crowded.remove(&fingerprint.0);
            }
            return;
        }
        let is_it = |it: &Entry| it.fingerprint == fingerprint && it.statement == statement;
        if let Ok(entry) = self.entries.find_entry(fingerprint.hash(), is_it) {
            entry.remove();
        }
    }

    /// The statements of a fingerprint; `None` if they are too many.
    pub(crate) fn find(&self, fingerprint: Fingerprint) -> Option<impl Iterator<Item = u32>> {
        (!self.crowded.contains_key(&fingerprint.0))
            .then(|| self.of(fingerprint).map(|entry| entry.statement))
    }

    fn of(&self, fingerprint: Fingerprint) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter_hash(fingerprint.hash())
            .filter(move |entry| entry.fingerprint == fingerprint)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.crowded.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_many_ask_for_are_counted_alone() {
        let mut postings = Postings::default();
        let text = |text: &'static str| Some(Comparable::Text(text.as_bytes()));
        let one = postings.fingerprint(1, text("Publish "));
        assert_eq!(one, postings.fingerprint(1, text("publish")));
        let other = postings.fingerprint(2, text("publish"));
        assert_ne!(one, other);
        postings.insert(other, 7);
        let found =
            |postings: &Postings, fingerprint| postings.find(fingerprint).map(Iterator::count);
        for statement in 0..MAX_OF_ONE_VALUE {
            assert_eq!(found(&postings, one), Some(statement));
            postings.insert(one, u32::try_from(statement).unwrap());
        }
        postings.insert(one, 1_000);
        assert_eq!(found(&postings, one), None);
        assert_eq!(found(&postings, other), Some(1));
        for statement in 0..MAX_OF_ONE_VALUE {
            postings.remove(one, u32::try_from(statement).unwrap());
        }
        assert_eq!(found(&postings, one), None, "who is left is not known");
        postings.remove(one, 1_000);
        assert_eq!(found(&postings, one), Some(0));
        postings.remove(other, 7);
        assert!(postings.is_empty());
    }
}
