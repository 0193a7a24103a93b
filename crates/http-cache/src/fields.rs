//! The fields that the cache reads: those of a request, looked up by name, and those of a stored
//! response.
//!
//! A stored response keeps its fields once, as the block of `Name: value\r\n` lines that goes to
//! the client in one copy; name and value are looked up as spans of that block, the usual ones
//! ([`KnownField`]) without comparing names. Fields that must not be stored (RFC 9111 §3.1) are
//! left out when the block is made, and so are those that the server writes anew for each answer
//! (`Age`, `Content-Length`).

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use http_semantics::has_member;

/// One field of a message: name and value, as received.
pub type Field = (Bytes, Bytes);

/// A request's fields, looked up by name. The server implements it over the heads of its codecs.
pub trait RequestFields {
    /// Calls `visit` with each value of the fields called `name` (lower case; names compare
    /// case-insensitively), in the order received.
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8]));

    /// Returns whether there is a field called `name`.
    fn has(&self, name: &str) -> bool {
        let mut found = false;
        self.each_value(name, &mut |_| found = true);
        found
    }
}

impl RequestFields for &[Field] {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for value in values(self, name) {
            visit(value);
        }
    }
}

impl RequestFields for Vec<Field> {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for value in values(self, name) {
            visit(value);
        }
    }
}

/// A request without fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFields;

impl RequestFields for NoFields {
    fn each_value(&self, _name: &str, _visit: &mut dyn FnMut(&[u8])) {}
}

/// The values of the fields called `name`, in order.
pub fn values<'a>(fields: &'a [Field], name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
    fields
        .iter()
        .filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value.as_ref())
}

/// The value of the first field called `name`.
#[must_use]
pub fn first<'a>(fields: &'a [Field], name: &'a str) -> Option<&'a [u8]> {
    values(fields, name).next()
}

/// Fields that answers from memory are asked about. Which of a response's fields they are is found
/// out when it is stored, so that a hit compares no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownField {
    /// `Accept-Ranges`
    AcceptRanges,
    /// `Content-Encoding`
    ContentEncoding,
    /// `Content-Type`
    ContentType,
    /// `Date`
    Date,
    /// `ETag`
    ETag,
    /// `Last-Modified`
    LastModified,
    /// `Server`
    Server,
    /// `Vary`
    Vary,
}

impl KnownField {
    const ALL: [KnownField; 8] = [
        KnownField::AcceptRanges,
        KnownField::ContentEncoding,
        KnownField::ContentType,
        KnownField::Date,
        KnownField::ETag,
        KnownField::LastModified,
        KnownField::Server,
        KnownField::Vary,
    ];

    /// The field's name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KnownField::AcceptRanges => "accept-ranges",
            KnownField::ContentEncoding => "content-encoding",
            KnownField::ContentType => "content-type",
            KnownField::Date => "date",
            KnownField::ETag => "etag",
            KnownField::LastModified => "last-modified",
            KnownField::Server => "server",
            KnownField::Vary => "vary",
        }
    }
}

/// Some of the known fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KnownSet(u8);

impl KnownSet {
    const fn of(fields: &[KnownField]) -> KnownSet {
        let mut set = 0;
        let mut at = 0;
        while at < fields.len() {
            set |= 1 << fields[at] as u8;
            at += 1;
        }
        KnownSet(set)
    }

    /// The one that is called `name` (any case), if that is a known one.
    fn called(name: &[u8]) -> KnownSet {
        let is_called = |field: &&KnownField| name.eq_ignore_ascii_case(field.name().as_bytes());
        let found = KnownField::ALL.iter().find(is_called);
        found.map_or(KnownSet::default(), |field| KnownSet::of(&[*field]))
    }

