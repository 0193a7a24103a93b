//! A fetch that the cache leads: it asks the upstream, and stores the response while others read. It
//! runs in a task of its own. If all waiting requests leave while it stands in line for the upstream,
//! it ends there; a request that was sent finishes, whether or not a client waits. The client that
//! began it receives a [`LeaderOutcome`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache_decision::PastCache;
use cache_decision::litespeed;
use guest_pages::session;
use http_cache::{
    ArrivingResponse, Leader, Millis, PurgeMode, PurgeTarget, PushResult, Reader, Reason, Refusal,
    ResponseFacts, ResponseHead, StaleReason, Storable, StoredResponse, Tags,
};
use http_semantics::same_name;
use live_state::shared_pages::SharedPage;
use site::LogLevel;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use upstream::Class;

use super::evidence::EvidenceLink;
use super::for_browsers::ForBrowsers;
use super::guest_storing::{self, Unshown, is_for_guests};
use super::learned::LearnedFetch;
use super::site_variance;
use super::stale::stale_reason;
use super::storability::{decide, request_facts, slice_length};
use super::store_plan::{ResponsePrivacy, StorePlan};
use super::stored_charset;
use super::with_cookies;
use crate::content::pass::fetch_spec::rate;
use crate::content::pass::response::is_sent;
use crate::content::purging::by_response;
use recoding::Transcoder;
use upstream_fetch::{FetchError, FetchSpec, FetchedResponse, TruncatedBody};

/// How long after a failed refresh the next is tried; stale copies are shown
/// meanwhile. Short, since it is how late we notice that PHP is back.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);
/// How long, all in all, the readers of one response that is too large to store wait for the
/// slowest of them: a client that does not read shall not keep others from reading.
const WAIT_FOR_SLOWEST: Duration = Duration::from_secs(10);
/// How often it is looked whether they still do, once that is over.
const LOOK_AT_SLOWEST: Duration = Duration::from_millis(100);

/// The result of a fetch, for the client whose request leads it.
pub enum LeaderOutcome {
    Reading(Reader),
    /// Another node has fetched it.
    Shared(Arc<StoredResponse>),
    /// The upstream stands by the stale response.
    Freshened(Arc<StoredResponse>),
    /// It does, and the response is not fresh again for others; why, and fields of the 304 that are
    /// for this client alone.
    FreshenedForOne(Arc<StoredResponse>, Reason, Vec<(Bytes, Bytes)>),
    /// For this client alone.
    Private(Box<FetchedResponse>, Reason),
    /// It begins a session for the shared request, whose tokens the application may refuse from the client.
    OfNobody(Reason),
    /// The upstream answered with a status that stale copies stand in for.
    BadStatus(Box<FetchedResponse>),
    Failed(FetchError),
}

/// Sends the outcome to the client that began the fetch, if one did and still waits. The response is
/// stored all the same.
struct Report(Option<oneshot::Sender<LeaderOutcome>>);

impl Report {
    fn send(self, outcome: LeaderOutcome) {
        if let Some(client) = self.0 {
            let _ = client.send(outcome);
        }
    }
}

/// Whether visitors wait for a fetch that no client leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// A stale copy is shown meanwhile.
    Refresh,
    /// Visitors wait until its answer is compared with another.
    AwaitedByVisitors,
}

/// Begins such a fetch.
pub fn begin_in_background(
    leader: Leader,
    mut spec: FetchSpec,
    store: StorePlan,
    background: Background,
) -> JoinHandle<()> {
    if background == Background::Refresh {
        spec.class = Class::Refresh;
    }
    begin(leader, spec, store, None)
}

/// Begins a task that fetches and stores. In a box, since a task's future of some kilobytes is copied
/// nine times between spawning and the end: a twentieth of a miss.
pub fn begin(
    leader: Leader,
    spec: FetchSpec,
    store: StorePlan,
    client: Option<oneshot::Sender<LeaderOutcome>>,
) -> JoinHandle<()> {
    tokio::spawn(Box::pin(fetch_and_store(leader, spec, store, client)))
}

