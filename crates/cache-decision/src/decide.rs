//! Decides what the cache does with a request. The pipeline obeys these three functions, `explain` prints
//! their decisions, and warming asks them; there is no fourth place.
//!
//! ```text
//! before_lookup ── Off, Purge, RefusePurge, Invalidate          the cache is not looked into
//!   │           ├─ Bypass ─► Alone | Direct | CollapseLater     past the stored response
//!   │           └─ Prove                                        not known yet whether it may be shared
//!   └ lookup ───── fresh ──► Hit
//!       └ after_lookup ───── Direct | Alone                     may not be shared, or not yet
//!           │           └─── ShowStale | Refresh                stale, and shown at once
//!           │           └─── Validate                       stored, and validated on each use
//!           └ Collapse ─► in_flight ─ Lead | Follow | Hit | ShowStale | Alone | Direct | Busy
//! ```

use std::sync::Arc;
use std::time::Duration;

use http_cache::{
    AloneReason, Follower, Forward, Join, Leader, Millis, NotFresh, NotFreshKind, Reason,
    ServedFrom, StaleReason, StaleRule, StoredResponse,
};
use http_semantics::Method;
use page_evidence::Standing;
use shared_request::Trait;
use site::CacheRules;

use crate::audience::Audience;
use crate::decision::{Action, Decision};
use crate::facts::{BodyPlace, RequestFacts, StoredUse, UpstreamFacts};
use crate::plan::Plan;
use crate::stand_in::StandIn;

/// Decides about a request before anything is looked up. A purge condition needs no cacheable
/// method.
///
/// # Errors
/// The decision, where the request is not looked up at all.
#[inline]
pub fn before_lookup(
    request: &mut impl RequestFacts,
    rules: &CacheRules,
) -> Result<(Audience, Option<Decision>), Decision> {
    let method = request.method();
    let is_purge = request.asks_to_purge(&rules.purge);
    if is_purge || may_be_local_purge(request, rules) {
        match request.purge_reach() {
            None => return Err(Decision::unsaid(Action::RefusePurge, None)),
            Some(reach) if is_purge => {
                return Err(Decision::unsaid(Action::Purge(reach), Some(Reason::Purge)));
            }
            Some(_) => {}
        }
    }
    if !is_cacheable(method, rules) {
        let action = match method.invalidates() {
            true => Action::Invalidate,
            false => Action::Off,
        };
        return Err(Decision::forwarded(
            action,
            Forward::Method,
            Some(Reason::Method),
        ));
    }
    if method == Method::Post && request.body() == BodyPlace::Elsewhere {
        // `$request_body` is empty, and the key of all such questions the same.
        return Err(Decision::forwarded(
            Action::Off,
            Forward::Bypass,
            Some(Reason::Body),
        ));
    }
    let (audience, personal) = match request.audience() {
        Ok(audience) => (audience, None),
        Err(why) => (Audience::Everybody, Some(why)),
    };
    let is_writer = request.is_writer();
    let alone = why_alone(request, rules);
    let is_for_one = is_writer || alone.is_some() || rules.shared.is_some();
    let why = alone
        .or(personal)
        .or(is_writer.then_some(Reason::OwnWrite))
        .or_else(|| request.is_any_true(&rules.bypass).then_some(Reason::Bypass));
    let past = match why {
        // A request forwarded whole has a response for one visitor.
        Some(_) if is_for_one => Some((Action::Direct, why)),
        Some(_) => Some((Action::Alone, why)),
        None if is_beyond_range_offset(request, rules) => {
            Some((Action::Direct, Some(Reason::Range)))
        }
        None => return Ok(of_evidence(request, audience, rules)),
    };
    let past = past.map(|(action, why)| Decision::forwarded(action, Forward::Bypass, why));
    Ok((audience, past))
}

