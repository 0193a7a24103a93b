//! Removing from a zone what a write has made out of date, once `purge_keys` has said what. (Purges
//! by order are in `content/purging`.)

use http_cache::{KeyRef, Millis, Pattern, PurgeMode, PurgeTarget, Zone};

use super::purge_keys::{Invalidation, PurgedKeys};

impl PurgedKeys {
    /// Removes what is stored under them; how many responses.
    pub fn purge(&self, zone: &Zone, now: Millis) -> usize {
        let purge = |target| zone.purge(target, PurgeMode::Hard, now).responses;
        match self {
            PurgedKeys::One(key) => purge(PurgeTarget::Key(KeyRef::new(key))),
            PurgedKeys::Prefix(start) => purge(PurgeTarget::Prefix(start)),
            PurgedKeys::Address(address) => purge(PurgeTarget::Address(address)),
            PurgedKeys::AddressPrefix(start) => {
                let pattern = Pattern::Prefix(start.clone().into());
                purge(PurgeTarget::Addresses(&pattern))
            }
            PurgedKeys::Everything => purge(PurgeTarget::Everything),
        }
    }
}

impl Invalidation<'_> {
    /// Removes it.
    pub fn carry_out(&self, now: Millis) {
        if self.drops_not_found {
            let target = PurgeTarget::NotFound;
            self.zone.purge(target, PurgeMode::Hard, now);
        }
        let name = self.what.shown();
        let name = KeyRef::new(&name);
        let may = self
            .pause
            .is_none_or(|pause| self.zone.may_invalidate(&name, now, pause));
        if may {
            self.what.purge(self.zone, now);
        }
    }
}