/// Fetches, decides whether the response may be stored, and stores it while others read. Once the
/// request is sent, this runs to its end, whether or not a client waits.
async fn fetch_and_store(
    mut leader: Leader,
    mut spec: FetchSpec,
    mut store: StorePlan,
    client: Option<oneshot::Sender<LeaderOutcome>>,
) {
    let in_background = client.is_none();
    let report = Report(client);
    let _stays = in_background.then(|| leader.waiting_request());
    let mut evidence = store.links.evidence.take();
    spec.progress = Some(leader.progress());
    // A future of its own, so that others do not pay for it.
    if store.links.sharing.is_some()
        && let Some(stored) = Box::pin(from_another_node(&mut store)).await
    {
        leader.found(&stored);
        return report.send(LeaderOutcome::Shared(stored));
    }
    let mut fetched = match upstream_fetch::fetch(&mut spec).await {
        Ok(fetched) => fetched,
        Err(FetchError::LeftOut) => {
            leader.left_out();
            return report.send(LeaderOutcome::Failed(FetchError::LeftOut));
        }
        Err(error) => {
            if let Some(evidence) = evidence.take() {
                evidence.failed();
            }
            store.stands_in(&leader, stale_reason(error), Millis(clock::now()));
            if spec.class == Class::Refresh {
                // Until the flight ends no other request begins a refresh.
                tokio::time::sleep(REFRESH_PAUSE).await;
            }
            note_refusal(&store, Reason::Failed, error.status());
            leader.failed_as(error.status());
            return report.send(LeaderOutcome::Failed(error));
        }
    };
    leader.note_made_in(fetched.made_in);
    store.note_cookies(&fetched.fields);
    if let Some(robots) = &store.links.robots {
        Box::pin(robots.read_response(&mut fetched)).await;
    }
    if by_response::is_asked(&fetched.fields, &store.pass.exchange)
        && let Some(purge) = &store.purges
    {
        Box::pin(purge.carry_out(&fetched.fields)).await;
    }
    if let Some(request) = &store.request {
        fetched.body.set_rate(rate(request, &store.pass));
    }
    if store.pass.exchange.litespeed {
        with_cookies::note(&store.zone, &store.expected, &fetched.fields);
        litespeed::put_surrogate_control(&mut fetched.fields);
    }
    let now = Millis(clock::now());
    if fetched.status == 304 && store.is_validating {
        return freshen(leader, fetched, &spec, &mut store, now, (report, evidence));
    }
    if store.allowed().statuses.contains(&fetched.status)
        && store.stands_in(&leader, StaleReason::Status(fetched.status), now)
    {
        leader.failed();
        return report.send(LeaderOutcome::BadStatus(Box::new(fetched)));
    }
    let decided = match slice_length(&store, &fetched) {
        Ok(length) => {
            fetched.content_length = length;
            decide(&mut store, &fetched, now)
        }
        Err(why) => Err(why),
    };
    let mut begins_session = false;
    let offer = store.links.offer.take();
    let decided = match decided {
        Ok(storable) => {
            drop(offer);
            Ok(storable)
        }
        Err(why) => match guest_storing::begins_session(&mut store, &fetched, now) {
            Some(storable) => {
                let (link, at_most) = (evidence.as_ref(), store.rules.lock_timeout);
                let trial =
                    guest_storing::is_shared_after_trial(&mut fetched, (link, offer), at_most);
                begins_session = !(in_background && Box::pin(trial).await);
                if begins_session {
                    Err(why)
                } else {
                    Ok(storable)
                }
            }
            None => Err(why),
        },
    };
    let mut learned = store.sent.learned.take();
    let is_shown_to_guests = evidence
        .as_ref()
        .is_some_and(guest_storing::is_shown_to_guests);
    let decided = match decided {
        Ok(storable) if is_for_guests(&store, evidence.as_ref()) => {
            let link = evidence.take();
            if let Some(link) = &link {
                guest_storing::note_defaults(link, &store.sent.guests_host, &fetched.fields);
            }
            match guest_storing::put_shown(&mut spec, &mut fetched, link).await {
                Ok(link) => {
                    evidence = Some(link);
                    Ok(storable)
                }
                Err(Unshown::Unlike) => Err(Reason::SetCookie),
                Err(Unshown::Truncated) => {
                    leader.failed();
                    return report.send(LeaderOutcome::Failed(FetchError::Error));
                }
            }
        }
        decided => decided,
    };
    match decided {
        Ok(storable) => {
            if let Some(learned) = &mut learned {
                learned.read_head(&fetched, storable.said);
            }
            if !is_own_session(&store, &fetched) {
                site_variance::learn(&store, &fetched);
            }
            let tags = named_tags(&store, &fetched.fields);
            let mut for_browsers = ForBrowsers::of(&store, &fetched, &tags);
            if !tags.is_empty() || store.expected.cookies.is_some() {
                for_browsers.put_control(&mut fetched.fields);
            }
            if store.rules.speaks_litespeed() {
                litespeed::put_stored_fields(&mut fetched.fields);
            }
            let transcoder = stored_charset::conversion(&fetched.fields, &store);
            if transcoder.is_some() {
                fetched.content_length = None;
            }
            if let ResponsePrivacy::OfGuests { is_uniform } = store.privacy
                && let Some(evidence) = &mut evidence
            {
                evidence.read_session((fetched.status, &fetched.fields), is_uniform);
            }
            let mut filling = publish(leader, &mut fetched, &store, &storable, now);
            *filling.tags() = tags;
            if let Some(evidence) = &mut evidence
                && evidence.is_own()
            {
                filling.share_only(Reason::Unproven);
                evidence.read_head(&filling, transcoder.is_some());
            }
            report.send(LeaderOutcome::Reading(filling.reader()));
            let plan = (&spec, &store, transcoder);
            let listeners = (for_browsers, learned, evidence);
            let stored = fill(filling, fetched, plan, listeners).await;
            if let (Some(sharing), Some(stored)) = (store.links.sharing.take(), stored) {
                let progress = spec.progress.as_ref();
                let has_followers = progress.is_some_and(|it| it.urgency().is_some());
                Box::pin(sharing.give(&stored, has_followers, now)).await;
            }
        }
        Err(why) => {
            if begins_session {
                leader.not_shareable(why, Duration::ZERO, now);
                note_refusal(&store, why, fetched.status);
                if let Some(evidence) = evidence.take() {
                    evidence.begins_session();
                }
                return report.send(LeaderOutcome::Private(Box::new(fetched), why));
            }
            refuse(leader, fetched.status, &store, why, now);
            if let Some(evidence) = evidence.take() {
                if evidence.is_own() {
                    // The next visitor's own request will be answered like this.
                    let (status, at) = (fetched.status, now);
                    let refusal = Refusal { why, status, at };
                    store.zone.note_refusal(&store.key.as_ref(), refusal);
                }
                let is_of_page = fetched.status < 500 || evidence.is_own();
                match is_of_page {
                    true if store.privacy.is_of_guests() => {
                        evidence.personal(store.place(), (fetched.status, &fetched.fields));
                    }
                    true => evidence.not_storable(store.place()),
                    false => evidence.failed(),
                }
            }
            let is_of_nobody = is_shown_to_guests && session::is_of_session(&fetched.fields);
            report.send(match is_of_nobody {
                true => LeaderOutcome::OfNobody(why),
                false => LeaderOutcome::Private(Box::new(fetched), why),
            });
        }
    }
}

