//! The messages themselves.

use crate::encoding::{Decode, Encode, MalformedMessage, Reader, fields, numbered};
use crate::entries::{Session, StatementKind, Value};
use crate::limits::MAX_MESSAGE_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    Hello(Hello<'a>),
    RecordPart(RecordPart<'a>),
    Write(Write<'a>),
    Written(WriteOutcome),
    Doubt(Doubt<'a>),
}

/// A process speaks for the first time on this connection, or has written something that was not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello<'a> {
    pub version: u16,
    pub pid: u32,
    /// The process spoke before, and its writes since then may not have been reported. It waits until they count,
    /// with the number 0.
    pub is_again: bool,
    /// It belongs to a command (`mayfly run`), and makes no pages.
    pub is_command: bool,
    /// It waits until it is heard, with the number 0, though there is nothing to count.
    pub wants_acknowledgement: bool,
    /// Extensions that were loaded and whose inputs the library cannot see.
    pub unseen_extensions: Vec<&'a [u8]>,
}
fields!(Hello<'a> {
    version, pid, is_again, is_command, wants_acknowledgement, unseen_extensions
});

/// A piece of a record; [`crate::RecordParts`] puts them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPart<'a> {
    pub fetch: u64,
    pub is_last: bool,
    pub bytes: &'a [u8],
}
fields!(RecordPart<'a> { fetch, is_last, bytes });

/// A statement that may change data is about to be sent to its server, once this was acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub struct Write<'a> {
    /// Counts in each process, from 1 on.
    pub number: u64,
    /// The fetch whose request writes, or 0 outside of one.
    pub fetch: u64,
    pub session: Session<'a>,
    pub kind: StatementKind,
    pub text: &'a [u8],
    /// Whether the text and the parameters are all of it. Otherwise it may change anything.
    pub is_complete: bool,
    pub parameters: Vec<Value<'a>>,
    pub status_before: u16,
}
fields!(Write<'a> {
    number, fetch, session, kind, text, is_complete, parameters, status_before
});

/// The server has answered that statement; PHP learns of it once this was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOutcome {
    pub number: u64,
    /// The code of the error. Of several statements, and of one that a transaction does not protect,
    /// some may have been done all the same.
    pub error: Option<u16>,
    pub status_after: u16,
}
fields!(WriteOutcome {
    number,
    error,
    status_after
});

/// The last message on a connection: the library sees no more of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt<'a> {
    pub reason: DoubtReason,
    pub detail: &'a [u8],
}
fields!(Doubt<'a> { reason, detail });

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DoubtReason {
    /// An acknowledgement did not come in time, or was another one.
    Acknowledgement,
    /// A message did not go into the channel.
    Channel,
    /// The library missed bytes of a connection: another thread was at work, or a child of the process goes
    /// on with its connections.
    Missed,
}
numbered!(DoubtReason { Acknowledgement = 1, Channel = 2, Missed = 3 });

impl DoubtReason {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acknowledgement => "acknowledgement",
            Self::Channel => "channel",
            Self::Missed => "missed",
        }
    }
}

impl<'a> Message<'a> {
    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => {
                out.push(1);
                hello.put(out);
            }
            Self::RecordPart(part) => {
                out.push(2);
                part.put(out);
            }
            Self::Write(write) => {
                out.push(3);
                write.put(out);
            }
            Self::Written(written) => {
                out.push(4);
                written.put(out);
            }
            Self::Doubt(doubt) => {
                out.push(5);
                doubt.put(out);
            }
        }
    }

    /// Writes the head of the message of a part of a record; that number of bytes of the record follows.
    pub(crate) fn put_part_head(fetch: u64, is_last: bool, bytes: usize, out: &mut Vec<u8>) {
        out.push(2);
        fetch.put(out);
        is_last.put(out);
        (bytes as u64).put(out);
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// The bytes are no message, or are more than [`MAX_MESSAGE_BYTES`].
    pub fn decode(packet: &'a [u8]) -> Result<Self, MalformedMessage> {
        if packet.len() > MAX_MESSAGE_BYTES {
            return Err(MalformedMessage);
        }
        let reader = &mut Reader(packet);
        let message = match reader.byte()? {
            1 => Self::Hello(Decode::take(reader)?),
            2 => Self::RecordPart(Decode::take(reader)?),
            3 => Self::Write(Decode::take(reader)?),
            4 => Self::Written(Decode::take(reader)?),
            5 => Self::Doubt(Decode::take(reader)?),
            _ => return Err(MalformedMessage),
        };
        reader.end()?;
        Ok(message)
    }
}

/// Mayfly has taken note of a [`Write`] or a [`WriteOutcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    pub number: u64,
    /// From now on, a write whose outcome is not acknowledged returns to the program no earlier than so long after the
    /// database has answered: other machines, which do not hear of it, find it out by themselves in less. 0: at once.
    pub hold_milliseconds: u32,
}

impl Acknowledgement {
    pub const BYTES: usize = 12;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut packet = [0; Self::BYTES];
        let (number, hold) = packet.split_at_mut(8);
        number.copy_from_slice(&self.number.to_le_bytes());
        hold.copy_from_slice(&self.hold_milliseconds.to_le_bytes());
        packet
    }

    /// # Errors
    /// The packet has another length.
    pub fn decode(packet: &[u8]) -> Result<Self, MalformedMessage> {
        let (number, hold) = packet.split_first_chunk().ok_or(MalformedMessage)?;
        let hold = hold.try_into().map_err(|_| MalformedMessage)?;
        Ok(Self {
            number: u64::from_le_bytes(*number),
            hold_milliseconds: u32::from_le_bytes(hold),
        })
    }
}
