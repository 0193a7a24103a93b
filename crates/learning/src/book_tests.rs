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

pub fn end(book: &Book, digest: u64) -> PageEnd {
    PageEnd {
        page: StoredPage {
            name: b"pages\0/".as_slice().into(),
            key: Arc::default(),
            address: "http://a/".to_owned(),
            digest: Some(digest),
            clients: Vec::new(),
            is_own: false,
            has_session: true,
            is_repeated: false,
            most: Duration::from_secs(60),
            said_until: None,
            shape: None,
            keep: None,
            withdraw: Box::new(|_, _| ()),
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

fn listed<'a>(account: &'a [u8], identifiers: &'a [u32]) -> AskedServer<'a> {
    AskedServer {
        server: SERVER,
        identifiers,
        account,
        shows_all: false,
    }
}

#[test]
fn a_write_whose_process_died_counts_until_the_server_has_ended_its_connection() {
    let now = Instant::now();
    let mut book = book(now);
    let is_learned = |book: &mut Book| {
        made(book, 1, reads(&[SECOND_POST]), now);
        state(book, now).is_none()
    };
    assert!(is_learned(&mut book));
    book.left_in_doubt(
        1,
        vec![write("UPDATE post SET title = 'b' WHERE id = 2")],
        now,
    );
    assert!(state(&mut book, now).is_some());
    // The server may do it at any moment: what a page reads now may be from before.
    assert!(!is_learned(&mut book));
    let asked = book.last_doubt();
    for (why, asked, said) in [
        ("it is listed", asked, listed(b"blog", &[7, 40])),
        (
            "it is not shown to this account",
            asked,
            listed(b"root", &[7]),
        ),
        (
            "the answer is from before",
            asked - 1,
            listed(b"blog", &[7]),
        ),
        (
            "it is another server",
            asked,
            AskedServer {
                server: "127.0.0.1:3306",
                ..listed(b"blog", &[7])
            },
        ),
    ] {
        book.connections_listed(asked, &said, now);
        assert!(!is_learned(&mut book), "{why}");
        assert_eq!(book.servers_in_doubt(), [SERVER.into()], "{why}");
    }
    // A page under way may have read what was there before the last moment.
    let under_way = end(&book, 1);
    book.connections_listed(asked, &listed(b"blog", &[7]), now);
    book.learn(&under_way, Some(reads(&[SECOND_POST])), now);
    assert!(
        state(&mut book, now)
            .unwrap()
            .starts_with("written-meanwhile")
    );
    assert!(is_learned(&mut book));
    assert!(book.servers_in_doubt().is_empty());
}

#[test]
fn a_write_in_doubt_keeps_no_other_page_from_being_learned_and_doubts_are_bounded() {
    let now = Instant::now();
    let mut book = book(now);
    book.left_in_doubt(
        1,
        vec![write("UPDATE post SET title = 'b' WHERE id = 3")],
        now,
    );
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert_eq!(state(&mut book, now), None);
    let many = (0..1000).map(|identifier| SentWrite {
        identifier,
        ..write("UPDATE post SET title = 'b' WHERE id = 3")
    });
    book.left_in_doubt(1, many.collect(), now);
    // More than are kept: anything may be written, at any time.
    let asked = book.last_doubt();
    book.connections_listed(asked, &listed(b"blog", &[]), now);
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(state(&mut book, now).is_some());
}

#[test]
fn a_write_of_a_connection_that_is_not_shown_is_in_doubt_for_a_minute() {
    let now = Instant::now();
    let is_learned_at = |book: &mut Book, at: Instant| {
        made(book, 1, reads(&[SECOND_POST]), at);
        state(book, at).is_none()
    };
    let one = || vec![write("UPDATE post SET title = 'b' WHERE id = 2")];
    let many = (0..1000).map(|identifier| SentWrite {
        identifier,
        ..write("UPDATE post SET title = 'b' WHERE id = 3")
    });
    for (writes, account) in [(one(), &b"root"[..]), (many.collect(), b"blog")] {
        let mut book = book(now);
        book.left_in_doubt(1, writes, now);
        let asked = book.last_doubt();
        for (after, is_learned) in [(59, false), (60, true)] {
            let at = now + Duration::from_secs(after);
            book.connections_listed(asked, &listed(account, &[]), at);
            assert_eq!(is_learned_at(&mut book, at), is_learned);
        }
        assert!(book.servers_in_doubt().is_empty());
    }
    // One that is listed is in doubt for as long as it is.
    let mut book = book(now);
    book.left_in_doubt(1, one(), now);
    let later = now + Duration::from_secs(3600);
    book.connections_listed(book.last_doubt(), &listed(b"blog", &[7, 40]), later);
    assert!(!is_learned_at(&mut book, later));
}

/// Without an account for it, nothing ends the doubt; but no page that reads the server is learned then anyway.
#[test]
fn a_definition_in_doubt_at_a_server_that_is_not_asked_leaves_pages_of_files_alone() {
    let now = Instant::now();
    let mut book = Book::default();
    let alter = vec![write("ALTER TABLE post ADD COLUMN a INT")];
    book.left_in_doubt(1, alter, now);
    for _ in 0..2 {
        let under_way = end(&book, 1);
        let learned = kept(&mut book, &under_way, RunRecord::default(), now);
        assert_eq!(book.showing(learned), Showing::Kept);
    }
    made(&mut book, 1, reads(&[SECOND_POST]), now);
    assert!(state(&mut book, now).unwrap().starts_with("no-schema"));
}

/// Learns a page that is kept, like the thread of the pool does for `cache_learn on`.
pub fn kept(book: &mut Book, under_way: &PageEnd, record: RunRecord, now: Instant) -> LearnedEnd {
    let keep: crate::KeepPage = Box::new(|time, _| Some(time));
    let page = StoredPage {
        name: under_way.page.name.clone(),
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
        keep: Some(keep),
        withdraw: Box::new(|_, _| ()),
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

#[test]
fn a_kept_page_is_good_until_a_write_to_its_row_is_announced() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let under_way = end(&book, 1);
    let LearnedEnd::Known(number, moves) = kept(&mut book, &under_way, reads(&[SECOND_POST]), now)
    else {
        panic!("it is not kept");
    };
    assert_eq!(book.confirm(number, 1, now), Confirmation::Good(moves));
    let other: Arc<[SentWrite]> = [write("UPDATE post SET title = 'b' WHERE id = 3")].into();
    book.announced((1, 1), &other, now);
    let later = book.confirm(number, 1, now);
    assert_eq!(
        later,
        Confirmation::Good(book.moves()),
        "it is looked at again"
    );
    assert!(book.moves() > moves);
    assert_eq!(
        book.confirm(number, 2, now),
        Confirmation::Outdated,
        "another fetch's page"
    );
    let same: Arc<[SentWrite]> = [write("UPDATE post SET title = 'b' WHERE id = 2")].into();
    book.announced((1, 2), &same, now);
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    assert_eq!(book.count_under_way(), 2);
}

#[test]
fn a_page_that_is_fetched_between_announcement_and_answer_is_gone() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let same: Arc<[SentWrite]> = [write("UPDATE post SET title = 'b' WHERE id = 2")].into();
    book.announced((1, 1), &same, now);
    let under_way = end(&book, 1);
    let learned = kept(&mut book, &under_way, reads(&[SECOND_POST]), now);
    assert_eq!(learned, LearnedEnd::Gone, "others may see the write by now");
    let under_way = end(&book, 1);
    let other = kept(
        &mut book,
        &under_way,
        reads(&["SELECT title FROM post WHERE id = 3"]),
        now,
    );
    assert!(matches!(other, LearnedEnd::Known(..)), "{other:?}");
    let before_answer = end(&book, 1);
    book.answered((1, 1), &same);
    assert_eq!(book.count_under_way(), 0);
    let learned = kept(&mut book, &before_answer, reads(&[SECOND_POST]), now);
    assert_eq!(
        learned,
        LearnedEnd::Gone,
        "it may have read what was before"
    );
    let under_way = end(&book, 1);
    let learned = kept(&mut book, &under_way, reads(&[SECOND_POST]), now);
    assert!(matches!(learned, LearnedEnd::Known(..)), "{learned:?}");
}

#[test]
fn a_poll_ends_pages_of_the_tables_that_others_wrote() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let make = |book: &mut Book| {
        let under_way = end(book, 1);
        match kept(book, &under_way, reads(&[SECOND_POST]), now) {
            LearnedEnd::Known(number, _) => number,
            other => panic!("{other:?}"),
        }
    };
    let number = make(&mut book);
    see(&mut book, poll(2, "10:00:00", false), now);
    assert!(
        matches!(book.confirm(number, 1, now), Confirmation::Good(_)),
        "another table was written"
    );
    let under_way = end(&book, 1);
    see(&mut book, poll(3, "10:00:05", true), now);
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    let why = state(&mut book, now).unwrap();
    assert!(why.starts_with("a write to blog.post (which"), "{why}");
    // Its fetch began before.
    let learned = kept(&mut book, &under_way, reads(&[SECOND_POST]), now);
    assert_eq!(learned, LearnedEnd::Gone);
    let number = make(&mut book);
    // Another transaction may have begun in the same second.
    see(&mut book, poll(4, "10:00:05", true), now);
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    let number = make(&mut book);
    see(&mut book, poll(4, "10:00:05", true), now);
    assert!(
        matches!(book.confirm(number, 1, now), Confirmation::Good(_)),
        "nothing was written at all"
    );
}

#[test]
fn a_second_server_ends_keeping() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let under_way = end(&book, 1);
    let LearnedEnd::Known(number, moves) = kept(&mut book, &under_way, reads(&[SECOND_POST]), now)
    else {
        panic!("it is not kept");
    };
    let elsewhere = SentWrite {
        server: "127.0.0.1:3306".into(),
        ..write("UPDATE post SET title = 'b' WHERE id = 3")
    };
    book.announced((1, 1), &[elsewhere].into(), now);
    assert!(book.moves() > moves);
    assert_eq!(
        book.confirm(number, 1, now),
        Confirmation::Outdated,
        "it may be the same server"
    );
    let under_way = end(&book, 1);
    let learned = kept(&mut book, &under_way, reads(&[SECOND_POST]), now);
    assert_eq!(learned, LearnedEnd::Free);
    assert!(
        state(&mut book, now)
            .unwrap()
            .starts_with("several-servers")
    );
}

#[test]
fn a_page_that_differs_though_nothing_has_changed_is_not_kept_for_a_while() {
    let now = Instant::now();
    let mut book = polled_book(now);
    for (digest, is_expected, polled) in [
        (1, true, "10:00:00"),
        // It differs, but another program has written it, as the next poll shows.
        (2, true, "10:00:07"),
        (3, true, "10:00:07"),
        // It differs, and nobody has.
        (4, true, "10:00:07"),
        (5, false, "10:00:07"),
    ] {
        let mut under_way = end(&book, digest);
        under_way.page.keep = Some(Box::new(|time, _| Some(time)));
        let learned = book.learn(&under_way, Some(reads(&[SECOND_POST])), now);
        let is_kept = book.showing(learned) == Showing::KeptWhilePolled;
        assert_eq!(is_kept, is_expected, "{digest}");
        see(&mut book, poll(9, polled, false), now);
    }
    let much_later = now + Duration::from_secs(3600);
    see(&mut book, poll(1, "10:00:00", false), much_later);
    read_again(&mut book, much_later);
    let mut under_way = end(&book, 3);
    under_way.page.keep = Some(Box::new(|time, _| Some(time)));
    book.forget_ended(much_later);
    let learned = book.learn(&under_way, Some(reads(&[SECOND_POST])), much_later);
    assert_eq!(book.showing(learned), Showing::KeptWhilePolled);
}

#[test]
fn a_page_is_kept_for_as_long_as_it_was_the_same_and_not_beyond_its_day_or_its_lifetime() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let mut made = |digest, after: Duration, said: Option<Duration>| {
        let mut under_way = end(&book, digest);
        under_way.page.most = minutes(24 * 60);
        under_way.page.said_until = said.map(|said| now + after + said);
        let learned = book.learn(&under_way, Some(reads(&[SECOND_POST])), now + after);
        let LearnedEnd::Known(number, _) = learned else {
            panic!("it is not learned");
        };
        book.kept_for(number, now + after)
    };
    assert_eq!(made(1, minutes(1), None), minutes(1));
    assert_eq!(
        made(1, minutes(21), None),
        minutes(20),
        "since the first one after the first poll"
    );
    assert_eq!(
        made(1, minutes(22), Some(minutes(5))),
        minutes(5),
        "the application says so"
    );
    assert_eq!(
        made(1, minutes(500), None),
        minutes(60),
        "the day ends in an hour"
    );
    assert_eq!(
        made(2, minutes(510), None),
        minutes(1),
        "it is another, and nothing was written"
    );
}

