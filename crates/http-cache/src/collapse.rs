//! Collapsed requests: one leader fetches, followers read along. See `LIFECYCLE.md` beside this
//! folder's `flight.rs` for the states.
//!
//! [`Zone::collapse`] decides the part a request plays while it holds the lock of the key's shard of
//! the table of flights. A leader's response is stored first and its flight taken from the table
//! after that. A request that finds no flight therefore sees whether something was stored since its
//! lookup, and looks again if so: between the two no second fetch can slip in. A flight is ended exactly once, by a method that consumes its leader
//! or by the leader being dropped, and every ending wakes everybody.

mod flight;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::fields::{Field, RequestFields};
use crate::key::KeyRef;
use crate::purge::Stamp;
use crate::storability::{NoStore, Storable};
use crate::store::{Found, NotFresh, NotFreshKind, Worth, Zone};
use crate::stored::{ResponseHead, StoredHead, StoredResponse};
use crate::time::Millis;
use crate::vary::{VaryKey, VarySpec};
use bytes::Bytes;
pub(crate) use flight::Flights;
use flight::{Accepts, Flight, Growth, Next, Seen, State};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long it is remembered that a response outgrew what may be stored.
const TOO_LARGE_MEMORY: Duration = Duration::from_secs(10);

/// A request that wants to join the fetch for its key.
#[derive(Clone, Copy)]
pub struct JoinRequest<'a> {
    /// The cache key.
    pub key: KeyRef<'a>,
    /// The request's fields, for `Vary`.
    pub fields: &'a dyn RequestFields,
    /// Now.
    pub now: Millis,
    /// A leader that has made no progress for this long does not keep others from leading. Standing
    /// in line for the upstream ([`Progress`]) does not count.
    pub lock_age: Option<Duration>,
    /// The private group the response counts against.
    pub group: Option<u64>,
}

/// The part a request plays.
#[derive(Debug)]
pub enum Join {
    /// Fetch, for everybody.
    Lead(Leader),
    /// Wait for the one who fetches.
    Follow(Follower),
    /// A fresh response was stored since the lookup.
    Fresh(Arc<StoredResponse>),
    /// Fetch for yourself: [`Zone::detached`].
    Alone(Alone),
}

/// Why a request goes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The last response for the key could not be shared.
    NotShareable(NoStore),
    /// Too many fetches under way to keep another in the table.
    TooManyFlights,
}

/// The duty to fetch. Dropped without an ending, it releases all followers as failed.
pub struct Leader {
    duty: Duty,
    stale: Option<Arc<StoredResponse>>,
    group: Option<u64>,
}

/// Where a fetch stands, told to those who wait for it. Time that it spends in line for the upstream
/// counts neither as the leader's slowness ([`JoinRequest::lock_age`]) nor against the patience of
/// its followers ([`Follower::last_progress`]): another fetch would stand in the same line, further
/// back.
#[derive(Clone)]
pub struct Progress {
    flight: Arc<Flight>,
}

/// A response that is arriving. Dropped without an ending, its readers see it truncated.
pub struct Filling {
    duty: Duty,
    head: Arc<StoredHead>,
    share_only: Option<NoStore>,
    group: Option<u64>,
}

/// A request that waits for a leader.
pub struct Follower {
    flight: Arc<Flight>,
}

/// What a follower waited for.
#[derive(Debug)]
pub enum Followed {
    /// The head is there, the body arrives.
    Streaming(Reader),
    /// All of it is there.
    Complete(Arc<StoredResponse>),
    /// The response cannot be shared: [`Zone::detached`].
    NotShareable(NoStore),
    /// The response is for other request fields: join again.
    VaryMismatch,
    /// The leader failed: serve stale, or answer with this status as it does.
    Failed(u16),
    /// The leader's fetch was left out, as nobody waited for it then: join again.
    LeftOut,
}

/// Reads an arriving response from its beginning, at its own pace.
pub struct Reader {
    flight: Arc<Flight>,
    head: Arc<StoredHead>,
    /// This reader's place in the flight's list of readers.
    place: usize,
}

/// The response ended before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// What became of pushed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Kept; go on.
    Kept,
    /// The response has outgrown what may be stored: call [`Filling::room`] before the next push.
    TooLarge,
    /// It will not be stored and nobody reads it any more: stop fetching.
    Unwanted,
}

/// The duty to end a flight, exactly once.
struct Duty {
    zone: Arc<Zone>,
    flight: Arc<Flight>,
    ended: bool,
}

