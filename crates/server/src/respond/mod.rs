//! From a reply to bytes on the wire: conditions, added fields, charset,
//! ranges, framing; then head and body leave together.
//!
//! The order is nginx's: what is decided later sees what was added earlier.

mod addition;
pub mod charset;
mod fields;
mod head;
mod pages;
mod ranges;
pub mod recode;
mod send;

use bytes::Bytes;
use http_cache::{Known, MemoryFile};
use http1::Version;
use http1::conditional::{self, Validators, Verdict};
use site::{IfModifiedSince, ServerTokens, Settings};

use crate::base::ready_or_pending::ReadyOrPending;
use crate::content::ssi;
use crate::exchange::compiled_location::CompiledLocation;
use crate::exchange::reply::{Body, Reply, ReplyHead, Segment, SentConnection};
use crate::exchange::request::{Method, Request};
use crate::exchange::variable;
use crate::respond::recode::{Recoder, Recoding, Wait};
use crate::route::pattern;
use crate::transport::stream::ClientStream;

use addition::Around;
use head::HeadBuffer;

pub use pages::{absolute, add_slash, local_redirect, redirect, status_page};
pub use send::{SendError, Sender, flush};

/// What happens to the connection once the response is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    KeepAlive,
    Close,
}

/// How the body's end is told to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is none, whatever the fields say.
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

/// Statuses after which the connection is not used again (as nginx does):
/// what follows on it cannot be trusted to be a request.
const CLOSING_STATUSES: [u16; 10] = [400, 413, 414, 494, 495, 496, 497, 500, 501, 505];

fn is_closing(status: u16) -> bool {
    status >= 400 && CLOSING_STATUSES.contains(&status)
}

/// Sends `reply`; tells whether the connection may go on. The request's
/// status and byte counts are filled in for the log. Where another request is
/// here already (`is_followed`), the response may wait for that one's.
pub fn send<'a>(
    request: &'a mut Request,
    mut reply: Box<Reply>,
    stream: &'a ClientStream,
    may_keep_alive: bool,
    is_followed: bool,
) -> ReadyOrPending<'a, Result<After, SendError>> {
    if request.head.version() == Version::Http09 {
        return ReadyOrPending::pending(send_simple(request, reply, stream));
    }
    let prepared = match adds_nothing(request, &reply) {
        true => prepare_alone(request, &mut reply),
        false => prepare(request, &mut reply),
    };
    let prepared = match pattern::has_failed(request) {
        false => prepared,
        // On the way of a field that is added: without it the response may not go out.
        true => {
            *reply = status_page(request, 500);
            request.runs_ssi = false;
            Prepared::Ready(None)
        }
    };
    match prepared {
        Prepared::Ready(changes) => {
            send_prepared(request, reply, stream, changes, may_keep_alive, is_followed)
        }
        Prepared::Wait(wait) => ReadyOrPending::pending(async move {
            let recoder = wait.settle(&mut reply).await;
            let changes = Changes::of(recoder, None);
            let sent = send_prepared(request, reply, stream, changes, may_keep_alive, is_followed);
            sent.end().await
        }),
    }
}

/// Sends a response that nothing changes any more but `changes`.
fn send_prepared<'a>(
    request: &'a mut Request,
    mut reply: Box<Reply>,
    stream: &'a ClientStream,
    changes: Option<Box<Changes>>,
    may_keep_alive: bool,
    is_followed: bool,
) -> ReadyOrPending<'a, Result<After, SendError>> {
    let place = request.compiled_location();
    let framing = framing(request, &place.settings, &reply);
    let closes = !may_keep_alive
        || framing == BodyFraming::UntilClose
        || (is_closing(reply.head.status)
            && request.error_page.error_status().is_none_or(is_closing));
    let after = if closes {
        After::Close
    } else {
        After::KeepAlive
    };
    tell_connection(&mut reply.head, &place.settings, framing, after);
    let has_body = request.method != Method::Head && framing != BodyFraming::None;
    match has_body {
        true => reply.body.read_small_file(),
        // A body that nobody wants is dropped; one that is being stored goes on
        // arriving without this reader.
        false => reply.body = Body::Empty,
    }
    // Nothing to recode then, and to expand nothing would be an error.
    let changes = changes.filter(|_| has_body);
    let is_plain = changes.is_none() && !request.runs_ssi && !send::may_be_paced(request, place);
    let at_once = HeadBuffer::with(|head| {
        head::write(request, place, &reply.head, framing, head);
        match is_plain {
            true => try_at_once(
                place,
                stream,
                head,
                &reply.body,
                framing,
                is_followed && !closes,
            ),
            false => Ok(AtOnce::Part(head.take(), None)),
        }
    });
    request.status = reply.head.status;
    let (head, begun) = match at_once {
        Ok(AtOnce::All(begun)) => {
            count(request, begun.counts());
            // Nothing of the upstream is kept longer than needed.
            if let Body::Upstream(_) = reply.body {
                reply.body = Body::Empty;
            }
            request.reply = Some(reply);
            request.is_complete = true;
            return ReadyOrPending::Ready(Ok(after));
        }
        Ok(AtOnce::Part(head, begun)) => (head, begun),
        Err(error) => {
            request.reply = Some(reply);
            return ReadyOrPending::Ready(Err(error));
        }
    };
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    request.reply = Some(reply);
    let outgoing = Outgoing {
        head,
        begun,
        changes,
        body,
        framing,
        has_body,
    };
    ReadyOrPending::pending(async move {
        send_outgoing(request, stream, outgoing).await?;
        request.is_complete = true;
        Ok(after)
    })
}

