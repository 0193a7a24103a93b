//! Reports that are made up here, and what is taken of them.

use super::*;
use learn_record::Input;

fn reported_session() -> ReportedSession<'static> {
    ReportedSession {
        connection: 1,
        server: b"unix:/run/mysqld/mysqld.sock",
        server_version: b"",
        identifier: 7,
        account: b"blog",
        collation: 45,
        database: Some(b"blog"),
        settings: Some(Vec::new()),
    }
}

fn reason(record: &Record<'_>) -> Option<Reason> {
    let obstacle = run(record, &|_| String::new()).obstacle;
    obstacle.map(|why| why.reason)
}

#[test]
fn record_that_is_not_whole_and_a_transaction_from_before_are_obstacles() {
    let statement = Statement {
        session: 0,
        kind: StatementKind::Text,
        text: b"SELECT 1",
        is_complete: true,
        parameters: Vec::new(),
        outcomes: Vec::new(),
        status_before: 2,
        status_after: 2,
        write: 0,
    };
    let session = reported_session();
    let with = |statements: &[&Statement<'static>]| Record {
        sessions: vec![session.clone()],
        statements: statements.iter().map(|it| (*it).clone()).collect(),
        ..Record::default()
    };
    let within = Statement {
        status_before: 2 | WITHIN_TRANSACTION,
        ..statement.clone()
    };
    let cut = Statement {
        is_complete: false,
        ..statement.clone()
    };
    let command = Statement {
        kind: StatementKind::Command,
        ..statement.clone()
    };
    let incomplete = |incomplete| Record {
        incomplete: Some(incomplete),
        ..with(&[&statement])
    };
    for (name, record, expected) in [
        ("whole", with(&[&statement]), None),
        (
            "begun by another page",
            with(&[&within]),
            Some(Reason::Transaction),
        ),
        ("begun by this one", with(&[&statement, &within]), None),
        ("cut", with(&[&cut]), Some(Reason::Statement)),
        ("a command", with(&[&command]), Some(Reason::Statement)),
        (
            "too long",
            incomplete(Incomplete::TooLong),
            Some(Reason::TooLong),
        ),
        (
            "missed",
            incomplete(Incomplete::Missed),
            Some(Reason::Incomplete),
        ),
    ] {
        assert_eq!(reason(&record), expected, "{name}");
    }
}

fn with(kind: InputKind, detail: &[u8]) -> Record<'_> {
    Record {
        inputs: vec![Input { kind, detail }],
        ..Record::default()
    }
}

#[test]
fn each_input_that_cannot_be_known_is_named_with_its_detail() {
    for (kind, reason) in [
        (InputKind::Connection, Some(Reason::Elsewhere)),
        (InputKind::NameLookup, Some(Reason::Elsewhere)),
        (InputKind::UnreadDatabase, Some(Reason::Unreadable)),
        (InputKind::Program, Some(Reason::Program)),
        (InputKind::SharedCache, Some(Reason::SharedMemory)),
        (InputKind::SharedMemory, Some(Reason::SharedMemory)),
        (InputKind::Extension, Some(Reason::Extension)),
        (InputKind::CacheState, Some(Reason::CacheState)),
        (InputKind::CacheWrite, Some(Reason::OwnWrite)),
        (InputKind::Unanswered, Some(Reason::Unanswered)),
        (InputKind::Random, None),
    ] {
        let expected = reason.map(|reason| WhyNot::new(reason, "what it is"));
        assert_eq!(
            run(&with(kind, b"what it is"), &|_| String::new()).obstacle,
            expected,
            "{kind:?}"
        );
    }
}

#[test]
fn files_that_the_page_writes_or_whose_change_cannot_be_told_are_obstacles() {
    let look = |path: &'static [u8], by| Record {
        files: vec![FileLook {
            path,
            by,
            state: None,
        }],
        ..Record::default()
    };
    for (path, by, is_obstacle) in [
        (&b"/srv/site/part.html"[..], FileUse::Opened, false),
        (b"/srv/site/part.html", FileUse::Written, true),
        (b"/srv/site/part.html", FileUse::Removed, true),
        (b"/proc/loadavg", FileUse::Opened, true),
        (b"/dev/urandom", FileUse::Opened, false),
    ] {
        let run = run(&look(path, by), &|_| String::new());
        assert_eq!(run.obstacle.is_some(), is_obstacle, "{path:?} {by:?}");
    }
}