    fn meets(self, other: KnownSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// A stored response's fields.
#[derive(Clone, Debug, Default)]
pub struct StoredFields {
    /// The lines, and behind them a [`Span`] for each: in a large store another address to look at
    /// would be another wait for memory.
    block: Bytes,
    lines_len: u32,
    /// The known fields among the lines.
    known: KnownSet,
    is_html: bool,
}

/// The position of a field's name and value.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    value_len: u32,
    name_len: u16,
    /// The known field that it is, if it is one.
    known: KnownSet,
}

/// The size of its numbers, one behind the other. They are kept on disk as well (`record`).
const SPAN_BYTES: usize = 4 + 4 + 2 + 1;

/// Fields that belong to one connection or that the server writes anew (RFC 9111 §3.1,
/// RFC 9110 §7.6.1).
const NOT_STORED: [&str; 12] = [
    "age",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl StoredFields {
    /// Keeps `fields` in their order, without those that may not be stored and without those that
    /// `Connection` names. Fields past 4 GiB in total are left out, and from a name of 64 KiB on.
    #[must_use]
    pub fn new(fields: &[Field]) -> StoredFields {
        let kept = || fields.iter().filter(|(name, _)| is_stored(name, fields));
        let line_len = |(name, value): &Field| name.len() + value.len() + 4;
        let len = kept().map(|field| line_len(field) + SPAN_BYTES).sum();
        let mut block = BytesMut::with_capacity(len);
        let mut spans = Vec::with_capacity(fields.len());
        let mut known = KnownSet::default();
        let mut lines_len = 0;
        for field in kept() {
            let (name, value) = field;
            let (Ok(end), Ok(name_len), Ok(value_len)) = (
                u32::try_from(block.len() + line_len(field)),
                u16::try_from(name.len()),
                u32::try_from(value.len()),
            ) else {
                break;
            };
            let start = std::mem::replace(&mut lines_len, end);
            let which = KnownSet::called(name);
            known.0 |= which.0;
            spans.push(Span {
                start,
                value_len,
                name_len,
                known: which,
            });
            block.put_slice(name);
            block.put_slice(b": ");
            block.put_slice(value);
            block.put_slice(b"\r\n");
        }
        for span in spans {
            block.put_slice(&span.to_bytes());
        }
        let mut fields = StoredFields {
            block: block.freeze(),
            lines_len,
            known,
            is_html: false,
        };
        fields.is_html = fields.known(KnownField::ContentType).is_some_and(is_html);
        fields
    }

    /// Returns whether there is such a field.
    #[must_use]
    #[inline]
    pub fn has(&self, field: KnownField) -> bool {
        self.known.meets(KnownSet::of(&[field]))
    }

    /// All fields as `Name: value\r\n` lines, ready to be sent.
    #[must_use]
    pub fn lines(&self) -> &[u8] {
        self.block
            .get(..self.lines_len as usize)
            .unwrap_or_default()
    }

    /// Returns the lines and the spans that find a field in them.
    pub(crate) fn block(&self) -> &Bytes {
        &self.block
    }

    /// Reads a block that was kept elsewhere: `lines_len` bytes of lines, then their spans. `None`: its spans do not fit its
    /// lines.
    pub(crate) fn of_block(block: Bytes, lines_len: u32) -> Option<StoredFields> {
        let (lines, spans) = block.split_at_checked(lines_len as usize)?;
        let (spans, []) = spans.as_chunks() else {
            return None;
        };
        let (mut known, mut end) = (KnownSet::default(), 0);
        for span in spans.iter().map(Span::from_bytes) {
            let (name, value) = span.ranges();
            let next = value.end.checked_add(2)?;
            let is_next = name.start == end && lines.get(name.end..value.start)? == b": ";
            if !is_next || lines.get(value.end..next)? != b"\r\n" {
                return None;
            }
            known.0 |= span.known.0;
            end = next;
        }
        let is_whole = end == lines.len();
        let mut fields = StoredFields {
            block,
            lines_len,
            known,
            is_html: false,
        };
        fields.is_html = fields.known(KnownField::ContentType).is_some_and(is_html);
        is_whole.then_some(fields)
    }

    fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        let spans = self.block.get(self.lines_len as usize..);
        let spans = spans.unwrap_or_default().as_chunks().0;
        spans.iter().map(Span::from_bytes)
    }

    /// Appends the lines without those of some fields.
    pub fn put_without(&self, left_out: &[KnownField], out: &mut Vec<u8>) {
        self.put_edited(KnownSet::of(left_out), |_| LineEdit::LeaveOut, out);
    }

    /// Appends the lines as they hold for the body in another content coding: its bytes are others,
    /// so the entity tag is a weak one (RFC 9110 §8.8.1) and no ranges of it are promised.
    pub fn put_recoded(&self, out: &mut Vec<u8>) {
        const RANGES: KnownSet = KnownSet::of(&[KnownField::AcceptRanges]);
        let edit = |span: &Span| match span.known {
            RANGES => LineEdit::LeaveOut,
            _ => LineEdit::Weaken,
        };
        self.put_edited(
            KnownSet::of(&[KnownField::ETag, KnownField::AcceptRanges]),
            edit,
            out,
        );
    }

    /// Appends the lines, with `edit` applied to the fields in `edited`.
    #[inline]
    fn put_edited(&self, edited: KnownSet, edit: impl Fn(&Span) -> LineEdit, out: &mut Vec<u8>) {
        if !self.known.meets(edited) {
            return out.extend_from_slice(self.lines());
        }
        let part = |range: Range<usize>| self.block.get(range).unwrap_or_default();
        let mut from = 0;
        for span in self.spans().filter(|span| span.known.meets(edited)) {
            let (name, value) = span.ranges();
            match edit(&span) {
                LineEdit::LeaveOut => {
                    out.extend_from_slice(part(from..name.start));
                    from = value.end + 2;
                }
                LineEdit::Weaken if part(value.clone()).starts_with(b"W/") => {}
                LineEdit::Weaken => {
                    out.extend_from_slice(part(from..value.start));
                    out.extend_from_slice(b"W/");
                    from = value.start;
                }
            }
        }
        out.extend_from_slice(part(from..self.lines_len as usize));
    }

    /// Name and value of each field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.spans().map(|span| {
            let (name, value) = span.ranges();
            (
                self.block.get(name).unwrap_or_default(),
                self.block.get(value).unwrap_or_default(),
            )
        })
    }

    /// The fields as pairs that share the block's memory.
    pub fn pairs(&self) -> impl Iterator<Item = Field> + '_ {
        self.spans().map(|span| {
            let (name, value) = span.ranges();
            (self.block.slice(name), self.block.slice(value))
        })
    }

    /// The value of the first field called `name` (any case).
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        let is_called = |own: &[u8]| own.eq_ignore_ascii_case(name.as_bytes());
        let (_, value) = self.iter().find(|(own, _)| is_called(own))?;
        Some(value)
    }

    /// Does `Content-Type` name HTML?
    #[must_use]
    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// The value of a known field, the first one of it.
    #[inline]
    #[must_use]
    pub fn known(&self, field: KnownField) -> Option<&[u8]> {
        let wanted = KnownSet::of(&[field]);
        if !self.known.meets(wanted) {
            return None;
        }
        let span = self.spans().find(|span| span.known == wanted)?;
        self.block.get(span.ranges().1)
    }

    /// Returns the fields after a 304 with `fresher` fields (RFC 9111 §3.2): a field that the 304
    /// carries replaces all stored ones of that name; the others stay. Fields that describe the
    /// stored body (`Content-Encoding`, `Content-Type`, `Content-Range`) stay as stored. A stored
    /// `Date` goes when the 304 has none: it would make the freshened response old.
    #[must_use]
    pub fn freshened(&self, fresher: &[Field]) -> StoredFields {
        let replaces = |name: &[u8]| {
            !BODY_FIELDS
                .iter()
                .any(|f| name.eq_ignore_ascii_case(f.as_bytes()))
        };
        let replaced = |name: &[u8]| {
            let in_both = || fresher.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
            name.eq_ignore_ascii_case(b"date") || replaces(name) && in_both()
        };
        let fields: Vec<Field> = self
            .pairs()
            .filter(|(name, _)| !replaced(name))
            .chain(
                fresher
                    .iter()
                    .filter(|(name, _)| is_stored(name, fresher) && replaces(name))
                    .cloned(),
            )
            .collect();
        StoredFields::new(&fields)
    }

    /// The fields with these in the place of those that have their names.
    #[must_use]
    pub(crate) fn with(&self, others: &[Field]) -> StoredFields {
        let is_replaced = |name: &Bytes| {
            others
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let kept = self.pairs().filter(|(name, _)| !is_replaced(name));
        let fields: Vec<Field> = kept.chain(others.iter().cloned()).collect();
        StoredFields::new(&fields)
    }

    /// Moves the lines to other memory with the same bytes.
    #[must_use]
    pub(crate) fn moved_to(self, block: Bytes) -> StoredFields {
        debug_assert_eq!(self.block, block);
        StoredFields { block, ..self }
    }
}

