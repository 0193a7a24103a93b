//! The next step of a request that the cache had no fresh response for. Functions that decide return
//! a step; `miss::serve` takes one after the other.

use std::sync::Arc;

use cache_decision::{Action, Plan, StandIn, unshared};
use http_cache::{Follower, JoinRequest, Leader, Millis, RequestFields, StoredResponse};

use super::purge_keys::address_of;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;

pub enum Step {
    Answer(StageEnd),
    /// Fetch for this client alone.
    Direct,
    /// Fetch, and store the response if it may be stored.
    Lead(Leader, StandIn),
    /// Fetch with the visitor's own request, and compare the answer.
    Own,
    /// Wait for another's fetch.
    Follow(Follower, StandIn),
    /// Wait for the end of a fetch that began before the request came, at this time.
    After(Follower, Millis),
    LookAgain,
}

impl Step {
    /// Returns a fetch without waiting for others; a shareable response is stored.
    pub fn alone(request: &Request, plan: &Plan<'_>) -> Step {
        Step::Lead(Step::own_leader(request, plan, None), StandIn::NONE)
    }

    /// Ask whether a stored response is still right. A visitor with a cookie or credentials may get
    /// another one, which a 304 to a date would hide.
    pub fn validate(request: &Request, plan: &Plan<'_>, stored: Arc<StoredResponse>) -> Step {
        let fields = plan.fields(request.received.head());
        let is_known = fields.has("cookie") || fields.has("authorization");
        let stored = (!is_known).then_some(stored);
        Step::Lead(Step::own_leader(request, plan, stored), StandIn::NONE)
    }

    /// A leader without followers.
    pub fn own_leader(
        request: &Request,
        plan: &Plan<'_>,
        stored: Option<Arc<StoredResponse>>,
    ) -> Leader {
        let (fields, address) = (
            plan.fields(request.received.head()),
            address_of(&request.received, plan.rules),
        );
        let join = JoinRequest {
            lock_age: None,
            ..plan.join_request(&fields, &address, Millis(request.now()))
        };
        plan.zone.validating(&join, stored)
    }

    /// Fetch without others, as was decided.
    pub fn without_others(request: &Request, plan: &Plan<'_>, action: &Action) -> Step {
        match action {
            Action::Alone => Step::alone(request, plan),
            _ => Step::Direct,
        }
    }

    /// Returns a fetch of a response that is known not to be shared.
    pub fn unshared(request: &Request, plan: &Plan<'_>) -> Step {
        Step::without_others(request, plan, &unshared(&plan.audience))
    }
}
