//! Stories of pages: made, written to, made again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::{SchemaBuilder, SchemaQuery, Session};

use super::*;
use crate::doubts::AskedServer;
use crate::mark::{FetchBeginning, PageMark};
use crate::pages::PageReport;
use crate::poll::PollAnswer;
use crate::record::{FileState, Reason, RunRecord, SentStatement, SentWrite, WhyNot};
use crate::statements::ReadRun;

#[path = "book/in_doubt_tests.rs"]
mod in_doubt;
#[path = "book/kept_tests.rs"]
mod kept;

pub const SERVER: &str = "unix:/run/mysqld/mysqld.sock";

/// A book that knows one table, `blog.post (id INT PRIMARY KEY, title VARCHAR(100))`.
pub fn book(now: Instant) -> Book {
    let mut book = Book::default();
    let server: ServerName = SERVER.into();
    book.database(&server);
    book.set_schema(&server, Ok(schema(1)), 0, now);
    book
}

pub fn schema(digest: u64) -> ReadSchema {
    let mut builder = SchemaBuilder::default();
    let rows: [(SchemaQuery, &[&str]); 5] = [
        (
            SchemaQuery::Tables,
            &["blog", "post", "BASE TABLE", "InnoDB"],
        ),
        (
            SchemaQuery::Columns,
            &[
                "blog",
                "post",
                "id",
                "int",
                "int(11)",
                "0",
                "",
                "NO",
                "auto_increment",
            ],
        ),
        (
            SchemaQuery::Columns,
            &[
                "blog",
                "post",
                "title",
                "varchar",
                "varchar(100)",
                "100",
                "utf8mb4_general_ci",
                "NO",
                "",
            ],
        ),
        (
            SchemaQuery::Keys,
            &["blog", "post", "PRIMARY", "id", "0", "0"],
        ),
        (SchemaQuery::Rights, &["%", "%"]),
    ];
    for (query, row) in rows {
        assert!(builder.row(query, row));
    }
    ReadSchema {
        schema: Arc::new(builder.finish().unwrap()),
        modes: String::new(),
        digest,
    }
}

fn session() -> Session {
    Session::new(Some("blog".to_owned()), 45)
}

pub fn reads(statements: &[&str]) -> RunRecord {
    let statements = statements.iter().map(|text| SentStatement {
        server: SERVER.into(),
        connection: 1,
        session: session(),
        text: text.as_bytes().to_vec(),
        parameters: Vec::new(),
        result: 7,
        is_prepared: false,
        again_in: None,
    });
    RunRecord {
        statements: statements.collect(),
        ..RunRecord::default()
    }
}

pub fn write(text: &str) -> SentWrite {
    SentWrite {
        connection: 1,
        identifier: 40,
        account: b"blog".to_vec(),
        server: SERVER.into(),
        session: session(),
        text: text.as_bytes().to_vec(),
        parameters: Vec::new(),
        is_complete: true,
        rows_of: None,
        cache: None,
    }
}

/// A page of this name, which is shared for a minute.
pub fn stored_page(name: &[u8]) -> StoredPage {
    StoredPage {
        name: name.into(),
        key: Arc::default(),
        address: String::new(),
        digest: Some(1),
        clients: Vec::new(),
        is_own: false,
        has_session: true,
        is_repeated: false,
        most: Duration::from_secs(60),
        said_until: None,
        shape: None,
        keep: None,
        withdraw: Box::new(|_, _| ()),
    }
}

pub fn end(book: &Book, digest: u64) -> PageEnd {
    PageEnd {
        page: StoredPage {
            address: "http://a/".to_owned(),
            digest: Some(digest),
            ..stored_page(b"pages\0/")
        },
        begun: FetchBeginning {
            writes: book.writes(),
            at: 1_700_000_000_000_000_000,
            ..FetchBeginning::default()
        },
        mark: Arc::new(PageMark::alone(1)),
        left_of_day: Duration::from_secs(3600),
        visit: None,
    }
}

