//! MySQL's client protocol, read from outside: what a client sent and what it received become
//! commands and answers.
//!
//! ```text
//! bytes sent     ─► PacketReader ─► Command ─┐
//!                                            ├─► Event::Asked, Event::Answered
//! bytes received ─► PacketReader ─► CommandAnswer ┘
//! ```
//!
//! [`Conversation`] follows one connection from its first byte, in pieces of any size. It keeps the
//! text of a statement and its parameters, and of a result only a hash. It does no I/O, and all
//! that it keeps is bounded (the `MOST_` constants). What it cannot follow (TLS, compression,
//! cursors, a byte that does not fit) ends the reading for good with an [`Unreadable`]: a reader
//! that guesses would be wrong about every later statement of the connection.
//!
//! [`LogReader`] reads what a server sends to those who follow its binary log.

mod answer;
mod binary_log;
mod command;
mod conversation;
mod fields;
mod handshake;
mod packet;
mod parameters;

pub use answer::{
    CommandAnswer, MAX_OUTCOMES, Outcome, PrepareAnswer, StatementAnswer, StatusFlags,
};
pub use binary_log::{
    LogContent, LogEnd, LogEvent, LogReader, LogStatement, MAX_EVENT_BYTES, dump_command,
    register_command,
};
pub use command::{Command, CommandKind, MAX_STATEMENT_BYTES};
pub use conversation::{
    Conversation, Event, MAX_PREPARED, MAX_PREPARED_BYTES, Session, Unreadable,
};
pub use parameters::{MAX_PARAMETERS, Parameter, execute_command};

/// Runs a conversation for the fuzzer: the first byte of each piece gives its direction and length.
#[doc(hidden)]
pub fn fuzz_conversation(mut bytes: &[u8]) {
    let mut conversation = Conversation::default();
    while let [head, rest @ ..] = bytes {
        let (piece, later) = rest.split_at(usize::from(head >> 1).min(rest.len()));
        let mut check = |event: Event<'_>| match event {
            Event::Asked(command) => assert!(command.text().len() <= MAX_STATEMENT_BYTES),
            Event::Answered(_, answer) => assert!(answer.outcomes.len() <= MAX_OUTCOMES),
        };
        if head & 1 == 0 {
            conversation.received(piece, &mut check);
        } else {
            conversation.sent(piece, &mut check);
        }
        bytes = later;
    }
}

/// For the fuzzer: what a server sends of its log, in pieces whose lengths stand before them.
#[doc(hidden)]
pub fn fuzz_binary_log(mut bytes: &[u8]) {
    let mut reader = LogReader::default();
    while let [length, rest @ ..] = bytes {
        let (piece, later) = rest.split_at(usize::from(*length).min(rest.len()));
        let mut check = |event: &LogEvent<'_>| match &event.content {
            LogContent::Statement(it) => assert!(it.text.len() <= MAX_EVENT_BYTES),
            LogContent::Rows { database, table } => {
                assert!(database.len().max(table.len()) <= usize::from(u8::MAX));
            }
            LogContent::File(_) | LogContent::Nothing | LogContent::Unknown => {}
        };
        if reader.received(piece, &mut check).is_err() {
            return;
        }
        bytes = later;
    }
}
