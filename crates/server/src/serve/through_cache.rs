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
//! when the client leaves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{
    Alone, CacheKey, Followed, Forward, Join, JoinRequest, KeyRef, Leader, Lookup, Millis, NoStore,
    Outcome, Policy, PurgeMode, PurgeTarget, Pushed, Reader, RequestFacts, ResponseFacts,
    ResponseHead, Served, StaleInfo, StaleReason, Storable, StoredHead, StoredResponse, Zone,
    may_serve_stale,
};
use site::{CacheRules, LogLevel, Pass};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::client::{ClientSide, unless_gone};
use crate::clock;
use crate::fetch::{self, FetchError, FetchSpec, Fetched};
use crate::pipeline::Handled;
use crate::policy::{self, Fields, Plan};
use crate::reply::{Body, Reply, ReplyHead, StoredFrom};
use crate::request::{Method, Request};
use crate::serve::early_hints::EarlyHints;
use crate::serve::pass::{self as passed, Asked};
use crate::serve::slice::Wanted;

/// How long it is remembered that a page may not be shared, so that private
/// pages do not queue behind each other.
const REMEMBER_NOT_SHAREABLE: Duration = Duration::from_secs(5);
/// How often a request starts over: a variant that did not fit, a leader that
/// vanished. Past that it fetches for itself.
const MAX_ROUNDS: usize = 4;
/// How long after a failed refresh the next is tried; stale copies are shown
/// meanwhile. Short, since it is how late we notice that PHP is back.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

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
pub fn fresh(request: &mut Request, plan: &Plan<'_>) -> Option<Handled> {
    if plan.bypass.is_some() || is_beyond_range_offset(request, plan) {
        return None;
    }
    let key = KeyRef::new(&plan.key);
    match plan
        .zone
        .lookup(&key, &Fields(&request.head), Millis(request.now))
    {
        Lookup::Fresh(stored) => Some(hit(request, stored)),
        _ => None,
    }
}

/// Is nothing stored under the key?
fn is_unknown(request: &Request, plan: &Plan<'_>) -> bool {
    let (key, now) = (KeyRef::new(&plan.key), Millis(request.now));
    let found = plan.zone.lookup(&key, &Fields(&request.head), now);
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
    match plan.zone.lookup(&key, &Fields(&request.head), now) {
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
            return Round::Done(go_alone(request, pass, plan, client).await);
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
        fields: &Fields(&request.head),
        now,
        lock_age: Some(plan.rules.lock_age),
        group: plan.session,
    });
    match joined {
        Join::Fresh(stored) => Round::Done(hit(request, stored)),
        Join::Alone(Alone::NotShareable(why)) => {
            request.cache.reason = Some(why.word());
            Round::Done(go_alone(request, pass, plan, client).await)
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
    let leader = plan.zone.begin_refresh(&JoinRequest {
        key: KeyRef::new(&plan.key),
        fields: &Fields(&request.head),
        now: Millis(request.now),
        lock_age: Some(plan.rules.lock_age),
        group: plan.session,
    });
    let served = match leader {
        Some(leader) => {
            if let Ok((spec, store)) = prepare(request, pass, plan, leader.stale()) {
                request.refresh = Some(tokio::spawn(lead(leader, spec, store, None)));
            }
            Served::StaleRefreshing
        }
        None => Served::StaleUpdating,
    };
    Some(from_memory(request, stored.clone(), served))
}

fn queue_length(request: &Request, pass: &Pass) -> usize {
    match &pass.target {
        site::PassTarget::Group(id) => request.runtime.groups[id.0].queue_length(),
        site::PassTarget::Variable(_) => 0,
    }
}

fn hit(request: &mut Request, stored: Arc<StoredResponse>) -> Handled {
    from_memory(request, stored, Served::Fresh)
}

/// A stored response as a reply.
fn from_memory(request: &mut Request, stored: Arc<StoredResponse>, served: Served) -> Handled {
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
        ..Outcome::hit(stored.head.fresh_for(now))
    });
    note_age(request, &stored.head, now);
    let mut head = stored_reply_head(StoredFrom::Response(stored.clone()));
    let length = stored.body.len();
    head.content_length = Some(length);
    head.accepts_ranges = true;
    Handled::Reply(Box::new(Reply {
        head,
        body: Body::Stored {
            response: stored,
            start: 0,
            end: length,
        },
    }))
}