/// Fields that describe the stored body's form; a 304 cannot change them (RFC 9111 §3.2).
const BODY_FIELDS: [&str; 3] = ["content-encoding", "content-type", "content-range"];

/// The change to a line.
enum LineEdit {
    LeaveOut,
    /// The value is an entity tag, to be sent as a weak one.
    Weaken,
}

impl Span {
    fn to_bytes(self) -> [u8; SPAN_BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.start.to_le_bytes(), self.value_len.to_le_bytes());
        let ([i, j], k) = (self.name_len.to_le_bytes(), self.known.0);
        [a, b, c, d, e, f, g, h, i, j, k]
    }

    fn from_bytes(&[a, b, c, d, e, f, g, h, i, j, k]: &[u8; SPAN_BYTES]) -> Span {
        Span {
            start: u32::from_le_bytes([a, b, c, d]),
            value_len: u32::from_le_bytes([e, f, g, h]),
            name_len: u16::from_le_bytes([i, j]),
            known: KnownSet(k),
        }
    }

    fn ranges(&self) -> (Range<usize>, Range<usize>) {
        let start = self.start as usize;
        let colon = start + usize::from(self.name_len);
        let value = colon + 2;
        (start..colon, value..value + self.value_len as usize)
    }
}

/// Is this `Content-Type` that of HTML, whatever its parameters (RFC 9110 §8.3.1)?
#[must_use]
pub fn is_html(content_type: &[u8]) -> bool {
    let mut parts = content_type.split(|&byte| byte == b';');
    let media_type = parts.next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"text/html")
}

