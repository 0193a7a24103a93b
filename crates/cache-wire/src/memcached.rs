//! One connection to a memcached, by its text protocol with the meta commands
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).
//!
//! Answers have no numbers, so they belong to commands by their order. A command with `noreply` counts as answered once a
//! later one is. Quiet meta commands, keys in base64 and the binary protocol are not read.

use std::collections::VecDeque;

use crate::command::{Command, MAX_KEYS, MAX_KEYS_BYTES};
use crate::conversation::{Event, MAX_PENDING};
use crate::reply::ReplyEnd;
use crate::table::{Effect, Turn};
use crate::unreadable::Unreadable;

/// Bytes of a key, as memcached bounds them.
pub const MAX_MEMCACHED_KEY_BYTES: usize = 250;

/// Bytes of a line: one that asks for many keys is the longest.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Bytes of a value: memcached can be told to store up to 1 GB.
const MAX_VALUE_BYTES: u64 = 1 << 30;

/// What ends the answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerKind {
    /// Values, and a line `END`.
    Values,
    /// Lines `STAT`, and a line `END`.
    Statistics,
    /// One line that begins with one of these words.
    Line(&'static [&'static [u8]]),
    /// A line, with a value behind it if it begins with `VA`.
    Meta,
    /// None, if all goes well.
    Quiet,
}

/// Is this the begin of what a client of memcached says first?
pub fn is_memcached(sent: &[u8]) -> bool {
    #[rustfmt::skip]
    const WORDS: [&[u8]; 22] = [
        b"get ", b"gets ", b"set ", b"add ", b"replace ", b"append ", b"prepend ", b"cas ", b"delete ", b"incr ",
        b"decr ", b"touch ", b"gat ", b"gats ", b"version\r", b"stats\r", b"flush_all", b"mg ", b"ms ", b"md ",
        b"ma ", b"mn\r",
    ];
    WORDS.iter().any(|word| sent.starts_with(word))
}

/// May memcached have a key of these bytes?
pub fn is_memcached_key(key: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    !key.is_empty() && key.len() <= MAX_MEMCACHED_KEY_BYTES && key.iter().all(is_plain)
}

/// Reads lines, and passes over the bytes of values behind them.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    /// Bytes of a value that are passed over, with the end of its line.
    value: u64,
}

impl Lines {
    /// The next line that ends within `bytes`, which become those behind it.
    fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
        let skipped = usize::try_from(self.value).map_or(bytes.len(), |it| it.min(bytes.len()));
        self.value -= skipped as u64;
        *bytes = bytes.get(skipped..).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(bytes.len(), |end| end + 1);
        let (part, behind) = bytes.split_at(count);
        *bytes = behind;
        if self.line.len() + part.len() > MAX_LINE_BYTES {
            return Err(Unreadable);
        }
        self.line.extend_from_slice(part);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        line.truncate(line.len() - 1);
        match line.pop() {
            Some(b'\r') => Ok(Some(line)),
            _ => Err(Unreadable),
        }
    }

    fn pass_over_value(&mut self, length: &[u8]) -> Result<(), Unreadable> {
        let length = str::from_utf8(length).ok().and_then(|it| it.parse().ok());
        let length: u64 = length
            .filter(|it| *it <= MAX_VALUE_BYTES)
            .ok_or(Unreadable)?;
        self.value = length + 2;
        Ok(())
    }
}

#[derive(Debug, Default)]
pub struct MemcachedConversation {
    sent: Lines,
    received: Lines,
    pending: VecDeque<AnswerKind>,
    has_ended: bool,
    is_unreadable: bool,
}