fn note_age(request: &mut Request, head: &StoredHead, now: Millis) {
    request.cache.age = Some(head.current_age(now).as_secs());
    if request.runtime.site.http.uses_cache_last_modified {
        request.cache.last_modified = head.last_modified().map(Bytes::copy_from_slice);
    }
}

fn stored_reply_head(stored: StoredFrom) -> ReplyHead {
    ReplyHead {
        status: stored.status,
        reason: Some(stored.reason.clone()).filter(|reason| !reason.is_empty()),
        content_length: stored.declared_length,
        stored: Some(stored),
        ..ReplyHead::default()
    }
}

/// A response that is arriving, read by this client like by all others.
fn reading(request: &mut Request, reader: Reader) -> Handled {
    let stored = reader.head().clone();
    let mut head = stored_reply_head(StoredFrom::Arriving(stored));
    head.accepts_ranges = true;
    request.cache.age = Some(0);
    Handled::Reply(Box::new(Reply {
        head,
        body: Body::Filling(Box::new(reader)),
    }))
}

/// What became of a led fetch, for the client that began it.
enum Led {
    Reading(Reader),
    Freshened(Arc<StoredResponse>),
    /// For this client alone.
    Private(Box<Fetched>, NoStore),
    /// The upstream answered with a status that stale copies stand in for.
    BadStatus(Box<Fetched>),
    Failed(FetchError),
}

