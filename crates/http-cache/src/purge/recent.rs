//! The purges that fetches under way may have missed: what they will carry is known when they end.

use super::labels::{Kind, Labels, label_hash};
use super::{Pattern, PurgeTarget};
use crate::key::KeyRef;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Purges of patterns and prefixes that are told apart; each fetch is compared with all of them.
const PATTERNS: usize = 1024;

/// Keys, addresses and tags that were purged, by hash, the latest stamp of each.
pub(crate) struct RecentPurges {
    capacity: usize,
    latest: HashTable<(u64, u64)>,
    /// Hashes and stamps, in the order of the purges.
    order: VecDeque<(u64, u64)>,
    patterns: VecDeque<(PurgedPattern, u64)>,
    /// Fetches with an earlier stamp are outdated, whatever they carry: purges are forgotten that
    /// came later than that.
    floor: u64,
}

/// What was purged by a pattern.
enum PurgedPattern {
    Keys(Box<[u8]>),
    Labels(Kind, Pattern),
}

impl RecentPurges {
    /// Tells as many keys and labels apart.
    pub(crate) fn new(capacity: usize) -> RecentPurges {
        RecentPurges {
            capacity: capacity.max(1),
            latest: HashTable::new(),
            order: VecDeque::new(),
            patterns: VecDeque::new(),
            floor: 0,
        }
    }

    pub(crate) fn add(&mut self, target: PurgeTarget<'_>, stamp: u64) {
        match target {
            PurgeTarget::Key(key) => self.add_hash(key.hash(), stamp),
            PurgeTarget::Tag(tag) => self.add_hash(label_hash(Kind::Tag, tag), stamp),
            PurgeTarget::Address(at) => self.add_hash(label_hash(Kind::Address, at), stamp),
            PurgeTarget::Prefix(prefix) => {
                self.add_pattern(PurgedPattern::Keys(prefix.into()), stamp)
            }
            PurgeTarget::Tags(pattern) => {
                self.add_pattern(PurgedPattern::Labels(Kind::Tag, pattern.clone()), stamp);
            }
            PurgeTarget::Addresses(pattern) => {
                self.add_pattern(PurgedPattern::Labels(Kind::Address, pattern.clone()), stamp);
            }
            PurgeTarget::Everything => {
                self.floor = stamp;
                self.latest.clear();
                self.order.clear();
                self.patterns.clear();
            }
            // A fetch that has begun is stored with its own, earlier stamp.
            PurgeTarget::NotFound => {}
        }
    }

    fn add_hash(&mut self, hash: u64, stamp: u64) {
        if self.order.len() == self.capacity
            && let Some((oldest, forgotten)) = self.order.pop_front()
        {
            self.floor = self.floor.max(forgotten);
            let is_latest = |entry: &(u64, u64)| *entry == (oldest, forgotten);
            if let Ok(entry) = self.latest.find_entry(oldest, is_latest) {
                entry.remove();
            }
        }
        self.order.push_back((hash, stamp));
        match self.latest.find_mut(hash, |entry| entry.0 == hash) {
            Some(entry) => entry.1 = stamp,
            None => {
                self.latest
                    .insert_unique(hash, (hash, stamp), |entry| entry.0);
            }
        }
    }

    fn add_pattern(&mut self, named: PurgedPattern, stamp: u64) {
        if self.patterns.len() == PATTERNS
            && let Some((_, forgotten)) = self.patterns.pop_front()
        {
            self.floor = self.floor.max(forgotten);
        }
        self.patterns.push_back((named, stamp));
    }

    /// Has a purge since `began` named the key or the address?
    pub(crate) fn names_target(&self, key: &KeyRef<'_>, address: &[u8], began: u64) -> bool {
        let by_key = |named: &PurgedPattern| matches!(named, PurgedPattern::Keys(prefix) if key.bytes().starts_with(prefix));
        began < self.floor
            || self.is_later(key.hash(), began)
            || self.patterns_since(began).any(by_key)
            || (!address.is_empty()
                && self.names_label(
                    Kind::Address,
                    address,
                    label_hash(Kind::Address, address),
                    began,
                ))
    }

    /// Has a purge since `began` named one of the labels?
    pub(crate) fn names_one_of(&self, labels: &Labels, began: u64) -> bool {
        labels
            .hashes()
            .any(|(kind, text, hash)| self.names_label(kind, text, hash, began))
    }

    fn names_label(&self, kind: Kind, text: &[u8], hash: u64, began: u64) -> bool {
        let by_pattern = |named: &PurgedPattern| matches!(named, PurgedPattern::Labels(of, pattern) if *of == kind && pattern.matches(text));
        self.is_later(hash, began) || self.patterns_since(began).any(by_pattern)
    }

    fn is_later(&self, hash: u64, began: u64) -> bool {
        let entry = self.latest.find(hash, |entry| entry.0 == hash);
        entry.is_some_and(|entry| began < entry.1)
    }

    fn patterns_since(&self, began: u64) -> impl Iterator<Item = &PurgedPattern> {
        let later = self
            .patterns
            .iter()
            .rev()
            .take_while(move |(_, stamp)| began < *stamp);
        later.map(|(named, _)| named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;

    #[test]
    fn only_what_was_purged_since_counts() {
        let mut recent = RecentPurges::new(100);
        let (a, b) = (key("a"), key("b"));
        recent.add(PurgeTarget::Key(a.as_ref()), 1);
        recent.add(PurgeTarget::Address(b"host/b"), 2);
        let pattern = Pattern::Host(b"other"[..].into());
        recent.add(PurgeTarget::Addresses(&pattern), 3);
        let is_named = |key: &crate::CacheKey, address: &str, began| {
            recent.names_target(&key.as_ref(), address.as_bytes(), began)
        };
        assert!(is_named(&a, "", 0) && !is_named(&a, "", 1));
        assert!(!is_named(&b, "", 0));
        assert!(is_named(&b, "host/b", 1) && !is_named(&b, "host/b", 2));
        assert!(is_named(&b, "other/x", 2) && !is_named(&b, "otherwise/x", 2));
        assert!(!is_named(&b, "other/x", 3));
    }

    #[test]
    fn what_is_forgotten_outdates_older_fetches_only() {
        let mut recent = RecentPurges::new(2);
        let names: Vec<_> = (0..4).map(|n| key(&n.to_string())).collect();
        for (stamp, name) in (1u64..).zip(&names) {
            recent.add(PurgeTarget::Key(name.as_ref()), stamp);
        }
        let other = key("other");
        let is_named = |began| recent.names_target(&other.as_ref(), b"", began);
        assert!(is_named(0) && is_named(1), "two purges are forgotten");
        assert!(!is_named(2));
        assert!(recent.names_target(&names[3].as_ref(), b"", 2));
        assert_eq!(
            recent.latest.len(),
            2,
            "nothing is left of what is forgotten"
        );
    }

    #[test]
    fn a_key_that_is_purged_again_and_again_is_not_forgotten() {
        let mut recent = RecentPurges::new(3);
        let a = key("a");
        for stamp in 1..10 {
            recent.add(PurgeTarget::Key(a.as_ref()), stamp);
        }
        assert!(recent.names_target(&a.as_ref(), b"", 8));
        assert!(!recent.names_target(&a.as_ref(), b"", 9));
    }
}