/// A page that was right for nine minutes showed an offer, whose end was set a moment ago, for nine minutes more.
#[test]
fn the_time_for_which_a_page_is_kept_begins_anew_with_a_change_of_its_data() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let make = |book: &mut Book, after: Duration| {
        let mut under_way = end(book, 1);
        under_way.page.most = minutes(24 * 60);
        book.learn(&under_way, Some(reads(&[SECOND_POST])), now + after)
    };
    let kept_for = |book: &mut Book, after: Duration| match make(book, after) {
        LearnedEnd::Known(number, _) => book.kept_for(number, now + after),
        learned => panic!("{learned:?}"),
    };
    assert_eq!(kept_for(&mut book, minutes(0)), minutes(1));
    assert_eq!(kept_for(&mut book, minutes(9)), minutes(9));
    book.written(&write("UPDATE post SET ends = 'soon' WHERE id = 2"));
    assert_eq!(
        kept_for(&mut book, minutes(10)),
        minutes(1),
        "the page looks as before"
    );
    assert_eq!(kept_for(&mut book, minutes(15)), minutes(5));
    // Its data changes while no more is known of the page than why it was not learned.
    let obstacle = RunRecord {
        obstacle: Some(WhyNot::new(Reason::Elsewhere, "")),
        ..RunRecord::default()
    };
    let under_way = end(&book, 1);
    assert_eq!(
        book.learn(&under_way, Some(obstacle), now + minutes(16)),
        LearnedEnd::Free
    );
    book.written(&write("UPDATE post SET ends = 'later' WHERE id = 2"));
    assert_eq!(kept_for(&mut book, minutes(20)), minutes(1));
}

