//! The head of an upstream's response, as an HTTP client reads it. Bare LF and a
//! missing reason phrase are harmless and taken; a head that two readers could read
//! differently is refused. Framing is asked afterwards (`response_framing`).

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http_semantics::{Excerpt, Fields, Version};

use crate::error::ResponseError;
use crate::field_line::{self, FieldLine, Line};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// 100 to 999.
    pub status: u16,
    /// The reason phrase, if the status line has one.
    pub reason: Option<Bytes>,
    pub fields: Fields,
}

/// Field lines taken from an upstream at most: far above any real response, low
/// enough that one cannot make us keep a list without end.
const MAX_FIELDS: usize = 1000;

/// Room for the fields of most responses.
const USUAL_FIELDS: usize = 16;

/// Takes the response head at the start of `buffer` off it; the body begins with
/// the rest. Only the first `limit_bytes` are looked at (nginx:
/// `proxy_buffer_size`). `None` when there is no whole head in them yet; the caller
/// treats a buffer that is full to the limit as [`ResponseError::TooLarge`].
///
/// Names and values are slices of the buffer, but for names that everybody uses.
///
/// # Errors
/// The upstream's offence.
pub fn take_response(
    buffer: &mut BytesMut,
    limit_bytes: usize,
) -> Result<Option<ResponseHead>, ResponseError> {
    let within_limit = buffer.get(..limit_bytes).unwrap_or(buffer);
    let Some(found) = find_response(within_limit)? else {
        return Ok(None);
    };
    let head = buffer.split_to(found.head_len).freeze();
    let reason = found.reason.map(|range| head.slice(range));
    let fields = found.lines.iter().map(|(at, field)| {
        let name = *at..at + field.name_end;
        let value = at + field.value_start..at + field.value_end;
        let known = head.get(name.clone()).and_then(well_known);
        (
            known.map_or_else(|| head.slice(name), Bytes::from_static),
            head.slice(value),
        )
    });
    Ok(Some(ResponseHead {
        version: found.version,
        status: found.status,
        reason,
        fields: fields.collect(),
    }))
}

/// [`take_response`] from bytes that stay, for the fuzzer and tests; with the head
/// comes its length.
pub(crate) fn parse_response(buf: &[u8]) -> Result<Option<(ResponseHead, usize)>, ResponseError> {
    let mut buffer = BytesMut::from(buf);
    let head = take_response(&mut buffer, usize::MAX)?;
    Ok(head.map(|head| (head, buf.len() - buffer.len())))
}

/// The positions of a response head's parts: only offsets, so that a head that
/// arrives in pieces costs no copies.
struct HeadParts {
    version: Version,
    status: u16,
    reason: Option<Range<usize>>,
    lines: Vec<(usize, FieldLine)>,
    head_len: usize,
}

fn find_response(buf: &[u8]) -> Result<Option<HeadParts>, ResponseError> {
    let Some((status_line, mut at)) = line_at(buf, 0) else {
        return check_unfinished_status_line(buf);
    };
    let (version, status, reason_start) = parse_status_line(status_line)?;
    let mut lines = Vec::with_capacity(USUAL_FIELDS);
    loop {
        let rest = buf.get(at..).unwrap_or_default();
        let field = match field_line::read(rest) {
            Line::Field(field) => field,
            Line::Empty(len) => {
                at += len;
                break;
            }
            Line::Partial => return Ok(None),
            Line::Refused => {
                return Err(ResponseError::InvalidField(Excerpt::of(field_line::text(
                    rest,
                ))));
            }
        };
        if lines.len() == MAX_FIELDS {
            return Err(ResponseError::TooManyFields);
        }
        lines.push((at, field));
        at += field.line_len;
    }
    let reason = reason_start..status_line.len();
    Ok(Some(HeadParts {
        version,
        status,
        reason: Some(reason).filter(|reason| !reason.is_empty()),
        lines,
        head_len: at,
    }))
}

/// The name itself where it is one that most responses have, in the usual spelling:
/// a copy of it counts no references.
fn well_known(name: &[u8]) -> Option<&'static [u8]> {
    macro_rules! one_of {
        ($($known:literal)*) => {
            match name {
                $($known => Some($known),)*
                _ => None,
            }
        };
    }
    one_of!(
        b"Date" b"Vary" b"ETag" b"Link" b"Server" b"Pragma" b"Expires" b"Connection"
        b"Set-Cookie" b"Keep-Alive" b"Content-Type" b"X-Powered-By" b"Cache-Control"
        b"Last-Modified" b"Accept-Ranges" b"Content-Length" b"Content-Encoding"
        b"Transfer-Encoding"
        b"date" b"vary" b"etag" b"server" b"expires" b"connection" b"set-cookie"
        b"content-type" b"cache-control" b"last-modified" b"content-length"
    )
}

/// The line at `at` without its end, and where the next begins.
fn line_at(buf: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let lf = at + memchr::memchr(b'\n', buf.get(at..)?)?;
    let line = buf.get(at..field_line::without_cr(buf, at, lf))?;
    Some((line, lf + 1))
}

