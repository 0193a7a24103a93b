//! The inputs of a kept page, in the bytes that are written beside it, and the values that are read from them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use learn_record::{MadeOf, Outcome, Record, Script, StatementKind};

use crate::files::SeenPath;
use crate::record::{FileState, SeenFile};

/// How many statements returned what has to be the same at another time: each has to be run again then. Variables of the server
/// are in its digest; SHOW returns more of tables than that has, so that such a page has one statement too many. `None`: a
/// statement failed, which may have been for any reason, or did something else.
pub fn statements_to_run(record: &Record<'_>) -> Option<usize> {
    let is_whole = record.incomplete.is_none() && record.sqlite_files.is_empty();
    let is_variable = |text: &[u8]| {
        let begin = text.get(..7).unwrap_or_default();
        begin.eq_ignore_ascii_case(b"select ") && text.windows(2).any(|two| two == b"@@")
    };
    let statements = record.statements.iter().filter(|_| is_whole);
    let to_run = statements.map(|it| match (it.kind, &it.outcomes[..]) {
        (StatementKind::Text | StatementKind::Prepared, [Outcome::Rows { .. }]) => {
            Some(usize::from(!is_variable(it.text)))
        }
        (StatementKind::Text | StatementKind::Prepared, [Outcome::Done { .. }]) => Some(0),
        _ => None,
    });
    is_whole.then(|| to_run.sum())?
}

/// With what each path has in common with the one before.
pub fn shortened<'a>(scripts: &[(&'a Path, Option<FileState>)]) -> Vec<Script<'a>> {
    let mut before: &[u8] = b"";
    let scripts = scripts.iter().map(|(path, state)| {
        let bytes = path.as_os_str().as_bytes();
        let same = bytes
            .iter()
            .zip(before)
            .take_while(|(one, other)| one == other);
        let shared = u16::try_from(same.count()).unwrap_or(0);
        before = bytes;
        let known = state.unwrap_or(FileState::MERE_PRESENCE);
        Script {
            shared,
            rest: bytes.get(usize::from(shared)..).unwrap_or_default(),
            is_there: state.is_some(),
            modified_nanoseconds: known.modified,
            size: known.bytes,
            inode: known.inode,
        }
    });
    scripts.collect()
}

/// Returns the scripts of a record that was read. `None`: it has something that no pool writes.
pub fn scripts(made_of: &MadeOf<'_>) -> Option<Vec<SeenFile>> {
    let mut path = Vec::new();
    let scripts = made_of.scripts.iter().map(|script| {
        (usize::from(script.shared) <= path.len()).then_some(())?;
        path.truncate(usize::from(script.shared));
        path.extend_from_slice(script.rest);
        let SeenPath::File(path) = SeenPath::of(&path, true) else {
            return None;
        };
        Some(SeenFile {
            path,
            state: script.is_there.then_some(FileState {
                modified: script.modified_nanoseconds,
                bytes: script.size,
                inode: script.inode,
            }),
        })
    });
    scripts.collect()
}

/// For how long it may still be kept that was stored so long ago. `None`: not any more.
pub fn left(made_of: &MadeOf<'_>, age: Duration) -> Option<Duration> {
    let left = Duration::from_secs(made_of.lasts_seconds.into()).checked_sub(age)?;
    (!left.is_zero()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_come_back_and_what_is_no_path_of_a_site_does_not() {
        let state = FileState {
            modified: 5,
            bytes: 6,
            inode: 7,
        };
        let known = [
            (Path::new("/srv/site/a.php"), Some(state)),
            (Path::new("/srv/site/ab.php"), None),
            (Path::new("/srv/site/ab.php.inc"), Some(state)),
        ];
        let mut made_of = MadeOf {
            pool: b"",
            php: 0,
            server: 0,
            seed: 0,
            began: 0,
            digest: 0,
            lasts_seconds: 60,
            address: b"",
            scripts: shortened(&known),
            record: b"",
        };
        let expected = known.map(|(path, state)| SeenFile {
            path: path.to_owned(),
            state,
        });
        assert_eq!(scripts(&made_of), Some(expected.to_vec()));
        for (shared, rest) in [
            (16, &b"x.php"[..]),
            (0, b"/proc/self/environ"),
            (0, b"a.php"),
        ] {
            (made_of.scripts[1].shared, made_of.scripts[1].rest) = (shared, rest);
            assert_eq!(scripts(&made_of), None, "{shared} {rest:?}");
        }
        let minute = Duration::from_secs(60);
        assert_eq!(left(&made_of, Duration::ZERO), Some(minute));
        assert_eq!(left(&made_of, minute), None);
        assert_eq!(left(&made_of, 2 * minute), None);
    }

    #[test]
    fn record_whose_statements_say_more_than_rows_is_not_written() {
        let statement = |text| learn_record::Statement {
            session: 0,
            kind: StatementKind::Text,
            text,
            is_complete: true,
            parameters: Vec::new(),
            outcomes: vec![Outcome::Done { changed_rows: 0 }],
            status_before: 2,
            status_after: 2,
            write: 0,
        };
        let record = |statement| Record {
            statements: vec![statement],
            ..Record::default()
        };
        let rows = |text| learn_record::Statement {
            outcomes: vec![Outcome::Rows {
                rows: 1,
                bytes: 1,
                hash: 1,
            }],
            ..statement(text)
        };
        for (statement, expected) in [
            (statement(b"SET NAMES utf8mb4"), 0),
            (rows(b"SELECT @@SESSION.sql_mode"), 0),
            (rows(b"SELECT title FROM post"), 1),
            (rows(b"/* a */ SHOW TABLES LIKE '@@'"), 1),
        ] {
            let text = String::from_utf8_lossy(statement.text);
            assert_eq!(
                statements_to_run(&record(statement.clone())),
                Some(expected),
                "{text}"
            );
        }
        let failed = learn_record::Statement {
            outcomes: vec![Outcome::Failed { code: 1146 }],
            ..statement(b"SELECT 1")
        };
        assert_eq!(statements_to_run(&record(failed)), None);
        let unanswered = learn_record::Statement {
            outcomes: Vec::new(),
            ..statement(b"SELECT 1")
        };
        assert_eq!(statements_to_run(&record(unanswered)), None);
        let unheard = Record {
            incomplete: Some(learn_record::Incomplete::Missed),
            ..Record::default()
        };
        assert_eq!(statements_to_run(&unheard), None);
    }
}
