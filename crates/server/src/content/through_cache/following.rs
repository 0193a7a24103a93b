//! A request that waits for the fetch of another.

use std::sync::Arc;

use http_cache::{
    Followed, Millis, Served, StaleInfo, StaleReason, StoredResponse, may_serve_stale,
};
use site::Pass;
use tokio::time::{Instant, timeout_at};

use super::from_memory::{from_memory, hit, note_not_stored, reading};
use super::leading::fetch_unshared;
use super::policy::Plan;
use super::stale::stands_in_for_slow;
use super::storing_policy::use_stale;
use crate::base::clock;
use crate::content::pass::direct::direct;
use crate::content::pass::response::failed;
use crate::exchange::handled::Handled;
use crate::exchange::request::Request;
use crate::transport::client::ClientSide;
use crate::upstreams::fetch::FetchError;

/// Waits for the leader and answers with what became of its fetch; `None` where the request
/// has to start over.
pub async fn follow(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: &Plan<'_>,
    client: &mut ClientSide,
    mut follower: http_cache::Follower,
    stale: Option<(Arc<StoredResponse>, StaleInfo)>,
    began: Instant,
) -> Option<Handled> {
    let allowed = use_stale(plan.rules);
    if let Some((stored, info)) = &stale
        && may_serve_stale(StaleReason::Updating, &allowed, info)
    {
        return Some(from_memory(request, stored.clone(), Served::StaleUpdating));
    }
    let followed = wait(request, plan, &mut follower, began).await;
    drop(follower);
    let asked_at = Millis(request.now);
    request.now = clock::now();
    let waited = Millis(request.now).since(asked_at);
    if let Some(outcome) = &mut request.cache.outcome {
        outcome.collapsed = true;
    }
    match followed {
        Ok(Followed::Streaming(reader)) => {
            if let Some(outcome) = &mut request.cache.outcome {
                outcome.served = Served::Fresh;
            }
            Some(reading(request, reader))
        }
        Ok(Followed::Complete(stored)) => Some(hit(request, stored)),
        Ok(Followed::NotShareable(why)) => {
            note_not_stored(request, why);
            Some(fetch_unshared(request, pass, plan, client).await)
        }
        Ok(Followed::VaryMismatch | Followed::LeftOut) => None,
        Ok(Followed::Failed(status)) => match stale {
            Some((stored, info))
                if may_serve_stale(StaleReason::Error, &allowed, &info.after(waited)) =>
            {
                Some(from_memory(request, stored, Served::StaleError))
            }
            // What the leader could not get, its followers do not ask for again.
            _ if status == 503 => Some(failed(FetchError::Overloaded)),
            _ => Some(Handled::Status(status)),
        },
        Err(OutOfPatience::WithLeader) => None,
        Err(OutOfPatience::Altogether) => match stale {
            Some((stored, info)) if stands_in_for_slow(&allowed, &info.after(waited)) => {
                Some(from_memory(request, stored, Served::StaleError))
            }
            // Fetch, but leave storing to the leader.
            _ => Some(direct(request, pass, client).await),
        },
    }
}

/// Why a follower waits no longer.
enum OutOfPatience {
    /// `*_cache_lock_age`: somebody else may lead; we look whether we may.
    WithLeader,
    /// `*_cache_lock_timeout`
    Altogether,
}

/// Waits for the leader. While it stands in line for the upstream both clocks stand
/// still: to fetch for oneself would be to stand further back in the same line.
async fn wait(
    request: &Request,
    plan: &Plan<'_>,
    follower: &mut http_cache::Follower,
    began: Instant,
) -> Result<Followed, OutOfPatience> {
    let fields = plan.fields(request);
    let rules = plan.rules;
    loop {
        let progress = follower.last_progress();
        let sent = progress.map_or_else(Instant::now, clock::instant_of);
        let altogether = began.max(sent) + rules.lock_timeout;
        let with_leader = sent + rules.lock_age;
        let deadline = altogether.min(with_leader);
        if let Ok(followed) = timeout_at(deadline, follower.wait(&fields)).await {
            return Ok(followed);
        }
        if progress.is_none() || progress != follower.last_progress() {
            continue;
        }
        return Err(match altogether <= with_leader {
            true => OutOfPatience::Altogether,
            false => OutOfPatience::WithLeader,
        });
    }
}
