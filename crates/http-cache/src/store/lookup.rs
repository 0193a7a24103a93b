//! Looking for a stored response. A request looks once: what it finds is counted once and travels
//! with it to the fetch, see [`NotFresh`].
//!
//! ```text
//!   find ── Fresh ─────► serve it
//!     └──── NotFresh ──► serve it stale, or Zone::collapse(.., &not_fresh), Zone::refresh(..)
//!   find_again: the same for the next round of a request, uncounted
//! ```
//!
//! Between `find` and `collapse` another request may store or purge a response for the key, or note
//! that the key's responses cannot be shared. Each shard counts that (its generation), and the
//! result of `find` is good as long as that count is unchanged; only otherwise `collapse` looks
//! again. A purge of the whole zone is recognised by its stamp.
//!
//! A guard is asked without a lock: it may wait for others, or make system calls. So the response is taken from its
//! shard first. That shows no page that was purged before the lookup began: such a page is no longer in the shard, or the
//! stamp of the purge is written down, with which the response is compared afterwards. A page that is purged or replaced
//! while its guard is asked is one that a request may be shown which came before that.

use super::shard::SelectedResponse;
use super::zone::{ShardCell, Zone};
use crate::fields::RequestFields;
use crate::guard::{self, GuardAnswers, GuardQuestion, GuardVerdict, ask};
use crate::key::KeyRef;
use crate::outcome::Forward;
use crate::purge::clock::PurgeVerdict;
use crate::reason::Reason;
use crate::stale::StaleInfo;
use crate::stored::StoredResponse;
use crate::time::Millis;
use crate::vary::VarySpec;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The result of [`Zone::find`].
#[derive(Clone, Debug)]
pub enum FoundResponse {
    /// Serve it.
    Fresh(Arc<StoredResponse>),
    /// Nothing fresh.
    NotFresh(NotFresh),
}

/// That nothing fresh is stored for a request, as of the moment of its lookup. The way to a fetch:
/// [`Zone::collapse`] and [`Zone::refresh`] take it, so that they need not look again.
#[derive(Clone, Debug)]
pub struct NotFresh {
    /// Why nothing fresh is there, with the stale response if there is one.
    pub kind: NotFreshKind,
    /// The fields on which the key's responses vary, where `kind` does not contain them.
    varies_on: Option<Arc<VarySpec>>,
    /// The stored response whose guard does not let it be shown.
    outdated: Option<Arc<StoredResponse>>,
    /// That of the key's shard.
    generation: u64,
}

/// The kinds of a lookup that found nothing fresh.
#[derive(Clone, Debug)]
pub enum NotFreshKind {
    /// A stale response: see [`crate::may_serve_stale`], [`Zone::refresh`], [`Zone::collapse`].
    Stale(Arc<StoredResponse>, StaleInfo),
    /// The key has responses, but none for these request fields.
    VaryMiss,
    /// Nothing stored.
    Miss,
    /// Nothing stored, and the last response could not be shared: do not wait for anybody, use
    /// [`Zone::detached`].
    NotShareable(Reason),
}

impl NotFresh {
    /// Why the request is forwarded (RFC 9211 §2.2).
    #[must_use]
    pub fn forward(&self) -> Forward {
        match self.kind {
            NotFreshKind::Stale(..) => Forward::Stale,
            NotFreshKind::VaryMiss => Forward::VaryMiss,
            NotFreshKind::Miss => Forward::UriMiss,
            NotFreshKind::NotShareable(_) => Forward::Miss,
        }
    }

    /// Waits for the guard of a stored response that is outdated. Returns `true` once another lookup may find the response
    /// good, `false` if no lookup will or if there is no such response.
    pub async fn decided(&self) -> bool {
        match self.outdated.as_ref().and_then(|stored| stored.guard()) {
            Some(guard) => guard.decided().await,
            None => false,
        }
    }

    /// Is something stored whose guard, which was asked, has not decided yet?
    pub(crate) fn is_pending(&self, answers: &GuardAnswers) -> bool {
        let guard = self.outdated.as_ref().and_then(|stored| stored.guard());
        guard.is_some_and(|guard| matches!(answers.of(guard), Ok(GuardVerdict::Pending)))
    }

    /// Is something stored that its guard does not let be shown?
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_some()
    }

    /// The stale response, with the facts that decide whether it may be served.
    #[must_use]
    pub fn stale(&self) -> Option<(&Arc<StoredResponse>, &StaleInfo)> {
        match &self.kind {
            NotFreshKind::Stale(response, info) => Some((response, info)),
            _ => None,
        }
    }

    /// Returns the fields on which the key's stored responses vary, if any does.
    #[must_use]
    pub fn varies_on(&self) -> Option<&Arc<VarySpec>> {
        match &self.kind {
            NotFreshKind::Stale(response, _) => Some(response.vary.as_ref()?.spec()),
            _ => self.varies_on.as_ref(),
        }
    }
}