/// Its tables are read, and are as before.
pub fn read_again(book: &mut Book, now: Instant) {
    let (server, _, definitions) = book.servers().remove(0);
    book.set_schema(&server, Ok(schema(1)), definitions, now);
}

impl Book {
    /// Reads the statements of a run, and learns it.
    pub fn learn(&mut self, end: &PageEnd, record: Option<RunRecord>, now: Instant) -> LearnedEnd {
        let run = record.map(|record| {
            let reader = self.statement_reader((end, &record), now);
            ReadRun::of(record, reader, end.begun.at)
        });
        self.learn_run(end, run, now)
    }
}

fn made(book: &mut Book, digest: u64, record: RunRecord, now: Instant) {
    let end = end(book, digest);
    book.learn(&end, Some(record), now);
}

/// `None`: the page is fresh. Otherwise the cause of its doubt, or why it is not learned.
pub fn state(book: &mut Book, now: Instant) -> Option<String> {
    match book.report(b"pages\0/", now) {
        Some(PageReport::Learned { suspect, .. }) => suspect.map(|(cause, _)| cause),
        Some(PageReport::NotLearned { why, .. }) => {
            Some(format!("{}: {}", why.reason.word(), why.detail))
        }
        None => Some("unknown".to_owned()),
    }
}

/// Learns a page that is kept, like the thread of the pool does for `cache_learn on`.
pub fn kept(book: &mut Book, under_way: &PageEnd, record: RunRecord, now: Instant) -> LearnedEnd {
    let keep: crate::KeepPage = Box::new(|time, _| Some(time));
    let page = StoredPage {
        keep: Some(keep),
        ..stored_page(&under_way.page.name)
    };
    let end = PageEnd {
        page,
        begun: under_way.begun.clone(),
        mark: under_way.mark.clone(),
        left_of_day: under_way.left_of_day,
        visit: None,
    };
    book.learn(&end, Some(record), now)
}

pub fn poll(gate: u64, updated: &str, is_recent: bool) -> PollAnswer {
    PollAnswer::of_one("blog.post", (gate, updated, is_recent))
}

/// A book whose one table is polled, and was not written for long.
pub fn polled_book(now: Instant) -> Book {
    let mut book = book(now);
    let under_way = end(&book, 1);
    let first = kept(&mut book, &under_way, reads(&[SECOND_POST]), now);
    assert_eq!(
        book.showing(first),
        Showing::Ordinary,
        "it is asked for from now on"
    );
    see(&mut book, poll(1, "10:00:00", false), now);
    read_again(&mut book, now);
    book
}

pub fn see(book: &mut Book, answer: PollAnswer, now: Instant) {
    let tables = book.to_poll(now).remove(0).1;
    book.polled(&SERVER.into(), answer, (&tables[..], now));
}

pub const SECOND_POST: &str = "SELECT title FROM post WHERE id = 2";

