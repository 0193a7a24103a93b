//! Stale responses that are shown while a request refreshes them.

use std::sync::Arc;

use cache_decision::{Plan, UpstreamFacts};
use http_cache::{Millis, NotFresh, ServedFrom, StoredResponse};
use site::{Pass, PassTarget};
use upstream::Group;

use super::from_memory::from_memory;
use super::purge_keys::address_of;
use super::store_plan::prepare;
use super::storing;
use crate::content::pass::fetch_log::count_left_out;
use crate::content::pass::turn;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::log::traces;

/// Shows a stale response, and starts its refresh where none is under way.
pub fn refresh(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    found: &NotFresh,
    stored: Arc<StoredResponse>,
) -> StageEnd {
    let fields = plan.fields(request.received.head());
    let address = address_of(&request.received, plan.rules);
    let join = plan.join_request(&fields, &address, Millis(request.now()));
    let served = match plan.zone.refresh(&join, found) {
        Some(leader) => {
            if let Ok((spec, mut store)) = prepare(request, pass, plan, &leader) {
                traces::in_background(&request.values, store.links.trace.as_deref_mut());
                let background = storing::Background::Refresh;
                let begun = storing::begin_in_background(leader, spec, store, background);
                request
                    .values
                    .write(|values| values.later.refresh = Some(begun));
            }
            ServedFrom::StaleRefreshing
        }
        None => ServedFrom::StaleUpdating,
    };
    from_memory(request, stored, served)
}

/// The upstream of a request, as decisions ask for it.
pub struct Upstream<'a> {
    pub request: &'a Request,
    pub pass: &'a Pass,
}

impl Upstream<'_> {
    fn group(&self) -> Option<&Group> {
        match &self.pass.target {
            PassTarget::Group(id) => Some(&self.request.configuration.live.groups[id.0].group),
            PassTarget::Variable(_) => None,
        }
    }
}

impl UpstreamFacts for Upstream<'_> {
    fn queue_length(&self) -> usize {
        self.group().map_or(0, |group| group.queue_length())
    }

    fn is_crawler_in_the_way(&self) -> bool {
        self.queue_length() > 0 && turn::looks_like_crawler(self.request, self.pass)
    }

    fn leaves_out_refresh(&self) -> bool {
        self.group()
            .is_some_and(|group| group.leaves_out_refreshes())
    }
}

/// Counts a refresh that was left out. Nothing was put together for it.
pub fn count_left_out_refresh(request: &Request, pass: &Pass) {
    if let Some(group) = (Upstream { request, pass }).group() {
        count_left_out(&request.configuration, request.settings(), group);
    }
}