/// Is it an answer that begins a session, and that is no page for others?
fn is_own_session(store: &StorePlan, fetched: &FetchedResponse) -> bool {
    store.privacy.is_of_guests() && session::is_of_session(&fetched.fields)
}

/// The page as another node has fetched it (`cache_nodes_pages`), if one has or does so now.
async fn from_another_node(store: &mut StorePlan) -> Option<Arc<StoredResponse>> {
    let mut sharing = store.links.sharing.take()?;
    let mut stored = None;
    // A page that this node may not use is asked for again: another node may fetch it by now.
    for _ in 0..2 {
        let SharedPage::Page(page) = sharing.take().await else {
            break;
        };
        stored = sharing.promote(&page, &store.fields(), Millis(clock::now()));
        if stored.is_some() {
            break;
        }
    }
    store.links.sharing = Some(sharing);
    stored
}

/// Publishes the head to waiting requests, and begins to store the response.
fn publish(
    leader: Leader,
    fetched: &mut FetchedResponse,
    store: &StorePlan,
    storable: &Storable,
    now: Millis,
) -> ArrivingResponse {
    let fields = kept_fields(std::mem::take(&mut fetched.fields), store, now);
    if http_semantics::status::is_usual(fetched.status, &fetched.reason) {
        // It is written anyway.
        fetched.reason = Bytes::new();
    }
    leader.publish_head(
        &ResponseHead {
            status: fetched.status,
            reason: &fetched.reason,
            fields: &fields,
            declared_length: fetched.content_length,
        },
        storable,
        now,
    )
}

