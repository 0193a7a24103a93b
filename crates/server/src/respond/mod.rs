//! From a reply to bytes on the wire: conditions, added fields, charset,
//! ranges, framing; then head and body leave together.
//!
//! The order is nginx's: what is decided later sees what was added earlier.

mod addition;
mod fields;
mod pages;
mod ranges;
mod send;

use std::pin::Pin;

use bytes::Bytes;
use http_cache::MemoryFile;
use http1::conditional::{self, Validators, Verdict};
use http1::{HeadWriter, Version};
use site::{Coding, IfModifiedSince, ServerTokens};

use crate::charset;
use crate::clock;
use crate::recode::{self, Recoder, Recoding};
use crate::reply::{Body, Reply, ReplyHead, Segment, SentConnection, describes_body};
use crate::request::{Method, Request};
use crate::ssi;
use crate::stream::ClientStream;
use crate::variable;

use addition::Around;

pub use fields::is_configured as adds_fields;
pub use pages::{absolute, add_slash, local_redirect, redirect, status_page};
pub use send::{SendError, Sender, flush, is_pace_configured};

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

/// How far a response has come.
pub enum Sent<'a> {
    /// It is out, or cannot be.
    Settled(Result<After, SendError>),
    /// Something has to be waited for. Whoever waits pays for a future of its own: kept in
    /// that of its connection it would cost each of them, the idle ones too, a kilobyte.
    Rest(Pin<Box<dyn Future<Output = Result<After, SendError>> + Send + 'a>>),
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
) -> Sent<'a> {
    if request.head.version() == Version::Http09 {
        return Sent::Rest(Box::pin(send_simple(request, reply, stream)));
    }
    let (recoding, around) = prepare(request, &mut reply);
    let recoder = match recoding {
        Recoding::AsIs => None,
        Recoding::OnTheWay(recoder) => Some(recoder),
        Recoding::Wait(wait) => {
            return Sent::Rest(Box::pin(async move {
                let recoder = wait.settle(&mut reply).await;
                let coded = (recoder, around);
                match send_prepared(request, reply, stream, coded, may_keep_alive, is_followed) {
                    Sent::Settled(after) => after,
                    Sent::Rest(rest) => rest.await,
                }
            }));
        }
    };
    let coded = (recoder, around);
    send_prepared(request, reply, stream, coded, may_keep_alive, is_followed)
}

/// Sends a response that nothing changes any more but what recodes its body and what
/// stands around it.
fn send_prepared<'a>(
    request: &'a mut Request,
    mut reply: Box<Reply>,
    stream: &'a ClientStream,
    (recoder, around): (Option<Recoder>, Option<Around>),
    may_keep_alive: bool,
    is_followed: bool,
) -> Sent<'a> {
    let framing = framing(request, &reply);
    let closes = !may_keep_alive
        || framing == BodyFraming::UntilClose
        || (is_closing(reply.head.status) && request.error_status.is_none_or(is_closing));
    let mut head = take_buffer();
    reply.head.sent_connection = match reply.head.status {
        101 => SentConnection::Upgrade,
        _ if closes => SentConnection::Close,
        _ => SentConnection::KeepAlive,
    };
    reply.head.sent_chunked = framing == BodyFraming::Chunked;
    let keep_alive = request.settings().connection.keepalive_header;
    reply.head.sent_keep_alive = keep_alive.filter(|_| !closes).map(|time| time.as_secs());
    request.status = reply.head.status;
    write_head(request, &reply.head, framing, &mut head);
    let has_body = request.method != Method::Head && framing != BodyFraming::None;
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    request.reply = Some(reply);
    // A body that nobody wants is dropped; one that is being stored goes on
    // arriving without this reader.
    let mut body = if has_body { body } else { Body::Empty };
    body.read_small_file();
    // Nothing to recode then, and to expand nothing would be an error.
    let recoder = recoder.filter(|_| has_body);
    let is_plain =
        recoder.is_none() && around.is_none() && !request.runs_ssi && !send::may_be_paced(request);
    let after = if closes {
        After::Close
    } else {
        After::KeepAlive
    };
    let begun = match chunks_at_hand(&body, framing).filter(|_| is_plain) {
        Some(chunks) => {
            let file = file_at_hand(request, &body);
            let is_followed = is_followed && !closes;
            match send::write_at_once(stream, &mut head, chunks, file, is_followed) {
                Ok(begun) if begun.is_all(&head, chunks) => {
                    count(request, begun.counts(&head));
                    give_buffer(head);
                    request.is_complete = true;
                    return Sent::Settled(Ok(after));
                }
                Ok(begun) => Some(begun),
                Err(error) => return Sent::Settled(Err(error)),
            }
        }
        None => None,
    };
    let outgoing = Outgoing {
        head,
        begun,
        recoder,
        around,
        body,
        framing,
        has_body,
    };
    Sent::Rest(Box::pin(async move {
        send_outgoing(request, stream, outgoing).await?;
        request.is_complete = true;
        Ok(after)
    }))
}