impl Duty {
    /// Takes the flight from the table, then says how it ended, and wakes everybody.
    fn end(&mut self, ending: impl FnOnce(&mut State)) {
        self.ended = true;
        self.zone.flights.remove(&self.flight);
        let bytes = self.flight.end(ending);
        self.zone.release(bytes);
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.ended {
            self.end(State::fail);
        }
    }
}

impl Zone {
    /// Leads, follows or goes alone, after a lookup that found nothing fresh. It looks again only
    /// where something was stored, purged or noted since, so that between the two no second fetch slips in.
    pub fn collapse(self: &Arc<Zone>, request: &JoinRequest<'_>, found: &NotFresh) -> Join {
        let JoinRequest {
            key,
            fields,
            now,
            lock_age,
            ..
        } = *request;
        let mut table = self.flights.shard(&key);
        let mut spec: Option<Arc<VarySpec>> = None;
        let mut too_old = None;
        for flight in table.of(&key) {
            if self.purges.is_outdated(&key, flight.stamp) {
                continue;
            }
            match flight.accepts(fields, now, lock_age) {
                Accepts::Yes => {
                    return Join::Follow(Follower {
                        flight: Arc::clone(flight),
                    });
                }
                Accepts::TooOld => too_old = Some(Arc::clone(flight)),
                Accepts::OtherVariant(of) => spec = of.or(spec),
            }
        }
        let newer = self.find_newer(found, &key, fields, now);
        let found = match &newer {
            None => found,
            Some(Found::NotFresh(newer)) => newer,
            Some(Found::Fresh(response)) => return Join::Fresh(Arc::clone(response)),
        };
        let stale = match self.stale_of(found, &key, now) {
            Ok(stale) => stale,
            Err(joined) => return joined,
        };
        if let Some(flight) = too_old {
            // Its followers stay with it; whoever comes now follows the new leader.
            table.remove(&flight);
        }
        let expected = spec
            .or_else(|| found.varies_on().cloned())
            .map(|spec| VaryKey::for_request(spec, fields));
        let flight = Arc::new(Flight::new(
            key.to_owned(),
            self.purges.stamp(),
            expected,
            now,
        ));
        match table.add(&flight) {
            true => Join::Lead(self.leader(flight, stale, request.group)),
            false => Join::Alone(Alone::TooManyFlights),
        }
    }

    /// The stale response that a leader may use; another part to play where there is to be no
    /// leader.
    fn stale_of(
        &self,
        found: &NotFresh,
        key: &KeyRef<'_>,
        now: Millis,
    ) -> Result<Option<Arc<StoredResponse>>, Join> {
        let alone = |why| Join::Alone(Alone::NotShareable(why));
        match &found.kind {
            NotFreshKind::NotShareable(why) => Err(alone(*why)),
            NotFreshKind::Miss | NotFreshKind::VaryMiss => Ok(None),
            NotFreshKind::Stale(response, _) => match self.worth(response, now) {
                // The clock was set back.
                Worth::Fresh => Err(Join::Fresh(Arc::clone(response))),
                worth => match self.refused(key, now) {
                    Some(why) => Err(alone(why)),
                    None => Ok(matches!(worth, Worth::Stale(_)).then(|| Arc::clone(response))),
                },
            },
        }
    }

    /// Leads the refresh of a stale response, unless somebody does or it is fresh by now.
    pub fn refresh(
        self: &Arc<Zone>,
        request: &JoinRequest<'_>,
        found: &NotFresh,
    ) -> Option<Leader> {
        match self.collapse(request, found) {
            Join::Lead(leader) => Some(leader),
            _ => None,
        }
    }

    /// Leads without followers: for bypassing requests whose response is stored all the same, and
    /// for those that go alone.
    pub fn detached(self: &Arc<Zone>, request: &JoinRequest<'_>) -> Leader {
        let stamp = self.purges.stamp();
        let flight = Flight::new(request.key.to_owned(), stamp, None, request.now);
        self.leader(Arc::new(flight), None, request.group)
    }

    fn leader(
        self: &Arc<Zone>,
        flight: Arc<Flight>,
        stale: Option<Arc<StoredResponse>>,
        group: Option<u64>,
    ) -> Leader {
        Leader {
            duty: Duty {
                zone: Arc::clone(self),
                flight,
                ended: false,
            },
            stale,
            group,
        }
    }
}

impl Leader {
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

    /// What responses for the key vary on, where that is known.
    #[must_use]
    pub fn varies_on(&self) -> Option<Arc<VarySpec>> {
        let expected = self.duty.flight.expected.as_ref()?;
        Some(Arc::clone(expected.spec()))
    }

