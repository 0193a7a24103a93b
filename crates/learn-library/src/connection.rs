//! One connection to what may be a database, followed from its first byte.
#![forbid(unsafe_code)]

use learn_record::{
    InputKind, Outcome, Session, Statement, StatementKind, Value, Write, WriteOutcome,
};
use mysql_wire::{Command, CommandAnswer, CommandKind, Conversation, Event, Parameter, Unreadable};

use crate::plain_read::{first_word, is_begin, is_plain_read};
use crate::reporter::Reporter;
use crate::sent_bytes::SentBytes;
use crate::session_settings::SessionSettings;

/// The number of the command that a query is sent by.
const QUERY: u8 = 3;

/// Bytes of the conversation that are not read yet: in all, and at one time.
const MAX_LATER_BYTES: usize = 48 * 1024;
const MAX_LATER_PART: usize = 8 * 1024;

/// An event of the conversation, kept until the conversation is free again.
enum ConversationEvent {
    Asked(Command),
    Answered(CommandAnswer),
}

/// The command that waits for its answer.
struct PendingCommand {
    command: Command,
    status_before: u16,
    /// The number of its announcement, or 0.
    write: u64,
    /// The record that it belongs to, with the session's index there.
    place: Option<(u64, u16)>,
}

pub(crate) struct Connection {
    conversation: Conversation,
    number: u32,
    address: Vec<u8>,
    ahead: SentBytes,
    database: Option<Vec<u8>>,
    settings: SessionSettings,
    was_ready: bool,
    /// The place of the session in this state: the record and the index there.
    place: Option<(u64, u16)>,
    asked: Option<PendingCommand>,
    is_missed: bool,
    /// Something was sent that was not read.
    has_unread: bool,
    later: Later,
}

/// Plain reads and their answers. Mayfly need not know of them at once, so the library reads them together, when something
/// else comes: the processor fetches the code that reads them into its caches once for many.
#[derive(Default)]
struct Later {
    bytes: Vec<u8>,
    /// How many bytes, and whether they were sent.
    parts: Vec<(usize, bool)>,
    /// They are being read now.
    is_now: bool,
}

impl Later {
    fn add(&mut self, bytes: &[u8], is_sent: bool) {
        self.bytes.extend_from_slice(bytes);
        self.parts.push((bytes.len(), is_sent));
    }
}

impl Connection {
    pub(crate) fn new(number: u32, address: Vec<u8>, seed: u64) -> Self {
        Self {
            conversation: Conversation::new(seed),
            number,
            address,
            ahead: SentBytes::default(),
            database: None,
            settings: SessionSettings::default(),
            was_ready: false,
            place: None,
            asked: None,
            is_missed: false,
            has_unread: false,
            later: Later::default(),
        }
    }

    /// Whether nothing was sent or received yet. A server of MySQL speaks first, and a client of Redis does.
    pub(crate) fn is_untouched(&self) -> bool {
        self.ahead.is_empty()
            && !self.is_missed
            && !self.has_unread
            && self.conversation.is_untouched()
    }

    /// The number of the connection, and its address.
    pub(crate) fn into_address(self) -> (u32, Vec<u8>) {
        (self.number, self.address)
    }

    /// Bytes that PHP is about to send.
    pub(crate) fn will_send(&mut self, bytes: &[u8], reporter: &mut Reporter) {
        let new = self.ahead.new_of(bytes);
        self.follow_sometime(new, true, reporter);
    }

    /// How many of them the kernel took.
    pub(crate) fn has_sent(&mut self, count: usize) {
        self.ahead.are_taken(count);
    }

    /// Bytes that PHP has received.
    pub(crate) fn received(&mut self, bytes: &[u8], reporter: &mut Reporter) {
        self.follow_sometime(bytes, false, reporter);
    }

    /// Notes that a part of the conversation was not seen.
    pub(crate) fn miss(&mut self, reporter: &mut Reporter) {
        self.catch_up(reporter);
        self.is_missed = true;
        self.has_unread = true;
        self.conversation = Conversation::default();
        self.note_as_input(reporter);
    }

