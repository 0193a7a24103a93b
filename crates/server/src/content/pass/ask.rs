//! Upstreams are asked here: past the cache, through it, or with a purge of the pages that the request
//! changes.

use std::sync::Arc;

use http_cache::{Millis, Reason};
use site::Pass;
use transport::client::ClientSide;

use super::UpstreamPlan;
use super::direct::direct;
use super::page_fetch;
use super::response::of_cache;
use crate::content::purging::{again, durable, on_nodes};
use crate::content::through_cache;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::log::error_log;
use crate::log::purge_log::PurgeInterface;

/// Answers with the upstream's response, through the cache if the location has one.
pub async fn ask(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: UpstreamPlan<'_>,
    client: &mut ClientSide,
) -> StageEnd {
    if request.fragments.get().is_some()
        && let Err(refused) = page_fetch::take_turn(request, pass).await
    {
        return refused;
    }
    let miss = match plan {
        UpstreamPlan::ThroughCache(miss) => miss,
        UpstreamPlan::Direct => return direct(request, pass, client, None).await,
        UpstreamPlan::Invalidate(invalidation) => {
            let handled = direct(request, pass, client, Some(invalidation.zone)).await;
            if let StageEnd::Reply(reply) = &handled
                && (200..400).contains(&reply.head.status)
            {
                invalidation.carry_out(Millis(clock::now()));
                // Said in the log where they are not.
                let (configuration, door) =
                    (request.configuration.shared(), PurgeInterface::Response);
                let zones = std::slice::from_ref(invalidation.zone);
                let _ = durable::confirmed(configuration, zones, door).await;
                let _ = on_nodes::confirmed(configuration, door).await;
                if let Some(time) = again::after(&request.configuration) {
                    invalidation.repeat_after(time);
                }
            }
            return handled;
        }
    };
    let key = &mut request.cache.key;
    key.clear();
    key.extend_from_slice(miss.plan.key.as_ref().bytes());
    let began = clock::now();
    let served = Box::pin(through_cache::miss::serve(request, pass, *miss, client)).await;
    let handled = match served {
        Some(handled) => handled,
        None => direct(request, pass, client, None).await,
    };
    if let Some(reason) = request.cache.reason().filter(|why| *why != Reason::Failed) {
        let took = clock::now().saturating_sub(began);
        error_log::not_stored(request, reason.word(), took);
    }
    match handled {
        StageEnd::Reply(reply) => of_cache(request, pass, reply),
        handled => handled,
    }
}
