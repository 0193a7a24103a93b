//! The reports to Mayfly: the record of the request that runs, and writes at once.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;

use learn_record::{
    CacheKey, DoubtReason, FileLook, FileState, FileUse, Incomplete, Input, InputKind,
    MAX_CACHE_KEYS, MAX_DETAIL_BYTES, MAX_FILES, MAX_INPUTS, MAX_SESSION_BYTES, RecordWriter,
    Session, SessionFile, SqliteFile, Statement, StatementKind, Write, WriteOutcome,
};
use twox_hash::XxHash3_64;

use crate::channels::Channels;

/// The devices with random bytes; they are no files that could change.
const RANDOM_DEVICES: [&[u8]; 2] = [b"/dev/urandom", b"/dev/random"];

/// A longer path is an input of another kind than a file: it is not compared.
const MAX_PATH_BYTES: usize = 1024;

/// A write in one message: texts and parameters beyond this are left out.
const MAX_WRITE_BYTES: usize = 48 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    /// 0 if Mayfly wants no statements: the record has files alone.
    fetch: u64,
    /// Its response has ended; PHP may still be at work.
    has_ended: bool,
}

/// Looks at files that are held until they are noted together, and bytes of their paths.
const MAX_HELD_LOOKS: usize = 256;
const MAX_HELD_PATH_BYTES: usize = 16 * 1024;

/// A look at a file whose path begins where that of the one before ends.
#[derive(Debug)]
struct HeldLook {
    by: FileUse,
    state: Option<FileState>,
    path_ends: usize,
}

/// The hashes of inputs and files that were already noted.
type NotedHashes = HashSet<u64, BuildHasherDefault<HashItself>>;

#[derive(Debug)]
pub(crate) struct Reporter {
    pub(crate) channels: Channels,
    /// The process belongs to a command, which makes no pages.
    is_of_command: bool,
    has_reported_unread: bool,
    request: Option<Request>,
    record: RecordWriter,
    /// Counts records, so that a connection knows whether its session is in this one.
    record_number: u64,
    noted: NotedHashes,
    /// Files are looked at between everything else that PHP does, and noted many at a time: so the code that does it is
    /// fetched into the processor's caches once for many.
    held_looks: Vec<HeldLook>,
    held_paths: Vec<u8>,
    spare_room: Vec<u8>,
    /// The seed of the hashes in `noted`: without it, names with the same hash are easy to find.
    seed: u64,
}