    /// The request ends, or the connection: what is not known of it by now counts as an input.
    pub(crate) fn end_of_request(&mut self, reporter: &mut Reporter) {
        self.catch_up(reporter);
        if self.unread_input().is_some() || !self.was_ready {
            self.note_as_input(reporter);
        }
        if std::mem::take(&mut self.has_unread) && self.is_unread_database() {
            reporter.tell_unread_write(self.session(), StatementKind::Command);
        }
        if let Some(asked) = &self.asked {
            reporter.add_input(InputKind::Unanswered, asked.command.text());
        }
        if let Some(asked) = &self.asked
            && asked.place.map(|(record, _)| record) == reporter.wanted_record()
            && let Some((_, session)) = asked.place
        {
            reporter.add_statement(&statement(asked, session, Vec::new(), asked.status_before));
        }
    }

    /// Follows at once, unless it can wait.
    fn follow_sometime(&mut self, bytes: &[u8], is_sent: bool, reporter: &mut Reporter) {
        let has_room = bytes.len() <= MAX_LATER_PART
            && self.later.bytes.len() + bytes.len() <= MAX_LATER_BYTES;
        let may_wait = if is_sent {
            reporter.wanted_record().is_some() && self.may_wait(bytes)
        } else {
            !self.later.parts.is_empty()
        };
        if has_room && may_wait {
            if self.later.parts.is_empty() {
                self.later.bytes = reporter.take_spare_room();
            }
            self.later.add(bytes, is_sent);
        } else {
            self.catch_up(reporter);
            self.follow(bytes, is_sent, reporter);
        }
    }

    /// Whether these bytes are one query that certainly changes nothing, also nothing of the session.
    fn may_wait(&self, bytes: &[u8]) -> bool {
        let Some((&[low, middle, high, 0, QUERY], text)) = bytes.split_first_chunk::<5>() else {
            return false;
        };
        let length = u32::from_le_bytes([low, middle, high, 0]);
        let is_whole = usize::try_from(length).is_ok_and(|length| length == text.len() + 1);
        // The answer before it, if that waits as well, is not read yet.
        let is_ready = !self.later.parts.is_empty() || self.conversation.is_ready();
        let word = first_word(text);
        let reads = word.eq_ignore_ascii_case(b"SELECT") || word.eq_ignore_ascii_case(b"SHOW");
        is_whole && is_ready && reads && is_plain_read(text, false)
    }

    /// Reads what has waited.
    pub(crate) fn catch_up(&mut self, reporter: &mut Reporter) {
        if self.later.parts.is_empty() {
            return;
        }
        let mut later = std::mem::take(&mut self.later);
        self.later.is_now = true;
        let mut rest = later.bytes.as_slice();
        for (count, is_sent) in later.parts.drain(..) {
            let (bytes, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            self.follow(bytes, is_sent, reporter);
        }
        reporter.keep_spare_room(std::mem::take(&mut later.bytes));
        self.later = later;
    }

    fn follow(&mut self, bytes: &[u8], is_sent: bool, reporter: &mut Reporter) {
        if self.is_missed || self.conversation.is_over() {
            self.has_unread |= is_sent;
            self.note_as_input(reporter);
            return;
        }
        let mut said = Vec::new();
        let mut see = |event: Event<'_>| {
            said.push(match event {
                Event::Asked(command) => ConversationEvent::Asked(command.clone()),
                Event::Answered(_, answer) => ConversationEvent::Answered(answer.clone()),
            });
        };
        if is_sent {
            self.conversation.sent(bytes, &mut see);
        } else {
            self.conversation.received(bytes, &mut see);
        }
        if !self.was_ready && self.conversation.is_ready() {
            self.was_ready = true;
            if let Ok(session) = self.conversation.session() {
                self.database.clone_from(&session.database);
            }
        }
        for said in said {
            match said {
                ConversationEvent::Asked(command) => self.asks(command, reporter),
                ConversationEvent::Answered(answer) => self.is_answered(&answer, reporter),
            }
        }
        if self.conversation.session().is_err() {
            self.asked = None;
            self.has_unread = true;
            self.note_as_input(reporter);
        }
    }

    /// Whether it is a database's, what is written there is not seen.
    fn is_unread_database(&self) -> bool {
        let is_unread = self.unread_input();
        let is_of_database = is_unread.is_some_and(|(kind, _)| kind == InputKind::UnreadDatabase);
        // A connection that was missed before its greeting may be of any kind.
        is_of_database && (self.was_ready || !self.is_missed)
    }

