//! A zone beside that of another process, which answers for the same site for a while: the other one hears of each
//! purge. Other machines hear of each purge as well.

use super::zone::Zone;
use crate::purge::{PurgeMode, PurgeTarget};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Tells another process what is purged.
pub trait PurgeListener: Send + Sync {
    /// It was purged here. Called from the thread that purges, after that.
    fn purged(&self, zone: &str, target: PurgeTarget<'_>, mode: PurgeMode);
}

/// The link to another process, and to other machines.
#[derive(Default)]
pub(super) struct OtherZone {
    is_there: AtomicBool,
    listener: RwLock<Option<Arc<dyn PurgeListener>>>,
    /// Tells other machines.
    publisher: RwLock<Option<Arc<dyn PurgeListener>>>,
}

impl OtherZone {
    pub(super) fn purged(&self, zone: &str, target: PurgeTarget<'_>, mode: PurgeMode) {
        let publisher = self.publisher.read().clone();
        if let Some(publisher) = publisher {
            publisher.purged(zone, target, mode);
        }
        if !self.is_there.load(Acquire) {
            return;
        }
        let listener = self.listener.read().clone();
        if let Some(listener) = listener {
            listener.purged(zone, target, mode);
        }
    }
}

impl Zone {
    /// From now on `listener` hears of each purge.
    pub fn begin_beside(&self, listener: Arc<dyn PurgeListener>) {
        // The PHP of the other process writes too, and its writes are not reported here.
        self.purges.doubt_guards();
        *self.other.listener.write() = Some(listener);
        self.other.is_there.store(true, Release);
    }

    /// From now on `publisher` hears of each purge, for other machines.
    pub fn set_publisher(&self, publisher: Option<Arc<dyn PurgeListener>>) {
        *self.other.publisher.write() = publisher;
    }

    /// Is there another process that answers for the same site?
    #[must_use]
    pub fn is_beside_another(&self) -> bool {
        self.other.is_there.load(Acquire)
    }

    /// Are its purges published for other machines, and theirs applied here?
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.other.publisher.read().is_some()
    }

    /// There is no other process any more. What it has started may still write, until [`Zone::trust_guards`].
    pub fn end_beside(&self) {
        self.other.is_there.store(false, Release);
        *self.other.listener.write() = None;
    }

    /// Nothing that belonged to the other process writes any more: guards hear of everything that changes what is fetched
    /// from now on.
    pub fn trust_guards(&self) {
        self.purges.trust_guards();
    }

    /// May guards be relied on?
    #[must_use]
    pub fn trusts_guards(&self) -> bool {
        !self.is_beside_another() && self.purges.trusts_guards()
    }
}
