//! The protocol of Redis and Valkey (RESP2 and RESP3), read from outside: what a client sent and what it received become
//! commands, the keys that they name, and answers.
//!
//! ```text
//! bytes sent     ─► CommandReader ─► Command ─┐
//!                                             ├─► Event::Asked, Event::Answered
//! bytes received ─► ReplyReader ──► ReplyEnd ─┘
//! ```
//!
//! [`Conversation`] follows one connection from its first byte, in pieces of any size, also where commands are sent before
//! earlier ones are answered. It keeps names of commands and keys, and no value. It does no I/O, and all that it keeps is
//! bounded (the `MOST_` constants). What it cannot follow ends the reading for good: a reader that guesses would be wrong
//! about every later command of the connection.
//!
//! A command that is not in the table may write anything. [`parse`] reads values for a client of one's own.

mod command;
mod conversation;
mod reply;
mod table;
mod unreadable;
mod value;

pub use command::{Command, MOST_KEY_BYTES, MOST_KEYS, MOST_KEYS_BYTES};
pub use conversation::{Conversation, Event, MOST_PENDING};
pub use reply::ReplyEnd;
pub use table::Effect;
pub use unreadable::Unreadable;
pub use value::{RedisValue, command, parse};

/// Runs a conversation for the fuzzer: the first byte of each piece gives its direction and length.
#[doc(hidden)]
pub fn fuzz_conversation(mut bytes: &[u8]) {
    let mut conversation = Conversation::default();
    while let [head, rest @ ..] = bytes {
        let (piece, later) = rest.split_at(usize::from(head >> 1).min(rest.len()));
        let mut check = |event: Event<'_>| {
            if let Event::Asked(command) = event {
                assert!(command.keys.len() <= MOST_KEYS);
            }
        };
        if head & 1 == 0 {
            conversation.received(piece, &mut check);
        } else {
            conversation.sent(piece, &mut check);
        }
        let _ = parse(piece);
        bytes = later;
    }
}