/// The present worth of a stored response.
pub(crate) enum ResponseWorth {
    Fresh,
    Stale(StaleInfo),
    /// It was purged.
    Nothing,
}

/// The result of a look into memory, before a guard is asked.
enum Look {
    Known(FoundResponse),
    Guarded(GuardedResponse),
}

/// A stored response whose guard decides about it.
struct GuardedResponse {
    response: Arc<StoredResponse>,
    /// That of the key's shard, as of the look.
    generation: u64,
}

impl Zone {
    /// Finds what is stored for a request and counts that. A fresh answer costs one shared lock and
    /// no allocation.
    #[inline]
    #[must_use]
    pub fn find(
        &self,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
    ) -> FoundResponse {
        let cell = self.cell(key.hash());
        let found = self.find_in(cell, key, request, now, Some(now));
        match &found {
            FoundResponse::Fresh(_) => cell.hits.fetch_add(1, Relaxed),
            FoundResponse::NotFresh(not_fresh) => match not_fresh.kind {
                NotFreshKind::Stale(..) => cell.stale_hits.fetch_add(1, Relaxed),
                // The tier is asked next: see [`Zone::count_tier_lookup`].
                NotFreshKind::Miss | NotFreshKind::VaryMiss if self.tier().is_some() => 0,
                _ => cell.misses.fetch_add(1, Relaxed),
            },
        };
        found
    }

    /// Counts the lookup of a request that memory had nothing for, once the zone's tier was asked.
    pub fn count_tier_lookup(&self, key: &KeyRef<'_>, is_hit: bool) {
        let cell = self.cell(key.hash());
        match is_hit {
            true => {
                cell.hits.fetch_add(1, Relaxed);
                self.counters.tier_hits.fetch_add(1, Relaxed);
            }
            false => {
                cell.misses.fetch_add(1, Relaxed);
            }
        }
    }

    /// Finds like [`Zone::find`], but counts nowhere: for another round of a request that was counted.
    #[must_use]
    pub fn find_again(
        &self,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
    ) -> FoundResponse {
        self.find_in(self.cell(key.hash()), key, request, now, None)
    }

    /// Returns the stored response that would be selected, whether or not it may be shown: to compare it with another.
    #[must_use]
    pub fn stored_for(
        &self,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
    ) -> Option<Arc<StoredResponse>> {
        match self
            .cell(key.hash())
            .shard
            .read()
            .select(key, request, None)
        {
            SelectedResponse::Found(response) => Some(Arc::clone(response)),
            SelectedResponse::VaryMiss(_) | SelectedResponse::Miss => None,
        }
    }

    #[inline]
    fn find_in(
        &self,
        cell: &ShardCell,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
        touch: Option<Millis>,
    ) -> FoundResponse {
        match self.look(cell, key, request, now, touch) {
            Look::Known(found) => found,
            Look::Guarded(guarded) => {
                let worth = self.worth(&guarded.response, now);
                self.judged(guarded, worth, key, now)
            }
        }
    }

    /// Asks no guard, since it holds the shard's lock.
    #[inline]
    fn look(
        &self,
        cell: &ShardCell,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
        touch: Option<Millis>,
    ) -> Look {
        let shard = cell.shard.read();
        let (kind, varies_on) = match shard.select(key, request, touch) {
            SelectedResponse::Found(response) => {
                response.fetch_lines();
                if response.guard().is_some() {
                    return Look::Guarded(GuardedResponse {
                        response: Arc::clone(response),
                        generation: cell.generation.load(Acquire),
                    });
                }
                match worth_of(response, self.purges.standing(response), now) {
                    ResponseWorth::Fresh => {
                        return Look::Known(FoundResponse::Fresh(Arc::clone(response)));
                    }
                    ResponseWorth::Stale(info) => {
                        (NotFreshKind::Stale(Arc::clone(response), info), None)
                    }
                    ResponseWorth::Nothing => {
                        let vary = response.vary.as_ref();
                        (NotFreshKind::Miss, vary.map(|vary| Arc::clone(vary.spec())))
                    }
                }
            }
            SelectedResponse::VaryMiss(spec) => (NotFreshKind::VaryMiss, Some(Arc::clone(spec))),
            SelectedResponse::Miss => (NotFreshKind::Miss, None),
        };
        // Read while nothing can be stored, and before the notes: what comes later is seen later.
        let generation = cell.generation.load(Acquire);
        drop(shard);
        let found = NotFresh {
            kind,
            varies_on,
            outdated: None,
            generation,
        };
        Look::Known(self.unless_refused(found, key, now))
    }