    /// Where the fetch says how it gets on.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            flight: Arc::clone(&self.duty.flight),
        }
    }

    /// The response may be shared: followers get its head now and its bytes as they come.
    #[must_use]
    pub fn publish_head(
        self,
        head: &ResponseHead<'_>,
        storable: &Storable,
        now: Millis,
    ) -> Filling {
        let head = Arc::new(StoredHead::new(head, storable, now));
        self.duty.flight.publish(Arc::clone(&head), now);
        let Leader { duty, group, .. } = self;
        Filling {
            duty,
            head,
            share_only: storable.share_only,
            group,
        }
    }

    /// The upstream answered 304 to the validators of [`Leader::stale`]: freshens it. Decide with
    /// the stored status and the fields of [`StoredResponse::fields_after`].
    ///
    /// # Errors
    /// Nothing to freshen, purged meanwhile, or no room. Followers are released as failed.
    pub fn freshen(
        mut self,
        fields: &[Field],
        storable: &Storable,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NoStore> {
        let Some(stale) = self.stale.take() else {
            return Err(NoStore::Status);
        };
        let head = stale.head.freshened(fields, storable, now);
        let mut response = StoredResponse::new(head, stale.body.clone(), self.duty.flight.stamp);
        response.group = stale.group;
        response.encoded_forms = Arc::clone(&stale.encoded_forms);
        // The two share the body, but both are counted until the old one has left.
        drop(stale);
        let stored = self
            .duty
            .zone
            .insert(&self.duty.flight.key.as_ref(), response, now)?;
        let told = Arc::clone(&stored);
        self.duty.end(|state| state.complete(told));
        Ok(stored)
    }

    /// The response may not be shared: releases all followers together and remembers it
    /// (for no time: leaves what is remembered as it is).
    pub fn not_shareable(mut self, why: NoStore, remember_for: Duration, now: Millis) {
        let key = self.duty.flight.key.as_ref();
        // Remembered before the flight leaves the table: whoever joins next sees one or the other.
        if !remember_for.is_zero() {
            self.duty
                .zone
                .remember_not_shareable(&key, why, now.plus(remember_for));
        }
        self.duty.end(|state| state.refuse(why));
    }

    /// The fetch failed: releases all followers together.
    pub fn failed(mut self) {
        self.duty.end(State::fail);
    }

    /// The fetch failed in a way that `status` tells: followers are answered likewise.
    pub fn failed_as(mut self, status: u16) {
        self.duty.end(|state| state.fail_as(status));
    }

    /// The fetch was not sent, as nobody waited for it: whoever has come meanwhile joins again.
    pub fn left_out(mut self) {
        self.duty.end(State::leave_out);
    }
}

impl Progress {
    /// The fetch waits for its turn with the upstream.
    pub fn in_line(&self) {
        self.flight.note_progress(None);
    }

    /// Does a follower wait for the fetch, or did one?
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.flight.is_awaited()
    }

    /// Returns once a follower waits for the fetch. One caller at a time is told.
    pub async fn awaited(&self) {
        self.flight.awaited().await;
    }

    /// The fetch goes to the upstream.
    pub fn under_way(&self, now: Millis) {
        self.flight.note_progress(Some(now));
    }
}

