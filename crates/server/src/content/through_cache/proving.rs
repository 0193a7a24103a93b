//! A visitor for whom the shared answer is not proven yet: the visitor's own request is made and compared, or the
//! visitor waits until other visitors' answers were.
//!
//! ```text
//! begin ─ own ──────────────────────────────► the visitor's own request (leading)
//!   ├ wait ─ something was seen ─► begin      at most for the lock timeout, then as above
//!   └ shared ───────────────────────────────► look again, like all for whom it is shared
//! ```

use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::sync::Arc;

use cache_decision::{FetchRole, Plan, SharedPage, StandIn};
use http_cache::{Forward, FoundResponse, Millis, Reason, ServedFrom};
use page_evidence::{OwnRun, Part};
use site::Pass;
use tokio::time::{Instant, timeout_at};
use transport::client::{ClientSide, unless_gone};

use super::ahead;
use super::guests;
use super::miss::look_again_once_decided;
use super::step::Step;
use super::store_plan::prepare;
use super::storing::{self, Background};
use super::tried;
use super::upstream_state::{is_comparable, is_idle};
use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;

/// Chooses the next step of a visitor whose page is not proven to be shareable.
pub async fn prove(
    request: &Request,
    pass: &Arc<Pass>,
    plan: &mut Plan<'_>,
    client: &mut ClientSide,
) -> Step {
    let Some(page) = plan.shared.as_deref().copied() else {
        return Step::Direct;
    };
    if !is_comparable(request) {
        return Step::Direct;
    }
    if let Some(run) = page.audit {
        return own(request, plan, run);
    }
    let seen = request.configuration.live.alive_zones.seen_pages.clone();
    let visitor = visitor_of(request);
    let deadline = Instant::now() + plan.rules.lock_timeout;
    let late_run = || {
        let (evidence, now) = (&seen.evidence, request.now());
        evidence.late_run(page.name, &page.left_out, visitor, now)
    };
    let mut began_shared = false;
    loop {
        // Any evidence from here on wakes this request.
        let mut change = pin!(seen.change(page.name));
        change.as_mut().enable();
        request.note_time(clock::now());
        let has_copy = has_copy(request, plan);
        let part = seen.evidence.begin(
            page.name,
            &page.left_out,
            (visitor, has_copy),
            request.now(),
        );
        let begins_shared = match part {
            Part::Shared if !guests::is_settled(request) => return past_with_session(request),
            Part::Shared => {
                let step = share(request, pass, plan).await;
                note_wait(&request.cache, began_shared);
                return step;
            }
            Part::Own { compared, shared } => {
                if shared {
                    begin_shared(request, pass, plan, &page);
                }
                return match compared {
                    Some(run) => own(request, plan, run),
                    None => Step::Direct,
                };
            }
            Part::Wait { .. } if !plan.rules.lock => return own(request, plan, late_run()),
            Part::Wait { shared } => shared,
        };
        if begins_shared {
            begin_shared(request, pass, plan, &page);
            began_shared = true;
        }
        let gone = client.gone(!pass.exchange.ignore_client_abort);
        match unless_gone(gone, timeout_at(deadline, change)).await {
            Some(Ok(())) => {}
            Some(Err(_)) => {
                request.cache.note_not_stored(Reason::LockTimeout);
                return own(request, plan, late_run());
            }
            None => return Step::Answer(StageEnd::ClientGone),
        }
    }
}

/// Goes past the cache: the visitor has asked for pages whose effect on a session is not known.
fn past_with_session(request: &Request) -> Step {
    request.cache.note_not_stored(Reason::Cookie);
    Step::Direct
}

/// Returns the stored response that may be shown to a visitor whose own request fails or is slow.
pub fn stand_in(request: &Request, plan: &Plan<'_>) -> StandIn {
    // What is tried may be this visitor's; and a copy shows nothing of what pages have written into a session.
    let may_differ = |run: &OwnRun| run.is_beside_trial || run.is_in_doubt;
    let is_own = matches!(&plan.role, FetchRole::Own(run) if may_differ(run));
    if is_own || !guests::is_settled(request) {
        return StandIn::NONE;
    }
    guests::note_shown(request);
    let now = Millis(request.now());
    match find(request, plan) {
        FoundResponse::Fresh(stored) => StandIn::fresh(stored, plan.rules, now),
        FoundResponse::NotFresh(found) => StandIn::of(&found, plan.rules, now),
    }
}

/// The visitor's own request, whose answer is compared with what others are shown.
fn own(request: &Request, plan: &mut Plan<'_>, run: OwnRun) -> Step {
    guests::note_asked(request);
    plan.role = FetchRole::Own(Box::new(run));
    Step::Own
}

/// Goes on like every visitor with whom the page is shared.
async fn share(request: &Request, pass: &Arc<Pass>, plan: &mut Plan<'_>) -> Step {
    guests::note_shown(request);
    plan.past = None;
    look_again_once_decided(request, pass, plan).await
}

/// Notes that the visitor has waited for the stored response, or has made it begin.
fn note_wait(cache: &CacheFacts, began_shared: bool) {
    cache.write(|notes| match &mut notes.outcome {
        Some(outcome) if outcome.served == ServedFrom::Fresh && began_shared => {
            outcome.served = ServedFrom::No;
            outcome.fwd = Some(Forward::Miss);
            outcome.stored = true;
        }
        Some(outcome) if outcome.served == ServedFrom::Fresh => outcome.collapsed = true,
        _ => {}
    });
}

fn has_copy(request: &Request, plan: &Plan<'_>) -> bool {
    match find(request, plan) {
        FoundResponse::Fresh(_) => true,
        FoundResponse::NotFresh(found) => found.stale().is_some(),
    }
}

fn find(request: &Request, plan: &Plan<'_>) -> FoundResponse {
    let fields = plan.fields(request.received.head());
    plan.zone
        .find_again(&plan.key.as_ref(), &fields, Millis(request.now()))
}

/// Stands for who asks: the client's address and browser.
fn visitor_of(request: &Request) -> u64 {
    let mut hasher = foldhash::fast::FixedState::with_seed(0).build_hasher();
    if let Some(address) = request.received.client_ip() {
        hasher.write(address.to_string().as_bytes());
    }
    hasher.write(
        request
            .received
            .head()
            .field("user-agent")
            .unwrap_or_default(),
    );
    hasher.finish()
}

/// Begins the shared request in the background; waiting requests look into the store when it ends.
fn begin_shared(request: &Request, pass: &Arc<Pass>, plan: &mut Plan<'_>, page: &SharedPage) {
    let Some(leader) = tried::lead(request, plan) else {
        let seen = &request.configuration.live.alive_zones.seen_pages;
        match plan.zone.refused(&plan.key.as_ref(), Millis(request.now())) {
            Some(_) => {
                seen.evidence.shared_ended(page.name, None, request.now());
            }
            // Another request has begun it, and reports how it ends.
            None => seen.evidence.shared_failed(page.name, request.now()),
        }
        seen.announce(page.name);
        return;
    };
    let offer = ahead::offer(request, pass, plan, (page.name, is_idle(request, pass)));
    let prepared = prepare(request, pass, plan, &leader);
    plan.tried_address = None;
    if let Ok((spec, mut store)) = prepared {
        store.links.offer = offer;
        storing::begin_in_background(leader, spec, store, Background::AwaitedByVisitors);
    }
}
