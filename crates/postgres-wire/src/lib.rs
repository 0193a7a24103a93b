//! PostgreSQL's protocol (version 3), read from outside: what a client sent and what it received become
//! commands and answers.
//!
//! [`Conversation`] follows one connection from its first byte, in pieces of any size. It keeps the
//! text of a statement and its parameters, and of a result nothing. It does no I/O, and all that it
//! keeps is bounded (the `MOST_` constants). What it cannot follow (TLS, replication, a byte that does
//! not fit) ends the reading for good with an [`Unreadable`]. A statement that it does not know, such as
//! one that was prepared in SQL, is a command that is not complete.
//!
//! [`Message`] and [`put_message`] are for a client of one's own.

mod conversation;
mod message;

pub use conversation::{
    Command, Conversation, CycleEnd, Event, MAX_CYCLES, MAX_PREPARED, MAX_PREPARED_BYTES,
    Parameter, Session, Unreadable,
};
pub use message::{Fields, MAX_STATEMENT_BYTES, Message, put_message, startup_message};

/// Runs a conversation for the fuzzer: the first byte of each piece gives its direction and length.
#[doc(hidden)]
pub fn fuzz_conversation(mut bytes: &[u8]) {
    let mut conversation = Conversation::default();
    let mut outstanding = 0_usize;
    while let [head, rest @ ..] = bytes {
        let (piece, later) = rest.split_at(usize::from(head >> 1).min(rest.len()));
        let mut check = |event: Event<'_>| match event {
            Event::Asked(command) => {
                assert!(command.text().len() <= MAX_STATEMENT_BYTES);
                outstanding += 1;
            }
            Event::Answered(answer) => {
                outstanding = outstanding
                    .checked_sub(answer.commands)
                    .expect("no more answers than commands");
            }
        };
        if head & 1 == 0 {
            conversation.received(piece, &mut check);
        } else {
            conversation.sent(piece, &mut check);
        }
        bytes = later;
    }
}
