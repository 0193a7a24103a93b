//! Foresees a request: the decisions of [`crate::decide`] over the stored responses, without their
//! effects. Nothing is counted, and no upstream is asked.

use std::sync::Arc;

use http_cache::{FoundResponse, Millis, Reason, Refusal, StoredResponse, VarySpec};
use http_semantics::RequestHead;

use crate::decide::after_lookup;
use crate::decision::{Action, Decision};
use crate::facts::UpstreamFacts;
use crate::plan::{Plan, UseCount};
use crate::stand_in::StandIn;

/// The foreseen decision about a request that may be looked up.
pub struct Foresight {
    pub decision: Decision,
    /// The stored response for the request, whether or not it would be looked up.
    pub stored: Option<Arc<StoredResponse>>,
    /// The fields that the key's responses vary on.
    pub varies_on: Option<Arc<VarySpec>>,
}

/// A reason, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeseenReason {
    /// By the request and the configuration.
    ByRequest(Reason),
    /// By the content of the cache at this moment.
    ByMoment(Reason),
    /// By the last response for the key.
    ByLast(Refusal),
}

/// The facts of a request whose response would be stored if it may.
pub trait StoringFacts {
    /// Does `*_no_cache` say that its response is not to be stored?
    fn is_not_to_be_stored(&mut self) -> bool;

    /// Does it carry Authorization?
    fn is_authorized(&self) -> bool;

    /// Has it cookies that count and that its key does not hold?
    fn has_cookie_outside_key(&mut self) -> bool;
}

/// Foresees the request of a plan.
#[must_use]
pub fn foresee(
    plan: &mut Plan<'_>,
    head: &RequestHead,
    upstream: &impl UpstreamFacts,
    (count, now): (UseCount, Millis),
) -> Foresight {
    let found = match plan
        .zone
        .find_again(&plan.key.as_ref(), &plan.fields(head), now)
    {
        FoundResponse::NotFresh(found) => found,
        FoundResponse::Fresh(stored) => {
            let varies_on = stored.vary.as_ref().map(|vary| vary.spec().clone());
            return Foresight {
                decision: plan.past.clone().unwrap_or(Decision::HIT),
                stored: Some(stored),
                varies_on,
            };
        }
    };
    let decision = match &plan.past {
        Some(past) => past.clone(),
        None => {
            plan.count_use(count, now);
            let stand_in = StandIn::of(&found, plan.rules, now);
            after_lookup(plan, &found, &stand_in, upstream, now)
        }
    };
    Foresight {
        decision,
        stored: found.stale().map(|(stored, _)| stored.clone()),
        varies_on: found.varies_on().cloned(),
    }
}

/// Says why the response to the request of a plan would not be stored, as far as that is known
/// before it is there.
pub fn foresee_refusal(
    plan: &Plan<'_>,
    decision: &Decision,
    request: &mut impl StoringFacts,
) -> Option<ForeseenReason> {
    if let Some(past) = &plan.past {
        // The refusal of other visitors' own requests is the reason why nothing is shared.
        let last = match past.reason {
            Some(Reason::Unproven | Reason::NotShareable) => {
                plan.zone.last_refusal(&plan.key.as_ref())
            }
            _ => None,
        };
        let by_request = past.reason.map(ForeseenReason::ByRequest);
        return last.map(ForeseenReason::ByLast).or(by_request);
    }
    if matches!(decision.action, Action::Hit) {
        return None;
    }
    if decision.reason == Some(Reason::MinUses) {
        return Some(ForeseenReason::ByMoment(Reason::MinUses));
    }
    if request.is_not_to_be_stored() {
        return Some(ForeseenReason::ByRequest(Reason::Condition));
    }
    let last = plan.zone.last_refusal(&plan.key.as_ref());
    let last = last.filter(|last| match last.why {
        // It was another request's own, unless this one is like it.
        Reason::Authorization => request.is_authorized(),
        Reason::CookieOutsideKey => request.has_cookie_outside_key(),
        _ => true,
    });
    match last {
        Some(last) => Some(ForeseenReason::ByLast(last)),
        None => decision.reason.map(ForeseenReason::ByMoment),
    }
}

#[cfg(test)]
mod tests;
