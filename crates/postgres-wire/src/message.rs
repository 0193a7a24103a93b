//! Messages: a letter, a length of four bytes that counts itself, and the fields. The first message of a client has no
//! letter.

/// A longer statement is not kept in full.
pub const MAX_STATEMENT_BYTES: usize = 64 * 1024;

/// The protocol's version 3.0. Later ones differ in what they negotiate alone.
pub(crate) const VERSION: u32 = 3 << 16;

/// One message, with as many bytes of its fields as are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// 0 for the first message of a client.
    pub letter: u8,
    pub fields: &'a [u8],
    /// `fields` are all of them.
    pub is_whole: bool,
}

/// Puts messages together from pieces of any size.
#[derive(Debug)]
pub(crate) struct MessageReader {
    head: Vec<u8>,
    /// The next message has no letter.
    is_first: bool,
    kept: Vec<u8>,
    most_kept: usize,
    /// Bytes of the fields that are still to come.
    left: usize,
    is_within: bool,
    is_whole: bool,
}

impl MessageReader {
    pub(crate) fn new(is_first: bool, most_kept: usize) -> Self {
        Self {
            head: Vec::new(),
            is_first,
            kept: Vec::new(),
            most_kept,
            left: 0,
            is_within: false,
            is_whole: true,
        }
    }

    /// The next message of a client has no letter once more, as after the answer to a request for TLS.
    pub(crate) fn expect_first(&mut self) {
        self.is_first = true;
    }

    pub(crate) const fn is_within_a_message(&self) -> bool {
        self.is_within || !self.head.is_empty()
    }

    /// Takes bytes up to the end of the next message. Returns `None` while the message is not whole, and an
    /// error for a length that no message has.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Option<Result<Message<'_>, ()>> {
        if !self.is_within {
            let width = if self.is_first { 4 } else { 5 };
            while self.head.len() < width {
                let (first, rest) = bytes.split_first()?;
                self.head.push(*first);
                *bytes = rest;
            }
            let length = self.head.last_chunk().copied().map(u32::from_be_bytes)?;
            let Some(left) = (length as usize).checked_sub(4).filter(|it| *it < 1 << 30) else {
                return Some(Err(()));
            };
            self.left = left;
            self.kept.clear();
            (self.is_within, self.is_whole) = (true, true);
        }
        let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
        *bytes = rest;
        self.left -= part.len();
        let room = self.most_kept - self.kept.len();
        self.is_whole &= part.len() <= room;
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        if self.left > 0 {
            return None;
        }
        let letter = if self.is_first { 0 } else { self.head[0] };
        self.head.clear();
        (self.is_within, self.is_first) = (false, false);
        Some(Ok(Message {
            letter,
            fields: &self.kept,
            is_whole: self.is_whole,
        }))
    }
}

/// Takes the fields of a message one after the other; `None`: they end before.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn short(&mut self) -> Option<u16> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*number))
    }

    pub fn long(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    /// A text that ends with a zero.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..)?;
        Some(text)
    }

    /// A value behind its length. `Some(None)`: NULL.
    pub fn value(&mut self) -> Option<Option<&'a [u8]>> {
        let length = self.long()?;
        if length == u32::MAX {
            return Some(None);
        }
        let (value, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(Some(value))
    }
}

/// Appends a message. One that is longer than the protocol allows is cut.
pub fn put_message(letter: u8, fields: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    out.push(letter);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(fields);
}

/// The first message of a client, with names and values.
pub fn startup_message(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = VERSION.to_be_bytes().to_vec();
    for text in parameters.iter().flat_map(|(name, value)| [name, value]) {
        fields.extend_from_slice(text.as_bytes());
        fields.push(0);
    }
    fields.push(0);
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &fields].concat()
}
