//! One connection to a PostgreSQL, followed from its first byte.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use learn_record::{InputKind, Session, Statement, StatementKind, Value, Write, WriteOutcome};
use postgres_wire::{Command, Conversation, CycleEnd, Event, Parameter};

use crate::plain_read::{first_word, is_plain_read_of_postgres};
use crate::reporter::Reporter;
use crate::sent_bytes::SentBytes;
use crate::session_settings::SessionSettings;

/// The flag of a status: "within a transaction".
const WITHIN_TRANSACTION: u16 = 1;

/// What the conversation has shown, kept until it is free again.
enum SeenEvent {
    Asked(Command),
    Answered(CycleEnd),
}

/// A command that waits for its answer.
struct PendingCommand {
    command: Command,
    status_before: u16,
    /// The number of its announcement, or 0.
    write: u64,
    /// The record that it belongs to, with the session's index there.
    place: Option<(u64, u16)>,
}

pub(crate) struct PostgresConnection {
    conversation: Conversation,
    number: u32,
    address: Vec<u8>,
    /// The address with the database: each has tables of its own.
    server: Vec<u8>,
    ahead: SentBytes,
    settings: SessionSettings,
    was_ready: bool,
    /// The place of the session in this state: the record and the index there.
    place: Option<(u64, u16)>,
    pending: VecDeque<PendingCommand>,
    is_missed: bool,
    /// Something was sent that was not read.
    has_unread: bool,
}

impl PostgresConnection {
    pub(crate) fn new(number: u32, address: Vec<u8>, conversation: Conversation) -> Self {
        Self {
            conversation,
            number,
            server: address.clone(),
            address,
            ahead: SentBytes::default(),
            settings: SessionSettings::default(),
            was_ready: false,
            place: None,
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
        self.has_unread = true;
        self.note_as_input(reporter);
    }

    /// The request ends, or the connection: what is not known of it by now counts as an input.
    pub(crate) fn end_of_request(&mut self, reporter: &mut Reporter) {
        self.note_as_input(reporter);
        if std::mem::take(&mut self.has_unread) {
            reporter.tell_unread_write(self.session(), StatementKind::Command);
        }
        if let Some(pending) = self.pending.front() {
            reporter.add_input(InputKind::Unanswered, pending.command.text());
        } else if self.was_ready && !self.is_over() && !self.conversation.is_ready() {
            reporter.add_input(InputKind::Unanswered, b"a part of a command");
        }
    }

    fn follow(&mut self, bytes: &[u8], is_sent: bool, reporter: &mut Reporter) {
        if self.is_over() {
            // A server reads nothing behind the client's end of the connection.
            self.has_unread |= is_sent && self.unread_reason().is_some();
            return self.note_as_input(reporter);
        }
        let mut seen = Vec::new();
        let mut see = |event: Event<'_>| {
            seen.push(match event {
                Event::Asked(command) => SeenEvent::Asked(command.clone()),
                Event::Answered(answer) => SeenEvent::Answered(*answer),
            });
        };
        if is_sent {
            self.conversation.sent(bytes, &mut see);
        } else {
            self.conversation.received(bytes, &mut see);
        }
        if !self.was_ready
            && self.conversation.is_ready()
            && let Ok(session) = self.conversation.session()
        {
            self.was_ready = true;
            self.server = [&b"postgres:"[..], &self.address, b"/", &session.database].concat();
        }
        for seen in seen {
            match seen {
                SeenEvent::Asked(command) => self.asks(command, reporter),
                SeenEvent::Answered(answer) => self.is_answered(answer, reporter),
            }
        }
        if self.unread_reason().is_some() {
            self.has_unread = true;
            self.note_as_input(reporter);
        }
    }

    fn is_over(&self) -> bool {
        self.is_missed || self.conversation.is_over()
    }