#[test]
fn database_of_addresses_that_was_opened_comes_before_other_obstacles() {
    let state = ReportedFileState {
        is_folder: false,
        modified_nanoseconds: 1,
        size: 10,
        inode: 5,
    };
    for (path, by, state, is_found) in [
        (
            &b"/srv/country.mmdb"[..],
            FileUse::Opened,
            Some(state),
            true,
        ),
        (
            b"/proc/self/cwd/country.mmdb",
            FileUse::Opened,
            Some(state),
            true,
        ),
        (b"/tmp/GeoIP.sqlite", FileUse::Written, Some(state), true),
        (b"/srv/country.mmdb", FileUse::Looked, Some(state), false),
        (b"/srv/country.mmdb", FileUse::Opened, None, false),
        (b"/srv/country.mmdb", FileUse::Written, None, false),
        (b"/srv/country.html", FileUse::Opened, Some(state), false),
    ] {
        let record = Record {
            files: vec![FileLook { path, by, state }],
            ..with(InputKind::NameLookup, b"example.org")
        };
        let run = run(&record, &|_| String::new());
        let expected = is_found.then(|| shown(path));
        assert_eq!(
            run.address_database(),
            expected.as_deref(),
            "{path:?} {by:?}"
        );
        assert!(run.obstacle.is_some());
    }
    let open_before = SqliteFile {
        path: b"/srv/data/geoip.db",
        device: 1,
        inode: 2,
        is_from_before: true,
    };
    let record = Record {
        sqlite_files: vec![open_before],
        ..Record::default()
    };
    assert_eq!(reason(&record), Some(Reason::AddressDatabase));
}

#[test]
fn what_belongs_to_a_database_is_no_file_of_the_page() {
    let folder = |path, by| FileLook {
        path,
        by,
        state: Some(ReportedFileState {
            is_folder: true,
            modified_nanoseconds: 1,
            size: 4096,
            inode: 5,
        }),
    };
    let written = |path| FileLook {
        path,
        by: FileUse::Written,
        state: None,
    };
    let database = SqliteFile {
        path: b"/srv/data/a.db",
        device: 1,
        inode: 2,
        is_from_before: false,
    };
    let record = Record {
        files: vec![
            folder(b"/srv/data", FileUse::Looked),
            folder(b"/srv/dat", FileUse::Looked),
            folder(b"/srv", FileUse::Listed),
            written(b"/srv/data/a.db"),
            written(b"/srv/data/a.db-journal"),
            written(b"/srv/data/a.db-wal"),
        ],
        sqlite_files: vec![
            database,
            SqliteFile {
                is_from_before: true,
                ..database
            },
        ],
        ..Record::default()
    };
    let made_of = run(&record, &|_| String::new());
    assert_eq!(made_of.obstacle, None);
    let files = made_of.files.iter();
    let inodes: Vec<_> = files.map(|it| it.state.map(|it| it.inode)).collect();
    assert_eq!(inodes, [Some(0), Some(5), Some(5)]);
    let [known] = &made_of.sqlite[..] else {
        panic!("{:?}", made_of.sqlite);
    };
    assert_eq!(known.path.to_str(), Some("/srv/data/a.db"));
    assert!(known.is_from_before);
    let another = Record {
        files: vec![written(b"/srv/data/a.db2")],
        ..record
    };
    let obstacle = run(&another, &|_| String::new()).obstacle;
    assert_eq!(obstacle.map(|why| why.reason), Some(Reason::OwnFile));
    let unreachable = Record {
        sqlite_files: vec![SqliteFile {
            path: b"/proc/self/fd/9",
            ..database
        }],
        ..Record::default()
    };
    let obstacle = run(&unreachable, &|_| String::new()).obstacle;
    assert_eq!(obstacle.map(|why| why.reason), Some(Reason::DatabaseFile));
}

