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

use crate::scan;

/// What the next line of a head is. Offsets count from the line's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A field.
    Field(FieldLine),
    /// The empty line, this long, at which a head ends.
    Empty(usize),
    /// Not whole yet, and not wrong yet.
    Partial,
    /// To be refused.
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

/// What a field name is made of.
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
#[inline(always)]
pub(crate) fn read(buf: &[u8]) -> Line {
    if let [b'\r', b'\n', ..] = buf {
        return Line::Empty(2);
    }
    let name_end = scan::find(buf, |word| {
        !(scan::letter(word) | scan::within::<b'-', b'-'>(word))
    });
    let (name_end, kind) = match name_end {
        Some(end) if end > 0 && buf.get(end) == Some(&b':') => (end, NameKind::Plain),
        _ => match read_name(buf) {
            Ok(name) => name,
            Err(line) => return line,
        },
    };
    let after = buf.get(name_end + 1..).unwrap_or_default();
    let leading = match after {
        [b' ', b'!'..=b'~', ..] => 1,
        _ => count_spaces(after.iter()),
    };
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
    let trailing = match value {
        [.., b'!'..=b'~'] => 0,
        _ => count_spaces(value.iter().rev()),
    };
    let value_start = name_end + 1 + leading;
    Line::Field(FieldLine {
        name_end,
        value_start,
        value_end: value_start + len - trailing,
        line_len: value_start + len + end_len,
        kind,
    })
}

/// The name at the start of `buf`, byte by byte; what the line is where it has none.
#[cold]
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

/// What a line is whose first bytes are no field name, nor CR LF.
fn without_name(buf: &[u8]) -> Line {
    match buf {
        [b'\n', ..] => Line::Empty(1),
        [b'\r'] => Line::Partial,
        _ => Line::Refused,
    }
}

/// Where the first LF, CR or NUL is.
#[inline(always)]
fn find_stop(bytes: &[u8]) -> Option<usize> {
    const NEAR: u8 = b'\r' + 1;
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += scan::find_far(rest, |byte| byte < NEAR, scan::below::<NEAR>)?;
        if matches!(bytes.get(at)?, b'\n' | b'\r' | 0) {
            return Some(at);
        }
        at += 1;
    }
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
