use super::*;
use std::fs;
use std::time::Duration;

use tempfile::TempDir;

const ROLLBACK: u8 = 1;
const LOG: u8 = 2;

/// The beginning of a database with this mode and this change counter.
fn header(mode: u8, counter: u8) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &[0x10, 0, mode, mode, 0, 64, 32, 32]].concat();
    bytes.extend([0, 0, 0, counter]);
    bytes.resize(4096, 0);
    bytes
}

/// Both copies of an index's header, which is written or not, and differs by a number.
fn index(is_written: bool, first: u8, second: u8) -> Vec<u8> {
    let copy = |number: u8| {
        let mut copy = [number; INDEX_HEADER_BYTES];
        copy[INDEX_IS_WRITTEN] = is_written.into();
        copy
    };
    [copy(first), copy(second)].concat()
}

/// A database that was written a while ago.
fn with(files: &[(&str, Vec<u8>)]) -> (TempDir, SqliteDatabase) {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, files);
    settle();
    let database = SqliteDatabase::new(folder.path().join("a"));
    database.look_and_wait();
    (folder, database)
}

fn write(folder: &TempDir, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
}

/// Longer than the clock of files needs to go on.
fn settle() {
    std::thread::sleep(Duration::from_millis(40));
}

fn seen(database: &SqliteDatabase) -> SqliteSeen {
    SqliteSeen {
        look: database.look(),
        database: Arc::new(SqliteDatabase::new(database.path().to_owned())),
    }
}

#[test]
fn a_database_that_nothing_writes_stays_as_it_is() {
    for mode in [ROLLBACK, LOG] {
        let (_folder, database) = with(&[("a", header(mode, 1))]);
        let seen = seen(&database);
        assert!(seen.look.state.is_ok() && seen.look.is_settled, "{seen:?}");
        settle();
        assert!(seen.is_same(&database.look()));
        assert!(seen.is_same(&database.look_and_wait()));
    }
}

#[test]
fn each_commit_gives_another_state() {
    let index_of = |number| ("a-shm", index(true, number, number));
    let log = || ("a-wal", vec![7; 5000]);
    type Files = Vec<(&'static str, Vec<u8>)>;
    let cases: [(&str, Files, Files); 4] = [
        (
            "the counter",
            vec![("a", header(ROLLBACK, 1))],
            vec![("a", header(ROLLBACK, 2))],
        ),
        (
            "the time alone",
            vec![("a", header(ROLLBACK, 1))],
            vec![("a", header(ROLLBACK, 1))],
        ),
        (
            "the first frames",
            vec![("a", header(LOG, 1)), ("a-wal", vec![7; 32])],
            vec![log(), index_of(1)],
        ),
        (
            "the index",
            vec![("a", header(LOG, 1)), log(), index_of(1)],
            vec![index_of(2)],
        ),
    ];
    for (what, before, after) in cases {
        let (folder, database) = with(&before);
        let seen = seen(&database);
        assert!(seen.look.state.is_ok(), "{what}: {seen:?}");
        write(&folder, &after);
        assert!(!seen.is_same(&database.look()), "{what}");
    }
}

#[test]
fn what_is_being_written_or_is_to_be_taken_back_has_no_state() {
    let rollback = || ("a", header(ROLLBACK, 1));
    let logged = || ("a", header(LOG, 1));
    let frames = || ("a-wal", vec![7; 5000]);
    type Files = Vec<(&'static str, Vec<u8>)>;
    let cases: [(&str, Files, bool); 8] = [
        (
            "a hot journal",
            vec![rollback(), ("a-journal", vec![0xd9; 600])],
            false,
        ),
        (
            "a hot journal beside a log",
            vec![logged(), ("a-journal", vec![0xd9; 600])],
            false,
        ),
        (
            "a journal of TRUNCATE",
            vec![rollback(), ("a-journal", vec![])],
            true,
        ),
        (
            "a journal of PERSIST",
            vec![rollback(), ("a-journal", vec![0; 600])],
            true,
        ),
        ("a log without its index", vec![logged(), frames()], false),
        (
            "an index that is being made",
            vec![logged(), frames(), ("a-shm", index(false, 1, 1))],
            false,
        ),
        (
            "an index that is being written",
            vec![logged(), frames(), ("a-shm", index(true, 1, 2))],
            false,
        ),
        (
            "a log with its index",
            vec![logged(), frames(), ("a-shm", index(true, 1, 1))],
            true,
        ),
    ];
    for (what, files, has_state) in cases {
        let (_folder, database) = with(&files);
        let look = database.look();
        assert_eq!(look.state.is_ok(), has_state, "{what}: {look:?}");
        if !has_state {
            let seen = seen(&database);
            assert!(!seen.is_same(&look), "{what}");
        }
    }
}

#[test]
fn a_file_that_was_written_just_now_does_not_count_as_settled() {
    let (folder, database) = with(&[("a", header(ROLLBACK, 1))]);
    // Others may have written it within the same tick of the clock.
    write(&folder, &[("a", header(ROLLBACK, 2))]);
    let look = database.look();
    assert!(look.state.is_ok() && !look.is_settled, "{look:?}");
    write(&folder, &[("a", header(LOG, 2))]);
    assert_eq!(database.look().state, Err(NoState::Changing));
    settle();
    assert!(database.look().is_settled);
}

#[test]
fn a_replaced_file_has_another_state_and_what_is_no_database_none() {
    let (folder, database) = with(&[("a", header(ROLLBACK, 1))]);
    let seen = seen(&database);
    write(&folder, &[("b", header(ROLLBACK, 1))]);
    fs::rename(folder.path().join("b"), folder.path().join("a")).unwrap();
    assert!(!seen.is_same(&database.look()));
    fs::remove_file(folder.path().join("a")).unwrap();
    let is_unknown = |database: &SqliteDatabase| {
        let look = database.look();
        assert!(matches!(look.state, Err(NoState::Unknown(_))), "{look:?}");
        assert!(!seen.is_same(&look));
    };
    is_unknown(&database);
    fs::create_dir(folder.path().join("a")).unwrap();
    is_unknown(&database);
    fs::remove_dir(folder.path().join("a")).unwrap();
    write(&folder, &[("a", vec![7; 4096])]);
    is_unknown(&database);
    is_unknown(&SqliteDatabase::new("/proc/self/status".into()));
    is_unknown(&SqliteDatabase::new("/dev/null".into()));
}

#[test]
fn paths_that_mean_something_else_to_each_process_are_refused() {
    for (bytes, is_looked_at) in [
        (&b"/srv/site/data/a.db"[..], true),
        (b"/tmp/a.db", true),
        (b"/dev/shm/a.db", true),
        (b"/proc/self/fd/3", false),
        (b"/sys/a", false),
        (b"/srv/../proc/a", false),
        (b"a.db", false),
        (b"/srv/\0", false),
        (b"", false),
    ] {
        assert_eq!(path_of(bytes).is_some(), is_looked_at, "{bytes:?}");
    }
}
