//! The head of a request as values: method, target, version and fields, as spans of the
//! bytes they came in, and the questions one asks of them. Parsing the bytes is the matter
//! of a codec (`http1`); the meaning of the fields is that of the other files here.
//!
//! Looking up a field is on the path of every cache hit: it allocates nothing, and a
//! field that is not there is hardly looked for (`presence.rs`).

use std::borrow::Cow;

use bytes::Bytes;

use crate::field_name::same_name;
use crate::presence::Presence;
use crate::span::{FieldSpan, Span};

/// The HTTP version of a request or response, as far as it changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `GET /` and nothing more: the answer is a body without a head.
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, and any later 1.x.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Version {
    /// Returns the version in the form of logs and `$server_protocol`.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http09 => "HTTP/0.9",
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
            Version::Http3 => "HTTP/3.0",
        }
    }
}

/// The positions of the parts of a request head; spans count from the head's first byte,
/// leading empty lines included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// Length of the whole head in bytes, up to and with the empty line.
    pub head_len: usize,
    /// The method.
    pub method: Span,
    /// The request target as sent.
    pub target: Span,
    /// The whole line without its line end (`$request`).
    pub line: Span,
    /// The version.
    pub version: Version,
    /// Field lines left out because of their names (`ignore_invalid_headers`).
    pub ignored_fields: usize,
    /// The fields that follow it, roughly.
    pub presence: Presence,
}

/// Returns whether the client waits for `100 Continue` before it sends the body (RFC 9110
/// §10.1.1).
pub fn expects_continue<'a>(head: impl Into<RequestView<'a>>) -> bool {
    let head = head.into();
    head.version() >= Version::Http11
        && head
            .field("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

/// A parsed head that owns its bytes.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The head as it came.
    pub bytes: Bytes,
    /// The positions of its first line's parts.
    pub line: RequestLine,
    /// The positions of its fields.
    pub fields: Vec<FieldSpan>,
}

/// A parsed head that borrows everything, for the hit path.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// The bytes the spans count in.
    pub bytes: &'a [u8],
    /// The positions of the first line's parts.
    pub line: &'a RequestLine,
    /// The positions of the fields.
    pub fields: &'a [FieldSpan],
}

impl RequestHead {
    /// Borrows the head.
    pub fn view(&self) -> RequestView<'_> {
        RequestView {
            bytes: &self.bytes,
            line: &self.line,
            fields: &self.fields,
        }
    }

    /// A head made of parts: for requests that did not come as the text of one.
    /// Its request line is that of HTTP/1.1.
    pub fn of(
        method: &str,
        target: &str,
        fields: impl IntoIterator<Item = (impl AsRef<[u8]>, impl AsRef<[u8]>)>,
    ) -> Self {
        let mut bytes = Vec::new();
        let mut add = |text: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(text);
            Span::new(start, start + text.len())
        };
        let (method, _) = (add(method.as_bytes()), add(b" "));
        let target = add(target.as_bytes());
        let end = add(b" HTTP/1.1").end;
        let mut presence = Presence::default();
        let fields = fields.into_iter().map(|(name, value)| {
            let (name, value) = (name.as_ref(), value.as_ref());
            presence.note(name);
            FieldSpan {
                name: add(name),
                value: add(value),
            }
        });
        let fields = fields.collect();
        RequestHead {
            line: RequestLine {
                head_len: bytes.len(),
                method,
                target,
                line: Span { start: 0, end },
                version: Version::Http11,
                ignored_fields: 0,
                presence,
            },
            bytes: bytes.into(),
            fields,
        }
    }

    /// A head without text: of a request that came by another version than HTTP/1 and could not be read.
    pub fn unreadable(version: Version) -> Self {
        let mut head = RequestHead::of("", "", std::iter::empty::<(&str, &str)>());
        head.line.version = version;
        head.line.line = Span::default();
        head
    }

    /// Makes `host` the value of the one Host field there is from here on.
    pub fn set_host(&mut self, host: &[u8]) {
        let value = self.append(host);
        let (bytes, mut is_set) = (&self.bytes, false);
        self.fields.retain_mut(|field| {
            if !same_name(field.name.of(bytes), b"host") {
                return true;
            }
            field.value = value;
            !std::mem::replace(&mut is_set, true)
        });
        if !is_set {
            let name = self.append(b"Host");
            self.line.presence.note(b"Host");
            self.fields.push(FieldSpan { name, value });
        }
    }

    /// Adds a field behind those that there are.
    pub fn add_field(&mut self, name: &[u8], value: &[u8]) {
        self.line.presence.note(name);
        let (name, value) = (self.append(name), self.append(value));
        self.fields.push(FieldSpan { name, value });
    }

    /// Puts one Cookie field into the place of those that there are; none where it is empty.
    pub fn set_cookies(&mut self, cookies: &[u8]) {
        let value = self.append(cookies);
        let (bytes, mut is_set) = (&self.bytes, cookies.is_empty());
        self.fields.retain_mut(|field| {
            if !same_name(field.name.of(bytes), b"cookie") {
                return true;
            }
            field.value = value;
            !std::mem::replace(&mut is_set, true)
        });
    }

    /// Makes `target` the request target; the request line stays as it was sent.
    pub fn set_target(&mut self, target: &[u8]) {
        self.line.target = self.append(target);
    }

    /// Adds bytes behind the head, for spans to point at.
    fn append(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes = [&self.bytes, text].concat().into();
        Span::new(start, start + text.len())
    }

    /// The method, as sent (methods are case-sensitive).
    pub fn method(&self) -> &[u8] {
        self.view().method()
    }

    /// The request target, as sent.
    pub fn target(&self) -> &[u8] {
        self.view().target()
    }

    /// The whole request line, as sent (`$request`).
    pub fn request_line(&self) -> &[u8] {
        self.view().request_line()
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.line.version
    }

    /// The first value of the field `name` (any case).
    pub fn field(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.view().field(name)
    }

    /// All values of the field `name` (any case), in order.
    pub fn field_all<'n>(&'n self, name: &'n [u8]) -> impl Iterator<Item = &'n [u8]> {
        self.view().field_all(name)
    }

    /// All values of the field `name` in one; see [`RequestView::field_joined`].
    pub fn field_joined(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.view().field_joined(name)
    }

    /// All fields, in order: name as spelt, value.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.view().fields()
    }
}

