//! The binary log as a server sends it to a replica: what each event writes, without its rows.
//!
//! ```text
//! bytes received ─► PacketReader ─► status byte ─► header ─► LogEvent
//! ```
//!
//! The first [`MAX_EVENT_BYTES`] of each event are kept, which hold all that is read but for the text of long
//! statements. The client asks for events without checksums; if the server reports checksums, they are cut off.

use std::collections::HashMap;

use crate::fields;
use crate::packet::{PacketReader, Piece};

/// The bytes that are kept of an event. The text of a longer statement counts as incomplete.
pub const MAX_EVENT_BYTES: usize = 1 << 16;

/// Tables of one transaction whose names are kept. Rows of further ones are unknown.
const MAX_TABLES: usize = 4096;

const HEADER_BYTES: usize = 19;
const CHECKSUM_BYTES: usize = 4;

const QUERY: u8 = 2;
const ROTATE: u8 = 4;
const FORMAT: u8 = 15;
const TABLE_MAP: u8 = 19;
const GTID: u8 = 162;

/// Events that write nothing: STOP, INTVAR, RAND, USER_VAR, XID, HEARTBEAT, IGNORABLE, ANNOTATE_ROWS, BINLOG_CHECKPOINT,
/// GTID_LIST, START_ENCRYPTION.
const WRITE_NOTHING: [u8; 11] = [3, 5, 13, 14, 16, 27, 28, 160, 161, 163, 164];

/// Modes of `sql_mode` by which a text is read as without them: REAL_AS_FLOAT, ONLY_FULL_GROUP_BY, NO_AUTO_VALUE_ON_ZERO,
/// those from STRICT_TRANS_TABLES to NO_AUTO_CREATE_USER, NO_ENGINE_SUBSTITUTION.
const PLAIN_MODES: u64 = 1 | 1 << 5 | 1 << 19 | 0xff << 21 | 1 << 30;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct LogEvent<'a> {
    /// The position behind it in its file, modulo 4 GiB; 0: it is not in the log.
    pub end: u32,
    pub content: LogContent<'a>,
}

/// The write that an event describes.
#[derive(Debug, PartialEq, Eq)]
pub enum LogContent<'a> {
    /// The log goes on in this file.
    File(&'a [u8]),
    /// Rows of a table.
    Rows {
        database: &'a [u8],
        table: &'a [u8],
    },
    Statement(LogStatement<'a>),
    Nothing,
    /// It is not known, or not understood: anything.
    Unknown,
}

/// A statement as the server logged it.
#[derive(Debug, PartialEq, Eq)]
pub struct LogStatement<'a> {
    /// Its default database.
    pub database: &'a [u8],
    pub text: &'a [u8],
    /// The number of the collation that the client's text has; `None`: the event does not contain it.
    pub collation: Option<u16>,
    /// The text is all there, and its `sql_mode` has nothing that changes how it is read.
    pub is_plain: bool,
}

/// Why nothing more comes.
#[derive(Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// The server reported this error.
    Failed(String),
    /// The server has sent all that it wanted.
    Ended,
    Nonsense,
}

/// Takes what a server sends after COM_BINLOG_DUMP.
#[derive(Debug)]
pub struct LogReader {
    packets: PacketReader,
    has_checksums: bool,
    tables: HashMap<u64, (Vec<u8>, Vec<u8>)>,
}

impl Default for LogReader {
    fn default() -> Self {
        Self {
            packets: PacketReader::new(MAX_EVENT_BYTES),
            has_checksums: false,
            tables: HashMap::new(),
        }
    }
}

