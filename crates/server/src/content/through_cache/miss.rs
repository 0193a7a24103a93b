//! What becomes of a request that the cache had no fresh answer for: one step after the other, until
//! one of them answers.

use std::sync::Arc;

use cache_decision::Plan;
use cache_decision::StandIn;
use cache_decision::address;
use http_cache::{
    AloneReason, Forward, FoundResponse, Join, Millis, NotFresh, NotFreshKind, Outcome, Reason,
    ServedFrom, StaleReason,
};
use site::Pass;
use tokio::time::Instant;
use transport::client::{ClientSide, unless_gone};

use super::CacheMiss;
use super::following::{answer_follower, wait_for_leader};
use super::from_memory::{from_memory, hit, note_not_stored};
use super::leading::lead_fetch;
use super::refreshing::serve_while_refreshing;
use super::site_variance;
use super::step::Step;
use crate::content::own_visit;
use crate::content::pass::direct::direct;
use crate::exchange::handled::Handled;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::request::Request;
use crate::log::traces;

/// How often a request starts over: a variant that did not fit, a leader that
/// vanished. Past that it fetches for itself.
const MAX_ROUNDS: usize = 4;

/// Answers through the cache, where it had no fresh answer.
pub async fn serve(
    request: &mut Request,
    pass: &Arc<Pass>,
    miss: CacheMiss<'_>,
    client: &mut ClientSide,
) -> Handled {
    let CacheMiss { mut plan, found } = miss;
    let mut step = match found {
        None => bypass(request, &plan),
        Some(found) => first_step(request, pass, &mut plan, &found),
    };
    let began = Instant::now();
    let mut rounds = 1;
    loop {
        step = match step {
            Step::Answer(handled) => return handled,
            Step::Direct => return direct(request, pass, client, None).await,
            Step::Lead(leader, stand_in) => {
                lead_fetch(request, pass, &plan, client, leader, stand_in).await
            }
            Step::Follow(follower, stand_in) => {
                let wait = traces::begin_wait(request, plan.zone, plan.key.as_ref().bytes());
                let gone = client.gone(!pass.exchange.ignore_client_abort);
                let followed = wait_for_leader(request, &plan, follower, began);
                let followed = unless_gone(gone, followed).await;
                traces::end_wait(request, wait);
                match followed {
                    Some(followed) => answer_follower(request, &plan, followed, &stand_in),
                    None => Step::Answer(Handled::ClientGone),
                }
            }
            Step::LookAgain if rounds == MAX_ROUNDS => {
                request.now = clock::now();
                Step::alone(request, &plan)
            }
            Step::LookAgain => {
                rounds += 1;
                look_again(request, pass, &mut plan)
            }
        };
    }
}

/// Goes past what is stored; the response may be stored all the same.
fn bypass(request: &mut Request, plan: &Plan<'_>) -> Step {
    // Without another reason, what is asked for begins too far back (`look_up`).
    request.cache.reason = Some(plan.bypass.unwrap_or(Reason::Range));
    request.cache.outcome = Some(forwarded(Forward::Bypass));
    match plan.never_store || plan.bypass.is_none() {
        true => Step::Direct,
        false => Step::alone(request, plan),
    }
}

/// The step after the request's lookup.
fn first_step(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &mut Plan<'_>,
    found: &NotFresh,
) -> Step {
    if request.is_to_be_stored() {
        // It is asked for to be stored.
        plan.uses = plan.rules.min_uses;
    } else if plan.rules.min_uses > 1 {
        let now = Millis(request.now);
        plan.uses = plan.zone.count_use(&plan.key.as_ref(), now);
        let is_unknown = matches!(found.kind, NotFreshKind::Miss | NotFreshKind::VaryMiss);
        if plan.uses < plan.rules.min_uses && is_unknown {
            // Not to be stored, so there is nothing for others in it.
            request.cache.outcome = Some(forwarded(Forward::UriMiss));
            note_not_stored(request, Reason::MinUses);
            return Step::Direct;
        }
    }
    step_after(request, pass, plan, found)
}

/// Looks once more, uncounted: what the request has waited for was of no use to it.
fn look_again(request: &mut Request, pass: &Arc<Pass>, plan: &mut Plan<'_>) -> Step {
    request.now = clock::now();
    let (key, now) = (plan.key.as_ref(), Millis(request.now));
    match plan.zone.find_again(&key, &plan.fields(&request.head), now) {
        FoundResponse::Fresh(stored) => Step::Answer(hit(request, stored)),
        FoundResponse::NotFresh(found) => step_after(request, pass, plan, &found),
    }
}

/// The step after a lookup that `found` nothing fresh: a stale answer, a fetch, or waiting for
/// another's.
fn step_after(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &mut Plan<'_>,
    found: &NotFresh,
) -> Step {
    request.cache.reason = None;
    plan.varies_on = found.varies_on().cloned();
    if plan.varies_on.is_none() && plan.audience.class().is_some() {
        plan.varies_on = site_variance::known(plan.zone, request);
    }
    if let NotFreshKind::NotShareable(why) = found.kind {
        request.cache.outcome = Some(forwarded(found.forward()));
        note_not_stored(request, why);
        return Step::unshared(request, plan);
    }
    let now = Millis(request.now);
    let stand_in = StandIn::of(found, plan.rules, now);
    if let Some(handled) = serve_while_refreshing(request, pass, plan, found, &stand_in) {
        return Step::Answer(handled);
    }
    request.cache.outcome = Some(forwarded(found.forward()));
    if matches!(found.kind, NotFreshKind::VaryMiss)
        && plan.zone.is_full_of_variants(&plan.key.as_ref())
    {
        // It is stored, and another has to leave for it: perhaps this one left for another.
        note_not_stored(request, Reason::TooManyVariants);
    }
    if !plan.rules.lock && found.stale().is_none() {
        return Step::alone(request, plan);
    }
    match collapse(request, plan, found) {
        Join::Lead(leader) => Step::Lead(leader, stand_in),
        Join::Follow(follower) => match stand_in.response(StaleReason::Updating, now) {
            Some(stored) => Step::Answer(from_memory(request, stored, ServedFrom::StaleUpdating)),
            // To wait would give the fetch a visitor's turn.
            None if request.is_own_visit() => {
                own_visit::note(request, NotAsked::Busy);
                Step::Answer(own_visit::NOT_ASKED)
            }
            None => Step::Follow(follower, stand_in),
        },
        Join::Fresh(stored) => Step::Answer(hit(request, stored)),
        Join::Alone(AloneReason::NotShareable(why)) => {
            note_not_stored(request, why);
            Step::unshared(request, plan)
        }
        Join::Alone(AloneReason::TooManyFlights) => Step::alone(request, plan),
    }
}

/// The request's part: to lead a fetch, to follow one, or to go alone.
fn collapse(request: &Request, plan: &Plan<'_>, found: &NotFresh) -> Join {
    let (fields, address) = (
        plan.fields(&request.head),
        address::of_request(&request.host, request.received_target(), plan.rules),
    );
    let join = plan.join_request(&fields, &address, Millis(request.now));
    plan.zone.collapse(&join, found)
}

fn forwarded(reason: Forward) -> Outcome {
    Outcome {
        fwd: Some(reason),
        ..Outcome::default()
    }
}
