//! What the cache would do for a request: the decisions of `policy`, of the lookup and of `miss`, in
//! their order, without what follows from them. Counts nowhere, and asks nobody.

use std::sync::Arc;

use cache_decision::Plan;
use cache_decision::address;
use http_cache::{
    FoundResponse, Millis, NotFreshKind, Reason, Refusal, StoredResponse, VarySpec, Zone,
};
use shared_request::Class;
use site::{CacheRules, Pass};

use super::cookies::has_cookie_outside_key;
use super::is_beyond_range_offset;
use super::policy::{self, CachePlan};
use super::storability::no_store_condition;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::Request;

/// What the cache would do.
pub struct Outlook {
    pub would: Would,
    /// Why it would have no part in the response, or could not keep it, as far as that is known.
    pub reason: Option<Known>,
    /// Where it would look; none where it would not.
    pub lookup: Option<Lookup>,
}

/// What the cache would do for a request.
pub enum Would {
    /// Nothing: it has no part in it.
    Nothing,
    /// Nothing, because of the method; if the request changes something, what is stored goes.
    NothingForMethod,
    Purge,
    /// Nothing is looked up.
    Bypass,
    Hit,
    /// What is stored is stale.
    Stale,
    /// Responses are stored for the key, none for these fields.
    VaryMiss,
    Miss,
    /// The name of the zone comes from variables, and there is none of this name.
    Fail(String),
}

/// A reason, and how it is known.
pub enum Known {
    /// By the request and the configuration.
    ByRequest(Reason),
    /// By what the cache holds at this moment.
    ByMoment(Reason),
    /// By the last response for the key.
    ByLast(Refusal),
}

/// Where the cache looks for a request.
pub struct Lookup {
    pub zone: Arc<Zone>,
    pub rules: Arc<CacheRules>,
    /// Not the whole key where a personal request goes past the cache.
    pub key: Vec<u8>,
    pub address: Vec<u8>,
    /// With `cache_shared`.
    pub class: Option<Class>,
    /// What is stored for the request, whether or not it is looked up.
    pub stored: Option<Arc<StoredResponse>>,
    /// What the key's responses vary on.
    pub varies_on: Option<Arc<VarySpec>>,
}

/// What the cache would do for a request that has come to the content of its location.
pub fn outlook(request: &mut Request, configuration: &ActiveConfiguration, pass: &Pass) -> Outlook {
    let of_request = |would, why: Option<Reason>| Outlook {
        would,
        reason: why.map(Known::ByRequest),
        lookup: None,
    };
    let is_off = pass.cache.is_none();
    match policy::plan(request, configuration, pass) {
        CachePlan::Off if is_off => of_request(Would::Nothing, Some(Reason::Off)),
        CachePlan::Off => match request.cache.reason {
            Some(Reason::Method) => of_request(Would::NothingForMethod, request.cache.reason),
            Some(Reason::Body) => of_request(Would::Bypass, request.cache.reason),
            why => of_request(Would::Nothing, why),
        },
        CachePlan::Invalidate(_) => of_request(Would::NothingForMethod, Some(Reason::Method)),
        CachePlan::Purge { .. } => of_request(Would::Purge, Some(Reason::Purge)),
        CachePlan::RefusedPurge(_) => of_request(Would::Nothing, None),
        CachePlan::UnknownZone(name) => of_request(Would::Fail(name), None),
        CachePlan::Use(plan) => of_plan(request, &plan),
    }
}

fn of_plan(request: &mut Request, plan: &Plan<'_>) -> Outlook {
    let (key, now) = (plan.key.as_ref(), Millis(request.now));
    let (stored, mut varies_on, kind) =
        match plan.zone.find_again(&key, &plan.fields(&request.head), now) {
            FoundResponse::Fresh(response) => (Some(response), None, None),
            FoundResponse::NotFresh(found) => {
                let stale = found.stale().map(|(response, _)| response.clone());
                (stale, found.varies_on().cloned(), Some(found.kind))
            }
        };
    if let Some(vary) = stored.as_ref().and_then(|stored| stored.vary.as_ref()) {
        varies_on = Some(vary.spec().clone());
    }
    let past = match plan.bypass {
        None if is_beyond_range_offset(request, plan) => Some(Reason::Range),
        why => why,
    };
    let (would, reason) = match (past, kind) {
        (Some(why), _) => (Would::Bypass, Some(Known::ByRequest(why))),
        (None, None) => (Would::Hit, None),
        (None, Some(kind)) => {
            let reason = why_not_kept(request, plan, &kind, now);
            let would = match kind {
                NotFreshKind::Stale(..) => Would::Stale,
                NotFreshKind::VaryMiss => Would::VaryMiss,
                NotFreshKind::Miss | NotFreshKind::NotShareable(_) => Would::Miss,
            };
            (would, reason)
        }
    };
    Outlook {
        would,
        reason,
        lookup: Some(Lookup {
            zone: plan.zone.clone(),
            rules: plan.rules.clone(),
            key: key.bytes().to_vec(),
            address: address::of_request(&request.host, request.received_target(), plan.rules),
            class: plan.audience.class(),
            stored,
            varies_on,
        }),
    }
}

/// Why the response to a request that is forwarded will not be stored, as far as that is known
/// before it is there.
fn why_not_kept(
    request: &mut Request,
    plan: &Plan<'_>,
    kind: &NotFreshKind,
    now: Millis,
) -> Option<Known> {
    let (zone, key) = (plan.zone, plan.key.as_ref());
    let is_unknown = matches!(kind, NotFreshKind::Miss | NotFreshKind::VaryMiss);
    if is_unknown && zone.uses(&key, now).saturating_add(1) < plan.rules.min_uses {
        return Some(Known::ByMoment(Reason::MinUses));
    }
    if no_store_condition(request, plan.rules) {
        return Some(Known::ByRequest(Reason::Condition));
    }
    let last = zone.last_refusal(&key).filter(|last| match last.why {
        // It was another request's own, unless this one is like it.
        Reason::Authorization => request.head.field("authorization").is_some(),
        Reason::CookieOutsideKey => has_cookie_outside_key(request, plan.rules),
        _ => true,
    });
    if let Some(last) = last {
        return Some(Known::ByLast(last));
    }
    if matches!(kind, NotFreshKind::VaryMiss) && zone.is_full_of_variants(&key) {
        return Some(Known::ByMoment(Reason::TooManyVariants));
    }
    match kind {
        NotFreshKind::NotShareable(why) => Some(Known::ByMoment(*why)),
        _ => None,
    }
}
