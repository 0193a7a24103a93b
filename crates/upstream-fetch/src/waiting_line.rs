//! A request's turn at the servers of its group. While all are busy it waits in line, and the requests
//! that wait for its response learn that.

use std::pin::{Pin, pin};
use std::time::Duration;

use http_cache::{Millis, Progress, Urgency};
use site::LogLevel;
use tokio::time::timeout;
use upstream::{AcquireError, Admission, Class, Lease, PickKey, Ticket, TriedSet};

use super::error::{FetchError, Overload};
use super::spec::FetchSpec;
use super::trace::Try;

/// A server for the request, once it is its turn; `None`: all who waited for its response have
/// left before.
pub(super) async fn wait_for_turn(
    spec: &FetchSpec,
    key: PickKey<'_>,
    tried: &TriedSet,
    now: u64,
) -> Option<Result<Lease, AcquireError>> {
    let turn = pin!(take_turn(spec, key, tried, now));
    report_long_wait(spec, turn).await
}

/// A request that waits longer than this for a worker of an own pool is worth a line.
const BUSY_AFTER: Duration = Duration::from_secs(1);

/// Logs a line when all workers of an own pool are busy for long.
async fn report_long_wait<T>(spec: &FetchSpec, mut turn: Pin<&mut impl Future<Output = T>>) -> T {
    if spec.to.own_pool {
        match timeout(BUSY_AFTER, turn.as_mut()).await {
            Ok(taken) => return taken,
            Err(_) => spec.context.log.pool_is_busy(&spec.to.group),
        }
    }
    turn.await
}

/// Waits for the request's turn, and reports to the requests that wait for its response when it has to
/// stand in line.
async fn take_turn(
    spec: &FetchSpec,
    key: PickKey<'_>,
    tried: &TriedSet,
    now: u64,
) -> Option<Result<Lease, AcquireError>> {
    let progress = spec.progress.as_ref();
    if progress.is_some_and(Progress::is_deserted) {
        return None;
    }
    let urgency = progress.and_then(Progress::urgency);
    let class = spec.class.at_least(urgency.map_or(spec.class, class_of));
    let ticket = match spec.to.group.enter(key, tried, class, now) {
        Ok(Admission::Granted(lease)) => {
            if let Some(progress) = progress {
                progress.under_way(Millis(clock::now()));
            }
            return Some(Ok(lease));
        }
        Ok(Admission::InLine(ticket)) => ticket,
        Err(error) => return Some(Err(error)),
    };
    // A request that waits pays for a future of its own.
    Box::pin(wait_in_line(ticket, progress, urgency)).await
}

/// The class of a request whose response a follower waits for.
fn class_of(urgency: Urgency) -> Class {
    match urgency {
        Urgency::Crawl => Class::Crawler,
        Urgency::Part => Class::Fragment,
        Urgency::Page => Class::StaleVisitor,
    }
}

/// `urgency`: of the followers that are known.
async fn wait_in_line(
    mut ticket: Ticket,
    progress: Option<&Progress>,
    mut urgency: Option<Urgency>,
) -> Option<Result<Lease, AcquireError>> {
    let Some(progress) = progress else {
        return Some(ticket.wait().await);
    };
    progress.in_line();
    let granted = loop {
        tokio::select! {
            biased;
            // Before a lease: a deserted request is not sent, however late it learns of that.
            () = progress.deserted() => return None,
            granted = ticket.wait() => break granted,
            risen = progress.awaited_beyond(urgency) => {
                ticket.raise(class_of(risen));
                urgency = Some(risen);
            }
        }
    };
    progress.under_way(Millis(clock::now()));
    Some(granted)
}

/// Seconds after which a refused client may come again: two minutes at most, since a queue is soon empty
/// once a storm is over.
fn retry_after(milliseconds: u64) -> u16 {
    const MOST: u64 = 120;
    u16::try_from(milliseconds.div_ceil(1000).clamp(1, MOST)).unwrap_or(1)
}

/// There is no server for the request: `last` is how the one before failed.
pub(super) fn refused(
    spec: &FetchSpec,
    error: AcquireError,
    last: FetchError,
    queued_at: u64,
) -> FetchError {
    match error {
        AcquireError::Exhausted => return last,
        AcquireError::LeftOut => {
            spec.context.log.left_out(&spec.to.group);
            return FetchError::LeftOut;
        }
        _ => {}
    }
    let turn = spec.to.turn.as_ref().filter(|_| error.is_overload());
    if turn.is_none_or(|turn| spec.context.log.may_tell_of_refusal(turn)) {
        let message = format_args!("{error} while connecting to upstream");
        let report = |message| {
            spec.context
                .log
                .write(LogLevel::Error, Some(spec.to.group.name()), message)
        };
        match turn {
            None => report(message),
            Some(turn) => report(format_args!(
                "{error} while connecting to upstream (a {} with the turn of {}; further refusals of it are \
                 not said for a minute): raise \"workers\" or \"crawler_share\" if it should be served, or \
                 \"deny\" it",
                spec.class.name(),
                turn.kind
            )),
        }
    }
    let overload = error.is_overload().then(|| Overload {
        status: match (error, spec.class) {
            (AcquireError::TurnFull, _) | (_, Class::Crawler) => 429,
            _ => 503,
        },
        retry_after: {
            let delay = turn.and_then(|turn| turn.request.crawl_delay);
            let waits = spec.to.group.retry_after(spec.class);
            retry_after(waits.max(delay.unwrap_or(0)))
        },
    });
    let now = clock::recent();
    spec.context.trace.lock().tries.push(Try {
        address: spec.to.group.name().into(),
        status: Some(overload.map_or(502, |overload| overload.status)),
        started_at: now,
        refused_after_ms: Some(now.saturating_sub(queued_at)),
        ..Try::default()
    });
    overload.map_or(FetchError::NoLiveUpstreams, FetchError::Overloaded)
}
