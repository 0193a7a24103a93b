//! One connection, followed through its phases:
//!
//! ```text
//! Start ─► (TlsAsked ─► Start) ─► Authenticating ─► Ready        any ─► Closed, Unreadable
//! ```
//!
//! Commands go together to the server up to a Query, a Sync or a call of a function. Each such cycle is answered by one
//! ReadyForQuery, and a client may send several cycles ahead.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{Fields, MAX_STATEMENT_BYTES, Message, MessageReader, VERSION};

/// Prepared statements that are known of a connection at a time, and their bytes. A further one is not known.
pub const MAX_PREPARED: usize = 256;
pub const MAX_PREPARED_BYTES: usize = 1024 * 1024;

/// Cycles that wait for their answers, and commands within one.
pub const MAX_CYCLES: usize = 256;
const MAX_COMMANDS: usize = 1024;

/// Portals that are open at a time, and parameters of one.
const MAX_PORTALS: usize = 64;
const MAX_PARAMETERS: usize = 4096;

/// Bytes of a message of the server that are kept.
const MAX_SERVER_HEAD: usize = 1024;

const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Client encodings in which the bytes of ASCII stand for nothing else.
const PLAIN_ENCODINGS: [&str; 6] = ["UTF8", "SQL_ASCII", "LATIN", "ISO_8859_", "WIN1", "KOI8"];

/// The reason for which a connection is not read, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreadable {
    Tls,
    /// Encryption by GSSAPI.
    Gss,
    /// Another version of the protocol, or none.
    Protocol,
    Replication,
    /// More was sent ahead than is followed.
    Pipelined,
    Malformed,
    /// The server answered what was not asked.
    Unasked,
}

impl Unreadable {
    /// The word for logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Gss => "gss",
            Self::Protocol => "protocol",
            Self::Replication => "replication",
            Self::Pipelined => "pipelined",
            Self::Malformed => "malformed",
            Self::Unasked => "unasked",
        }
    }
}

/// The facts known about the connection itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The server's process for this connection.
    pub process: u32,
    pub server_version: Vec<u8>,
    pub account: Vec<u8>,
    pub database: Vec<u8>,
    /// As of the last answer.
    pub is_in_transaction: bool,
    /// A message of another session arrived (NOTIFY).
    pub was_notified: bool,
    /// A backslash is a character like others, and so are all bytes of ASCII.
    pub reads_plainly: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Text(Vec<u8>),
    /// In binary form.
    Opaque,
}

/// A statement, or several, that the server is asked to run.
#[derive(Debug, Clone)]
pub struct Command {
    text: Arc<[u8]>,
    pub parameters: Vec<Parameter>,
    /// Text and parameters are all of it. Otherwise it may be anything.
    pub is_complete: bool,
    pub is_prepared: bool,
}

impl Command {
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn unknown(text: &[u8]) -> Self {
        Self {
            text: text.into(),
            parameters: Vec::new(),
            is_complete: false,
            is_prepared: true,
        }
    }
}

/// The end of one cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleEnd {
    /// So many commands have been answered, in their order.
    pub commands: usize,
    /// The server reported an error, so that the last of them may not have been run.
    pub has_failed: bool,
    pub is_in_transaction: bool,
}

pub enum Event<'a> {
    /// A command was sent in full.
    Asked(&'a Command),
    Answered(&'a CycleEnd),
}

enum Phase {
    Start,
    TlsAsked,
    Authenticating,
    Ready,
    Closed,
    Unreadable(Unreadable),
}

struct PreparedStatement {
    text: Arc<[u8]>,
    is_complete: bool,
}

pub struct Conversation {
    phase: Phase,
    client: MessageReader,
    server: MessageReader,
    session: Session,
    has_plain_texts: bool,
    has_plain_encoding: bool,
    prepared: HashMap<Vec<u8>, PreparedStatement>,
    prepared_bytes: usize,
    portals: HashMap<Vec<u8>, Command>,
    /// Commands of the cycle that is not sent in full.
    open: usize,
    /// By their commands.
    cycles: VecDeque<usize>,
    has_failed: bool,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            phase: Phase::Start,
            client: MessageReader::new(true, MAX_STATEMENT_BYTES + 256),
            server: MessageReader::new(false, MAX_SERVER_HEAD),
            session: Session::default(),
            has_plain_texts: false,
            has_plain_encoding: false,
            prepared: HashMap::new(),
            prepared_bytes: 0,
            portals: HashMap::new(),
            open: 0,
            cycles: VecDeque::new(),
            has_failed: false,
        }
    }
}

