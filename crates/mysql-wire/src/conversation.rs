//! One connection, followed through its phases:
//!
//! ```text
//! Greeting ─► Response ─► Authenticating ─► Ready ⇄ Answering
//!                              ▲              │          ▲
//!                              └─ change user ┘          └─► SendingFile    any ─► Closed, Unreadable
//! ```
//!
//! Client and server count their packets together, from zero with each command. A number that does
//! not fit shows that the reader has lost the thread, and ends the reading.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::answer::{AnswerForm, AnswerReader, CommandAnswer, Progress, StatusFlags};
use crate::command::{Command, CommandKind, MAX_STATEMENT_BYTES};
use crate::fields::{u8, u16, u32};
use crate::handshake::{AccountChange, account_change, capability, greeting, handshake_response};
use crate::packet::{PacketReader, Piece};
use crate::parameters::{ParameterType, parameters};

/// Prepared statements that a connection holds at a time. PHP closes each with its object.
pub const MAX_PREPARED: usize = 256;

/// Bytes of all prepared statements of a connection.
pub const MAX_PREPARED_BYTES: usize = 1024 * 1024;

/// Bytes of a packet of the server that are kept. The fields of an OK or an error that are read stand within them.
const MAX_SERVER_HEAD: usize = 512;

/// The reason for which a connection is not read, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreadable {
    Tls,
    Compression,
    /// An extension of the protocol that PHP does not use was agreed on.
    Extension,
    /// Another version of the protocol, or none.
    Protocol,
    /// A command was sent before the last one was answered.
    Pipelined,
    Cursor,
    /// The server asks for a file, which the reader cannot send.
    LocalFile,
    Replication,
    UnknownStatement,
    TooManyPrepared,
    OutOfSequence,
    Malformed,
    /// The server spoke without being asked, which it does before it closes the connection.
    Unasked,
}

impl Unreadable {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Compression => "compression",
            Self::Extension => "extension",
            Self::Protocol => "protocol",
            Self::Pipelined => "pipelined",
            Self::Cursor => "cursor",
            Self::LocalFile => "local-file",
            Self::Replication => "replication",
            Self::UnknownStatement => "unknown-statement",
            Self::TooManyPrepared => "too-many-prepared",
            Self::OutOfSequence => "out-of-sequence",
            Self::Malformed => "malformed",
            Self::Unasked => "unasked",
        }
    }
}

/// The facts known about the connection itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The server's number for this connection.
    pub connection_id: u32,
    pub server_version: Vec<u8>,
    pub account: Vec<u8>,
    /// The default database by the protocol. A statement `USE` changes it as well, which is not seen here.
    pub database: Option<Vec<u8>>,
    /// The number of the collation that the client named at first. `SET NAMES` changes it later.
    pub collation: u8,
    pub status: StatusFlags,
}

pub enum Event<'a> {
    /// A command was sent in full.
    Asked(&'a Command),
    /// Its answer was received in full.
    Answered(&'a Command, &'a CommandAnswer),
}

enum Phase {
    Greeting,
    Response,
    /// With the change that was asked for within a connection.
    Authenticating(Option<(Command, AccountChange)>),
    Ready,
    Answering(Box<AnswerReader>),
    /// The server has asked for a file (LOAD DATA LOCAL). An empty packet ends it, also where PHP refuses.
    SendingFile(Box<AnswerReader>),
    Closed,
    Unreadable(Unreadable),
}

struct PreparedStatement {
    text: Arc<[u8]>,
    is_complete: bool,
    is_of_session_before: bool,
    parameters: usize,
    types: Vec<ParameterType>,
    long: HashSet<u16>,
}

