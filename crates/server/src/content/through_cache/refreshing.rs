//! Stale responses that are shown while somebody refreshes them.

use std::sync::Arc;

use http_cache::{
    JoinRequest, KeyRef, Millis, Served, StaleInfo, StaleReason, StoredResponse, may_serve_stale,
};
use site::Pass;

use super::from_memory::from_memory;
use super::policy::Plan;
use super::store_plan::prepare;
use super::storing::lead;
use super::storing_policy::use_stale;
use crate::content::pass::fetch_log::count_left_out;
use crate::exchange::handled::Handled;
use crate::exchange::request::Request;

/// A stale response that may be shown while somebody refreshes it. Starts the
/// refresh where nobody has.
pub fn serve_while_refreshing(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    stored: &Arc<StoredResponse>,
    info: &StaleInfo,
) -> Option<Handled> {
    let allowed = use_stale(plan.rules);
    let is_full = plan
        .rules
        .queue_stale
        .is_some_and(|bound| queue_length(request, pass) > bound);
    if is_full && may_serve_stale(StaleReason::QueueFull, &allowed, info) {
        return Some(from_memory(request, stored.clone(), Served::StaleError));
    }
    // The response's own stale-while-revalidate always refreshes in the background.
    let in_background =
        plan.rules.background_update || info.past_expiry < info.stale_while_revalidate;
    if !in_background || !may_serve_stale(StaleReason::Updating, &allowed, info) {
        return None;
    }
    if leaves_out_refresh(request, pass) {
        return Some(from_memory(request, stored.clone(), Served::StaleUpdating));
    }
    let leader = plan.zone.begin_refresh(&JoinRequest {
        key: KeyRef::new(&plan.key),
        fields: &plan.fields(request),
        now: Millis(request.now),
        lock_age: Some(plan.rules.lock_age),
        group: plan.session,
    });
    let served = match leader {
        Some(leader) => {
            if let Ok((spec, store)) = prepare(request, pass, plan, &leader) {
                request.extras.refresh = Some(tokio::spawn(lead(leader, spec, store, None)));
            }
            Served::StaleRefreshing
        }
        None => Served::StaleUpdating,
    };
    Some(from_memory(request, stored.clone(), served))
}

/// Has the upstream no room for another refresh? That is so in a crowd at a large store: the
/// next visitor's request may find room. Nothing is put together for a refresh that would
/// not be sent.
fn leaves_out_refresh(request: &Request, pass: &Pass) -> bool {
    let site::PassTarget::Group(id) = &pass.target else {
        return false;
    };
    let group = &request.configuration.live.groups[id.0].group;
    let leaves_out = group.leaves_out_refreshes();
    if leaves_out {
        count_left_out(&request.configuration, request.settings(), group);
    }
    leaves_out
}

fn queue_length(request: &Request, pass: &Pass) -> usize {
    match &pass.target {
        site::PassTarget::Group(id) => request.configuration.live.groups[id.0].group.queue_length(),
        site::PassTarget::Variable(_) => 0,
    }
}
