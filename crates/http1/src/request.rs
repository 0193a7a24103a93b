//! A request head: from bytes to spans (`http_semantics::RequestHead`).
//!
//! `parse_request` is on the path of every cache hit. It allocates nothing but the
//! growth of the caller's reused vector of fields, and it looks at each byte about
//! once. It is called again with more bytes after [`ParsedHead::Partial`];
//! [`worth_parsing`] keeps that linear for slow clients.
//!
//! Invariant: for any way of cutting a head in pieces, the verdict on the whole
//! is the same, and a piece is refused only if the whole would be (fuzzed).

use byte_scan as scan;
use bytes::Bytes;
use http_semantics::{Excerpt, FieldSpan, RequestHead, RequestLine, Version};

use crate::error::RequestError;
use crate::field_line::{self, Line, NameKind};
use crate::limits::{BufferUse, HeadLimits};
use crate::request_line::{self, is_method_byte};

/// The result of parsing a buffer that may hold only part of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedHead {
    /// No whole head yet.
    Partial,
    /// A head; the body begins at `head_len`.
    Complete(RequestLine),
}

/// Parses the request head at the start of `buf`. `fields` is cleared first and
/// holds the field lines, in order, when the head is complete. A read buffer of
/// [`HeadLimits::max_head_bytes`] is enough: when full, it is never `Partial`.
///
/// # Errors
/// The client's offence, as early as it shows.
pub fn parse_request(
    buf: &[u8],
    limits: &HeadLimits,
    fields: &mut Vec<FieldSpan>,
) -> Result<ParsedHead, RequestError> {
    fields.clear();
    let mut room = BufferUse::new(limits);
    let start = buf
        .iter()
        .position(|&byte| byte != b'\r' && byte != b'\n')
        .unwrap_or(buf.len());
    let usual = request_line::parse_usual(buf, start);
    let lf = match usual {
        Some((_, lf)) => lf,
        None => match find_lf(buf, start) {
            Some(lf) => lf,
            None => return check_unfinished_request_line(buf, start, &mut room),
        },
    };
    // Leading empty lines take room like the line they precede, which bounds them.
    if !room.take(lf + 1) {
        return Err(RequestError::UriTooLong);
    }
    let mut line = match usual {
        Some((line, _)) => line,
        None => request_line::parse(buf, start, field_line::without_cr(buf, start, lf))?,
    };
    if line.version == Version::Http09 {
        line.head_len = lf + 1;
        return Ok(ParsedHead::Complete(line));
    }
    parse_fields(buf, lf + 1, limits, &mut room, &mut line, fields)
}

fn find_lf(buf: &[u8], from: usize) -> Option<usize> {
    scan::find_far(buf, from, |byte| byte == b'\n', scan::equal::<b'\n'>)
}

/// Refuses early bytes that can no longer become a request: a TLS hello on a plain port
/// has no reason to end in LF.
fn check_unfinished_request_line(
    buf: &[u8],
    start: usize,
    room: &mut BufferUse<'_>,
) -> Result<ParsedHead, RequestError> {
    let line = buf.get(start..).unwrap_or_default();
    let method_len = line
        .iter()
        .take_while(|&&byte| is_method_byte(byte))
        .count();
    match line.get(method_len) {
        None => {}
        Some(b' ') if method_len > 0 => {}
        Some(_) => return Err(RequestError::InvalidMethod),
    }
    if !room.take(buf.len()) {
        return Err(RequestError::UriTooLong);
    }
    Ok(ParsedHead::Partial)
}

