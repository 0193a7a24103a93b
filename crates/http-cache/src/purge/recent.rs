//! The purges that fetches under way may have missed: their labels are known when they end. Responses that
//! were kept elsewhere, whose fetch began long ago, are compared with them too.

use super::labels::{LabelKind, LabelNames, Labels, label_hash};
use super::{Pattern, PurgeMode, PurgeTarget};
use crate::key::KeyRef;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Purges of patterns and prefixes that are kept apart; each fetch is compared with all of them.
const PATTERNS: usize = 1024;

/// Keys, addresses and tags that were purged, by hash, the latest stamp of each.
pub(crate) struct RecentPurges {
    capacity: usize,
    latest: HashTable<LatestPurge>,
    /// Hashes and stamps, in the order of the purges.
    order: VecDeque<(u64, u64)>,
    patterns: VecDeque<(PurgedPattern, PurgeMode, u64)>,
    /// Fetches with an earlier stamp are outdated, whatever they carry.
    floor: u64,
    /// Purges are forgotten that came later than that: all with an earlier stamp may have been removed.
    forgotten: u64,
}

/// The last purge of a target that has a hash.
#[derive(Clone, Copy)]
struct LatestPurge {
    /// The hash, but for its lowest bit: 1 where one of the purges that are remembered was a hard one. A
    /// later soft one does not bring back pages that a hard one has removed, and eight more bytes for
    /// each entry would tell only whether a page is gone or stale.
    hash_and_mode: u64,
    stamp: u64,
}

/// The pattern of a purge.
enum PurgedPattern {
    Keys(Box<[u8]>),
    Labels(LabelKind, Pattern),
}

impl LatestPurge {
    fn is_of(&self, hash: u64) -> bool {
        self.hash_and_mode | 1 == hash | 1
    }

    fn hash(&self) -> u64 {
        self.hash_and_mode | 1
    }

    fn mode(&self) -> PurgeMode {
        match self.hash_and_mode & 1 {
            0 => PurgeMode::Soft,
            _ => PurgeMode::Hard,
        }
    }
}

impl RecentPurges {
    /// Creates the purges, with this number of keys and of labels kept apart.
    pub(crate) fn new(capacity: usize) -> RecentPurges {
        RecentPurges {
            capacity: capacity.max(1),
            latest: HashTable::new(),
            order: VecDeque::new(),
            patterns: VecDeque::new(),
            floor: 0,
            forgotten: 0,
        }
    }

    pub(crate) fn add(&mut self, target: PurgeTarget<'_>, mode: PurgeMode, stamp: u64) {
        let of_labels = |kind, pattern: &Pattern| PurgedPattern::Labels(kind, pattern.clone());
        match target {
            PurgeTarget::Key(key) => self.add_hash(key.hash(), mode, stamp),
            PurgeTarget::Tag(tag) => self.add_hash(label_hash(LabelKind::Tag, tag), mode, stamp),
            PurgeTarget::Address(at) => {
                self.add_hash(label_hash(LabelKind::Address, at), mode, stamp)
            }
            PurgeTarget::Prefix(prefix) => {
                self.add_pattern(PurgedPattern::Keys(prefix.into()), mode, stamp)
            }
            PurgeTarget::Tags(pattern) => {
                self.add_pattern(of_labels(LabelKind::Tag, pattern), mode, stamp)
            }
            PurgeTarget::Addresses(pattern) => {
                self.add_pattern(of_labels(LabelKind::Address, pattern), mode, stamp);
            }
            PurgeTarget::Everything => {
                self.floor = self.floor.max(stamp);
                // Earlier hard purges have removed their pages even if a soft one follows.
                if mode == PurgeMode::Hard {
                    self.forget_before(stamp);
                    self.latest.clear();
                    self.order.clear();
                    self.patterns.clear();
                }
            }
            // A fetch that has begun is stored with its own, earlier stamp.
            PurgeTarget::NotFound => {}
        }
    }

