//! Labels: the address and the tags by which stored responses are purged. Each is kept once in the
//! table of its zone, with the stamps of the purges that named it; a stored response shares those it
//! carries, at 8 bytes each.

use super::clock::PurgeVerdict;
use super::tags::Tags;
use super::{Pattern, PurgeMode};
use crate::key::hash_of;
use crate::size_class::allocated;
use crate::time::Millis;
use hashbrown::HashTable;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Locks that the table is divided into. A walk holds one at a time.
const SHARDS: usize = 64;

/// The memory of a label in the table: as for the index of responses, the most that growing takes.
const ENTRY_BYTES: usize = 5 * (size_of::<Arc<Label>>() + 1) / 2;

/// The kind of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelKind {
    Address,
    Tag,
}

/// The labels by which a response can be purged, beside its key.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelNames<'a> {
    /// Host in lower case, decoded path, and the arguments that count behind `?`. Variants,
    /// schemes, methods and classes of visitors have the same. Empty: has none.
    pub address: &'a [u8],
    /// The tags that the application has given it.
    pub tags: Option<&'a Tags>,
}

impl<'a> LabelNames<'a> {
    pub(crate) fn each(&self) -> impl Iterator<Item = (LabelKind, &'a [u8])> {
        let address = Some(self.address).filter(|address| !address.is_empty());
        let tags = self.tags.into_iter().flat_map(Tags::iter);
        let address = address.into_iter().map(|text| (LabelKind::Address, text));
        address.chain(tags.map(|text| (LabelKind::Tag, text)))
    }
}

#[derive(Debug)]
pub(crate) struct Label {
    kind: LabelKind,
    text: Box<[u8]>,
    /// Stored responses that carry it. This and the next change under the lock of its shard only.
    carriers: AtomicU32,
    /// Carriers that a purge of this label has removed, and that have not left yet.
    gone: AtomicU32,
    /// Carriers with an earlier stamp are gone.
    removed_before: AtomicU64,
    /// Carriers with an earlier stamp are stale, since `expired_at`.
    expired_before: AtomicU64,
    expired_at: AtomicU64,
}

/// The labels of a stored response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    address: Option<Arc<Label>>,
    /// One pointer in the response, whether or not there are any.
    tags: Option<Arc<Box<[Arc<Label>]>>>,
}

/// All labels of a zone.
pub(crate) struct LabelTable {
    shards: Box<[Mutex<HashTable<Arc<Label>>>]>,
}

/// There is no memory for another label.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// The zone's budget, for labels that come and go.
pub(crate) trait Budget {
    fn reserve(&self, bytes: u64) -> bool;
    fn release(&self, bytes: u64);
}

impl Label {
    fn new(kind: LabelKind, text: &[u8]) -> Label {
        Label {
            kind,
            text: text.into(),
            carriers: AtomicU32::new(1),
            gone: AtomicU32::new(0),
            removed_before: AtomicU64::new(0),
            expired_before: AtomicU64::new(0),
            expired_at: AtomicU64::new(0),
        }
    }

    fn is(&self, kind: LabelKind, text: &[u8]) -> bool {
        self.kind == kind && *self.text == *text
    }

    fn standing(&self, stamp: u64) -> PurgeVerdict {
        if stamp < self.removed_before.load(Acquire) {
            PurgeVerdict::Removed
        } else if stamp < self.expired_before.load(Acquire) {
            PurgeVerdict::ExpiredAt(Millis(self.expired_at.load(Acquire)))
        } else {
            PurgeVerdict::Good
        }
    }

    /// Notes a purge; how many stored responses carried the label. Under the lock of its shard.
    fn purge(&self, mode: PurgeMode, stamp: u64, now: Millis) -> usize {
        let carriers = self.carriers();
        match mode {
            PurgeMode::Hard => {
                self.removed_before.fetch_max(stamp, SeqCst);
                self.gone.store(self.carriers.load(SeqCst), SeqCst);
            }
            PurgeMode::Soft => {
                self.expired_at.store(now.0, SeqCst);
                self.expired_before.fetch_max(stamp, SeqCst);
            }
        }
        carriers
    }

