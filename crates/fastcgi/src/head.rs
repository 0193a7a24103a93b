//! The CGI response head that PHP writes to STDOUT before the body.
//!
//! [`HeadParser`] gathers STDOUT until the empty line and makes a [`ResponseHead`]; bytes behind
//! the empty line are handed back untouched. A head that lies in one piece, the usual case, is
//! parsed where it lies: names and values are slices of it, so callers that keep them for long
//! should copy them. A bare LF ends a line, a line `HTTP/...` is ignored, and a name without a
//! colon is a field without a value, as in nginx. Other rules are stricter than nginx 1.22, since
//! the head that is passed on must not be ambiguous: names are tokens, a status has three digits
//! from 200 on, and a `Content-Length` is a number, the same one if repeated.
//!
//! RFC 3875, section 6; RFC 9110, section 5; nginx's
//! ngx_http_fastcgi_module.

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};
use upstream_exchange::ResponseHead;

use crate::error::{Error, HeadFault};

/// Bytes of an offending line that go into the log.
const LOGGED_LINE_BYTES: usize = 200;

#[derive(Debug)]
pub struct HeadParser {
    limit_bytes: usize,
    gathered: BytesMut,
    /// The start of the unfinished line, and the end of its searched part.
    line_start: usize,
    searched: usize,
}

impl HeadParser {
    /// A head may have `limit_bytes`, the empty line included
    /// (`fastcgi_buffer_size`).
    pub fn new(limit_bytes: usize) -> HeadParser {
        HeadParser {
            limit_bytes,
            gathered: BytesMut::new(),
            line_start: 0,
            searched: 0,
        }
    }

    /// Takes a piece of STDOUT. When the head is complete: the head, and the
    /// start of the body (which may be empty).
    ///
    /// # Errors
    ///
    /// [`Error::HeadTooLarge`] and [`Error::InvalidHead`].
    pub fn push(&mut self, mut piece: Bytes) -> Result<Option<(ResponseHead, Bytes)>, Error> {
        if self.gathered.is_empty() {
            return match self.find_end(&piece)? {
                Some(end) => {
                    let head = piece.split_to(end);
                    Ok(Some((parse(&head)?, piece)))
                }
                None => {
                    self.gathered.extend_from_slice(&piece);
                    Ok(None)
                }
            };
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(&piece);
        match self.find_end(&gathered)? {
            Some(end) => {
                let head = gathered.split_to(end).freeze();
                Ok(Some((parse(&head)?, gathered.freeze())))
            }
            None => {
                self.gathered = gathered;
                Ok(None)
            }
        }
    }

    /// The offset behind the empty line.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let too_large = Error::HeadTooLarge {
            limit_bytes: self.limit_bytes,
        };
        while let Some(offset) = bytes
            .get(self.searched..)
            .and_then(|rest| memchr(b'\n', rest))
        {
            let line_end = self.searched + offset;
            let line = bytes.get(self.line_start..line_end).unwrap_or_default();
            self.searched = line_end + 1;
            self.line_start = self.searched;
            if self.searched > self.limit_bytes {
                return Err(too_large);
            }
            if matches!(line, b"" | b"\r") {
                return Ok(Some(self.searched));
            }
        }
        self.searched = bytes.len();
        if bytes.len() >= self.limit_bytes {
            return Err(too_large);
        }
        Ok(None)
    }
}

