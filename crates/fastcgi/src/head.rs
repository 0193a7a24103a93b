//! The CGI response head that PHP writes to STDOUT before the body.
//!
//! [`HeadParser`] gathers STDOUT until the empty line and makes a
//! [`ResponseHead`]; what follows the empty line is handed back untouched.
//! A head that lies in one piece, the usual case, is parsed where it lies:
//! names and values are slices of it, so whoever keeps them for long should
//! copy them. As nginx does, bare LF ends a line, a line `HTTP/...` is
//! ignored, and a name without a colon is a field without a value.
//!
//! RFC 3875, section 6; RFC 9110, section 5; nginx's
//! ngx_http_fastcgi_module.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

use crate::error::{Error, HeadFault};

/// Bytes of an offending line that go into the log.
const LOGGED_LINE_BYTES: usize = 200;

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// From `Status`; else 302 with `Location`, else 200. From 200 to 999.
    pub status: u16,
    /// What followed the code in `Status`; may be empty.
    pub reason: Bytes,
    /// All fields, in order and as spelled, `Status` included: like nginx,
    /// the server hides it by name. Identical repetitions of
    /// `Content-Length` are left out.
    pub fields: Vec<(Bytes, Bytes)>,
    /// The value of `Content-Length`.
    pub content_length: Option<u64>,
}

#[derive(Debug)]
pub struct HeadParser {
    limit_bytes: usize,
    gathered: BytesMut,
    /// Where the line under way starts, and how far it was searched.
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
    };
    let mut status_seen = false;
    let mut location_seen = false;
    for line in head.split(|byte| *byte == b'\n') {
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
    if line.iter().any(|byte| matches!(byte, 0 | b'\r')) {
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
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
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