    /// Returns how many stored responses carry the label that no purge of it has removed.
    fn carriers(&self) -> usize {
        let gone = self.gone.load(SeqCst);
        self.carriers.load(SeqCst).saturating_sub(gone) as usize
    }

    /// A response with this stamp carries it from now on. Under the lock of its shard.
    fn enter(&self, stamp: u64) {
        self.carriers.fetch_add(1, SeqCst);
        if stamp < self.removed_before.load(SeqCst) {
            // Purged meanwhile: it will not be stored.
            self.gone.fetch_add(1, SeqCst);
        }
    }

    /// A response with this stamp carries it no longer. Returns whether it was the last. Under the
    /// lock of its shard.
    fn leave(&self, stamp: u64) -> bool {
        if stamp < self.removed_before.load(SeqCst) {
            self.gone.fetch_sub(1, SeqCst);
        }
        self.carriers.fetch_sub(1, SeqCst) == 1
    }

    fn size_bytes(text: &[u8]) -> u64 {
        let counts = 2 * size_of::<usize>();
        (allocated(size_of::<Label>() + counts) + allocated(text.len()) + ENTRY_BYTES) as u64
    }
}

/// Returns the hash of a label's text and kind.
pub(crate) fn label_hash(kind: LabelKind, text: &[u8]) -> u64 {
    let kind: &[u8] = match kind {
        LabelKind::Address => b"a",
        LabelKind::Tag => b"t",
    };
    hash_of(&[kind, text])
}

fn rehash(label: &Arc<Label>) -> u64 {
    label_hash(label.kind, &label.text)
}

impl Labels {
    fn each(&self) -> impl Iterator<Item = &Arc<Label>> {
        let tags = self.tags.iter().flat_map(|tags| tags.iter());
        self.address.iter().chain(tags)
    }

    /// The labels with their hashes.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = (LabelKind, &[u8], u64)> {
        self.each().map(|label| {
            (
                label.kind,
                &*label.text,
                label_hash(label.kind, &label.text),
            )
        })
    }

    /// Returns the verdict of purges of its labels on a response with this stamp.
    pub(crate) fn standing(&self, stamp: u64) -> PurgeVerdict {
        let mut standing = PurgeVerdict::Good;
        for label in self.each() {
            standing = standing.worse(label.standing(stamp));
            if standing == PurgeVerdict::Removed {
                break;
            }
        }
        standing
    }

    /// The address, if it has one.
    pub(crate) fn address(&self) -> Option<&[u8]> {
        self.address.as_ref().map(|label| &*label.text)
    }

    /// The texts of its tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &[u8]> {
        let tags = self.tags.iter().flat_map(|tags| tags.iter());
        tags.map(|label| &*label.text)
    }

    /// Bytes that a response takes for them, the labels themselves not counted.
    pub(crate) fn size_bytes(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        self.tags.as_ref().map_or(0, |tags| {
            allocated(counts + size_of::<Box<[Arc<Label>]>>()) + allocated(size_of_val(&***tags))
        })
    }
}

