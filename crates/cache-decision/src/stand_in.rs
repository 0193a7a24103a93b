//! When a stored response may stand in for a fetch.

use std::sync::Arc;

use http_cache::{
    Millis, NotFresh, StaleInfo, StaleReason, StoredResponse, UseStale, may_serve_stale,
};
use site::CacheRules;

use crate::storing_policy::use_stale;

/// The response that a lookup found, if there is one, and the failures that it may stand in for.
pub struct StandIn(Option<Box<FoundCopy>>);

struct FoundCopy {
    stored: Arc<StoredResponse>,
    /// `None`: it is fresh, and the fetch is a visitor's own.
    info: Option<StaleInfo>,
    found_at: Millis,
    allowed: UseStale,
}

impl StandIn {
    /// Nothing can stand in.
    pub const NONE: StandIn = StandIn(None);

    pub fn of(found: &NotFresh, rules: &CacheRules, now: Millis) -> StandIn {
        let stale = found.stale().map(|(stored, info)| FoundCopy {
            stored: stored.clone(),
            info: Some(*info),
            found_at: now,
            allowed: use_stale(rules),
        });
        StandIn(stale.map(Box::new))
    }

    /// A fresh response, for a visitor who was not compared yet: it is the answer where the upstream
    /// fails.
    pub fn fresh(stored: Arc<StoredResponse>, rules: &CacheRules, now: Millis) -> StandIn {
        StandIn(Some(Box::new(FoundCopy {
            stored,
            info: None,
            found_at: now,
            allowed: use_stale(rules),
        })))
    }

    /// Is there a response at all?
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The response, where it may be shown at `now` for this reason.
    pub fn response(&self, why: StaleReason, now: Millis) -> Option<Arc<StoredResponse>> {
        let copy = self.0.as_ref()?;
        let may_show = match &copy.info {
            Some(info) => {
                let info = info.after(now.since(copy.found_at));
                may_serve_stale(why, &copy.allowed, &info)
            }
            None => why != StaleReason::Updating,
        };
        may_show.then(|| copy.stored.clone())
    }

    /// With `cache_stale`, an upstream that takes longer than others wait for a leader does not
    /// keep up: the response that may be shown meanwhile.
    pub fn for_slow_upstream(&self, now: Millis) -> Option<Arc<StoredResponse>> {
        self.0.as_ref()?.allowed.bounds.as_ref()?;
        self.response(StaleReason::Timeout, now)
    }
}