impl LogReader {
    /// Reads on; `see` is called for each event that is complete.
    ///
    /// # Errors
    /// The server has ended the log, or its bytes make no sense.
    pub fn received(
        &mut self,
        mut bytes: &[u8],
        see: &mut dyn FnMut(&LogEvent<'_>),
    ) -> Result<(), LogEnd> {
        while let Some(piece) = self.packets.next(&mut bytes) {
            if !matches!(piece, Piece::End) {
                continue;
            }
            let is_all = self.packets.is_all_kept();
            let event = match self.packets.kept().split_first() {
                Some((0x00, event)) => event.to_vec(),
                Some((0xfe, _)) => return Err(LogEnd::Ended),
                Some((0xff, rest)) => return Err(LogEnd::Failed(said(rest))),
                _ => return Err(LogEnd::Nonsense),
            };
            let read = self.event(&event, is_all).ok_or(LogEnd::Nonsense)?;
            see(&read);
        }
        Ok(())
    }

    fn event<'a>(&'a mut self, event: &'a [u8], is_all: bool) -> Option<LogEvent<'a>> {
        let (mut header, mut body) = event.split_at_checked(HEADER_BYTES)?;
        let _time = fields::u32(&mut header)?;
        let kind = fields::u8(&mut header)?;
        let _server = fields::u32(&mut header)?;
        let _length = fields::u32(&mut header)?;
        let end = fields::u32(&mut header)?;
        if kind == FORMAT {
            self.has_checksums = has_checksums(body)?;
        } else if self.has_checksums && is_all {
            body = body
                .split_at_checked(body.len().checked_sub(CHECKSUM_BYTES)?)?
                .0;
        }
        let content = match kind {
            QUERY => LogContent::Statement(statement(body, is_all)?),
            ROTATE => LogContent::File(body.get(8..)?),
            FORMAT => LogContent::Nothing,
            TABLE_MAP => {
                self.map_table(body)?;
                LogContent::Nothing
            }
            GTID => {
                self.tables.clear();
                LogContent::Nothing
            }
            // Row events of MySQL and MariaDB, in their versions, compressed and not.
            23..=25 | 30..=32 | 39 | 166..=171 => {
                match self.tables.get(&table_number(&mut body)?) {
                    Some((database, table)) => LogContent::Rows { database, table },
                    None => LogContent::Unknown,
                }
            }
            kind if WRITE_NOTHING.contains(&kind) => LogContent::Nothing,
            _ => LogContent::Unknown,
        };
        Some(LogEvent { end, content })
    }

    fn map_table(&mut self, mut body: &[u8]) -> Option<()> {
        let number = table_number(&mut body)?;
        let _flags = fields::u16(&mut body)?;
        let mut name = || {
            let length = fields::u8(&mut body)?;
            let name = fields::take(&mut body, usize::from(length))?.to_vec();
            fields::take(&mut body, 1)?;
            Some(name)
        };
        let names = (name()?, name()?);
        // Without a name, the rows that follow are unknown.
        self.tables.remove(&number);
        if self.tables.len() < MAX_TABLES {
            self.tables.insert(number, names);
        }
        Some(())
    }
}

fn table_number(body: &mut &[u8]) -> Option<u64> {
    let [a, b, c, d, e, f] = fields::integer(body)?;
    Some(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
}

/// Returns whether events have checksums. The description of the log's format has version, server, time, the length of
/// headers and of each event, then the kind of checksums and its own checksum.
fn has_checksums(body: &[u8]) -> Option<bool> {
    let at = body.len().checked_sub(1 + CHECKSUM_BYTES)?;
    (at > 2 + 50 + 4).then(|| body.get(at) == Some(&1))
}

fn statement(mut body: &[u8], is_all: bool) -> Option<LogStatement<'_>> {
    let _connection = fields::u32(&mut body)?;
    let _seconds = fields::u32(&mut body)?;
    let database_length = fields::u8(&mut body)?;
    let _error = fields::u16(&mut body)?;
    let variables_length = fields::u16(&mut body)?;
    let variables = fields::take(&mut body, usize::from(variables_length))?;
    let database = fields::take(&mut body, usize::from(database_length))?;
    fields::take(&mut body, 1)?;
    let (modes, collation) = modes_and_collation(variables);
    Some(LogStatement {
        database,
        text: body,
        collation,
        is_plain: is_all && modes.is_some_and(|modes| modes & !PLAIN_MODES == 0),
    })
}

/// Returns `sql_mode` and the client's collation, from the variables that a statement was logged with, in the server's order.
/// Variables behind these are not looked at.
fn modes_and_collation(mut rest: &[u8]) -> (Option<u64>, Option<u16>) {
    let (mut modes, mut collation) = (None, None);
    let mut next = || {
        match fields::u8(&mut rest)? {
            // Flags; columns that count up.
            0 | 3 => fields::u32(&mut rest).map(|_| ()),
            1 => fields::integer(&mut rest).map(|it| modes = Some(u64::from_le_bytes(it))),
            // The client's, the connection's, the server's.
            4 => {
                collation = fields::u16(&mut rest);
                fields::u32(&mut rest).map(|_| ())
            }
            // The catalog.
            6 => {
                let length = fields::u8(&mut rest)?;
                fields::take(&mut rest, usize::from(length)).map(|_| ())
            }
            _ => None,
        }
    };
    while next().is_some() {}
    (modes, collation)
}

/// Returns the text of an error packet, from the bytes behind its first one.
fn said(rest: &[u8]) -> String {
    let text = rest.get(2..).unwrap_or_default();
    let text = match text.first() {
        Some(b'#') => text.get(6..).unwrap_or_default(),
        _ => text,
    };
    let text = text.get(..text.len().min(512)).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// COM_REGISTER_SLAVE, by which the server lists who reads its log.
pub fn register_command(number: u32) -> Vec<u8> {
    let mut command = vec![0x15];
    command.extend_from_slice(&number.to_le_bytes());
    // Host, account, password, port, rank, and the number of the primary.
    command.extend_from_slice(&[0; 3 + 2 + 4 + 4]);
    command
}

/// COM_BINLOG_DUMP: the events of a file from a position on, and those to come.
pub fn dump_command(number: u32, file: &[u8], position: u32) -> Vec<u8> {
    let mut command = vec![0x12];
    command.extend_from_slice(&position.to_le_bytes());
    command.extend_from_slice(&[0; 2]);
    command.extend_from_slice(&number.to_le_bytes());
    command.extend_from_slice(file);
    command
}

#[cfg(test)]
#[path = "binary_log_tests.rs"]
mod tests;
