//! Something beside the purge clock that decides whether a stored response may be shown: the state of the data that it
//! was made from (`cache_learn on`).
//!
//! A response with a guard is never noted as compared with the purges, so that each lookup of it takes the
//! way through [`Zone::compare`](crate::Zone), where the guard is asked. A response without one pays nothing.

use crate::purge::Stamp;
use crate::time::Millis;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// Whether a fetch's response may be shown to a request that comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardVerdict {
    /// Nothing that it was made of has changed.
    Good,
    /// It is not known at the moment. It may stand in for a fetch that failed.
    Unknown,
    /// Something has changed, or may have.
    Outdated,
}

/// An observer of a page's inputs, while its fetch is under way and once its response is stored.
pub trait Guard: fmt::Debug + Send + Sync {
    /// The fetch is about to be sent to the upstream: earlier changes are in its response.
    fn begin(&self);

    /// Called for each lookup, with a lock of the zone held: it must not call the zone.
    fn verdict(&self, now: Millis) -> GuardVerdict;

    /// Returns the stamp from which it hears of changes, if that is later than its fetch: the response was kept
    /// elsewhere.
    fn holds_since(&self) -> Option<Stamp> {
        None
    }

    /// Waits for the inputs of an outdated response: returns `true` once another lookup may find it good, `false` if
    /// none will.
    fn decided(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(ready(false))
    }
}

/// A guard in one pointer, whether or not there is one.
pub(crate) type StoredGuard = Option<Arc<Box<dyn Guard>>>;

/// The guard of a fetch, which its leader may set.
#[derive(Default)]
pub(crate) struct FlightGuard(OnceLock<Arc<Box<dyn Guard>>>);

impl FlightGuard {
    pub(crate) fn set(&self, guard: Box<dyn Guard>) {
        let _ = self.0.set(Arc::new(guard));
    }

    pub(crate) fn begin(&self) {
        if let Some(guard) = self.0.get() {
            guard.begin();
        }
    }

    /// May a request that comes now be answered by the fetch?
    pub(crate) fn is_good(&self, now: Millis) -> bool {
        let guard = self.0.get();
        guard.is_none_or(|guard| guard.verdict(now) == GuardVerdict::Good)
    }

    pub(crate) fn stored(&self) -> StoredGuard {
        self.0.get().cloned()
    }
}