fn parse_fields(
    buf: &[u8],
    mut at: usize,
    limits: &HeadLimits,
    room: &mut BufferUse<'_>,
    line: &mut RequestLine,
    fields: &mut Vec<FieldSpan>,
) -> Result<ParsedHead, RequestError> {
    loop {
        at = parse_usual_fields(buf, at, limits, room, line, fields);
        let rest = buf.get(at..).unwrap_or_default();
        let field = match field_line::read_any(rest) {
            Line::Field(field) => field,
            Line::Empty(len) => {
                take_room(room, rest, len, limits)?;
                line.head_len = at + len;
                return Ok(ParsedHead::Complete(*line));
            }
            Line::Partial => {
                take_room(room, rest, rest.len(), limits)?;
                // So that a full read buffer always comes with a verdict.
                if buf.len() >= limits.max_head_bytes() {
                    return Err(RequestError::HeadTooLarge);
                }
                return Ok(ParsedHead::Partial);
            }
            Line::Refused => {
                return Err(RequestError::InvalidField(Excerpt::of(field_line::text(
                    rest,
                ))));
            }
        };
        take_room(room, rest, field.line_len, limits)?;
        if fields.len() + line.ignored_fields >= limits.max_fields {
            return Err(RequestError::TooManyFields);
        }
        if is_left_out(field.kind, limits) {
            line.ignored_fields += 1;
        } else {
            line.presence
                .note(rest.get(..field.name_end).unwrap_or_default());
            fields.push(field.spans(at));
        }
        at += field.line_len;
    }
}

/// Takes the lines at `at` while they are as usual and within all limits; answers where
/// the first is that is not.
#[inline(never)]
fn parse_usual_fields(
    buf: &[u8],
    mut at: usize,
    limits: &HeadLimits,
    room: &mut BufferUse<'_>,
    line: &mut RequestLine,
    fields: &mut Vec<FieldSpan>,
) -> usize {
    let most = limits.max_fields.saturating_sub(line.ignored_fields);
    let mut presence = line.presence;
    while let Some(rest) = buf.get(at..)
        && let Some(field) = field_line::read_usual(rest)
        && let Some(name) = rest.get(..field.name_end)
        && fields.len() < most
        && room.take_here(field.line_len)
    {
        presence.note(name);
        fields.push(field.spans(at));
        at += field.line_len;
    }
    line.presence = presence;
    at
}

fn take_room(
    room: &mut BufferUse<'_>,
    line: &[u8],
    line_bytes: usize,
    limits: &HeadLimits,
) -> Result<(), RequestError> {
    if room.take(line_bytes) {
        Ok(())
    } else if line_bytes > limits.large_buffer_bytes {
        Err(RequestError::FieldTooLong(Excerpt::of(field_line::text(
            line,
        ))))
    } else {
        Err(RequestError::HeadTooLarge)
    }
}

fn is_left_out(kind: NameKind, limits: &HeadLimits) -> bool {
    limits.ignore_invalid_fields
        && match kind {
            NameKind::Plain => false,
            NameKind::Underscore => !limits.underscores,
            NameKind::Odd => true,
        }
}

/// Whether parsing again can find anything new, `parsed_len` bytes having been
/// parsed before: a head only ends, or breaks a rule, at a line end or a limit.
/// Without this, a client that sends single bytes costs quadratic time.
pub fn worth_parsing(buf: &[u8], parsed_len: usize, limits: &HeadLimits) -> bool {
    parsed_len == 0
        || find_lf(buf, parsed_len).is_some()
        || buf.len() / limits.large_buffer_bytes.max(1)
            != parsed_len / limits.large_buffer_bytes.max(1)
}

/// Reads a whole head, for heads the server writes itself (subrequests,
/// warm-up) and for tests.
///
/// # Errors
/// The errors of [`parse_request`]; an incomplete head is an invalid request line.
pub fn parse_head(
    bytes: impl Into<Bytes>,
    limits: &HeadLimits,
) -> Result<RequestHead, RequestError> {
    let bytes = bytes.into();
    let mut fields = Vec::new();
    match parse_request(&bytes, limits, &mut fields)? {
        ParsedHead::Complete(line) => Ok(RequestHead {
            bytes: bytes.slice(..line.head_len),
            line,
            fields,
        }),
        ParsedHead::Partial => Err(RequestError::InvalidRequestLine),
    }
}
