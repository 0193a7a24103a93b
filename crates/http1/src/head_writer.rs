//! Writes response heads into a byte vector that the caller reuses.
//!
//! Response splitting is impossible here: a name or value with CR, LF or NUL is
//! not written, and the caller gets an error. The caller decides what to do
//! then (leave the field out, answer 500); cleaning silently would hide the bug
//! or the attack.

use http_semantics::status;

/// Appends one head to a buffer: status line first, then fields, then `finish`.
#[derive(Debug)]
#[must_use = "a head ends with `finish`"]
pub struct HeadWriter<'a> {
    out: &'a mut Vec<u8>,
}

/// A field that would break the head: its name is no field name (RFC 9110
/// §5.1), or its value has CR, LF or NUL in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("response field with a line break, NUL or an invalid name")]
pub struct FieldError;

impl<'a> HeadWriter<'a> {
    /// Writes `HTTP/1.1 STATUS reason` with nginx's reason phrase. nginx
    /// answers HTTP/1.0 requests with HTTP/1.1 too (RFC 9110 §6.2).
    pub fn new(out: &'a mut Vec<u8>, status: u16) -> Self {
        match status {
            200 => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            304 => out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n"),
            _ => {
                let shown = status::shown(status);
                put_status(out, shown);
                out.extend_from_slice(status::reason(shown).unwrap_or_default().as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        HeadWriter { out }
    }

    /// With the upstream's own reason phrase where it has one that can be
    /// sent, else with the usual one.
    pub fn with_reason_or_usual(out: &'a mut Vec<u8>, status: u16, reason: Option<&[u8]>) -> Self {
        if status == 200 && reason == Some(b"OK") {
            return HeadWriter::new(out, status);
        }
        match reason.filter(|reason| check_value(reason).is_ok()) {
            Some(reason) => {
                put_status(out, status);
                out.extend_from_slice(reason);
                out.extend_from_slice(b"\r\n");
                HeadWriter { out }
            }
            None => HeadWriter::new(out, status),
        }
    }

    /// Goes on with a head that was begun before.
    pub fn resume(out: &'a mut Vec<u8>) -> Self {
        HeadWriter { out }
    }

    /// The buffer, for fields that are known to be well formed.
    pub fn into_inner(self) -> &'a mut Vec<u8> {
        self.out
    }

    /// Appends a field.
    ///
    /// # Errors
    /// [`FieldError`]; then nothing was written.
    #[inline]
    pub fn put_field(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FieldError> {
        let (name, value) = (name.as_ref(), value.as_ref());
        check_name(name)?;
        check_value(value)?;
        self.out.reserve(name.len() + value.len() + 4);
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Writes the empty line.
    pub fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

fn put_status(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    // Three digits always; nginx writes `000` for a status below 100.
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
}

fn check_name(name: &[u8]) -> Result<(), FieldError> {
    let is_name_byte = |&byte: &u8| byte > b' ' && byte != b':' && byte != 0x7f;
    if !name.is_empty() && name.iter().all(is_name_byte) {
        Ok(())
    } else {
        Err(FieldError)
    }
}

fn check_value(value: &[u8]) -> Result<(), FieldError> {
    match memchr::memchr3(b'\r', b'\n', 0, value) {
        None => Ok(()),
        Some(_) => Err(FieldError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(status: u16) -> String {
        let mut out = Vec::new();
        HeadWriter::new(&mut out, status).finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn status_lines_have_nginx_reason_phrases() {
        for (status, line) in [
            (200, "HTTP/1.1 200 OK"),
            (302, "HTTP/1.1 302 Moved Temporarily"),
            (405, "HTTP/1.1 405 Not Allowed"),
            (408, "HTTP/1.1 408 Request Time-out"),
            (494, "HTTP/1.1 400 Bad Request"),
            (503, "HTTP/1.1 503 Service Temporarily Unavailable"),
            (418, "HTTP/1.1 418 "),
            (999, "HTTP/1.1 999 "),
        ] {
            assert_eq!(head_of(status), format!("{line}\r\n\r\n"));
        }
    }

    #[test]
    fn a_field_never_splits_the_response() {
        let mut out = Vec::new();
        let mut head = HeadWriter::new(&mut out, 204);
        for (name, value) in [
            ("Location", "/a\r\nSet-Cookie: b"),
            ("Location", "/a\nb"),
            ("Location", "/a\rb"),
            ("Location", "/a\0b"),
            ("A\r\nB", "c"),
            ("A: b", "c"),
            ("", "c"),
        ] {
            assert_eq!(
                head.put_field(name, value),
                Err(FieldError),
                "{name:?} {value:?}"
            );
        }
        head.put_field("A", "b").unwrap();
        head.put_field("Content-Length", "12").unwrap();
        head.finish();
        assert_eq!(
            out,
            b"HTTP/1.1 204 No Content\r\nA: b\r\nContent-Length: 12\r\n\r\n"
        );
        out.clear();
        let _ = HeadWriter::with_reason_or_usual(&mut out, 200, Some(b"x\r\ny"));
        assert_eq!(out, b"HTTP/1.1 200 OK\r\n");
    }
}
