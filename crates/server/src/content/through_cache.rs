//! Requests that the cache has a say in: answer from memory, lead a fetch that all read, follow
//! one, or go alone.
//!
//! ```text
//! look_up ── fresh ────────────────────────────────► stored response
//!    ├ nothing ─ kept on disk ──────────────────────► stored response (from_disk)
//!    └ CacheMiss ─ stale, shown while refreshed ───► stored response (refreshing)
//!         └ collapse ─ lead ── head may be shared ─► read along while it is stored (leading)
//!                   │      └── may not be shared ──► the fetch is handed to this client
//!                   ├ follow ─ head arrived ───────► read along (following)
//!                   │        └ not shareable ──────► fetch alone
//!                   └ alone ───────────────────────► fetch alone, store if it may be
//! ```
//!
//! The fetch runs in a task of its own: it belongs to the cache and goes on
//! when the client leaves (`storing`).

mod ahead;
pub mod asking;
pub mod cookies;
mod evidence;
mod file_part;
mod following;
mod for_browsers;
mod from_disk;
mod from_memory;
mod guest_storing;
mod guest_trials;
pub mod guests;
mod leading;
pub mod learned;
pub mod miss;
pub mod outlook;
mod own_copies;
pub mod policy;
mod proving;
pub mod purge;
pub mod purge_keys;
mod refreshing;
mod shared;
pub mod site_variance;
mod stale;
mod standing;
mod step;
mod storability;
mod store_plan;
mod stored_charset;
mod storing;
pub mod tags;
mod trial_requests;
mod trials;
mod tried;
mod upstream_state;
mod variables;
pub mod with_cookies;

use cache_decision::{Decision, Plan, StandIn, UseCount};
use http_cache::{FoundResponse, Millis, NotFresh, ServedFrom};
use site::Pass;

pub use variables::VARIABLES;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

use from_disk::ComingPage;
use from_memory::reply_from_memory;

/// The result of a lookup without a fresh response.
#[derive(Default)]
pub struct MissedLookup {
    /// The response in memory; `None` if the cache is bypassed.
    found: Option<NotFresh>,
    /// The page on disk that has to be read first.
    coming: Option<ComingPage>,
}

/// Looks for a fresh stored response; a request does so once. The result of a miss travels to
/// the fetch.
#[inline]
pub fn look_up(request: &Request, plan: &Plan<'_>) -> Result<Box<Reply>, Box<MissedLookup>> {
    if plan.past.is_some() {
        return Err(Box::default());
    }
    let (key, now) = (plan.key.as_ref(), Millis(request.now()));
    match plan
        .zone
        .find(&key, &plan.fields(request.received.head()), now)
    {
        FoundResponse::Fresh(stored) => Ok(reply_from_memory(request, stored, ServedFrom::Fresh)),
        FoundResponse::NotFresh(found) => from_disk::look_up(request, plan, found),
    }
}

/// A request that the cache has no fresh answer for, and what is done with it.
pub struct CacheMiss<'a> {
    pub plan: Plan<'a>,
    pub decision: Decision,
    /// The result of [`look_up`], and what may stand in for a response.
    found: Option<(NotFresh, StandIn)>,
    /// The page on disk that is read first.
    coming: Option<ComingPage>,
}

impl<'a> CacheMiss<'a> {
    /// After the lookup of `plan`. No purge that has returned before is overlooked.
    pub fn new(
        request: &Request,
        pass: &Pass,
        mut plan: Plan<'a>,
        missed: MissedLookup,
    ) -> CacheMiss<'a> {
        let MissedLookup { found, coming } = missed;
        plan.came_at = plan.zone.stamp();
        let found = found.map(|found| {
            let count = match request.is_to_be_stored() {
                true => UseCount::Waived,
                false => UseCount::Noted,
            };
            plan.count_use(count, Millis(request.now()));
            let (decision, stand_in) = miss::decide(request, pass, &mut plan, &found);
            (decision, (found, stand_in))
        });
        let (decision, found) = found.unzip();
        CacheMiss {
            // A request that is not looked up goes past what is stored.
            decision: decision
                .or_else(|| plan.past.clone())
                .unwrap_or(Decision::OFF),
            plan,
            found,
            coming,
        }
    }
}

#[cfg(test)]
mod foreseen;
#[cfg(test)]
mod lookup_counts;
