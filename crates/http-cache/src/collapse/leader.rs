//! The leader of a fetch: from the duty to fetch, through a response that arrives, to its end.
//!
//! A flight is ended exactly once, by a method that consumes its leader or by the leader being
//! dropped, and every ending wakes all followers and readers.

use super::follower::Reader;
use crate::body::Body;
use crate::fields::Field;
use crate::flight::{Flight, FlightState, Growth, Urgency, debug_by_key};
use crate::guard::Guard;
use crate::purge::{LabelNames, Stamp, Tags};
use crate::reason::Reason;
use crate::storability::Storable;
use crate::store::Zone;
use crate::stored::{ResponseHead, StoredHead, StoredResponse};
use crate::time::{Millis, RoughSpan};
use crate::vary::VarySpec;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How long it is remembered that a response outgrew the bound for storing.
const TOO_LARGE_MEMORY: Duration = Duration::from_secs(10);

/// The duty to fetch. Dropped without an ending, it releases all followers as failed.
pub struct Leader {
    duty: Duty,
    stale: Option<Arc<StoredResponse>>,
    group: Option<u64>,
    made_in: RoughSpan,
}

/// The progress of a fetch, reported to the requests that wait for it. Time in line for the upstream
/// counts neither as the leader's slowness (`lock_age`) nor against the time that its followers wait
/// ([`last_progress`](super::Follower::last_progress)): another fetch would stand in the same line,
/// further back.
#[derive(Clone)]
pub struct Progress {
    flight: Arc<Flight>,
}

/// A request that waits for a fetch. The fetch learns when all of them were dropped
/// ([`Progress::deserted`]).
pub struct WaitingRequest {
    flight: Arc<Flight>,
}

impl WaitingRequest {
    pub(super) fn of(flight: &Arc<Flight>) -> WaitingRequest {
        flight.join();
        WaitingRequest {
            flight: Arc::clone(flight),
        }
    }

    /// The request is answered otherwise, and the fetch goes on for those who come next.
    pub fn keep_fetching(self) {
        self.flight.join();
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.flight.leave();
    }
}

/// A response that is arriving. Dropped without an ending, its readers see it truncated.
pub struct ArrivingResponse {
    duty: Duty,
    head: Arc<StoredHead>,
    share_only: Option<Reason>,
    group: Option<u64>,
    tags: Tags,
    late_fields: Vec<Field>,
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// Kept; go on.
    Kept,
    /// The response has outgrown the bound for storing: call [`ArrivingResponse::room`] before the next
    /// push.
    TooLarge,
    /// The response will not be stored and has no readers left: stop fetching.
    Unwanted,
}

/// The duty to end a flight, exactly once.
struct Duty {
    zone: Arc<Zone>,
    flight: Arc<Flight>,
    ended: bool,
}

impl Duty {
    /// Takes the flight from the table, then sets its result, and wakes all tasks that wait.
    fn end(&mut self, ending: impl FnOnce(&mut FlightState)) {
        self.ended = true;
        self.zone.flights.remove(&self.flight);
        let bytes = self.flight.end(ending);
        self.zone.release(bytes);
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.ended {
            self.end(FlightState::fail);
        }
    }
}

impl Leader {
    pub(super) fn new(
        zone: Arc<Zone>,
        flight: Arc<Flight>,
        stale: Option<Arc<StoredResponse>>,
        group: Option<u64>,
    ) -> Leader {
        Leader {
            duty: Duty {
                zone,
                flight,
                ended: false,
            },
            stale,
            group,
            made_in: RoughSpan::default(),
        }
    }

    /// Notes how long the upstream took until the head was there, ahead of
    /// [`Leader::publish_head`].
    pub fn note_made_in(&mut self, took: Duration) {
        self.made_in = took.into();
    }

    /// Sets the guard that decides who may be shown this fetch's response. Once only, before it begins,
    /// which [`Progress::under_way`] has to report.
    pub fn set_guard(&self, guard: Box<dyn Guard>) {
        self.duty.flight.set_guard(guard);
    }

