//! Serves a request that the cache had no fresh response for: one step after the other, until one of them answers.

use std::sync::Arc;

use cache_decision::{Action, Decision, FlightPart, Plan, StandIn, after_lookup, in_flight};
use http_cache::{
    AloneReason, FlightEnd, FoundResponse, LaterJoin, Millis, NotFresh, Reason, ServedFrom, Urgency,
};
use site::Pass;
use tokio::time::{Instant, timeout_at};
use transport::client::{ClientSide, unless_gone};

use super::CacheMiss;
use super::following::{answer_follower, wait_for_leader};
use super::from_disk;
use super::from_memory::{from_memory, hit};
use super::leading::lead_fetch;
use super::learned;
use super::proving;
use super::purge_keys::address_of;
use super::refreshing::refresh;
use super::site_variance;
use super::step::Step;
use super::upstream_state::{Upstream, count_left_out_refresh};
use crate::content::own_visit;
use crate::content::pass::turn;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::request::Request;
use crate::log::traces;

/// How often a request starts over: a variant that did not fit, a leader that
/// vanished. Past that it fetches for itself.
const MAX_ROUNDS: usize = 4;

/// Answers through the cache, where it had no fresh answer. `None`: the upstream is asked for this client alone.
pub async fn serve(
    request: &Request,
    pass: &Arc<Pass>,
    miss: CacheMiss<'_>,
    client: &mut ClientSide,
) -> Option<StageEnd> {
    let CacheMiss {
        mut plan,
        decision,
        found,
        coming,
    } = miss;
    let is_shown_stale = matches!(decision.action, Action::ShowStale(..) | Action::Refresh(_));
    if !is_shown_stale && turn::is_crawler(request, pass) {
        plan.urgency = Urgency::Crawl;
    }
    // A visit of the server's own is shown to nobody.
    let is_for_one =
        !request.is_own_visit() && learned::depends_on_address(request, pass, &plan).await;
    let mut step = match (found, coming) {
        _ if is_for_one => {
            request.cache.note_decision(&decision);
            request.cache.note_not_stored(Reason::AddressDatabase);
            Step::unshared(request, &plan)
        }
        (None, _) if matches!(decision.action, Action::Prove) => {
            request.cache.note_decision(&decision);
            Box::pin(proving::prove(request, pass, &mut plan, client)).await
        }
        (None, _) => past(request, &plan, &decision),
        (Some(_), Some(coming)) => match from_disk::wait_for(request, &plan, coming).await {
            Some(reply) => Step::Answer(StageEnd::Reply(reply)),
            None => look_again(request, pass, &mut plan),
        },
        // A visit of the server's own does not wait.
        (Some(found), None) => match !request.is_own_visit() && found.0.decided().await {
            true => look_again(request, pass, &mut plan),
            false => obey(request, pass, &plan, decision, found),
        },
    };
    let began = Instant::now();
    let mut rounds = 1;
    loop {
        step = match step {
            Step::Answer(handled) => return Some(handled),
            Step::Direct => return None,
            Step::Own => {
                let stand_in = proving::stand_in(request, &plan);
                let leader = Step::own_leader(request, &plan, None);
                lead_fetch(request, pass, &plan, client, leader, stand_in).await
            }
            Step::Lead(leader, stand_in) => {
                lead_fetch(request, pass, &plan, client, leader, stand_in).await
            }
            Step::Follow(follower, stand_in) => {
                let wait = traces::begin_wait(request, plan.zone, plan.key.as_ref().bytes());
                let gone = client.gone(!pass.exchange.ignore_client_abort);
                let followed = wait_for_leader(&request.received, &plan, follower, began);
                let followed = unless_gone(gone, followed).await;
                traces::end_wait(request, wait);
                match followed {
                    Some(followed) => answer_follower(request, &plan, followed, &stand_in),
                    None => Step::Answer(StageEnd::ClientGone),
                }
            }
            Step::LookAgain | Step::After(..) if rounds == MAX_ROUNDS => {
                request.note_time(clock::now());
                Step::alone(request, &plan)
            }
            Step::After(earlier, came) => {
                rounds += 1;
                let gone = client.gone(!pass.exchange.ignore_client_abort);
                let lock_timeout = began + plan.rules.lock_timeout;
                let ended = unless_gone(gone, timeout_at(lock_timeout, earlier.ended())).await;
                match ended {
                    Some(ended) => after_earlier(request, &plan, ended.ok(), came),
                    None => Step::Answer(StageEnd::ClientGone),
                }
            }
            Step::LookAgain => {
                rounds += 1;
                match plan.past {
                    // Nothing that is stored may be used.
                    Some(_) => join_later(request, &plan, Millis(clock::now())),
                    None => look_again_once_decided(request, pass, &mut plan).await,
                }
            }
        };
    }
}

/// Goes past the stored response; the new one may be stored all the same.
fn past(request: &Request, plan: &Plan<'_>, decision: &Decision) -> Step {
    request.cache.note_decision(decision);
    match decision.action {
        // A reading of the clock after the request was read.
        Action::CollapseLater => join_later(request, plan, Millis(clock::now())),
        ref action => Step::without_others(request, plan, action),
    }
}

