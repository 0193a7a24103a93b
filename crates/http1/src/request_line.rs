//! The first line of a request: method, raw target, version.
//!
//! Written here rather than left to a library because targets are kept exactly
//! as sent and HTTP/0.9 is answered, as nginx does. The target's inner grammar
//! is checked when it is decoded (`target.rs`); here it is only delimited: it
//! has no white space and no control characters.

use std::ops::Range;

use byte_scan as scan;
use http_semantics::{Presence, RequestLine, Span, Version};

use crate::error::RequestError;

/// Whether `byte` may stand in a method (nginx: `A-Z`, `_`, `-`).
pub(crate) fn is_method_byte(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'_' | b'-')
}

/// How nearly every request line ends.
const USUAL_END: &[u8] = b" HTTP/1.1\r\n";

/// Parses the line at `start` of `buf` in the form that nearly every client sends, and
/// returns it with the position of its LF, found on the way. `None` leaves the verdict
/// to [`parse`].
pub(crate) fn parse_usual(buf: &[u8], start: usize) -> Option<(RequestLine, usize)> {
    let rest = buf.get(start..)?;
    let parts = parts(rest).ok()?;
    if !rest.get(parts.target.end..)?.starts_with(USUAL_END) {
        return None;
    }
    let lf = start + parts.target.end + USUAL_END.len() - 1;
    Some((parts.line(start, lf - 1, Version::Http11), lf))
}

/// Parses the line at `start..end` of `buf`, line end excluded. The caller
/// fills in `head_len`, `ignored_fields` and `presence`.
pub(crate) fn parse(buf: &[u8], start: usize, end: usize) -> Result<RequestLine, RequestError> {
    let line = buf.get(start..end).unwrap_or_default();
    let parts = parts(line)?;
    let version = parse_version(line.get(parts.target.end..).unwrap_or_default())?;
    if version == Version::Http09 && line.get(..parts.method_len) != Some(b"GET") {
        return Err(RequestError::InvalidMethodIn09);
    }
    Ok(parts.line(start, end, version))
}

/// Method and target at the start of a line.
struct Parts {
    method_len: usize,
    target: Range<usize>,
}

impl Parts {
    fn line(&self, start: usize, end: usize, version: Version) -> RequestLine {
        RequestLine {
            head_len: 0,
            method: Span::new(start, start + self.method_len),
            target: Span::new(start + self.target.start, start + self.target.end),
            line: Span::new(start, end),
            version,
            ignored_fields: 0,
            presence: Presence::default(),
        }
    }
}

#[inline(always)]
fn parts(line: &[u8]) -> Result<Parts, RequestError> {
    let (method_len, target_start) = match line {
        [b'G', b'E', b'T', b' ', b'/', ..] => (3, 4),
        _ => method(line)?,
    };
    let target_end = scan::find(line, target_start, |word| {
        scan::below::<0x21>(word) | scan::equal::<0x7f>(word)
    })
    .unwrap_or(line.len());
    let method = line.get(..method_len).unwrap_or_default();
    let target = line.get(target_start..target_end).unwrap_or_default();
    if !is_delimited_target(method, target) {
        return Err(RequestError::InvalidRequestLine);
    }
    Ok(Parts {
        method_len,
        target: target_start..target_end,
    })
}

/// The length of the method at the start of a line, and where the target begins.
fn method(line: &[u8]) -> Result<(usize, usize), RequestError> {
    let is_part = |&&byte: &&u8| is_method_byte(byte);
    let len = line.iter().take_while(is_part).count();
    if len == 0 || line.get(len) != Some(&b' ') {
        return Err(RequestError::InvalidMethod);
    }
    Ok((len, skip_spaces(line, len)))
}

/// Whether `target` has a form of RFC 9112 §3.2 that fits the method: origin-form and
/// absolute-form for any method, authority-form for CONNECT, asterisk-form for
/// OPTIONS.
fn is_delimited_target(method: &[u8], target: &[u8]) -> bool {
    match target.first() {
        Some(b'/') => method != b"CONNECT",
        Some(b'*') => method == b"OPTIONS" && target.len() == 1,
        Some(b'a'..=b'z' | b'A'..=b'Z') => true,
        Some(_) => method == b"CONNECT",
        None => false,
    }
}

/// Reads the rest behind the target: nothing (HTTP/0.9), or spaces, a version and
/// perhaps more spaces.
fn parse_version(rest: &[u8]) -> Result<Version, RequestError> {
    // The one text nearly every client sends.
    if rest == b" HTTP/1.1" {
        return Ok(Version::Http11);
    }
    let rest = rest.trim_ascii_end_spaces();
    let start = skip_spaces(rest, 0);
    if start == rest.len() {
        return Ok(Version::Http09);
    }
    let number = rest
        .get(start..)
        .and_then(|version| version.strip_prefix(b"HTTP/"))
        .filter(|_| start > 0)
        .ok_or(RequestError::InvalidRequestLine)?;
    let dot = memchr::memchr(b'.', number).unwrap_or(number.len());
    let (major, minor) = number.split_at(dot);
    let all_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    match major {
        [] | [b'0', ..] => return Err(RequestError::InvalidRequestLine),
        _ if !all_digits(major) => return Err(RequestError::InvalidRequestLine),
        b"1" => {}
        _ => return Err(RequestError::UnsupportedVersion),
    }
    match minor {
        b".0" | b".00" => Ok(Version::Http10),
        // nginx stops at 99; HTTP/1.12 is a later 1.x and reads as 1.1.
        [b'.', digits @ ..] if matches!(digits.len(), 1..=2) && all_digits(digits) => {
            Ok(Version::Http11)
        }
        _ => Err(RequestError::InvalidRequestLine),
    }
}

fn skip_spaces(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|&&byte| byte == b' ').count()
}

trait TrimSpaces {
    fn trim_ascii_end_spaces(&self) -> &Self;
}

impl TrimSpaces for [u8] {
    fn trim_ascii_end_spaces(&self) -> &[u8] {
        let mut rest = self;
        while let [shorter @ .., b' '] = rest {
            rest = shorter;
        }
        rest
    }
}