fn parse(head: &Bytes) -> Result<ResponseHead, HeadFault> {
    let mut response = ResponseHead {
        status: 200,
        reason: Bytes::from_static(b"OK"),
        fields: Vec::with_capacity(16),
        content_length: None,
        is_upgrade: false,
    };
    let mut status_seen = false;
    let mut location_seen = false;
    let mut rest = &head[..];
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(memchr(b'\n', rest).unwrap_or(rest.len()));
        rest = behind.get(1..).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"HTTP/") {
            continue;
        }
        let (name, value) = split_field(line)?;
        if name.eq_ignore_ascii_case(b"Status") {
            // The first counts, as with nginx.
            if !status_seen {
                (response.status, response.reason) = parse_status(head, value)?;
                status_seen = true;
            }
        } else if name.eq_ignore_ascii_case(b"Location") {
            location_seen = true;
        } else if name.eq_ignore_ascii_case(b"Content-Length") {
            let length = parse_content_length(value)?;
            match response.content_length {
                None => response.content_length = Some(length),
                Some(earlier) if earlier == length => continue,
                Some(_) => return Err(HeadFault::ConflictingContentLength),
            }
        }
        response
            .fields
            .push((slice(head, name), slice(head, value)));
    }
    if location_seen && !status_seen {
        response.status = 302;
        response.reason = Bytes::from_static(b"Moved Temporarily");
    }
    Ok(response)
}

fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), HeadFault> {
    if memchr2(0, b'\r', line).is_some() {
        return Err(HeadFault::ForbiddenByte(excerpt(line)));
    }
    let (name, value) = match memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) {
        Some((name, rest)) => (name, rest.strip_prefix(b":").unwrap_or(rest)),
        None => (line, &b""[..]),
    };
    if name.is_empty() || !name.iter().all(|byte| is_token_byte(*byte)) {
        return Err(HeadFault::InvalidLine(excerpt(line)));
    }
    Ok((name, value.trim_ascii()))
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    matches!(byte,
        b'0'..=b'9' | b'A'..=b'Z' | b'^'..=b'z' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'|' | b'~')
}

/// Three digits, then nothing or a reason. A status below 200 would not end
/// the exchange with the client, so it cannot be a response of PHP.
fn parse_status(head: &Bytes, value: &[u8]) -> Result<(u16, Bytes), HeadFault> {
    let invalid = || HeadFault::InvalidStatus(excerpt(value));
    let (digits, rest) = value.split_first_chunk::<3>().ok_or_else(invalid)?;
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(rest.first(), None | Some(b' ')) {
        return Err(invalid());
    }
    let status = digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    if status < 200 {
        return Err(invalid());
    }
    Ok((status, slice(head, rest.trim_ascii())))
}

fn parse_content_length(value: &[u8]) -> Result<u64, HeadFault> {
    let invalid = || HeadFault::InvalidContentLength(excerpt(value));
    // `parse` alone would take a plus sign.
    if !value.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    std::str::from_utf8(value)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(invalid)
}

/// `part` of `head`, without copying.
fn slice(head: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() {
        return Bytes::new();
    }
    head.slice_ref(part)
}