/// How much of a response left in one system call.
enum AtOnce {
    All(send::Begun),
    /// What is left of it needs its head. `None`: it was not tried, since bytes of the body have
    /// to be waited for.
    Part(Vec<u8>, Option<send::Begun>),
}

/// Sends a response whose body leaves as it is, if it is at hand.
#[inline]
fn try_at_once(
    place: &CompiledLocation,
    stream: &ClientStream,
    head: &mut HeadBuffer,
    body: &Body,
    framing: BodyFraming,
    is_followed: bool,
) -> Result<AtOnce, SendError> {
    let Some(chunks) = chunks_at_hand(body, framing) else {
        return Ok(AtOnce::Part(head.take(), None));
    };
    let file = file_at_hand(&place.settings, body);
    let begun = send::write_at_once(stream, head.bytes(), chunks, file, is_followed)?;
    Ok(match begun.is_all() {
        true => AtOnce::All(begun),
        false => AtOnce::Part(head.take(), Some(begun)),
    })
}

/// Says in the head what becomes of the connection, and how the body ends.
fn tell_connection(head: &mut ReplyHead, settings: &Settings, framing: BodyFraming, after: After) {
    head.sent_connection = match (head.status, after) {
        (101, _) => SentConnection::Upgrade,
        (_, After::Close) => SentConnection::Close,
        (_, After::KeepAlive) => SentConnection::KeepAlive,
    };
    head.sent_chunked = framing == BodyFraming::Chunked;
    head.sent_keep_alive = match after {
        After::KeepAlive => settings
            .connection
            .keepalive_header
            .map(|time| time.as_secs()),
        After::Close => None,
    };
}

/// A response that did not leave in one system call.
struct Outgoing {
    head: Vec<u8>,
    /// What did leave of a body that is at hand.
    begun: Option<send::Begun>,
    changes: Option<Box<Changes>>,
    body: Body,
    framing: BodyFraming,
    has_body: bool,
}

async fn send_outgoing(
    request: &mut Request,
    stream: &ClientStream,
    outgoing: Outgoing,
) -> Result<(), SendError> {
    let Outgoing { body, framing, .. } = outgoing;
    let Changes { recoder, around } = outgoing.changes.map_or_else(Changes::default, |all| *all);
    let mut sender = Sender::new(request, stream, recoder, outgoing.head);
    let sent = match (outgoing.begun, chunks_at_hand(&body, framing)) {
        (Some(begun), Some(chunks)) => sender.send_rest(begun, chunks).await,
        _ => {
            let has_body = outgoing.has_body;
            send_in_turn(request, &mut sender, around, body, framing, has_body).await
        }
    };
    if let Some(reply) = &mut request.reply {
        reply.head.compressed = sender.compression().or(reply.head.compressed);
    }
    let (bytes, head_bytes, head) = sender.into_counts();
    HeadBuffer::give(head);
    count(request, (bytes, head_bytes));
    sent
}

fn count(request: &mut Request, (bytes, head_bytes): (u64, u64)) {
    request.bytes_sent += bytes;
    request.head_bytes_sent += head_bytes;
}

/// The pieces of a body that can follow the head as they are.
#[inline]
fn chunks_at_hand(body: &Body, framing: BodyFraming) -> Option<&[Bytes]> {
    match body {
        Body::Empty if framing != BodyFraming::Chunked => Some(&[]),
        Body::Stored {
            response,
            start: 0,
            end,
        } if *end == response.body.len() && framing != BodyFraming::Chunked => {
            Some(response.body.chunks())
        }
        Body::Encoded(body) if framing != BodyFraming::Chunked => Some(body.chunks()),
        Body::Segments(segments) if framing != BodyFraming::Chunked => match segments.as_slices() {
            ([Segment::Memory(bytes)], []) => Some(std::slice::from_ref(bytes)),
            _ => None,
        },
        Body::Upstream(body) => match framing {
            BodyFraming::Length(length) => body.at_hand(length),
            _ => None,
        },
        _ => None,
    }
}

