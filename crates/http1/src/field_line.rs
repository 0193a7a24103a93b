//! One field line, for requests, responses and trailers alike: name, colon,
//! value without the white space around it.
//!
//! Written here rather than with httparse because nginx sorts lines into three
//! kinds where httparse knows two: valid, refused, and odd but harmless names
//! that the configuration may leave out. Looking at many bytes at a time keeps it
//! as fast (see `benches/head.rs`).
//!
//! Refused everywhere: a line without a name or colon, white space or control
//! characters in the name (so also a space before the colon and obsolete line
//! folding, RFC 9112 §5), and NUL or a bare CR in the value.

use byte_scan as scan;
use http_semantics::{FieldSpan, Span};

/// The next line of a head. Offsets count from the line's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Field(FieldLine),
    /// The empty line, this long, at which a head ends.
    Empty(usize),
    /// Not whole yet, and not wrong yet.
    Partial,
    Refused,
}

/// A field line taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldLine {
    pub(crate) name_end: usize,
    pub(crate) value_start: usize,
    pub(crate) value_end: usize,
    /// Line end included.
    pub(crate) line_len: usize,
    pub(crate) kind: NameKind,
}

impl FieldLine {
    /// Its name and value, where the line begins at `at`.
    #[inline]
    pub(crate) fn spans(&self, at: usize) -> FieldSpan {
        FieldSpan {
            name: Span::new(at, at + self.name_end),
            value: Span::new(at + self.value_start, at + self.value_end),
        }
    }
}

/// The kinds of bytes in a field name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    /// Letters, digits and `-`.
    Plain,
    /// Also `_`.
    Underscore,
    /// Also others.
    Odd,
}

const COLON: u8 = 4;
const REFUSED: u8 = 8;

/// For each byte: a bit for each kind in [`NameKind`] but plain, or [`COLON`], or
/// [`REFUSED`]; so that a name's bytes can be summed up with `|`.
static NAME_BYTES: [u8; 256] = {
    let mut table = [2; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => 0,
            b'_' => 1,
            b':' => COLON,
            0..=b' ' | 0x7f => REFUSED,
            _ => 2,
        };
        byte += 1;
    }
    table
};

/// Reads the line at the start of `buf`. A piece of a line is `Refused` only if
/// the whole would be.
#[inline]
pub(crate) fn read(buf: &[u8]) -> Line {
    match read_usual(buf) {
        Some(field) => Line::Field(field),
        None => read_any(buf),
    }
}

/// Reads the field line at the start of `buf` in the form that nearly every client sends:
/// a plain name, colon, one space, a value without control characters, CR LF. Returns
/// `None` for any other line, which [`read_any`] decides; for lines of this form both
/// return the same.
#[inline(always)]
pub(crate) fn read_usual(buf: &[u8]) -> Option<FieldLine> {
    if buf.first() == Some(&b'\r') {
        return None;
    }
    let name_end = scan::find_in_words(buf, |word| {
        !(scan::letter(word) | scan::within::<b'-', b'-'>(word))
    })?;
    let value_start = name_end + 2;
    let value_end = scan::find_far(buf, value_start, |byte| byte < b' ', scan::below::<b' '>)?;
    let line_len = value_end + 2;
    let [b':', b' ', value @ .., b'\r', b'\n'] = buf.get(name_end..line_len)? else {
        return None;
    };
    let (Some(b'!'..=b'~'), Some(b'!'..=b'~')) = (value.first(), value.last()) else {
        return None;
    };
    (name_end > 0).then_some(FieldLine {
        name_end,
        value_start,
        value_end,
        line_len,
        kind: NameKind::Plain,
    })
}

/// Reads whatever line is at the start of `buf`.
#[inline(never)]
pub(crate) fn read_any(buf: &[u8]) -> Line {
    let (name_end, kind) = match read_name(buf) {
        Ok(name) => name,
        Err(line) => return line,
    };
    let after = buf.get(name_end + 1..).unwrap_or_default();
    let leading = count_spaces(after.iter());
    let value = after.get(leading..).unwrap_or_default();
    let Some(len) = find_stop(value) else {
        return Line::Partial;
    };
    let (value, end) = value.split_at(len);
    let end_len = match end {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        [b'\r'] => return Line::Partial,
        _ => return Line::Refused,
    };
    let trailing = count_spaces(value.iter().rev());
    let value_start = name_end + 1 + leading;
    Line::Field(FieldLine {
        name_end,
        value_start,
        value_end: value_start + len - trailing,
        line_len: value_start + len + end_len,
        kind,
    })
}

/// The name at the start of `buf`; the kind of line if it has none.
fn read_name(buf: &[u8]) -> Result<(usize, NameKind), Line> {
    let mut kind = 0;
    for (at, &byte) in buf.iter().enumerate() {
        match NAME_BYTES[byte as usize] {
            COLON if at > 0 => return Ok((at, kind_of(kind))),
            COLON.. => return Err(without_name(buf)),
            class => kind |= class,
        }
    }
    Err(Line::Partial)
}

fn kind_of(classes: u8) -> NameKind {
    match classes {
        0 => NameKind::Plain,
        1 => NameKind::Underscore,
        _ => NameKind::Odd,
    }
}

/// Classifies a line that does not begin with a field name.
fn without_name(buf: &[u8]) -> Line {
    match buf {
        [b'\r', b'\n', ..] => Line::Empty(2),
        [b'\n', ..] => Line::Empty(1),
        [b'\r'] => Line::Partial,
        _ => Line::Refused,
    }
}

/// Returns the position of the first LF, CR or NUL.
fn find_stop(bytes: &[u8]) -> Option<usize> {
    memchr::memchr3(b'\n', b'\r', 0, bytes)
}

fn count_spaces<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// The line at the start of `buf` without its end, for messages.
pub(crate) fn text(buf: &[u8]) -> &[u8] {
    let lf = memchr::memchr(b'\n', buf).unwrap_or(buf.len());
    buf.get(..without_cr(buf, 0, lf)).unwrap_or_default()
}

/// Length of a line without its CR, given its length without its LF.
#[inline]
pub(crate) fn without_cr(buf: &[u8], start: usize, lf: usize) -> usize {
    match buf.get(start..lf) {
        Some([.., b'\r']) => lf - 1,
        _ => lf,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_usual_line_is_what_it_is_read_as_without_haste(
            name in "[A-Za-z0-9_.:-]{0,12}",
            colon in "(: |:|:  |\t| : )",
            value in "[a-z ,\t\r\u{0}\u{7f}\u{e9}]{0,6}[a-z=]{0,60}",
            end in "(\r\n|\n|\r|\r\n\r\n|\r\nMore: of it\r\n\r\n)",
        ) {
            let line = [name, colon, value, end].concat();
            if let Some(usual) = read_usual(line.as_bytes()) {
                prop_assert_eq!(Line::Field(usual), read_any(line.as_bytes()));
            }
        }
    }

    #[test]
    fn what_clients_send_is_usual() {
        for line in [
            "Host: a\r\n\r\n",
            "If-None-Match: \"a b\"\r\n",
            "TE: t\r\n\r\n",
        ] {
            assert!(read_usual(line.as_bytes()).is_some(), "{line}");
        }
    }
}
