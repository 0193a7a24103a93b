//! The cache's facts about a request and its actions, for stages, variables and logs.

use std::time::Duration;

use bytes::Bytes;
use cache_decision::Decision;
use http_cache::{DecidedBy, Outcome, Reason};

use crate::exchange::guest_visit::GuestVisit;
use crate::exchange::view::View;

#[derive(Clone, Default)]
pub struct CacheFacts {
    /// Set where a cache zone was in play.
    pub outcome: Option<Outcome>,
    pub key: Vec<u8>,
    pub view: View,
    /// Age of the stored response in seconds.
    pub age: Option<u64>,
    pub last_modified: Option<Bytes>,
    /// The upstream's time that the answer from memory saved, in microseconds.
    pub spared_micros: u64,
    /// Why the cache had no part in the response, or could not keep it.
    pub reason: Option<Reason>,
    /// The visitor gets the read-your-writes cookie, for this time.
    pub marks_writer: Option<Duration>,
    /// With `cache_guest_sessions`: the visitor's cookies are a guest's.
    pub guest: Option<Box<GuestVisit>>,
}

impl CacheFacts {
    /// Nothing yet; the buffer of the key is empty.
    #[inline(always)]
    pub fn new(key: Vec<u8>) -> CacheFacts {
        CacheFacts {
            outcome: None,
            key,
            view: View::Plain,
            age: None,
            last_modified: None,
            spared_micros: 0,
            reason: None,
            marks_writer: None,
            guest: None,
        }
    }

    /// Notes the decision about the request.
    pub fn note_decision(&mut self, decision: &Decision) {
        if let Some(forward) = decision.forward {
            self.outcome = Some(Outcome::forwarded(forward));
        }
        self.reason = decision.reason.or(self.lost_lease());
    }

    /// That stored responses are used although a purge may be missing; `None`: it is known that none is.
    #[inline]
    pub fn lost_lease(&self) -> Option<Reason> {
        self.reason.filter(|why| *why == Reason::LostLease)
    }

    /// Notes why the response is not stored. If the request went past the cache, that remains the reason:
    /// no response would have been looked up.
    pub fn note_not_stored(&mut self, why: Reason) {
        let is_past = |why: Reason| why.decided_by() == DecidedBy::Request;
        if !self.reason.is_some_and(is_past) {
            self.reason = Some(why);
        }
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