    /// The purge clock when this fetch began.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.duty.flight.stamp
    }

    /// The stale stored response, whose validators the fetch may use.
    #[must_use]
    pub fn stale(&self) -> Option<&Arc<StoredResponse>> {
        self.stale.as_ref()
    }

    /// Returns the fields that responses for the key vary on, if known.
    #[must_use]
    pub fn varies_on(&self) -> Option<Arc<VarySpec>> {
        let expected = self.duty.flight.expected.as_ref()?;
        Some(Arc::clone(expected.spec()))
    }

    /// Returns the handle by which the fetch reports its progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            flight: Arc::clone(&self.duty.flight),
        }
    }

    /// The request that leads waits for the fetch until this is dropped. Make it before the fetch
    /// begins.
    #[must_use]
    pub fn waiting_request(&self) -> WaitingRequest {
        WaitingRequest::of(&self.duty.flight)
    }

    /// The response may be shared: followers get its head now and its bytes as they come.
    #[must_use]
    pub fn publish_head(
        self,
        head: &ResponseHead<'_>,
        storable: &Storable,
        now: Millis,
    ) -> ArrivingResponse {
        let head = Arc::new(StoredHead {
            made_in: self.made_in,
            ..StoredHead::new(head, storable, now)
        });
        self.duty.flight.publish(Arc::clone(&head), now);
        let Leader { duty, group, .. } = self;
        ArrivingResponse {
            duty,
            head,
            share_only: storable.share_only,
            group,
            tags: Tags::default(),
            late_fields: Vec::new(),
        }
    }

    /// The upstream answered 304 to the validators of [`Leader::stale`]: freshens it. Decide with
    /// the stored status and the fields of [`StoredResponse::fields_after`]. `tags`: those that the
    /// answer names; none: it keeps those that it had.
    ///
    /// # Errors
    /// Nothing to freshen, purged meanwhile, or no room. Followers are released as failed.
    pub fn freshen(
        mut self,
        fields: &[Field],
        tags: Option<&Tags>,
        storable: &Storable,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, Reason> {
        let Some(stale) = self.stale.take() else {
            return Err(Reason::Status);
        };
        let mut head = stale.head.freshened(fields, storable, now);
        let lacks_tags = match tags {
            Some(tags) => tags.checked().is_err(),
            None => stale.head.lacks_tags,
        };
        if lacks_tags {
            head.shorten_for_missing_tags(now);
        }
        let mut response = StoredResponse::new(head, stale.body.clone(), self.duty.flight.stamp);
        response.set_group(stale.group());
        response.set_guard(self.duty.flight.guard.stored());
        response.encoded_forms = Arc::clone(&stale.encoded_forms);
        let mut kept = Tags::default();
        let tags = tags.unwrap_or_else(|| {
            stale.tags().for_each(|tag| kept.add(tag));
            &kept
        });
        // The two share the body, but both are counted until the old one has left.
        drop(stale);
        let Duty { zone, flight, .. } = &self.duty;
        let names = LabelNames {
            address: &flight.address,
            tags: Some(tags),
        };
        let stored = zone.insert_named(&flight.key.as_ref(), response, &names, now);
        if matches!(stored, Err(Reason::Purged | Reason::Superseded)) {
            // Requests that have come since join the next fetch.
            self.duty.end(FlightState::leave_out);
        }
        let stored = stored?;
        let completed = Arc::clone(&stored);
        self.duty.end(|state| state.complete(completed));
        Ok(stored)
    }

    /// A response was stored meanwhile that is the answer, without this fetch.
    pub fn found(mut self, stored: &Arc<StoredResponse>) {
        let completed = Arc::clone(stored);
        self.duty.end(|state| state.complete(completed));
    }

    /// The response may not be shared: releases all followers together and remembers it (for no time:
    /// leaves the memory as it is).
    pub fn not_shareable(mut self, why: Reason, remember_for: Duration, now: Millis) {
        let key = self.duty.flight.key.as_ref();
        // Remembered before the flight leaves the table: the next request sees one or the other.
        if !remember_for.is_zero() {
            self.duty
                .zone
                .remember_not_shareable(&key, why, now.plus(remember_for));
        }
        self.duty.end(|state| state.refuse(why));
    }

    /// The fetch failed: releases all followers together.
    pub fn failed(mut self) {
        self.duty.end(FlightState::fail);
    }

    /// The fetch failed with `status`: followers are answered likewise.
    pub fn failed_as(mut self, status: u16) {
        self.duty.end(|state| state.fail_as(status));
    }

    /// The fetch was not sent, since no request waited for it: requests that have come meanwhile
    /// join again.
    pub fn left_out(mut self) {
        self.duty.end(FlightState::leave_out);
    }
}

impl Progress {
    /// The fetch waits for its turn with the upstream.
    pub fn in_line(&self) {
        self.flight.note_progress(None);
    }

    /// Returns the urgency of the most urgent follower so far, if there was one.
    #[must_use]
    pub fn urgency(&self) -> Option<Urgency> {
        self.flight.urgency()
    }

    /// Returns once a follower waits for something more urgent than `known`. Wakes one caller at a time.
    pub async fn awaited_beyond(&self, known: Option<Urgency>) -> Urgency {
        self.flight.awaited_beyond(known).await
    }

    /// Have all requests left that waited for the fetch?
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.flight.is_deserted()
    }

    /// Returns once all requests have left that waited for the fetch. Wakes one caller at a time.
    pub async fn deserted(&self) {
        self.flight.deserted().await;
    }

    /// The fetch goes to the upstream.
    pub fn under_way(&self, now: Millis) {
        self.flight.guard.begin();
        self.flight.note_progress(Some(now));
    }
}

