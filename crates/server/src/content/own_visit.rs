//! Decides which upstreams are asked for pages that the server fetches on its own account: none if
//! the response would not be stored, or would be stored as another page than the one that is meant.

use cache_decision::Action;
use http_cache::{Forward, Reason};
use site::Content;

use super::through_cache::CacheMiss;
use super::through_cache::outlook::outlook;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::{NotAsked, Purpose};
use crate::exchange::request::Request;

/// The end of a request for which no upstream is asked: it is dropped, without an error page.
pub const NOT_ASKED: StageEnd = StageEnd::ClientGone;

/// Is no upstream to be asked? Then it is noted why. `miss` is `None` if nothing is looked up.
pub fn declines(request: &Request, miss: Option<&CacheMiss<'_>>) -> bool {
    let Some(visit) = &request.own_visit else {
        return false;
    };
    let why = match (&visit.purpose, miss) {
        (Purpose::Read | Purpose::Ask | Purpose::Try, _) => None,
        (Purpose::Audit, Some(miss)) if miss.plan.rules.learn.is_some() => None,
        (Purpose::Audit, _) => Some(NotAsked::OtherPage),
        (Purpose::Explain, _) => Some(NotAsked::Dry),
        (Purpose::Refill(wanted), Some(CacheMiss { plan, .. }))
            if plan.rules.refill
                && wanted
                    .is_selected_by(&plan.key.as_ref(), &plan.fields(request.received.head())) =>
        {
            miss.and_then(|miss| miss.decision.why_not_kept())
                .map(NotAsked::NotKept)
        }
        (Purpose::Refill(_), _) => Some(NotAsked::OtherPage),
        (Purpose::Warm, Some(miss)) => miss.decision.why_not_kept().map(NotAsked::NotKept),
        (Purpose::Warm, None) => Some(NotAsked::NotKept(
            request.cache.reason().unwrap_or(Reason::Off),
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
pub fn note(request: &Request, why: NotAsked) {
    if let Some(visit) = &request.own_visit {
        visit.not_asked.get_or_init(|| why);
    }
}

/// The stored response that the next visitor would find with the same request.
pub enum StoredState {
    Fresh,
    Stale,
    /// Nothing, and why.
    No(Reason),
}

/// Looks for the response that the request has had stored. Counts nowhere, and asks no upstream.
pub fn stored(request: &mut Request) -> StoredState {
    let why = request.cache.reason().unwrap_or(Reason::Off);
    let configuration = request.configuration.clone();
    let settings = request.settings_held();
    let Content::Pass(pass) = &settings.content else {
        return StoredState::No(why);
    };
    request.note_time(clock::now());
    let outlook = outlook(request, &configuration, pass);
    match (&outlook.decision.action, outlook.decision.forward) {
        (Action::Hit, _) => StoredState::Fresh,
        (Action::ShowStale(..) | Action::Refresh(_), _) | (_, Some(Forward::Stale)) => {
            StoredState::Stale
        }
        // For a miss, the reason of the lookup is reported: not looked up, or another visitor's.
        (_, Some(Forward::Miss)) => StoredState::No(outlook.decision.reason.unwrap_or(why)),
        _ => StoredState::No(why),
    }
}