async fn lead_for(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    leader: Leader,
    stale: Option<(Arc<StoredResponse>, StaleInfo)>,
) -> Handled {
    if let Err(status) = passed::take_body(request, pass, client).await {
        return Handled::Status(status);
    }
    let (mut spec, store) = match prepare(request, pass, plan, leader.stale()) {
        Ok(prepared) => prepared,
        Err(status) => return Handled::Status(status),
    };
    let hints = EarlyHints::of(request, client, &mut spec);
    let (to_client, led) = oneshot::channel();
    tokio::spawn(lead(leader, spec, store, Some(to_client)));
    let watched = client
        .stream()
        .filter(|_| !pass.exchange.ignore_client_abort);
    let led = unless_gone(watched, led);
    let led = match hints {
        None => led.await,
        Some(hints) => Box::pin(hints.while_waiting(request, &pass.exchange, led))
            .await
            .flatten(),
    };
    let Some(led) = led else {
        return Handled::ClientGone;
    };
    let allowed = policy::use_stale(plan.rules);
    let may_stand_in = |why| {
        stale
            .as_ref()
            .filter(|(_, info)| may_serve_stale(why, &allowed, info))
            .map(|(stored, _)| stored.clone())
    };
    match led {
        Ok(Led::Reading(reader)) => {
            if let Some(outcome) = &mut request.cache.outcome {
                outcome.stored = true;
            }
            reading(request, reader)
        }
        Ok(Led::Freshened(stored)) => {
            request.cache.outcome = None;
            from_memory(request, stored, Served::Revalidated)
        }
        Ok(Led::Private(fetched, why)) => {
            note_not_stored(request, why);
            passed::into_handled(request, pass, *fetched)
        }
        Ok(Led::BadStatus(fetched)) => match may_stand_in(StaleReason::Status(fetched.status)) {
            Some(stored) => from_memory(request, stored, Served::StaleError),
            None => passed::into_handled(request, pass, *fetched),
        },
        Ok(Led::Failed(error)) => match may_stand_in(stale_reason(error)) {
            Some(stored) => from_memory(request, stored, Served::StaleError),
            None => passed::failed(error),
        },
        // The task was dropped: the server is stopping.
        Err(_) => Handled::Status(502),
    }
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
        FetchError::Overloaded => StaleReason::QueueFull,
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
    let followed = wait(request, plan.rules, &mut follower, began).await;
    drop(follower);
    request.now = clock::now();
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
            Round::Done(go_alone(request, pass, plan, client).await)
        }
        Ok(Followed::VaryMismatch) => Round::Again,
        Ok(Followed::Failed(status)) => match stale {
            Some((stored, info)) if may_serve_stale(StaleReason::Error, &allowed, &info) => {
                Round::Done(from_memory(request, stored, Served::StaleError))
            }
            // What the leader could not get, its followers do not ask for again.
            _ if status == 503 => Round::Done(passed::failed(FetchError::Overloaded)),
            _ => Round::Done(Handled::Status(status)),
        },
        Err(OutOfPatience::WithLeader) => Round::Again,
        // Fetch, but leave storing to the leader.
        Err(OutOfPatience::Altogether) => Round::Done(passed::direct(request, pass, client).await),
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
    rules: &CacheRules,
    follower: &mut http_cache::Follower,
    began: Instant,
) -> Result<Followed, OutOfPatience> {
    let fields = Fields(&request.head);
    loop {
        let progress = follower.last_progress();
        let sent = progress.map_or_else(Instant::now, clock::instant_of);
        let altogether = began.max(sent) + rules.lock_timeout;
        let with_leader = sent + rules.lock_age;
        let patience = altogether.min(with_leader);
        if let Ok(followed) = timeout_at(patience, follower.wait(&fields)).await {
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

/// Fetches without waiting for others; what may be shared is stored.
async fn go_alone(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
) -> Handled {
    let leader = plan.zone.detached(&JoinRequest {
        key: KeyRef::new(&plan.key),
        fields: &Fields(&request.head),
        now: Millis(request.now),
        lock_age: None,
        group: plan.session,
    });
    lead_for(request, pass, plan, client, leader, None).await
}

/// What the storing side of a fetch needs to know; outlives the client.
struct StorePlan {
    zone: Arc<Zone>,
    key: CacheKey,
    policy: Policy,
    head: http1::RequestHead,
    method: &'static [u8],
    uses: u32,
    pass: Arc<Pass>,
    allowed: http_cache::UseStale,
    is_private: bool,
    removes_set_cookie: bool,
    is_validating: bool,
    /// The request went past the cache: its response says nothing about others.
    is_bypass: bool,
    /// The slice that a 206 must be to be stored.
    slice: Option<Wanted>,
    /// For conditions that are read once the response is there.
    request: Option<Box<Request>>,
}

impl StorePlan {
    /// Does a response that may not be stored say that the stale copy is no longer
    /// what this page is? A page that is gone, moved or private now must not be
    /// shown for as long as somebody asks for it. Server errors say nothing of the
    /// page, nor does what concerns one request; a cookie is often set for first
    /// visits only.
    fn outdates(&self, status: u16, why: NoStore) -> bool {
        status < 500
            && !self.is_bypass
            && matches!(
                why,
                NoStore::Status
                    | NoStore::NoStoreDirective
                    | NoStore::NoCache
                    | NoStore::Private
                    | NoStore::VaryStar
                    | NoStore::ZeroLifetime
                    | NoStore::NoLifetime
            )
    }
}

impl StorePlan {
    /// How long a refusal counts for everybody's requests of the same key: not
    /// at all where the reason is this very request. Otherwise one visitor who
    /// is logged in would keep all others from a new copy.
    fn remembered_for(&self, why: NoStore) -> Duration {
        if self.is_bypass || matches!(why, NoStore::Condition | NoStore::Authorization) {
            return Duration::ZERO;
        }
        REMEMBER_NOT_SHAREABLE
    }
}

fn prepare(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    stale: Option<&Arc<StoredResponse>>,
) -> Result<(FetchSpec, StorePlan), u16> {
    let validating = stale
        .filter(|_| plan.rules.revalidate)
        .filter(|stored| matches!(stored.head.status, 200 | 206))
        .filter(|stored| stored.head.etag().is_some() || stored.head.last_modified().is_some());
    let asked = Asked {
        for_cache: true,
        as_get: plan.rules.convert_head,
        validating: validating.map(|stored| &**stored),
        patience: None,
    };
    let spec = passed::spec(request, pass, &asked)?;
    // What is asked once the response is there.
    let asks_later = !plan.rules.no_cache.is_empty()
        || pass.exchange.limit_rate.as_constant().is_none() && !pass.exchange.limit_rate.is_empty();
    let slice = Wanted::by(request);
    let conditions = asks_later.then(|| {
        let mut copy = request.internal();
        copy.trace = Some(request.trace().clone());
        copy
    });
    Ok((
        spec,
        StorePlan {
            zone: plan.zone.clone(),
            key: KeyRef::new(&plan.key).to_owned(),
            policy: Policy {
                stores_partial: slice.is_some(),
                ..policy::storing_policy(plan.rules, &pass.exchange)
            },
            head: request.head.clone(),
            method: if request.method == Method::Post {
                b"POST"
            } else {
                b"GET"
            },
            uses: plan.uses,
            pass: pass.clone(),
            allowed: policy::use_stale(plan.rules),
            is_private: plan.session.is_some(),
            removes_set_cookie: plan.rules.stores_set_cookie,
            is_validating: validating.is_some(),
            is_bypass: plan.bypass.is_some(),
            slice,
            request: conditions,
        },
    ))
}

/// Fetches, decides what may be done with the response, and stores it while
/// others read. Runs to its end whether or not anybody waits for it.
async fn lead(
    leader: Leader,
    mut spec: FetchSpec,
    mut store: StorePlan,
    client: Option<oneshot::Sender<Led>>,
) {
    let in_background = client.is_none();
    let tell = |led: Led| {
        if let Some(client) = client {
            // The client may have left; the response is stored all the same.
            let _ = client.send(led);
        }
    };
    spec.progress = Some(leader.progress());
    let mut fetched = match fetch::fetch(&mut spec).await {
        Ok(fetched) => fetched,
        Err(error) => {
            if in_background {
                // Until the flight ends nobody else begins a refresh.
                tokio::time::sleep(REFRESH_PAUSE).await;
            }
            leader.failed_as(error.status());
            return tell(Led::Failed(error));
        }
    };
    if let Some(request) = &mut store.request {
        fetched.body.set_rate(passed::rate(request, &store.pass));
    }
    let now = Millis(clock::now());
    if fetched.status == 304 && store.is_validating {
        return freshen(leader, fetched, &spec, &store, now, tell);
    }
    if leader.stale().is_some() && store.allowed.statuses.contains(&fetched.status) {
        leader.failed();
        return tell(Led::BadStatus(Box::new(fetched)));
    }
    let decided = match slice_length(&store, &fetched) {
        Ok(length) => {
            fetched.content_length = length;
            decide(&mut store, &fetched, now)
        }
        Err(why) => Err(why),
    };
    match decided {
        Err(why) => {
            let has_stale = leader.stale().is_some();
            let outdates = has_stale && store.outdates(fetched.status, why);
            let remembered = match has_stale && fetched.status >= 500 {
                // It says nothing of the page: the next request asks again.
                true => Duration::ZERO,
                false => store.remembered_for(why),
            };
            leader.not_shareable(why, remembered, now);
            if outdates {
                let target = PurgeTarget::Key(store.key.as_ref());
                store.zone.purge(target, PurgeMode::Hard, now);
            }
            tell(Led::Private(Box::new(fetched), why));
        }
        Ok(storable) => {
            let fields: Vec<(Bytes, Bytes)> = std::mem::take(&mut fetched.fields)
                .into_iter()
                .filter(|(name, _)| is_kept(name, &store))
                .collect();
            let filling = leader.publish_head(
                &ResponseHead {
                    status: fetched.status,
                    reason: &fetched.reason,
                    fields: &fields,
                    declared_length: fetched.content_length,
                },
                &storable,
                now,
            );
            tell(Led::Reading(filling.reader()));
            fill(filling, fetched, &spec).await;
        }
    }
}

fn is_kept(name: &[u8], store: &StorePlan) -> bool {
    passed::is_sent(name, &store.pass.exchange)
        && !(store.removes_set_cookie && name.eq_ignore_ascii_case(b"set-cookie"))
}

fn freshen(
    leader: Leader,
    fetched: Fetched,
    spec: &FetchSpec,
    store: &StorePlan,
    now: Millis,
    tell: impl FnOnce(Led),
) {
    let Some(stale) = leader.stale().cloned() else {
        leader.failed();
        return tell(Led::Failed(FetchError::InvalidHeader));
    };
    if fetched.body.has_surplus() {
        // Nothing that it says is kept, its fields as little as a body would be.
        log_not_stored(spec, NoStore::Surplus);
        leader.not_shareable(NoStore::Surplus, Duration::ZERO, now);
        return tell(Led::Freshened(stale));
    }
    // What the 304 does not repeat holds as it was stored (RFC 9111 §4.3.4).
    let merged: Vec<(Bytes, Bytes)> = stale
        .head
        .fields
        .freshened(&fetched.fields)
        .pairs()
        .collect();
    let facts = ResponseFacts {
        status: stale.head.status,
        fields: &merged,
        declared_length: None,
    };
    let decided = http_cache::decide(
        &request_facts(store, &Fields(&store.head), false),
        &facts,
        &store.policy,
        now,
    );
    let fresher: Vec<(Bytes, Bytes)> = fetched
        .fields
        .iter()
        .filter(|(name, _)| is_kept(name, store))
        .cloned()
        .collect();
    fetched.body.give_up(upstream::Outcome::Success);
    match decided {
        Ok(storable) => match leader.freshen(&fresher, &storable, now) {
            Ok(stored) => tell(Led::Freshened(stored)),
            Err(_) => tell(Led::Freshened(stale)),
        },
        Err(why) => {
            // Still what the upstream stands by, though not for keeping.
            leader.not_shareable(why, Duration::ZERO, now);
            tell(Led::Freshened(stale));
        }
    }
}

fn request_facts<'a>(
    store: &'a StorePlan,
    fields: &'a Fields<'a>,
    no_store_condition: bool,
) -> RequestFacts<'a> {
    RequestFacts {
        method: store.method,
        fields,
        no_store_condition,
        uses: store.uses,
    }
}

/// The length of a body: for a slice what its range says, whether or not there
/// is a Content-Length.
fn slice_length(store: &StorePlan, fetched: &Fetched) -> Result<Option<u64>, NoStore> {
    let declared = fetched.content_length;
    let Some(slice) = store.slice.filter(|_| fetched.status == 206) else {
        return Ok(declared);
    };
    match slice.length(&fetched.fields) {
        Some(length) if declared.is_none_or(|declared| declared == length) => Ok(Some(length)),
        _ => Err(NoStore::Partial),
    }
}

fn decide(store: &mut StorePlan, fetched: &Fetched, now: Millis) -> Result<Storable, NoStore> {
    if passed::accel_redirect(&fetched.fields, &store.pass.exchange).is_some() {
        return Err(NoStore::Condition);
    }
    let condition = match (&mut store.request, &store.pass.cache) {
        (Some(request), Some(rules)) => {
            let rules = rules.clone();
            request.view = crate::request::View::Cache(rules.clone());
            policy::is_any_true(request, &rules.no_cache)
        }
        _ => false,
    };
    let without_private;
    let fields = if store.is_private {
        without_private = sharing_within_a_session(&fetched.fields);
        &without_private
    } else {
        &fetched.fields
    };
    let facts = ResponseFacts {
        status: fetched.status,
        fields,
        declared_length: fetched.content_length,
    };
    http_cache::decide(
        &request_facts(store, &Fields(&store.head), condition),
        &facts,
        &store.policy,
        now,
    )
}

/// A copy for one session may be kept although it is `private`.
fn sharing_within_a_session(fields: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    fields
        .iter()
        .map(|(name, value)| {
            if !name.eq_ignore_ascii_case(b"cache-control") {
                return (name.clone(), value.clone());
            }
            let kept: Vec<&[u8]> = value
                .split(|&byte| byte == b',')
                .map(<[u8]>::trim_ascii)
                .filter(|directive| !directive.eq_ignore_ascii_case(b"private"))
                .collect();
            (name.clone(), Bytes::from(kept.join(&b", "[..])))
        })
        .filter(|(name, value)| !(name.eq_ignore_ascii_case(b"cache-control") && value.is_empty()))
        .collect()
}

async fn fill(mut filling: http_cache::Filling, mut fetched: Fetched, spec: &FetchSpec) {
    loop {
        match fetched.body.next().await {
            Ok(Some(bytes)) => match filling.push(bytes, Millis(clock::now())) {
                Pushed::Kept => {}
                Pushed::TooLarge => filling.room().await,
                Pushed::Unwanted => return filling.fail(),
            },
            Ok(None) => {
                if fetched.body.has_surplus() {
                    filling.share_only(NoStore::Surplus);
                }
                if let Err(why) = filling.complete(Millis(clock::now())) {
                    log_not_stored(spec, why);
                }
                return;
            }
            Err(fetch::BrokenOff) => return filling.fail(),
        }
    }
}

fn log_not_stored(spec: &FetchSpec, why: NoStore) {
    if why == NoStore::MinUses {
        return;
    }
    spec.context.note(
        LogLevel::Info,
        format_args!("response not stored: {}", why.sentence()),
    );
}