impl Conversation {
    /// A conversation of a client that has sent these bytes first; `None`: it speaks another protocol.
    pub fn begin(sent: &[u8]) -> Option<Self> {
        let mut fields = Fields(sent);
        let length = fields.long()?;
        let code = fields.long()?;
        let is_request = matches!(code, TLS_REQUEST | GSS_REQUEST | CANCEL_REQUEST);
        let is_start = code >> 16 == VERSION >> 16;
        let is_it = (8..10_000).contains(&length) && (is_request || is_start);
        is_it.then(Self::default)
    }

    /// Takes the bytes that the client wrote, in order and without gaps.
    pub fn sent(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_over() {
            if matches!(self.phase, Phase::TlsAsked) && !bytes.is_empty() {
                // The answer was not read yet.
                return self.end_with(Err(Unreadable::Tls));
            }
            let mut client = std::mem::replace(&mut self.client, MessageReader::new(false, 0));
            let result = match client.next(&mut bytes) {
                None => {
                    self.client = client;
                    return;
                }
                Some(Ok(message)) => self.client_message(message, see),
                Some(Err(())) => Err(Unreadable::Malformed),
            };
            self.client = client;
            if matches!(self.phase, Phase::TlsAsked) {
                self.client.expect_first();
            }
            self.end_with(result);
        }
    }

    /// Takes the bytes that the client read, in order and without gaps.
    pub fn received(&mut self, mut bytes: &[u8], see: &mut impl FnMut(Event<'_>)) {
        while !self.is_over() && !bytes.is_empty() {
            if matches!(self.phase, Phase::TlsAsked) {
                let result = match bytes.split_first() {
                    Some((b'N', rest)) => {
                        bytes = rest;
                        self.phase = Phase::Start;
                        Ok(())
                    }
                    Some((b'S', _)) => Err(Unreadable::Tls),
                    Some((b'G', _)) => Err(Unreadable::Gss),
                    _ => Err(Unreadable::Protocol),
                };
                self.end_with(result);
                continue;
            }
            let mut server = std::mem::replace(&mut self.server, MessageReader::new(false, 0));
            let result = match server.next(&mut bytes) {
                None => {
                    self.server = server;
                    return;
                }
                Some(Ok(message)) => self.server_message(message, see),
                Some(Err(())) => Err(Unreadable::Malformed),
            };
            self.server = server;
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

    /// Whether the connection was opened and has no answer outstanding.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
            && self.cycles.is_empty()
            && self.open == 0
            && !self.client.is_within_a_message()
    }

    /// Whether nothing more is read of it: it was closed or is not readable.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Unreadable(_))
    }

    fn end_with(&mut self, result: Result<(), Unreadable>) {
        if let Err(reason) = result {
            self.phase = Phase::Unreadable(reason);
            self.prepared = HashMap::new();
            self.portals = HashMap::new();
            self.cycles = VecDeque::new();
        }
    }

    fn client_message(
        &mut self,
        message: Message<'_>,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        match self.phase {
            Phase::Start => self.start(message),
            // Passwords, whatever their method.
            Phase::Authenticating if message.letter == b'p' => Ok(()),
            Phase::Authenticating if message.letter == b'X' => {
                self.phase = Phase::Closed;
                Ok(())
            }
            // What is sent before the server is ready would be run after a login alone.
            Phase::Authenticating => Err(Unreadable::Pipelined),
            _ => self.command(message, see),
        }
    }

    fn start(&mut self, message: Message<'_>) -> Result<(), Unreadable> {
        let mut fields = Fields(message.fields);
        let code = fields.long().ok_or(Unreadable::Protocol)?;
        match code {
            TLS_REQUEST | GSS_REQUEST => self.phase = Phase::TlsAsked,
            CANCEL_REQUEST => self.phase = Phase::Closed,
            _ if code >> 16 != VERSION >> 16 || !message.is_whole => {
                return Err(Unreadable::Protocol);
            }
            _ => {
                while let Some(name) = fields.text().filter(|name| !name.is_empty()) {
                    let value = fields.text().ok_or(Unreadable::Malformed)?;
                    match name {
                        b"user" => self.session.account = value.to_vec(),
                        b"database" => self.session.database = value.to_vec(),
                        b"replication" => return Err(Unreadable::Replication),
                        _ => {}
                    }
                }
                if self.session.database.is_empty() {
                    self.session.database = self.session.account.clone();
                }
                self.phase = Phase::Authenticating;
            }
        }
        Ok(())
    }