impl Default for LabelTable {
    fn default() -> LabelTable {
        LabelTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl LabelTable {
    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<Label>>> {
        // `SHARDS` is a power of two and not zero.
        &self.shards[(hash >> 32) as usize & (SHARDS - 1)]
    }

    /// Counts another response, with this stamp, that carries these labels, each once. If there is no
    /// memory for them, none is counted.
    pub(crate) fn enter(
        &self,
        names: &LabelNames<'_>,
        stamp: u64,
        budget: &dyn Budget,
    ) -> Result<Labels, NoRoom> {
        let mut entered = Labels::default();
        let mut tags = Vec::new();
        let mut hashes = Vec::new();
        for (kind, text) in names.each() {
            let hash = label_hash(kind, text);
            if kind == LabelKind::Tag {
                // Applications name a tag twice; it counts once.
                hashes.push((hash, text));
                continue;
            }
            entered.address = Some(self.enter_one(kind, (text, hash), stamp, budget)?);
        }
        hashes.sort_unstable();
        hashes.dedup();
        tags.reserve_exact(hashes.len());
        for (hash, text) in hashes {
            match self.enter_one(LabelKind::Tag, (text, hash), stamp, budget) {
                Ok(label) => tags.push(label),
                Err(NoRoom) => {
                    entered.tags = Some(Arc::new(tags.into()));
                    self.leave(&entered, stamp, budget);
                    return Err(NoRoom);
                }
            }
        }
        if !tags.is_empty() {
            entered.tags = Some(Arc::new(tags.into()));
        }
        Ok(entered)
    }

    fn enter_one(
        &self,
        kind: LabelKind,
        (text, hash): (&[u8], u64),
        stamp: u64,
        budget: &dyn Budget,
    ) -> Result<Arc<Label>, NoRoom> {
        let shard = self.shard(hash);
        let known = |table: &HashTable<Arc<Label>>| {
            let label = table.find(hash, |label| label.is(kind, text))?;
            label.enter(stamp);
            Some(Arc::clone(label))
        };
        if let Some(label) = known(&shard.lock()) {
            return Ok(label);
        }
        // Without the lock: to make room, others leave the table.
        let bytes = Label::size_bytes(text);
        if !budget.reserve(bytes) {
            return Err(NoRoom);
        }
        let mut table = shard.lock();
        if let Some(label) = known(&table) {
            drop(table);
            budget.release(bytes);
            return Ok(label);
        }
        let label = Arc::new(Label::new(kind, text));
        table.insert_unique(hash, Arc::clone(&label), rehash);
        Ok(label)
    }

    /// A response with this stamp that carries these labels has left the zone.
    pub(crate) fn leave(&self, labels: &Labels, stamp: u64, budget: &dyn Budget) {
        for label in labels.each() {
            let hash = label_hash(label.kind, &label.text);
            let mut table = self.shard(hash).lock();
            if !label.leave(stamp) {
                continue;
            }
            if let Ok(entry) = table.find_entry(hash, |other| Arc::ptr_eq(other, label)) {
                entry.remove();
                drop(table);
                budget.release(Label::size_bytes(&label.text));
            }
        }
    }

    /// Purges one label; how many stored responses carry it. `None`: there is no such label.
    pub(crate) fn purge(
        &self,
        kind: LabelKind,
        text: &[u8],
        mode: PurgeMode,
        stamp: u64,
        now: Millis,
    ) -> Option<usize> {
        let hash = label_hash(kind, text);
        let table = self.shard(hash).lock();
        let label = table.find(hash, |label| label.is(kind, text))?;
        Some(label.purge(mode, stamp, now))
    }

    /// Purges the labels of a pattern; how many times stored responses carry one of them. `None`:
    /// there is no such label.
    pub(crate) fn purge_all(
        &self,
        kind: LabelKind,
        pattern: &Pattern,
        mode: PurgeMode,
        stamp: u64,
        now: Millis,
    ) -> Option<usize> {
        let mut is_any = false;
        let sum = self.sum(kind, pattern, |label| {
            is_any = true;
            label.purge(mode, stamp, now)
        });
        is_any.then_some(sum)
    }

    /// Returns how many stored responses carry a label.
    pub(crate) fn count(&self, kind: LabelKind, text: &[u8]) -> usize {
        let hash = label_hash(kind, text);
        let table = self.shard(hash).lock();
        let label = table.find(hash, |label| label.is(kind, text));
        label.map_or(0, |label| label.carriers())
    }

    /// Returns how many times stored responses carry a label of a pattern.
    pub(crate) fn count_all(&self, kind: LabelKind, pattern: &Pattern) -> usize {
        self.sum(kind, pattern, |label| label.carriers())
    }

    fn sum(
        &self,
        kind: LabelKind,
        pattern: &Pattern,
        mut of: impl FnMut(&Label) -> usize,
    ) -> usize {
        let mut sum = 0;
        for shard in &self.shards {
            let table = shard.lock();
            let named = |label: &&Arc<Label>| label.kind == kind && pattern.matches(&label.text);
            sum += table
                .iter()
                .filter(named)
                .map(|label| of(label))
                .sum::<usize>();
        }
        sum
    }

    /// Gives back the memory of tables beyond the labels that there are.
    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            shard.lock().shrink_to_fit(rehash);
        }
    }

