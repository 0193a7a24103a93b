//! From a reply to an outbound response: conditions, added fields, charset, ranges, and texts around
//! the body. The transport sends the result.
//!
//! The order is nginx's: later steps see the fields added earlier.

mod addition;
mod by_htaccess;
pub mod charset;
mod composition;
pub mod error_pages;
mod esi;
mod fields;
mod outbound;
mod pace;
mod pages;
mod parts;
mod proxy_hint;
mod ranges;
pub mod recode;
mod ssi;
mod sub_filter;
pub mod user_id;
mod window;

use http_cache::{Encoding, KnownField};
use http_semantics::Version;
use http_semantics::conditional::{self, Validators, Verdict};
use site::{IfModifiedSince, ServerTokens};

use crate::exchange::client_facts::ClientFacts;
use crate::exchange::delivery::{CarriedToResponse, Delivery};
use crate::exchange::reply::{Body, Reply, ReplySource};
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::RequestRoute;
use crate::exchange::variable;
use crate::respond::recode::Recoding;
use crate::route::pattern;
use recoding::{Recoder, Wait};

use addition::Addition;
use composition::Composition;

pub use pages::{absolute, add_slash, local_redirect, redirect, status_page};

/// Returns the name of a form that is stored beside a body: its content coding, or the language of
/// its parts.
pub fn form_name(form: Encoding) -> &'static str {
    match form {
        page_commands::KEPT_SSI => "ssi",
        page_commands::KEPT_ESI => "esi",
        coding => recoding::coding_name(coding),
    }
}

/// How far a response has been completed.
pub enum Completion {
    /// It is the request's own now, and can be sent.
    Ready,
    /// Its encoded form is being made, and nothing else changes it.
    Pending(Box<PendingForm>),
}

/// A response whose encoded form is being made.
pub struct PendingForm {
    reply: Box<Reply>,
    wait: Wait,
}

/// Completes `reply` as the directives say, and makes it the response of `request`.
pub fn complete(request: &mut Request, mut reply: Box<Reply>) -> Completion {
    if request.received.head().version() == Version::Http09 {
        return set(&mut request.delivery, reply);
    }
    if let Some(facts) = reply.head.facts.take() {
        carry(*facts, &mut request.delivery);
    }
    let changes = match adds_nothing(request, &reply) {
        true => prepare_alone(request, &mut reply),
        false => {
            request.delivery.server_text = server_text(request);
            let carried = request.delivery.carried.take();
            prepare(
                request,
                &mut reply,
                carried.map(|it| *it).unwrap_or_default(),
            )
        }
    };
    if pattern::has_failed(request) {
        // On the way of a field that is added: without it the response may not go out.
        *reply = status_page(request, 500);
        return set(&mut request.delivery, reply);
    }
    match changes {
        Changes::None => set(&mut request.delivery, reply),
        Changes::Some(changes) => {
            let body = std::mem::replace(&mut reply.body, Body::Empty);
            reply.body = changes.apply(request, body);
            set(&mut request.delivery, reply)
        }
        Changes::Wait(wait) => Completion::Pending(Box::new(PendingForm { reply, wait: *wait })),
    }
}

/// Keeps the facts of an upstream's response for the response to the client.
pub fn carry(facts: ClientFacts, delivery: &mut Delivery) {
    delivery.limit_rate = facts.limit_rate.or(delivery.limit_rate);
    delivery.accel_buffering = facts.is_buffered.or(delivery.accel_buffering);
    if facts.charset.is_some() {
        delivery.carried().accel_charset = facts.charset;
    }
    for (name, value) in facts.fields.as_slice() {
        delivery
            .carried()
            .fields
            .append(name.clone(), value.clone());
    }
}

fn set(delivery: &mut Delivery, reply: Box<Reply>) -> Completion {
    delivery.status = reply.head.status;
    delivery.reply = Some(reply);
    Completion::Ready
}

impl PendingForm {
    /// Waits for the form; then the response can be sent.
    pub async fn end(self: Box<Self>, delivery: &mut Delivery) {
        let PendingForm { mut reply, wait } = *self;
        if let Some(recoder) = recode::settle(wait, &mut reply).await {
            let body = std::mem::replace(&mut reply.body, Body::Empty);
            reply.body = recode::around(body, Some(recoder));
        }
        set(delivery, reply);
    }
}