    /// Why it is not read as a database: the kind and detail of an input.
    fn unread_input(&self) -> Option<(InputKind, &[u8])> {
        if self.is_missed {
            return Some((InputKind::UnreadDatabase, "missed".as_bytes()));
        }
        match self.conversation.session() {
            Ok(_) => None,
            Err(Unreadable::Tls) => {
                Some((InputKind::UnreadDatabase, Unreadable::Tls.word().as_bytes()))
            }
            Err(reason) if self.was_ready => {
                Some((InputKind::UnreadDatabase, reason.word().as_bytes()))
            }
            Err(reason @ (Unreadable::Compression | Unreadable::Extension)) => {
                Some((InputKind::UnreadDatabase, reason.word().as_bytes()))
            }
            Err(_) => Some((InputKind::Connection, self.address.as_slice())),
        }
    }

    fn note_as_input(&self, reporter: &mut Reporter) {
        let (kind, detail) = self
            .unread_input()
            .unwrap_or((InputKind::Connection, self.address.as_slice()));
        if !self.was_ready || self.unread_input().is_some() {
            reporter.add_input(kind, detail);
        }
    }

    fn asks(&mut self, command: Command, reporter: &mut Reporter) {
        let status_before = self
            .conversation
            .session()
            .map_or(0, |session| session.status.0);
        let is_in_transaction = status_before & 1 != 0;
        let kind = statement_kind(command.kind);
        let may_write = match command.kind {
            // A statement that could wait changes nothing.
            CommandKind::Query if self.later.is_now => false,
            CommandKind::Query | CommandKind::Execute => {
                !command.is_whole() || !is_plain_read(command.text(), is_in_transaction)
            }
            CommandKind::Other => true,
            _ => false,
        };
        let place = reporter.session_place(self.place, || self.session());
        self.place = place.or(self.place);
        let mut write = 0;
        if may_write {
            write = reporter.announce(Write {
                number: 0,
                fetch: 0,
                session: self.session(),
                kind,
                text: command.text(),
                is_complete: command.is_complete(),
                parameters: values(&command),
                status_before,
            });
        }
        self.asked = Some(PendingCommand {
            command,
            status_before,
            write,
            place,
        });
    }

    fn is_answered(&mut self, answer: &CommandAnswer, reporter: &mut Reporter) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let outcomes: Vec<_> = answer.outcomes.iter().map(outcome).collect();
        let error = match outcomes.last() {
            Some(Outcome::Failed { code }) => Some(*code),
            _ => None,
        };
        if error.is_some_and(|code| !follows_from_statement(code)) {
            reporter.add_input(InputKind::Unanswered, asked.command.text());
        }
        let reads = match asked.command.kind {
            CommandKind::Query
            | CommandKind::Execute
            | CommandKind::FieldList
            | CommandKind::Other => true,
            CommandKind::Prepare => error.is_some(),
            _ => false,
        };
        if let Some((record, session)) = asked.place
            && reads
            && reporter.wanted_record() == Some(record)
        {
            let mut entry = statement(&asked, session, outcomes, answer.status.0);
            entry.is_complete &= answer.left_out == 0;
            reporter.add_statement(&entry);
        }
        if asked.write != 0 {
            reporter.written(WriteOutcome {
                number: asked.write,
                error,
                status_after: answer.status.0,
            });
        }
        if error.is_none() {
            self.follow_session(&asked.command, answer.outcomes.len());
        }
    }

    /// Follows the changes that the command has made to the session.
    fn follow_session(&mut self, command: &Command, outcomes: usize) {
        match command.kind {
            CommandKind::InitDatabase => self.database = Some(command.text().to_vec()),
            CommandKind::ChangeUser | CommandKind::ResetConnection => {
                self.settings = SessionSettings::default();
                if command.kind == CommandKind::ChangeUser {
                    let session = self.conversation.session().ok();
                    self.database = session.and_then(|session| session.database.clone());
                }
            }
            CommandKind::Query | CommandKind::Execute => {
                let first = first_word(command.text()).to_ascii_uppercase();
                let is_one = outcomes == 1 && command.is_whole();
                match first.as_slice() {
                    b"SELECT" | b"SHOW" | b"INSERT" | b"UPDATE" | b"DELETE" | b"REPLACE"
                    | b"COMMIT" | b"ROLLBACK" | b"START" | b"DESCRIBE" | b"DESC" | b"WITH"
                        if is_one =>
                    {
                        return;
                    }
                    b"BEGIN" if is_one && is_begin(command.text()) => return,
                    b"USE" if is_one => self.database = used_database(command.text()),
                    _ => {}
                }
                self.settings
                    .add(command.text(), is_one && command.is_complete());
            }
            _ => return,
        }
        self.conversation.note_changed_session();
        self.place = None;
    }

    fn session(&self) -> Session<'_> {
        let session = self.conversation.session().ok();
        Session {
            connection: self.number,
            server: &self.address,
            server_version: session.map_or(&[][..], |it| it.server_version.as_slice()),
            identifier: session.map_or(0, |it| it.connection_id),
            account: session.map_or(&[][..], |it| it.account.as_slice()),
            collation: session.map_or(0, |it| it.collation),
            database: self.database.as_deref(),
            settings: self.settings.statements(),
        }
    }
}

