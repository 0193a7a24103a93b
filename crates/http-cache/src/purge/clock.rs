//! The purge clock of a zone, and the verdicts of purges on stored responses and on fetches.
//!
//! The order that keeps the promise: a purge first writes itself down ([`Purges::record`]), then removes
//! stored responses, or sets the stamps of labels; an insert first enters its labels, then looks at the
//! recorded purges while it holds the shard's lock. Whichever comes first, the other sees it.
//!
//! A stored response remembers up to which stamp its labels have been compared (`compared_until`). A
//! hit compares that with `good_since`, the last stamp at which a purge may have hit anything stored,
//! and looks at the labels only where it is older.

use super::labels::{LabelNames, Labels};
use super::recent::RecentPurges;
use super::{PurgeMode, PurgeTarget, Stamp};
use crate::key::KeyRef;
use crate::stored::StoredResponse;
use crate::time::Millis;
use parking_lot::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

/// A zone's purge clock and its memory of purges.
pub(crate) struct Purges {
    clock: AtomicU64,
    /// Stored responses with an earlier stamp are gone.
    removed_before: AtomicU64,
    /// Stored responses with an earlier stamp are stale, since `expired_at`.
    expired_before: AtomicU64,
    expired_at: AtomicU64,
    /// Stored responses with an earlier stamp are void, since `voided_at`.
    voided_before: AtomicU64,
    voided_at: AtomicU64,
    /// Stored answers that there is no such page, with an earlier stamp, are gone.
    not_found_before: AtomicU64,
    /// Nothing has happened to responses with this stamp or a later one.
    good_since: AtomicU64,
    /// The last purge of tags.
    last_of_tags: AtomicU64,
    recent: RwLock<RecentPurges>,
    /// Responses fetched under a guard with an earlier stamp are gone.
    guarded_since: AtomicU64,
}

/// The verdict of purges on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PurgeVerdict {
    Good,
    ExpiredAt(Millis),
    /// A purge of it may have been missed. It is not used, unless for a fetch that failed.
    VoidSince(Millis),
    Removed,
}

impl PurgeVerdict {
    /// Returns the more severe verdict of two purges.
    pub(crate) fn worse(self, other: PurgeVerdict) -> PurgeVerdict {
        match (self, other) {
            (PurgeVerdict::Removed, _) | (_, PurgeVerdict::Removed) => PurgeVerdict::Removed,
            (PurgeVerdict::VoidSince(at), _) | (_, PurgeVerdict::VoidSince(at)) => {
                PurgeVerdict::VoidSince(at)
            }
            (PurgeVerdict::ExpiredAt(one), PurgeVerdict::ExpiredAt(other)) => {
                PurgeVerdict::ExpiredAt(one.min(other))
            }
            (PurgeVerdict::Good, other) => other,
            (one, PurgeVerdict::Good) => one,
        }
    }
}

impl Purges {
    /// Remembers as many purges of keys and labels by themselves.
    pub(crate) fn new(capacity: usize) -> Purges {
        Purges {
            clock: AtomicU64::new(0),
            removed_before: AtomicU64::new(0),
            expired_before: AtomicU64::new(0),
            expired_at: AtomicU64::new(0),
            voided_before: AtomicU64::new(0),
            voided_at: AtomicU64::new(0),
            not_found_before: AtomicU64::new(0),
            good_since: AtomicU64::new(0),
            last_of_tags: AtomicU64::new(0),
            recent: RwLock::new(RecentPurges::new(capacity)),
            guarded_since: AtomicU64::new(0),
        }
    }