    fn judged(
        &self,
        guarded: GuardedResponse,
        worth: ResponseWorth,
        key: &KeyRef<'_>,
        now: Millis,
    ) -> FoundResponse {
        let GuardedResponse {
            response,
            generation,
        } = guarded;
        let (kind, varies_on, outdated) = match worth {
            ResponseWorth::Fresh => return FoundResponse::Fresh(response),
            ResponseWorth::Stale(info) => (NotFreshKind::Stale(response, info), None, None),
            ResponseWorth::Nothing => {
                let vary = response.vary.as_ref();
                let varies_on = vary.map(|vary| Arc::clone(vary.spec()));
                (NotFreshKind::Miss, varies_on, Some(response))
            }
        };
        let found = NotFresh {
            kind,
            varies_on,
            outdated,
            generation,
        };
        self.unless_refused(found, key, now)
    }

    fn unless_refused(&self, found: NotFresh, key: &KeyRef<'_>, now: Millis) -> FoundResponse {
        let refused = match found.kind {
            NotFreshKind::Stale(..) => None,
            _ => self.refused(key, now),
        };
        let kind = refused.map_or(found.kind, NotFreshKind::NotShareable);
        FoundResponse::NotFresh(NotFresh { kind, ..found })
    }

    /// Looks again where something was stored, purged or noted since `found` was found; none where
    /// not.
    ///
    /// # Errors
    /// A guard must be asked first, without a lock.
    pub(crate) fn find_newer(
        &self,
        found: &NotFresh,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
        answers: &GuardAnswers,
    ) -> Result<Option<FoundResponse>, GuardQuestion> {
        let cell = self.cell(key.hash());
        if cell.generation.load(Acquire) == found.generation {
            return Ok(None);
        }
        match self.look(cell, key, request, now, None) {
            Look::Known(found) => Ok(Some(found)),
            Look::Guarded(guarded) => {
                let worth = self.worth_by(&guarded.response, answers, now)?;
                Ok(Some(self.judged(guarded, worth, key, now)))
            }
        }
    }

    /// Returns the verdict of the purges and of the response's guard. The guard is asked: call it without a lock of the zone.
    pub(crate) fn standing(&self, response: &StoredResponse, now: Millis) -> PurgeVerdict {
        let standing = self.purges.standing(response);
        match response.guard() {
            Some(guard) if standing != PurgeVerdict::Removed => {
                self.standing_by(response, ask(guard, now), now)
            }
            _ => standing,
        }
    }

    /// Returns whether a response with a guard is to be removed, for the sweep: no visitor asks. Call it without a lock of the
    /// zone.
    pub(crate) fn is_over(&self, response: &StoredResponse, now: Millis) -> bool {
        response.guard().is_some_and(|guard| {
            let verdict = match guard::is_over(guard, now) {
                true => GuardVerdict::Outdated,
                false => GuardVerdict::Good,
            };
            self.standing_by(response, verdict, now) == PurgeVerdict::Removed
        })
    }

    /// Returns the same as [`Zone::standing`], for a verdict that the guard has already given.
    fn standing_by(
        &self,
        response: &StoredResponse,
        verdict: GuardVerdict,
        now: Millis,
    ) -> PurgeVerdict {
        let holds_since = response.guard().and_then(|guard| guard.holds_since());
        if self
            .purges
            .doubts_guard(holds_since.unwrap_or(response.stamp))
        {
            return PurgeVerdict::Removed;
        }
        // Compared after the guard has answered: what was purged meanwhile counts.
        self.purges.standing(response).worse(match verdict {
            GuardVerdict::Good => PurgeVerdict::Good,
            GuardVerdict::Unknown => PurgeVerdict::VoidSince(now),
            GuardVerdict::Outdated | GuardVerdict::Pending => PurgeVerdict::Removed,
        })
    }

    /// Waits until the guard of a fetch that a request has joined has decided. Returns whether the request may be shown its
    /// response.
    pub async fn is_for_followers(&self, response: &StoredResponse, now: Millis) -> bool {
        let Some(guard) = response.guard().filter(|it| it.holds_followers()) else {
            return true;
        };
        match ask(guard, now) {
            GuardVerdict::Good => true,
            GuardVerdict::Pending => guard.decided().await,
            GuardVerdict::Unknown | GuardVerdict::Outdated => false,
        }
    }

    /// Keeps a stored response until then, if it is still the one that is stored: its guard knows what it was
    /// made of.
    pub fn keep(&self, key: &KeyRef<'_>, response: &Arc<StoredResponse>, until: Millis) -> bool {
        // One that named too many tags cannot be purged by all of them.
        let may_be_kept = response.guard().is_some() && !response.head.lacks_tags;
        may_be_kept
            && self
                .cell(key.hash())
                .shard
                .write()
                .keep(key, response, until)
    }

