//! What a zone remembers about keys beside what is stored: that their responses cannot be
//! shared, who may share them where visitors' cookies count, how often they were asked for, that
//! a write has removed them a moment ago, and why the last response was not stored.
//!
//! All are tables of fixed size where a key has one entry: a newcomer takes it over. Memory is
//! bounded whatever the clients ask, and what is forgotten costs a fetch, never a wrong answer.
//! The hash stands for the key: two keys with one hash could at worst be fetched without waiting
//! for each other.

use crate::reason::Reason;
use crate::time::Millis;

/// The tables. Each takes its memory with its first note: a server at rest stays small.
#[derive(Default)]
pub(super) struct Notes {
    entries: usize,
    refused: Box<[Option<Refused>]>,
    sharing: Box<[Option<SharingNote>]>,
    uses: Box<[Uses]>,
    invalidated: Box<[Option<Invalidated>]>,
    last: Box<[Option<(u64, Refusal)>]>,
}

/// That a response for a key was not stored. It decides nothing: it is told to whoever asks why.
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
struct Refused {
    hash: u64,
    why: Reason,
    until: Millis,
}

/// Who may share a page that was made with a visitor's cookies, as its last response said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All visitors for whom what it varies on is the same.
    Group,
    /// Nobody: a copy may be kept for each visitor.
    OneVisitor,
}

#[derive(Clone, Copy)]
struct SharingNote {
    hash: u64,
    sharing: Sharing,
    until: Millis,
}

#[derive(Clone, Copy)]
struct Invalidated {
    hash: u64,
    until: Millis,
}

#[derive(Clone, Copy, Default)]
struct Uses {
    hash: u64,
    last: Millis,
    count: u32,
}

impl Notes {
    /// Room for `entries` keys of each kind, at least one.
    pub(super) fn new(entries: usize) -> Notes {
        Notes {
            entries: entries.max(1),
            ..Notes::default()
        }
    }

    /// Memory for `entries` keys of each kind.
    pub(super) const fn size_bytes(entries: usize) -> usize {
        entries
            * (size_of::<Option<Refused>>()
                + size_of::<Option<SharingNote>>()
                + size_of::<Uses>()
                + size_of::<Option<Invalidated>>()
                + size_of::<Option<(u64, Refusal)>>())
    }

    pub(super) fn refused(&self, hash: u64, now: Millis) -> Option<Reason> {
        let note = (*self.refused.get(index_of(hash, self.refused.len()))?)?;
        (note.hash == hash && now < note.until).then_some(note.why)
    }

    pub(super) fn refuse(&mut self, hash: u64, why: Reason, until: Millis) {
        if self.refused.is_empty() {
            self.refused = vec![None; self.entries].into();
        }
        if let Some(note) = self.refused.get_mut(index_of(hash, self.refused.len())) {
            *note = Some(Refused { hash, why, until });
        }
    }

    pub(super) fn forget_refusal(&mut self, hash: u64) {
        if let Some(note) = self.refused.get_mut(index_of(hash, self.refused.len())) {
            note.take_if(|note| note.hash == hash);
        }
        if let Some(note) = self.last.get_mut(index_of(hash, self.last.len())) {
            note.take_if(|(of, _)| *of == hash);
        }
    }

    pub(super) fn note_refusal(&mut self, hash: u64, refusal: Refusal) {
        if self.last.is_empty() {
            self.last = vec![None; self.entries].into();
        }
        if let Some(note) = self.last.get_mut(index_of(hash, self.last.len())) {
            *note = Some((hash, refusal));
        }
    }

    pub(super) fn last_refusal(&self, hash: u64) -> Option<Refusal> {
        let (of, refusal) = (*self.last.get(index_of(hash, self.last.len()))?)?;
        (of == hash).then_some(refusal)
    }

    /// How often a key was asked for, those before `horizon` forgotten.
    pub(super) fn uses(&self, hash: u64, horizon: Millis) -> u32 {
        match self.uses.get(index_of(hash, self.uses.len())) {
            Some(uses) if uses.hash == hash && uses.last >= horizon => uses.count,
            _ => 0,
        }
    }

    pub(super) fn sharing(&self, hash: u64, now: Millis) -> Option<Sharing> {
        let note = (*self.sharing.get(index_of(hash, self.sharing.len()))?)?;
        (note.hash == hash && now < note.until).then_some(note.sharing)
    }

    /// `None`: it is forgotten.
    pub(super) fn note_sharing(&mut self, hash: u64, sharing: Option<Sharing>, until: Millis) {
        if self.sharing.is_empty() && sharing.is_some() {
            self.sharing = vec![None; self.entries].into();
        }
        let Some(note) = self.sharing.get_mut(index_of(hash, self.sharing.len())) else {
            return;
        };
        match sharing {
            Some(sharing) => {
                *note = Some(SharingNote {
                    hash,
                    sharing,
                    until,
                });
            }
            None => {
                note.take_if(|note| note.hash == hash);
            }
        }
    }

    /// True once for a key until the time is over.
    pub(super) fn may_invalidate(&mut self, hash: u64, now: Millis, until: Millis) -> bool {
        if self.invalidated.is_empty() {
            self.invalidated = vec![None; self.entries].into();
        }
        let at = index_of(hash, self.invalidated.len());
        let Some(note) = self.invalidated.get_mut(at) else {
            return true;
        };
        if note.is_some_and(|note| note.hash == hash && now < note.until) {
            return false;
        }
        *note = Some(Invalidated { hash, until });
        true
    }

    /// Counts a use; those before `horizon` are forgotten.
    pub(super) fn count_use(&mut self, hash: u64, horizon: Millis, now: Millis) -> u32 {
        if self.uses.is_empty() {
            self.uses = vec![Uses::default(); self.entries].into();
        }
        let at = index_of(hash, self.uses.len());
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

fn index_of(hash: u64, entries: usize) -> usize {
    // The shard was chosen by the upper half: the lower bits are still evenly spread.
    (hash as usize) % entries.max(1)
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
        notes.refuse(1, Reason::Private, Millis(5));
        assert_eq!(notes.refused(1, Millis(4)), Some(Reason::Private));
        assert_eq!(notes.count_use(1, Millis(0), Millis(1)), 1);
        assert_eq!((notes.refused.len(), notes.uses.len()), (8, 8));
        assert_eq!(notes.invalidated.len(), 0);
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
        assert_eq!(notes.sharing.len(), 0);
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
        // Another key of the same entry takes it over.
        assert_eq!([may(9, 19), may(9, 20), may(1, 20)], [true, false, true]);
    }
}