impl ArrivingResponse {
    /// A reader from the beginning: the leader's own client reads like the others. Make it before the
    /// first push.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::from_beginning(&self.duty.flight, &self.head)
    }

    /// The head as published.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.head
    }

    /// Shares the next bytes of the body. They count against the zone's budget while they wait.
    pub fn push(&mut self, bytes: Bytes, now: Millis) -> PushResult {
        if bytes.is_empty() {
            return PushResult::Kept;
        }
        let zone = &self.duty.zone;
        let counted = bytes.len() as u64;
        let max = zone.config().max_response_bytes;
        let reserved = zone.reserve(counted);
        let grown = self.duty.flight.push(bytes, reserved, max, now);
        match grown {
            Growth::Kept => PushResult::Kept,
            Growth::Outgrew { why, release } => {
                zone.release(release);
                zone.flights.remove(&self.duty.flight);
                let key = self.duty.flight.key.as_ref();
                zone.remember_not_shareable(&key, why, now.plus(TOO_LARGE_MEMORY));
                self.share_only = Some(why);
                PushResult::TooLarge
            }
            Growth::Passing { release } => {
                zone.release(release);
                PushResult::TooLarge
            }
            Growth::Unwanted { release } => {
                zone.release(release);
                PushResult::Unwanted
            }
        }
    }

    /// Waits until a response too large to store may grow again: its readers have caught up.
    /// Returns at once for others.
    pub async fn room(&self) {
        self.duty.flight.room().await;
    }

    /// Ends the wait of [`ArrivingResponse::room`] for a response too large to store: the readers that hold
    /// up the others are cut off and see a truncated response.
    pub fn break_off_slowest(&self) {
        self.duty.flight.break_off_slowest();
    }

    /// Sets a field that the stored response has in the place of others of this name. Readers of the
    /// arriving response have its head already.
    pub fn set_field(&mut self, name: &'static str, value: Bytes) {
        let name = Bytes::from_static(name.as_bytes());
        self.late_fields.push((name, value));
    }

    /// Returns the tags by which the response can be purged. More may be added until it is complete.
    pub fn tags(&mut self) -> &mut Tags {
        &mut self.tags
    }

    /// Readers get the whole response, but it will not be stored.
    pub fn share_only(&mut self, why: Reason) {
        self.share_only = Some(why);
    }

    /// Returns why the response would not be stored if its body ended here.
    #[must_use]
    pub fn refusal(&self) -> Option<Reason> {
        self.refusal_of(self.duty.flight.received().0)
    }

    fn refusal_of(&self, len: u64) -> Option<Reason> {
        let declared = self.head.declared_length;
        match declared.is_some_and(|declared| declared != len) {
            true => Some(Reason::Truncated),
            false => self.share_only,
        }
    }

    /// The body is complete: stores it. Readers are served to the end in any case, except when the
    /// body is not as long as declared.
    ///
    /// # Errors
    /// Returns why it was not stored: too large, no room, purged, superseded, minimum uses, the reason given to
    /// [`ArrivingResponse::share_only`]; truncated when the length is not the declared one.
    pub fn complete(mut self, now: Millis) -> Result<Arc<StoredResponse>, Reason> {
        let (len, chunks) = self.duty.flight.received();
        let stored = match self.refusal_of(len) {
            Some(Reason::Truncated) => {
                self.duty.end(FlightState::fail);
                return Err(Reason::Truncated);
            }
            Some(why) => Err(why),
            None => self.store(&chunks, now),
        };
        match &stored {
            Ok(response) => {
                let completed = Arc::clone(response);
                self.duty.end(|state| state.complete(completed));
            }
            Err(why) => self.duty.end(|state| state.finish(*why)),
        }
        stored
    }

    fn store(&self, chunks: &[Bytes], now: Millis) -> Result<Arc<StoredResponse>, Reason> {
        let Duty { zone, flight, .. } = &self.duty;
        // The packed copy is counted by the store from now on, the received bytes no more.
        zone.release(flight.give_back());
        let mut head = StoredHead::clone(&self.head);
        if self.tags.checked().is_err() {
            head.shorten_for_missing_tags(now);
        }
        if !self.late_fields.is_empty() {
            head.fields = head.fields.with(&self.late_fields);
        }
        let body = Body::pack(chunks);
        let mut response = StoredResponse::new(head, body, flight.stamp);
        response.set_group(self.group);
        response.set_guard(flight.guard.stored());
        let names = LabelNames {
            address: &flight.address,
            tags: Some(&self.tags),
        };
        zone.insert_named(&flight.key.as_ref(), response, &names, now)
    }

    /// The body broke off: readers see it truncated, nothing is stored.
    pub fn fail(mut self) {
        self.duty.end(FlightState::fail);
    }
}

debug_by_key!(Leader => duty.flight, ArrivingResponse => duty.flight);