/// The request's part where it may use nothing that began before it came. A visit of the server's own does not wait.
fn join_later(request: &Request, plan: &Plan<'_>, came: Millis) -> Step {
    if request.is_own_visit() {
        return Step::alone(request, plan);
    }
    request.note_time(clock::now());
    let fields = plan.fields(request.received.head());
    let address = address_of(&request.received, plan.rules);
    let join = plan.join_request(&fields, &address, Millis(request.now()));
    match plan.zone.collapse_later(&join, came) {
        LaterJoin::Lead(leader) => Step::Lead(leader, StandIn::NONE),
        LaterJoin::Follow(_) | LaterJoin::After(_) if plan.audience.is_one_request() => {
            Step::alone(request, plan)
        }
        LaterJoin::Follow(follower) => Step::Follow(follower, StandIn::NONE),
        LaterJoin::After(earlier) => Step::After(earlier, came),
        LaterJoin::Alone(AloneReason::NotShareable(why)) => {
            request.cache.note_not_stored(why);
            Step::unshared(request, plan)
        }
        LaterJoin::Alone(AloneReason::TooManyFlights) => Step::alone(request, plan),
    }
}

/// Returns the step after an earlier fetch; `end` is `None` if the fetch took too long.
fn after_earlier(request: &Request, plan: &Plan<'_>, end: Option<FlightEnd>, came: Millis) -> Step {
    match end {
        Some(FlightEnd::Over) => join_later(request, plan, came),
        // The next response will not be shared either.
        Some(FlightEnd::Refused(why)) => {
            request.note_time(clock::now());
            request.cache.note_not_stored(why);
            Step::unshared(request, plan)
        }
        None => {
            request.cache.note_not_stored(Reason::LockTimeout);
            Step::Direct
        }
    }
}

/// Decides about a request that found nothing fresh.
pub fn decide(
    request: &Request,
    pass: &Pass,
    plan: &mut Plan<'_>,
    found: &NotFresh,
) -> (Decision, StandIn) {
    plan.varies_on = found.varies_on().cloned();
    if plan.varies_on.is_none() && plan.audience.class().is_some() {
        plan.varies_on = site_variance::known(plan.zone, request);
    }
    let now = Millis(request.now());
    let stand_in = StandIn::of(found, plan.rules, now);
    let decision = after_lookup(plan, found, &stand_in, &Upstream { request, pass }, now);
    (decision, stand_in)
}

/// Looks once more when the guard of what is stored has decided whether it may be shown.
pub async fn look_again_once_decided(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &mut Plan<'_>,
) -> Step {
    let (key, now) = (plan.key.as_ref(), Millis(clock::now()));
    let fields = plan.fields(request.received.head());
    if let FoundResponse::NotFresh(found) = plan.zone.find_again(&key, &fields, now) {
        found.decided().await;
    }
    look_again(request, pass, plan)
}

/// Looks once more, uncounted: the response that the request has waited for was of no use to it.
fn look_again(request: &Request, pass: &Arc<Pass>, plan: &mut Plan<'_>) -> Step {
    request.note_time(clock::now());
    let (key, now) = (plan.key.as_ref(), Millis(request.now()));
    match plan
        .zone
        .find_again(&key, &plan.fields(request.received.head()), now)
    {
        FoundResponse::Fresh(stored) => Step::Answer(hit(request, stored)),
        FoundResponse::NotFresh(found) => {
            let (decision, stand_in) = decide(request, pass, plan, &found);
            obey(request, pass, plan, decision, (found, stand_in))
        }
    }
}

/// The step that was decided on: a stale answer, a fetch, or waiting for another's.
fn obey(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    decision: Decision,
    (found, stand_in): (NotFresh, StandIn),
) -> Step {
    request.cache.note_decision(&decision);
    match decision.action {
        Action::ShowStale(stored, served) => {
            if served == ServedFrom::StaleUpdating {
                count_left_out_refresh(request, pass);
            }
            Step::Answer(from_memory(request, stored, served))
        }
        Action::Refresh(stored) => Step::Answer(refresh(request, pass, plan, &found, stored)),
        Action::Validate(stored) => Step::validate(request, plan, stored),
        Action::Collapse => join(request, plan, &found, stand_in),
        action => Step::without_others(request, plan, &action),
    }
}

/// The request's part: to lead a fetch, to follow one, or to go alone.
fn join(request: &Request, plan: &Plan<'_>, found: &NotFresh, stand_in: StandIn) -> Step {
    let fields = plan.fields(request.received.head());
    let address = address_of(&request.received, plan.rules);
    let now = Millis(request.now());
    let join = plan
        .zone
        .collapse(&plan.join_request(&fields, &address, now), found);
    match in_flight(join, &plan.audience, &stand_in, request.is_own_visit(), now) {
        FlightPart::Lead(leader) => Step::Lead(leader, stand_in),
        FlightPart::Follow(follower) => Step::Follow(follower, stand_in),
        // A reading of the clock after the request was read.
        FlightPart::After(earlier) => Step::After(earlier, Millis(clock::now())),
        FlightPart::Hit(stored) => Step::Answer(hit(request, stored)),
        FlightPart::LookAgain => Step::LookAgain,
        FlightPart::ShowStale(stored) => {
            Step::Answer(from_memory(request, stored, ServedFrom::StaleUpdating))
        }
        FlightPart::Without(action, why) => {
            if let Some(why) = why {
                request.cache.note_not_stored(why);
            }
            Step::without_others(request, plan, &action)
        }
        FlightPart::Busy => {
            own_visit::note(request, NotAsked::Busy);
            Step::Answer(own_visit::NOT_ASKED)
        }
    }
}