#[test]
fn session_that_is_removed_is_an_obstacle_if_something_was_in_it() {
    let state = ReportedFileState {
        is_folder: false,
        modified_nanoseconds: 1,
        size: 0,
        inode: 5,
    };
    let path = b"/var/lib/php/sessions/sess_abc";
    for (before, after, expected) in [
        (None, Some(&b""[..]), None),
        (Some(&b""[..]), Some(&b"a|i:1;"[..]), None),
        (Some(&b"a|i:1;"[..]), Some(&b""[..]), Some(Reason::OwnFile)),
        (None, Some(&b"a|i:1;"[..]), Some(Reason::OwnFile)),
        (None, None, Some(Reason::OwnFile)),
    ] {
        let record = Record {
            files: vec![FileLook {
                path,
                by: FileUse::Removed,
                state: Some(state),
            }],
            session_files: vec![SessionFile {
                path,
                hash_before: 1,
                hash_after: if before.is_some() { 2 } else { 1 },
                before,
                after,
                state,
            }],
            ..Record::default()
        };
        let obstacle = run(&record, &|_| String::new()).obstacle;
        assert_eq!(
            obstacle.map(|why| why.reason),
            expected,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn a_session_whose_settings_are_not_known_is_not_read() {
    let mut reported = ReportedSession {
        settings: Some(vec![b"SET NAMES utf8mb4"]),
        ..reported_session()
    };
    let session = session_of(&reported, "");
    assert_eq!(session.database.as_deref(), Some("blog"));
    let unknown = Session::new(None, UNKNOWN_COLLATION);
    assert_ne!(session, unknown);
    reported.settings = None;
    assert_eq!(session_of(&reported, ""), unknown);
    reported.settings = Some(Vec::new());
    assert_ne!(session_of(&reported, ""), unknown);
    reported.database = Some(b"\xff");
    assert_eq!(session_of(&reported, ""), unknown);
}

#[test]
fn statements_that_cannot_change_a_definition_are_no_definitions() {
    for (text, expected) in [
        ("ALTER TABLE post ADD more INT", true),
        ("CREATE TABLE t (id INT)", true),
        ("CALL set_up()", true),
        ("EXECUTE IMMEDIATE 'DROP TABLE t'", true),
        ("/*!50000 ALTER TABLE t ADD a INT */", true),
        ("SELECT 1; DROP TABLE t", true),
        ("BEGIN NOT ATOMIC DROP TABLE t; END", true),
        ("/* select */ ALTER TABLE t ADD a INT", true),
        ("SET STATEMENT lock_wait_timeout = 1 FOR DROP TABLE t", true),
        ("SET NAMES utf8mb4", false),
        ("DELETE FROM t;", false),
        ("SELECT NEXT VALUE FOR numbers", false),
        (" create temporary table t (id INT)", false),
        ("DROP TEMPORARY TABLE IF EXISTS t", false),
        ("TABLE post", false),
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t", false),
        ("(SELECT 1)", false),
        // A session that is kept in a table, as PHP encodes it.
        (
            "REPLACE INTO s VALUES ('a', 'uid|i:2;name|s:1:\"#\";', now())",
            false,
        ),
        (
            r#"REPLACE INTO s VALUES ('uid|i:2;n|s:4:\"café\";')"#,
            false,
        ),
        (
            "INSERT INTO t VALUES ('it''s -- /* ; drop'); SELECT `a;b`",
            false,
        ),
        ("INSERT INTO t VALUES ('a'); DROP TABLE t", true),
        // A backslash escapes the quote, or it does not.
        (r"INSERT INTO t VALUES ('\'); DROP TABLE t; --'", true),
        (r"INSERT INTO t VALUES ('\', '; DROP TABLE t; --')", true),
        ("INSERT INTO t VALUES ('open; DROP TABLE t", true),
        ("CREATE TEMP TABLE t (id INT)", false),
        ("DO $$ BEGIN ALTER TABLE t ADD a INT; END $$", true),
        ("DO SLEEP(1)", false),
    ] {
        assert_eq!(is_definition(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn statements_are_shown_in_one_line_and_cut() {
    assert_eq!(shown(b" SELECT 1\n\t FROM t "), "SELECT 1 FROM t");
    let long = shown(&[b'x'; 1000]);
    assert_eq!((long.len(), &long[198..]), (204, "xx ..."));
}