impl Reporter {
    pub(crate) fn new(channels: Channels, is_of_command: bool, seed: u64) -> Self {
        Self {
            seed,
            channels,
            is_of_command,
            has_reported_unread: false,
            request: None,
            record: RecordWriter::default(),
            record_number: 1,
            noted: NotedHashes::default(),
            held_looks: Vec::new(),
            held_paths: Vec::new(),
            spare_room: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, fetch: u64) {
        self.forget_request();
        self.request = Some(Request {
            fetch,
            has_ended: false,
        });
        self.channels.open();
    }

    /// The request is over without a record, or has one.
    pub(crate) fn forget_request(&mut self) {
        self.request = None;
        self.held_looks.clear();
        self.held_paths.clear();
        self.record.clear();
        self.record_number += 1;
        self.noted.clear();
    }

    /// Sends the record. What the request does from now on does not shape its page.
    pub(crate) fn end(&mut self) {
        self.note_held();
        let Some(request) = self.request.as_mut().filter(|request| !request.has_ended) else {
            return;
        };
        request.has_ended = true;
        let fetch = request.fetch;
        self.record_number += 1;
        if fetch == 0 && self.noted.is_empty() {
            return;
        }
        self.record
            .send(fetch, |packet| self.channels.send_packet(packet));
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

    /// Returns the record that is being made and the index of a session there, where statements are wanted. `known` is the
    /// place that the session had last; in another record it is added.
    pub(crate) fn session_place<'s>(
        &mut self,
        known: Option<(u64, u16)>,
        session: impl FnOnce() -> Session<'s>,
    ) -> Option<(u64, u16)> {
        let record = self.wanted_record()?;
        let known = known.filter(|(in_record, _)| *in_record == record);
        Some(known.unwrap_or_else(|| (record, self.record.session(&session()))))
    }

    pub(crate) fn add_statement(&mut self, statement: &Statement<'_>) {
        self.record.statement(statement);
    }

    pub(crate) fn add_input(&mut self, kind: InputKind, detail: &[u8]) {
        if self.is_of_command && kind == InputKind::UnreadDatabase && !self.has_reported_unread {
            // Writes of the command there are not seen, and no page shows that.
            self.has_reported_unread = true;
            self.channels.open();
            self.channels.let_go(DoubtReason::Missed);
        }
        let detail = &detail[..detail.len().min(MAX_DETAIL_BYTES)];
        if self.wanted_record().is_some() && self.is_new([0, kind as u8], detail) {
            self.record.input(&Input { kind, detail });
        }
    }

    /// Notes a file, at the latest when the record is sent.
    pub(crate) fn add_file(&mut self, path: &[u8], by: FileUse, state: Option<FileState>) {
        if !self.is_recording() {
            return;
        }
        if self.held_looks.len() >= MAX_HELD_LOOKS || self.held_paths.len() > MAX_HELD_PATH_BYTES {
            self.note_held();
        }
        if path.len() > MAX_PATH_BYTES {
            self.miss();
            return;
        }
        self.held_paths.extend_from_slice(path);
        self.held_looks.push(HeldLook {
            by,
            state,
            path_ends: self.held_paths.len(),
        });
    }

    /// Notes the held looks. The first of several looks at one file gives its state.
    fn note_held(&mut self) {
        let (looks, paths) = (take(&mut self.held_looks), take(&mut self.held_paths));
        let mut begin = 0;
        for look in &looks {
            let path = &paths[begin..look.path_ends];
            begin = look.path_ends;
            if RANDOM_DEVICES.contains(&path) {
                self.add_input(InputKind::Random, b"");
            } else if self.is_new([1, look.by as u8], path) {
                let (by, state) = (look.by, look.state);
                self.record.file(&FileLook { path, by, state });
            }
        }
        (self.held_looks, self.held_paths) = (looks, paths);
        self.held_looks.clear();
        self.held_paths.clear();
    }

    /// Room for bytes that are kept for a while, as [`Self::keep_spare_room`] was given.
    pub(crate) fn take_spare_room(&mut self) -> Vec<u8> {
        take(&mut self.spare_room)
    }

    pub(crate) fn keep_spare_room(&mut self, mut room: Vec<u8>) {
        room.clear();
        self.spare_room = room;
    }

    /// Notes an SQLite database that is open.
    pub(crate) fn add_sqlite_file(&mut self, file: &SqliteFile<'_>) {
        let name = [&file.inode.to_le_bytes(), file.path].concat();
        let kind = [2, file.is_from_before.into()];
        if self.wanted_record().is_some() && self.is_new(kind, &name) {
            self.record.sqlite_file(file);
        }
    }

    /// Notes a session that the request had locked, with its content before and after.
    pub(crate) fn add_session_file(
        &mut self,
        path: &[u8],
        (before, after): (&[u8], &[u8]),
        state: FileState,
    ) {
        if self.wanted_record().is_none() {
            return;
        }
        let hash = |content| XxHash3_64::oneshot_with_seed(self.seed, content);
        let short = |content| Some(content).filter(|it: &&[u8]| it.len() <= MAX_SESSION_BYTES);
        self.record.session_file(&SessionFile {
            path,
            hash_before: hash(before),
            hash_after: hash(after),
            before: short(before).filter(|_| before != after),
            after: short(after),
            state,
        });
    }

    /// Notes a key of an object cache that was read.
    pub(crate) fn add_cache_key(&mut self, key: &CacheKey<'_>) {
        let database = key.database.to_le_bytes();
        let name = [key.server, &[0], &database, key.key].concat();
        if self.wanted_record().is_some() && self.is_new([3, 0], &name) {
            self.record.cache_key(key);
        }
    }

    /// Past the limit everything is new, and the record becomes too long by it.
    fn is_new(&mut self, kind: [u8; 2], name: &[u8]) -> bool {
        let seed = self.seed ^ u64::from(u16::from_le_bytes(kind));
        let hash = XxHash3_64::oneshot_with_seed(seed, name);
        self.noted.len() > MAX_FILES + MAX_INPUTS + MAX_CACHE_KEYS || self.noted.insert(hash)
    }

    /// Tells that a statement is about to be sent that may write, and waits until Mayfly knows: pages that it concerns are
    /// not shown from then on. `write` gets its number and the fetch.
    pub(crate) fn announce(&mut self, mut write: Write<'_>) -> u64 {
        write.fetch = self.request.map_or(0, |request| request.fetch);
        if write.text.len() > MAX_WRITE_BYTES
            || parameter_bytes(&write) > MAX_WRITE_BYTES - write.text.len()
        {
            (write.text, write.is_complete) = (b"", false);
            write.parameters.clear();
        }
        self.channels.announce(write)
    }

    /// Tells that anything may have been written to a database, by a connection that is not read; and waits until Mayfly
    /// knows. A command that has one is not heard any more.
    pub(crate) fn tell_unread_write(&mut self, session: Session<'_>, kind: StatementKind) {
        if self.is_of_command {
            return;
        }
        let number = self.announce(Write {
            number: 0,
            fetch: 0,
            session,
            kind,
            text: b"a connection that is not read",
            is_complete: false,
            parameters: Vec::new(),
            status_before: 0,
        });
        self.written(WriteOutcome {
            number,
            error: None,
            status_after: 0,
        });
    }

    /// Tells that it was answered, and waits until Mayfly knows.
    pub(crate) fn written(&mut self, written: WriteOutcome) {
        self.channels.written(written);
    }
}

fn parameter_bytes(write: &Write<'_>) -> usize {
    let bytes = |value: &learn_record::Value<'_>| match value {
        learn_record::Value::Bytes(bytes) => bytes.len() + 4,
        _ => 11,
    };
    write.parameters.iter().map(bytes).sum()
}

/// Hashes a value that is a hash already: returns it as it is.
#[derive(Debug, Clone, Copy, Default)]
struct HashItself(u64);

impl Hasher for HashItself {
    /// Not called: only numbers are hashed.
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use learn_record::{Message, RecordParts};

    /// A reporter in the midst of a page, which no server hears.
    pub(crate) fn recording() -> Reporter {
        let mut reporter = Reporter::new(Channels::new(Vec::new()), false, 7);
        reporter.begin(1);
        reporter
    }

    /// Ends the page. Returns its inputs: a word, and the detail.
    pub(crate) fn inputs(reporter: &mut Reporter) -> Vec<String> {
        let mut parts = RecordParts::default();
        reporter.record.send(1, |packet| {
            let Ok(Message::RecordPart(part)) = Message::decode(packet) else {
                panic!("a part of a record");
            };
            parts.add(&part).unwrap();
            true
        });
        let record = parts.record().unwrap();
        assert_eq!(record.incomplete, None);
        let shown = |it: &Input<'_>| {
            let detail = String::from_utf8_lossy(it.detail).into_owned();
            format!("{}: {detail}", it.kind.word())
        };
        record.inputs.iter().map(shown).collect()
    }
}
