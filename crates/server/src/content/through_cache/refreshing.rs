//! Stale responses that are shown while a request refreshes them.

use std::sync::Arc;

use cache_decision::Plan;
use http_cache::{Millis, NotFresh, ServedFrom, StoredResponse};
use site::Pass;

use super::from_memory::from_memory;
use super::purge_keys::address_of;
use super::store_plan::prepare;
use super::storing;
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