    fn unread_reason(&self) -> Option<&'static str> {
        match self.conversation.session() {
            _ if self.is_missed => Some("missed"),
            Ok(_) => None,
            Err(reason) => Some(reason.word()),
        }
    }

    /// Names the connection where a page may be made of more of it than the answers to its statements.
    fn note_as_input(&self, reporter: &mut Reporter) {
        match self.unread_reason() {
            Some(reason) => reporter.add_input(InputKind::UnreadDatabase, reason.as_bytes()),
            // Not let in, not open yet, or opened to cancel a statement of another one.
            None if !self.was_ready => reporter.add_input(InputKind::Connection, &self.address),
            None => {}
        }
        if self.conversation.session().is_ok_and(|it| it.was_notified) {
            reporter.add_input(InputKind::Connection, b"a message by NOTIFY");
        }
    }

    fn asks(&mut self, command: Command, reporter: &mut Reporter) {
        let is_within = self
            .conversation
            .session()
            .is_ok_and(|it| it.is_in_transaction);
        let is_within = is_within || !self.pending.is_empty();
        let status_before = if is_within { WITHIN_TRANSACTION } else { 0 };
        let place = reporter.session_place(self.place, || self.session());
        self.place = place.or(self.place);
        let mut write = 0;
        if !command.is_complete || !is_plain_read_of_postgres(command.text()) {
            write = reporter.announce(Write {
                number: 0,
                fetch: 0,
                session: self.session(),
                kind: kind(&command),
                text: command.text(),
                is_complete: command.is_complete,
                parameters: values(&command),
                status_before,
            });
        }
        self.pending.push_back(PendingCommand {
            command,
            status_before,
            write,
            place,
        });
    }

    fn is_answered(&mut self, answer: CycleEnd, reporter: &mut Reporter) {
        let status_after = if answer.is_in_transaction {
            WITHIN_TRANSACTION
        } else {
            0
        };
        let mut failed = answer
            .has_failed
            .then_some(&b"a statement that is not prepared"[..]);
        let count = answer.commands.min(self.pending.len());
        let answered: Vec<_> = self.pending.drain(..count).collect();
        for pending in &answered {
            if answer.has_failed {
                failed = Some(pending.command.text());
            }
            if let Some((record, session)) = pending.place
                && reporter.wanted_record() == Some(record)
            {
                reporter.add_statement(&statement(pending, session, status_after));
            }
            if pending.write != 0 {
                reporter.written(WriteOutcome {
                    number: pending.write,
                    error: None,
                    status_after,
                });
            }
            self.follow_session(pending);
        }
        if let Some(text) = failed {
            // The same statement may succeed at another time, or fail for what no table has.
            reporter.add_input(InputKind::Unanswered, text);
        }
    }

    /// Keeps the statements that may have changed the session.
    fn follow_session(&mut self, pending: &PendingCommand) {
        let text = pending.command.text();
        let first = first_word(text).to_ascii_uppercase();
        let trimmed = text.trim_ascii();
        let end = trimmed.iter().position(|byte| *byte == b';');
        let has_one = end.is_none_or(|end| end + 1 == trimmed.len());
        let keeps_it = match first.as_slice() {
            b"SELECT" | b"SHOW" | b"DEALLOCATE" | b"BEGIN" | b"START" => pending.write == 0,
            b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"WITH" | b"COPY" | b"TRUNCATE"
            | b"COMMIT" | b"ROLLBACK" | b"END" | b"ABORT" | b"SAVEPOINT" | b"RELEASE"
            | b"VALUES" => has_one,
            _ => false,
        };
        if pending.command.is_complete && keeps_it {
            return;
        }
        self.place = None;
        self.settings.add(text, pending.command.is_complete);
    }

    fn session(&self) -> Session<'_> {
        let session = self.conversation.session().ok();
        // Without its settings nothing of a session is read.
        let reads_plainly = session.is_some_and(|it| it.reads_plainly);
        Session {
            connection: self.number,
            server: &self.server,
            server_version: session.map_or(&[][..], |it| it.server_version.as_slice()),
            identifier: session.map_or(0, |it| it.process),
            account: session.map_or(&[][..], |it| it.account.as_slice()),
            collation: 0,
            database: session.map(|it| it.database.as_slice()),
            settings: self.settings.statements().filter(|_| reads_plainly),
        }
    }
}

const fn kind(command: &Command) -> StatementKind {
    match command.is_prepared {
        true => StatementKind::Prepared,
        false => StatementKind::Text,
    }
}

fn statement(pending: &PendingCommand, session: u16, status_after: u16) -> Statement<'_> {
    Statement {
        session,
        kind: kind(&pending.command),
        text: pending.command.text(),
        is_complete: pending.command.is_complete,
        parameters: values(&pending.command),
        outcomes: Vec::new(),
        status_before: pending.status_before,
        status_after,
        write: pending.write,
    }
}

fn values(command: &Command) -> Vec<Value<'_>> {
    let values = command.parameters.iter().map(|parameter| match parameter {
        Parameter::Text(value) => Value::Bytes(value),
        Parameter::Null => Value::Null,
        Parameter::Opaque => Value::Opaque,
    });
    values.collect()
}
