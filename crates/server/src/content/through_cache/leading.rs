//! The client's side of a fetch that its request leads: it begins the fetch, waits for what
//! becomes of it, and answers with that.

use std::sync::Arc;

use http_cache::{
    JoinRequest, KeyRef, Leader, Millis, NoStore, Served, StaleInfo, StaleReason, StoredResponse,
    may_serve_stale,
};
use site::Pass;
use tokio::sync::oneshot;
use tokio::time::timeout;
use upstream::Class;

use super::from_memory::{from_memory, note_not_stored, reading};
use super::policy::Plan;
use super::shared;
use super::stale::{stale_reason, stands_in_for_slow};
use super::store_plan::prepare;
use super::storing::{LeaderOutcome, lead};
use super::storing_policy::use_stale;
use crate::base::clock;
use crate::content::pass::direct::direct;
use crate::content::pass::early_hints::EarlyHints;
use crate::content::pass::response::{failed, into_handled};
use crate::exchange::handled::Handled;
use crate::exchange::request::Request;
use crate::transport::client::{ClientSide, unless_gone};
use crate::upstreams::fetch::Fetched;

/// Leads the fetch and answers with what becomes of it.
pub async fn lead_for(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    leader: Leader,
    stale: Option<(Arc<StoredResponse>, StaleInfo)>,
) -> Handled {
    // Others may wait for this. There is nothing to wait for: who comes here has no body, or
    // one that was read before the key was made (`policy::why_alone`, `policy::asks_by_body`).
    let (mut spec, store) = match prepare(request, pass, plan, &leader) {
        Ok(prepared) => prepared,
        Err(status) => return Handled::Status(status),
    };
    if stale.is_some() && spec.class == Class::Visitor {
        spec.class = Class::StaleVisitor;
    }
    let hints = EarlyHints::of(request, client, &mut spec);
    let (to_client, led) = oneshot::channel();
    tokio::spawn(lead(leader, spec, store, Some(to_client)));
    let gone = client.gone(!pass.exchange.ignore_client_abort);
    let asked_at = Millis(request.now);
    let allowed = use_stale(plan.rules);
    let slow = stale
        .as_ref()
        .filter(|(_, info)| stands_in_for_slow(&allowed, info))
        .map(|(stored, _)| stored.clone());
    let led = unless_gone(gone, led);
    let led = async {
        match hints {
            None => led.await,
            Some(hints) => Box::pin(hints.while_waiting(request, &pass.exchange, led))
                .await
                .flatten(),
        }
    };
    let led = match slow {
        None => led.await,
        Some(stored) => match timeout(plan.rules.lock_timeout, Box::pin(led)).await {
            Ok(led) => led,
            // The fetch goes on, for those who come next.
            Err(_) => return from_memory(request, stored, Served::StaleError),
        },
    };
    let Some(led) = led else {
        return Handled::ClientGone;
    };
    let waited = Millis(clock::now()).since(asked_at);
    let may_stand_in = |why| {
        stale
            .as_ref()
            .filter(|(_, info)| may_serve_stale(why, &allowed, &info.after(waited)))
            .map(|(stored, _)| stored.clone())
    };
    match led {
        Ok(LeaderOutcome::Reading(reader)) => {
            if let Some(outcome) = &mut request.cache.outcome {
                // Of a body that still arrives nobody knows yet.
                outcome.stored = reader.stored().is_some();
            }
            reading(request, reader)
        }
        Ok(LeaderOutcome::Freshened(stored)) => {
            request.cache.outcome = None;
            from_memory(request, stored, Served::Revalidated)
        }
        Ok(LeaderOutcome::Private(fetched, why)) => {
            note_not_stored(request, why);
            if plan.shared.is_some() && is_for_another_request(request, plan, &fetched, why) {
                // The worker that made it may be the only one.
                fetched.body.give_up(upstream::Outcome::Success);
                return direct(request, pass, client).await;
            }
            into_handled(request, pass, *fetched)
        }
        Ok(LeaderOutcome::BadStatus(fetched)) => {
            match may_stand_in(StaleReason::Status(fetched.status)) {
                Some(stored) => from_memory(request, stored, Served::StaleError),
                None => into_handled(request, pass, *fetched),
            }
        }
        Ok(LeaderOutcome::Failed(error)) => match may_stand_in(stale_reason(error)) {
            Some(stored) => from_memory(request, stored, Served::StaleError),
            None => failed(error),
        },
        // The task was dropped: the server is stopping.
        Err(_) => Handled::Status(502),
    }
}

/// With `cache_shared`: was this response, which nobody else will be shown, made without
/// something that the visitor sent? The page is then made again from the visitor's own
/// request, as it is for all who ask while it is known that it cannot be shared. Not where the
/// reason says nothing of the page itself, nor where the upstream failed.
fn is_for_another_request(
    request: &Request,
    plan: &Plan<'_>,
    fetched: &Fetched,
    why: NoStore,
) -> bool {
    let is_for_one = match why {
        NoStore::Condition
        | NoStore::Status
        | NoStore::CookieOutsideKey
        | NoStore::Authorization
        | NoStore::SetCookie
        | NoStore::NoStoreDirective
        | NoStore::NoCache
        | NoStore::Private
        | NoStore::VaryStar
        | NoStore::VaryTooLong
        | NoStore::ZeroLifetime
        | NoStore::NoLifetime => true,
        NoStore::Method
        | NoStore::Partial
        | NoStore::MinUses
        | NoStore::TooLarge
        | NoStore::NoRoom
        | NoStore::Truncated
        | NoStore::ExcessData
        | NoStore::Purged => false,
    };
    let shared = plan.rules.shared.as_ref();
    is_for_one
        // A flood for addresses that are not there is not to cost twice.
        && fetched.status < 400
        && shared.is_some_and(|rules| shared::leaves_something_out(request, rules))
}

/// Fetches what is known not to be shared. With `cache_shared` the visitor's own request is
/// forwarded then, whole: what comes of it is stored for nobody.
pub async fn fetch_unshared(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
) -> Handled {
    match plan.shared {
        None => go_alone(request, pass, plan, client).await,
        Some(_) => direct(request, pass, client).await,
    }
}

/// Fetches without waiting for others; what may be shared is stored.
pub async fn go_alone(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
) -> Handled {
    let leader = plan.zone.detached(&JoinRequest {
        key: KeyRef::new(&plan.key),
        fields: &plan.fields(request),
        now: Millis(request.now),
        lock_age: None,
        group: plan.session,
    });
    lead_for(request, pass, plan, client, leader, None).await
}
