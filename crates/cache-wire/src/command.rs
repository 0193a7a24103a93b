//! Commands, as a client sends them: an array of strings.

use crate::table::{Effect, KeyPlaces, KnownCommand, Turn, UNKNOWN, is_harmless_client, known};
use crate::unreadable::Unreadable;

/// Keys of one command that are kept, and bytes of all of them. A command with more may write anything.
pub const MAX_KEYS: usize = 1024;
pub const MAX_KEYS_BYTES: usize = 32 * 1024;

/// Bytes of a key. A command with a longer one may write anything.
pub const MAX_KEY_BYTES: usize = 1024;

/// Bytes of a name, or of the word behind it, that are kept; no command that is known has more.
const MAX_NAME_BYTES: usize = 32;

/// Arguments of a command, as Redis bounds them.
const MAX_ARGUMENTS: u64 = 1 << 20;

/// Bytes of an argument, as Redis bounds them.
const MAX_ARGUMENT_BYTES: u64 = 512 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// In capitals.
    pub name: Vec<u8>,
    pub effect: Effect,
    /// Of a command that reads or writes keys.
    pub keys: Vec<Vec<u8>>,
    /// The number of the database in which it runs.
    pub database: u32,
    pub(crate) turn: Turn,
    /// The argument of SELECT, or the word behind CLIENT.
    pub(crate) word: Vec<u8>,
}

/// A line with a number, behind the byte for its kind.
#[derive(Debug, Default)]
pub(crate) struct NumberLine {
    digits: u64,
    count: usize,
    has_return: bool,
}

impl NumberLine {
    /// Whether nothing of it was read yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0 && !self.has_return
    }

    /// Takes a byte behind that for the kind; the number, where the line ends with it.
    pub(crate) fn take(&mut self, byte: u8) -> Result<Option<u64>, Unreadable> {
        match byte {
            b'0'..=b'9' if !self.has_return && self.count < 19 => {
                self.digits = self.digits * 10 + u64::from(byte - b'0');
                self.count += 1;
                Ok(None)
            }
            b'\r' if !self.has_return && self.count > 0 => {
                self.has_return = true;
                Ok(None)
            }
            b'\n' if self.has_return => Ok(Some(std::mem::take(self).digits)),
            _ => Err(Unreadable),
        }
    }
}

#[derive(Debug)]
enum Place {
    /// Before a command.
    Start,
    Count(NumberLine),
    /// Before an argument.
    Argument,
    Length(NumberLine),
    Bytes(u64),
    Return,
    Newline,
}

/// Reads commands in pieces.
#[derive(Debug)]
pub(crate) struct CommandReader {
    place: Place,
    arguments: u64,
    /// The number of the argument that is read.
    nth: u64,
    known: KnownCommand,
    argument: Vec<u8>,
    name: Vec<u8>,
    word: Vec<u8>,
    keys: Vec<Vec<u8>>,
    keys_bytes: usize,
    has_too_much: bool,
}

impl Default for CommandReader {
    fn default() -> Self {
        Self {
            place: Place::Start,
            arguments: 0,
            nth: 0,
            known: UNKNOWN,
            argument: Vec::new(),
            name: Vec::new(),
            word: Vec::new(),
            keys: Vec::new(),
            keys_bytes: 0,
            has_too_much: false,
        }
    }
}

impl CommandReader {
    /// The next command that ends within `bytes`, which become those behind it.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Command>, Unreadable> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let Place::Bytes(left) = &mut self.place
                && *left > 0
            {
                let count = usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                let (part, behind) = bytes.split_at(count);
                *left -= count as u64;
                *bytes = behind;
                self.part(part);
                continue;
            }
            *bytes = rest;
            match &mut self.place {
                Place::Start if byte == b'*' => self.place = Place::Count(NumberLine::default()),
                Place::Argument if byte == b'$' => {
                    self.place = Place::Length(NumberLine::default())
                }
                Place::Start | Place::Argument => return Err(Unreadable),
                Place::Count(line) => match line.take(byte)? {
                    Some(0) => return Err(Unreadable),
                    Some(count) if count > MAX_ARGUMENTS => return Err(Unreadable),
                    Some(count) => self.begin(count),
                    None => {}
                },
                Place::Length(line) => match line.take(byte)? {
                    Some(length) if length > MAX_ARGUMENT_BYTES => return Err(Unreadable),
                    Some(0) => self.place = Place::Return,
                    Some(length) => self.place = Place::Bytes(length),
                    None => {}
                },
                Place::Bytes(_) | Place::Return if byte == b'\r' => self.place = Place::Newline,
                Place::Newline if byte == b'\n' => {
                    if let Some(command) = self.argument_ends() {
                        return Ok(Some(command));
                    }
                }
                Place::Bytes(_) | Place::Return | Place::Newline => return Err(Unreadable),
            }
        }
        Ok(None)
    }

    fn begin(&mut self, arguments: u64) {
        *self = Self {
            place: Place::Argument,
            arguments,
            ..Self::default()
        };
    }

    /// How many bytes of the argument are kept.
    fn kept_bytes(&self) -> usize {
        match self.nth {
            0 => MAX_NAME_BYTES,
            1 if matches!(self.known.2, Turn::Select | Turn::Client) => MAX_NAME_BYTES,
            nth if self.known.1.holds(nth) => MAX_KEY_BYTES,
            _ => 0,
        }
    }

    fn part(&mut self, part: &[u8]) {
        let room = self.kept_bytes();
        if room == 0 {
            return;
        }
        let kept = part.len().min(room - self.argument.len().min(room));
        self.argument
            .extend_from_slice(part.get(..kept).unwrap_or(part));
        self.has_too_much |= kept < part.len();
    }

    fn argument_ends(&mut self) -> Option<Command> {
        let argument = std::mem::take(&mut self.argument);
        match self.nth {
            0 => {
                self.name = argument.to_ascii_uppercase();
                if !self.has_too_much {
                    self.known = known(&self.name);
                }
            }
            1 if matches!(self.known.2, Turn::Select | Turn::Client) => self.word = argument,
            nth if self.known.1.holds(nth) => {
                self.keys_bytes += argument.len();
                match self.keys.len() < MAX_KEYS && self.keys_bytes <= MAX_KEYS_BYTES {
                    true => self.keys.push(argument),
                    false => self.has_too_much = true,
                }
            }
            _ => {}
        }
        self.nth += 1;
        if self.nth < self.arguments {
            self.place = Place::Argument;
            return None;
        }
        let whole = std::mem::take(self);
        let (effect, places, turn) = whole.known;
        let (effect, keys) = match whole.has_too_much {
            // More than is kept: it may name anything.
            true => (Effect::Anything, Vec::new()),
            // Without a key it is an error, whatever it says.
            false if places != KeyPlaces::None && whole.keys.is_empty() => {
                (Effect::Anything, Vec::new())
            }
            false => (effect, whole.keys),
        };
        let turn = match turn {
            Turn::Client if is_harmless_client(&whole.word) => Turn::None,
            Turn::Client => Turn::Unreadable,
            turn => turn,
        };
        Some(Command {
            name: whole.name,
            effect,
            keys,
            database: 0,
            turn,
            word: whole.word,
        })
    }
}