/// A response that did not leave in one system call.
struct Outgoing {
    head: Vec<u8>,
    /// What did leave of a body that is at hand.
    begun: Option<send::Begun>,
    recoder: Option<Recoder>,
    around: Option<Around>,
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
    let mut sender = Sender::new(request, stream, outgoing.recoder, outgoing.head);
    let sent = match (outgoing.begun, chunks_at_hand(&body, framing)) {
        (Some(begun), Some(chunks)) => sender.send_rest(begun, chunks).await,
        _ => {
            let (around, has_body) = (outgoing.around, outgoing.has_body);
            send_in_turn(request, &mut sender, around, body, framing, has_body).await
        }
    };
    if let Some(reply) = &mut request.reply {
        reply.head.compressed = sender.compression().or(reply.head.compressed);
    }
    let (bytes, head_bytes, head) = sender.into_counts();
    give_buffer(head);
    count(request, (bytes, head_bytes));
    sent
}

fn count(request: &mut Request, (bytes, head_bytes): (u64, u64)) {
    request.bytes_sent += bytes;
    request.head_bytes_sent += head_bytes;
}

/// The pieces of a body that can follow the head as they are.
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
fn file_at_hand<'a>(request: &Request, body: &'a Body) -> Option<&'a MemoryFile> {
    let body = match body {
        Body::Stored { response, .. } => &response.body,
        Body::Encoded(body) => body,
        _ => return None,
    };
    request.settings().files.sendfile.then(|| body.file())?
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
        let before = addition::body_of(request, path).await;
        sender.send(before, framing).await?;
    }
    send_body(request, sender, body, framing).await?;
    if let Some(path) = &around.after {
        let after = addition::body_of(request, path).await;
        sender.send(after, framing).await?;
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

thread_local! {
    static BUFFERS: std::cell::RefCell<Vec<Vec<u8>>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Buffers kept per thread: responses of one thread that are under way at once
/// and share them are few, since most are written in one go.
const KEPT_BUFFERS: usize = 16;
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

fn take_buffer() -> Vec<u8> {
    BUFFERS
        .with_borrow_mut(Vec::pop)
        .unwrap_or_else(|| Vec::with_capacity(1024))
}

fn give_buffer(mut buffer: Vec<u8>) {
    if buffer.capacity() > 0 && buffer.capacity() <= KEPT_BUFFER_BYTES {
        buffer.clear();
        BUFFERS.with_borrow_mut(|buffers| {
            if buffers.len() < KEPT_BUFFERS {
                buffers.push(buffer);
            }
        });
    }
}

/// Everything that may change the reply before it is framed.
fn prepare(request: &mut Request, reply: &mut Reply) -> (Recoding, Option<Around>) {
    if adds_nothing(request, reply) {
        return (prepare_alone(request, reply), None);
    }
    carry_over(request, reply);
    if let Some(status) = request.forced_status {
        reply.head.status = status;
        reply.head.reason = None;
    }
    if reply.head.status == 200 && !request.is_subrequest {
        check_conditions(request, reply);
    }
    ssi::choose(request, reply);
    let transcoder = fields::add(request, reply);
    let transcoder = transcoder.and_then(|transcoder| charset::apply(transcoder, reply));
    let around = addition::choose(request, reply);
    let is_itself = transcoder.is_none() && around.is_none() && !request.runs_ssi;
    let recoding = recode::choose(request, reply, is_itself);
    if reply.head.status == 200 && reply.head.accepts_ranges {
        ranges::apply(request, reply);
    }
    let recoding = match transcoder {
        Some(transcoder) => Recoding::OnTheWay(Recoder::Charset {
            transcoder,
            then: recoding.into_recoder().map(Box::new),
        }),
        None => recoding,
    };
    (recoding, around)
}

/// The usual hit: the location adds nothing to responses, and neither does anything
/// that became of the request on its way.
fn adds_nothing(request: &Request, reply: &Reply) -> bool {
    request.place().adds_nothing
        && reply.head.stored.is_some()
        && reply.head.status == 200
        && request.forced_status.is_none()
        && request.extras.accel_charset.is_none()
        && request.extras.carried.is_empty()
        && request.extras.carried_error.is_empty()
}

/// What is left to decide about a response that nothing is added to.
fn prepare_alone(request: &mut Request, reply: &mut Reply) -> Recoding {
    request.runs_ssi = false;
    if !request.is_subrequest {
        check_conditions(request, reply);
    }
    let recoding = match request.place().recodes {
        true => recode::choose(request, reply, true),
        false => Recoding::AsIs,
    };
    if reply.head.status == 200 && reply.head.accepts_ranges {
        ranges::apply(request, reply);
    }
    recoding
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
fn check_conditions(request: &Request, reply: &mut Reply) {
    let head = &request.head;
    if !may_be_conditional(head.view()) {
        return;
    }
    let last_modified = last_modified(reply);
    let rule = match request.settings().files.if_modified_since {
        IfModifiedSince::Off => conditional::IfModifiedSince::Off,
        IfModifiedSince::Exact => conditional::IfModifiedSince::Exact,
        IfModifiedSince::Before => conditional::IfModifiedSince::Before,
    };
    let verdict = {
        let etag = reply.head.field("etag");
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
            .field("last-modified")
            .and_then(http1::date::parse)
    })
}

fn framing(request: &Request, reply: &Reply) -> BodyFraming {
    match reply.head.status {
        100..=199 | 204 | 304 => return BodyFraming::None,
        _ => {}
    }
    let settings = request.settings();
    let may_chunk =
        request.head.version() >= Version::Http11 && settings.connection.chunked_transfer_encoding;
    // Only chunks have room for trailers.
    let has_trailers = may_chunk && !settings.headers.trailers.is_empty();
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

const ACCEPT_RANGES: &[u8] = b"Accept-Ranges: bytes\r\n";
const VARY: &[u8] = b"Vary: Accept-Encoding\r\n";

fn write_head(request: &Request, reply: &ReplyHead, framing: BodyFraming, out: &mut Vec<u8>) {
    // Values with line breaks or NUL are refused by the writer and left out:
    // they can only come from variables, and no response may be split by them.
    let writer = HeadWriter::with_reason_or_usual(out, reply.status, reply.reason.as_deref());
    let headers = &request.settings().headers;
    let out = put_server(request, reply, &headers.server_tokens, writer);
    if !reply.passes_date {
        clock::put_date_line(request.now, out);
    }
    put_framing(reply, framing, out);
    put_stored(reply, out);
    if reply.says_accept_ranges {
        out.extend_from_slice(ACCEPT_RANGES);
    }
    if reply.says_vary {
        out.extend_from_slice(VARY);
    }
    if let Some(coding) = reply.coded {
        out.extend_from_slice(content_encoding(coding));
    }
    let mut writer = HeadWriter::resume(out);
    put_fields(reply, &mut writer);
    if let Some(outcome) = &request.cache.outcome {
        let out = writer.into_inner();
        if let Some(age) = request.cache.age
            && outcome.served != http_cache::Served::No
        {
            put_number_line(b"Age: ", age, out);
        }
        if headers.cache_status {
            put_cache_status(outcome, out);
        }
        writer = HeadWriter::resume(out);
    }
    if let Some(lifetime) = request.cache.marks_writer {
        let cookie = writer_cookie(request, lifetime);
        let _ = writer.put_field("Set-Cookie", cookie);
    }
    writer.finish();
}

fn put_server<'a>(
    request: &Request,
    reply: &ReplyHead,
    tokens: &ServerTokens,
    mut writer: HeadWriter<'a>,
) -> &'a mut Vec<u8> {
    if reply.passes_server {
        return writer.into_inner();
    }
    match tokens {
        ServerTokens::Text(_) => {
            if let Some(text) = &request.extras.server_text {
                let _ = writer.put_field("Server", text);
            }
            writer.into_inner()
        }
        ServerTokens::On | ServerTokens::Build => {
            let out = writer.into_inner();
            let line = concat!("Server: mayfly/", env!("CARGO_PKG_VERSION"), "\r\n");
            out.extend_from_slice(line.as_bytes());
            out
        }
        ServerTokens::Off => {
            let out = writer.into_inner();
            out.extend_from_slice(b"Server: mayfly\r\n");
            out
        }
    }
}

/// The stored fields, as they hold for the body that is sent.
fn put_stored(reply: &ReplyHead, out: &mut Vec<u8>) {
    let Some(stored) = &reply.stored else {
        return;
    };
    match reply.coded {
        _ if reply.lacks_body => stored.fields.put_without(describes_body, out),
        Some(_) => stored.fields.put_recoded(out),
        None => out.extend_from_slice(stored.fields.lines()),
    }
}

fn content_encoding(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b"Content-Encoding: br\r\n",
        Coding::Zstd => b"Content-Encoding: zstd\r\n",
        Coding::Gzip => b"Content-Encoding: gzip\r\n",
    }
}