    /// Forgets the purges before a stamp: any response with an earlier stamp may have been purged.
    pub(crate) fn forget_before(&mut self, stamp: u64) {
        self.forgotten = self.forgotten.max(stamp);
        self.floor = self.floor.max(stamp);
    }

    fn add_hash(&mut self, hash: u64, mode: PurgeMode, stamp: u64) {
        if self.order.len() == self.capacity
            && let Some((oldest, forgotten)) = self.order.pop_front()
        {
            self.forget_before(forgotten);
            let is_latest = |entry: &LatestPurge| entry.is_of(oldest) && entry.stamp == forgotten;
            if let Ok(entry) = self.latest.find_entry(oldest | 1, is_latest) {
                entry.remove();
            }
        }
        self.order.push_back((hash, stamp));
        let is_hard = u64::from(mode == PurgeMode::Hard);
        match self.latest.find_mut(hash | 1, |entry| entry.is_of(hash)) {
            Some(entry) => {
                entry.stamp = entry.stamp.max(stamp);
                entry.hash_and_mode |= is_hard;
            }
            None => {
                let entry = LatestPurge {
                    hash_and_mode: hash & !1 | is_hard,
                    stamp,
                };
                self.latest
                    .insert_unique(hash | 1, entry, LatestPurge::hash);
            }
        }
    }

    fn add_pattern(&mut self, named: PurgedPattern, mode: PurgeMode, stamp: u64) {
        if self.patterns.len() == PATTERNS
            && let Some((_, _, forgotten)) = self.patterns.pop_front()
        {
            self.forget_before(forgotten);
        }
        self.patterns.push_back((named, mode, stamp));
    }

    /// Has a purge since `began` named the key or the address?
    pub(crate) fn names_target(&self, key: &KeyRef<'_>, address: &[u8], began: u64) -> bool {
        began < self.floor
            || self.of_key(key, began).is_some()
            || (!address.is_empty() && self.of_label(LabelKind::Address, address, began).is_some())
    }

    /// Has a purge since `began` named one of the labels?
    pub(crate) fn names_one_of(&self, labels: &Labels, began: u64) -> bool {
        labels
            .hashes()
            .any(|(kind, text, hash)| self.of_hashed_label(kind, text, hash, began).is_some())
    }

    /// Returns the verdict of later purges on a response with this stamp that was kept elsewhere.
    pub(crate) fn verdict(
        &self,
        key: &KeyRef<'_>,
        names: &LabelNames<'_>,
        stamp: u64,
    ) -> Option<PurgeMode> {
        if stamp < self.forgotten {
            return Some(PurgeMode::Hard);
        }
        let mut worst = self.of_key(key, stamp);
        for (kind, text) in names.each() {
            if worst == Some(PurgeMode::Hard) {
                break;
            }
            worst = worse(worst, self.of_label(kind, text, stamp));
        }
        worst
    }

    fn of_key(&self, key: &KeyRef<'_>, began: u64) -> Option<PurgeMode> {
        let by_key = |named: &PurgedPattern| matches!(named, PurgedPattern::Keys(prefix) if key.bytes().starts_with(prefix));
        worse(
            self.later(key.hash(), began),
            self.worst_pattern(began, by_key),
        )
    }

    fn of_label(&self, kind: LabelKind, text: &[u8], began: u64) -> Option<PurgeMode> {
        self.of_hashed_label(kind, text, label_hash(kind, text), began)
    }

    fn of_hashed_label(
        &self,
        kind: LabelKind,
        text: &[u8],
        hash: u64,
        began: u64,
    ) -> Option<PurgeMode> {
        let by_pattern = |named: &PurgedPattern| matches!(named, PurgedPattern::Labels(of, pattern) if *of == kind && pattern.matches(text));
        worse(
            self.later(hash, began),
            self.worst_pattern(began, by_pattern),
        )
    }

    fn later(&self, hash: u64, began: u64) -> Option<PurgeMode> {
        let entry = self.latest.find(hash | 1, |entry| entry.is_of(hash))?;
        (began < entry.stamp).then(|| entry.mode())
    }

