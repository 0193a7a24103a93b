//! A fetch from an upstream: choose a server, send the request, read the response
//! head, try the next server if `*_next_upstream` allows it. The result is a head
//! and a body that is read on demand; who reads it (one client, or the cache for
//! everybody) is not decided here.
//!
//! ```text
//! fetch ─ waiting_line ─► a server ─ attempt ─► response head, UpstreamBody
//!   ▲                                   │
//!   └────────── the next server ────────┘
//! ```

mod attempt;
mod connecting;
mod context;
mod error;
mod exchange;
mod file_copy;
pub mod health;
mod hint_sender;
pub mod naming;
mod outgoing_body;
mod resend;
mod spec;
mod tag_lines;
pub mod trace;
mod upstream_body;
mod upstream_request;
mod waiting_line;

use std::sync::Arc;

use site::LogLevel;
use transport::request_body::RequestBody;
use upstream::{Outcome, PickKey, TriedSet};

use crate::naming::Lookup;

use attempt::attempt;
use error::{FailedRequest, Failure};
use resend::Resend;
use waiting_line::{refused, wait_for_turn};

pub use context::{FetchContext, FetchLog};
pub use error::{FetchError, Overload};
pub use file_copy::FileCopy;
pub use hint_sender::{Hint, HintSender};
pub use outgoing_body::{OutgoingBody, StreamedBody};
pub use spec::{FetchSpec, FetchTarget};
pub use trace::{Trace, Try};
pub use upstream_body::{FetchedResponse, TruncatedBody, UpstreamBody};
pub use upstream_request::{HttpRequest, MemcachedRequest, UpstreamRequest};

/// Asks until there is a response to pass on or no server is left to ask.
pub async fn fetch(spec: &mut FetchSpec) -> Result<FetchedResponse, FetchError> {
    if let Some(lookup) = spec.to.lookup.take() {
        Box::pin(look_up(spec, lookup)).await?;
    }
    let exchange = &spec.context.pass.exchange;
    let (next, next_timeout) = (exchange.next_upstream, exchange.next_timeout);
    let may_repeat = spec.may_repeat();
    let max_tries = match exchange.next_tries {
        0 => spec.to.group.tries(),
        tries => tries.min(spec.to.group.tries()),
    };
    let started = clock::recent();
    let mut tried = TriedSet::new();
    let mut resend = Resend::allowed_by(spec);
    let mut last = FetchError::NoLiveUpstreams;
    for tries in 1.. {
        let queued_at = clock::recent();
        let key = PickKey {
            client_addr: spec.to.client,
            hash_key: spec.to.hash_key.as_deref(),
            // `keepalive ... local` keeps to the location, whose pass this is.
            location: Arc::as_ptr(&spec.context.pass).addr() as u64,
            security: 0,
            local: spec.to.local,
            turn: spec.to.turn.as_ref(),
        };
        let lease = match wait_for_turn(spec, key, &tried, queued_at).await {
            Some(Ok(lease)) => lease,
            Some(Err(error)) => return Err(refused(spec, error, last, queued_at)),
            None => return Err(FetchError::LeftOut),
        };
        let queued = clock::recent().saturating_sub(queued_at);
        let server = lease.server();
        let failure = match attempt(spec, lease, queued, &mut resend).await {
            Ok(mut fetched) => {
                let failed = next.has_status(fetched.status);
                let may_go_on = tries < max_tries && spec.streaming.is_none();
                if !failed || !may_go_on || !may_repeat {
                    fetched.body.take_at_hand();
                    return Ok(fetched);
                }
                // A missing or forbidden page is no fault of the server's.
                let outcome = match fetched.status {
                    403 | 404 => Outcome::Neutral,
                    _ => Outcome::Failure,
                };
                let status = fetched.status;
                fetched.body.give_up(outcome);
                Failure {
                    error: FetchError::Status(status),
                    request: FailedRequest::Refused,
                }
            }
            Err(failure) => failure,
        };
        last = failure.error;
        if spec.to.own_pool && failure.request == FailedRequest::Unanswered && resend.take() {
            continue;
        }
        let named = failure.request == FailedRequest::Refused
            || match failure.error {
                FetchError::Error => next.error,
                FetchError::Timeout => next.timeout,
                FetchError::InvalidHeader => next.invalid_header,
                _ => false,
            };
        let repeatable = failure.request == FailedRequest::Unsent || may_repeat;
        let in_time = next_timeout.is_zero()
            || clock::recent().saturating_sub(started) < clock::millis(next_timeout);
        let body_is_there =
            spec.streaming.is_none() && !matches!(spec.body, RequestBody::Streamed(_));
        if !(named && repeatable && in_time && body_is_there && tries < max_tries) {
            break;
        }
        tried.insert(server);
    }
    Err(last)
}

/// Finds the servers of a group that a variable named.
async fn look_up(spec: &FetchSpec, lookup: Lookup) -> Result<(), FetchError> {
    let Err(error) = lookup.fill(&spec.to.group).await else {
        return Ok(());
    };
    let (context, name) = (&spec.context, spec.to.group.name());
    context
        .log
        .write(LogLevel::Error, Some(name), format_args!("{error}"));
    // A try without an address: none was found.
    context.trace.lock().tries.push(Try {
        status: Some(502),
        started_at: clock::recent(),
        ..Try::default()
    });
    Err(FetchError::NoLiveUpstreams)
}
