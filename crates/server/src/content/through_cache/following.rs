//! A request that waits for the fetch of another.

use cache_decision::{Plan, StandIn};
use http_cache::{Follower, FollowerOutcome, Millis, Reason, ServedFrom, StaleReason};
use tokio::time::{Instant, timeout_at};

use super::from_memory::{from_memory, hit, reading};
use super::step::Step;
use crate::content::pass::response::failed;
use crate::exchange::handled::StageEnd;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use upstream_fetch::{FetchError, Overload};

/// Why a follower waits no longer.
pub enum WaitTimeout {
    /// `*_cache_lock_age`: another request may lead; we look whether we may.
    LockAge,
    /// `*_cache_lock_timeout`
    LockTimeout,
}

/// Waits for the leader. While it stands in line for the upstream both clocks stand
/// still: to fetch for oneself would be to stand further back in the same line.
pub async fn wait_for_leader(
    received: &ReceivedRequest,
    plan: &Plan<'_>,
    mut follower: Follower,
    began: Instant,
) -> Result<FollowerOutcome, WaitTimeout> {
    let fields = plan.fields(received.head());
    let rules = plan.rules;
    loop {
        let progress = follower.last_progress();
        let sent = progress.map_or_else(Instant::now, |at| clock::instant_of(at.0));
        let lock_timeout = began.max(sent) + rules.lock_timeout;
        let lock_age = sent + rules.lock_age;
        let deadline = lock_timeout.min(lock_age);
        if let Ok(followed) = timeout_at(deadline, follower.wait(&fields)).await {
            return Ok(once_decided(followed, plan).await);
        }
        if progress.is_none() || progress != follower.last_progress() {
            continue;
        }
        return Err(match lock_timeout <= lock_age {
            true => WaitTimeout::LockTimeout,
            false => WaitTimeout::LockAge,
        });
    }
}

/// The response of the fetch, once it is known whether it is for this request as well.
async fn once_decided(followed: FollowerOutcome, plan: &Plan<'_>) -> FollowerOutcome {
    match followed {
        FollowerOutcome::Complete(stored)
            if !plan
                .zone
                .is_for_followers(&stored, Millis(clock::now()))
                .await =>
        {
            FollowerOutcome::LeftOut
        }
        followed => followed,
    }
}

/// Answers a request that has waited for a leader.
pub fn answer_follower(
    request: &Request,
    plan: &Plan<'_>,
    followed: Result<FollowerOutcome, WaitTimeout>,
    stand_in: &StandIn,
) -> Step {
    request.note_time(clock::now());
    let now = Millis(request.now());
    let is_streaming = matches!(followed, Ok(FollowerOutcome::Streaming(_)));
    request.cache.write(|notes| {
        if let Some(outcome) = &mut notes.outcome {
            outcome.collapsed = true;
            if is_streaming {
                outcome.served = ServedFrom::Fresh;
            }
        }
    });
    Step::Answer(match followed {
        Ok(FollowerOutcome::Streaming(reader)) => reading(&request.cache, reader),
        Ok(FollowerOutcome::Complete(stored)) => hit(request, stored),
        Ok(FollowerOutcome::NotShareable(why)) => {
            request.cache.note_not_stored(why);
            return Step::unshared(request, plan);
        }
        Ok(FollowerOutcome::VaryMismatch | FollowerOutcome::LeftOut)
        | Err(WaitTimeout::LockAge) => {
            return Step::LookAgain;
        }
        Ok(FollowerOutcome::Failed(status)) => match stand_in.response(StaleReason::Error, now) {
            Some(stored) => from_memory(request, stored, ServedFrom::StaleError),
            // Followers do not repeat a fetch that has failed for the leader.
            None => {
                request.cache.note_not_stored(Reason::Failed);
                match status {
                    503 | 429 => failed(FetchError::Overloaded(Overload {
                        status,
                        retry_after: 1,
                    })),
                    status => StageEnd::Status(status),
                }
            }
        },
        Err(WaitTimeout::LockTimeout) => match stand_in.for_slow_upstream(now) {
            Some(stored) => from_memory(request, stored, ServedFrom::StaleError),
            // Fetch, but leave storing to the leader.
            None => {
                request.cache.note_not_stored(Reason::LockTimeout);
                return Step::Direct;
            }
        },
    })
}
