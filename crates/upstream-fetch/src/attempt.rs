//! One try at one server: a connection, the request, the response head.

use std::time::Instant;

use bytes::Bytes;
use http_semantics::same_name;
use site::LogLevel;
use transport::request_body::RequestBody;
use upstream::{Lease, Outcome};
use upstream_exchange::{Event, ResponseHead};

use super::connecting::{connect_anew, take_kept, unconnected};
use super::context::FetchContext;
use super::error::{FailedRequest, Failure, FetchError, client_status};
use super::exchange::{Error, Exchange};
use super::hint_sender::{Hint, HintSender};
use super::outgoing_body::OutgoingBody;
use super::resend::Resend;
use super::spec::FetchSpec;
use super::upstream_body::{ConnectionAge, FetchedResponse, UpstreamBody};
use super::upstream_request::UpstreamRequest;

/// Sends the request to the server of `lease` and reads the response head.
pub(super) async fn attempt(
    spec: &mut FetchSpec,
    mut lease: Lease,
    queued: u64,
    resend: &mut Resend,
) -> Result<FetchedResponse, Failure> {
    let began = Instant::now();
    let mut kept = take_kept(spec, &mut lease, resend);
    spec.context
        .trace
        .lock()
        .begin_try(lease.address().clone(), queued, kept.is_some());
    loop {
        let connection = match kept.take() {
            Some(connection) => connection,
            None => match Box::pin(connect_anew(spec, &mut lease)).await {
                Ok(connection) => {
                    spec.context.trace.lock().connected();
                    connection
                }
                Err(error) => return Err(unconnected(&spec.context, lease, &error)),
            },
        };
        let is_reused = connection.is_reused();
        let age = ConnectionAge {
            requests: connection.requests,
            born: connection.born,
        };
        let streaming = spec.streaming.take();
        let is_streaming = streaming.is_some();
        let body = match streaming {
            None => OutgoingBody::replay(&spec.body),
            Some(streamed) => {
                spec.body = RequestBody::Streamed(spec.body.length());
                OutgoingBody::Streamed(streamed)
            }
        };
        let head_limit =
            usize::try_from(spec.context.pass.exchange.head_bytes).unwrap_or(usize::MAX);
        let exchange =
            spec.request
                .start(connection.stream, is_reused, spec.is_head, head_limit, body);
        let mut upstream = Box::new(UpstreamBody::new(exchange, lease, age, spec));
        match read_head(&mut upstream, is_streaming, spec.hints.as_ref()).await {
            Ok(mut head) => {
                keep_first(&mut head.fields, b"expires");
                note_head(&spec.context, &head);
                let made_in = began.elapsed();
                if let Some(lease) = &mut upstream.lease {
                    lease.note_head(made_in);
                }
                if let (UpstreamRequest::Memcached(request), 404) = (&spec.request, head.status) {
                    report_not_found(&upstream, &request.key);
                    // Its end is here as well: the connection may serve again.
                    let _ = Box::pin(upstream.next()).await;
                }
                return Ok(FetchedResponse {
                    status: head.status,
                    reason: head.reason,
                    fields: head.fields,
                    content_length: head.content_length,
                    is_upgrade: head.is_upgrade,
                    made_in,
                    body: upstream,
                });
            }
            Err(HeadFailure::Exchange(error))
                if is_reused
                    && (error.before_first_byte() || error.is_leftover())
                    && resend.take() =>
            {
                // Most likely the server closed an idle connection as we took it, or sent
                // more on it than its last response.
                match upstream.lease.take() {
                    Some(back) => lease = back,
                    None => {
                        return Err(Failure {
                            error: FetchError::Error,
                            request: FailedRequest::Sent,
                        });
                    }
                }
            }
            Err(failure) => return Err(head_failed(&mut upstream, failure)),
        }
    }
}

fn report_not_found(upstream: &UpstreamBody, key: &[u8]) {
    let key = String::from_utf8_lossy(key);
    let message = format_args!("key: \"{key}\" was not found by memcached");
    upstream.report(LogLevel::Info, message);
}

/// Stores the fields of a head for variables.
fn note_head(context: &FetchContext, head: &ResponseHead) {
    let mut trace = context.trace.lock();
    trace.head(head.status);
    if context.keeps_fields {
        trace.keep_fields(&head.fields);
    }
}

