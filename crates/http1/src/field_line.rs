//! One field line, for requests, responses and trailers alike: name, colon,
//! value without the white space around it.
//!
//! Written here rather than with httparse because nginx sorts lines into three
//! kinds where httparse knows two: valid, refused, and odd but harmless names
//! that the configuration may leave out. One table lookup per name byte and one
//! vectorised search per line keep it as fast (see `benches/head.rs`).
//!
//! Refused everywhere: a line without a name or colon, white space or control
//! characters in the name (so also a space before the colon and obsolete line
//! folding, RFC 9112 §5), and NUL or a bare CR in the value.

/// A field line taken apart, as offsets into the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldLine {
    pub(crate) name_end: usize,
    pub(crate) value_start: usize,
    pub(crate) value_end: usize,
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

const COLON: u8 = 3;
const REFUSED: u8 = 4;

/// For each byte: 0 to 2 as in [`NameKind`], or [`COLON`], or [`REFUSED`].
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

/// Takes `line` (without its line end) apart; `None` when it must be refused.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Option<FieldLine> {
    let mut kind = 0;
    let mut name_end = None;
    for (at, &byte) in line.iter().enumerate() {
        let class = NAME_BYTES[byte as usize];
        if class >= COLON {
            name_end = (class == COLON).then_some(at);
            break;
        }
        kind = kind.max(class);
    }
    let name_end = name_end.filter(|&at| at > 0)?;
    let value = line.get(name_end + 1..)?;
    if memchr::memchr2(0, b'\r', value).is_some() {
        return None;
    }
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let leading = value.iter().take_while(is_space).count();
    let trailing = value.iter().rev().take_while(is_space).count();
    let value_start = name_end + 1 + leading;
    Some(FieldLine {
        name_end,
        value_start,
        value_end: value_start.max(line.len() - trailing),
        kind: match kind {
            0 => NameKind::Plain,
            1 => NameKind::Underscore,
            _ => NameKind::Odd,
        },
    })
}

/// Length of a line without its CR, given its length without its LF.
#[inline]
pub(crate) fn without_cr(buf: &[u8], start: usize, lf: usize) -> usize {
    match buf.get(start..lf) {
        Some([.., b'\r']) => lf - 1,
        _ => lf,
    }
}
