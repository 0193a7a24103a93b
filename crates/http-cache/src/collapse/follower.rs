//! Followers, which wait for a fetch, and readers of a response that is arriving.

use super::leader::WaitingRequest;
use crate::fields::RequestFields;
use crate::flight::{Flight, FlightEnd, FlightView, NextChunk, Urgency, debug_by_key};
use crate::purge::clock::PurgeVerdict;
use crate::reason::Reason;
use crate::store::Zone;
use crate::stored::{StoredHead, StoredResponse};
use crate::time::Millis;
use crate::vary::VaryKey;
use bytes::Bytes;
use std::sync::Arc;

/// A request that waits for a leader.
pub struct Follower {
    flight: Arc<Flight>,
    /// Counts it, until it is dropped.
    _waits: WaitingRequest,
    urgency: Urgency,
    /// Tags were purged after the fetch began and before the request came: the zone knows which.
    minds_tags: Option<Arc<Zone>>,
}

/// The result that a follower waited for.
#[derive(Debug)]
pub enum FollowerOutcome {
    /// The head is there, the body arrives.
    Streaming(Reader),
    /// All of it is there.
    Complete(Arc<StoredResponse>),
    /// The response cannot be shared: [`detached`](crate::Zone::detached).
    NotShareable(Reason),
    /// The response is for other request fields: join again.
    VaryMismatch,
    /// The leader failed: serve stale, or answer with this status as it does.
    Failed(u16),
    /// The leader's fetch was cancelled before it was sent, since no request waited for it: join
    /// again.
    LeftOut,
}

/// Reads an arriving response from its beginning, at its own pace.
pub struct Reader {
    flight: Arc<Flight>,
    head: Arc<StoredHead>,
    /// This reader's number in the flight's list of readers.
    number: usize,
}

/// The response ended before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedResponse;

impl Follower {
    /// `minds_tags`: the request came later than the fetch began, and its response may have tags.
    pub(super) fn of(
        zone: &Arc<Zone>,
        flight: &Arc<Flight>,
        urgency: Urgency,
        minds_tags: bool,
    ) -> Follower {
        let minds_tags = minds_tags && zone.purges.has_purged_tags_since(flight.stamp);
        Follower {
            flight: Arc::clone(flight),
            _waits: WaitingRequest::of(flight),
            urgency,
            minds_tags: minds_tags.then(|| Arc::clone(zone)),
        }
    }

    /// Returns when something last happened at the upstream; none while the leader waits in line
    /// for it.
    #[must_use]
    pub fn last_progress(&self) -> Option<Millis> {
        self.flight.last_progress()
    }

    /// Waits until the leader has something. Bound it with a timer; dropping it leaves the group.
    pub async fn wait<F: RequestFields + ?Sized>(&mut self, fields: &F) -> FollowerOutcome {
        self.flight.note_follower(self.urgency);
        loop {
            // Made before looking: it hears of each change from here on (`notify_waiters`).
            let changed = self.flight.changed.notified();
            if let Some(followed) = self.look(&|vary| vary.matches(fields)) {
                return followed;
            }
            changed.await;
        }
    }

    /// Waits until the fetch is over, with any result. Bound it with a timer.
    pub async fn ended(&self) -> FlightEnd {
        self.flight.note_follower(self.urgency);
        loop {
            let changed = self.flight.changed.notified();
            if let Some(end) = self.flight.ending() {
                return end;
            }
            changed.await;
        }
    }

    fn look(&self, matches: &dyn Fn(&VaryKey) -> bool) -> Option<FollowerOutcome> {
        let is_outdated = |response: &StoredResponse| {
            let zone = self.minds_tags.as_ref();
            zone.is_some_and(|zone| zone.purges.standing(response) != PurgeVerdict::Good)
        };
        let waits_for_end = self.minds_tags.is_some() || self.flight.guard.holds_followers();
        let seen = match waits_for_end {
            false => self.flight.look(matches),
            true => self.flight.look_at_end(matches, &is_outdated),
        };
        Some(match seen {
            FlightView::Nothing => return None,
            FlightView::Streaming(head, number) => FollowerOutcome::Streaming(Reader {
                flight: Arc::clone(&self.flight),
                head,
                number,
            }),
            FlightView::Complete(response) => FollowerOutcome::Complete(response),
            FlightView::NotShareable(why) => FollowerOutcome::NotShareable(why),
            FlightView::VaryMismatch => FollowerOutcome::VaryMismatch,
            FlightView::Failed(status) => FollowerOutcome::Failed(status),
            FlightView::LeftOut => FollowerOutcome::LeftOut,
        })
    }
}

impl Reader {
    pub(super) fn from_beginning(flight: &Arc<Flight>, head: &Arc<StoredHead>) -> Reader {
        Reader {
            number: flight.add_reader(),
            flight: Arc::clone(flight),
            head: Arc::clone(head),
        }
    }

    /// The head.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.head
    }

    /// The next bytes of the body; none when all of it was read. May be dropped while waiting.
    ///
    /// # Errors
    /// The response broke off: close the connection, so that the client notices too.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, TruncatedResponse> {
        loop {
            let changed = self.flight.changed.notified();
            match self.flight.next(self.number) {
                NextChunk::Chunk(bytes) => return Ok(Some(bytes)),
                NextChunk::End => return Ok(None),
                NextChunk::Broken => return Err(TruncatedResponse),
                NextChunk::Wait => changed.await,
            }
        }
    }

    /// Returns why the response is not stored; known at its end, and none if it is.
    #[must_use]
    pub fn why_not_stored(&self) -> Option<Reason> {
        self.flight.why_not_stored()
    }

    /// The next bytes if they are there already.
    pub fn try_next_chunk(&mut self) -> Option<Bytes> {
        match self.flight.next(self.number) {
            NextChunk::Chunk(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The stored response, once it is complete and stored.
    #[must_use]
    pub fn stored(&self) -> Option<Arc<StoredResponse>> {
        self.flight.stored()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.flight.remove_reader(self.number);
    }
}

debug_by_key!(Follower => flight, Reader => flight);