/// Drops repetitions of a field that may stand only once: two answers to one
/// question, of which the first holds.
fn keep_first(fields: &mut Vec<(Bytes, Bytes)>, name: &[u8]) {
    let mut seen = false;
    fields.retain(|(field, _)| {
        let is_it = same_name(field, name);
        let is_repeated = seen && is_it;
        seen |= is_it;
        !is_repeated
    });
}

enum HeadFailure {
    Exchange(Error),
    /// It ended where a head should have been.
    Closed,
    Timeout {
        sent: bool,
    },
    /// stderr held one of `fastcgi_catch_stderr`'s texts.
    CaughtStderr,
}

async fn read_head(
    upstream: &mut UpstreamBody,
    is_streaming: bool,
    hints: Option<&HintSender>,
) -> Result<ResponseHead, HeadFailure> {
    let mut hinted_bytes = 0;
    loop {
        let Some(exchange) = &mut upstream.exchange else {
            return Err(HeadFailure::Closed);
        };
        let settings = &upstream.context.pass.exchange;
        let limit = |exchange: &Exchange| match exchange.is_request_sent() {
            true => settings.read_timeout,
            // A body that is still arriving has the client's own timeout too.
            false if is_streaming => settings.send_timeout.max(settings.read_timeout),
            false => settings.send_timeout,
        };
        let Some(event) = exchange.next_within(&upstream.deadline, limit).await else {
            return Err(HeadFailure::Timeout {
                sent: exchange.is_request_sent(),
            });
        };
        match event.map_err(HeadFailure::Exchange)? {
            Some(Event::Head(head)) => return Ok(head),
            Some(Event::Interim(head)) => {
                if let Some(hints) = hints {
                    hint(upstream, hints, head, &mut hinted_bytes);
                }
            }
            Some(Event::Stderr(text)) => {
                upstream.log_stderr(&text, "reading response header from upstream");
                let caught = upstream.context.pass.fastcgi().is_some_and(|fastcgi| {
                    fastcgi
                        .catch_stderr
                        .iter()
                        .any(|caught| contains(&text, caught))
                });
                if caught {
                    return Err(HeadFailure::CaughtStderr);
                }
            }
            Some(Event::Data(_) | Event::Trailers(_) | Event::End { .. }) | None => {
                return Err(HeadFailure::Closed);
            }
        }
    }
}

/// Sends an informational response on its way. All of a try together have as much room as a response
/// head, as with nginx.
fn hint(upstream: &UpstreamBody, hints: &HintSender, head: ResponseHead, hinted_bytes: &mut u64) {
    let lengths = head
        .fields
        .iter()
        .map(|(name, value)| name.len() + value.len());
    *hinted_bytes += lengths.sum::<usize>() as u64;
    if *hinted_bytes > upstream.settings().head_bytes {
        let message = format_args!("upstream sent too big early hints");
        return upstream.report(LogLevel::Info, message);
    }
    hints.send(Hint {
        status: head.status,
        fields: head.fields,
    });
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(text, wanted).is_some()
}

fn head_failed(upstream: &mut UpstreamBody, failure: HeadFailure) -> Failure {
    let (error, request, status) = match failure {
        HeadFailure::CaughtStderr => (FetchError::InvalidHeader, FailedRequest::Sent, 502),
        HeadFailure::Timeout { sent } => {
            upstream.report(
                LogLevel::Error,
                if sent {
                    format_args!("upstream timed out (110: Connection timed out) while reading response header from upstream")
                } else {
                    format_args!("upstream timed out (110: Connection timed out) while sending request to upstream")
                },
            );
            (FetchError::Timeout, FailedRequest::Sent, 504)
        }
        HeadFailure::Closed => (FetchError::Error, FailedRequest::Sent, 502),
        HeadFailure::Exchange(error) => {
            if let Some(error) = error.of_request_body() {
                let status = client_status(error);
                upstream.report(LogLevel::Info, format_args!("{error}"));
                upstream.abandon(Outcome::Neutral, Some(status));
                return Failure {
                    error: FetchError::Client(status),
                    request: FailedRequest::Sent,
                };
            }
            let kind = match error.is_invalid_head() {
                true => FetchError::InvalidHeader,
                false => FetchError::Error,
            };
            let request = match error.before_first_byte() && kind == FetchError::Error {
                true => FailedRequest::Unanswered,
                false => FailedRequest::Sent,
            };
            upstream.report(
                LogLevel::Error,
                format_args!("{error} while reading response header from upstream"),
            );
            (kind, request, 502)
        }
    };
    upstream.abandon(Outcome::Failure, Some(status));
    Failure { error, request }
}
