//! Collapsed requests: one leader fetches, followers read along. See
//! `collapse/LIFECYCLE.md` for the states.
//!
//! [`Zone::collapse`] decides the part a request plays while it holds the lock of the key's shard of
//! the table of flights. A leader's response is stored first and its flight taken from the table
//! after that. A request that finds no flight therefore sees whether something was stored since its
//! lookup, and looks again if so: between the two no second fetch can slip in. Where the guard of a flight or of a
//! response must be asked, the lock is let go meanwhile, and the request looks at everything anew with the answer.

mod follower;
mod leader;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::fields::RequestFields;
use crate::flight::{Flight, FlightAcceptance};
pub use crate::flight::{FlightEnd, Urgency};
use crate::guard::{GuardAnswers, GuardQuestion};
use crate::key::KeyRef;
use crate::purge::Stamp;
use crate::reason::Reason;
use crate::store::{FoundResponse, NotFresh, NotFreshKind, ResponseWorth, Zone};
use crate::stored::StoredResponse;
use crate::time::Millis;
use crate::vary::{VaryKey, VarySpec};
pub use follower::{Follower, FollowerOutcome, Reader, TruncatedResponse};
pub use leader::{ArrivingResponse, Leader, Progress, PushResult, WaitingRequest};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
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
    /// A leader that has made no progress for this long does not keep others from leading. Standing
    /// in line for the upstream ([`Progress`]) does not count.
    pub lock_age: Option<Duration>,
    /// The private group the response counts against.
    pub group: Option<u64>,
    /// The address by which the response can be purged ([`LabelNames::address`](crate::LabelNames::address));
    /// empty: by none.
    pub address: &'a [u8],
    /// The purge clock when the request came. Older data than a purge before that is not for it.
    pub came_at: Stamp,
    /// The response may carry tags, which are known when it has ended.
    pub may_have_tags: bool,
    /// The urgency of the waiting request. A fetch in line for the upstream takes over its followers' urgency.
    pub urgency: Urgency,
    /// The fields that the response is expected to vary on, known from other pages of its site; used if nothing
    /// is known of the key.
    pub expects: Option<&'a Arc<VarySpec>>,
}

/// The part a request plays.
#[derive(Debug)]
pub enum Join {
    /// Fetch, for all.
    Lead(Leader),
    /// Wait for the one who fetches.
    Follow(Follower),
    /// A fetch is under way whose response may be out of date for this request: wait until it is
    /// [over](Follower::ended), then [`Zone::collapse_later`].
    After(Follower),
    /// A fresh response was stored since the lookup.
    Fresh(Arc<StoredResponse>),
    /// A response was stored since the lookup, and its guard decides soon whether it may be shown: look again.
    Pending,
    /// Fetch for yourself: [`Zone::detached`].
    Alone(AloneReason),
}

/// The part of a request that nothing may answer which began before it.
#[derive(Debug)]
pub enum LaterJoin {
    /// Fetch, for all who came before.
    Lead(Leader),
    /// Wait for the one who fetches: that fetch begins later than the request came.
    Follow(Follower),
    /// A fetch is under way that began earlier: wait until it is [over](Follower::ended), and ask again.
    After(Follower),
    /// Fetch for yourself.
    Alone(AloneReason),
}

/// The use of a fetch that another request leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlightUse {
    Answer,
    /// Nothing: the stale response is shown while it is refreshed.
    Refresh,
}

/// Why a request goes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AloneReason {
    /// The last response for the key could not be shared.
    NotShareable(Reason),
    /// Too many fetches under way to keep another in the table.
    TooManyFlights,
}

impl Zone {
    /// Leads, follows or goes alone, after a lookup that found nothing fresh. It looks again only
    /// where something was stored, purged or noted since, so that between the two no second fetch slips in.
    pub fn collapse(self: &Arc<Zone>, request: &JoinRequest<'_>, found: &NotFresh) -> Join {
        let join = self.join(request, found, FlightUse::Answer);
        if matches!(join, Join::Follow(_)) {
            self.counters.collapsed.fetch_add(1, Relaxed);
        }
        join
    }

    fn join(
        self: &Arc<Zone>,
        request: &JoinRequest<'_>,
        found: &NotFresh,
        wanted_for: FlightUse,
    ) -> Join {
        let mut answers = GuardAnswers::default();
        loop {
            match self.join_by(request, found, wanted_for, &answers) {
                Ok(join) => return join,
                Err(unasked) => answers.ask(unasked, request.now),
            }
        }
    }