    fn worst_pattern(
        &self,
        began: u64,
        names: impl Fn(&PurgedPattern) -> bool,
    ) -> Option<PurgeMode> {
        let mut worst = None;
        for (named, mode, stamp) in self.patterns.iter().rev() {
            if *stamp <= began || worst == Some(PurgeMode::Hard) {
                break;
            }
            if (worst.is_none() || *mode == PurgeMode::Hard) && names(named) {
                worst = Some(*mode);
            }
        }
        worst
    }
}

/// Returns the more severe effect of two purges.
fn worse(one: Option<PurgeMode>, other: Option<PurgeMode>) -> Option<PurgeMode> {
    match (one, other) {
        (Some(PurgeMode::Hard), _) | (_, Some(PurgeMode::Hard)) => Some(PurgeMode::Hard),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::Tags;
    use crate::testing::key;

    const HARD: PurgeMode = PurgeMode::Hard;
    const SOFT: PurgeMode = PurgeMode::Soft;

    #[test]
    fn only_what_was_purged_since_counts() {
        let mut recent = RecentPurges::new(100);
        let (a, b) = (key("a"), key("b"));
        recent.add(PurgeTarget::Key(a.as_ref()), HARD, 1);
        recent.add(PurgeTarget::Address(b"host/b"), HARD, 2);
        let pattern = Pattern::Host(b"other"[..].into());
        recent.add(PurgeTarget::Addresses(&pattern), HARD, 3);
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
            recent.add(PurgeTarget::Key(name.as_ref()), HARD, stamp);
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
            recent.add(PurgeTarget::Key(a.as_ref()), HARD, stamp);
        }
        assert!(recent.names_target(&a.as_ref(), b"", 8));
        assert!(!recent.names_target(&a.as_ref(), b"", 9));
    }

    #[test]
    fn what_was_kept_elsewhere_is_gone_or_stale_by_its_key_address_tags_and_patterns() {
        let a = key("a");
        let mut tags = Tags::default();
        tags.add(b"news");
        let names = LabelNames {
            address: b"host/a",
            tags: Some(&tags),
        };
        let (host, start) = (
            Pattern::Host(b"host"[..].into()),
            Pattern::Prefix(b"ne"[..].into()),
        );
        let targets = [
            PurgeTarget::Key(a.as_ref()),
            PurgeTarget::Prefix(b""),
            PurgeTarget::Address(b"host/a"),
            PurgeTarget::Addresses(&host),
            PurgeTarget::Tag(b"news"),
            PurgeTarget::Tags(&start),
        ];
        for target in targets {
            let mut recent = RecentPurges::new(100);
            let verdict = |recent: &RecentPurges, stamp| recent.verdict(&a.as_ref(), &names, stamp);
            recent.add(PurgeTarget::Tag(b"other"), HARD, 1);
            recent.add(target, HARD, 3);
            recent.add(target, SOFT, 7);
            assert_eq!(verdict(&recent, 2), Some(HARD), "{target:?}");
            assert!(verdict(&recent, 5).is_some(), "{target:?}");
            assert_eq!(verdict(&recent, 7), None, "{target:?}");
        }
        let mut recent = RecentPurges::new(100);
        recent.add(PurgeTarget::Tag(b"news"), SOFT, 7);
        assert_eq!(recent.verdict(&a.as_ref(), &names, 5), Some(SOFT));
    }

    #[test]
    fn what_was_kept_elsewhere_is_gone_where_purges_are_forgotten() {
        let a = key("a");
        let names = LabelNames::default();
        let mut recent = RecentPurges::new(1);
        recent.add(PurgeTarget::Tag(b"1"), SOFT, 1);
        recent.add(PurgeTarget::Tag(b"2"), SOFT, 2);
        assert_eq!(recent.verdict(&a.as_ref(), &names, 0), Some(HARD));
        assert_eq!(recent.verdict(&a.as_ref(), &names, 1), None);
    }
}
