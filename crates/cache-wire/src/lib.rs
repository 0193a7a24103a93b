//! The protocols of object caches, read from outside: Redis and Valkey (RESP2 and RESP3), and memcached (text and meta commands).
//! What a client sent and what it received become commands, the keys that they name, and answers.
//!
//! ```text
//! bytes sent     ─► CommandReader ─► Command ─┐
//!                                             ├─► Event::Asked, Event::Answered
//! bytes received ─► ReplyReader ──► ReplyEnd ─┘
//! ```
//!
//! [`CacheConversation`] follows one connection from its first byte, in pieces of any size, also where commands are sent before
//! earlier ones are answered. It keeps names of commands and keys, and no value. It does no I/O, and all that it keeps is
//! bounded (the `MOST_` constants). What it cannot follow ends the reading for good: a reader that guesses would be wrong
//! about every later command of the connection.
//!
//! A command that is not known may write anything. [`parse`] reads values for a client of one's own.

mod command;
mod conversation;
mod memcached;
mod reply;
mod table;
mod unreadable;
mod value;

pub use command::{Command, MAX_KEY_BYTES, MAX_KEYS, MAX_KEYS_BYTES};
pub use conversation::{Conversation, Event, MAX_PENDING};
pub use memcached::{
    MAX_MEMCACHED_KEY_BYTES, MemcachedConversation, is_memcached, is_memcached_key,
};
pub use reply::ReplyEnd;
pub use table::Effect;
pub use unreadable::Unreadable;
pub use value::{RedisValue, command, parse};

/// A connection to an object cache.
#[derive(Debug)]
pub enum CacheConversation {
    Redis(Conversation),
    Memcached(MemcachedConversation),
}

impl CacheConversation {
    /// By the first bytes of the client; `None`: it is no object cache.
    pub fn begin(sent: &[u8]) -> Option<CacheConversation> {
        match sent.first() {
            Some(b'*') => Some(CacheConversation::Redis(Conversation::default())),
            _ if is_memcached(sent) => Some(CacheConversation::Memcached(
                MemcachedConversation::default(),
            )),
            _ => None,
        }
    }

    /// Takes the bytes that the client wrote, in order and without gaps.
    pub fn sent(&mut self, bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        match self {
            CacheConversation::Redis(it) => it.sent(bytes, see),
            CacheConversation::Memcached(it) => it.sent(bytes, see),
        }
    }

    /// Takes the bytes that the client read, in order and without gaps.
    pub fn received(&mut self, bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        match self {
            CacheConversation::Redis(it) => it.received(bytes, see),
            CacheConversation::Memcached(it) => it.received(bytes, see),
        }
    }

    /// Whether nothing more is read of it.
    pub const fn is_unreadable(&self) -> bool {
        match self {
            CacheConversation::Redis(it) => it.is_unreadable(),
            CacheConversation::Memcached(it) => it.is_unreadable(),
        }
    }
}

/// Runs conversations for the fuzzer: the first byte of each piece gives its direction and length.
#[doc(hidden)]
pub fn fuzz_conversation(mut bytes: &[u8]) {
    let mut conversations = [
        CacheConversation::Redis(Conversation::default()),
        CacheConversation::Memcached(MemcachedConversation::default()),
    ];
    while let [head, rest @ ..] = bytes {
        let (piece, later) = rest.split_at(usize::from(head >> 1).min(rest.len()));
        let mut check = |event: Event<'_>| {
            if let Event::Asked(command) = event {
                assert!(command.keys.len() <= MAX_KEYS);
            }
        };
        for conversation in &mut conversations {
            match head & 1 == 0 {
                true => conversation.received(piece, &mut check),
                false => conversation.sent(piece, &mut check),
            }
        }
        let _ = parse(piece);
        bytes = later;
    }
}