    /// Returns how many labels there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct LargeBudget(AtomicU64);

    impl Budget for LargeBudget {
        fn reserve(&self, bytes: u64) -> bool {
            self.0.fetch_add(bytes, SeqCst) < 1_000_000
        }

        fn release(&self, bytes: u64) {
            self.0.fetch_sub(bytes, SeqCst);
        }
    }

    fn tags(texts: &[&str]) -> Tags {
        let mut tags = Tags::default();
        texts.iter().for_each(|text| tags.add(text.as_bytes()));
        tags
    }

    #[test]
    fn a_label_is_there_while_a_response_carries_it() {
        let table = LabelTable::default();
        let budget = LargeBudget(AtomicU64::new(0));
        let enter = |texts: &[&str]| {
            let tags = tags(texts);
            let names = LabelNames {
                address: b"example.org/",
                tags: Some(&tags),
            };
            table.enter(&names, 0, &budget).expect("there is room")
        };
        let one = enter(&["a", "b", "a"]);
        let two = enter(&["b"]);
        assert_eq!(table.len(), 3, "a tag named twice is one");
        assert_eq!(table.count(LabelKind::Tag, b"a"), 1);
        assert_eq!(table.count(LabelKind::Tag, b"b"), 2);
        assert_eq!(table.count(LabelKind::Address, b"example.org/"), 2);
        assert_eq!(
            table.count(LabelKind::Address, b"a"),
            0,
            "a tag is no address"
        );
        assert_eq!(one.address(), Some(&b"example.org/"[..]));
        assert_eq!(two.tags().collect::<Vec<_>>(), [b"b"]);

        table.leave(&one, 0, &budget);
        assert_eq!(table.count(LabelKind::Tag, b"a"), 0);
        assert_eq!(table.count(LabelKind::Tag, b"b"), 1);
        table.leave(&two, 0, &budget);
        assert_eq!((table.len(), budget.0.load(SeqCst)), (0, 0));
    }

    #[test]
    fn a_purge_is_worse_news_than_an_expiry() {
        let table = LabelTable::default();
        let budget = LargeBudget(AtomicU64::new(0));
        let tags = tags(&["soft", "hard", "other"]);
        let names = LabelNames {
            address: b"",
            tags: Some(&tags),
        };
        let labels = table.enter(&names, 0, &budget).expect("there is room");
        assert_eq!(labels.standing(5), PurgeVerdict::Good);
        table.purge(LabelKind::Tag, b"soft", PurgeMode::Soft, 6, Millis(77));
        assert_eq!(labels.standing(5), PurgeVerdict::ExpiredAt(Millis(77)));
        assert_eq!(
            labels.standing(6),
            PurgeVerdict::Good,
            "it began after the purge"
        );
        let pattern = Pattern::Prefix(b"ha"[..].into());
        assert_eq!(
            table.purge_all(LabelKind::Tag, &pattern, PurgeMode::Hard, 7, Millis(78)),
            Some(1)
        );
        assert_eq!(labels.standing(5), PurgeVerdict::Removed);
        assert_eq!(labels.standing(7), PurgeVerdict::Good);
    }

    #[test]
    fn a_response_without_room_for_its_labels_carries_none() {
        struct SmallBudget(AtomicU64);
        impl Budget for SmallBudget {
            fn reserve(&self, bytes: u64) -> bool {
                self.0
                    .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(bytes))
                    .is_ok()
            }
            fn release(&self, bytes: u64) {
                self.0.fetch_add(bytes, SeqCst);
            }
        }
        let table = LabelTable::default();
        let budget = SmallBudget(AtomicU64::new(300));
        let tags = tags(&["a", "b", "c", "d"]);
        let names = LabelNames {
            address: b"example.org/",
            tags: Some(&tags),
        };
        assert!(table.enter(&names, 0, &budget).is_err());
        assert_eq!((table.len(), budget.0.load(SeqCst)), (0, 300));
    }
}
