//! `limit_conn` and `limit_req`, in this order.

use std::time::Duration;

use crate::access::{limit_conn, limit_req};
use crate::exchange::request::Request;

/// The decision of the limits about a request.
pub enum LimitDecision {
    Pass,
    Reject(u16),
    /// The request may go on after this time.
    Delay(Duration),
}

/// Asks the limits of the request's location.
pub fn check(request: &Request) -> LimitDecision {
    let (limits, live) = (&request.settings().limits, &request.configuration.live);
    if !limits.connections.is_empty()
        && let Err(status) = limit_conn::check(request, &live.limit_conn)
    {
        return LimitDecision::Reject(status);
    }
    if limits.requests.is_empty() {
        return LimitDecision::Pass;
    }
    match limit_req::check(request, &live.limit_req) {
        limit_req::Verdict::Pass => LimitDecision::Pass,
        limit_req::Verdict::Reject(status) => LimitDecision::Reject(status),
        limit_req::Verdict::Delay(pause) => LimitDecision::Delay(pause),
    }
}

/// Notes the foreseen decisions of the limits of the request's location, for an explanation. Like for
/// visitors, the first location that has limits counts.
pub fn foresee(request: &Request) {
    let live = &request.configuration.live;
    let mut foreseen = limit_conn::foresee(request, &live.limit_conn);
    foreseen.extend(limit_req::foresee(request, &live.limit_req));
    let visit = request.own_visit.as_ref();
    if let Some(visit) = visit.filter(|_| !foreseen.is_empty()) {
        visit.limits.get_or_init(|| foreseen);
    }
}
