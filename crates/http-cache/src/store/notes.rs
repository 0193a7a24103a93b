//! Notes of a zone about keys, beside the stored responses: that their responses cannot be
//! shared, who may share them where visitors' cookies count, how often they were asked for, that
//! a write has removed them a moment ago, and why the last response was not stored.
//!
//! All are tables of fixed size: memory is bounded whatever the clients ask, and what is forgotten costs a
//! fetch, never a wrong answer. The hash stands for the key: two keys with one hash could at worst
//! be fetched without waiting for each other.

use std::ops::Range;

use crate::reason::Reason;
use crate::time::Millis;

/// The tables.
#[derive(Default)]
pub(super) struct Notes {
    entries: usize,
    refused: Table<RefusedNote>,
    sharing: Table<SharingNote>,
    uses: Table<Uses>,
    /// Until when a key is not invalidated again.
    invalidated: Table<Millis>,
    last: Table<Refusal>,
}

/// Why a response for a key was not stored. Shown to the operator; decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub why: Reason,
    /// The status of the response.
    pub status: u16,
    /// When.
    pub at: Millis,
}

#[derive(Clone, Copy)]
struct RefusedNote {
    why: Reason,
    until: Millis,
}

/// Who may share a page that was made with a visitor's cookies, according to its last response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All visitors for whom what it varies on is the same.
    Group,
    /// Only the visitor for whom it was made: a copy may be kept for each visitor.
    OneVisitor,
}

#[derive(Clone, Copy)]
struct SharingNote {
    sharing: Sharing,
    until: Millis,
}

#[derive(Clone, Copy)]
struct Uses {
    last: Millis,
    count: u32,
}

impl Notes {
    /// Room for about `entries` keys of each kind.
    pub(super) fn new(entries: usize) -> Notes {
        Notes {
            entries: entries.next_multiple_of(BUCKET).max(BUCKET),
            ..Notes::default()
        }
    }

    /// Memory for `entries` keys of each kind.
    pub(super) const fn size_bytes(entries: usize) -> usize {
        entries
            * (size_of::<Entry<RefusedNote>>()
                + size_of::<Entry<SharingNote>>()
                + size_of::<Entry<Uses>>()
                + size_of::<Entry<Millis>>()
                + size_of::<Entry<Refusal>>())
    }

    pub(super) fn refused(&self, hash: u64, now: Millis) -> Option<Reason> {
        let note = self.refused.get(hash)?;
        (now < note.until).then_some(note.why)
    }

    pub(super) fn refuse(&mut self, hash: u64, why: Reason, until: Millis) {
        self.refused
            .put(self.entries, hash, RefusedNote { why, until });
    }

    pub(super) fn forget_refusal(&mut self, hash: u64) {
        self.refused.forget(hash);
        self.last.forget(hash);
    }

    pub(super) fn note_refusal(&mut self, hash: u64, refusal: Refusal) {
        self.last.put(self.entries, hash, refusal);
    }

    pub(super) fn last_refusal(&self, hash: u64) -> Option<Refusal> {
        self.last.get(hash)
    }

    /// How often a key was asked for, those before `horizon` forgotten.
    pub(super) fn uses(&self, hash: u64, horizon: Millis) -> u32 {
        let uses = self.uses.get(hash).filter(|uses| uses.last >= horizon);
        uses.map_or(0, |uses| uses.count)
    }

    /// Counts a use; those before `horizon` are forgotten.
    pub(super) fn count_use(&mut self, hash: u64, horizon: Millis, now: Millis) -> u32 {
        let count = self.uses(hash, horizon).saturating_add(1);
        self.uses.put(self.entries, hash, Uses { last: now, count });
        count
    }

    pub(super) fn sharing(&self, hash: u64, now: Millis) -> Option<Sharing> {
        let note = self.sharing.get(hash)?;
        (now < note.until).then_some(note.sharing)
    }

    /// `None`: it is forgotten.
    pub(super) fn note_sharing(&mut self, hash: u64, sharing: Option<Sharing>, until: Millis) {
        match sharing {
            Some(sharing) => self
                .sharing
                .put(self.entries, hash, SharingNote { sharing, until }),
            None => self.sharing.forget(hash),
        }
    }

    /// True once for a key until the time is over.
    pub(super) fn may_invalidate(&mut self, hash: u64, now: Millis, until: Millis) -> bool {
        if self.invalidated.get(hash).is_some_and(|until| now < until) {
            return false;
        }
        self.invalidated.put(self.entries, hash, until);
        true
    }
}

/// Entries that are looked at together, in one cache line or two.
const BUCKET: usize = 4;

/// The note on a key, with the key's hash.
type Entry<N> = Option<(u64, N)>;

/// Notes about some keys. A key's entry is in one bucket; where that is full, a newcomer replaces
/// what was noted longest ago. Takes its memory with the first note: a server at rest stays small.
struct Table<N> {
    entries: Box<[Entry<N>]>,
}

impl<N> Default for Table<N> {
    fn default() -> Table<N> {
        Table {
            entries: Box::default(),
        }
    }
}

impl<N: Copy> Table<N> {
    fn get(&self, hash: u64) -> Option<N> {
        let mut bucket = self.entries.get(self.bucket(hash)?)?.iter().flatten();
        bucket.find_map(|(of, note)| (*of == hash).then_some(*note))
    }

