//! Removes from a zone the pages that a write has made out of date, as `purge_keys` finds them.
//! (Purges by order are in `content/purging`.)

use std::time::Duration;

use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget};

use super::purge_keys::{InvalidatedPage, Invalidation};
use crate::content::purging::again;

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

    /// Removes it once more after a time, however often that is done.
    pub fn repeat_after(self, time: Duration) {
        let (zone, what) = (self.zone.clone(), self.what);
        again::spawn(time, async move {
            let now = Millis(clock::now());
            let target = match &what {
                InvalidatedPage::Key(key) => PurgeTarget::Key(KeyRef::new(key)),
                InvalidatedPage::Shared { address, .. } => PurgeTarget::Address(address),
            };
            zone.purge(target, PurgeMode::Hard, now);
        });
    }
}
