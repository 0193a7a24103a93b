//! Turns a received head into a request: whole, refused or unreadable.

use http_semantics::RequestView;
use site::LogLevel;
use transport::request_body::RequestBody;
use transport::service::{BodyLength, ReceivedHead, Refusal};

use super::{Memory, RequestTerms, counting, validate};
use crate::exchange::request::Request;
use crate::log::{access_log, error_log};
use server_base::sampling::{self, Sample};

const EARLY_DATA: &[u8] = b"Early-Data";

/// A request whose host, target and length are beyond doubt, or why it is refused.
#[inline]
pub fn receive(
    terms: RequestTerms,
    memory: &mut Memory,
    received: ReceivedHead,
    body_of: impl FnOnce(RequestView<'_>, bool) -> Result<BodyLength, Box<Refusal>>,
) -> (Box<Request>, Result<BodyLength, Box<Refusal>>) {
    terms.configuration.live.stats.requests.add_one();
    let listener = terms.listener;
    let is_first = received.nth_on_connection == 1;
    let mut request = begin(terms, received, sampling::start());
    if is_first {
        counting::count_connection(&request);
    }
    let body = validate::validate(listener, &mut request, &mut memory.host, body_of);
    if matches!(body, Ok(BodyLength::Known(_) | BodyLength::Unknown)) {
        request.body = RequestBody::Unread;
    }
    (request, body)
}

/// Creates a request for a head that could not be parsed: it is answered with an error.
pub fn receive_unreadable(terms: RequestTerms, received: ReceivedHead) -> Box<Request> {
    terms.configuration.live.stats.requests.add_one();
    let mut request = begin_unreadable(terms, received);
    if request.route.path.is_empty() {
        request.route.path.extend_from_slice(b"/");
    }
    request
}

/// Logs a request whose head never came whole: no client is there to answer.
pub fn abandoned(terms: RequestTerms, received: ReceivedHead, reason: &str, status: u16) {
    let mut request = begin_unreadable(terms, received);
    request.delivery.status = status;
    error_log::request(
        &request,
        LogLevel::Info,
        format_args!("{reason} while reading client request headers"),
    );
    if *request.received_bytes.get_mut() > 0 {
        counting::count(&request);
        access_log::log(&request);
    }
}

/// The request that was received, with the connection's part of it.
#[inline]
fn begin(terms: RequestTerms, mut received: ReceivedHead, sample: Option<Sample>) -> Box<Request> {
    let head = &mut received.head;
    if received.is_early && head.field(EARLY_DATA).is_none() {
        // The upstream that answers in our place has to know (RFC 8470 §5.1).
        head.add_field(EARLY_DATA, b"1");
    }
    let now = clock::recent();
    Request::new(terms.configuration, received, sample, terms.server, now)
}

/// Creates a request for an unreadable head.
fn begin_unreadable(terms: RequestTerms, received: ReceivedHead) -> Box<Request> {
    let mut request = begin(terms, received, None);
    if let Ok(target) = http_semantics::Target::parse(request.received.head().target(), true) {
        request.route.path.extend_from_slice(&target.path);
        let query = target.query.unwrap_or_default();
        request.route.args.extend_from_slice(query);
    }
    request
}