    /// Notes instead of what was noted of the key. A table without memory gets `entries` entries.
    fn put(&mut self, entries: usize, hash: u64, note: N) {
        if self.entries.is_empty() {
            self.entries = vec![None; entries].into();
        }
        let bucket = self.bucket(hash);
        let Some(bucket) = bucket.and_then(|range| self.entries.get_mut(range)) else {
            return;
        };
        // The newest comes first.
        let same = bucket.iter().position(|entry| is_of(entry, hash));
        let free = || bucket.iter().position(Option::is_none);
        let last = same.or_else(free).unwrap_or(BUCKET - 1);
        if let Some(moved) = bucket.get_mut(..=last) {
            moved.rotate_right(1);
        }
        if let Some(first) = bucket.first_mut() {
            *first = Some((hash, note));
        }
    }

    fn forget(&mut self, hash: u64) {
        let bucket = self.bucket(hash);
        let bucket = bucket.and_then(|range| self.entries.get_mut(range));
        for entry in bucket.into_iter().flatten() {
            if is_of(entry, hash) {
                *entry = None;
            }
        }
    }

    /// Returns the positions of the entries of the key's bucket; none in a table without memory.
    fn bucket(&self, hash: u64) -> Option<Range<usize>> {
        // The shard was chosen by the upper half: the lower bits are still evenly spread.
        let bucket = (hash as usize).checked_rem(self.entries.len() / BUCKET)?;
        Some(bucket * BUCKET..(bucket + 1) * BUCKET)
    }
}

fn is_of<N>(entry: &Entry<N>, hash: u64) -> bool {
    entry.as_ref().is_some_and(|(of, _)| *of == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_memory_with_its_first_note() {
        let mut notes = Notes::new(8);
        assert_eq!(notes.refused(1, Millis(0)), None);
        notes.forget_refusal(1);
        let sizes = |notes: &Notes| (notes.refused.entries.len(), notes.uses.entries.len());
        assert_eq!(sizes(&notes), (0, 0));
        notes.refuse(1, Reason::Private, Millis(5));
        assert_eq!(notes.refused(1, Millis(4)), Some(Reason::Private));
        assert_eq!(notes.count_use(1, Millis(0), Millis(1)), 1);
        assert_eq!(sizes(&notes), (8, 8));
        assert_eq!(notes.invalidated.entries.len(), 0);
    }

    #[test]
    fn the_last_refusal_is_told_until_a_response_is_stored() {
        let mut notes = Notes::new(8);
        let refusal = Refusal {
            why: Reason::SetCookie,
            status: 200,
            at: Millis(7),
        };
        assert_eq!(notes.last_refusal(1), None);
        notes.note_refusal(1, refusal);
        assert_eq!(
            [notes.last_refusal(1), notes.last_refusal(9)],
            [Some(refusal), None]
        );
        notes.forget_refusal(1);
        assert_eq!(notes.last_refusal(1), None);
    }

    #[test]
    fn who_may_share_is_remembered_until_it_is_forgotten() {
        let mut notes = Notes::new(8);
        notes.note_sharing(1, None, Millis(5));
        assert_eq!(notes.sharing.entries.len(), 0);
        notes.note_sharing(1, Some(Sharing::Group), Millis(5));
        assert_eq!(notes.sharing(1, Millis(4)), Some(Sharing::Group));
        assert_eq!(notes.sharing(1, Millis(5)), None);
        assert_eq!(notes.sharing(9, Millis(4)), None);
        notes.note_sharing(9, None, Millis(5));
        assert_eq!(notes.sharing(1, Millis(4)), Some(Sharing::Group));
        notes.note_sharing(1, Some(Sharing::OneVisitor), Millis(9));
        assert_eq!(notes.sharing(1, Millis(5)), Some(Sharing::OneVisitor));
        notes.note_sharing(1, None, Millis(9));
        assert_eq!(notes.sharing(1, Millis(5)), None);
    }

    #[test]
    fn a_key_is_invalidated_once_in_a_while() {
        let mut notes = Notes::new(8);
        let mut may = |hash, now| notes.may_invalidate(hash, Millis(now), Millis(now + 10));
        assert_eq!(
            [may(1, 0), may(1, 9), may(1, 10), may(1, 19)],
            [true, false, true, false]
        );
    }

    #[test]
    fn the_oldest_note_of_a_full_bucket_leaves() {
        let mut notes = Notes::new(8);
        let note = |notes: &mut Notes, hash| notes.refuse(hash, Reason::Private, Millis(9));
        // All of one bucket of two.
        for hash in [1, 3, 5, 7] {
            note(&mut notes, hash);
        }
        note(&mut notes, 1);
        note(&mut notes, 2);
        let kept = |notes: &Notes| {
            let is_kept = |hash: &u64| notes.refused(*hash, Millis(0)).is_some();
            (1..12).filter(is_kept).collect::<Vec<u64>>()
        };
        assert_eq!(kept(&notes), [1, 2, 3, 5, 7]);
        note(&mut notes, 9);
        assert_eq!(kept(&notes), [1, 2, 5, 7, 9]);
        notes.forget_refusal(9);
        note(&mut notes, 11);
        note(&mut notes, 3);
        assert_eq!(kept(&notes), [1, 2, 3, 7, 11]);
    }
}
