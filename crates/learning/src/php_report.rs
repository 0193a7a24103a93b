//! The report of a library, in the terms of `learned`: its sessions and values, and what cannot be learned.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use learn_record::{
    FileLook, FileState as ReportedFileState, FileUse, Incomplete, InputKind, Outcome, Record,
    Session as ReportedSession, SessionFile, SqliteFile, Statement, StatementKind,
    Value as ReportedValue, Write,
};
use learned::{Session, Value};

use crate::address_databases::is_address_database;
use crate::files::SeenPath;
use crate::own_files::OwnFiles;
use crate::postgres;
use crate::record::{
    CacheKey, CacheWrite, FileState, OpenDatabase, Reason, RunRecord, SeenFile, SeenSession,
    SentStatement, ServerName, WhyNot,
};
use crate::replay::ReplaySession;
use crate::sqlite;

/// The server's flag "within a transaction" (`SERVER_STATUS_IN_TRANS`).
pub const WITHIN_TRANSACTION: u16 = 1;

/// A session with this collation is not read.
const UNKNOWN_COLLATION: u8 = 0;

/// The bytes of a text for people.
const MAX_SHOWN_BYTES: usize = 200;

/// One run of PHP, as its record has it. `modes` knows what servers give to each session.
pub fn run(record: &Record<'_>, modes: &dyn Fn(&str) -> String) -> RunRecord {
    let mut obstacle = match record.incomplete {
        None => None,
        Some(Incomplete::TooLong) => Some(WhyNot::new(Reason::TooLong, "")),
        Some(Incomplete::Missed) => Some(WhyNot::new(Reason::Incomplete, "")),
    };
    let mut note = |reason: Option<Reason>, detail: &[u8]| {
        if let (Some(reason), None) = (reason, &obstacle) {
            obstacle = Some(WhyNot::new(reason, shown(detail)));
        }
    };
    for input in &record.inputs {
        note(reason_of(input.kind), input.detail);
    }
    let mut sqlite = Vec::new();
    for open in &record.sqlite_files {
        match sqlite::path_of(open.path) {
            Some(path) => add_database(&mut sqlite, open, path),
            None => note(Some(Reason::DatabaseFile), open.path),
        }
    }
    let mut files = Vec::new();
    let mut doubtful_sessions = Vec::new();
    let own = OwnFiles::of(&record.files);
    for (at, look) in record.files.iter().enumerate() {
        let mut paths = record.sqlite_files.iter().map(|it| it.path);
        if paths.any(|database| sqlite::is_part_of(database, look.path)) {
            // The state of the database covers all that PHP wrote and read there.
            continue;
        }
        if own.excuse(at) {
            continue;
        }
        let is_session = record.session_files.iter().any(|it| it.path == look.path);
        if is_session && look.by != FileUse::Removed {
            continue;
        }
        if is_change(look.by) {
            doubtful_sessions.extend(session_id(look.path).map(<[u8]>::to_vec));
        }
        if is_session && began_empty(record, look.path) {
            // One that was begun for a new guest, and got another name at once: nothing was read in it.
            continue;
        }
        if is_change(look.by) {
            note(Some(Reason::OwnFile), look.path);
            continue;
        }
        match SeenPath::of(look.path, look.by == FileUse::Looked) {
            SeenPath::Nothing => {}
            SeenPath::Unreliable => note(Some(Reason::FileOutside), look.path),
            SeenPath::File(path) => files.push(SeenFile {
                path,
                state: look.state.map(|state| match own.are_in(look) {
                    true => FileState::MERE_PRESENCE,
                    false => file_state(record, look, state),
                }),
            }),
        }
    }
    // Of hundreds of statements, each is in one of a few.
    let sessions = record.sessions.iter().map(|reported| {
        let server = server_of(reported);
        let session = session_of(reported, &modes(&server));
        (server, session, ReplaySession::of(reported))
    });
    let sessions: Vec<_> = sessions.collect();
    let statements = record.statements.iter().filter_map(|statement| {
        let reported = record.sessions.get(usize::from(statement.session))?;
        let (server, session, again_in) = sessions.get(usize::from(statement.session))?;
        let is_first = is_first_of_its_connection(record, statement, reported);
        if is_first && statement.status_before & WITHIN_TRANSACTION != 0 {
            note(Some(Reason::Transaction), statement.text);
        }
        if !statement.is_complete
            || matches!(
                statement.kind,
                StatementKind::Command | StatementKind::Cache
            )
        {
            note(Some(Reason::Statement), statement.text);
        }
        Some(SentStatement {
            server: server.clone(),
            connection: reported.connection,
            session: session.clone(),
            text: statement.text.to_vec(),
            parameters: statement.parameters.iter().map(value_of).collect(),
            result: result_of(&statement.outcomes),
            is_prepared: statement.kind == StatementKind::Prepared,
            again_in: again_in
                .clone()
                .filter(|_| can_be_sent(statement) && is_of_rows(&statement.outcomes)),
        })
    });
    let statements = statements.collect();
    let cache = match cache_of(record) {
        Ok(cache) => cache,
        Err(detail) => {
            note(Some(Reason::SeveralServers), &detail);
            None
        }
    };
    if let Some(path) = address_database(record) {
        // This reason replaces others: it means more than that the page is not learned.
        obstacle = Some(WhyNot::new(Reason::AddressDatabase, shown(path)));
    }
    RunRecord {
        statements,
        files,
        sqlite,
        sessions: record.session_files.iter().filter_map(session).collect(),
        doubtful_sessions,
        cache,
        report: None,
        obstacle,
    }
}