#[test]
fn a_write_to_the_row_makes_the_page_suspect_and_one_to_another_does_not() {
    let now = Instant::now();
    let mut book = book(now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
    book.written(&write("UPDATE post SET title = 'a' WHERE id = 3"));
    assert_eq!(state(&mut book, now), None);
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    let cause = state(&mut book, now).unwrap();
    assert!(
        cause.starts_with("UPDATE post SET title = 'b' WHERE id = 2 (which concerns"),
        "{cause}"
    );
    assert_eq!((book.snapshot().writes, book.snapshot().matched), (2, 1));
    // Made again, it is known anew.
    made(&mut book, 2, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
    assert_eq!(book.snapshot().compared, [0, 0, 0, 1]);
}

#[test]
fn a_command_that_writes_by_another_address_may_have_written_anything() {
    let now = Instant::now();
    let update = write("UPDATE post SET title = 'a' WHERE id = 8");
    let elsewhere = SentWrite {
        server: "127.0.0.1:3306".into(),
        ..update.clone()
    };
    for (sent, is_suspect) in [(update, false), (elsewhere, true)] {
        let mut book = book(now);
        made(
            &mut book,
            1,
            reads(&["SELECT title FROM post WHERE id = 7"]),
            now,
        );
        let counted = book.of_known_servers(&[sent]);
        assert_eq!((counted.len(), &*counted[0].server), (1, SERVER));
        book.written(&counted[0]);
        assert_eq!(state(&mut book, now).is_some(), is_suspect);
    }
}

#[test]
fn what_was_written_while_the_page_was_made_keeps_it_from_being_learned() {
    let now = Instant::now();
    let mut book = book(now);
    let began = end(&book, 1);
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    book.learn(&began, Some(reads(&[SECOND_POST])), now);
    let why = state(&mut book, now).unwrap();
    assert!(why.starts_with("written-meanwhile"), "{why}");
    let count = Reason::WrittenMeanwhile as usize;
    assert_eq!(book.snapshot().not_learned[count], 1);
}

#[test]
fn writes_are_counted_on_when_the_tables_are_read_again() {
    let now = Instant::now();
    let mut book = book(now);
    for _ in 0..5 {
        book.written(&write("UPDATE post SET title = 'a' WHERE id = 1"));
    }
    let began = end(&book, 1);
    book.set_schema(&SERVER.into(), Ok(schema(2)), 0, now);
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    book.learn(&began, Some(reads(&[SECOND_POST])), now);
    let why = state(&mut book, now).unwrap();
    assert!(why.starts_with("written-meanwhile"), "{why}");
    // The reported cause is the write itself, not an earlier one with its number.
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    book.written(&write("UPDATE post SET title = 'c' WHERE id = 2"));
    let cause = state(&mut book, now).unwrap();
    assert!(cause.starts_with("UPDATE post SET title = 'c'"), "{cause}");
}

#[test]
fn a_page_that_is_another_without_a_known_change_is_counted_as_missed() {
    let now = Instant::now();
    let mut book = book(now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    made(&mut book, 2, reads(&[SECOND_POST]), now);
    assert_eq!(book.snapshot().compared, [1, 1, 0, 0]);
    let Some(PageReport::Learned {
        same,
        changed,
        tables,
        ..
    }) = book.report(b"pages\0/", now)
    else {
        panic!("it is learned");
    };
    assert_eq!(
        (same, changed, &tables[..]),
        (1, 1, &["blog.post".to_owned()][..])
    );
}

#[test]
fn statements_that_are_not_understood_are_named() {
    let now = Instant::now();
    let mut book = book(now);
    for (statement, reason) in [
        (
            "SELECT title, NOW() FROM post",
            "statement: clock: SELECT title, NOW() FROM post",
        ),
        (
            "SELECT title FROM elsewhere",
            "statement: unknown-table: SELECT title FROM elsewhere",
        ),
        ("SELECT @a", "statement: user-variable: SELECT @a"),
    ] {
        made(&mut book, 1, reads(&[SECOND_POST, statement]), now);
        assert_eq!(state(&mut book, now).as_deref(), Some(reason));
    }
}

#[test]
fn each_obstacle_of_a_record_is_the_reason_that_is_told() {
    let now = Instant::now();
    let mut book = book(now);
    for reason in [
        Reason::Elsewhere,
        Reason::Program,
        Reason::SharedMemory,
        Reason::Unreadable,
    ] {
        let mut record = reads(&[SECOND_POST]);
        record.obstacle = Some(WhyNot::new(reason, "127.0.0.1:6379"));
        made(&mut book, 1, record, now);
        let expected = format!("{}: 127.0.0.1:6379", reason.word());
        assert_eq!(state(&mut book, now), Some(expected));
    }
    let end = end(&book, 1);
    book.learn(&end, None, now);
    assert_eq!(state(&mut book, now).as_deref(), Some("no-record: "));
}

#[test]
fn without_the_tables_of_its_server_no_page_is_learned() {
    let now = Instant::now();
    let mut book = Book::default();
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(
        state(&mut book, now)
            .unwrap()
            .starts_with("no-schema: unix:/run")
    );
    let servers = book.servers();
    assert_eq!((servers.len(), servers[0].1), (1, true));
    book.set_schema(
        &SERVER.into(),
        Err(io::Error::other("Access denied")),
        0,
        now,
    );
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(state(&mut book, now).unwrap().contains("Access denied"));
    book.set_schema(&SERVER.into(), Ok(schema(1)), 0, now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
}

#[test]
fn a_definition_makes_all_suspect_and_a_schema_that_was_read_before_it_does_not_count() {
    let now = Instant::now();
    let mut book = book(now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    book.written(&write("ALTER TABLE post ADD COLUMN a INT"));
    assert!(state(&mut book, now).unwrap().starts_with("ALTER TABLE"));
    // It was asked for before the definition.
    book.set_schema(&SERVER.into(), Ok(schema(1)), 0, now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(state(&mut book, now).unwrap().starts_with("no-schema"));
    book.set_schema(&SERVER.into(), Ok(schema(2)), 1, now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
}

#[test]
fn files_belong_to_the_page_and_scripts_to_all() {
    let now = Instant::now();
    let mut book = book(now);
    let state_at = |modified| {
        Some(FileState {
            modified,
            bytes: 1,
            inode: 1,
        })
    };
    let file = |name: &str, modified| SeenFile {
        path: PathBuf::from(name),
        state: state_at(modified),
    };
    let with = |file: SeenFile| RunRecord {
        files: vec![file],
        ..RunRecord::default()
    };
    made(&mut book, 1, with(file("/srv/part.html", 5)), now);
    assert_eq!(state(&mut book, now), None);
    let change = |number| ChangedFile {
        number,
        state: state_at(6),
    };
    book.files_changed(&[change(0)], now);
    assert_eq!(
        state(&mut book, now).as_deref(),
        Some("/srv/part.html has changed")
    );
    // A time that is no older than the fetch proves nothing.
    made(
        &mut book,
        1,
        with(file("/srv/part.html", 1_700_000_000_000_000_000)),
        now,
    );
    assert!(state(&mut book, now).unwrap().starts_with("file-changed"));
    made(&mut book, 1, with(file("/srv/index.php", 5)), now);
    made(&mut book, 1, RunRecord::default(), now);
    book.files_changed(&[change(1)], now);
    assert_eq!(
        state(&mut book, now).as_deref(),
        Some("/srv/index.php has changed")
    );
    made(&mut book, 1, RunRecord::default(), now);
    assert!(state(&mut book, now).unwrap().starts_with("code-changed"));
    let later = now + OLD_CODE_RUNS;
    made(&mut book, 1, RunRecord::default(), later);
    assert_eq!(state(&mut book, later), None);
}

#[test]
fn a_page_counts_as_unknown_after_its_time() {
    let now = Instant::now();
    let mut book = book(now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    let later = now + Duration::from_secs(60);
    assert_eq!(state(&mut book, later).as_deref(), Some("unknown"));
    book.forget_ended(later);
    assert_eq!(book.snapshot().pages, 0);
    assert_eq!(book.page_to_audit(later), None);
}

#[test]
fn while_a_worker_is_not_heard_nothing_is_learned() {
    let now = Instant::now();
    let mut book = book(now);
    book.note_unheard(77, "it is too quick");
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(
        state(&mut book, now).as_deref(),
        Some("incomplete: process 77 is not heard: it is too quick")
    );
    // A message of another process does not change that.
    book.note_heard_again(78, now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(state(&mut book, now).is_some());
    let under_way = end(&book, 1);
    book.note_heard_again(77, now);
    book.learn(&under_way, Some(reads(&[SECOND_POST])), now);
    assert!(
        state(&mut book, now).is_some(),
        "it may have written what the page read"
    );
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
    book.note_unheard(77, "it is too quick");
    book.forget_unheard(|_| false);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
    assert_eq!(book.page_to_audit(now).as_deref(), Some("http://a/"));
}