/// A field with a number for its value, and its line end.
fn put_number_line(name: &[u8], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The fields for this connection alone (RFC 9110 §7.6.1), and the length.
fn put_framing(reply: &ReplyHead, framing: BodyFraming, out: &mut Vec<u8>) {
    match framing {
        BodyFraming::Length(length) => put_number_line(b"Content-Length: ", length, out),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::None | BodyFraming::UntilClose => {}
    }
    match (reply.sent_connection, reply.sent_keep_alive) {
        (SentConnection::KeepAlive, None) => {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        (connection, seconds) => {
            out.extend_from_slice(b"Connection: ");
            out.extend_from_slice(connection.option().as_bytes());
            if let Some(seconds) = seconds {
                out.extend_from_slice(b"\r\nKeep-Alive: timeout=");
                out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Writes the fields that are kept one by one.
fn put_fields(reply: &ReplyHead, writer: &mut HeadWriter<'_>) {
    for (name, value) in reply.fields.iter() {
        if reply.weakens(name, value) {
            let _ = writer.put_field(name, [b"W/", value].concat());
        } else if reply.coded.is_none() || !http1::same_name(name, b"accept-ranges") {
            let _ = writer.put_field(name, value);
        }
    }
}

/// Appends the `Cache-Status` field; the plain hit without the formatter.
fn put_cache_status(outcome: &http_cache::Outcome, out: &mut Vec<u8>) {
    use std::io::Write;
    let plain_hit = http_cache::Outcome {
        ttl_secs: outcome.ttl_secs,
        ..http_cache::Outcome::hit(std::time::Duration::ZERO)
    };
    match outcome.ttl_secs {
        Some(ttl) if *outcome == plain_hit => {
            out.extend_from_slice(b"Cache-Status: mayfly; hit; ttl=");
            out.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        _ => {
            // Writing to a vector cannot fail.
            let _ = write!(out, "Cache-Status: {}\r\n", outcome.cache_status("mayfly"));
        }
    }
}

/// The cookie by which a browser sees its own write past the cache.
fn writer_cookie(request: &Request, lifetime: std::time::Duration) -> Bytes {
    let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    let until = request.now.saturating_add(milliseconds);
    let seconds = milliseconds.div_ceil(1000);
    let name = String::from_utf8_lossy(crate::policy::WRITER_COOKIE);
    Bytes::from(format!(
        "{name}={until}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax"
    ))
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