    fn command(
        &mut self,
        message: Message<'_>,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let is_whole = message.is_whole;
        let mut fields = Fields(message.fields);
        match message.letter {
            b'Q' => {
                let text = fields.text().unwrap_or(message.fields);
                let text = text.get(..MAX_STATEMENT_BYTES).unwrap_or(text);
                self.follow_text(text, is_whole);
                let command = Command {
                    text: text.into(),
                    parameters: Vec::new(),
                    is_complete: is_whole && text.len() < MAX_STATEMENT_BYTES,
                    is_prepared: false,
                };
                self.ask(&command, see)?;
                self.end_cycle()
            }
            b'P' => self.parse(fields, is_whole),
            b'B' => self.bind(fields, is_whole),
            b'E' => {
                let portal = fields.text().unwrap_or_default();
                let command = self.portals.get(portal).cloned();
                let command = command.unwrap_or_else(|| Command::unknown(b"an unknown portal"));
                self.ask(&command, see)
            }
            b'C' => {
                let kind = fields.byte().ok_or(Unreadable::Malformed)?;
                let name = fields.text().unwrap_or_default();
                match kind {
                    b'S' => self.forget(name),
                    _ => {
                        self.portals.remove(name);
                    }
                }
                Ok(())
            }
            b'S' => self.end_cycle(),
            b'F' => {
                self.ask(&Command::unknown(b"a call of a function"), see)?;
                self.end_cycle()
            }
            // Describe, Flush, and the data of COPY, also where it is given up.
            b'D' | b'H' | b'd' | b'c' | b'f' => Ok(()),
            b'X' => {
                self.phase = Phase::Closed;
                Ok(())
            }
            _ => Err(Unreadable::Malformed),
        }
    }

    fn ask(
        &mut self,
        command: &Command,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        if self.open >= MAX_COMMANDS {
            return Err(Unreadable::Pipelined);
        }
        self.open += 1;
        see(Event::Asked(command));
        Ok(())
    }

    fn end_cycle(&mut self) -> Result<(), Unreadable> {
        if self.cycles.len() >= MAX_CYCLES {
            return Err(Unreadable::Pipelined);
        }
        self.cycles.push_back(std::mem::take(&mut self.open));
        Ok(())
    }

    fn parse(&mut self, mut fields: Fields<'_>, is_whole: bool) -> Result<(), Unreadable> {
        let all = fields.0;
        let name = fields.text();
        let text = fields.text();
        let (Some(name), Some(text)) = (name, text.or((!is_whole).then_some(&[]))) else {
            return match is_whole {
                true => Err(Unreadable::Malformed),
                // Not even its name is there: it may be any.
                false => {
                    self.forget_all();
                    Ok(())
                }
            };
        };
        // The name of another one is refused, unless that is closed by a statement which is not understood.
        let is_new = name.is_empty() || !self.prepared.contains_key(name);
        self.forget(name);
        let is_complete = is_whole && is_new && text.len() <= MAX_STATEMENT_BYTES;
        let text = if is_complete { text } else { &[] };
        let has_room = self.prepared.len() < MAX_PREPARED
            && self.prepared_bytes + all.len() <= MAX_PREPARED_BYTES;
        if has_room {
            self.prepared_bytes += text.len() + name.len();
            let statement = PreparedStatement {
                text: text.into(),
                is_complete,
            };
            self.prepared.insert(name.to_vec(), statement);
        }
        Ok(())
    }

    fn bind(&mut self, mut fields: Fields<'_>, is_whole: bool) -> Result<(), Unreadable> {
        let (Some(portal), Some(name)) = (fields.text(), fields.text()) else {
            return match is_whole {
                true => Err(Unreadable::Malformed),
                false => {
                    self.portals.clear();
                    Ok(())
                }
            };
        };
        let command = match self.prepared.get(name) {
            None => Command::unknown(b"an unknown prepared statement"),
            Some(statement) => {
                let parameters = parameters(fields).filter(|_| is_whole);
                if is_whole && parameters.is_none() {
                    return Err(Unreadable::Malformed);
                }
                Command {
                    text: Arc::clone(&statement.text),
                    is_complete: statement.is_complete && is_whole,
                    parameters: parameters.unwrap_or_default(),
                    is_prepared: true,
                }
            }
        };
        self.portals.remove(portal);
        if self.portals.len() < MAX_PORTALS {
            self.portals.insert(portal.to_vec(), command);
        }
        Ok(())
    }

    /// A text may close prepared statements, and prepare others of the same names.
    fn follow_text(&mut self, text: &[u8], is_whole: bool) {
        let text = text.trim_ascii();
        let text = text.strip_suffix(b";").unwrap_or(text);
        let mut words = text.split(u8::is_ascii_whitespace);
        let first = words.next().unwrap_or_default();
        if let (true, Some(name), None) = (
            is_whole && first.eq_ignore_ascii_case(b"DEALLOCATE"),
            words.next(),
            words.next(),
        ) && is_plain_name(name)
        {
            return self.forget(&name.to_ascii_lowercase());
        }
        let upper = text.to_ascii_uppercase();
        let has = |word: &[u8]| upper.windows(word.len()).any(|it| it == word);
        if !is_whole || has(b"DEALLOCATE") || has(b"PREPARE") || has(b"DISCARD") {
            self.forget_all();
        }
    }