/// The response is for one client alone: others do not wait for it, and a stale response that
/// it proves out of date goes.
fn refuse(leader: Leader, status: u16, store: &StorePlan, why: Reason, now: Millis) {
    let has_stale = leader.stale().is_some();
    let says_nothing = (has_stale || store.past == Some(PastCache::NoLease)) && status >= 500;
    // The result of a visitor's own request is recorded elsewhere.
    let remembered = match says_nothing || store.is_bypass() {
        true => Duration::ZERO,
        false => store.remembered_for(why),
    };
    note_refusal(store, why, status);
    leader.not_shareable(why, remembered, now);
    if has_stale && store.outdates(status, why) {
        let target = PurgeTarget::Key(store.key.as_ref());
        store.zone.purge(target, PurgeMode::Hard, now);
    }
}

/// Returns the fields of a response that are stored, including `Connection`: the cache leaves out the
/// fields that it names. A response without `Date` gets the time at which it came (RFC 9110 §6.6.1).
fn kept_fields(fields: Vec<(Bytes, Bytes)>, store: &StorePlan, now: Millis) -> Vec<(Bytes, Bytes)> {
    let is_called = |name: &Bytes, field: &str| same_name(name, field.as_bytes());
    let charset = stored_charset::named(&fields, store);
    let is_converted = stored_charset::conversion(&fields, store).is_some();
    let mut kept: Vec<(Bytes, Bytes)> = fields
        .into_iter()
        .filter(|(name, _)| is_kept(name, store) || is_called(name, "connection"))
        .collect();
    if is_sent(b"date", &store.pass.exchange)
        && !kept.iter().any(|(name, _)| is_called(name, "date"))
    {
        let seconds = i64::try_from(clock::wall(now.0) / 1000).unwrap_or(i64::MAX);
        let date = http_semantics::date::format(seconds);
        kept.push((Bytes::from_static(b"Date"), Bytes::copy_from_slice(&date)));
    }
    let content_type = kept
        .iter_mut()
        .find(|(name, _)| is_called(name, "content-type"));
    if let (Some((_, value)), Some(charset)) = (content_type, charset)
        && (is_converted || !value.contains(&b';'))
    {
        let media_type = value.split(|&byte| byte == b';').next();
        let media_type = media_type.unwrap_or_default().trim_ascii_end();
        *value = [media_type, b"; charset=", &charset].concat().into();
    }
    kept
}

fn is_kept(name: &[u8], store: &StorePlan) -> bool {
    is_sent(name, &store.pass.exchange)
        && !(store.rules.stores_set_cookie && name.eq_ignore_ascii_case(b"set-cookie"))
}

