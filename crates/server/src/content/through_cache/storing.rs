//! A fetch that the cache leads: what is asked, whether the response may be stored,
//! and storing it while others read. It runs in a task of its own, whether or not
//! the client that began it still waits; what that client gets of it is [`LeaderOutcome`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{
    CacheKey, KeyRef, Leader, Millis, NoStore, Policy, PurgeMode, PurgeTarget, Pushed, Reader,
    RequestFacts, ResponseFacts, ResponseHead, StaleReason, Storable, StoredResponse, Zone,
    may_serve_stale,
};
use site::{LogLevel, Pass, Protocol};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use upstream::Class;

use crate::base::clock;
use crate::content::pass as passed;
use crate::content::pass::Asked;
use crate::content::policy;
use crate::content::policy::Plan;
use crate::content::proxy;
use crate::content::shared;
use crate::content::shared::Fields;
use crate::content::slice::Wanted;
use crate::exchange::request::{Method, Request};
use crate::log::error_log;
use crate::upstreams::fetch;
use crate::upstreams::fetch::{FetchError, FetchSpec, Fetched};

use super::stale_reason;

/// How long it is remembered that a page may not be shared, so that private
/// pages do not queue behind each other.
const REMEMBER_NOT_SHAREABLE: Duration = Duration::from_secs(5);
/// How long after a failed refresh the next is tried; stale copies are shown
/// meanwhile. Short, since it is how late we notice that PHP is back.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);
/// How long, all in all, the readers of one response that is too large to store wait for the
/// slowest of them: a client that does not read shall not keep others from reading.
const PATIENCE_WITH_SLOWEST: Duration = Duration::from_secs(10);
/// How often it is looked whether they still do, once that is over.
const LOOK_AT_SLOWEST: Duration = Duration::from_millis(100);

/// What became of a led fetch, for the client that began it.
pub enum LeaderOutcome {
    Reading(Reader),
    Freshened(Arc<StoredResponse>),
    /// For this client alone.
    Private(Box<Fetched>, NoStore),
    /// The upstream answered with a status that stale copies stand in for.
    BadStatus(Box<Fetched>),
    Failed(FetchError),
}

/// What the storing side of a fetch needs to know; outlives the client.
pub struct StorePlan {
    zone: Arc<Zone>,
    key: CacheKey,
    policy: Policy,
    /// The head that the upstream is sent, or that was received where fields go as they are.
    head: http1::RequestHead,
    /// With `cache_shared`: the fields in it that tell variants apart.
    varied: Option<Vec<String>>,
    /// `private` and `no-store` count although `Cache-Control` is to be ignored.
    minds_private: bool,
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
    fn fields(&self) -> Fields<'_> {
        match &self.varied {
            None => Fields::Received(&self.head),
            Some(varied) => Fields::Sent(&self.head, varied),
        }
    }

    /// Was the application sent a preference that one visitor has and others have not? An
    /// application that refuses the Origin of one says nothing of the others.
    fn has_sent_preferences(&self) -> bool {
        let mut varied = self.varied.iter().flatten();
        varied.any(|name| self.head.field(name).is_some())
    }

    /// Adds the preferences that the application was sent to what the response varies on.
    /// One response has named them; this one may say nothing of it (a redirect that the
    /// language chose), and was shaped by them all the same.
    fn name_what_was_sent(&self, fields: &mut Cow<'_, [(Bytes, Bytes)]>) {
        let Some(varied) = self.varied.as_ref().filter(|varied| !varied.is_empty()) else {
            return;
        };
        let names = Bytes::from(varied.join(","));
        fields.to_mut().push((Bytes::from_static(b"vary"), names));
    }

    /// May the stale copy stand in for a fetch that failed like this? Then those who ask next
    /// need not wait to learn of it.
    fn stands_in(&self, leader: &Leader, why: StaleReason, now: Millis) -> bool {
        let Some(stale) = leader.stale() else {
            return false;
        };
        let info = self.zone.stale_info(stale, now);
        let stands_in = info.is_some_and(|info| may_serve_stale(why, &self.allowed, &info));
        if stands_in {
            stale.note_failure(now);
        }
        stands_in
    }

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

    /// How long a refusal counts for everybody's requests of the same key: not
    /// at all where the reason is this very request. Otherwise one visitor who
    /// is logged in would keep all others from a new copy.
    fn remembered_for(&self, why: NoStore) -> Duration {
        if self.is_bypass
            || self.has_sent_preferences()
            || matches!(
                why,
                NoStore::Condition | NoStore::CookieOutsideKey | NoStore::Authorization
            )
        {
            return Duration::ZERO;
        }
        REMEMBER_NOT_SHAREABLE
    }
}