/// Whether the session in this file had nothing in it each time that it was locked.
fn began_empty(record: &Record<'_>, path: &[u8]) -> bool {
    let is_empty = |reported: &SessionFile<'_>| match reported.before {
        Some(before) => before.is_empty(),
        None => {
            reported.hash_before == reported.hash_after
                && reported.after.is_some_and(<[u8]>::is_empty)
        }
    };
    let mut of_it = record.session_files.iter().filter(|it| it.path == path);
    of_it.all(is_empty)
}

fn session(reported: &SessionFile<'_>) -> Option<SeenSession> {
    let path = Path::new(OsStr::from_bytes(reported.path));
    Some(SeenSession {
        id: session_id(reported.path)?.to_vec(),
        path: path.to_owned(),
        hash_before: reported.hash_before,
        hash_after: reported.hash_after,
        before: reported.before.map(<[u8]>::to_vec),
        after: reported.after.map(<[u8]>::to_vec),
        state: FileState {
            modified: reported.state.modified_nanoseconds,
            bytes: reported.state.size,
            inode: reported.state.inode,
        },
    })
}

/// The name of a session, from that of its file (`session.save_handler=files`).
fn session_id(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    name.strip_prefix(b"sess_")
}

/// The object cache that was read. `Err`: two of them, for people.
fn cache_of(record: &Record<'_>) -> Result<Option<(ServerName, Vec<CacheKey>)>, Vec<u8>> {
    let Some(first) = record.cache_keys.first() else {
        return Ok(None);
    };
    if let Some(other) = record
        .cache_keys
        .iter()
        .find(|it| it.server != first.server)
    {
        return Err([first.server, b" and ", other.server].concat());
    }
    let keys = record.cache_keys.iter().map(|it| CacheKey {
        database: it.database,
        key: it.key.into(),
    });
    Ok(Some((Arc::from(shown(first.server)), keys.collect())))
}

/// The part of an object cache that an announced command writes.
pub fn cache_write(write: &Write<'_>) -> CacheWrite {
    let keys = write.parameters.iter().map(|key| match key {
        ReportedValue::Bytes(key) => Some((*key).into()),
        _ => None,
    });
    match keys.collect::<Option<Arc<[_]>>>() {
        Some(keys) if write.is_complete && !keys.is_empty() => CacheWrite::Keys(keys),
        _ => CacheWrite::Everything,
    }
}

const fn is_change(by: FileUse) -> bool {
    matches!(
        by,
        FileUse::Written | FileUse::WrittenOnly | FileUse::Removed
    )
}

/// The first database of addresses that was opened. To look whether one is there makes no page of one network.
fn address_database<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    let is_opened = |look: &&FileLook<'_>| {
        let is_by = matches!(look.by, FileUse::Opened | FileUse::Written);
        is_by && look.state.is_some()
    };
    let files = record.files.iter().filter(is_opened).map(|it| it.path);
    let open_before = record.sqlite_files.iter().map(|it| it.path);
    let is_it = |path: &&[u8]| is_address_database(Path::new(OsStr::from_bytes(path)));
    files.chain(open_before).find(is_it)
}

/// Whether all of it is known, so that the server would read the same if it were sent once more.
fn can_be_sent(statement: &Statement<'_>) -> bool {
    let is_known = |value: &ReportedValue<'_>| {
        matches!(
            value,
            ReportedValue::Null | ReportedValue::Integer(_) | ReportedValue::Bytes(_)
        )
    };
    match statement.kind {
        StatementKind::Text => true,
        StatementKind::Prepared => statement.parameters.iter().all(is_known),
        StatementKind::Unprepared | StatementKind::Command | StatementKind::Cache => false,
    }
}