impl Filling {
    /// A reader from the beginning: the leader's own client reads like everybody else. Make it
    /// before the first push.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let place = self.duty.flight.add_reader();
        Reader {
            flight: Arc::clone(&self.duty.flight),
            head: Arc::clone(&self.head),
            place,
        }
    }

    /// The head as published.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.head
    }

    /// Shares the next bytes of the body. They count against the zone's budget while they wait.
    pub fn push(&mut self, bytes: Bytes, now: Millis) -> Pushed {
        if bytes.is_empty() {
            return Pushed::Kept;
        }
        let zone = &self.duty.zone;
        let counted = bytes.len() as u64;
        let max = zone.config().max_response_bytes;
        let reserved = zone.reserve(counted);
        let grown = self.duty.flight.push(bytes, reserved, max, now);
        match grown {
            Growth::Kept => Pushed::Kept,
            Growth::Outgrew { why, release } => {
                zone.release(release);
                zone.flights.remove(&self.duty.flight);
                let key = self.duty.flight.key.as_ref();
                zone.remember_not_shareable(&key, why, now.plus(TOO_LARGE_MEMORY));
                self.share_only = Some(why);
                Pushed::TooLarge
            }
            Growth::Passing { release } => {
                zone.release(release);
                Pushed::TooLarge
            }
            Growth::Unwanted { release } => {
                zone.release(release);
                Pushed::Unwanted
            }
        }
    }

    /// Waits until a response too large to store may grow again: its readers have caught up.
    /// Returns at once for others.
    pub async fn room(&self) {
        self.duty.flight.room().await;
    }

    /// Whoever has waited for [`Filling::room`] waits no longer: those readers of a response too
    /// large to store who keep others waiting see it broken off.
    pub fn break_off_slowest(&self) {
        self.duty.flight.break_off_slowest();
    }

    /// Whoever reads gets the response to its end, but it will not be stored.
    pub fn share_only(&mut self, why: NoStore) {
        self.share_only = Some(why);
    }

    /// The body is complete: stores it. Readers are served to the end in any case, except when the
    /// body is not as long as declared.
    ///
    /// # Errors
    /// Why it was not stored: too large, no room, purged, minimum uses, what
    /// [`Filling::share_only`] was told; truncated when the length is not the declared one.
    pub fn complete(mut self, now: Millis) -> Result<Arc<StoredResponse>, NoStore> {
        let (len, chunks) = self.duty.flight.received();
        if self
            .head
            .declared_length
            .is_some_and(|declared| declared != len)
        {
            self.duty.end(State::fail);
            return Err(NoStore::Truncated);
        }
        let stored = match self.share_only {
            Some(why) => Err(why),
            None => self.store(&chunks, now),
        };
        match &stored {
            Ok(response) => {
                let told = Arc::clone(response);
                self.duty.end(|state| state.complete(told));
            }
            Err(_) => self.duty.end(State::finish),
        }
        stored
    }

    fn store(&self, chunks: &[Bytes], now: Millis) -> Result<Arc<StoredResponse>, NoStore> {
        let Duty { zone, flight, .. } = &self.duty;
        // The packed copy is counted by the store from now on, the received bytes no more.
        zone.release(flight.give_back());
        let head = StoredHead::clone(&self.head);
        let body = crate::Body::pack(chunks);
        let mut response = StoredResponse::new(head, body, flight.stamp);
        response.group = self.group;
        zone.insert(&flight.key.as_ref(), response, now)
    }

    /// The body broke off: readers see it truncated, nothing is stored.
    pub fn fail(mut self) {
        self.duty.end(State::fail);
    }
}

impl Follower {
    /// When something last happened at the upstream; none while the leader waits in line for it.
    #[must_use]
    pub fn last_progress(&self) -> Option<Millis> {
        self.flight.last_progress()
    }

    /// Waits until the leader has something. Bound it with a timer; dropping it leaves the group.
    pub async fn wait<F: RequestFields + ?Sized>(&mut self, fields: &F) -> Followed {
        self.flight.note_follower();
        loop {
            let mut changed = std::pin::pin!(self.flight.changed.notified());
            // Registered before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            if let Some(followed) = self.look(&|vary| vary.matches(fields)) {
                return followed;
            }
            changed.await;
        }
    }

    fn look(&self, matches: &dyn Fn(&VaryKey) -> bool) -> Option<Followed> {
        Some(match self.flight.look(matches) {
            Seen::Nothing => return None,
            Seen::Streaming(head, place) => Followed::Streaming(Reader {
                flight: Arc::clone(&self.flight),
                head,
                place,
            }),
            Seen::Complete(response) => Followed::Complete(response),
            Seen::NotShareable(why) => Followed::NotShareable(why),
            Seen::VaryMismatch => Followed::VaryMismatch,
            Seen::Failed(status) => Followed::Failed(status),
            Seen::LeftOut => Followed::LeftOut,
        })
    }
}

impl Reader {
    /// The head.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.head
    }

    /// The next bytes of the body; none when all of it was read. May be dropped while waiting.
    ///
    /// # Errors
    /// The response broke off: close the connection, so that the client notices too.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Truncated> {
        loop {
            let mut changed = std::pin::pin!(self.flight.changed.notified());
            changed.as_mut().enable();
            match self.flight.next(self.place) {
                Next::Chunk(bytes) => return Ok(Some(bytes)),
                Next::End => return Ok(None),
                Next::Broken => return Err(Truncated),
                Next::Wait => changed.await,
            }
        }
    }

    /// The next bytes if they are there already.
    pub fn try_next_chunk(&mut self) -> Option<Bytes> {
        match self.flight.next(self.place) {
            Next::Chunk(bytes) => Some(bytes),
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
        self.flight.remove_reader(self.place);
    }
}

macro_rules! debug_by_key {
    ($($type:ty => $flight:ident $(. $more:ident)?),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let key = &self.$flight$(.$more)?.key;
                f.debug_struct(stringify!($type)).field("key", key).finish_non_exhaustive()
            }
        }
    )*};
}

debug_by_key!(Leader => duty.flight, Filling => duty.flight, Follower => flight, Reader => flight);