    fn forget(&mut self, name: &[u8]) {
        if let Some(known) = self.prepared.remove(name) {
            self.prepared_bytes -= known.text.len() + name.len();
        }
    }

    fn forget_all(&mut self) {
        self.prepared.clear();
        self.prepared_bytes = 0;
    }

    fn server_message(
        &mut self,
        message: Message<'_>,
        see: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Unreadable> {
        let mut fields = Fields(message.fields);
        match (&self.phase, message.letter) {
            (Phase::Start, _) => return Err(Unreadable::Protocol),
            (_, b'S') => {
                if let (Some(name), Some(value)) = (fields.text(), fields.text()) {
                    self.parameter(name, value);
                }
            }
            (_, b'K') => self.session.process = fields.long().ok_or(Unreadable::Malformed)?,
            // Methods of authentication, notices, and what the server can do.
            (_, b'N') | (Phase::Authenticating, b'R' | b'v') => {}
            (Phase::Authenticating, b'E') => self.phase = Phase::Closed,
            (_, b'A') => self.session.was_notified = true,
            (Phase::Authenticating, b'Z') => {
                self.phase = Phase::Ready;
                self.follow_status(fields)?;
            }
            (Phase::Ready, b'Z') => {
                self.follow_status(fields)?;
                let commands = self.cycles.pop_front().ok_or(Unreadable::Unasked)?;
                let answer = CycleEnd {
                    commands,
                    has_failed: std::mem::take(&mut self.has_failed),
                    is_in_transaction: self.session.is_in_transaction,
                };
                see(Event::Answered(&answer));
            }
            (Phase::Ready, b'W') => return Err(Unreadable::Replication),
            (Phase::Ready, b'E') => self.has_failed = true,
            // Rows and their descriptions, ends of parts, COPY, the result of a function.
            (
                Phase::Ready,
                b'1' | b'2' | b'3' | b'C' | b'D' | b'G' | b'H' | b'I' | b'T' | b'V' | b'c' | b'd'
                | b'n' | b's' | b't',
            ) => {
                if self.cycles.is_empty()
                    && self.open == 0
                    && !matches!(message.letter, b'1'..=b'3')
                {
                    return Err(Unreadable::Unasked);
                }
            }
            _ => return Err(Unreadable::Malformed),
        }
        Ok(())
    }

    fn follow_status(&mut self, mut fields: Fields<'_>) -> Result<(), Unreadable> {
        self.session.is_in_transaction = match fields.byte() {
            Some(b'I') => false,
            Some(b'T' | b'E') => true,
            _ => return Err(Unreadable::Malformed),
        };
        if !self.session.is_in_transaction && self.open == 0 && self.cycles.len() <= 1 {
            self.portals.clear();
        }
        Ok(())
    }

    fn parameter(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"server_version" => self.session.server_version = value.to_vec(),
            b"standard_conforming_strings" => self.has_plain_texts = value == b"on",
            b"client_encoding" => {
                let name = String::from_utf8_lossy(value).to_ascii_uppercase();
                self.has_plain_encoding = PLAIN_ENCODINGS.iter().any(|it| name.starts_with(it));
            }
            _ => {}
        }
        self.session.reads_plainly = self.has_plain_texts && self.has_plain_encoding;
    }
}

/// A name in a statement that is written as the protocol has it but for its case.
fn is_plain_name(name: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty()
        && name.iter().all(is_of_name)
        && ![&b"ALL"[..], b"PREPARE"]
            .iter()
            .any(|it| name.eq_ignore_ascii_case(it))
}

/// The parameters of a Bind, behind the names.
fn parameters(mut fields: Fields<'_>) -> Option<Vec<Parameter>> {
    let formats = usize::from(fields.short()?);
    let formats: Vec<bool> = (0..formats)
        .map(|_| fields.short().map(|format| format != 0))
        .collect::<Option<_>>()?;
    let count = usize::from(fields.short()?);
    let is_binary = |at: usize| match formats.len() {
        0 => false,
        1 => formats[0],
        _ => formats.get(at).copied().unwrap_or(true),
    };
    let mut parameters = Vec::with_capacity(count.min(MAX_PARAMETERS));
    for at in 0..count {
        let parameter = match fields.value()? {
            None => Parameter::Null,
            Some(_) if is_binary(at) || at >= MAX_PARAMETERS => Parameter::Opaque,
            Some(value) => Parameter::Text(value.to_vec()),
        };
        parameters.push(parameter);
    }
    Some(parameters)
}