impl MemcachedConversation {
    /// Takes the bytes that the client wrote, in order and without gaps.
    pub fn sent(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_unreadable {
            let asked = match self.sent.next(&mut bytes) {
                Ok(Some(line)) => self.asks(&line, see),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            self.is_unreadable = asked.is_err();
        }
    }

    /// Takes the bytes that the client read, in order and without gaps.
    pub fn received(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_unreadable {
            let answered = match self.received.next(&mut bytes) {
                Ok(Some(line)) => self.is_answered(&line, see),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            self.is_unreadable = answered.is_err();
        }
    }

    /// Whether nothing more is read of it.
    pub const fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    fn asks(&mut self, line: &[u8], see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        if self.has_ended || self.pending.len() >= MAX_PENDING {
            return Err(Unreadable);
        }
        let words = line.split(|byte| *byte == b' ').filter(|it| !it.is_empty());
        let words: Vec<&[u8]> = words.collect();
        let asked = AskedLine::read(&words)?;
        if let Some(length) = asked.value {
            self.sent.pass_over_value(length)?;
        }
        if words.first() == Some(&&b"quit"[..]) {
            self.has_ended = true;
            return Ok(());
        }
        self.pending.push_back(asked.answer);
        see(Event::Asked(&asked.command));
        Ok(())
    }

    fn is_answered(
        &mut self,
        line: &[u8],
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let mut words = line.split(|byte| *byte == b' ');
        let word = words.next().unwrap_or_default();
        let is_error = matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR");
        // The server has done what came before this one.
        while self.pending.front() == Some(&AnswerKind::Quiet) {
            self.pending.pop_front();
            see(Event::Answered(ReplyEnd::Answer));
        }
        let kind = *self.pending.front().ok_or(Unreadable)?;
        let has_more = match kind {
            _ if is_error => false,
            AnswerKind::Values if word == b"VALUE" => {
                self.received
                    .pass_over_value(words.nth(2).ok_or(Unreadable)?)?;
                true
            }
            AnswerKind::Statistics if word == b"STAT" => true,
            AnswerKind::Values | AnswerKind::Statistics if word == b"END" => false,
            AnswerKind::Line(expected) if expected.contains(&word) => false,
            AnswerKind::Line([]) if word.iter().all(u8::is_ascii_digit) => false,
            AnswerKind::Line([]) if word == b"NOT_FOUND" => false,
            AnswerKind::Meta if word == b"VA" => {
                self.received
                    .pass_over_value(words.next().ok_or(Unreadable)?)?;
                false
            }
            AnswerKind::Meta if [&b"HD"[..], b"EN", b"NS", b"EX", b"NF", b"MN"].contains(&word) => {
                false
            }
            _ => return Err(Unreadable),
        };
        if !has_more {
            self.pending.pop_front();
            let end = if is_error {
                ReplyEnd::Error
            } else {
                ReplyEnd::Answer
            };
            see(Event::Answered(end));
        }
        Ok(())
    }
}

/// A line that a client sent.
struct AskedLine<'a> {
    command: Command,
    answer: AnswerKind,
    /// The length of the value behind it.
    value: Option<&'a [u8]>,
}

const STORED: AnswerKind = AnswerKind::Line(&[b"STORED", b"NOT_STORED", b"EXISTS", b"NOT_FOUND"]);
const DELETED: AnswerKind = AnswerKind::Line(&[b"DELETED", b"NOT_FOUND"]);
const TOUCHED: AnswerKind = AnswerKind::Line(&[b"TOUCHED", b"NOT_FOUND"]);
const DONE: AnswerKind = AnswerKind::Line(&[b"OK"]);
const VERSION: AnswerKind = AnswerKind::Line(&[b"VERSION"]);
/// The new number, or `NOT_FOUND`.
const COUNTED: AnswerKind = AnswerKind::Line(&[]);

/// Flags of `mg` that change nothing and show no more than the value, its flags, its size and its number.
const PLAIN_FLAGS: &[u8] = b"vfsckO";
/// Those that show when it ends or was read last.
const CLOCK_FLAGS: &[u8] = b"thl";
/// Those after which an answer may be missing, or a key is written in another way.
const UNREAD_FLAGS: &[u8] = b"qb";

impl<'a> AskedLine<'a> {
    fn read(words: &[&'a [u8]]) -> Result<AskedLine<'a>, Unreadable> {
        let (name, arguments) = words.split_first().ok_or(Unreadable)?;
        let key = arguments.get(..1).ok_or(Unreadable);
        let last_is_quiet = arguments.last() == Some(&&b"noreply"[..]);
        let answered = |answer| {
            if last_is_quiet {
                AnswerKind::Quiet
            } else {
                answer
            }
        };
        let flags = |from: usize| arguments.get(from..).unwrap_or_default();
        let has_flag = |from: usize, known: &[u8]| {
            let first = |flag: &&[u8]| flag.first().is_some_and(|it| known.contains(it));
            flags(from).iter().any(first)
        };
        let (effect, keys, answer, value): (_, &[&[u8]], _, _) = match *name {
            b"get" | b"gets" => (Effect::Reads, arguments, AnswerKind::Values, None),
            b"gat" | b"gats" => {
                let keys = arguments.get(1..).ok_or(Unreadable)?;
                (Effect::Writes, keys, AnswerKind::Values, None)
            }
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
                let length = arguments.get(3).ok_or(Unreadable)?;
                (Effect::Writes, key?, answered(STORED), Some(*length))
            }
            b"delete" => (Effect::Writes, key?, answered(DELETED), None),
            b"touch" => (Effect::Writes, key?, answered(TOUCHED), None),
            b"incr" | b"decr" => (Effect::Writes, key?, answered(COUNTED), None),
            b"flush_all" => (Effect::Anything, &[], answered(DONE), None),
            b"verbosity" => (Effect::Nothing, &[], answered(DONE), None),
            b"version" | b"quit" => (Effect::Nothing, &[], VERSION, None),
            b"stats" if arguments.is_empty() => {
                (Effect::ReadsMore, &[], AnswerKind::Statistics, None)
            }
            b"mn" => (Effect::Nothing, &[], AnswerKind::Meta, None),
            b"mg" | b"md" | b"ma" if has_flag(1, UNREAD_FLAGS) => return Err(Unreadable),
            b"ms" if has_flag(2, UNREAD_FLAGS) => return Err(Unreadable),
            b"mg" => {
                let is_known = |flag: &&[u8]| {
                    let known = [PLAIN_FLAGS, CLOCK_FLAGS].concat();
                    flag.first().is_some_and(|it| known.contains(it))
                };
                let effect = match flags(1).iter().all(is_known) {
                    true if has_flag(1, CLOCK_FLAGS) => Effect::ReadsMore,
                    true => Effect::Reads,
                    false => Effect::Writes,
                };
                (effect, key?, AnswerKind::Meta, None)
            }
            b"ms" => {
                let length = arguments.get(1).ok_or(Unreadable)?;
                (Effect::Writes, key?, AnswerKind::Meta, Some(*length))
            }
            b"md" | b"ma" => (Effect::Writes, key?, AnswerKind::Meta, None),
            _ => return Err(Unreadable),
        };
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        let are_few = keys.len() <= MAX_KEYS && bytes <= MAX_KEYS_BYTES;
        let are_keys = keys.iter().all(|key| is_memcached_key(key));
        let is_about_keys = matches!(effect, Effect::Reads | Effect::Writes);
        let (effect, keys) = match are_few && are_keys && (!is_about_keys || !keys.is_empty()) {
            true => (effect, keys),
            // It may name anything.
            false => (Effect::Anything, &[][..]),
        };
        Ok(AskedLine {
            command: Command {
                name: name.to_ascii_uppercase(),
                effect,
                keys: keys.iter().map(|key| key.to_vec()).collect(),
                database: 0,
                turn: Turn::None,
                word: Vec::new(),
            },
            answer,
            value,
        })
    }
}