#[test]
fn a_page_that_php_confirms_is_not_learned_by_what_it_read_for_that() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let mut confirmed = end(&book, 1);
    confirmed.page.digest = None;
    let run = RunRecord::default();
    assert_eq!(book.learn(&confirmed, Some(run), now), LearnedEnd::Free);
    assert!(state(&mut book, now).unwrap().starts_with("not-modified"));
}

#[test]
fn a_page_of_a_time_when_not_all_was_heard_is_no_sign_that_the_next_one_differs() {
    let now = Instant::now();
    let mut book = polled_book(now);
    // During an upgrade, in which another program's PHP writes.
    let unguarded = end(&book, 2);
    let learned = book.learn(&unguarded, Some(reads(&[SECOND_POST])), now);
    assert!(matches!(learned, LearnedEnd::Known(..)));
    let after = end(&book, 1);
    let learned = kept(&mut book, &after, reads(&[SECOND_POST]), now);
    assert_eq!(book.showing(learned), Showing::KeptWhilePolled);
}

#[test]
fn a_restart_of_the_database_and_a_worker_in_doubt_end_pages() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let make = |book: &mut Book| {
        let under_way = end(book, 1);
        kept(book, &under_way, reads(&[SECOND_POST]), now)
    };
    let LearnedEnd::Known(number, _) = make(&mut book) else {
        panic!("it is not kept");
    };
    see(&mut book, poll(1, "10:00:00", false).after_restart(), now);
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    // Views may be others than before, which no later poll shows.
    assert_eq!(make(&mut book), LearnedEnd::Free);
    let why = state(&mut book, now).unwrap();
    assert!(why.starts_with("no-schema"), "{why}");
    read_again(&mut book, now);
    let LearnedEnd::Known(number, _) = make(&mut book) else {
        panic!("it is not kept");
    };
    let same = write("UPDATE post SET title = 'b' WHERE id = 2");
    book.announced((1, 1), &[same.clone()].into(), now);
    book.left_in_doubt(1, vec![same], now);
    assert!(!book.has_slow_writes_only(now));
    assert!(book.has_slow_writes_only(now + Duration::from_secs(1)));
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    assert_eq!(
        make(&mut book),
        LearnedEnd::Gone,
        "the server may still do it"
    );
    assert_eq!(
        book.counts().removed,
        0,
        "none of them was shown for longer"
    );
}