/// The changes to a body on its way to the client.
enum Changes {
    None,
    Some(Box<BodyChanges>),
    /// Its encoded form takes its place.
    Wait(Box<Wait>),
}

/// The changes around a body, from within.
#[derive(Default)]
struct BodyChanges {
    composition: Option<Composition>,
    addition: Option<Addition>,
    recoder: Option<Recoder>,
}

impl BodyChanges {
    fn apply(self, request: &Request, body: Body) -> Body {
        if request.route.method == Method::Head {
            // The body is dropped; its existence decides how its length is sent.
            return body;
        }
        let mut body = match self.composition {
            Some(composition) => composition.around(request, body),
            None => body.into_arriving(),
        };
        if let Some(addition) = self.addition {
            body = Box::new(addition.around(body));
        }
        recode::around(Body::Arriving(body), self.recoder)
    }
}

impl Changes {
    fn of(recoding: Recoding, others: BodyChanges) -> Changes {
        let recoder = match recoding {
            Recoding::AsIs => None,
            Recoding::OnTheWay(recoder) => Some(recoder),
            Recoding::Wait(wait) => return Changes::Wait(wait),
        };
        match recoder.is_some() || others.composition.is_some() || others.addition.is_some() {
            true => Changes::Some(Box::new(BodyChanges { recoder, ..others })),
            false => Changes::None,
        }
    }
}

/// Everything that may change the reply before it is sent.
#[inline(never)]
fn prepare(request: &Request, reply: &mut Reply, carried: CarriedToResponse) -> Changes {
    carry_over(&carried, reply);
    proxy_hint::note_circle(request, reply);
    if request.settings().post_action.is_some() {
        request
            .values
            .write(|values| values.later.has_post_action = true);
    }
    if let Some(status) = request.delivery.error_page.forced_status() {
        reply.head.status = status;
        reply.head.reason = None;
    }
    // A page of ESI has no validators: its fragments may change when the page itself does not.
    let runs_esi = esi::choose(request, reply);
    if reply.head.status == 200 && !request.route.is_subrequest() {
        check_conditions(request, reply);
    }
    // Before the filters, which remove validators that were added, too.
    let transcoder = fields::add(request, reply, carried);
    sub_filter::apply(request, reply);
    let composition = match runs_esi {
        true => Some(Composition::Esi),
        false => ssi::choose(request, reply).then_some(Composition::Ssi),
    };
    let transcoder = transcoder.and_then(|transcoder| charset::apply(transcoder, reply));
    let addition = addition::choose(request, reply);
    let is_itself = transcoder.is_none() && addition.is_none() && composition.is_none();
    let recoding = recode::choose(request, reply, is_itself);
    if reply.head.status == 200 && reply.head.form.accepts_ranges {
        ranges::apply(request, request.settings(), reply);
    }
    let recoding = match transcoder {
        Some(transcoder) => Recoding::OnTheWay(Recoder::Charset {
            transcoder,
            then: recoding.into_recoder().map(Box::new),
        }),
        None => recoding,
    };
    let others = BodyChanges {
        composition,
        addition,
        recoder: None,
    };
    Changes::of(recoding, others)
}

/// The usual hit: the location adds nothing to responses, and neither does anything
/// that became of the request on its way.
fn adds_nothing(request: &Request, reply: &Reply) -> bool {
    request.compiled_location().adds_nothing
        && reply.head.stored.is_some()
        && reply.head.status == 200
        && request.delivery.error_page.forced_status().is_none()
        && request.delivery.carried.is_none()
}

/// Prepares a response that nothing is added to.
fn prepare_alone(request: &Request, reply: &mut Reply) -> Changes {
    if !request.route.is_subrequest() {
        check_conditions(request, reply);
    }
    let place = request.compiled_location();
    let changes = match place.recoding.is_some() {
        true => Changes::of(recode::choose(request, reply, true), BodyChanges::default()),
        false => Changes::None,
    };
    if reply.head.status == 200 && reply.head.form.accepts_ranges {
        ranges::apply(request, &place.settings, reply);
    }
    changes
}