impl<'a> RequestView<'a> {
    /// The method, as sent (methods are case-sensitive).
    pub fn method(self) -> &'a [u8] {
        self.line.method.of(self.bytes)
    }

    /// The request target, as sent.
    pub fn target(self) -> &'a [u8] {
        self.line.target.of(self.bytes)
    }

    /// The whole request line, as sent (`$request`).
    pub fn request_line(self) -> &'a [u8] {
        self.line.line.of(self.bytes)
    }

    /// The version.
    pub fn version(self) -> Version {
        self.line.version
    }

    /// The first value of the field `name` (any case).
    #[inline]
    pub fn field(self, name: impl AsRef<[u8]>) -> Option<&'a [u8]> {
        let name = name.as_ref();
        if !self.may_have(name) {
            return None;
        }
        self.fields
            .iter()
            .find(|field| {
                field.name.len() == name.len() && same_name(field.name.of(self.bytes), name)
            })
            .map(|field| field.value.of(self.bytes))
    }

    /// All values of the field `name` (any case), in order.
    pub fn field_all<'n>(self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let fields = match self.may_have(name) {
            true => self.fields,
            false => &[],
        };
        fields
            .iter()
            .filter(move |field| same_name(field.name.of(self.bytes), name))
            .map(move |field| field.value.of(self.bytes))
    }

    /// False if there is surely no field `name` (any case).
    #[inline]
    pub fn may_have(self, name: &[u8]) -> bool {
        self.line.presence.may_have(name)
    }

    /// False if there is surely no field with this name as variables spell it, with `_`
    /// for `-`.
    #[inline]
    pub fn may_have_spelt(self, variable: &[u8]) -> bool {
        // The bits are the same for either spelling of a name, but at its ends.
        variable.starts_with(b"_") || variable.ends_with(b"_") || self.may_have(variable)
    }

    /// All values of the field `name` in one, as nginx's `$http_name` shows
    /// them: joined with `; ` for Cookie, with `, ` for others. Borrowed when
    /// there is only one.
    pub fn field_joined(self, name: &[u8]) -> Option<Cow<'a, [u8]>> {
        let mut values = self.field_all(name);
        let first = values.next()?;
        let Some(second) = values.next() else {
            return Some(Cow::Borrowed(first));
        };
        let separator = match name.eq_ignore_ascii_case(b"cookie") {
            true => b"; ",
            false => b", ",
        };
        let mut joined = [first, separator, second].concat();
        for value in values {
            joined.extend_from_slice(separator);
            joined.extend_from_slice(value);
        }
        Some(Cow::Owned(joined))
    }

    /// All fields, in order: name as spelt, value.
    pub fn fields(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields
            .iter()
            .map(move |field| (field.name.of(self.bytes), field.value.of(self.bytes)))
    }
}

impl<'a> From<&'a RequestHead> for RequestView<'a> {
    fn from(head: &'a RequestHead) -> Self {
        head.view()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_made_of_parts_answers_as_one_that_was_received() {
        let fields = [
            ("Host", "a"),
            ("Accept", "x"),
            ("cookie", "c=d"),
            ("accept", "y"),
        ];
        let mut head = RequestHead::of("PURGE", "/a?b", fields);
        assert_eq!(head.method(), b"PURGE");
        assert_eq!(head.target(), b"/a?b");
        assert_eq!(head.request_line(), b"PURGE /a?b HTTP/1.1");
        assert_eq!(head.field("ACCEPT"), Some(&b"x"[..]));
        assert_eq!(head.field_joined(b"accept").as_deref(), Some(&b"x, y"[..]));
        assert_eq!(head.field("range"), None);
        let sent = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        assert!(head.fields().eq(sent));

        head.set_host(b"b");
        head.set_target(b"/c");
        assert_eq!(head.field("host"), Some(&b"b"[..]));
        assert_eq!(head.target(), b"/c");
        assert_eq!(head.request_line(), b"PURGE /a?b HTTP/1.1");

        head.add_field(b"Early-Data", b"1");
        assert_eq!(head.field("early-data"), Some(&b"1"[..]));
        assert_eq!(head.field("host"), Some(&b"b"[..]));
    }
}