#[test]
fn what_a_process_may_have_written_unheard_is_in_no_page_whose_fetch_was_under_way() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let before = end(&book, 1);
    book.note_heard_again(7, now);
    assert_eq!(
        kept(&mut book, &before, reads(&[SECOND_POST]), now),
        LearnedEnd::Gone
    );
    let after = end(&book, 1);
    let learned = kept(&mut book, &after, reads(&[SECOND_POST]), now);
    assert!(!book.has_nothing_to_show(now));
    let LearnedEnd::Known(number, _) = learned else {
        panic!("it is not kept");
    };
    book.note_heard_again(7, now);
    assert_eq!(book.confirm(number, 1, now), Confirmation::Outdated);
    assert!(book.has_nothing_to_show(now));
}

#[test]
fn a_fetch_that_was_overtaken_is_not_compared_with_a_newer_one() {
    let now = Instant::now();
    let mut book = polled_book(now);
    let slow = end(&book, 1);
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    let mut quick = end(&book, 2);
    quick.mark = Arc::new(PageMark::alone(2));
    quick.page.keep = Some(Box::new(|time, _| Some(time)));
    let learned = book.learn(&quick, Some(reads(&[SECOND_POST])), now);
    assert_eq!(book.showing(learned), Showing::KeptWhilePolled);
    let before = book.counts().compared;
    assert_eq!(
        kept(&mut book, &slow, reads(&[SECOND_POST]), now),
        LearnedEnd::Gone
    );
    assert_eq!(book.counts().compared, before);
}

