//! The cache's facts about a request and its actions, for stages, variables and logs.

use std::time::Duration;

use bytes::Bytes;
use cache_decision::Decision;
use http_cache::{
    DecidedBy, Forward, Millis, Outcome, Reason, ServedFrom, StoredHead, UpstreamCacheStatus,
};
use parking_lot::Mutex;

use crate::exchange::guest_visit::GuestVisit;
use crate::exchange::view::View;

#[derive(Default)]
pub struct CacheFacts {
    pub key: Vec<u8>,
    pub view: View,
    /// With `cache_guest_sessions`: the visitor's cookies are a guest's.
    pub guest: Option<Box<GuestVisit>>,
    notes: Mutex<CacheNotes>,
}

/// The cache's part in the answer so far. Stages add to it through a shared reference; only the thread that
/// serves the request takes the lock.
#[derive(Default)]
pub struct CacheNotes {
    /// Set where a cache zone was in play.
    pub outcome: Option<Outcome>,
    /// Age of the stored response in seconds.
    pub age: Option<u64>,
    pub last_modified: Option<Bytes>,
    /// The upstream's time that the answer from memory saved, in microseconds.
    pub spared_micros: u64,
    /// Why the cache had no part in the response, or could not keep it.
    pub reason: Option<Reason>,
    /// The visitor gets the read-your-writes cookie, for this time.
    pub marks_writer: Option<Duration>,
}

impl CacheFacts {
    /// Nothing yet; the buffer of the key is empty.
    #[inline(always)]
    pub fn new(key: Vec<u8>) -> CacheFacts {
        CacheFacts {
            key,
            view: View::Plain,
            guest: None,
            notes: Mutex::default(),
        }
    }

    #[inline]
    pub fn read<T>(&self, read: impl FnOnce(&CacheNotes) -> T) -> T {
        read(&self.notes.lock())
    }

    pub fn write<T>(&self, write: impl FnOnce(&mut CacheNotes) -> T) -> T {
        write(&mut self.notes.lock())
    }

    pub fn reason(&self) -> Option<Reason> {
        self.read(|notes| notes.reason)
    }

    /// Notes the decision about the request.
    pub fn note_decision(&self, decision: &Decision) {
        self.write(|notes| {
            if let Some(forward) = decision.forward {
                notes.outcome = Some(Outcome::forwarded(forward));
            }
            notes.reason = decision.reason.or(notes.lost_lease());
        });
    }

    /// Notes why the response is not stored. If the request went past the cache, that remains the reason:
    /// no response would have been looked up.
    pub fn note_not_stored(&self, why: Reason) {
        let is_past = |why: Reason| why.decided_by() == DecidedBy::Request;
        self.write(|notes| {
            if !notes.reason.is_some_and(is_past) {
                notes.reason = Some(why);
            }
        });
    }
}

impl CacheNotes {
    /// The stored response with this head answers.
    pub fn note_served(&mut self, stored: &StoredHead, served: ServedFrom, now: Millis) {
        let collapsed = self.outcome.as_ref().is_some_and(|it| it.collapsed);
        self.outcome = Some(Outcome {
            served,
            collapsed,
            fwd: (served == ServedFrom::Revalidated).then_some(Forward::Stale),
            ttl_secs: Some(stored.ttl_secs(now)),
            ..Outcome::default()
        });
        if served != ServedFrom::Revalidated {
            self.spared_micros = stored.made_in.micros();
        }
        // The reason that an internal redirect may have left is out of date.
        self.reason = self.lost_lease();
        self.age = Some(stored.current_age(now).as_secs());
    }

    #[inline]
    pub fn upstream_cache_status(&self) -> Option<UpstreamCacheStatus> {
        self.outcome.as_ref()?.upstream_cache_status()
    }

    /// That stored responses are used although a purge may be missing; `None`: it is known that none is.
    #[inline]
    fn lost_lease(&self) -> Option<Reason> {
        self.reason.filter(|why| *why == Reason::LostLease)
    }

    /// Its head lets the response be stored: facts of the response before it are dropped.
    pub fn note_storing(&mut self) {
        self.forget(DecidedBy::Response);
        // It was fetched for this request.
        self.reason.take_if(|why| *why == Reason::LostLease);
    }

    /// The response is stored.
    pub fn note_stored(&mut self) {
        self.forget(DecidedBy::Response);
        self.forget(DecidedBy::Body);
    }

    fn forget(&mut self, decided_by: DecidedBy) {
        self.reason.take_if(|why| why.decided_by() == decided_by);
    }
}
