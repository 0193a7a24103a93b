//! One connection to an object cache (Redis, Valkey, memcached), followed from its first byte.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use cache_wire::{CacheConversation, Command, Effect, Event, ReplyEnd};
use learn_record::{CacheKey, InputKind, Session, StatementKind, Value, Write, WriteOutcome};

use crate::reporter::Reporter;
use crate::sent_bytes::SentBytes;

/// A command that waits for its answer.
struct PendingCommand {
    /// The number of its announcement, or 0.
    write: u64,
    name: Vec<u8>,
}

impl PendingCommand {
    /// Whether a page may be made of an error. Clients send the others to find out what the server can do.
    fn has_telling_error(&self) -> bool {
        !matches!(&self.name[..], b"CLIENT" | b"COMMAND" | b"HELLO" | b"INFO")
    }

    /// Whether a page may be made of the lack of an answer. A client that goes does not wait for one.
    fn has_telling_silence(&self) -> bool {
        self.name != b"QUIT"
    }
}

/// What the conversation has shown, kept until it is free again.
enum SeenEvent {
    Asked(Command),
    Answered(ReplyEnd),
}

pub(crate) struct CacheConnection {
    conversation: CacheConversation,
    number: u32,
    address: Vec<u8>,
    ahead: SentBytes,
    pending: VecDeque<PendingCommand>,
    is_missed: bool,
    /// Something was sent that was not read.
    has_unread: bool,
}

impl CacheConnection {
    pub(crate) fn new(number: u32, address: Vec<u8>, conversation: CacheConversation) -> Self {
        Self {
            conversation,
            number,
            address,
            ahead: SentBytes::default(),
            pending: VecDeque::new(),
            is_missed: false,
            has_unread: false,
        }
    }

    /// Bytes that PHP is about to send.
    pub(crate) fn will_send(&mut self, bytes: &[u8], reporter: &mut Reporter) {
        let new = self.ahead.new_of(bytes);
        self.follow(new, true, reporter);
    }

    /// How many of them the kernel took.
    pub(crate) fn has_sent(&mut self, count: usize) {
        self.ahead.are_taken(count);
    }

    /// Bytes that PHP has received.
    pub(crate) fn received(&mut self, bytes: &[u8], reporter: &mut Reporter) {
        self.follow(bytes, false, reporter);
    }

    /// Notes that a part of the conversation was not seen.
    pub(crate) fn miss(&mut self, reporter: &mut Reporter) {
        self.is_missed = true;
        self.lose_thread(reporter);
    }

    /// The request ends, or the connection: what is not answered by now may have shaped the page.
    pub(crate) fn end_of_request(&mut self, reporter: &mut Reporter) {
        if let Some(pending) = self.pending.iter().find(|it| it.has_telling_silence()) {
            reporter.add_input(InputKind::CacheState, &pending.name);
        }
        if std::mem::take(&mut self.has_unread) {
            reporter.tell_unread_write(self.session(None), StatementKind::Cache);
        }
    }

    /// The connection ends. Who follows the cache itself hears of commands that it runs later.
    pub(crate) fn close(&mut self, reporter: &mut Reporter) {
        self.end_of_request(reporter);
        self.let_pending_go(reporter);
    }

    fn follow(&mut self, bytes: &[u8], is_sent: bool, reporter: &mut Reporter) {
        if self.is_over() {
            self.has_unread |= is_sent;
            self.note_as_input(reporter);
            return;
        }
        let mut seen = Vec::new();
        let mut see = |event: Event<'_>| {
            seen.push(match event {
                Event::Asked(command) => SeenEvent::Asked(command.clone()),
                Event::Answered(end) => SeenEvent::Answered(end),
            });
        };
        if is_sent {
            self.conversation.sent(bytes, &mut see);
        } else {
            self.conversation.received(bytes, &mut see);
        }
        for seen in seen {
            match seen {
                SeenEvent::Asked(command) => self.asks(&command, reporter),
                SeenEvent::Answered(end) => self.is_answered(end, reporter),
            }
        }
        if self.is_over() {
            self.lose_thread(reporter);
        }
    }

    const fn is_over(&self) -> bool {
        self.is_missed || self.conversation.is_unreadable()
    }

    fn lose_thread(&mut self, reporter: &mut Reporter) {
        self.has_unread = true;
        self.let_pending_go(reporter);
        self.note_as_input(reporter);
    }

    fn note_as_input(&self, reporter: &mut Reporter) {
        reporter.add_input(InputKind::Connection, &self.address);
    }

    fn asks(&mut self, command: &Command, reporter: &mut Reporter) {
        let mut pending = PendingCommand {
            write: 0,
            name: command.name.clone(),
        };
        match command.effect {
            Effect::Nothing => {}
            Effect::Reads => {
                for key in &command.keys {
                    reporter.add_cache_key(&CacheKey {
                        server: &self.address,
                        database: command.database,
                        key,
                    });
                }
            }
            Effect::ReadsMore => reporter.add_input(InputKind::CacheState, &command.name),
            Effect::Writes | Effect::Anything => {
                reporter.add_input(InputKind::CacheWrite, &shown(command));
                pending.write = self.announce(command, reporter);
            }
        }
        self.pending.push_back(pending);
    }

    fn announce(&self, command: &Command, reporter: &mut Reporter) -> u64 {
        let database = command.database.to_string();
        let keys = command.keys.iter().map(|key| Value::Bytes(key));
        reporter.announce(Write {
            number: 0,
            fetch: 0,
            session: self.session(Some(database.as_bytes())),
            kind: StatementKind::Cache,
            text: &shown(command),
            is_complete: command.effect == Effect::Writes,
            parameters: keys.collect(),
            status_before: 0,
        })
    }

    fn is_answered(&mut self, end: ReplyEnd, reporter: &mut Reporter) {
        let Some(pending) = self.pending.pop_front() else {
            return;
        };
        if end == ReplyEnd::Error && pending.has_telling_error() {
            reporter.add_input(InputKind::CacheState, &pending.name);
        }
        written(&pending, reporter);
    }

    fn let_pending_go(&mut self, reporter: &mut Reporter) {
        for pending in std::mem::take(&mut self.pending) {
            written(&pending, reporter);
        }
    }

    fn session<'a>(&'a self, database: Option<&'a [u8]>) -> Session<'a> {
        Session {
            connection: self.number,
            server: &self.address,
            server_version: b"",
            identifier: 0,
            account: b"",
            collation: 0,
            database,
            settings: None,
        }
    }
}

fn written(pending: &PendingCommand, reporter: &mut Reporter) {
    if pending.write != 0 {
        reporter.written(WriteOutcome {
            number: pending.write,
            error: None,
            status_after: 0,
        });
    }
}

/// The command with its first key, for people.
fn shown(command: &Command) -> Vec<u8> {
    let mut shown = command.name.clone();
    if let Some(key) = command.keys.first() {
        shown.push(b' ');
        shown.extend_from_slice(key);
    }
    shown
}