#[test]
fn what_was_read_under_other_tables_is_not_taken() {
    let now = Instant::now();
    for changes in [false, true] {
        let mut book = book(now);
        let (end, record) = (end(&book, 1), reads(&[SECOND_POST]));
        let reader = book.statement_reader((&end, &record), now);
        let run = ReadRun::of(record, reader, end.begun.at);
        if changes {
            let (server, _, definitions) = book.servers().remove(0);
            book.set_schema(&server, Ok(schema(2)), definitions, now);
        }
        let later = now + Duration::from_millis(1);
        let learned = book.learn_run(&end, Some(run), later);
        assert_eq!(matches!(learned, LearnedEnd::Known(..)), !changes);
    }
}

#[test]
fn with_auto_a_page_is_kept_once_its_shape_and_the_page_itself_were_the_same_and_all_end_together()
{
    let begin = Instant::now();
    let mut book = polled_book(begin);
    let clock = std::cell::Cell::new(begin);
    let make = |book: &mut Book, page: &str, digest, run| {
        let now = clock.get();
        let mut under_way = end(book, digest);
        under_way.page.name = page.as_bytes().into();
        under_way.page.address = format!("http://a{page}");
        under_way.page.shape = Some("http://a/blog/".to_owned());
        under_way.page.most = Duration::from_secs(24 * 3600);
        under_way.page.keep = Some(Box::new(|time, _| Some(time)));
        let learned = book.learn(&under_way, Some(run), now);
        if let LearnedEnd::Known(number, _) = learned
            && book.showing(learned) != Showing::Ordinary
        {
            book.note_kept(number, 1, now + Duration::from_secs(60));
        }
        (learned, book.showing(learned) != Showing::Ordinary)
    };
    for _ in 0..200 {
        assert!(!make(&mut book, "/1", 1, reads(&[SECOND_POST])).1);
        // What comes too early counts later.
        clock.set(clock.get() + Duration::from_millis(500));
        assert!(!make(&mut book, "/1", 1, reads(&[SECOND_POST])).1);
        clock.set(clock.get() + Duration::from_millis(500));
        see(&mut book, poll(1, "10:00:00", false), clock.get());
    }
    let (kept, is_kept) = make(&mut book, "/1", 1, reads(&[SECOND_POST]));
    assert!(is_kept);
    assert!(
        !make(&mut book, "/2", 5, reads(&[SECOND_POST])).1,
        "it was made once"
    );
    assert!(make(&mut book, "/2", 5, reads(&[SECOND_POST])).1);
    assert!(
        book.take_notices()
            .concat()
            .contains("are kept from now on")
    );
    // A file that changed a moment ago explains a difference.
    let file = |modified| RunRecord {
        files: vec![SeenFile {
            path: PathBuf::from("/srv/part.html"),
            state: Some(FileState {
                modified,
                bytes: 1,
                inode: 1,
            }),
        }],
        ..RunRecord::default()
    };
    make(&mut book, "/3", 1, file(5));
    make(&mut book, "/3", 2, file(6));
    assert!(book.trials.is_proven("http://a/blog/"));
    let LearnedEnd::Known(number, _) = kept else {
        panic!("it is not known");
    };
    assert!(matches!(
        book.confirm(number, 1, clock.get()),
        Confirmation::Good(_)
    ));
    make(&mut book, "/2", 6, reads(&[SECOND_POST]));
    assert_eq!(book.confirm(number, 1, clock.get()), Confirmation::Outdated);
    assert!(!make(&mut book, "/1", 1, reads(&[SECOND_POST])).1);
    let notices = book.take_notices().concat();
    assert!(notices.contains("http://a/2 was made again"), "{notices}");
    // Another program has written the table.
    see(&mut book, poll(9, "10:00:07", false), clock.get());
    assert!(book.trials.is_proven("http://a/blog/"));
    // No program has written the table.
    make(&mut book, "/2", 7, reads(&[SECOND_POST]));
    make(&mut book, "/2", 8, reads(&[SECOND_POST]));
    see(&mut book, poll(9, "10:00:07", false), clock.get());
    assert!(!book.trials.is_proven("http://a/blog/"));
}