/// Decides about a request whose answer may be shared, by the evidence about the page, and by whether
/// stored responses may be used.
#[inline]
fn of_evidence(
    request: &mut impl RequestFacts,
    audience: Audience,
    rules: &CacheRules,
) -> (Audience, Option<Decision>) {
    let standing = match audience {
        Audience::Class(..) => request.standing(),
        _ => Standing::Shared,
    };
    let is_forbidden = request.stored_use() == StoredUse::Forbidden;
    let (action, forward, why) = match standing {
        Standing::Shared if !is_forbidden => return (audience, None),
        Standing::Shared => {
            let action = match rules.lock {
                true => Action::CollapseLater,
                false => Action::Alone,
            };
            (action, Forward::Bypass, Reason::NoLease)
        }
        // A page before this one may have written into it.
        Standing::Depends(Trait::Session) => (Action::Direct, Forward::Bypass, Reason::Cookie),
        Standing::Depends(_) | Standing::Unexplained => {
            (Action::Direct, Forward::Bypass, Reason::Depends)
        }
        Standing::Unproven | Standing::NotShareable => {
            let why = match standing {
                Standing::NotShareable => Reason::NotShareable,
                _ => Reason::Unproven,
            };
            match is_forbidden {
                true => (Action::Direct, Forward::Bypass, why),
                false => (Action::Prove, Forward::Miss, why),
            }
        }
    };
    let past = Decision::forwarded(action, forward, Some(why));
    (audience, Some(past))
}

/// May a request be a purge that `from local` would let, but for the page behind it? It is answered
/// here and not by the application.
fn may_be_local_purge(request: &impl RequestFacts, rules: &CacheRules) -> bool {
    matches!(request.method(), Method::Purge | Method::Other)
        && !rules.purge.is_empty()
        && request.is_made_here()
}

fn is_cacheable(method: Method, rules: &CacheRules) -> bool {
    match method {
        Method::Get => true,
        // Without conversion a HEAD's answer has no body to store.
        Method::Head => rules.convert_head,
        Method::Post => rules.methods.post,
        _ => false,
    }
}

/// Returns why a request is no page's, whatever is stored: its answer is for this client alone. A body that
/// reaches the application may shape the answer and is not in the key (that of `cache_shared` has none,
/// whether or not the body is sent); an upgrade makes a tunnel. Nor would others wait for a body that may
/// never come.
#[inline]
fn why_alone(request: &mut impl RequestFacts, rules: &CacheRules) -> Option<Reason> {
    let is_body_outside_key = request.passes_body() || rules.shared.is_some();
    if request.method().is_read() && is_body_outside_key && request.body() != BodyPlace::None {
        return Some(Reason::Body);
    }
    request.passes_upgrade().then_some(Reason::Upgrade)
}

/// Does the range begin further back than the cache looks (`*_cache_max_range_offset`)?
fn is_beyond_range_offset(request: &impl RequestFacts, rules: &CacheRules) -> bool {
    let Some(limit) = rules.max_range_offset else {
        return false;
    };
    let Some(range) = request.range() else {
        return false;
    };
    let start = range.strip_prefix(b"bytes=").and_then(|spec| {
        let digits = spec.split(|&byte| byte == b'-').next()?;
        std::str::from_utf8(digits).ok()?.trim().parse::<u64>().ok()
    });
    start.is_none_or(|start| start >= limit)
}

/// How much too old a page may be that a crawler gets while visitors wait.
const STALE_FOR_CRAWLERS: Duration = Duration::from_secs(3600);

