//! The client's side of a fetch that its request leads: it begins the fetch, waits for its
//! result, and answers with that.

use std::sync::Arc;

use cache_decision::{FetchRole, Plan, StandIn};
use http_cache::{Leader, Millis, Reason, ServedFrom, StaleReason};
use site::Pass;
use tokio::sync::oneshot;
use tokio::time::timeout;
use transport::client::{ClientSide, unless_gone};
use upstream::Class;

use super::evidence::EvidenceLink;
use super::from_memory::{from_memory, hit, reading, reply_from_memory};
use super::shared;
use super::stale::stale_reason;
use super::step::Step;
use super::store_plan::prepare;
use super::storing::{self, LeaderOutcome};
use super::trials;
use super::tried::TrialSource;
use crate::content::own_visit;
use crate::content::pass::early_hints::EarlyHints;
use crate::content::pass::response::{failed, into_handled};
use crate::exchange::client_facts::ClientFacts;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::request::Request;
use upstream_fetch::FetchError;

/// Leads the fetch and answers with its result.
pub async fn lead_fetch(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    leader: Leader,
    stand_in: StandIn,
) -> Step {
    // Others may wait for this. There is nothing to wait for: who comes here has no body, or
    // one that was read before the key was made (`policy::why_alone`, `policy::asks_by_body`).
    let (mut spec, mut store) = match prepare(request, pass, plan, &leader) {
        Ok(prepared) => prepared,
        Err(status) => return Step::Answer(StageEnd::Status(status)),
    };
    if let FetchRole::Own(run) = &plan.role {
        let source = TrialSource::new(shared::copy_of(request), pass);
        let begin = Box::new(|seen: &_, order, own| trials::begin(seen, source, (order, own)));
        let guest = request.cache.guest.as_ref();
        let marks = guest.map(|guest| guest.marks.clone()).unwrap_or_default();
        let seen = &request.configuration.live.alive_zones.seen_pages;
        store.links.evidence = Some(EvidenceLink::own(
            seen,
            **run,
            (request.received.host(), marks),
            begin,
        ));
    }
    if stand_in.is_there() && spec.class == Class::Visitor {
        spec.class = Class::StaleVisitor;
    }
    let hints = EarlyHints::of(request, client, &mut spec);
    let (to_client, outcome) = oneshot::channel();
    let waits = leader.waiting_request();
    storing::begin(leader, spec, store, Some(to_client));
    let outcome = unless_gone(client.gone(!pass.exchange.ignore_client_abort), outcome);
    let slow = stand_in.for_slow_upstream(Millis(request.now()));
    let outcome = async {
        match hints {
            None => outcome.await,
            Some(hints) => Box::pin(hints.while_waiting(request, &pass.exchange, outcome))
                .await
                .flatten(),
        }
    };
    let outcome = match slow {
        None => outcome.await,
        Some(stored) => match timeout(plan.rules.lock_timeout, Box::pin(outcome)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // The fetch goes on, for those who come next.
                if plan.role == FetchRole::Shared {
                    waits.keep_fetching();
                }
                let handled = from_memory(request, stored, ServedFrom::StaleError);
                return Step::Answer(handled);
            }
        },
    };
    match outcome {
        Some(Ok(outcome)) => answer_leader(request, pass, plan, outcome, &stand_in),
        // The task was dropped: the server is stopping.
        Some(Err(_)) => Step::Answer(StageEnd::Status(502)),
        None => Step::Answer(StageEnd::ClientGone),
    }
}

/// Answers the client whose request leads the fetch.
fn answer_leader(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    outcome: LeaderOutcome,
    stand_in: &StandIn,
) -> Step {
    let now = Millis(clock::now());
    Step::Answer(match outcome {
        LeaderOutcome::Reading(reader) if plan.role != FetchRole::Shared => {
            reading(&request.cache, reader)
        }
        LeaderOutcome::Reading(reader) => {
            request.cache.write(|notes| {
                notes.note_storing();
                if let Some(outcome) = &mut notes.outcome {
                    // While the body still arrives, this is not known yet.
                    outcome.stored = reader.stored().is_some();
                }
            });
            reading(&request.cache, reader)
        }
        LeaderOutcome::Shared(stored) => {
            request.note_time(now.0);
            hit(request, stored)
        }
        LeaderOutcome::Freshened(stored) => {
            request.cache.write(|notes| notes.outcome = None);
            from_memory(request, stored, ServedFrom::Revalidated)
        }
        LeaderOutcome::FreshenedForOne(stored, why, fields) => {
            request.cache.write(|notes| notes.outcome = None);
            let mut reply = reply_from_memory(request, stored, ServedFrom::Revalidated);
            request.cache.write(|notes| notes.reason = Some(why));
            let facts = ClientFacts {
                fields: fields.into_iter().collect(),
                ..ClientFacts::default()
            };
            reply.head.facts = Some(Box::new(facts));
            StageEnd::Reply(reply)
        }
        LeaderOutcome::Private(fetched, why) => {
            request.cache.note_not_stored(why);
            into_handled(request, pass, *fetched, None)
        }
        LeaderOutcome::OfNobody(why) => {
            request.cache.note_not_stored(why);
            return Step::Direct;
        }
        LeaderOutcome::BadStatus(fetched) => {
            match stand_in.response(StaleReason::Status(fetched.status), now) {
                Some(stored) => from_memory(request, stored, ServedFrom::StaleError),
                None => {
                    request.cache.note_not_stored(Reason::Status);
                    into_handled(request, pass, *fetched, None)
                }
            }
        }
        LeaderOutcome::Failed(error) => match stand_in.response(stale_reason(error), now) {
            Some(stored) => from_memory(request, stored, ServedFrom::StaleError),
            None if error == FetchError::LeftOut && request.is_own_visit() => {
                own_visit::note(request, NotAsked::Busy);
                own_visit::NOT_ASKED
            }
            None => {
                request.cache.note_not_stored(Reason::Failed);
                failed(error)
            }
        },
    })
}