/// Puts together what a fetch for the cache asks, and what is to be done with its
/// response.
pub fn prepare(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    leader: &Leader,
) -> Result<(FetchSpec, StorePlan), u16> {
    let validating = leader
        .stale()
        .filter(|_| plan.rules.revalidate)
        .filter(|stored| matches!(stored.head.status, 200 | 206))
        .filter(|stored| stored.head.etag().is_some() || stored.head.last_modified().is_some());
    let asked = Asked {
        for_cache: true,
        as_get: plan.rules.convert_head,
        validating: validating.map(|stored| &**stored),
        deadline: None,
    };
    let varied = plan.shared.map(|_| varied_fields(plan, leader));
    let mut made = request_for_cache(request, pass, plan, varied.as_deref())?;
    let sent = made.as_deref_mut().unwrap_or(request);
    let mut spec = passed::spec(sent, pass, &asked)?;
    let head = sent.head.clone();
    if let (Some(_), Some(context)) = (&made, Arc::get_mut(&mut spec.context)) {
        // The log tells of the visitor's request.
        context.origin = error_log::origin(request);
        context.trace = request.trace().clone();
    }
    drop(made);
    // What is asked once the response is there.
    let asks_later = !plan.rules.no_cache.is_empty()
        || pass.exchange.limit_rate.as_constant().is_none() && !pass.exchange.limit_rate.is_empty();
    let slice = Wanted::by(request);
    let minds_private = pass.exchange.ignored_fields.cache_control
        && plan.shared.is_none()
        && policy::has_cookie_outside_key(request, plan);
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
                ..policy::storing_policy(plan, &pass.exchange)
            },
            head,
            varied,
            minds_private,
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

/// The fields that responses for the plan's key have named in `Vary`, as far as they may be
/// sent: by those that are stored, or by one that is arriving.
fn varied_fields(plan: &Plan<'_>, leader: &Leader) -> Vec<String> {
    let spec = leader
        .varies_on()
        .or_else(|| plan.zone.vary_spec(&KeyRef::new(&plan.key)));
    let names = spec.iter().flat_map(|spec| spec.names());
    names
        .filter(|name| shared_request::varied::may_be_sent(name))
        .cloned()
        .collect()
}

/// The request that is sent in the place of the visitor's, where it is another one.
fn request_for_cache(
    request: &Request,
    pass: &Pass,
    plan: &Plan<'_>,
    varied: Option<&[String]>,
) -> Result<Option<Box<Request>>, u16> {
    let made = match (&plan.rules.shared, plan.shared, varied) {
        (Some(rules), Some(class), Some(varied)) => {
            shared::request_for(request, rules, class, varied)
        }
        _ if plan.rules.overlooks_something() => {
            shared::without_what_does_not_count(request, plan.rules)
        }
        _ => return Ok(None),
    };
    let mut made = made.ok_or(500u16)?;
    if let Protocol::Http(proxy) = &pass.protocol {
        proxy::settle_url(&mut made, &pass.target, proxy);
    }
    Ok(Some(made))
}

