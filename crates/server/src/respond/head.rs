//! The head of a response: status line, the server's own fields, those of the reply.
//!
//! The order of the lines is nginx's. How a head begins most answers of a second have in
//! common ([`HeadBuffer`]), and the fields of a stored response are one block of lines: a hit
//! is put together from pieces.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{Outcome, Served};
use http1::HeadWriter;
use site::Coding;

use super::BodyFraming;
use crate::base::clock;
use crate::base::decimal;
use crate::exchange::compiled_location::{CompiledLocation, ServerLine};
use crate::exchange::reply::{DESCRIBE_BODY, ReplyHead, SentConnection};
use crate::exchange::request::Request;

impl ServerLine {
    /// The line, where it is the same for all requests.
    fn fixed(self) -> Option<&'static str> {
        match self {
            ServerLine::Version => Some(concat!(
                "Server: mayfly/",
                env!("CARGO_PKG_VERSION"),
                "\r\n"
            )),
            ServerLine::Name => Some("Server: mayfly\r\n"),
            ServerLine::Text => None,
        }
    }
}

/// What a thread writes heads in, one after the other. It keeps the lines that the last usual
/// one began with: the next begins with the same, unless it has another status or the second has
/// passed.
#[derive(Default)]
pub struct HeadBuffer {
    bytes: Vec<u8>,
    /// What `bytes` begins with, and how much of it that is.
    opening: Option<Opening>,
    opening_len: usize,
}

/// All that the usual status line, `Server` and `Date` depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Opening {
    second: u64,
    status: u16,
    server: ServerLine,
}

thread_local! {
    static BUFFER: RefCell<HeadBuffer> = const {
        RefCell::new(HeadBuffer { bytes: Vec::new(), opening: None, opening_len: 0 })
    };
}

/// What most heads fit in.
const BUFFER_BYTES: usize = 1024;
/// A buffer that grew beyond this is not kept.
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

impl HeadBuffer {
    /// Lends the thread's buffer to one response.
    pub fn with<R>(write: impl FnOnce(&mut HeadBuffer) -> R) -> R {
        BUFFER.with_borrow_mut(|buffer| {
            let result = write(buffer);
            if buffer.bytes.capacity() > KEPT_BUFFER_BYTES {
                *buffer = HeadBuffer::default();
            }
            result
        })
    }

    /// The head, once it is written.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The same for a response that has to wait.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }

    /// Brings back what [`HeadBuffer::take`] gave.
    pub fn give(bytes: Vec<u8>) {
        HeadBuffer::with(|buffer| {
            if buffer.bytes.capacity() == 0 {
                buffer.bytes = bytes;
                buffer.open_empty();
            }
        });
    }

    /// Begins with the usual lines.
    #[inline]
    fn open(&mut self, now_ms: u64, status: u16, server: ServerLine) -> &mut Vec<u8> {
        let opening = Opening {
            second: clock::wall(now_ms) / 1000,
            status,
            server,
        };
        if self.opening != Some(opening) {
            self.put_opening(now_ms, opening);
        }
        self.bytes.truncate(self.opening_len);
        &mut self.bytes
    }

    #[cold]
    fn put_opening(&mut self, now_ms: u64, opening: Opening) {
        let out = self.open_empty();
        let _ = HeadWriter::new(out, opening.status);
        let line = opening.server.fixed().unwrap_or_default();
        out.extend_from_slice(line.as_bytes());
        clock::put_date_line(now_ms, out);
        self.opening_len = out.len();
        self.opening = Some(opening);
    }

    /// Begins with nothing.
    fn open_empty(&mut self) -> &mut Vec<u8> {
        self.opening = None;
        self.opening_len = 0;
        self.bytes.clear();
        self.bytes.reserve(BUFFER_BYTES);
        &mut self.bytes
    }
}

/// Writes the head of `reply`, which is sent in `place`.
///
/// Values with line breaks or NUL are refused by the writer and left out: they can only come
/// from variables, and no response may be split by them.
#[inline]
pub fn write(
    request: &Request,
    place: &CompiledLocation,
    reply: &ReplyHead,
    framing: BodyFraming,
    buffer: &mut HeadBuffer,
) {
    let out = match opens_as_usual(place, reply) {
        true => buffer.open(request.now, reply.status, place.server_line),
        false => open(request, place, reply, buffer),
    };
    put_framing(reply, framing, out);
    put_stored(reply, out);
    if reply.says_accept_ranges {
        out.extend_from_slice(b"Accept-Ranges: bytes\r\n");
    }
    if reply.says_vary {
        out.extend_from_slice(b"Vary: Accept-Encoding\r\n");
    }
    if let Some(coding) = reply.coded {
        put_coding(coding, out);
    }
    if !reply.fields.is_empty() {
        put_fields(reply, out);
    }
    if let Some(outcome) = &request.cache.outcome {
        if let Some(age) = request.cache.age
            && outcome.served != Served::No
        {
            put_number_line(b"Age: ", age, out);
        }
        if place.settings.headers.cache_status {
            put_cache_status(outcome, out);
        }
    }
    if let Some(lifetime) = request.cache.marks_writer {
        let cookie = writer_cookie(request, lifetime);
        let _ = HeadWriter::resume(out).put_field("Set-Cookie", cookie);
    }
    HeadWriter::resume(out).finish();
}

/// Does the head begin as most of its status do?
fn opens_as_usual(place: &CompiledLocation, reply: &ReplyHead) -> bool {
    let has_usual_reason = match reply.reason.as_deref() {
        None => true,
        Some(reason) => reply.status == 200 && reason == b"OK",
    };
    has_usual_reason
        && !reply.passes_server
        && !reply.passes_date
        && place.server_line != ServerLine::Text
}