/// A file that is open twice is one database.
fn add_database(all: &mut Vec<OpenDatabase>, open: &SqliteFile<'_>, path: PathBuf) {
    let database = OpenDatabase {
        path,
        device: open.device,
        inode: open.inode,
        is_from_before: open.is_from_before,
    };
    let is_same = |other: &&mut OpenDatabase| {
        let is_of_it = (other.device, other.inode) == (database.device, database.inode);
        is_of_it && other.path == database.path
    };
    match all.iter_mut().find(is_same) {
        Some(known) => known.is_from_before |= database.is_from_before,
        None => all.push(database),
    }
}

fn file_state(record: &Record<'_>, look: &FileLook<'_>, state: ReportedFileState) -> FileState {
    if holds_database(record, look) {
        return FileState::MERE_PRESENCE;
    }
    FileState {
        modified: state.modified_nanoseconds,
        bytes: if state.is_folder { 0 } else { state.size },
        inode: state.inode,
    }
}

/// SQLite looks at the folders above a database, and opens the one around it, whose time it alters by its journal: only
/// whether they are there counts.
fn holds_database(record: &Record<'_>, look: &FileLook<'_>) -> bool {
    let is_above = |path: &[u8]| {
        let rest = path.strip_prefix(look.path);
        rest.is_some_and(|rest| rest.starts_with(b"/") || look.path == b"/")
    };
    look.by != FileUse::Listed
        && look.state.is_some_and(|state| state.is_folder)
        && record.sqlite_files.iter().any(|it| is_above(it.path))
}

fn is_first_of_its_connection(
    record: &Record<'_>,
    statement: &Statement<'_>,
    reported: &ReportedSession<'_>,
) -> bool {
    let is_of_it = |other: &&Statement<'_>| {
        let session = record.sessions.get(usize::from(other.session));
        session.is_some_and(|session| session.connection == reported.connection)
    };
    let first = record.statements.iter().find(is_of_it);
    first.is_some_and(|first| std::ptr::eq(first, statement))
}

/// `None`: the input does not keep a page from being learned.
fn reason_of(kind: InputKind) -> Option<Reason> {
    match kind {
        InputKind::Connection | InputKind::NameLookup => Some(Reason::Elsewhere),
        InputKind::UnreadDatabase => Some(Reason::Unreadable),
        InputKind::Program => Some(Reason::Program),
        InputKind::SharedCache | InputKind::SharedMemory => Some(Reason::SharedMemory),
        InputKind::Extension => Some(Reason::Extension),
        InputKind::CacheState => Some(Reason::CacheState),
        InputKind::CacheWrite => Some(Reason::OwnWrite),
        InputKind::Unanswered => Some(Reason::Unanswered),
        // Random bytes never make a page old.
        InputKind::Random => None,
    }
}

pub fn server_of(reported: &ReportedSession<'_>) -> ServerName {
    // A name that is cut is no server's that is asked for its tables.
    Arc::from(shown(reported.server))
}

/// The session as its statements have left it. `modes` are those that the server gives to each.
pub fn session_of(reported: &ReportedSession<'_>, modes: &str) -> Session {
    if let (Some(_), Some(settings)) = (postgres::parts(&server_of(reported)), &reported.settings) {
        let mut session = Session::of_postgres();
        settings.iter().for_each(|it| session.follow(it));
        return session;
    }
    let database = reported
        .database
        .map(|name| str::from_utf8(name).map(str::to_owned));
    let (Some(settings), Ok(database)) = (&reported.settings, database.transpose()) else {
        return Session::new(None, UNKNOWN_COLLATION);
    };
    let mut session = Session::new(None, reported.collation);
    session.set_modes(modes);
    settings.iter().for_each(|it| session.follow(it));
    session.database = database;
    session
}

pub fn value_of(value: &ReportedValue<'_>) -> Value {
    match value {
        ReportedValue::Null => Value::Null,
        ReportedValue::Integer(number) => Value::Integer(*number),
        ReportedValue::Unsigned(number) => {
            i64::try_from(*number).map_or(Value::Other, Value::Integer)
        }
        ReportedValue::Bytes(bytes) => Value::Text(bytes.to_vec()),
        ReportedValue::Double(_) | ReportedValue::Opaque => Value::Other,
    }
}

/// One result of rows: an error may come again for another reason.
pub const fn is_of_rows(outcomes: &[Outcome]) -> bool {
    matches!(outcomes, [Outcome::Rows { .. }])
}