/// Fetches, decides what may be done with the response, and stores it while
/// others read. Runs to its end whether or not anybody waits for it.
pub async fn lead(
    leader: Leader,
    mut spec: FetchSpec,
    mut store: StorePlan,
    client: Option<oneshot::Sender<LeaderOutcome>>,
) {
    let in_background = client.is_none();
    let tell = |led: LeaderOutcome| {
        if let Some(client) = client {
            // The client may have left; the response is stored all the same.
            let _ = client.send(led);
        }
    };
    if in_background {
        spec.class = Class::Refresh;
    }
    spec.progress = Some(leader.progress());
    let mut fetched = match fetch::fetch(&mut spec).await {
        Ok(fetched) => fetched,
        Err(FetchError::LeftOut) => {
            leader.left_out();
            return tell(LeaderOutcome::Failed(FetchError::LeftOut));
        }
        Err(error) => {
            store.stands_in(&leader, stale_reason(error), Millis(clock::now()));
            if in_background {
                // Until the flight ends nobody else begins a refresh.
                tokio::time::sleep(REFRESH_PAUSE).await;
            }
            leader.failed_as(error.status());
            return tell(LeaderOutcome::Failed(error));
        }
    };
    if let Some(request) = &mut store.request {
        fetched.body.set_rate(passed::rate(request, &store.pass));
    }
    let now = Millis(clock::now());
    if fetched.status == 304 && store.is_validating {
        return freshen(leader, fetched, &spec, &store, now, tell);
    }
    if store.allowed.statuses.contains(&fetched.status)
        && store.stands_in(&leader, StaleReason::Status(fetched.status), now)
    {
        leader.failed();
        return tell(LeaderOutcome::BadStatus(Box::new(fetched)));
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
            tell(LeaderOutcome::Private(Box::new(fetched), why));
        }
        Ok(storable) => {
            let fields: Vec<(Bytes, Bytes)> = std::mem::take(&mut fetched.fields)
                .into_iter()
                .filter(|(name, _)| is_kept(name, &store))
                .collect();
            if http1::status::is_usual(fetched.status, &fetched.reason) {
                // It is written anyway.
                fetched.reason = Bytes::new();
            }
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
            tell(LeaderOutcome::Reading(filling.reader()));
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
    tell: impl FnOnce(LeaderOutcome),
) {
    let Some(stale) = leader.stale().cloned() else {
        leader.failed();
        return tell(LeaderOutcome::Failed(FetchError::InvalidHeader));
    };
    if fetched.body.has_surplus() {
        // Nothing that it says is kept, its fields as little as a body would be.
        log_not_stored(spec, NoStore::Surplus);
        leader.not_shareable(NoStore::Surplus, Duration::ZERO, now);
        return tell(LeaderOutcome::Freshened(stale));
    }
    // What the 304 does not repeat holds as it was stored (RFC 9111 §4.3.4).
    let mut merged: Cow<'_, [(Bytes, Bytes)]> = stale
        .head
        .fields
        .freshened(&fetched.fields)
        .pairs()
        .collect();
    store.name_what_was_sent(&mut merged);
    let facts = ResponseFacts {
        status: stale.head.status,
        fields: &merged,
        declared_length: None,
    };
    let decided = http_cache::decide(
        &request_facts(store, &store.fields(), false),
        &facts,
        &store.policy,
        // Fields are dated by the wall clock, here and elsewhere.
        clock::wall_millis(now),
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
            Ok(stored) => tell(LeaderOutcome::Freshened(stored)),
            Err(_) => tell(LeaderOutcome::Freshened(stale)),
        },
        Err(why) => {
            // Still what the upstream stands by, though not for keeping.
            leader.not_shareable(why, Duration::ZERO, now);
            tell(LeaderOutcome::Freshened(stale));
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
    if store.minds_private && is_for_one_visitor(&fetched.fields) {
        return Err(NoStore::CookieOutsideKey);
    }
    let condition = match (&mut store.request, &store.pass.cache) {
        (Some(request), Some(rules)) => {
            let rules = rules.clone();
            request.view = crate::exchange::view::View::Cache(rules.clone());
            policy::is_any_true(request, &rules.no_cache)
        }
        _ => false,
    };
    let mut fields = match store.is_private {
        true => Cow::Owned(sharing_within_a_session(&fetched.fields)),
        false => Cow::Borrowed(&fetched.fields[..]),
    };
    store.name_what_was_sent(&mut fields);
    let facts = ResponseFacts {
        status: fetched.status,
        fields: &fields,
        declared_length: fetched.content_length,
    };
    http_cache::decide(
        &request_facts(store, &store.fields(), condition),
        &facts,
        &store.policy,
        // Fields are dated by the wall clock, here and elsewhere.
        clock::wall_millis(now),
    )
}

/// Does Cache-Control say that the response is for one visitor?
fn is_for_one_visitor(fields: &[(Bytes, Bytes)]) -> bool {
    let values = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"))
        .map(|(_, value)| &value[..]);
    let said = http_cache::CacheControl::parse(values);
    said.private || said.no_store
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
    let mut deadline = PATIENCE_WITH_SLOWEST;
    loop {
        match fetched.body.next().await {
            Ok(Some(bytes)) => match filling.push(bytes, Millis(clock::now())) {
                Pushed::Kept => {}
                Pushed::TooLarge => {
                    let began = Instant::now();
                    let longest = deadline.max(LOOK_AT_SLOWEST);
                    while timeout(longest, filling.room()).await.is_err() {
                        filling.break_off_slowest();
                    }
                    deadline = deadline.saturating_sub(began.elapsed());
                }
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
            Err(fetch::Truncated) => return filling.fail(),
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