/// Status line, `Server` and `Date` of any other.
fn open<'a>(
    request: &Request,
    place: &CompiledLocation,
    reply: &ReplyHead,
    buffer: &'a mut HeadBuffer,
) -> &'a mut Vec<u8> {
    let out = buffer.open_empty();
    let mut writer = HeadWriter::with_reason_or_usual(out, reply.status, reply.reason.as_deref());
    let text = request.extras.server_text.as_ref();
    if let Some(text) = text.filter(|_| !reply.passes_server && place.server_line.fixed().is_none())
    {
        let _ = writer.put_field("Server", text);
    }
    let out = writer.into_inner();
    if !reply.passes_server {
        let line = place.server_line.fixed().unwrap_or_default();
        out.extend_from_slice(line.as_bytes());
    }
    if !reply.passes_date {
        clock::put_date_line(request.now, out);
    }
    out
}

/// The stored fields, as they hold for the body that is sent.
fn put_stored(reply: &ReplyHead, out: &mut Vec<u8>) {
    let Some(stored) = &reply.stored else {
        return;
    };
    match reply.coded {
        _ if reply.lacks_body => stored.fields.put_without(&DESCRIBE_BODY, out),
        Some(_) => stored.fields.put_recoded(out),
        None => out.extend_from_slice(stored.fields.lines()),
    }
}

fn put_coding(coding: Coding, out: &mut Vec<u8>) {
    match coding {
        Coding::Brotli => out.extend_from_slice(b"Content-Encoding: br\r\n"),
        Coding::Zstd => out.extend_from_slice(b"Content-Encoding: zstd\r\n"),
        Coding::Gzip => out.extend_from_slice(b"Content-Encoding: gzip\r\n"),
    }
}

/// A field with a number for its value, and its line end.
#[inline]
fn put_number_line<const NAME: usize>(name: &[u8; NAME], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    decimal::put(value, out);
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
            out.extend_from_slice(b"\r\n");
            if let Some(seconds) = seconds {
                put_number_line(b"Keep-Alive: timeout=", seconds, out);
            }
        }
    }
}

/// Writes the fields that are kept one by one.
fn put_fields(reply: &ReplyHead, out: &mut Vec<u8>) {
    let mut writer = HeadWriter::resume(out);
    for (name, value) in reply.fields.iter() {
        if reply.weakens(name, value) {
            let _ = writer.put_field(name, [b"W/", value].concat());
        } else if reply.coded.is_none() || !http1::same_name(name, b"accept-ranges") {
            let _ = writer.put_field(name, value);
        }
    }
}

/// Appends the `Cache-Status` field; the plain hit without the formatter.
fn put_cache_status(outcome: &Outcome, out: &mut Vec<u8>) {
    let plain_hit = Outcome {
        ttl_secs: outcome.ttl_secs,
        ..Outcome::hit(Duration::ZERO)
    };
    let ttl = outcome.ttl_secs.and_then(|ttl| u64::try_from(ttl).ok());
    match ttl {
        Some(ttl) if *outcome == plain_hit => {
            put_number_line(b"Cache-Status: mayfly; hit; ttl=", ttl, out);
        }
        _ => {
            // Writing to a vector cannot fail.
            let _ = write!(out, "Cache-Status: {}\r\n", outcome.cache_status("mayfly"));
        }
    }
}

/// The cookie by which a browser sees its own write past the cache.
fn writer_cookie(request: &Request, lifetime: Duration) -> Bytes {
    let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    let until = request.now.saturating_add(milliseconds);
    let seconds = milliseconds.div_ceil(1000);
    let name = String::from_utf8_lossy(crate::exchange::request::WRITER_COOKIE);
    Bytes::from(format!(
        "{name}={until}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(now_ms: u64, status: u16, server: ServerLine) -> String {
        HeadBuffer::with(|buffer| {
            let opening = buffer.open(now_ms, status, server).clone();
            buffer.bytes().extend_from_slice(b"the rest");
            String::from_utf8(opening).unwrap()
        })
    }

    #[test]
    fn a_kept_opening_is_used_for_its_second_status_and_server_line_alone() {
        let version = concat!("/", env!("CARGO_PKG_VERSION"));
        for (now_ms, status, server, line, name, second) in [
            (784_111_777_000, 200, ServerLine::Name, "200 OK", "", 37),
            (784_111_777_999, 200, ServerLine::Name, "200 OK", "", 37),
            (
                784_111_777_999,
                304,
                ServerLine::Name,
                "304 Not Modified",
                "",
                37,
            ),
            (
                784_111_777_999,
                304,
                ServerLine::Version,
                "304 Not Modified",
                version,
                37,
            ),
            (
                784_111_778_000,
                304,
                ServerLine::Version,
                "304 Not Modified",
                version,
                38,
            ),
            (784_111_778_000, 200, ServerLine::Name, "200 OK", "", 38),
        ] {
            let expected = format!(
                "HTTP/1.1 {line}\r\nServer: mayfly{name}\r\n\
                 Date: Sun, 06 Nov 1994 08:49:{second} GMT\r\n"
            );
            assert_eq!(opened(now_ms, status, server), expected);
        }
        HeadBuffer::give(HeadBuffer::with(HeadBuffer::take));
        HeadBuffer::with(|buffer| assert!(buffer.open_empty().is_empty()));
    }
}
