//! Foresees the cache's decision for a request. Counts nowhere, and asks no upstream.

use std::sync::Arc;

use cache_decision::{
    Decision, ForeseenReason, Foresight, Plan, SharedPage, StoringFacts, UseCount, foresee,
    foresee_refusal,
};
use http_cache::{Millis, Reason, StoredResponse, VarySpec, Zone};
use page_evidence::Standing;
use shared_request::{Class, Trait};
use site::{CacheRules, Pass};

use super::cookies::has_cookie_outside_key;
use super::policy::{self, CachePlan};
use super::purge_keys::address_of;
use super::storability::no_store_condition;
use super::upstream_state::Upstream;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::request::Request;
use crate::exchange::view::View;

/// The decision that the cache would make, and why.
pub struct Outlook {
    pub decision: Decision,
    /// Why it would have no part in the response, or could not keep it, as far as that is known.
    pub reason: Option<ForeseenReason>,
    /// The lookup that would be made; `None` if there would be none.
    pub lookup: Option<Lookup>,
    /// The name of the zone comes from variables, and there is no zone of this name.
    pub unknown_zone: Option<String>,
}

/// The zone, key and page of a request's lookup.
pub struct Lookup {
    pub zone: Arc<Zone>,
    pub rules: Arc<CacheRules>,
    /// Not the whole key where a personal request goes past the cache.
    pub key: Vec<u8>,
    pub address: Vec<u8>,
    /// The class of the visitor, with `cache_shared`.
    pub class: Option<Class>,
    /// The stored response for the request, whether or not it is looked up.
    pub stored: Option<Arc<StoredResponse>>,
    /// The fields that responses of the key vary on.
    pub varies_on: Option<Arc<VarySpec>>,
    /// With `cache_shared`: the page, and whether this visitor may be shown the shared answer.
    pub page: Option<(SharedPage, Standing)>,
}

/// Foresees the cache's decision for a request that has reached the content of its location.
pub fn outlook(request: &mut Request, configuration: &ActiveConfiguration, pass: &Pass) -> Outlook {
    let (decision, unknown_zone) = match policy::plan(request, configuration, pass) {
        CachePlan::Use(plan) => {
            request.cache.view = View::Cache(plan.rules.clone());
            let outlook = of_plan(request, pass, plan);
            request.cache.view = View::Plain;
            return outlook;
        }
        CachePlan::NoLookup(decision, _) => (decision, None),
        CachePlan::UnknownZone(name) => (Decision::NO_ZONE, Some(name)),
    };
    Outlook {
        reason: decision.reason.map(ForeseenReason::ByRequest),
        decision,
        lookup: None,
        unknown_zone,
    }
}

fn of_plan(request: &Request, pass: &Pass, mut plan: Plan<'_>) -> Outlook {
    let count = match request.is_to_be_stored() && !request.is_dry() {
        true => UseCount::Waived,
        false => UseCount::Foreseen,
    };
    let Foresight {
        decision,
        stored,
        varies_on,
    } = foresee(
        &mut plan,
        request.received.head(),
        &Upstream { request, pass },
        (count, Millis(request.now())),
    );
    let mut facts = Facts {
        rules: plan.rules,
        request,
    };
    let reason = foresee_refusal(&plan, &decision, &mut facts);
    let standing = match plan.past.as_ref().and_then(|past| past.reason) {
        Some(Reason::Unproven) => Standing::Unproven,
        Some(Reason::NotShareable) => Standing::NotShareable,
        Some(Reason::Cookie) => Standing::Depends(Trait::Session),
        Some(Reason::Depends) => Standing::Depends(Trait::Hints),
        _ => Standing::Shared,
    };
    let page = plan.shared.as_deref().map(|page| (*page, standing));
    Outlook {
        decision,
        reason,
        lookup: Some(Lookup {
            zone: plan.zone.clone(),
            rules: plan.rules.clone(),
            address: address_of(&request.received, plan.rules),
            class: plan.audience.class(),
            key: plan.key.into_bytes(),
            stored,
            varies_on,
            page,
        }),
        unknown_zone: None,
    }
}

struct Facts<'a> {
    rules: &'a Arc<CacheRules>,
    request: &'a Request,
}

impl StoringFacts for Facts<'_> {
    fn is_not_to_be_stored(&mut self) -> bool {
        no_store_condition(self.request, self.rules)
    }

    fn is_authorized(&self) -> bool {
        self.request
            .received
            .head()
            .field("authorization")
            .is_some()
    }

    fn has_cookie_outside_key(&mut self) -> bool {
        has_cookie_outside_key(self.request, self.rules)
    }
}
