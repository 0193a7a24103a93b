//! Which upstreams are asked for pages that the server asks itself for: none for what would not be
//! stored, or would be stored as another page than the one that is meant.

use http_cache::{FoundResponse, Millis, NotFreshKind, Reason};
use site::Content;

use super::through_cache::CacheMiss;
use super::through_cache::policy::{self, CachePlan};
use crate::exchange::handled::Handled;
use crate::exchange::own_visit::{NotAsked, Purpose};
use crate::exchange::request::Request;

/// What becomes of a request that no upstream is asked for: nothing. No error page is made of it.
pub const NOT_ASKED: Handled = Handled::ClientGone;

/// Is no upstream to be asked? Then it is noted why. `miss` is none where the cache has no part in it.
pub fn declines(request: &mut Request, miss: Option<&CacheMiss<'_>>) -> bool {
    let Some(visit) = &request.extras.own_visit else {
        return false;
    };
    let why = match (&visit.purpose, miss) {
        (Purpose::Read | Purpose::Ask, _) => None,
        (Purpose::Explain, _) => Some(NotAsked::Dry),
        (purpose, Some(miss)) => why_not(request, purpose, miss),
        (Purpose::Refill(_), None) => Some(NotAsked::OtherPage),
        (Purpose::Warm, None) => Some(NotAsked::NotKept(
            request.cache.reason.unwrap_or(Reason::Off),
        )),
    };
    match why {
        Some(why) => {
            note(request, why);
            true
        }
        None => false,
    }
}

/// Notes why no upstream was asked.
pub fn note(request: &mut Request, why: NotAsked) {
    if let Some(visit) = &mut request.extras.own_visit {
        visit.not_asked = Some(why);
    }
}

fn why_not(request: &Request, purpose: &Purpose, miss: &CacheMiss<'_>) -> Option<NotAsked> {
    let CacheMiss { plan, found } = miss;
    if let Purpose::Refill(wanted) = purpose
        && !wanted.is_selected_by(&plan.key.as_ref(), &plan.fields(&request.head))
    {
        return Some(NotAsked::OtherPage);
    }
    if !plan.rules.refill && matches!(purpose, Purpose::Refill(_)) {
        return Some(NotAsked::OtherPage);
    }
    if plan.never_store || plan.bypass.is_some() {
        return Some(NotAsked::NotKept(plan.bypass.unwrap_or(Reason::Bypass)));
    }
    match found.as_ref().map(|found| &found.kind) {
        Some(NotFreshKind::NotShareable(why)) => Some(NotAsked::NotKept(*why)),
        _ => None,
    }
}

/// What the next visitor finds who asks as `request` did.
pub enum Stored {
    Fresh,
    Stale,
    /// Nothing, and why.
    No(Reason),
}

/// Looks for what the request has had stored. Counts nowhere, and asks nobody.
pub fn stored(request: &mut Request) -> Stored {
    let why = request.cache.reason.unwrap_or(Reason::Off);
    let configuration = request.configuration.clone();
    let settings = request.settings_held();
    let Content::Pass(pass) = &settings.content else {
        return Stored::No(why);
    };
    let CachePlan::Use(plan) = policy::plan(request, &configuration, pass) else {
        return Stored::No(why);
    };
    let (key, now) = (plan.key.as_ref(), Millis(clock::now()));
    match plan.zone.find_again(&key, &plan.fields(&request.head), now) {
        FoundResponse::Fresh(_) => Stored::Fresh,
        FoundResponse::NotFresh(found) => match found.kind {
            NotFreshKind::Stale(..) => Stored::Stale,
            NotFreshKind::NotShareable(why) => Stored::No(why),
            NotFreshKind::Miss | NotFreshKind::VaryMiss => Stored::No(why),
        },
    }
}