/// The upstream answered 304: the stale response is fresh again.
fn freshen(
    leader: Leader,
    fetched: FetchedResponse,
    spec: &FetchSpec,
    store: &mut StorePlan,
    now: Millis,
    (report, evidence): (Report, Option<EvidenceLink>),
) {
    let Some(stale) = leader.stale().cloned() else {
        leader.failed();
        return report.send(LeaderOutcome::Failed(FetchError::InvalidHeader));
    };
    if fetched.body.has_excess_data() {
        // Its fields are not stored, just as a body would not be.
        log_not_stored(spec, Reason::ExcessData);
        leader.not_shareable(Reason::ExcessData, Duration::ZERO, now);
        let outcome = LeaderOutcome::FreshenedForOne(stale, Reason::ExcessData, Vec::new());
        return report.send(outcome);
    }
    // Stored fields that the 304 does not repeat remain (RFC 9111 §4.3.4).
    let mut merged = Cow::Owned(stale.fields_after(&fetched.fields));
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
        Millis(clock::wall(now.0)),
    );
    let mut fresher = kept_fields(fetched.fields.clone(), store, now);
    let tags = named_tags(store, &fetched.fields);
    let named = !tags.is_empty();
    if named || stale.tags().next().is_some() {
        ForBrowsers::of(store, &fetched, &tags).put_control(&mut fresher);
    }
    fetched.body.give_up(upstream::Outcome::Success);
    match decided {
        Ok(storable) => match leader.freshen(&fresher, named.then_some(&tags), &storable, now) {
            Ok(stored) => {
                if let Some(learned) = store.sent.learned.take() {
                    learned.freshened(store, &stored);
                }
                if let Some(evidence) = evidence {
                    evidence.storable(store.place(), Some(&stored));
                }
                report.send(LeaderOutcome::Freshened(stored));
            }
            Err(why) => {
                report.send(LeaderOutcome::FreshenedForOne(stale, why, Vec::new()));
            }
        },
        Err(why) => {
            // The upstream still confirms it, though not for keeping.
            leader.not_shareable(why, Duration::ZERO, now);
            if matches!(why, Reason::Private | Reason::NoStoreDirective) && !store.is_bypass() {
                let target = PurgeTarget::Key(store.key.as_ref());
                store.zone.purge(target, PurgeMode::Hard, now);
                if let Some(evidence) = evidence {
                    evidence.not_storable(store.place());
                }
            }
            fresher.retain(|(name, _)| is_of_one_client(name));
            report.send(LeaderOutcome::FreshenedForOne(stale, why, fresher));
        }
    }
}

/// Fields of a 304 that count for the client that asked, whatever is stored (RFC 9111 §4.3.4): its
/// cookies, and its rules for the response.
fn is_of_one_client(name: &[u8]) -> bool {
    const FIELDS: [&str; 3] = ["set-cookie", "cache-control", "expires"];
    FIELDS.iter().any(|field| same_name(name, field.as_bytes()))
}

/// The next bytes of the body, in the charset in which they are stored.
async fn next_bytes(
    fetched: &mut FetchedResponse,
    transcoder: &mut Option<Transcoder>,
) -> Result<Option<Bytes>, TruncatedBody> {
    let bytes = fetched.body.next().await?;
    let Some(conversion) = transcoder else {
        return Ok(bytes);
    };
    if let Some(bytes) = bytes {
        return Ok(Some(conversion.push(&bytes).into()));
    }
    let rest = conversion.finish();
    *transcoder = None;
    Ok((!rest.is_empty()).then(|| Bytes::from_static(rest)))
}

/// The observers of a body while it arrives.
type FillListeners = (ForBrowsers, Option<Box<LearnedFetch>>, Option<EvidenceLink>);

