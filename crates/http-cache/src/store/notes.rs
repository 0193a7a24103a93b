//! What a zone remembers about keys it has nothing stored for: that their responses cannot be
//! shared, and how often they were asked for.
//!
//! Both are tables of fixed size where a key has one place: a newcomer takes it over. Memory is
//! bounded whatever the clients ask, and what is forgotten costs a fetch, never a wrong answer.
//! The hash stands for the key: two keys with one hash could at worst be fetched without waiting
//! for each other.

use crate::storability::NoStore;
use crate::time::Millis;

/// Both tables. Each takes its memory with its first note: a server at rest stays small.
#[derive(Default)]
pub(super) struct Notes {
    places: usize,
    refused: Box<[Option<Refused>]>,
    uses: Box<[Uses]>,
}

#[derive(Clone, Copy)]
struct Refused {
    hash: u64,
    why: NoStore,
    until: Millis,
}

#[derive(Clone, Copy, Default)]
struct Uses {
    hash: u64,
    last: Millis,
    count: u32,
}

impl Notes {
    /// Room for `places` keys of each kind, at least one.
    pub(super) fn new(places: usize) -> Notes {
        Notes {
            places: places.max(1),
            ..Notes::default()
        }
    }

    /// Memory for `places` keys of each kind.
    pub(super) const fn size_bytes(places: usize) -> usize {
        places * (size_of::<Option<Refused>>() + size_of::<Uses>())
    }

    pub(super) fn refused(&self, hash: u64, now: Millis) -> Option<NoStore> {
        let note = (*self.refused.get(place(hash, self.refused.len()))?)?;
        (note.hash == hash && now < note.until).then_some(note.why)
    }

    pub(super) fn refuse(&mut self, hash: u64, why: NoStore, until: Millis) {
        if self.refused.is_empty() {
            self.refused = vec![None; self.places].into();
        }
        if let Some(note) = self.refused.get_mut(place(hash, self.refused.len())) {
            *note = Some(Refused { hash, why, until });
        }
    }

    pub(super) fn forget_refusal(&mut self, hash: u64) {
        if let Some(note) = self.refused.get_mut(place(hash, self.refused.len())) {
            note.take_if(|note| note.hash == hash);
        }
    }

    /// Counts a use; those before `horizon` are forgotten.
    pub(super) fn count_use(&mut self, hash: u64, horizon: Millis, now: Millis) -> u32 {
        if self.uses.is_empty() {
            self.uses = vec![Uses::default(); self.places].into();
        }
        let at = place(hash, self.uses.len());
        let Some(uses) = self.uses.get_mut(at) else {
            return 1;
        };
        if uses.hash != hash || uses.last < horizon {
            *uses = Uses {
                hash,
                last: now,
                count: 0,
            };
        }
        uses.last = now;
        uses.count = uses.count.saturating_add(1);
        uses.count
    }
}

fn place(hash: u64, places: usize) -> usize {
    // The shard was chosen by the upper half: the lower bits are still evenly spread.
    (hash as usize) % places.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_memory_with_its_first_note() {
        let mut notes = Notes::new(8);
        assert_eq!(notes.refused(1, Millis(0)), None);
        notes.forget_refusal(1);
        assert_eq!((notes.refused.len(), notes.uses.len()), (0, 0));
        notes.refuse(1, NoStore::Private, Millis(5));
        assert_eq!(notes.refused(1, Millis(4)), Some(NoStore::Private));
        assert_eq!(notes.count_use(1, Millis(0), Millis(1)), 1);
        assert_eq!((notes.refused.len(), notes.uses.len()), (8, 8));
    }
}
