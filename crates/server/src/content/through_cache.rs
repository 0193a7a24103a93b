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

mod storing;
mod variables;

use std::sync::Arc;

use bytes::Bytes;
use http_cache::{
    Alone, Followed, Forward, Join, JoinRequest, KeyRef, Leader, Lookup, Millis, NoStore, Outcome,
    Reader, Served, StaleInfo, StaleReason, StoredHead, StoredResponse, UseStale, may_serve_stale,
};
use site::Pass;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use upstream::Class;

pub use variables::VARIABLES;

use crate::base::clock;
use crate::content::early_hints::EarlyHints;
use crate::content::pass as passed;
use crate::content::policy;
use crate::content::policy::Plan;
use crate::content::shared;
use crate::exchange::handled::Handled;
use crate::exchange::reply::{Body, Reply, ReplyHead, StoredFrom};
use crate::exchange::request::Request;
use crate::transport::client::{ClientSide, unless_gone};
use crate::upstreams::fetch;
use crate::upstreams::fetch::{FetchError, Fetched};

use storing::{LeaderOutcome, lead, prepare};

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
            return passed::direct(request, pass, client).await;
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
            return passed::direct(request, pass, client).await;
        }
    }
    let began = Instant::now();
    for _ in 0..MAX_ROUNDS {
        match round(request, pass, &plan, client, began).await {
            Round::Done(handled) => return handled,
            Round::Again => request.now = clock::now(),
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

enum Round {
    Done(Handled),
    Again,
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

async fn round(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    began: Instant,
) -> Round {
    let now = Millis(request.now);
    let key = KeyRef::new(&plan.key);
    let mut stale = None;
    let mut reason = Forward::UriMiss;
    match plan.zone.lookup(&key, &plan.fields(request), now) {
        Lookup::Fresh(stored) => return Round::Done(hit(request, stored)),
        Lookup::Stale(stored, info) => {
            if let Some(handled) = serve_while_refreshing(request, pass, plan, &stored, &info) {
                return Round::Done(handled);
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
            return Round::Done(ask_for_oneself(request, pass, plan, client).await);
        }
        Lookup::VaryMiss => reason = Forward::VaryMiss,
        Lookup::Miss => {}
    }
    request.cache.outcome = Some(forwarded(reason));
    if !plan.rules.lock && stale.is_none() {
        return Round::Done(go_alone(request, pass, plan, client).await);
    }
    let joined = plan.zone.join(&JoinRequest {
        key,
        fields: &plan.fields(request),
        now,
        lock_age: Some(plan.rules.lock_age),
        group: plan.session,
    });
    match joined {
        Join::Fresh(stored) => Round::Done(hit(request, stored)),
        Join::Alone(Alone::NotShareable(why)) => {
            request.cache.reason = Some(why.word());
            Round::Done(ask_for_oneself(request, pass, plan, client).await)
        }
        Join::Alone(Alone::TooManyFlights) => {
            Round::Done(go_alone(request, pass, plan, client).await)
        }
        Join::Lead(leader) => {
            Round::Done(lead_for(request, pass, plan, client, leader, stale).await)
        }
        Join::Follow(follower) => follow(request, pass, plan, client, follower, stale, began).await,
    }
}

/// A stale response that may be shown while somebody refreshes it. Starts the
/// refresh where nobody has.
fn serve_while_refreshing(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    stored: &Arc<StoredResponse>,
    info: &StaleInfo,
) -> Option<Handled> {
    let allowed = policy::use_stale(plan.rules);
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
        fetch::note_left_out(&request.configuration, request.settings(), group);
    }
    leaves_out
}

fn queue_length(request: &Request, pass: &Pass) -> usize {
    match &pass.target {
        site::PassTarget::Group(id) => request.configuration.live.groups[id.0].group.queue_length(),
        site::PassTarget::Variable(_) => 0,
    }
}

fn hit(request: &mut Request, stored: Arc<StoredResponse>) -> Handled {
    from_memory(request, stored, Served::Fresh)
}

fn from_memory(request: &mut Request, stored: Arc<StoredResponse>, served: Served) -> Handled {
    Handled::Reply(reply_from_memory(request, stored, served))
}

/// A stored response as a reply.
fn reply_from_memory(
    request: &mut Request,
    stored: Arc<StoredResponse>,
    served: Served,
) -> Box<Reply> {
    let now = Millis(request.now);
    let collapsed = request
        .cache
        .outcome
        .as_ref()
        .is_some_and(|outcome| outcome.collapsed);
    request.cache.outcome = Some(Outcome {
        served,
        collapsed,
        fwd: (served == Served::Revalidated).then_some(Forward::Stale),
        ttl_secs: Some(stored.head.ttl_secs(now)),
        ..Outcome::default()
    });
    note_age(request, &stored.head, now);
    Reply::of_stored(stored)
}

fn note_age(request: &mut Request, head: &StoredHead, now: Millis) {
    request.cache.age = Some(head.current_age(now).as_secs());
    if request.configuration.site.http.uses_cache_last_modified {
        request.cache.last_modified = head.last_modified().map(Bytes::copy_from_slice);
    }
}

/// A response that is arriving, read by this client like by all others.
fn reading(request: &mut Request, reader: Reader) -> Handled {
    let stored = reader.head().clone();
    request.cache.age = Some(0);
    Handled::Reply(Box::new(Reply {
        head: ReplyHead {
            content_length: stored.declared_length,
            ..ReplyHead::of_stored(StoredFrom::Arriving(stored))
        },
        body: Body::Filling(Box::new(reader)),
    }))
}

async fn lead_for(
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
    let watched = client
        .stream()
        .filter(|_| !pass.exchange.ignore_client_abort);
    let asked_at = Millis(request.now);
    let allowed = policy::use_stale(plan.rules);
    let slow = stale
        .as_ref()
        .filter(|(_, info)| stands_in_for_slow(&allowed, info))
        .map(|(stored, _)| stored.clone());
    let led = unless_gone(watched, led);
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
                return passed::direct(request, pass, client).await;
            }
            passed::into_handled(request, pass, *fetched)
        }
        Ok(LeaderOutcome::BadStatus(fetched)) => {
            match may_stand_in(StaleReason::Status(fetched.status)) {
                Some(stored) => from_memory(request, stored, Served::StaleError),
                None => passed::into_handled(request, pass, *fetched),
            }
        }
        Ok(LeaderOutcome::Failed(error)) => match may_stand_in(stale_reason(error)) {
            Some(stored) => from_memory(request, stored, Served::StaleError),
            None => passed::failed(error),
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
        | NoStore::Surplus
        | NoStore::Purged => false,
    };
    let shared = plan.rules.shared.as_ref();
    is_for_one
        // A flood for addresses that are not there is not to cost twice.
        && fetched.status < 400
        && shared.is_some_and(|rules| shared::leaves_something_out(request, rules))
}

/// With `cache_stale`, an upstream that takes longer than others wait for a leader does not keep
/// up: may this copy be shown meanwhile?
fn stands_in_for_slow(allowed: &UseStale, info: &StaleInfo) -> bool {
    allowed.bounds.is_some() && may_serve_stale(StaleReason::Timeout, allowed, info)
}

fn note_not_stored(request: &mut Request, why: NoStore) {
    request.cache.reason = Some(why.word());
    if let Some(outcome) = &mut request.cache.outcome {
        outcome.no_store = Some(why);
    }
}

fn stale_reason(error: FetchError) -> StaleReason {
    match error {
        FetchError::Timeout => StaleReason::Timeout,
        FetchError::InvalidHeader => StaleReason::InvalidHeader,
        FetchError::Overloaded | FetchError::LeftOut => StaleReason::QueueFull,
        FetchError::Status(status) => StaleReason::Status(status),
        FetchError::Error
        | FetchError::NoLiveUpstreams
        | FetchError::Local
        | FetchError::Client(_) => StaleReason::Error,
    }
}

async fn follow(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    mut follower: http_cache::Follower,
    stale: Option<(Arc<StoredResponse>, StaleInfo)>,
    began: Instant,
) -> Round {
    let allowed = policy::use_stale(plan.rules);
    if let Some((stored, info)) = &stale
        && may_serve_stale(StaleReason::Updating, &allowed, info)
    {
        return Round::Done(from_memory(request, stored.clone(), Served::StaleUpdating));
    }
    let followed = wait(request, plan, &mut follower, began).await;
    drop(follower);
    let asked_at = Millis(request.now);
    request.now = clock::now();
    let waited = Millis(request.now).since(asked_at);
    if let Some(outcome) = &mut request.cache.outcome {
        outcome.collapsed = true;
    }
    match followed {
        Ok(Followed::Streaming(reader)) => {
            if let Some(outcome) = &mut request.cache.outcome {
                outcome.served = Served::Fresh;
            }
            Round::Done(reading(request, reader))
        }
        Ok(Followed::Complete(stored)) => Round::Done(hit(request, stored)),
        Ok(Followed::NotShareable(why)) => {
            note_not_stored(request, why);
            Round::Done(ask_for_oneself(request, pass, plan, client).await)
        }
        Ok(Followed::VaryMismatch | Followed::LeftOut) => Round::Again,
        Ok(Followed::Failed(status)) => match stale {
            Some((stored, info))
                if may_serve_stale(StaleReason::Error, &allowed, &info.after(waited)) =>
            {
                Round::Done(from_memory(request, stored, Served::StaleError))
            }
            // What the leader could not get, its followers do not ask for again.
            _ if status == 503 => Round::Done(passed::failed(FetchError::Overloaded)),
            _ => Round::Done(Handled::Status(status)),
        },
        Err(OutOfPatience::WithLeader) => Round::Again,
        Err(OutOfPatience::Altogether) => match stale {
            Some((stored, info)) if stands_in_for_slow(&allowed, &info.after(waited)) => {
                Round::Done(from_memory(request, stored, Served::StaleError))
            }
            // Fetch, but leave storing to the leader.
            _ => Round::Done(passed::direct(request, pass, client).await),
        },
    }
}

/// Why a follower waits no longer.
enum OutOfPatience {
    /// `*_cache_lock_age`: somebody else may lead; we look whether we may.
    WithLeader,
    /// `*_cache_lock_timeout`
    Altogether,
}

/// Waits for the leader. While it stands in line for the upstream both clocks stand
/// still: to fetch for oneself would be to stand further back in the same line.
async fn wait(
    request: &Request,
    plan: &Plan<'_>,
    follower: &mut http_cache::Follower,
    began: Instant,
) -> Result<Followed, OutOfPatience> {
    let fields = plan.fields(request);
    let rules = plan.rules;
    loop {
        let progress = follower.last_progress();
        let sent = progress.map_or_else(Instant::now, clock::instant_of);
        let altogether = began.max(sent) + rules.lock_timeout;
        let with_leader = sent + rules.lock_age;
        let deadline = altogether.min(with_leader);
        if let Ok(followed) = timeout_at(deadline, follower.wait(&fields)).await {
            return Ok(followed);
        }
        if progress.is_none() || progress != follower.last_progress() {
            continue;
        }
        return Err(match altogether <= with_leader {
            true => OutOfPatience::Altogether,
            false => OutOfPatience::WithLeader,
        });
    }
}

/// Fetches what is known not to be shared. With `cache_shared` the visitor's own request is
/// forwarded then, whole: what comes of it is stored for nobody.
async fn ask_for_oneself(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
) -> Handled {
    match plan.shared {
        None => go_alone(request, pass, plan, client).await,
        Some(_) => passed::direct(request, pass, client).await,
    }
}

/// Fetches without waiting for others; what may be shared is stored.
async fn go_alone(
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