pub struct Conversation {
    seed: u64,
    phase: Phase,
    client: PacketReader,
    server: PacketReader,
    client_capabilities: u32,
    server_capabilities: u32,
    sequence: u8,
    session: Session,
    asked: Option<Command>,
    prepared: HashMap<u32, PreparedStatement>,
    prepared_bytes: usize,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Conversation {
    /// `seed` is that of the hashes of results: without it, texts with the same hash are easy to find.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            phase: Phase::Greeting,
            client: PacketReader::new(MAX_STATEMENT_BYTES + 1),
            server: PacketReader::new(MAX_SERVER_HEAD),
            client_capabilities: 0,
            server_capabilities: 0,
            sequence: 0,
            session: Session::default(),
            asked: None,
            prepared: HashMap::new(),
            prepared_bytes: 0,
        }
    }

    /// Takes the bytes that the client wrote, in order and without gaps.
    pub fn sent(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_over() {
            let Some(piece) = self.client.next(&mut bytes) else {
                return;
            };
            let result = match piece {
                Piece::Header(sequence) => self.client_header(sequence),
                Piece::Part(_) => Ok(()),
                Piece::End => self.client_end(see),
            };
            self.end_with(result);
        }
    }

    /// Takes the bytes that the client read, in order and without gaps.
    pub fn received(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_over() {
            // Most packets are rows, which come many at a time.
            if matches!(self.phase, Phase::Answering(_))
                && let Some((sequence, payload)) = self.server.whole(&mut bytes)
            {
                let result = self.packet(sequence, payload, see);
                self.end_with(result);
                continue;
            }
            let Some(piece) = self.server.next(&mut bytes) else {
                return;
            };
            let result = match piece {
                Piece::Header(sequence) => self.server_header(sequence),
                Piece::Part(part) => {
                    if let Phase::Answering(reader) = &mut self.phase {
                        let is_short = self
                            .server
                            .is_shorter_than(short_bound(self.server_capabilities));
                        reader.part(part, is_short);
                    }
                    Ok(())
                }
                Piece::End => self.server_end(see),
            };
            self.end_with(result);
        }
    }

    /// The facts known about the connection, or the reason for which it is not read.
    pub fn session(&self) -> Result<&Session, Unreadable> {
        match self.phase {
            Phase::Unreadable(reason) => Err(reason),
            _ => Ok(&self.session),
        }
    }

    /// Whether no byte of it was read yet.
    pub fn is_untouched(&self) -> bool {
        matches!(self.phase, Phase::Greeting) && !self.server.is_within_a_packet()
    }

    /// Whether the connection was opened and has no answer outstanding.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready) && !self.client.is_within_a_packet()
    }

    /// Whether nothing more is read of it: it was closed or is not readable.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Unreadable(_))
    }

    /// Notes that the session has changed. A statement prepared before is read by the default database and the modes of then.
    pub fn note_changed_session(&mut self) {
        for statement in self.prepared.values_mut() {
            statement.is_of_session_before = true;
        }
    }

    fn end_with(&mut self, result: Result<(), Unreadable>) {
        if let Err(reason) = result {
            self.phase = Phase::Unreadable(reason);
            self.asked = None;
            self.prepared = HashMap::new();
        }
    }

    fn client_header(&mut self, sequence: u8) -> Result<(), Unreadable> {
        match self.phase {
            Phase::Ready if !self.client.is_continuation() => self.sequence = 0,
            Phase::Answering(_) => return Err(Unreadable::Pipelined),
            Phase::Greeting => return Err(Unreadable::Protocol),
            _ => {}
        }
        self.expect(sequence)
    }

    fn server_header(&mut self, sequence: u8) -> Result<(), Unreadable> {
        match self.phase {
            Phase::Ready => Err(Unreadable::Unasked),
            Phase::Response => Err(Unreadable::Protocol),
            Phase::SendingFile(_) => Err(Unreadable::OutOfSequence),
            _ => self.expect(sequence),
        }
    }

    fn expect(&mut self, sequence: u8) -> Result<(), Unreadable> {
        if sequence != self.sequence {
            return Err(Unreadable::OutOfSequence);
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(())
    }

    fn client_end(&mut self, see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        match self.phase {
            Phase::Response => self.client_response(),
            Phase::Ready => self.command(see),
            Phase::SendingFile(_) if self.client.is_empty() => {
                let phase = std::mem::replace(&mut self.phase, Phase::Ready);
                if let Phase::SendingFile(reader) = phase {
                    self.phase = Phase::Answering(reader);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn client_response(&mut self) -> Result<(), Unreadable> {
        let response = handshake_response(self.client.kept()).ok_or(Unreadable::Protocol)?;
        // A capability that only one of both has is not used.
        let agreed = response.capabilities & self.server_capabilities;
        let names = [
            (capability::TLS, Unreadable::Tls),
            (
                capability::COMPRESS | capability::ZSTD,
                Unreadable::Compression,
            ),
            (
                capability::OPTIONAL_METADATA | capability::QUERY_ATTRIBUTES,
                Unreadable::Extension,
            ),
        ];
        for (flags, reason) in names {
            if agreed & flags != 0 {
                return Err(reason);
            }
        }
        if response.mariadb_capabilities != 0 {
            return Err(Unreadable::Extension);
        }
        self.client_capabilities = agreed;
        self.server_capabilities = agreed;
        self.session.account = response.account;
        self.session.database = response.database;
        self.session.collation = response.collation;
        self.phase = Phase::Authenticating(None);
        Ok(())
    }

    fn command(&mut self, see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        let is_complete = self.client.is_all_kept();
        let mut payload = self.client.kept();
        let number = u8(&mut payload).ok_or(Unreadable::Malformed)?;
        let (kind, form) = match number {
            0x01 => {
                self.phase = Phase::Closed;
                return Ok(());
            }
            0x02 => (CommandKind::InitDatabase, AnswerForm::OnePacket),
            0x03 => (CommandKind::Query, AnswerForm::Results),
            0x04 => (CommandKind::FieldList, AnswerForm::Definitions),
            0x09 | 0x0e | 0x1b => (CommandKind::Administration, AnswerForm::OnePacket),
            0x0a => (CommandKind::Administration, AnswerForm::Results),
            0x05..=0x08 | 0x0c | 0x0d => (CommandKind::Other, AnswerForm::OnePacket),
            0x11 => return self.change_user(is_complete, see),
            0x12 | 0x13 | 0x15 | 0x1e => return Err(Unreadable::Replication),
            0x16 => (CommandKind::Prepare, AnswerForm::Prepared),
            0x17 => return self.execute(is_complete, see),
            0x18 => return self.long_data(),
            0x19 => {
                let id = u32(&mut payload).ok_or(Unreadable::Malformed)?;
                if let Some(closed) = self.prepared.remove(&id) {
                    self.prepared_bytes -= closed.text.len();
                }
                return Ok(());
            }
            0x1a => {
                let id = u32(&mut payload).ok_or(Unreadable::Malformed)?;
                if let Some(statement) = self.prepared.get_mut(&id) {
                    statement.long.clear();
                }
                (CommandKind::Administration, AnswerForm::OnePacket)
            }
            0x1c => return Err(Unreadable::Cursor),
            0x1f => (CommandKind::ResetConnection, AnswerForm::OnePacket),
            _ => return Err(Unreadable::Extension),
        };
        let command = Command::new(kind, payload, is_complete);
        self.ask(command, form, see);
        Ok(())
    }

    fn ask(&mut self, command: Command, form: AnswerForm, see: &mut impl FnMut(Event<'_>)) {
        see(Event::Asked(&command));
        self.asked = Some(command);
        let without_eof = self.client_capabilities & capability::DEPRECATE_EOF != 0;
        self.phase = Phase::Answering(Box::new(AnswerReader::new(
            form,
            without_eof,
            self.session.status,
            self.seed,
        )));
    }

    fn change_user(
        &mut self,
        is_complete: bool,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let payload = &self.client.kept()[1..];
        let change = account_change(payload, self.client_capabilities).filter(|_| is_complete);
        let change = change.ok_or(Unreadable::Malformed)?;
        let command = Command::new(CommandKind::ChangeUser, &change.account, true);
        see(Event::Asked(&command));
        self.phase = Phase::Authenticating(Some((command, change)));
        Ok(())
    }

    fn execute(
        &mut self,
        is_complete: bool,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let mut payload = &self.client.kept()[1..];
        let id = u32(&mut payload).ok_or(Unreadable::Malformed)?;
        let flags = u8(&mut payload).ok_or(Unreadable::Malformed)?;
        let _executions = u32(&mut payload).ok_or(Unreadable::Malformed)?;
        if flags != 0 {
            return Err(Unreadable::Cursor);
        }
        let statement = self
            .prepared
            .get_mut(&id)
            .ok_or(Unreadable::UnknownStatement)?;
        let mut command = Command {
            kind: CommandKind::Execute,
            text: Arc::clone(&statement.text),
            parameters: Vec::new(),
            is_complete: statement.is_complete && is_complete,
            is_of_session_before: statement.is_of_session_before,
        };
        if is_complete {
            let long = std::mem::take(&mut statement.long);
            let is_long =
                |index: usize| u16::try_from(index).is_ok_and(|index| long.contains(&index));
            command.parameters = parameters(
                &mut payload,
                statement.parameters,
                &mut statement.types,
                is_long,
            )
            .ok_or(Unreadable::Malformed)?;
        } else {
            // The types were not seen in full either.
            statement.types.clear();
            statement.long.clear();
        }
        self.ask(command, AnswerForm::Results, see);
        Ok(())
    }

    fn long_data(&mut self) -> Result<(), Unreadable> {
        let mut payload = &self.client.kept()[1..];
        let read = (|| Some((u32(&mut payload)?, u16(&mut payload)?)))();
        let (id, parameter) = read.ok_or(Unreadable::Malformed)?;
        let statement = self
            .prepared
            .get_mut(&id)
            .ok_or(Unreadable::UnknownStatement)?;
        if usize::from(parameter) >= statement.parameters {
            return Err(Unreadable::Malformed);
        }
        statement.long.insert(parameter);
        Ok(())
    }

    fn server_end(&mut self, see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        match &mut self.phase {
            Phase::Greeting => {
                let head = self.server.kept();
                if head.first() == Some(&0xff) {
                    self.phase = Phase::Closed;
                    return Ok(());
                }
                let greeting = greeting(head).ok_or(Unreadable::Protocol)?;
                self.session.server_version = greeting.server_version;
                self.session.connection_id = greeting.connection_id;
                self.server_capabilities = greeting.capabilities;
                self.phase = Phase::Response;
                Ok(())
            }
            Phase::Authenticating(_) => self.authenticated(see),
            Phase::Answering(_) => self.answered(see),
            _ => Err(Unreadable::Unasked),
        }
    }

    fn authenticated(&mut self, see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        let mut ok = AnswerReader::new(AnswerForm::OnePacket, true, StatusFlags::default(), 0);
        match self.server.kept().first() {
            Some(0x00) => {
                ok.end(self.server.kept(), true);
                self.session.status = ok.answer.status;
            }
            Some(0xff) => {
                self.phase = Phase::Closed;
                return Ok(());
            }
            // Another method, or more of the same one.
            _ => return Ok(()),
        }
        let Phase::Authenticating(change) = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return Ok(());
        };
        if let Some((command, change)) = change {
            self.session.account = change.account;
            self.session.database = change.database;
            self.session.collation = change.collation.unwrap_or(self.session.collation);
            self.forget_prepared();
            see(Event::Answered(&command, &ok.answer));
        }
        Ok(())
    }

    fn packet(
        &mut self,
        sequence: u8,
        payload: &[u8],
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        self.expect(sequence)?;
        let Phase::Answering(reader) = &mut self.phase else {
            return Ok(());
        };
        let is_short = (payload.len() as u64) < short_bound(self.server_capabilities);
        let progress = reader.packet(payload, is_short);
        self.went_on(progress, see)
    }

    fn answered(&mut self, see: &mut impl FnMut(Event<'_>)) -> Result<(), Unreadable> {
        let Phase::Answering(reader) = &mut self.phase else {
            return Ok(());
        };
        let is_short = self
            .server
            .is_shorter_than(short_bound(self.server_capabilities));
        let progress = reader.end(self.server.kept(), is_short);
        self.went_on(progress, see)
    }

    fn went_on(
        &mut self,
        progress: Progress,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        match progress {
            Progress::More => return Ok(()),
            Progress::Complete => {}
            Progress::WantsFile => {
                let phase = std::mem::replace(&mut self.phase, Phase::Ready);
                if let Phase::Answering(reader) = phase {
                    self.phase = Phase::SendingFile(reader);
                }
                return Ok(());
            }
            Progress::Cursor => return Err(Unreadable::Cursor),
            Progress::Malformed => return Err(Unreadable::Malformed),
        }
        let Phase::Answering(reader) = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return Ok(());
        };
        let Some(command) = self.asked.take() else {
            return Err(Unreadable::Unasked);
        };
        let has_failed = matches!(
            reader.answer.outcomes.last(),
            Some(crate::Outcome::Failed { .. })
        );
        self.session.status = reader.answer.status;
        match command.kind {
            CommandKind::InitDatabase if !has_failed => {
                self.session.database = Some(command.text.to_vec())
            }
            CommandKind::ResetConnection if !has_failed => self.forget_prepared(),
            CommandKind::Prepare => {
                if let Some(head) = reader.prepared {
                    self.remember(head.id, head.parameters, &command)?;
                }
            }
            _ => {}
        }
        see(Event::Answered(&command, &reader.answer));
        Ok(())
    }

    fn remember(&mut self, id: u32, parameters: u16, command: &Command) -> Result<(), Unreadable> {
        self.prepared_bytes += command.text.len();
        if self.prepared.len() >= MAX_PREPARED || self.prepared_bytes > MAX_PREPARED_BYTES {
            return Err(Unreadable::TooManyPrepared);
        }
        let statement = PreparedStatement {
            text: Arc::clone(&command.text),
            is_complete: command.is_complete,
            is_of_session_before: false,
            parameters: parameters.into(),
            types: Vec::new(),
            long: HashSet::new(),
        };
        if let Some(old) = self.prepared.insert(id, statement) {
            self.prepared_bytes -= old.text.len();
        }
        Ok(())
    }

    fn forget_prepared(&mut self) {
        self.prepared.clear();
        self.prepared_bytes = 0;
    }
}

/// An EOF has at most eight bytes, and the OK in its place less than a full packet: a row that
/// begins with the same byte is longer.
const fn short_bound(capabilities: u32) -> u64 {
    if capabilities & capability::DEPRECATE_EOF == 0 {
        9
    } else {
        0xff_ffff
    }
}
