//! Removing from a zone what a write has made out of date, once `purge_keys` has said what. (Purges
//! by order are in `content/purging`.)

use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget};

use super::purge_keys::{InvalidatedPage, Invalidation};

impl Invalidation<'_> {
    /// Removes it.
    pub fn carry_out(&self, now: Millis) {
        let purge = |target| self.zone.purge(target, PurgeMode::Hard, now);
        match &self.what {
            InvalidatedPage::Key(key) => {
                purge(PurgeTarget::Key(KeyRef::new(key)));
            }
            InvalidatedPage::Shared {
                address,
                pause,
                drops_not_found,
            } => {
                if *drops_not_found {
                    purge(PurgeTarget::NotFound);
                }
                let name = KeyRef::new(address);
                if self.zone.may_invalidate(&name, now, *pause) {
                    purge(PurgeTarget::Address(address));
                }
            }
        }
    }
}