/// A body that is at hand, as a file in memory.
fn file_at_hand<'a>(settings: &Settings, body: &'a Body) -> Option<&'a MemoryFile> {
    let body = match body {
        Body::Stored { response, .. } => &response.body,
        Body::Encoded(body) => body,
        _ => return None,
    };
    settings.files.sendfile.then(|| body.file())?
}

/// The body as it comes, with all that belongs around it and after it.
async fn send_in_turn(
    request: &mut Request,
    sender: &mut Sender<'_>,
    around: Option<Around>,
    body: Body,
    framing: BodyFraming,
    has_body: bool,
) -> Result<(), SendError> {
    if !has_body {
        return sender.send(Body::Empty, BodyFraming::None).await;
    }
    match around {
        None => send_body(request, sender, body, framing).await?,
        Some(around) => send_around(request, sender, around, body, framing).await?,
    }
    fields::add_trailers(request, sender.take_trailers());
    sender.end(framing, &request.extras.trailers).await
}

/// The body, or what comes of it where its commands are run.
async fn send_body(
    request: &mut Request,
    sender: &mut Sender<'_>,
    body: Body,
    framing: BodyFraming,
) -> Result<(), SendError> {
    match request.runs_ssi {
        true => Box::pin(ssi::send(request, sender, body, framing)).await,
        false => sender.send(body, framing).await,
    }
}

/// The body with what `add_before_body` and `add_after_body` put around it.
async fn send_around(
    request: &mut Request,
    sender: &mut Sender<'_>,
    around: Around,
    body: Body,
    framing: BodyFraming,
) -> Result<(), SendError> {
    if let Some(path) = &around.before {
        addition::send(request, sender, path, framing).await?;
    }
    send_body(request, sender, body, framing).await?;
    if let Some(path) = &around.after {
        addition::send(request, sender, path, framing).await?;
    }
    Ok(())
}

/// HTTP/0.9: the body alone, then the end.
async fn send_simple(
    request: &mut Request,
    mut reply: Box<Reply>,
    stream: &ClientStream,
) -> Result<After, SendError> {
    request.status = reply.head.status;
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    request.reply = Some(reply);
    let mut sender = Sender::new(request, stream, None, Vec::new());
    let sent = sender.send(body, BodyFraming::UntilClose).await;
    let (bytes, _, _) = sender.into_counts();
    request.bytes_sent += bytes;
    sent?;
    request.is_complete = true;
    Ok(After::Close)
}

/// What happens to a body on its way to the client.
#[derive(Default)]
struct Changes {
    recoder: Option<Recoder>,
    /// What stands around it.
    around: Option<Around>,
}

impl Changes {
    /// Nothing for most, and that is small.
    fn of(recoder: Option<Recoder>, around: Option<Around>) -> Option<Box<Changes>> {
        let is_any = recoder.is_some() || around.is_some();
        is_any.then(|| Box::new(Changes { recoder, around }))
    }
}

/// A reply that is about to be framed.
enum Prepared {
    Ready(Option<Box<Changes>>),
    /// Its encoded form is being made; nothing else changes it.
    Wait(Box<Wait>),
}

impl Prepared {
    fn of(recoding: Recoding, around: Option<Around>) -> Prepared {
        match recoding {
            Recoding::AsIs => Prepared::Ready(Changes::of(None, around)),
            Recoding::OnTheWay(recoder) => Prepared::Ready(Changes::of(Some(recoder), around)),
            Recoding::Wait(wait) => Prepared::Wait(wait),
        }
    }
}

/// Everything that may change the reply before it is framed.
#[inline(never)]
fn prepare(request: &mut Request, reply: &mut Reply) -> Prepared {
    carry_over(request, reply);
    if let Some(status) = request.error_page.forced_status() {
        reply.head.status = status;
        reply.head.reason = None;
    }
    if reply.head.status == 200 && !request.is_subrequest() {
        check_conditions(request, reply);
    }
    ssi::choose(request, reply);
    let transcoder = fields::add(request, reply);
    let transcoder = transcoder.and_then(|transcoder| charset::apply(transcoder, reply));
    let around = addition::choose(request, reply);
    let is_itself = transcoder.is_none() && around.is_none() && !request.runs_ssi;
    let recoding = recode::choose(request, reply, is_itself);
    if reply.head.status == 200 && reply.head.accepts_ranges {
        ranges::apply(request, request.settings(), reply);
    }
    let recoding = match transcoder {
        Some(transcoder) => Recoding::OnTheWay(Recoder::Charset {
            transcoder,
            then: recoding.into_recoder().map(Box::new),
        }),
        None => recoding,
    };
    Prepared::of(recoding, around)
}

