//! Replies made of the pages that a zone keeps on disk, if memory has none for a request. A long body that is sent as
//! it lies there goes from its file to the client. Other responses are stored in memory again on their way; if
//! something else would have to leave for them, only one in a few.
//!
//! No purge that has returned is overlooked: a page from the disk is a fetch that began at its stamp.

use std::collections::VecDeque;
use std::sync::Arc;

use cache_decision::Plan;
use http_cache::{
    FoundResponse, KeptVerdict, Millis, NotFresh, NotFreshKind, Promotion, ServedFrom, StoredHead,
    StoredResponse, TierBody, TierFuture, TierLook, TierPage,
};
use http_semantics::Version;
use site::LearnRules;
use transport::open_file::OpenFile;

use super::MissedLookup;
use super::file_part;
use super::from_memory::{note_served, reply_from_memory};
use super::learned;
use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::reply::{Body, Reply, ReplyHead, Segment, StoredFrom};
use crate::exchange::request::Request;
use crate::respond::recode;

/// A page that a thread reads.
pub type ComingPage = TierFuture<Option<Arc<TierPage>>>;

/// How often a request waits for the disk: a page that was read may be of another variant.
const MAX_READS: usize = 3;

/// Asks the disk where memory has nothing.
pub fn look_up(
    request: &Request,
    plan: &Plan<'_>,
    found: NotFresh,
) -> Result<Box<Reply>, Box<MissedLookup>> {
    let tier = match found.kind {
        NotFreshKind::Miss | NotFreshKind::VaryMiss if !keeps_learned(plan) => plan.zone.tier(),
        // Learned pages in memory have come from the disk, or are newer.
        NotFreshKind::Miss | NotFreshKind::VaryMiss => {
            let reads = !found.is_outdated() && learned::reads_from_disk(plan);
            plan.zone.tier().filter(|_| reads)
        }
        NotFreshKind::Stale(..) | NotFreshKind::NotShareable(_) => None,
    };
    let Some(tier) = tier else {
        return Err(Box::new(MissedLookup {
            found: Some(found),
            coming: None,
        }));
    };
    let now = Millis(request.now());
    let looked = tier.look(
        &plan.key.as_ref(),
        &plan.fields(request.received.head()),
        now,
    );
    match take(request, plan, looked) {
        TakenPage::Reply(reply) => {
            plan.zone.count_tier_lookup(&plan.key.as_ref(), true);
            Ok(reply)
        }
        // It is stored, and stale.
        TakenPage::LookAgain(found) => {
            plan.zone.count_tier_lookup(&plan.key.as_ref(), true);
            Err(Box::new(MissedLookup {
                found: Some(found),
                coming: None,
            }))
        }
        TakenPage::Coming(coming) => Err(Box::new(MissedLookup {
            found: Some(found),
            coming: Some(coming),
        })),
        TakenPage::Nothing => {
            plan.zone.count_tier_lookup(&plan.key.as_ref(), false);
            Err(Box::new(MissedLookup {
                found: Some(found),
                coming: None,
            }))
        }
    }
}

fn keeps_learned(plan: &Plan<'_>) -> bool {
    plan.rules.learn.as_ref().is_some_and(LearnRules::keeps)
}

/// Waits for a page that is read, no longer than the disk may take. `None`: look into memory again.
pub async fn wait_for(
    request: &Request,
    plan: &Plan<'_>,
    mut coming: ComingPage,
) -> Option<Box<Reply>> {
    let (zone, key) = (plan.zone, plan.key.as_ref());
    for _ in 0..MAX_READS {
        let page = coming.await;
        request.note_time(clock::now());
        let now = Millis(request.now());
        let looked = match (page, zone.tier()) {
            (Some(page), Some(tier)) => {
                tier.look_at(page, &key, &plan.fields(request.received.head()), now)
            }
            _ => break,
        };
        match take(request, plan, looked) {
            TakenPage::Reply(reply) => {
                zone.count_tier_lookup(&key, true);
                return Some(reply);
            }
            TakenPage::LookAgain(found) => {
                zone.count_tier_lookup(&key, true);
                found.decided().await;
                return None;
            }
            TakenPage::Nothing => break,
            TakenPage::Coming(next) => coming = next,
        }
    }
    zone.count_tier_lookup(&key, false);
    None
}

enum TakenPage {
    Reply(Box<Reply>),
    /// Memory has this of it.
    LookAgain(NotFresh),
    Coming(ComingPage),
    Nothing,
}

