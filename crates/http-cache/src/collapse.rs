//! Collapsed requests: one leader fetches, followers read along. See `LIFECYCLE.md`.

use crate::fields::{Field, RequestFields};
use crate::key::KeyRef;
use crate::purge::Stamp;
use crate::storability::{NoStore, Storable};
use crate::store::Zone;
use crate::stored::{ResponseHead, StoredHead, StoredResponse};
use crate::time::Millis;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A request that wants to join the fetch for its key.
#[derive(Clone, Copy)]
pub struct JoinRequest<'a> {
    /// The cache key.
    pub key: KeyRef<'a>,
    /// The request's fields, for `Vary`.
    pub fields: &'a dyn RequestFields,
    /// Now.
    pub now: Millis,
    /// A leader that has made no progress for this long does not keep others from leading.
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
#[derive(Debug)]
pub struct Leader {}

/// A response that is arriving. Dropped without an ending, its readers see it truncated.
#[derive(Debug)]
pub struct Filling {}

/// A request that waits for a leader.
#[derive(Debug)]
pub struct Follower {}

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
    /// The leader failed: serve stale, join again or answer with an error.
    Failed,
}

/// Reads an arriving response from its beginning, at its own pace.
#[derive(Debug)]
pub struct Reader {}

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

impl Zone {
    /// Leads, follows or goes alone. Looks into the store again, so that between a lookup and this
    /// call no second fetch slips in.
    pub fn join(self: &Arc<Zone>, request: &JoinRequest<'_>) -> Join {
        let _ = request;
        unimplemented!()
    }
    /// Leads the refresh of a stale response, unless somebody does or it is fresh by now.
    pub fn begin_refresh(self: &Arc<Zone>, request: &JoinRequest<'_>) -> Option<Leader> {
        let _ = request;
        unimplemented!()
    }
    /// Leads without followers: for bypassing requests whose response is stored all the same, and
    /// for those that go alone.
    pub fn detached(self: &Arc<Zone>, request: &JoinRequest<'_>) -> Leader {
        let _ = request;
        unimplemented!()
    }
}

impl Leader {
    /// The purge clock when this fetch began.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        unimplemented!()
    }
    /// The stale stored response, whose validators the fetch may use.
    #[must_use]
    pub fn stale(&self) -> Option<&Arc<StoredResponse>> {
        unimplemented!()
    }
    /// The response may be shared: followers get its head now and its bytes as they come.
    #[must_use]
    pub fn publish_head(
        self,
        head: &ResponseHead<'_>,
        storable: &Storable,
        now: Millis,
    ) -> Filling {
        let _ = (head, storable, now);
        unimplemented!()
    }
    /// The upstream answered 304 to the validators of [`Leader::stale`]: freshens it.
    ///
    /// # Errors
    /// Nothing to freshen, purged meanwhile, or no room. Followers are released as failed.
    pub fn freshen(
        self,
        fields: &[Field],
        storable: &Storable,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NoStore> {
        let _ = (fields, storable, now);
        unimplemented!()
    }
    /// The response may not be shared: releases all followers together and remembers it.
    pub fn not_shareable(self, why: NoStore, remember_for: Duration, now: Millis) {
        let _ = (why, remember_for, now);
    }
    /// The fetch failed: releases all followers together.
    pub fn failed(self) {}
}

impl Filling {
    /// A reader from the beginning: the leader's own client reads like everybody else.
    #[must_use]
    pub fn reader(&self) -> Reader {
        unimplemented!()
    }
    /// The head as published.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        unimplemented!()
    }
    /// Shares the next bytes of the body.
    pub fn push(&mut self, bytes: Bytes, now: Millis) -> Pushed {
        let _ = (bytes, now);
        unimplemented!()
    }
    /// Waits until a response too large to store may grow again: its readers have caught up.
    /// Returns at once for others.
    pub async fn room(&self) {}
    /// The body is complete: stores it. Readers are served to the end in any case.
    ///
    /// # Errors
    /// Why it was not stored: too large, no room, purged, minimum uses; truncated when the length
    /// is not the declared one.
    pub fn complete(self, now: Millis) -> Result<Arc<StoredResponse>, NoStore> {
        let _ = now;
        unimplemented!()
    }
    /// The body broke off: readers see it truncated, nothing is stored.
    pub fn fail(self) {}
}

impl Follower {
    /// Waits until the leader has something. Bound it with a timer; dropping it leaves the group.
    pub async fn wait<F: RequestFields + ?Sized>(&mut self, fields: &F) -> Followed {
        let _ = fields;
        unimplemented!()
    }
}

impl Reader {
    /// The head.
    #[must_use]
    pub fn head(&self) -> &Arc<StoredHead> {
        unimplemented!()
    }
    /// The next bytes of the body; none when all of it was read. May be dropped while waiting.
    ///
    /// # Errors
    /// The response broke off: close the connection, so that the client notices too.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, Truncated> {
        unimplemented!()
    }
    /// The stored response, once it is complete and stored.
    #[must_use]
    pub fn stored(&self) -> Option<Arc<StoredResponse>> {
        unimplemented!()
    }
}
