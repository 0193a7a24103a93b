//! Responses that come back from where a zone keeps them beside memory ([`crate::tier`]): whether purges
//! allow it, and storing them again.

use super::insertion::{Arrival, NotInserted};
use super::zone::Zone;
use crate::guard::Guard;
use crate::key::KeyRef;
use crate::purge::OwnedPurgeTarget;
use crate::purge::{LabelNames, PurgeMode, Stamp};
use crate::reason::Reason;
use crate::stored::{StoredHead, StoredResponse};
use crate::tier::Tier;
use crate::time::Millis;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The verdict of the purges on a response that was kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptVerdict {
    /// Show it as its times say.
    Good,
    /// A soft purge has hit it: it is stale.
    Stale,
    /// It is not to be shown.
    Purged,
}

/// A full zone stores one of this number of responses that come back to it. To store each, and to let another go
/// for it, costs more than to send it, and most would leave before they are asked for again; what is asked for often
/// has its turn soon.
const ONE_IN: u64 = 8;

/// A zone counts as full when only this part of its memory is free: eviction makes no more room than is needed.
const FULL_BUT_FOR: u64 = 16;

/// The outcome for a response that came back.
#[derive(Debug)]
pub enum Promotion {
    /// It is stored in memory, fresh or stale.
    Stored(Arc<StoredResponse>),
    /// Memory has a newer one by now.
    Newer,
    /// A purge has hit it.
    Purged,
    /// There is no room for it.
    NoRoom,
}

impl Zone {
    /// Returns the tier in which the zone keeps responses beside memory.
    #[inline]
    #[must_use]
    pub fn tier(&self) -> Option<&Arc<dyn Tier>> {
        self.tier.get()
    }

    /// Purges are written down there from now on, and responses come from there. Once only, before the
    /// zone is used.
    pub fn set_tier(&self, tier: Arc<dyn Tier>) {
        for cell in &self.shards {
            cell.shard.write().note_wanted();
        }
        let _ = self.tier.set(tier);
    }

    /// Tells the tier what is asked for again and again. Call it every second or so.
    pub fn tell_wanted(&self, now: Millis) {
        let Some(tier) = self.tier() else {
            return;
        };
        for cell in &self.shards {
            let wanted = cell.shard.read().take_wanted();
            for (key, response) in wanted {
                tier.note_wanted(&key, &response, now);
            }
        }
    }

    /// Takes back what was written down before this start of the server: purges in their order, and the
    /// stamp up to which they may be incomplete. The clock goes on with the readings of this start.
    pub fn recall(
        &self,
        start: u16,
        forgotten: Stamp,
        purges: impl Iterator<Item = (OwnedPurgeTarget, PurgeMode, Stamp)>,
    ) {
        self.purges.forget_before(forgotten);
        for (target, mode, stamp) in purges {
            self.purges.recall(target.as_target(), mode, stamp);
        }
        self.purges.begin_at(Stamp::first_of_start(start));
    }

    /// Takes back a purge that was noted before the clock went on with the readings of this start, and that
    /// what is kept elsewhere has not heard of.
    pub fn recall_one(&self, target: &OwnedPurgeTarget, mode: PurgeMode) -> Stamp {
        self.purges.recall_now(target.as_target(), mode)
    }

    /// Whether purges allow a response to be shown that was kept elsewhere.
    #[must_use]
    pub fn judge_kept(
        &self,
        key: &KeyRef<'_>,
        names: &LabelNames<'_>,
        (status, stamp): (u16, Stamp),
    ) -> KeptVerdict {
        match self.purges.since(key, names, (status, stamp)) {
            None => KeptVerdict::Good,
            Some(PurgeMode::Soft) => KeptVerdict::Stale,
            Some(PurgeMode::Hard) => KeptVerdict::Purged,
        }
    }

    /// Is a response with a body of this length to be stored in memory that has come back? Each is while there is room.
    #[must_use]
    pub fn has_place_for(&self, body_bytes: usize) -> bool {
        let used = self.used_bytes().saturating_add(body_bytes as u64);
        used < self.config.memory_budget_bytes - self.config.memory_budget_bytes / FULL_BUT_FOR
            || self
                .counters
                .came_back
                .fetch_add(1, Relaxed)
                .is_multiple_of(ONE_IN)
    }

    /// Promotes a response that is shown while its guard allows it, until `until` at most.
    pub fn promote_guarded(
        &self,
        key: &KeyRef<'_>,
        mut response: StoredResponse,
        (names, guard, until): (&LabelNames<'_>, Box<dyn Guard>, Millis),
        now: Millis,
    ) -> Promotion {
        response.head.expires_at = until;
        response.set_guard(Some(Arc::new(guard)));
        self.promote(key, response, names, now)
    }

    /// Stores a response again that was kept elsewhere, if no purge has hit it since its fetch began and
    /// nothing newer is stored.
    pub fn promote(
        &self,
        key: &KeyRef<'_>,
        mut response: StoredResponse,
        names: &LabelNames<'_>,
        now: Millis,
    ) -> Promotion {
        let facts = (response.head.status, response.stamp);
        let verdict = self.judge_kept(key, names, facts);
        match verdict {
            KeptVerdict::Good => {}
            KeptVerdict::Stale => response.head.expire_since_stored(),
            KeptVerdict::Purged => return Promotion::Purged,
        }
        let arrival = Arrival::Returned { names, verdict };
        match self.insert_arrived(key, response, names, arrival, now) {
            Ok(stored) => {
                self.counters.promoted.fetch_add(1, Relaxed);
                Promotion::Stored(stored)
            }
            Err(NotInserted::Newer) => Promotion::Newer,
            Err(NotInserted::Because(Reason::Purged)) => Promotion::Purged,
            Err(NotInserted::Because(_)) => Promotion::NoRoom,
        }
    }
}

impl StoredHead {
    /// A soft purge has hit it, and it is not known when: stale since it was stored.
    pub fn expire_since_stored(&mut self) {
        self.expires_at = self.expires_at.min(self.stored_at);
        self.is_purged = true;
    }
}
