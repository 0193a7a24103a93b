//! What is to be told: the record of the request that runs, and writes at once.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use learn_record::{
    FileLook, FileState, FileUse, Incomplete, Input, InputKind, MOST_DETAIL_BYTES, MOST_FILES,
    MOST_INPUTS, Message, RecordWriter, Session, Statement, Write, WriteOutcome,
};

use crate::channel::{Channel, ToldEnd};

/// A longer path is an input of another kind than a file: it is not compared.
const MOST_PATH_BYTES: usize = 1024;

/// How often a write is announced: a Mayfly that takes the place of another one is told as well.
const MOST_ANNOUNCEMENTS: usize = 2;

/// A write in one message: texts and parameters beyond this are left out.
const MOST_WRITE_BYTES: usize = 48 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    /// 0 where nobody wants to know: files alone are told.
    fetch: u64,
    /// Its response has ended; PHP may still be at work.
    has_ended: bool,
}

/// What was already noted, by its hash.
type NotedHashes = HashSet<u64, BuildHasherDefault<Fnv>>;

#[derive(Debug)]
pub(crate) struct Reporter {
    pub(crate) channel: Channel,
    request: Option<Request>,
    record: RecordWriter,
    /// Counts records, so that a connection knows whether its session is in this one.
    record_number: u64,
    noted: NotedHashes,
    writes: u64,
    /// The connection to Mayfly that there was last, and the last write that was announced on one before it.
    connection: u64,
    last_of_others: u64,
}

impl Reporter {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            channel,
            request: None,
            record: RecordWriter::default(),
            record_number: 1,
            noted: NotedHashes::default(),
            writes: 0,
            connection: 0,
            last_of_others: 0,
        }
    }

    pub(crate) fn begin(&mut self, fetch: u64) {
        self.forget_request();
        self.request = Some(Request {
            fetch,
            has_ended: false,
        });
        self.open();
    }

    fn open(&mut self) {
        self.channel.open();
        if self.connection != self.channel.connection() {
            self.connection = self.channel.connection();
            self.last_of_others = self.writes;
        }
    }

    /// The request is over without a record, or has one.
    pub(crate) fn forget_request(&mut self) {
        self.request = None;
        self.record.clear();
        self.record_number += 1;
        self.noted.clear();
    }

    /// Sends the record. What the request does from now on does not shape its page.
    pub(crate) fn end(&mut self) {
        let Some(request) = self.request.as_mut().filter(|request| !request.has_ended) else {
            return;
        };
        request.has_ended = true;
        let fetch = request.fetch;
        self.record_number += 1;
        if fetch == 0 && self.noted.is_empty() {
            return;
        }
        self.record.send(fetch, |packet| {
            self.channel.send_packet(packet) == ToldEnd::Heard
        });
    }

    /// The number of the record that is being made, where statements are wanted.
    pub(crate) fn wanted_record(&self) -> Option<u64> {
        self.request
            .is_some_and(|request| request.fetch != 0 && !request.has_ended)
            .then_some(self.record_number)
    }

    fn is_recording(&self) -> bool {
        self.request.is_some_and(|request| !request.has_ended)
    }

    /// Something was missed: the record of this request is worth nothing.
    pub(crate) fn miss(&mut self) {
        self.record.mark_incomplete(Incomplete::Missed);
    }

    pub(crate) fn add_session(&mut self, session: &Session<'_>) -> u16 {
        self.record.session(session)
    }

    pub(crate) fn add_statement(&mut self, statement: &Statement<'_>) {
        self.record.statement(statement);
    }

    pub(crate) fn add_input(&mut self, kind: InputKind, detail: &[u8]) {
        let detail = &detail[..detail.len().min(MOST_DETAIL_BYTES)];
        if self.wanted_record().is_some() && self.is_new(&[&[0, kind as u8], detail]) {
            self.record.input(&Input { kind, detail });
        }
    }

    /// Notes a file. `state` is asked for only where it was not noted yet.
    pub(crate) fn add_file(
        &mut self,
        path: [&[u8]; 2],
        by: FileUse,
        state: impl FnOnce() -> Option<FileState>,
    ) {
        if !self.is_recording() || !self.is_new(&[&[1, by as u8], path[0], path[1]]) {
            return;
        }
        let path = path.concat();
        if path.len() > MOST_PATH_BYTES {
            self.miss();
            return;
        }
        self.record.file(&FileLook {
            path: &path,
            by,
            state: state(),
        });
    }

    /// Past the limit everything is new, and the record becomes too long by it.
    fn is_new(&mut self, parts: &[&[u8]]) -> bool {
        let mut hash = Fnv::default();
        parts.iter().for_each(|part| hash.write(part));
        self.noted.len() > MOST_FILES + MOST_INPUTS || self.noted.insert(hash.finish())
    }

    /// Tells that a statement is about to be sent that may write, and waits until Mayfly knows: pages that it concerns are
    /// not shown from then on. `write` gets its number and the fetch.
    pub(crate) fn announce(&mut self, mut write: Write<'_>) -> u64 {
        write.fetch = self.request.map_or(0, |request| request.fetch);
        if write.text.len() > MOST_WRITE_BYTES
            || parameter_bytes(&write) > MOST_WRITE_BYTES - write.text.len()
        {
            (write.text, write.is_complete) = (b"", false);
            write.parameters.clear();
        }
        for _ in 0..MOST_ANNOUNCEMENTS {
            self.open();
            self.writes += 1;
            write.number = self.writes;
            let told = self
                .channel
                .tell(&Message::Write(write.clone()), self.writes);
            if told != ToldEnd::Closed {
                break;
            }
        }
        self.writes
    }

    /// Tells that it was answered, and waits until Mayfly knows. A Mayfly that was not told of the announcement, because
    /// it has taken the place of another one since, is told that something was written.
    pub(crate) fn written(&mut self, written: WriteOutcome) {
        let is_known = written.number > self.last_of_others;
        let told = match is_known {
            true => self
                .channel
                .tell(&Message::Written(written), written.number),
            false => ToldEnd::Closed,
        };
        if told == ToldEnd::Closed {
            self.channel.greet_again();
        }
    }
}

fn parameter_bytes(write: &Write<'_>) -> usize {
    let bytes = |value: &learn_record::Value<'_>| match value {
        learn_record::Value::Bytes(bytes) => bytes.len() + 4,
        _ => 11,
    };
    write.parameters.iter().map(bytes).sum()
}

/// FNV-1a with 64 bits: short texts, a program that is small.
#[derive(Debug, Clone, Copy)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