    fn join_by(
        self: &Arc<Zone>,
        request: &JoinRequest<'_>,
        found: &NotFresh,
        wanted_for: FlightUse,
        answers: &GuardAnswers,
    ) -> Result<Join, GuardQuestion> {
        let JoinRequest {
            key,
            fields,
            now,
            lock_age,
            address,
            ..
        } = *request;
        let mut table = self.flights.shard(&key);
        let mut spec: Option<Arc<VarySpec>> = None;
        let (mut too_old, mut outdated) = (None, None);
        for flight in table.of(&key) {
            let is_older = flight.stamp < request.came_at;
            if is_older && self.purges.is_outdated(&key, address, flight.stamp) {
                continue;
            }
            match flight.accepts(fields, now, lock_age) {
                FlightAcceptance::Yes
                    if wanted_for == FlightUse::Answer && !flight.is_current(answers)? =>
                {
                    outdated = Some(flight);
                }
                FlightAcceptance::Yes => {
                    let minds_tags = is_older && request.may_have_tags;
                    let follower = Follower::of(self, flight, request.urgency, minds_tags);
                    return Ok(Join::Follow(follower));
                }
                FlightAcceptance::TooOld => too_old = Some(Arc::clone(flight)),
                FlightAcceptance::OtherVariant(of) => spec = of.or(spec),
            }
        }
        let newer = self.find_newer(found, &key, fields, now, answers)?;
        let found = match &newer {
            None => found,
            Some(FoundResponse::NotFresh(newer)) if newer.is_pending(answers) => {
                return Ok(Join::Pending);
            }
            Some(FoundResponse::NotFresh(newer)) => newer,
            Some(FoundResponse::Fresh(response)) => return Ok(Join::Fresh(Arc::clone(response))),
        };
        let stale = match self.stale_of(found, &key, now, answers)? {
            Ok(stale) => stale,
            Err(joined) => return Ok(joined),
        };
        if let Some(flight) = outdated {
            let follower = Follower::of(self, flight, request.urgency, false);
            return Ok(Join::After(follower));
        }
        if let Some(flight) = too_old {
            // Its followers stay with it; later requests follow the new leader.
            table.remove(&flight);
        }
        let expected = spec
            .or_else(|| found.varies_on().cloned())
            .or_else(|| request.expects.cloned())
            .map(|spec| VaryKey::for_request(spec, fields));
        let flight = Arc::new(Flight::new(
            key.to_owned(),
            address.into(),
            self.purges.stamp(),
            expected,
            now,
        ));
        Ok(match table.add(&flight) {
            true => Join::Lead(Leader::new(Arc::clone(self), flight, stale, request.group)),
            false => Join::Alone(AloneReason::TooManyFlights),
        })
    }

    /// Leads or follows a fetch that begins after `came`, a reading of the clock made when the request had been read.
    /// Nothing that is stored is looked at. One fetch after the other is made for the key, each for all who came
    /// before it.
    pub fn collapse_later(self: &Arc<Zone>, request: &JoinRequest<'_>, came: Millis) -> LaterJoin {
        let JoinRequest {
            key, fields, now, ..
        } = *request;
        let follow = |flight| Follower::of(self, flight, request.urgency, false);
        let mut table = self.flights.shard(&key);
        let mut spec: Option<Arc<VarySpec>> = None;
        let (mut earlier, mut too_old) = (None, None);
        for flight in table.of(&key) {
            match flight.accepts(fields, now, request.lock_age) {
                FlightAcceptance::Yes if flight.begins_after(came) => {
                    self.counters.collapsed.fetch_add(1, Relaxed);
                    return LaterJoin::Follow(follow(flight));
                }
                FlightAcceptance::Yes => earlier = Some(flight),
                FlightAcceptance::TooOld => too_old = Some(Arc::clone(flight)),
                FlightAcceptance::OtherVariant(of) => spec = of.or(spec),
            }
        }
        if let Some(flight) = earlier {
            return LaterJoin::After(follow(flight));
        }
        if let Some(why) = self.refused(&key, now) {
            return LaterJoin::Alone(AloneReason::NotShareable(why));
        }
        if let Some(flight) = too_old {
            table.remove(&flight);
        }
        let expected = spec
            .or_else(|| request.expects.cloned())
            .map(|spec| VaryKey::for_request(spec, fields));
        let (of, address) = (key.to_owned(), request.address.into());
        let flight = Flight::new(of, address, self.purges.stamp(), expected, now);
        let flight = Arc::new(flight);
        match table.add(&flight) {
            true => LaterJoin::Lead(Leader::new(Arc::clone(self), flight, None, request.group)),
            false => LaterJoin::Alone(AloneReason::TooManyFlights),
        }
    }

    /// Returns the stale response that a leader may use. `Err`: the request needs no leader, and the value is
    /// its result.
    fn stale_of(
        &self,
        found: &NotFresh,
        key: &KeyRef<'_>,
        now: Millis,
        answers: &GuardAnswers,
    ) -> Result<Result<Option<Arc<StoredResponse>>, Join>, GuardQuestion> {
        let alone = |why| Join::Alone(AloneReason::NotShareable(why));
        Ok(match &found.kind {
            NotFreshKind::NotShareable(why) => Err(alone(*why)),
            NotFreshKind::Miss | NotFreshKind::VaryMiss => Ok(None),
            NotFreshKind::Stale(response, _) => match self.worth_by(response, answers, now)? {
                // The clock was set back.
                ResponseWorth::Fresh => Err(Join::Fresh(Arc::clone(response))),
                worth => match self.refused(key, now) {
                    Some(why) => Err(alone(why)),
                    None => {
                        Ok(matches!(worth, ResponseWorth::Stale(_)).then(|| Arc::clone(response)))
                    }
                },
            },
        })
    }

    /// Leads the refresh of a stale response; `None` if one is under way or the response is
    /// fresh by now.
    pub fn refresh(
        self: &Arc<Zone>,
        request: &JoinRequest<'_>,
        found: &NotFresh,
    ) -> Option<Leader> {
        match self.join(request, found, FlightUse::Refresh) {
            Join::Lead(leader) => {
                self.counters.refreshes.fetch_add(1, Relaxed);
                Some(leader)
            }
            _ => None,
        }
    }

    /// Leads without followers: for bypassing requests whose response is stored all the same, and
    /// for those that go alone.
    pub fn detached(self: &Arc<Zone>, request: &JoinRequest<'_>) -> Leader {
        self.validating(request, None)
    }

    /// Leads without followers, with the validators of a stored response.
    pub fn validating(
        self: &Arc<Zone>,
        request: &JoinRequest<'_>,
        stored: Option<Arc<StoredResponse>>,
    ) -> Leader {
        let stamp = self.purges.stamp();
        let (key, address) = (request.key.to_owned(), request.address.into());
        let flight = Flight::new(key, address, stamp, None, request.now);
        Leader::new(Arc::clone(self), Arc::new(flight), stored, request.group)
    }
}
