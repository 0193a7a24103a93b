//! The parts of a record become the record.
//!
//! Entries stand in the order in which they happened, each after a byte for its kind. The last one
//! records whether something is missing.

use crate::encoding::{Decode, ListEntry, MalformedMessage, Reader};
use crate::entries::{
    CacheKey, FileLook, Incomplete, Input, Session, SessionFile, SqliteFile, Statement,
};
use crate::limits::{MAX_DETAIL_BYTES, MAX_RECORD_BYTES};
use crate::message::RecordPart;

pub(crate) const END: u8 = 0;
pub(crate) const SESSION: u8 = 1;
pub(crate) const STATEMENT: u8 = 2;
pub(crate) const INPUT: u8 = 3;
pub(crate) const FILE: u8 = 4;
pub(crate) const SQLITE_FILE: u8 = 5;
pub(crate) const SESSION_FILE: u8 = 6;
pub(crate) const CACHE_KEY: u8 = 7;

/// A record: the inputs from which the response to a request was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record<'a> {
    pub sessions: Vec<Session<'a>>,
    pub statements: Vec<Statement<'a>>,
    pub inputs: Vec<Input<'a>>,
    pub files: Vec<FileLook<'a>>,
    pub sqlite_files: Vec<SqliteFile<'a>>,
    pub session_files: Vec<SessionFile<'a>>,
    pub cache_keys: Vec<CacheKey<'a>>,
    /// With a reason, the lists are empty or hold less than what happened.
    pub incomplete: Option<Incomplete>,
}

impl<'a> Record<'a> {
    /// # Errors
    /// The bytes are no record, a statement names a session that is not there, or a limit is exceeded.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MalformedMessage> {
        let reader = &mut Reader(bytes);
        let mut record = Self::default();
        loop {
            match reader.byte()? {
                END => break,
                SESSION => take_one(&mut record.sessions, reader)?,
                STATEMENT => {
                    take_one(&mut record.statements, reader)?;
                    let session = record.statements.last().map(|it| usize::from(it.session));
                    if session.is_none_or(|index| index >= record.sessions.len()) {
                        return Err(MalformedMessage);
                    }
                }
                INPUT => {
                    take_one(&mut record.inputs, reader)?;
                    let detail = record.inputs.last().map_or(0, |it| it.detail.len());
                    if detail > MAX_DETAIL_BYTES {
                        return Err(MalformedMessage);
                    }
                }
                FILE => take_one(&mut record.files, reader)?,
                SQLITE_FILE => take_one(&mut record.sqlite_files, reader)?,
                SESSION_FILE => take_one(&mut record.session_files, reader)?,
                CACHE_KEY => take_one(&mut record.cache_keys, reader)?,
                _ => return Err(MalformedMessage),
            }
        }
        record.incomplete = Decode::take(reader)?;
        reader.end()?;
        Ok(record)
    }
}

fn take_one<'a, T: Decode<'a> + ListEntry>(
    list: &mut Vec<T>,
    reader: &mut Reader<'a>,
) -> Result<(), MalformedMessage> {
    if list.len() >= T::MOST {
        return Err(MalformedMessage);
    }
    list.push(T::take(reader)?);
    Ok(())
}

/// Collects the parts of one record at a time, which follow each other on a connection.
#[derive(Debug, Default)]
pub struct RecordParts {
    fetch: Option<u64>,
    is_whole: bool,
    bytes: Vec<u8>,
}

impl RecordParts {
    /// Adds a part. Returns the number of the fetch once the record is whole; then [`Self::record`]
    /// has it until the next part comes.
    ///
    /// # Errors
    /// The parts are too long together, or belong to different fetches.
    pub fn add(&mut self, part: &RecordPart<'_>) -> Result<Option<u64>, MalformedMessage> {
        if self.is_whole {
            self.clear();
        }
        let is_another = self.fetch.is_some_and(|fetch| fetch != part.fetch);
        if is_another || self.bytes.len() + part.bytes.len() > MAX_RECORD_BYTES {
            self.clear();
            return Err(MalformedMessage);
        }
        self.fetch = Some(part.fetch);
        self.bytes.extend_from_slice(part.bytes);
        self.is_whole = part.is_last;
        Ok(part.is_last.then_some(part.fetch))
    }

    /// # Errors
    /// The parts are not all there, or are no record.
    pub fn record(&self) -> Result<Record<'_>, MalformedMessage> {
        if !self.is_whole {
            return Err(MalformedMessage);
        }
        Record::decode(&self.bytes)
    }

    /// Returns the bytes that have come so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what there is; the room of a long record is given back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
