//! Answers, as a server sends them: their ends are found, and nothing of them is kept.

use crate::command::NumberLine;
use crate::unreadable::Unreadable;

/// Lists within lists. Redis answers with a few at most.
const MAX_DEPTH: usize = 16;

/// Items of one list.
const MAX_ITEMS: u64 = u32::MAX as u64;

/// An answer that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEnd {
    Answer,
    Error,
    /// The server spoke without being asked (RESP3).
    Push,
}

#[derive(Debug, Default)]
enum Place {
    /// Before a value.
    #[default]
    Start,
    /// In a line whose text is not needed.
    Line,
    /// In the line of a length; `true`: of a list of pairs.
    Length {
        is_list: bool,
        times: u64,
        line: NumberLine,
    },
    /// Behind `-`: there is no value.
    Null { has_one: bool },
    /// Bytes, with the end of the line behind them.
    Bytes(u64),
}

/// Reads answers in pieces.
#[derive(Debug, Default)]
pub(crate) struct ReplyReader {
    place: Place,
    /// How many items are left of each list that is open.
    lists: Vec<u64>,
    end: Option<ReplyEnd>,
}

impl ReplyReader {
    /// The next answer that ends within `bytes`, which become those behind it.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<ReplyEnd>, Unreadable> {
        while let Some((&byte, rest)) = bytes.split_first() {
            let mut has_value = false;
            match &mut self.place {
                Place::Bytes(left) => {
                    let count =
                        usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                    *left -= count as u64;
                    has_value = *left == 0;
                    *bytes = bytes.get(count..).unwrap_or_default();
                }
                Place::Line => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    has_value = end.is_some();
                    *bytes = end.and_then(|end| bytes.get(end + 1..)).unwrap_or_default();
                }
                Place::Start => {
                    *bytes = rest;
                    self.begin(byte)?;
                }
                Place::Null { has_one } => {
                    *bytes = rest;
                    match byte {
                        b'1' if !*has_one => *has_one = true,
                        b'\r' if *has_one => self.place = Place::Line,
                        _ => return Err(Unreadable),
                    }
                }
                Place::Length {
                    is_list,
                    times,
                    line,
                } => {
                    *bytes = rest;
                    if byte == b'-' && line.is_empty() {
                        self.place = Place::Null { has_one: false };
                        continue;
                    }
                    let Some(length) = line.take(byte)? else {
                        continue;
                    };
                    let length = length.checked_mul(*times).ok_or(Unreadable)?;
                    if !*is_list {
                        // The end of the line is behind them.
                        self.place = Place::Bytes(length.checked_add(2).ok_or(Unreadable)?);
                    } else if length == 0 {
                        has_value = true;
                    } else if length > MAX_ITEMS || self.lists.len() >= MAX_DEPTH {
                        return Err(Unreadable);
                    } else {
                        self.lists.push(length);
                        self.place = Place::Start;
                    }
                }
            }
            if has_value && let Some(end) = self.value_ends() {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn begin(&mut self, kind: u8) -> Result<(), Unreadable> {
        let length = |is_list, times| Place::Length {
            is_list,
            times,
            line: NumberLine::default(),
        };
        self.place = match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Place::Line,
            b'$' | b'=' | b'!' => length(false, 1),
            b'*' | b'~' => length(true, 1),
            b'%' => length(true, 2),
            // Within a value there is none.
            b'>' if self.lists.is_empty() => length(true, 1),
            _ => return Err(Unreadable),
        };
        self.end.get_or_insert(match kind {
            b'-' | b'!' => ReplyEnd::Error,
            b'>' => ReplyEnd::Push,
            _ => ReplyEnd::Answer,
        });
        Ok(())
    }

    /// A value ends, and the lists of which it is the last item.
    fn value_ends(&mut self) -> Option<ReplyEnd> {
        self.place = Place::Start;
        while let Some(left) = self.lists.last_mut() {
            *left -= 1;
            if *left > 0 {
                return None;
            }
            self.lists.pop();
        }
        self.end.take()
    }
}
