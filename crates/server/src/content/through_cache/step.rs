//! What a request that the cache had no fresh answer for does next. Functions that decide give
//! a step; `miss::serve` takes one after the other.

use cache_decision::{Action, Plan, StandIn, address, unshared};
use http_cache::{Follower, JoinRequest, Leader, Millis};

use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;

pub enum Step {
    Answer(StageEnd),
    /// Fetch for this client alone.
    Direct,
    /// Fetch, and store what may be stored.
    Lead(Leader, StandIn),
    /// Wait for another's fetch.
    Follow(Follower, StandIn),
    LookAgain,
}

impl Step {
    /// Fetch without waiting for others; what may be shared is stored.
    pub fn alone(request: &Request, plan: &Plan<'_>) -> Step {
        let (fields, address) = (
            plan.fields(request.received.head()),
            address::of_request(
                request.received.host(),
                request.received.target(),
                plan.rules,
            ),
        );
        let leader = plan.zone.detached(&JoinRequest {
            lock_age: None,
            ..plan.join_request(&fields, &address, Millis(request.now))
        });
        Step::Lead(leader, StandIn::NONE)
    }

    /// Fetch without others, as was decided.
    pub fn without_others(request: &Request, plan: &Plan<'_>, action: &Action) -> Step {
        match action {
            Action::Alone => Step::alone(request, plan),
            _ => Step::Direct,
        }
    }

    /// Fetch what is known not to be shared.
    pub fn unshared(request: &Request, plan: &Plan<'_>) -> Step {
        Step::without_others(request, plan, &unshared(&plan.audience))
    }
}
