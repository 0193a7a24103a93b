//! When a stale response may stand in for a fetch.

use std::sync::Arc;

use http_cache::{
    Millis, NotFresh, StaleInfo, StaleReason, StoredResponse, UseStale, may_serve_stale,
};
use site::CacheRules;

use crate::storing_policy::use_stale;

/// The stale response that a lookup found, if there is one, and what it may stand in for.
pub struct StandIn(Option<Box<StaleResponse>>);

struct StaleResponse {
    stored: Arc<StoredResponse>,
    info: StaleInfo,
    found_at: Millis,
    allowed: UseStale,
}

impl StandIn {
    /// Nothing can stand in.
    pub const NONE: StandIn = StandIn(None);

    pub fn of(found: &NotFresh, rules: &CacheRules, now: Millis) -> StandIn {
        let stale = found.stale().map(|(stored, info)| StaleResponse {
            stored: stored.clone(),
            info: *info,
            found_at: now,
            allowed: use_stale(rules),
        });
        StandIn(stale.map(Box::new))
    }

    /// Is there a stale response at all?
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The stale response, where it may be shown at `now` for this reason.
    pub fn response(&self, why: StaleReason, now: Millis) -> Option<Arc<StoredResponse>> {
        let stale = self.0.as_ref()?;
        let info = stale.info.after(now.since(stale.found_at));
        may_serve_stale(why, &stale.allowed, &info).then(|| stale.stored.clone())
    }

    /// With `cache_stale`, an upstream that takes longer than others wait for a leader does not
    /// keep up: the response that may be shown meanwhile.
    pub fn for_slow_upstream(&self, now: Millis) -> Option<Arc<StoredResponse>> {
        self.0.as_ref()?.allowed.bounds.as_ref()?;
        self.response(StaleReason::Timeout, now)
    }
}