/// Whether an error of this number follows from the statement and the tables alone, so that the same statement gets it
/// again. The server gives any other one for a moment: a lock, a limit, another program.
const fn follows_from_statement(code: u16) -> bool {
    matches!(
        code,
        1052 // a column of several tables
            | 1054 // no such column
            | 1055 | 1056 | 1140 // columns beside groups
            | 1064 // syntax
            | 1065 // an empty text
            | 1066 // one name for two tables
            | 1109 | 1146 // no such table
            | 1111 // a sum in a condition
            | 1115 | 1193 | 1231 | 1253 | 1273 // no such setting, or value of one
            | 1191 // no index of words
            | 1222 | 1241 // the number of columns
            | 1248 // a query within a query has no name
            | 1267 // collations that do not fit together
            | 1295 // it cannot be prepared
            | 1305 | 1582 // no such function, or with other parameters
    )
}

const fn statement_kind(kind: CommandKind) -> StatementKind {
    match kind {
        CommandKind::Query => StatementKind::Text,
        CommandKind::Execute => StatementKind::Prepared,
        CommandKind::Prepare => StatementKind::Unprepared,
        _ => StatementKind::Command,
    }
}

fn statement(
    asked: &PendingCommand,
    session: u16,
    outcomes: Vec<Outcome>,
    status_after: u16,
) -> Statement<'_> {
    Statement {
        session,
        kind: statement_kind(asked.command.kind),
        text: asked.command.text(),
        is_complete: asked.command.is_complete(),
        parameters: values(&asked.command),
        outcomes,
        status_before: asked.status_before,
        status_after,
        write: asked.write,
    }
}

fn values(command: &Command) -> Vec<Value<'_>> {
    let value = |parameter| match parameter {
        &Parameter::Integer(value) => Value::Integer(value),
        &Parameter::Unsigned(value) => Value::Unsigned(value),
        &Parameter::Double(value) => Value::Double(value),
        Parameter::Bytes(value) => Value::Bytes(value),
        Parameter::Null => Value::Null,
        Parameter::Opaque => Value::Opaque,
    };
    command.parameters.iter().map(value).collect()
}

fn outcome(outcome: &mysql_wire::Outcome) -> Outcome {
    match *outcome {
        mysql_wire::Outcome::Rows { rows, bytes, hash } => Outcome::Rows { rows, bytes, hash },
        mysql_wire::Outcome::Done { changed_rows } => Outcome::Done { changed_rows },
        mysql_wire::Outcome::Failed { code } => Outcome::Failed { code },
    }
}

/// The name in a statement `USE name`; `None` where it is not a plain one.
fn used_database(text: &[u8]) -> Option<Vec<u8>> {
    let rest = text.trim_ascii().get(3..)?.trim_ascii();
    let rest = rest.strip_suffix(b";").unwrap_or(rest).trim_ascii();
    let inner = rest.strip_prefix(b"`").and_then(|it| it.strip_suffix(b"`"));
    let name = inner.unwrap_or(rest);
    let is_plain = name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
    (is_plain && !name.is_empty()).then(|| name.to_vec())
}