fn is_stored(name: &[u8], fields: &[Field]) -> bool {
    !NOT_STORED
        .iter()
        .any(|never| name.eq_ignore_ascii_case(never.as_bytes()))
        && !has_member(values(fields, "connection"), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn a_block_that_was_kept_is_read_only_if_its_spans_are_those_of_its_lines() {
        let stored =
            StoredFields::new(&fields(&["Content-Type: text/html", "X: 1", "ETag: \"a\""]));
        let (block, lines_len) = (stored.block(), stored.lines_len);
        let read = StoredFields::of_block(block.clone(), lines_len).expect("whole");
        assert_eq!(format!("{read:?}"), format!("{stored:?}"));
        let other_len = [0, 1, lines_len - 1, lines_len + 1, lines_len + 11, u32::MAX];
        for other in other_len {
            assert!(
                StoredFields::of_block(block.clone(), other).is_none(),
                "{other}"
            );
        }
        for at in lines_len as usize..block.len() {
            // The last byte of a span holds the known field, and nothing of its position.
            if (at - lines_len as usize) % SPAN_BYTES == SPAN_BYTES - 1 {
                continue;
            }
            let mut other = block.to_vec();
            other[at] ^= 1;
            assert!(
                StoredFields::of_block(other.into(), lines_len).is_none(),
                "{at}"
            );
        }
    }

    #[test]
    fn fields_of_the_connection_are_not_stored() {
        let stored = StoredFields::new(&fields(&[
            "Content-Type: text/html",
            "Connection: close, X-Hop",
            "x-hop: 1",
            "Age: 3",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            "ETag: \"a\"",
            "Link: </a>",
            "Link: </b>",
        ]));
        let expected = "Content-Type: text/html\r\nETag: \"a\"\r\nLink: </a>\r\nLink: </b>\r\n";
        assert_eq!(stored.lines(), expected.as_bytes());
        assert_eq!(stored.first("etag"), Some(&b"\"a\""[..]));
        assert_eq!(stored.iter().count(), 4);
        assert_eq!(
            StoredFields::new(&stored.pairs().collect::<Vec<_>>()).lines(),
            expected.as_bytes()
        );
    }

    #[test]
    fn known_fields_are_found_in_any_case_and_the_first_counts() {
        for field in KnownField::ALL {
            let name = field.name();
            let lines = [
                format!("{name}-not: 0"),
                format!("{}: 1", name.to_uppercase()),
                format!("{name}: 2"),
            ];
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let stored = StoredFields::new(&fields(&lines));
            for other in KnownField::ALL {
                let value = (other == field).then_some(&b"1"[..]);
                assert_eq!(stored.known(other), value, "{name}, {other:?}");
            }
        }
    }

    #[test]
    fn html_is_told_by_its_media_type_alone() {
        for (value, wanted) in [
            ("text/html", true),
            ("Text/HTML; charset=utf-8", true),
            ("text/html ;charset=utf-8", true),
            ("text/html;", true),
            ("text/htmlx", false),
            ("text/html x", false),
            ("text/htm", false),
            ("x;text/html", false),
            ("", false),
        ] {
            assert_eq!(is_html(value.as_bytes()), wanted, "{value}");
            let line = format!("content-type: {value}");
            let stored = StoredFields::new(&fields(&["X: text/html", &line]));
            assert_eq!(stored.is_html(), wanted, "{value}");
        }
    }

    #[test]
    fn recoded_lines_have_a_weak_tag_and_promise_no_ranges() {
        for (line, expected) in [
            ("ETag: \"a\"", "ETag: W/\"a\"\r\n"),
            ("etag: W/\"a\"", "etag: W/\"a\"\r\n"),
            ("Accept-Ranges: bytes", ""),
            ("X-Other: 1", "X-Other: 1\r\n"),
        ] {
            for (before, after) in [("", ""), ("A: 1", ""), ("A: 1", "B: 2"), ("", "B: 2")] {
                let lines: Vec<&str> = [before, line, after]
                    .into_iter()
                    .filter(|line| !line.is_empty())
                    .collect();
                let mut out = Vec::new();
                StoredFields::new(&fields(&lines)).put_recoded(&mut out);
                let end = |line: &str| if line.is_empty() { "" } else { "\r\n" }.to_owned();
                let expected = [before, &end(before), expected, after, &end(after)].concat();
                assert_eq!(String::from_utf8_lossy(&out), expected, "{lines:?}");
            }
        }
    }

    #[test]
    fn lines_that_are_left_out_leave_the_others_whole() {
        let stored = StoredFields::new(&fields(&[
            "content-type: text/html",
            "ETag: \"a\"",
            "Content-Encoding: gzip",
            "Content-Type-Not: x",
        ]));
        let mut out = Vec::new();
        stored.put_without(
            &[KnownField::ContentType, KnownField::ContentEncoding],
            &mut out,
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            "ETag: \"a\"\r\nContent-Type-Not: x\r\n"
        );
    }

    #[test]
    fn a_304_replaces_the_fields_it_carries() {
        let stored = StoredFields::new(&fields(&[
            "Content-Type: text/html",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "X-A: 1",
            "X-A: 2",
            "X-B: 1",
        ]));
        let freshened = stored.freshened(&fields(&[
            "Content-Type: text/plain",
            "x-a: 3",
            "Connection: close",
        ]));
        assert_eq!(
            freshened.lines(),
            b"Content-Type: text/html\r\nX-B: 1\r\nx-a: 3\r\n"
        );
    }
}
