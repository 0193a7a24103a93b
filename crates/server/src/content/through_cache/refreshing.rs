//! Stale responses that are shown while somebody refreshes them.

use std::sync::Arc;

use cache_decision::Plan;
use cache_decision::StandIn;
use cache_decision::address;
use http_cache::{Millis, NotFresh, ServedFrom, StaleReason};
use site::Pass;

use super::from_memory::from_memory;
use super::store_plan::prepare;
use super::storing::fetch_and_store;
use crate::content::pass::fetch_log::count_left_out;
use crate::exchange::handled::Handled;
use crate::exchange::request::Request;
use crate::log::traces;

/// A stale response that may be shown while somebody refreshes it. Starts the
/// refresh where nobody has.
pub fn serve_while_refreshing(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    found: &NotFresh,
    stand_in: &StandIn,
) -> Option<Handled> {
    let (_, info) = found.stale()?;
    let now = Millis(request.now);
    let is_full = plan
        .rules
        .queue_stale
        .is_some_and(|bound| queue_length(request, pass) > bound);
    if is_full && let Some(stored) = stand_in.response(StaleReason::QueueFull, now) {
        return Some(from_memory(request, stored, ServedFrom::StaleError));
    }
    // The response's own stale-while-revalidate always refreshes in the background, and so does a
    // purge that only marks it stale.
    let in_background = plan.rules.background_update
        || info.is_purged
        || info.past_expiry < info.stale_while_revalidate;
    if !in_background {
        return None;
    }
    let stored = stand_in.response(StaleReason::Updating, now)?;
    if leaves_out_refresh(request, pass) {
        return Some(from_memory(request, stored, ServedFrom::StaleUpdating));
    }
    let (fields, address) = (
        plan.fields(&request.head),
        address::of_request(&request.host, request.received_target(), plan.rules),
    );
    let join = plan.join_request(&fields, &address, Millis(request.now));
    let served = match plan.zone.refresh(&join, found) {
        Some(leader) => {
            if let Ok((spec, mut store)) = prepare(request, pass, plan, &leader) {
                traces::in_background(request, store.trace.as_deref_mut());
                request.extras.refresh =
                    Some(tokio::spawn(fetch_and_store(leader, spec, store, None)));
            }
            ServedFrom::StaleRefreshing
        }
        None => ServedFrom::StaleUpdating,
    };
    Some(from_memory(request, stored, served))
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