/// Stores the body while it arrives.
async fn fill(
    mut filling: ArrivingResponse,
    mut fetched: FetchedResponse,
    (spec, store, mut transcoder): (&FetchSpec, &StorePlan, Option<Transcoder>),
    (mut for_browsers, mut learned, mut evidence): FillListeners,
) -> Option<Arc<StoredResponse>> {
    let mut deadline = WAIT_FOR_SLOWEST;
    loop {
        match next_bytes(&mut fetched, &mut transcoder).await {
            Ok(Some(bytes)) => {
                for_browsers.read(&bytes);
                if let Some(learned) = &mut learned {
                    learned.read(&bytes);
                }
                if let Some(evidence) = &mut evidence {
                    evidence.read(&bytes);
                }
                match filling.push(bytes, Millis(clock::now())) {
                    PushResult::Kept => {}
                    PushResult::TooLarge => wait_for_slowest(&filling, &mut deadline).await,
                    PushResult::Unwanted => {
                        note_refusal(store, Reason::TooLarge, filling.head().status);
                        filling.fail();
                        return None;
                    }
                }
            }
            Ok(None) => break,
            Err(TruncatedBody) => {
                note_refusal(store, Reason::Truncated, filling.head().status);
                filling.fail();
                return None;
            }
        }
    }
    if fetched.body.has_excess_data() {
        filling.share_only(Reason::ExcessData);
    }
    add_late_tags(&mut filling, &fetched, store);
    if !filling.tags().is_empty() {
        for_browsers.put_late(&mut filling);
    }
    if filling.tags().checked().is_err() {
        log_too_many_tags(spec);
    }
    let status = filling.head().status;
    // Compared before its visitor is shown the end: whoever asks after that may see no older answer.
    if let Some(evidence) = evidence.take_if(|evidence| evidence.is_own()) {
        match filling.refusal() {
            Some(Reason::Unproven) => evidence.storable(store.place(), None),
            Some(Reason::TooLarge) => evidence.not_storable(store.place()),
            _ => {}
        }
    }
    let stored = filling.complete(Millis(clock::now()));
    if let Some(evidence) = evidence {
        match &stored {
            Ok(stored) => evidence.storable(store.place(), Some(stored)),
            Err(Reason::TooLarge | Reason::NoRoom) => evidence.not_storable(store.place()),
            Err(_) => {}
        }
    }
    match &stored {
        Ok(stored) => {
            if let Some(learned) = learned {
                learned.stored(store, stored);
            }
        }
        Err(why) => {
            note_refusal(store, *why, status);
            log_not_stored(spec, *why);
        }
    }
    stored.ok()
}

/// Waits until those who read a response that is too large to store have caught up, but for no
/// longer than `deadline` in all.
async fn wait_for_slowest(filling: &ArrivingResponse, deadline: &mut Duration) {
    let began = Instant::now();
    let longest = (*deadline).max(LOOK_AT_SLOWEST);
    while timeout(longest, filling.room()).await.is_err() {
        filling.break_off_slowest();
    }
    *deadline = deadline.saturating_sub(began.elapsed());
}

/// The tags that the response's fields name.
fn named_tags(store: &StorePlan, fields: &[(Bytes, Bytes)]) -> Tags {
    let mut tags = Tags::default();
    if let Some(rules) = &store.rules.tags {
        cache_decision::tags::add(&mut tags, fields, rules, store.tag_scope());
    }
    let ids = store.tag_scope().1.iter();
    ids.for_each(|id| tags.add(&id.label(b"*")));
    tags
}

/// The tags that came with the body or behind it.
fn add_late_tags(filling: &mut ArrivingResponse, fetched: &FetchedResponse, store: &StorePlan) {
    let Some(rules) = &store.rules.tags else {
        return;
    };
    let trailers = fetched.body.received_trailers();
    cache_decision::tags::add(filling.tags(), trailers, rules, store.tag_scope());
    let named = fetched.body.tags_in_stderr();
    named
        .into_iter()
        .for_each(|named| filling.tags().extend(named));
}

fn log_too_many_tags(spec: &FetchSpec) {
    spec.context.log.write(
        LogLevel::Error,
        None,
        format_args!(
            "response names more than 65536 tags, tags of more than 1024 bytes or 1 MB together, or \
             tags in a line that PHP has cut: it is fresh for a second only"
        ),
    );
}

/// Notes why a response was not stored, for explanations. The answer to a request that went past the
/// cache is no evidence about others, a count of uses is no property of the response, and a newer one is stored where
/// this one is superseded.
fn note_refusal(store: &StorePlan, why: Reason, status: u16) {
    let is_of_moment = matches!(why, Reason::MinUses | Reason::Unproven | Reason::Superseded);
    if store.is_bypass() || is_of_moment {
        return;
    }
    let at = Millis(clock::now());
    let refusal = Refusal { why, status, at };
    store.zone.note_refusal(&store.key.as_ref(), refusal);
}

fn log_not_stored(spec: &FetchSpec, why: Reason) {
    if matches!(why, Reason::MinUses | Reason::Unproven) {
        return;
    }
    spec.context.log.write(
        LogLevel::Info,
        None,
        format_args!("response not stored: {}", why.sentence()),
    );
}