fn take(request: &Request, plan: &Plan<'_>, looked: TierLook) -> TakenPage {
    let page = match looked {
        TierLook::Nothing => return TakenPage::Nothing,
        TierLook::Coming(coming) => return TakenPage::Coming(coming),
        TierLook::Here(page) => page,
    };
    let is_guarded = page.record.made_of.is_some();
    if is_guarded != keeps_learned(plan) {
        // It is shown behind a guard of its inputs, or not at all.
        return TakenPage::Nothing;
    }
    if let Some(reply) = without_storing(request, plan, &page) {
        return TakenPage::Reply(reply);
    }
    let body = match &page.body {
        TierBody::Bytes(bytes) => bytes.clone(),
        TierBody::File(part) => match file_part::read_now(part) {
            Some(bytes) => bytes,
            None => return TakenPage::Coming(file_part::read_soon(page)),
        },
    };
    if is_guarded {
        return match look_again(request, plan) {
            // Another request has stored it meanwhile.
            TakenPage::LookAgain(found) if !found.is_outdated() => {
                match learned::store_again(request, plan, &page, body) {
                    true => look_again(request, plan),
                    false => TakenPage::Nothing,
                }
            }
            found => found,
        };
    }
    let response = page.record.with_body(body, page.stamp);
    let (key, now) = (plan.key.as_ref(), Millis(request.now()));
    match plan.zone.promote(&key, response, &page.record.names(), now) {
        // A newer one is in memory as well.
        Promotion::Stored(_) | Promotion::Newer => look_again(request, plan),
        Promotion::Purged | Promotion::NoRoom => TakenPage::Nothing,
    }
}

fn look_again(request: &Request, plan: &Plan<'_>) -> TakenPage {
    let (key, now) = (plan.key.as_ref(), Millis(request.now()));
    let fields = plan.fields(request.received.head());
    match plan.zone.find_again(&key, &fields, now) {
        FoundResponse::Fresh(stored) => TakenPage::Reply(reply(request, stored)),
        FoundResponse::NotFresh(found) => TakenPage::LookAgain(found),
    }
}

/// A reply for which nothing is stored in memory; `None` if something needs the bytes of the body more than once, or
/// it is not fresh.
///
/// A body that goes from its file is in the page cache already, and to send it from there costs no more than to send it from
/// memory. A short one is sent as it was read where memory is full of others.
fn without_storing(request: &Request, plan: &Plan<'_>, page: &TierPage) -> Option<Box<Reply>> {
    if !leaves_as_it_is(request) || page.record.made_of.is_some() {
        return None;
    }
    let body = match &page.body {
        TierBody::File(part) if sends_files(request) => Segment::File {
            file: Arc::new(OpenFile::of_zone(Arc::clone(&part.file))),
            offset: part.offset,
            length: part.len,
        },
        TierBody::Bytes(bytes) if !plan.zone.has_place_for(bytes.len()) => {
            Segment::Memory(bytes.clone())
        }
        TierBody::File(_) | TierBody::Bytes(_) => return None,
    };
    let stored = &page.record.head;
    let verdict = plan.zone.judge_kept(
        &plan.key.as_ref(),
        &page.record.names(),
        (stored.status, page.stamp),
    );
    if verdict != KeptVerdict::Good || !stored.is_fresh(Millis(request.now())) {
        return None;
    }
    let mut reply = reply_of(Arc::clone(stored), body);
    if recode::is_wanted(request, &mut reply.head) {
        return None;
    }
    note_served(request, stored, ServedFrom::Fresh);
    note_disk(&request.cache);
    Some(Box::new(reply))
}

fn reply_of(stored: Arc<StoredHead>, body: Segment) -> Reply {
    Reply {
        head: ReplyHead {
            content_length: Some(body.length()),
            ..ReplyHead::of_stored(StoredFrom::Arriving(stored))
        },
        body: Body::Segments(VecDeque::from([body])),
    }
}

/// Only HTTP/1 without TLS sends files.
fn sends_files(request: &Request) -> bool {
    request.settings().files.sendfile
        && matches!(
            request.received.head().version(),
            Version::Http10 | Version::Http11
        )
        && request.received.connection().tls.is_none()
}

/// Does nothing but a content coding need the bytes of the body?
fn leaves_as_it_is(request: &Request) -> bool {
    let settings = request.settings();
    !request.route.is_subrequest()
        && !settings.ssi.enabled
        && !settings.esi.is_on()
        && settings.sub_filter.is_none()
        && settings.addition.before.is_none()
        && settings.addition.after.is_none()
        && settings.charset.charset.is_empty()
}

fn reply(request: &Request, stored: Arc<StoredResponse>) -> Box<Reply> {
    let reply = reply_from_memory(request, stored, ServedFrom::Fresh);
    note_disk(&request.cache);
    reply
}

fn note_disk(cache: &CacheFacts) {
    cache.write(|notes| {
        if let Some(outcome) = &mut notes.outcome {
            outcome.from_tier = true;
        }
    });
}