    /// Returns the present worth of a stored response. Its guard is asked: call it without a lock of the zone.
    pub(crate) fn worth(&self, response: &StoredResponse, now: Millis) -> ResponseWorth {
        worth_of(response, self.standing(response, now), now)
    }

    /// Returns the worth of a stored response by the verdict that its guard has already given.
    ///
    /// # Errors
    /// It was not asked yet.
    pub(crate) fn worth_by(
        &self,
        response: &StoredResponse,
        answers: &GuardAnswers,
        now: Millis,
    ) -> Result<ResponseWorth, GuardQuestion> {
        let standing = match response.guard() {
            Some(guard) => self.standing_by(response, answers.of(guard)?, now),
            None => self.purges.standing(response),
        };
        Ok(worth_of(response, standing, now))
    }

    /// The facts that decide whether `response` may be served stale; `None` where it is fresh or
    /// was purged.
    #[must_use]
    pub fn stale_info(&self, response: &StoredResponse, now: Millis) -> Option<StaleInfo> {
        match self.worth(response, now) {
            ResponseWorth::Stale(info) => Some(info),
            ResponseWorth::Fresh | ResponseWorth::Nothing => None,
        }
    }

    /// Has the key as many variants as are kept, so that the next one makes another leave?
    #[must_use]
    pub fn is_full_of_variants(&self, key: &KeyRef<'_>) -> bool {
        self.cell(key.hash()).shard.read().count(key) >= self.config.max_variants.max(1)
    }

    /// Returns the fields on which the key's stored responses vary.
    #[must_use]
    pub fn vary_spec(&self, key: &KeyRef<'_>) -> Option<Arc<VarySpec>> {
        self.cell(key.hash()).shard.read().vary_spec(key)
    }
}

/// Returns the worth of a stored response by its times and by `standing`, the verdict of the purges and of its guard.
#[inline]
fn worth_of(response: &StoredResponse, standing: PurgeVerdict, now: Millis) -> ResponseWorth {
    let (expires_at, is_purged) = match standing {
        PurgeVerdict::Removed => return ResponseWorth::Nothing,
        PurgeVerdict::ExpiredAt(at) => (response.expires_at.min(at), true),
        PurgeVerdict::VoidSince(at) => (response.expires_at.min(at), false),
        PurgeVerdict::Good => (response.expires_at, response.is_purged),
    };
    // A request may have begun before the response was stored.
    if now < expires_at && !response.needs_validation() {
        return ResponseWorth::Fresh;
    }
    ResponseWorth::Stale(StaleInfo {
        past_expiry: now.since(expires_at),
        stale_while_revalidate: response.stale_while_revalidate.duration(),
        stale_if_error: response.stale_if_error.duration(),
        rule: response.stale_rule(),
        is_purged,
        is_void: matches!(standing, PurgeVerdict::VoidSince(_)) || response.later.is_doubted(),
        last_failure: response.later.last_failure().map(|at| now.since(at)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ZoneConfig;
    use crate::testing::{NO_FIELDS, T0, key, response};
    use std::time::Duration;

    #[test]
    fn a_lookup_is_good_until_something_is_stored_or_noted() {
        let zone = Zone::new(ZoneConfig {
            shards: 1,
            ..ZoneConfig::default()
        });
        let (a, b) = (key("a"), key("b"));
        let find = || match zone.find(&a.as_ref(), NO_FIELDS, T0) {
            FoundResponse::NotFresh(found) => found,
            FoundResponse::Fresh(_) => panic!("nothing is stored"),
        };
        let newer = |found: &NotFresh| {
            let answers = GuardAnswers::default();
            let newer = zone.find_newer(found, &a.as_ref(), NO_FIELDS, T0, &answers);
            newer.expect("no guard")
        };
        let found = find();
        assert!(matches!(find().kind, NotFreshKind::Miss));
        assert!(newer(&found).is_none());

        let until = T0.plus(Duration::from_secs(5));
        zone.remember_not_shareable(&a.as_ref(), Reason::Private, until);
        let refused = match newer(&found) {
            Some(FoundResponse::NotFresh(newer)) => newer.kind,
            other => panic!("looked again, and refused: {other:?}"),
        };
        assert!(matches!(
            refused,
            NotFreshKind::NotShareable(Reason::Private)
        ));

        // The whole shard counts: another key's response makes for another look.
        let found = find();
        let other = response(60, 10, T0, zone.stamp());
        zone.insert(&b.as_ref(), other, T0).expect("stored");
        assert!(matches!(newer(&found), Some(FoundResponse::NotFresh(_))));
        assert!(newer(&find()).is_none());
    }
}
