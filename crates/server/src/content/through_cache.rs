//! Requests that the cache has a say in: answer from memory, lead a fetch that
//! everybody reads, follow one, or go alone.
//!
//! ```text
//! look up ── fresh ───────────────────────────────► stored response
//!    │ ───── stale, may be shown while refreshed ─► stored response (refresh in the background)
//!    └ miss ─ join ─ lead ── head may be shared ──► read along while it is stored
//!                 │       └─ may not be shared ───► the fetch is handed to this client
//!                 ├ follow ─ head arrived ────────► read along
//!                 │        └ not shareable ───────► fetch alone
//!                 └ alone ────────────────────────► fetch alone, store if it may be
//! ```
//!
//! A led fetch runs in a task of its own: it belongs to the cache and goes on
//! when the client leaves (`storing`).

pub mod cookies;
mod following;
mod from_memory;
mod leading;
pub mod policy;
pub mod purge;
mod refreshing;
mod request_fields;
mod shared;
mod stale;
mod storability;
mod store_plan;
mod storing;
mod storing_policy;
mod variables;

use std::sync::Arc;

use http_cache::{
    Alone, Forward, Join, JoinRequest, KeyRef, Lookup, Millis, NoStore, Outcome, Served,
};
use site::Pass;
use tokio::time::Instant;

pub use variables::VARIABLES;

use crate::base::clock;
use crate::content::pass::direct::direct;
use crate::exchange::handled::Handled;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::transport::client::ClientSide;

use following::follow;
use from_memory::{hit, reply_from_memory};
use leading::{fetch_unshared, go_alone, lead_for};
use policy::Plan;
use refreshing::serve_while_refreshing;

/// How often a request starts over: a variant that did not fit, a leader that
/// vanished. Past that it fetches for itself.
const MAX_ROUNDS: usize = 4;

/// Answers through the cache.
pub async fn serve(
    request: &mut Request,
    pass: &Arc<Pass>,
    mut plan: Plan<'_>,
    client: &mut ClientSide,
) -> Handled {
    if plan.bypass.is_some() || is_beyond_range_offset(request, &plan) {
        request.cache.reason = plan.bypass;
        request.cache.outcome = Some(forwarded(Forward::Bypass));
        if plan.never_store || plan.bypass.is_none() {
            return direct(request, pass, client).await;
        }
        return go_alone(request, pass, &plan, client).await;
    }
    if plan.rules.min_uses > 1 {
        let uses = plan
            .zone
            .count_use(&KeyRef::new(&plan.key), Millis(request.now));
        plan.uses = uses;
        if uses < plan.rules.min_uses && is_unknown(request, &plan) {
            // Not to be stored, so there is nothing for others in it.
            request.cache.outcome = Some(forwarded(Forward::UriMiss));
            request.cache.reason = Some(NoStore::MinUses.word());
            return direct(request, pass, client).await;
        }
    }
    let began = Instant::now();
    for _ in 0..MAX_ROUNDS {
        match round(request, pass, &plan, client, began).await {
            Some(handled) => return handled,
            None => request.now = clock::now(),
        }
    }
    go_alone(request, pass, &plan, client).await
}

/// The answer, where memory has a fresh one.
#[inline]
pub fn fresh(request: &mut Request, plan: &Plan<'_>) -> Option<Box<Reply>> {
    if plan.bypass.is_some() || is_beyond_range_offset(request, plan) {
        return None;
    }
    let key = KeyRef::new(&plan.key);
    match plan
        .zone
        .lookup(&key, &plan.fields(request), Millis(request.now))
    {
        Lookup::Fresh(stored) => Some(reply_from_memory(request, stored, Served::Fresh)),
        _ => None,
    }
}

/// Is nothing stored under the key?
fn is_unknown(request: &Request, plan: &Plan<'_>) -> bool {
    let (key, now) = (KeyRef::new(&plan.key), Millis(request.now));
    let found = plan.zone.lookup(&key, &plan.fields(request), now);
    matches!(found, Lookup::Miss | Lookup::VaryMiss)
}

fn forwarded(reason: Forward) -> Outcome {
    Outcome {
        fwd: Some(reason),
        ..Outcome::default()
    }
}

fn is_beyond_range_offset(request: &Request, plan: &Plan<'_>) -> bool {
    let Some(limit) = plan.rules.max_range_offset else {
        return false;
    };
    let Some(range) = request.head.field("range") else {
        return false;
    };
    let start = range.strip_prefix(b"bytes=").and_then(|spec| {
        let digits = spec.split(|&byte| byte == b'-').next()?;
        std::str::from_utf8(digits).ok()?.trim().parse::<u64>().ok()
    });
    start.is_none_or(|start| start >= limit)
}

/// One round of looking and waiting; `None` where it has to start over.
async fn round(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    began: Instant,
) -> Option<Handled> {
    let now = Millis(request.now);
    let key = KeyRef::new(&plan.key);
    let mut stale = None;
    let mut reason = Forward::UriMiss;
    match plan.zone.lookup(&key, &plan.fields(request), now) {
        Lookup::Fresh(stored) => return Some(hit(request, stored)),
        Lookup::Stale(stored, info) => {
            if let Some(handled) = serve_while_refreshing(request, pass, plan, &stored, &info) {
                return Some(handled);
            }
            stale = Some((stored, info));
            reason = Forward::Stale;
        }
        Lookup::NotShareable(why) => {
            request.cache.reason = Some(why.word());
            request.cache.outcome = Some(Outcome {
                no_store: Some(why),
                ..forwarded(Forward::Miss)
            });
            return Some(fetch_unshared(request, pass, plan, client).await);
        }
        Lookup::VaryMiss => reason = Forward::VaryMiss,
        Lookup::Miss => {}
    }
    request.cache.outcome = Some(forwarded(reason));
    if !plan.rules.lock && stale.is_none() {
        return Some(go_alone(request, pass, plan, client).await);
    }
    let joined = plan.zone.join(&JoinRequest {
        key,
        fields: &plan.fields(request),
        now,
        lock_age: Some(plan.rules.lock_age),
        group: plan.session,
    });
    match joined {
        Join::Fresh(stored) => Some(hit(request, stored)),
        Join::Alone(Alone::NotShareable(why)) => {
            request.cache.reason = Some(why.word());
            Some(fetch_unshared(request, pass, plan, client).await)
        }
        Join::Alone(Alone::TooManyFlights) => Some(go_alone(request, pass, plan, client).await),
        Join::Lead(leader) => Some(lead_for(request, pass, plan, client, leader, stale).await),
        Join::Follow(follower) => follow(request, pass, plan, client, follower, stale, began).await,
    }
}