fn excerpt(line: &[u8]) -> String {
    let line = line.get(..LOGGED_LINE_BYTES).unwrap_or(line);
    line.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_BYTES: usize = 4096;

    fn parse_whole(text: &'static str) -> Result<(ResponseHead, Bytes), Error> {
        HeadParser::new(LIMIT_BYTES)
            .push(Bytes::from_static(text.as_bytes()))
            .map(|found| found.expect("a complete head"))
    }

    #[test]
    fn status_comes_from_status_then_location_then_is_200() {
        for (text, status, reason) in [
            ("Content-Type: a\n\n", 200, "OK"),
            ("\n", 200, "OK"),
            ("Status: 404 Not Found\r\n\r\n", 404, "Not Found"),
            ("status:503\n\n", 503, ""),
            ("Location: /there\n\n", 302, "Moved Temporarily"),
            ("Location: /there\nStatus: 201 Created\n\n", 201, "Created"),
            ("Status: 500 a\nStatus: 200 b\n\n", 500, "a"),
            ("HTTP/1.1 404 Not Found\nX: y\n\n", 200, "OK"),
        ] {
            let (head, _) = parse_whole(text).expect(text);
            assert_eq!(head.status, status, "{text}");
            assert_eq!(head.reason, reason, "{text}");
        }
    }

    #[test]
    fn fields_keep_order_spelling_and_repetitions() {
        let (head, rest) = parse_whole(
            "X-B:  two words \t\r\nset-COOKIE: a=1\nx-b: \nSet-Cookie: b:2\r\nBare\n\r\nbody\n\nmore",
        )
        .expect("a head");
        let fields: Vec<(&[u8], &[u8])> =
            head.fields.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        assert_eq!(
            fields,
            [
                (&b"X-B"[..], &b"two words"[..]),
                (b"set-COOKIE", b"a=1"),
                (b"x-b", b""),
                (b"Set-Cookie", b"b:2"),
                (b"Bare", b""),
            ]
        );
        assert_eq!(rest, "body\n\nmore");
    }

    #[test]
    fn content_length_is_read_once() {
        let (head, _) = parse_whole("Content-Length: 8\ncontent-length: 08\n\n").expect("a head");
        assert_eq!(head.content_length, Some(8));
        assert_eq!(head.fields.len(), 1, "a client must not see two");
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let line = |text: &str| HeadFault::InvalidLine(text.to_owned());
        let byte = |text: &str| HeadFault::ForbiddenByte(text.to_owned());
        let status = |text: &str| HeadFault::InvalidStatus(text.to_owned());
        let length = |text: &str| HeadFault::InvalidContentLength(text.to_owned());
        for (text, fault) in [
            ("two words\n\n", line("two words")),
            (": value\n\n", line(": value")),
            ("Name : value\n\n", line("Name : value")),
            ("A: b\n folded\n\n", line(" folded")),
            ("A\u{e9}: b\n\n", line("A\\xc3\\xa9: b")),
            ("A: b\rC: d\n\n", byte("A: b\\rC: d")),
            ("A: b\r\r\n\n", byte("A: b\\r")),
            ("A: b\0\n\n", byte("A: b\\x00")),
            ("Status: abc\n\n", status("abc")),
            ("Status: 20\n\n", status("20")),
            ("Status: 2000\n\n", status("2000")),
            ("Status: 100 Continue\n\n", status("100 Continue")),
            ("Status:\n\n", status("")),
            ("Content-Length: -1\n\n", length("-1")),
            ("Content-Length: +1\n\n", length("+1")),
            ("Content-Length:\n\n", length("")),
            ("Content-Length: 1, 1\n\n", length("1, 1")),
            (
                "Content-Length: 99999999999999999999\n\n",
                length("99999999999999999999"),
            ),
            (
                "Content-Length: 1\nContent-Length: 2\n\n",
                HeadFault::ConflictingContentLength,
            ),
        ] {
            match parse_whole(text) {
                Err(Error::InvalidHead(found)) => assert_eq!(found, fault, "{text}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn head_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        let text: &[u8] = b"Name: value\r\n\r\nbody, which does not count";
        let head_bytes = 15;
        for in_pieces_of in [1, 2, 7, text.len()] {
            for (limit_bytes, fits) in [(head_bytes, true), (head_bytes - 1, false)] {
                let mut parser = HeadParser::new(limit_bytes);
                let found = text
                    .chunks(in_pieces_of)
                    .find_map(|piece| parser.push(Bytes::copy_from_slice(piece)).transpose())
                    .expect("a head or an error");
                assert_eq!(found.is_ok(), fits, "{limit_bytes} by {in_pieces_of}");
            }
        }
    }

    #[test]
    fn endless_line_is_refused_at_the_limit() {
        let mut parser = HeadParser::new(100);
        for _ in 0..9 {
            let found = parser
                .push(Bytes::from_static(b"xxxxxxxxxx"))
                .expect("not yet");
            assert!(found.is_none());
        }
        assert!(matches!(
            parser.push(Bytes::from_static(b"xxxxxxxxxx")),
            Err(Error::HeadTooLarge { limit_bytes: 100 })
        ));
    }
}
