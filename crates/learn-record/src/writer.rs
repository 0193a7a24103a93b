//! A record is written while the request runs, and sent in parts.

use crate::assembly::{CACHE_KEY, END, FILE, INPUT, SESSION, SESSION_FILE, SQLITE_FILE, STATEMENT};
use crate::encoding::Encode;
use crate::entries::{
    CacheKey, FileLook, Incomplete, Input, Session, SessionFile, SqliteFile, Statement,
};
use crate::limits::{
    MAX_CACHE_KEYS, MAX_DETAIL_BYTES, MAX_FILES, MAX_INPUTS, MAX_MESSAGE_BYTES, MAX_RECORD_BYTES,
    MAX_SESSION_FILES, MAX_SESSIONS, MAX_SQLITE_FILES, MAX_STATEMENTS,
};
use crate::message::Message;

/// Bytes of a record in one message; the rest is room for the head of the message.
const PART_BYTES: usize = MAX_MESSAGE_BYTES - 64;

/// Room that is kept from one request to the next.
const KEPT_BYTES: usize = 64 * 1024;

/// Before a record: what the message that it is sent in begins with.
const HEAD_BYTES: usize = 24;

/// The encoded events of a request so far. Past a limit it keeps nothing, and marks the record as incomplete.
#[derive(Debug, Default)]
pub struct RecordWriter {
    /// After [`HEAD_BYTES`] that are written last; empty before the first entry.
    bytes: Vec<u8>,
    sessions: usize,
    statements: usize,
    inputs: usize,
    files: usize,
    sqlite_files: usize,
    session_files: usize,
    cache_keys: usize,
    incomplete: Option<Incomplete>,
}

impl RecordWriter {
    /// Begins anew.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        (self.sessions, self.statements) = (0, 0);
        (self.inputs, self.files) = (0, 0);
        (self.sqlite_files, self.session_files, self.cache_keys) = (0, 0, 0);
        self.incomplete = None;
    }

    /// Says that something is missing. The first reason stays.
    pub fn mark_incomplete(&mut self, reason: Incomplete) {
        self.incomplete.get_or_insert(reason);
        self.bytes.clear();
    }

    pub const fn is_complete(&self) -> bool {
        self.incomplete.is_none()
    }

    /// Adds a session; statements name it by the index that is returned.
    pub fn session(&mut self, session: &Session<'_>) -> u16 {
        let index = u16::try_from(self.sessions).unwrap_or(u16::MAX);
        self.sessions += 1;
        self.add(SESSION, session, self.sessions <= MAX_SESSIONS);
        index
    }

    pub fn statement(&mut self, statement: &Statement<'_>) {
        self.statements += 1;
        self.add(STATEMENT, statement, self.statements <= MAX_STATEMENTS);
    }

    /// Adds an input, whose detail is cut where it is too long.
    pub fn input(&mut self, input: &Input<'_>) {
        self.inputs += 1;
        let length = input.detail.len().min(MAX_DETAIL_BYTES);
        let cut = Input {
            detail: &input.detail[..length],
            ..*input
        };
        self.add(INPUT, &cut, self.inputs <= MAX_INPUTS);
    }

    pub fn file(&mut self, file: &FileLook<'_>) {
        self.files += 1;
        self.add(FILE, file, self.files <= MAX_FILES);
    }

    pub fn sqlite_file(&mut self, file: &SqliteFile<'_>) {
        self.sqlite_files += 1;
        let is_within_bounds = self.sqlite_files <= MAX_SQLITE_FILES;
        self.add(SQLITE_FILE, file, is_within_bounds);
    }

    pub fn session_file(&mut self, file: &SessionFile<'_>) {
        self.session_files += 1;
        let is_within_bounds = self.session_files <= MAX_SESSION_FILES;
        self.add(SESSION_FILE, file, is_within_bounds);
    }

    pub fn cache_key(&mut self, key: &CacheKey<'_>) {
        self.cache_keys += 1;
        self.add(CACHE_KEY, key, self.cache_keys <= MAX_CACHE_KEYS);
    }

    fn add(&mut self, tag: u8, entry: &impl Encode, is_within_bounds: bool) {
        if self.incomplete.is_some() {
            return;
        }
        self.push(tag);
        entry.put(&mut self.bytes);
        // The end needs three bytes.
        if !is_within_bounds || self.bytes.len() > HEAD_BYTES + MAX_RECORD_BYTES - 3 {
            self.mark_incomplete(Incomplete::TooLong);
        }
    }

    /// Ends the record and gives its messages to `send` until that returns false. Returns what `send`
    /// returned last. The record is empty afterwards.
    pub fn send(&mut self, fetch: u64, mut send: impl FnMut(&[u8]) -> bool) -> bool {
        self.push(END);
        self.incomplete.put(&mut self.bytes);
        let bytes = &mut self.bytes;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let last = (bytes.len() - HEAD_BYTES).div_ceil(PART_BYTES);
        let is_sent = (1..=last).all(|nth| {
            // A head takes the place of what was sent before it: a record is not copied.
            let begin = HEAD_BYTES + (nth - 1) * PART_BYTES;
            let end = bytes.len().min(begin + PART_BYTES);
            head.clear();
            Message::put_part_head(fetch, nth == last, end - begin, &mut head);
            let begin = begin - head.len();
            bytes[begin..begin + head.len()].copy_from_slice(&head);
            send(&bytes[begin..end])
        });
        self.clear();
        is_sent
    }

    fn push(&mut self, tag: u8) {
        if self.bytes.is_empty() {
            self.bytes.resize(HEAD_BYTES, 0);
        }
        self.bytes.push(tag);
    }
}