    /// The clock, for a fetch that begins now.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp(self.clock.load(SeqCst))
    }

    /// Writes a purge down. Fetches that have begun are outdated from now on, as far as it hits.
    pub(crate) fn record(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> Stamp {
        let mut recent = self.recent.write();
        // Advanced last: a thread that reads the new stamp finds the purge written down.
        let stamp = self.clock.load(SeqCst) + 1;
        recent.add(target, mode, stamp);
        match target {
            PurgeTarget::Everything => {
                match mode {
                    PurgeMode::Hard => self.removed_before.store(stamp, SeqCst),
                    PurgeMode::Soft => {
                        self.expired_at.store(now.0, SeqCst);
                        self.expired_before.store(stamp, SeqCst);
                    }
                }
                self.good_since.store(stamp, SeqCst);
            }
            PurgeTarget::NotFound => {
                self.not_found_before.store(stamp, SeqCst);
                self.good_since.store(stamp, SeqCst);
            }
            PurgeTarget::Tag(_) | PurgeTarget::Tags(_) => self.last_of_tags.store(stamp, SeqCst),
            PurgeTarget::Key(_)
            | PurgeTarget::Prefix(_)
            | PurgeTarget::Address(_)
            | PurgeTarget::Addresses(_) => {}
        }
        self.clock.store(stamp, SeqCst);
        Stamp(stamp)
    }

    /// All that is stored is void, and fetches that have begun are outdated.
    pub(crate) fn void(&self, now: Millis) -> Stamp {
        let mut recent = self.recent.write();
        let stamp = self.clock.load(SeqCst) + 1;
        recent.add(PurgeTarget::Everything, PurgeMode::Hard, stamp);
        self.voided_at.store(now.0, SeqCst);
        self.voided_before.store(stamp, SeqCst);
        self.good_since.store(stamp, SeqCst);
        self.clock.store(stamp, SeqCst);
        Stamp(stamp)
    }

    /// The clock goes on from here: all its readings of earlier starts are before this one.
    pub(crate) fn begin_at(&self, first: Stamp) {
        let _recent = self.recent.write();
        self.clock.fetch_max(first.0, SeqCst);
    }

    /// Restores a purge that an earlier start has written down. Responses stored already do not hear of
    /// it: they were fetched since.
    pub(crate) fn recall(&self, target: PurgeTarget<'_>, mode: PurgeMode, stamp: Stamp) {
        self.recall_in(&mut self.recent.write(), target, mode, stamp);
    }

    /// Like `recall`, with the next reading of the clock.
    pub(crate) fn recall_now(&self, target: PurgeTarget<'_>, mode: PurgeMode) -> Stamp {
        let mut recent = self.recent.write();
        let stamp = Stamp(self.clock.load(SeqCst) + 1);
        self.recall_in(&mut recent, target, mode, stamp);
        stamp
    }

    fn recall_in(
        &self,
        recent: &mut RecentPurges,
        target: PurgeTarget<'_>,
        mode: PurgeMode,
        stamp: Stamp,
    ) {
        recent.add(target, mode, stamp.0);
        match (target, mode) {
            (PurgeTarget::NotFound, _) => self.not_found_before.fetch_max(stamp.0, SeqCst),
            (PurgeTarget::Everything, PurgeMode::Soft) => {
                self.expired_before.fetch_max(stamp.0, SeqCst)
            }
            _ => 0,
        };
        self.clock.fetch_max(stamp.0, SeqCst);
    }

    /// Forgets the purges up to this stamp: older responses are not to be used.
    pub(crate) fn forget_before(&self, stamp: Stamp) {
        self.recent.write().forget_before(stamp.0);
    }

    /// Returns the effect of purges on a response with this stamp that was kept elsewhere; `None` if
    /// there is none.
    pub(crate) fn since(
        &self,
        key: &KeyRef<'_>,
        names: &LabelNames<'_>,
        (status, stamp): (u16, Stamp),
    ) -> Option<PurgeMode> {
        if !self.has_purged_since(stamp) {
            return None;
        }
        let is_before = |purge: &AtomicU64| stamp.0 < purge.load(SeqCst);
        if is_not_found(status) && is_before(&self.not_found_before) {
            return Some(PurgeMode::Hard);
        }
        let verdict = self.recent.read().verdict(key, names, stamp.0);
        match is_before(&self.expired_before) {
            true => Some(verdict.unwrap_or(PurgeMode::Soft)),
            false => verdict,
        }
    }

    /// Call after the stamps of labels of stored responses were set: responses that were compared
    /// with labels before are compared again. Takes a new stamp, not the purge's own: a later purge
    /// that was quicker to set its labels may have been compared already.
    pub(crate) fn labels_changed(&self) {
        let _recent = self.recent.write();
        let stamp = self.clock.load(SeqCst) + 1;
        self.good_since.store(stamp, SeqCst);
        self.clock.store(stamp, SeqCst);
    }

    /// Responses with a guard are compared at each lookup from now on.
    pub(crate) fn begin_guarding(&self) {
        if self.good_since.load(Acquire) == 0 {
            self.labels_changed();
        }
    }

    /// Guards do not hear of everything, until [`Purges::trust_guards`].
    pub(crate) fn doubt_guards(&self) {
        self.guarded_since.store(u64::MAX, SeqCst);
    }

    /// Guards count again, for fetches from now on.
    pub(crate) fn trust_guards(&self) {
        if !self.trusts_guards() {
            self.labels_changed();
            self.guarded_since.store(self.stamp().0, SeqCst);
        }
    }

    pub(crate) fn trusts_guards(&self) -> bool {
        self.guarded_since.load(SeqCst) != u64::MAX
    }

    /// Are guards of fetches of this stamp in doubt?
    pub(crate) fn doubts_guard(&self, stamp: Stamp) -> bool {
        stamp.0 < self.guarded_since.load(SeqCst)
    }

    /// Has a purge hit the key or the address since a fetch began?
    pub(crate) fn is_outdated(&self, key: &KeyRef<'_>, address: &[u8], began: Stamp) -> bool {
        self.has_purged_since(began) && self.recent.read().names_target(key, address, began.0)
    }

    /// Has a purge hit one of the labels since a fetch began?
    pub(crate) fn are_outdated(&self, labels: &Labels, began: Stamp) -> bool {
        self.has_purged_since(began) && self.recent.read().names_one_of(labels, began.0)
    }

    /// Has any tag been purged since a fetch began?
    pub(crate) fn has_purged_tags_since(&self, began: Stamp) -> bool {
        began.0 < self.last_of_tags.load(SeqCst)
    }

    fn has_purged_since(&self, began: Stamp) -> bool {
        began.0 < self.clock.load(SeqCst)
    }

    /// Returns the verdict of purges of many responses, and of its labels, on a stored response.
    #[inline]
    pub(crate) fn standing(&self, response: &StoredResponse) -> PurgeVerdict {
        match self.is_compared(response) {
            true => PurgeVerdict::Good,
            false => self.compare(response),
        }
    }

    /// Has nothing happened since it was compared?
    #[inline]
    pub(crate) fn is_compared(&self, response: &StoredResponse) -> bool {
        response.compared_until() >= self.good_since.load(Acquire)
    }

    pub(crate) fn compare(&self, response: &StoredResponse) -> PurgeVerdict {
        // Read first: a purge that comes meanwhile is compared the next time.
        let until = self.good_since.load(Acquire);
        let stamp = response.stamp.0;
        let is_before = |purge: &AtomicU64| stamp < purge.load(Acquire);
        let is_removed = is_before(&self.removed_before)
            || (is_not_found(response.head.status) && is_before(&self.not_found_before));
        if is_removed {
            return PurgeVerdict::Removed;
        }
        let at = |since: &AtomicU64| Millis(since.load(Acquire));
        let of_zone = match (
            is_before(&self.voided_before),
            is_before(&self.expired_before),
        ) {
            (true, _) => PurgeVerdict::VoidSince(at(&self.voided_at)),
            (false, true) => PurgeVerdict::ExpiredAt(at(&self.expired_at)),
            (false, false) => PurgeVerdict::Good,
        };
        let standing = of_zone.worse(response.labels.standing(stamp));
        if standing == PurgeVerdict::Good {
            response.note_compared(until);
        }
        standing
    }
}

/// Does the status say that there is no such page?
pub(crate) fn is_not_found(status: u16) -> bool {
    matches!(status, 404 | 410)
}
