//! What a zone remembers about keys it has nothing stored for: that their responses cannot be
//! shared, and how often they were asked for.
//!
//! Both are tables of fixed size where a key has one place: a newcomer takes it over. Memory is
//! bounded whatever the clients ask, and what is forgotten costs a fetch, never a wrong answer.
//! The hash stands for the key: two keys with one hash could at worst be fetched without waiting
//! for each other.

use crate::storability::NoStore;
use crate::time::Millis;

#[derive(Default)]
pub(super) struct Notes {
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
            refused: vec![None; places.max(1)].into(),
            uses: vec![Uses::default(); places.max(1)].into(),
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