pub fn rows_of(outcomes: &[Outcome]) -> u64 {
    let rows = outcomes.iter().map(|outcome| match *outcome {
        Outcome::Rows { rows, .. } => rows,
        Outcome::Done { .. } | Outcome::Failed { .. } => 0,
    });
    rows.sum()
}

/// Stands for all that the statement returned.
pub fn result_of(outcomes: &[Outcome]) -> u64 {
    let outcomes = outcomes.iter().map(|outcome| match *outcome {
        Outcome::Rows { rows, bytes, hash } => hash ^ rows.rotate_left(32) ^ bytes,
        Outcome::Done { changed_rows } => changed_rows,
        Outcome::Failed { code } => u64::from(code) << 48,
    });
    outcomes.fold(0, |all, one| all.rotate_left(7) ^ one)
}

/// Bytes of a statement or a path for people: in one line, and cut.
pub fn shown(bytes: &[u8]) -> String {
    let cut = bytes.get(..MAX_SHOWN_BYTES);
    let text = String::from_utf8_lossy(cut.unwrap_or(bytes));
    let mut short = String::with_capacity(text.len() + 4);
    for letter in text.trim().chars() {
        match letter.is_whitespace() || letter.is_control() {
            true if short.ends_with(' ') => {}
            true => short.push(' '),
            false => short.push(letter),
        }
    }
    if cut.is_some_and(|cut| cut.len() < bytes.len()) {
        short.push_str(" ...");
    }
    short
}

/// Whether a statement may change the definitions of tables, views or triggers.
pub fn is_definition(text: &[u8]) -> bool {
    if !text.contains(&b'\\') {
        return defines(text, true);
    }
    // Whether a backslash escapes is a mode of the session, and in some charsets it may be half of a letter.
    std::str::from_utf8(text).is_err() || defines(text, true) || defines(text, false)
}

/// The same for a session where a backslash escapes within quotes, or where it does not.
fn defines(text: &[u8], has_escapes: bool) -> bool {
    let mut rest = text.iter();
    let mut statement = Vec::new();
    while let Some(&byte) = rest.next() {
        match byte {
            b'\'' | b'"' | b'`' => {
                statement.push(b' ');
                let mut is_closed = false;
                // A quote that is doubled opens another text at once.
                while let Some(&within) = rest.next() {
                    if within == b'\\' && has_escapes && byte != b'`' {
                        rest.next();
                    } else if within == byte {
                        is_closed = true;
                        break;
                    }
                }
                if !is_closed {
                    return true;
                }
            }
            b';' => {
                if begins_definition(&statement) {
                    return true;
                }
                statement.clear();
            }
            _ => statement.push(byte),
        }
    }
    begins_definition(&statement)
}

/// Of a statement without what stands between quotes.
fn begins_definition(statement: &[u8]) -> bool {
    if statement.trim_ascii().is_empty() {
        return false;
    }
    // A comment may stand between the words.
    let has_comment = |opening: &[u8]| statement.windows(opening.len()).any(|it| it == opening);
    if [&b"/*"[..], b"--", b"#"].iter().any(|it| has_comment(it)) {
        return true;
    }
    let is_opening = |byte: &u8| *byte == b'(' || byte.is_ascii_whitespace();
    let start = statement.iter().position(|byte| !is_opening(byte));
    let start = statement.get(start.unwrap_or(0)..).unwrap_or_default();
    let mut words = start
        .split(|byte| !byte.is_ascii_alphabetic())
        .map(<[u8]>::to_ascii_lowercase);
    // A comment before it has no first word.
    let word = words.next().unwrap_or_default();
    let next = words.find(|word| !word.is_empty()).unwrap_or_default();
    match &word[..] {
        b"create" | b"drop" => return !matches!(&next[..], b"temporary" | b"temp"),
        // SET STATEMENT a = 1 FOR ALTER TABLE ...
        b"set" => return next == b"statement",
        // A block of PostgreSQL; MySQL's DO has no texts of that kind.
        b"do" => return statement.contains(&b'$'),
        _ => {}
    }
    !matches!(
        &word[..],
        b"select"
            | b"insert"
            | b"update"
            | b"delete"
            | b"replace"
            | b"commit"
            | b"rollback"
            | b"begin"
            | b"start"
            | b"savepoint"
            | b"release"
            | b"truncate"
            | b"show"
            | b"use"
            | b"lock"
            | b"unlock"
            | b"load"
            | b"table"
            | b"values"
            | b"with"
            | b"do"
            | b"handler"
            | b"analyze"
            | b"check"
            | b"checksum"
            | b"explain"
            | b"describe"
            | b"desc"
            | b"kill"
    )
}

#[cfg(test)]
#[path = "php_report_tests.rs"]
mod tests;