/// The usual hit: the location adds nothing to responses, and neither does anything
/// that became of the request on its way.
fn adds_nothing(request: &Request, reply: &Reply) -> bool {
    request.compiled_location().adds_nothing
        && reply.head.stored.is_some()
        && reply.head.status == 200
        && request.error_page.forced_status().is_none()
        && !request.extras.reach_response()
}

/// What is left to decide about a response that nothing is added to.
fn prepare_alone(request: &mut Request, reply: &mut Reply) -> Prepared {
    request.runs_ssi = false;
    if !request.is_subrequest() {
        check_conditions(request, reply);
    }
    let place = request.compiled_location();
    let prepared = match place.recodes {
        true => Prepared::of(recode::choose(request, reply, true), None),
        false => Prepared::Ready(None),
    };
    if reply.head.status == 200 && reply.head.accepts_ranges {
        ranges::apply(request, &place.settings, reply);
    }
    prepared
}

/// Fields of a response that another one took the place of.
fn carry_over(request: &mut Request, reply: &mut Reply) {
    for (name, value) in request.extras.carried_error.as_slice() {
        // There is one place to go to, the last that was named.
        if http1::same_name(name, b"location") && reply.head.has("location") {
            continue;
        }
        reply.head.fields.append(name.clone(), value.clone());
    }
    if request.extras.carried.is_empty() {
        return;
    }
    reply.head.unpack();
    for (name, value) in std::mem::take(&mut request.extras.carried).as_slice() {
        if http1::same_name(name, b"set-cookie") {
            reply.head.fields.append(name.clone(), value.clone());
        } else {
            reply.head.fields.set(name.clone(), value.clone());
        }
    }
}

/// May the request be conditional (RFC 9110 §13.1)? `If-Range` is for ranges.
fn may_be_conditional(head: http1::RequestView<'_>) -> bool {
    // One by one: of names that the compiler sees, the bits are worked out ahead.
    head.may_have(b"if-none-match")
        || head.may_have(b"if-modified-since")
        || head.may_have(b"if-match")
        || head.may_have(b"if-unmodified-since")
}

/// `If-*` fields (RFC 9110 §13): 304 or 412 in the place of the response.
///
/// They are judged where the answer is made: here for own files and for what the cache has for
/// reading. An upstream that answers 200 has judged them itself, and a write that it has carried
/// out must not be reported as refused.
#[inline]
fn check_conditions(request: &Request, reply: &mut Reply) {
    if may_be_conditional(request.head.view()) && judges_conditions(request, reply) {
        evaluate_conditions(request, reply);
    }
}

fn judges_conditions(request: &Request, reply: &Reply) -> bool {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    !reply.head.is_of_upstream && (is_read || !reply.head.is_of_cache)
}

#[inline(never)]
fn evaluate_conditions(request: &Request, reply: &mut Reply) {
    let head = &request.head;
    let last_modified = last_modified(reply);
    let rule = match request.settings().files.if_modified_since {
        IfModifiedSince::Off => conditional::IfModifiedSince::Off,
        IfModifiedSince::Exact => conditional::IfModifiedSince::Exact,
        IfModifiedSince::Before => conditional::IfModifiedSince::Before,
    };
    let verdict = {
        let etag = reply.head.known(Known::ETag);
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
            reply.head.accepts_ranges = false;
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
            .known(Known::LastModified)
            .and_then(http1::date::parse)
    })
}

fn framing(request: &Request, settings: &Settings, reply: &Reply) -> BodyFraming {
    match reply.head.status {
        100..=199 | 204 | 304 => return BodyFraming::None,
        _ => {}
    }
    let may_chunk =
        request.head.version() >= Version::Http11 && settings.connection.chunked_transfer_encoding;
    // Only chunks have room for trailers.
    let has_trailers = !settings.headers.trailers.is_empty() && may_chunk;
    if let Some(length) = reply.head.content_length.filter(|_| !has_trailers) {
        return BodyFraming::Length(length);
    }
    let is_empty = matches!(reply.body, Body::Empty)
        && settings.addition.before.is_none()
        && settings.addition.after.is_none();
    if is_empty && !has_trailers {
        return if request.method == Method::Head {
            BodyFraming::None
        } else {
            BodyFraming::Length(0)
        };
    }
    if may_chunk {
        BodyFraming::Chunked
    } else {
        BodyFraming::UntilClose
    }
}

/// The text of `server_tokens`, where it holds variables.
pub(crate) fn evaluate_server_text(request: &mut Request) {
    if !matches!(
        request.settings().headers.server_tokens,
        ServerTokens::Text(_)
    ) {
        return;
    }
    let settings = request.settings_held();
    if let ServerTokens::Text(template) = &settings.headers.server_tokens {
        request.extras.server_text = Some(variable::evaluate(request, template));
    }
}