/// Decides about a request after a lookup that found nothing fresh.
#[must_use]
pub fn after_lookup(
    plan: &Plan<'_>,
    found: &NotFresh,
    stand_in: &StandIn,
    upstream: &impl UpstreamFacts,
    now: Millis,
) -> Decision {
    let rules = plan.rules;
    let forwarded = |action, why| Decision::forwarded(action, found.forward(), why);
    let is_full = || plan.zone.is_full_of_variants(&plan.key.as_ref());
    let mut reason = None;
    match found.kind {
        // Not to be stored, so that there is nothing for others in it.
        NotFreshKind::Miss | NotFreshKind::VaryMiss if plan.uses < rules.min_uses => {
            return forwarded(Action::Direct, Some(Reason::MinUses));
        }
        NotFreshKind::NotShareable(why) => return forwarded(unshared(&plan.audience), Some(why)),
        // It is stored, and another has to leave for it: perhaps this one left for another.
        NotFreshKind::VaryMiss if is_full() => reason = Some(Reason::TooManyVariants),
        NotFreshKind::Stale(ref stored, info) if info.rule == StaleRule::NoCache => {
            return forwarded(Action::Validate(Arc::clone(stored)), Some(Reason::NoCache));
        }
        NotFreshKind::Stale(_, info) => {
            let is_queue_long = |bound| upstream.queue_length() > bound;
            let is_for_crawler =
                info.past_expiry <= STALE_FOR_CRAWLERS && upstream.is_crawler_in_the_way();
            if (rules.queue_stale.is_some_and(is_queue_long) || is_for_crawler)
                && let Some(stale) = stand_in.response(StaleReason::QueueFull, now)
            {
                let action = Action::ShowStale(stale, ServedFrom::StaleError);
                return Decision::unsaid(action, None);
            }
            // The response's own stale-while-revalidate always refreshes in the background, and so
            // does a purge that only marks it stale.
            let in_background = rules.background_update
                || info.is_purged
                || info.past_expiry < info.stale_while_revalidate;
            if in_background && let Some(stale) = stand_in.response(StaleReason::Updating, now) {
                let action = match upstream.leaves_out_refresh() {
                    true => Action::ShowStale(stale, ServedFrom::StaleUpdating),
                    false => Action::Refresh(stale),
                };
                return Decision::unsaid(action, None);
            }
            // The last refresh brought a response that cannot be shared.
            return match plan.zone.refused(&plan.key.as_ref(), now) {
                Some(why) => forwarded(unshared(&plan.audience), Some(why)),
                None => forwarded(Action::Collapse, None),
            };
        }
        NotFreshKind::Miss | NotFreshKind::VaryMiss => {}
    }
    match rules.lock {
        true => forwarded(Action::Collapse, reason),
        false => forwarded(Action::Alone, reason),
    }
}

/// Returns how a response is fetched that is known not to be shared. With `cache_shared` the visitor's own
/// request is forwarded then, whole: its response is not stored.
#[must_use]
pub fn unshared(audience: &Audience) -> Action {
    match audience.class() {
        None => Action::Alone,
        Some(_) => Action::Direct,
    }
}

/// The part that a request plays in the fetch for its key.
#[derive(Debug)]
pub enum FlightPart {
    /// A fresh response was stored since the lookup.
    Hit(Arc<StoredResponse>),
    /// The stale response is the answer, while another request fetches.
    ShowStale(Arc<StoredResponse>),
    /// It fetches, and others wait.
    Lead(Leader),
    /// It waits for the one that fetches.
    Follow(Follower),
    /// It waits until that fetch is over, which may be out of date for it, and joins the next one.
    After(Follower),
    /// It looks once more at what is stored, which is decided about first.
    LookAgain,
    /// It fetches without others ([`Action::Alone`], [`Action::Direct`]), and why, if that is known.
    Without(Action, Option<Reason>),
    /// It is a visit of the server's own, and another request fetches: to wait would give the fetch
    /// a visitor's turn.
    Busy,
}

/// Decides about a request that was to join the fetch for its key ([`Action::Collapse`]).
#[must_use]
pub fn in_flight(
    join: Join,
    audience: &Audience,
    stand_in: &StandIn,
    is_own_visit: bool,
    now: Millis,
) -> FlightPart {
    if matches!(join, Join::Follow(_) | Join::After(_) | Join::Pending) {
        if let Some(stored) = stand_in.response(StaleReason::Updating, now) {
            return FlightPart::ShowStale(stored);
        }
        if is_own_visit {
            return FlightPart::Busy;
        }
    }
    match join {
        // A page may have a key that is good once: two tabs have one each.
        Join::Follow(_) | Join::After(_) if audience.is_one_request() => {
            FlightPart::Without(unshared(audience), None)
        }
        Join::Lead(leader) => FlightPart::Lead(leader),
        Join::Follow(follower) => FlightPart::Follow(follower),
        Join::After(earlier) => FlightPart::After(earlier),
        Join::Fresh(stored) => FlightPart::Hit(stored),
        Join::Pending => FlightPart::LookAgain,
        Join::Alone(AloneReason::NotShareable(why)) => {
            FlightPart::Without(unshared(audience), Some(why))
        }
        Join::Alone(AloneReason::TooManyFlights) => FlightPart::Without(Action::Alone, None),
    }
}

#[cfg(test)]
mod tests;