/// Fields of a response that another one took the place of.
fn carry_over(carried: &CarriedToResponse, reply: &mut Reply) {
    for (name, value) in carried.error_fields.as_slice() {
        // There is one place to go to, the last that was named.
        if http_semantics::same_name(name, b"location") && reply.head.has("location") {
            continue;
        }
        reply.head.fields.append(name.clone(), value.clone());
    }
    if carried.fields.is_empty() {
        return;
    }
    reply.head.unpack();
    for (name, value) in carried.fields.as_slice() {
        if http_semantics::same_name(name, b"set-cookie") {
            reply.head.fields.append(name.clone(), value.clone());
        } else {
            reply.head.fields.set(name.clone(), value.clone());
        }
    }
}

/// May the request be conditional (RFC 9110 §13.1)? `If-Range` is for ranges.
fn may_be_conditional(head: http_semantics::RequestView<'_>) -> bool {
    // One by one: of names that the compiler sees, the bits are worked out ahead.
    head.may_have(b"if-none-match")
        || head.may_have(b"if-modified-since")
        || head.may_have(b"if-match")
        || head.may_have(b"if-unmodified-since")
}

/// `If-*` fields (RFC 9110 §13): 304 or 412 in the place of the response.
///
/// They are judged where the answer is made: here for own files and for stored responses. An
/// upstream that answers 200 has judged them itself, and a write that it has carried out must not be
/// reported as refused.
#[inline]
fn check_conditions(request: &Request, reply: &mut Reply) {
    if may_be_conditional(request.received.head().view())
        && judges_conditions(&request.route, reply)
    {
        evaluate_conditions(request, reply);
    }
}

fn judges_conditions(route: &RequestRoute, reply: &Reply) -> bool {
    let is_read = matches!(route.method, Method::Get | Method::Head);
    match reply.head.source {
        ReplySource::Server => true,
        ReplySource::Cache => is_read,
        ReplySource::Upstream => false,
    }
}

#[inline(never)]
fn evaluate_conditions(request: &Request, reply: &mut Reply) {
    let head = request.received.head();
    let last_modified = last_modified(reply);
    let rule = match request.settings().files.if_modified_since {
        Some(IfModifiedSince::Off) => conditional::IfModifiedSince::Off,
        Some(IfModifiedSince::Exact) => conditional::IfModifiedSince::Exact,
        Some(IfModifiedSince::Before) => conditional::IfModifiedSince::Before,
        // RFC 9111 §4.3.2. A file that is put back is older than the copy of a client, and another;
        // the date of an application's page goes forward.
        None if reply.head.source == ReplySource::Cache => conditional::IfModifiedSince::Before,
        None => conditional::IfModifiedSince::Exact,
    };
    let verdict = {
        let etag = reply.head.known(KnownField::ETag);
        if last_modified.is_none() && etag.is_none() {
            return;
        }
        conditional::evaluate(
            head,
            Validators {
                etag,
                last_modified,
            },
            rule,
        )
    };
    match verdict {
        Verdict::Proceed => {}
        Verdict::NotModified => {
            reply.head.status = 304;
            reply.head.reason = None;
            reply.head.content_length = None;
            reply.head.form.accepts_ranges = false;
            reply.head.leave_out_body();
            reply.body = Body::Empty;
        }
        Verdict::PreconditionFailed => *reply = pages::status_page(request, 412),
    }
}

/// `Last-Modified` in unix seconds, read from stored fields only when needed.
fn last_modified(reply: &Reply) -> Option<i64> {
    reply.head.last_modified.or_else(|| {
        reply
            .head
            .known(KnownField::LastModified)
            .and_then(http_semantics::date::parse)
    })
}

/// The text of `server_tokens`, where it holds variables.
fn server_text(request: &Request) -> Option<Vec<u8>> {
    match &request.settings().headers.server_tokens {
        ServerTokens::Text(template) => Some(variable::evaluate(request, template)),
        _ => None,
    }
}