/// An upstream that does not speak HTTP should not be waited for.
fn check_unfinished_status_line<T>(buf: &[u8]) -> Result<Option<T>, ResponseError> {
    let common = buf.iter().zip(b"HTTP/1.").take_while(|(a, b)| a == b);
    if common.count() == buf.len().min(b"HTTP/1.".len()) {
        Ok(None)
    } else {
        Err(ResponseError::InvalidStatusLine)
    }
}

/// `HTTP/1.x SP 3DIGIT [ SP reason ]`; the third value is where the reason
/// begins.
fn parse_status_line(line: &[u8]) -> Result<(Version, u16, usize), ResponseError> {
    let invalid = ResponseError::InvalidStatusLine;
    let Some((b"HTTP/1.", rest)) = line.split_at_checked(7) else {
        return Err(invalid);
    };
    let minor_len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (minor, rest) = rest.split_at(minor_len);
    let version = match minor {
        b"0" => Version::Http10,
        [_] | [_, _] => Version::Http11,
        _ => return Err(invalid),
    };
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let (status, after) = match rest.get(spaces..) {
        Some(
            [
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                c @ b'0'..=b'9',
                after @ ..,
            ],
        ) if spaces > 0 => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            (digit(a) * 100 + digit(b) * 10 + digit(c), after)
        }
        _ => return Err(invalid),
    };
    if memchr::memchr2(0, b'\r', after).is_some() {
        return Err(invalid);
    }
    match after {
        [] => Ok((version, status, line.len())),
        [b' ', reason @ ..] => Ok((version, status, line.len() - reason.len())),
        _ => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::{ResponseFraming, response_framing};

    fn parse(text: &str) -> Result<ResponseHead, ResponseError> {
        parse_response(text.as_bytes()).map(|head| head.expect("a whole head").0)
    }

    #[test]
    fn odd_but_harmless_heads_are_taken() {
        for (name, text, status, reason) in [
            ("usual", "HTTP/1.1 200 OK\r\n\r\n", 200, Some("OK")),
            (
                "bare LF",
                "HTTP/1.1 404 Not Found\nA: b\n\n",
                404,
                Some("Not Found"),
            ),
            ("no reason", "HTTP/1.0 200\r\n\r\n", 200, None),
            ("space, no reason", "HTTP/1.0 200 \r\n\r\n", 200, None),
            ("spaces", "HTTP/1.1  204  No\r\n\r\n", 204, Some(" No")),
            (
                "odd name",
                "HTTP/1.1 200 OK\r\nX.y@z: 1\r\n\r\n",
                200,
                Some("OK"),
            ),
            (
                "latin-1",
                "HTTP/1.1 200 \u{e9}\r\nA: \u{e9}\r\n\r\n",
                200,
                Some("\u{e9}"),
            ),
            ("unknown status", "HTTP/1.1 999 x\r\n\r\n", 999, Some("x")),
        ] {
            let head = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(head.status, status, "{name}");
            assert_eq!(head.reason.as_deref(), reason.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        for text in [
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/0.9 200 OK\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 099 OK\r\n\r\n",
            "HTTP/1.1200 OK\r\n\r\n",
            "HTTP/1.1 200 O\rK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_head_in_pieces_is_waited_for_unless_it_is_no_http() {
        let whole = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse_response(&whole[..end]), Ok(None), "{end}");
        }
        assert!(parse_response(b"<html>").is_err());
    }

    #[test]
    fn the_body_ends_where_rfc_9112_says() {
        use ResponseFraming::{Chunked, Length, None, UntilClose};
        #[rustfmt::skip]
        let cases = [
            ("length", "GET", "200 OK\r\nContent-Length: 5", Some(Length(5))),
            ("chunked", "GET", "200 OK\r\nTransfer-Encoding: Chunked", Some(Chunked)),
            ("neither", "GET", "200 OK", Some(UntilClose)),
            ("HEAD", "HEAD", "200 OK\r\nContent-Length: 5", Some(None)),
            ("204", "GET", "204 x\r\nContent-Length: 5", Some(None)),
            ("304", "GET", "304 x\r\nContent-Length: 5", Some(None)),
            ("103", "GET", "103 x", Some(None)),
            ("bad length", "GET", "200 OK\r\nContent-Length: foo", Option::None),
            ("two lengths", "GET", "200 OK\r\nContent-Length: 0\r\nContent-Length: 0", Option::None),
            ("unknown coding", "GET", "200 OK\r\nTransfer-Encoding: foo", Option::None),
            (
                "two codings", "GET", "200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                Option::None,
            ),
            ("both", "GET", "200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked", Option::None),
            ("both, HEAD", "HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0", Option::None),
        ];
        for (name, method, head, expected) in cases {
            let head = parse(&format!("HTTP/1.1 {head}\r\n\r\n")).unwrap();
            let framing = response_framing(&head, method.as_bytes()).ok();
            assert_eq!(framing, expected, "{name}");
        }
    }
}
