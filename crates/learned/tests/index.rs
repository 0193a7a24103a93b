//! Pages and writes: which pages are suspect, and that an index finds what a look at all statements finds.

use std::sync::Arc;

use learned::{
    Effect, Index, MAX_RECENT_WRITES, MAX_RECORD_BYTES, MAX_STATEMENTS, NotLearned, PageRecord,
    QueryReading, Reading, RunIn, RunText, Schema, SchemaBuilder, SchemaQuery, SeenStatement,
    Session, SuspicionCause, Value, may_alter,
};
use proptest::prelude::*;

const TEXT: RunIn = RunIn {
    session: 0,
    is_prepared: false,
};

const NOW: i64 = 1_795_602_030;

fn schema() -> Arc<Schema> {
    let mut builder = SchemaBuilder::default();
    for (table, column, data_type, collation, extra) in [
        ("posts", "id", "int", "", "auto_increment"),
        ("posts", "title", "varchar", "utf8mb4_unicode_ci", ""),
        ("posts", "status", "varchar", "utf8mb4_unicode_ci", ""),
        ("posts", "author", "int", "", ""),
        ("posts", "views", "int", "", ""),
        ("meta", "post", "int", "", ""),
        ("meta", "name", "varchar", "utf8mb4_unicode_ci", ""),
        ("meta", "value", "varchar", "utf8mb4_unicode_ci", ""),
    ] {
        builder.row(
            SchemaQuery::Tables,
            &["blog", table, "BASE TABLE", "InnoDB"],
        );
        let fields = [
            "blog", table, column, data_type, data_type, "100", collation, "YES", extra,
        ];
        assert!(builder.row(SchemaQuery::Columns, &fields));
    }
    builder.row(
        SchemaQuery::Keys,
        &["blog", "posts", "PRIMARY", "id", "0", "0"],
    );
    builder.row(SchemaQuery::Rights, &["%", "%"]);
    Arc::new(builder.finish().unwrap())
}

fn session() -> Session {
    Session::new(Some("blog".to_owned()), 45)
}

fn seen<'a>(text: &'a str, session: &'a Session) -> SeenStatement<'a> {
    SeenStatement {
        connection: 1,
        text: text.as_bytes(),
        parameters: &[],
        session,
        result: 7,
        again_in: None,
    }
}

fn record(index: &mut Index, statements: &[&str]) -> Result<PageRecord, NotLearned> {
    let session = session();
    let mut record = PageRecord::new(NOW);
    for text in statements {
        record.add(&mut index.shapes().lock(), &seen(text, &session))?;
    }
    Ok(record)
}

fn learn(index: &mut Index, page: u32, statements: &[&str]) {
    let record = record(index, statements).unwrap();
    index.insert(page, index.writes(), &record).unwrap();
}

fn write(index: &mut Index, text: &str) -> u64 {
    let effect = index
        .shapes()
        .lock()
        .understand(text.as_bytes(), &[], &session())
        .effect;
    index.written(effect)
}

fn cause(index: &mut Index, page: u32) -> Option<SuspicionCause> {
    Some(index.suspicion(page)?.cause)
}

#[test]
fn writes_make_pages_suspect_by_value_by_shape_and_altogether() {
    use SuspicionCause::{Everything, Row, Shape};
    let mut index = Index::new(schema());
    learn(
        &mut index,
        1,
        &[
            "SELECT title FROM posts WHERE id = 5",
            "SELECT value FROM meta WHERE post = 5",
        ],
    );
    learn(&mut index, 2, &["SELECT title FROM posts WHERE id = 6"]);
    learn(
        &mut index,
        3,
        &["SELECT title FROM posts WHERE status = 'publish'"],
    );
    learn(&mut index, 4, &["SELECT 1"]);
    let causes = |index: &mut Index| [1, 2, 3, 4].map(|page| cause(index, page));
    assert_eq!(causes(&mut index), [None; 4]);
    write(
        &mut index,
        "INSERT INTO posts (id, status) VALUES (7, 'draft')",
    );
    assert_eq!(causes(&mut index), [None; 4]);
    let number = write(&mut index, "UPDATE posts SET title = 'x' WHERE id = 5");
    assert_eq!(causes(&mut index), [Some(Row), None, Some(Shape), None]);
    let suspicion = index.suspicion(1).unwrap();
    assert_eq!(suspicion.write, number);
    assert_eq!(
        suspicion.statement.unwrap(),
        "SELECT title FROM posts WHERE id = 5"
    );
    assert!(!suspicion.must_purge);
    learn(&mut index, 1, &["SELECT title FROM posts WHERE id = 5"]);
    assert_eq!(causes(&mut index), [None, None, Some(Shape), None]);
    write(&mut index, "CALL anything()");
    assert_eq!(causes(&mut index), [Some(Everything); 4]);
    let suspects: Vec<_> = index.suspects().into_iter().map(|(page, _)| page).collect();
    assert_eq!(suspects, [1, 2, 3, 4]);
    let noisy = index.noisiest(1);
    assert_eq!((noisy[0].writes, noisy[0].pages), (1, 1), "{noisy:?}");
}

#[test]
fn pages_are_compared_with_what_was_written_while_they_were_made() {
    let mut index = Index::new(schema());
    let begun = index.writes();
    write(&mut index, "UPDATE posts SET title = 'x' WHERE id = 5");
    for (statement, expected) in [
        (
            "SELECT title FROM posts WHERE id = 5",
            Err(NotLearned::WrittenMeanwhile),
        ),
        ("SELECT title FROM posts WHERE id = 6", Ok(())),
    ] {
        let record = record(&mut index, &[statement]).unwrap();
        assert_eq!(index.insert(1, begun, &record), expected, "{statement}");
    }
    write(&mut index, "CALL anything()");
    let record = record(&mut index, &["SELECT title FROM posts WHERE id = 6"]).unwrap();
    assert_eq!(
        index.insert(1, begun, &record),
        Err(NotLearned::WrittenMeanwhile)
    );
    assert!(!index.has(1), "its older record is gone");
    assert_eq!(index.insert(1, index.writes(), &record), Ok(()));
    // After more writes than are kept, nothing is known.
    let begun = index.writes();
    for _ in 0..=learned::MAX_RECENT_WRITES {
        write(&mut index, "INSERT INTO meta (post) VALUES (1)");
    }
    assert_eq!(
        index.insert(2, begun, &record),
        Err(NotLearned::WrittenMeanwhile)
    );
}

#[test]
fn page_that_more_was_written_beside_than_is_kept_is_not_learned() {
    let mut index = Index::new(schema());
    let begun = index.writes();
    let mut learns = |writes: usize| {
        let began = index.writes();
        for number in 0..writes {
            write(
                &mut index,
                &format!("DELETE FROM meta WHERE post = {number}"),
            );
        }
        let record = record(&mut index, &["SELECT title FROM posts WHERE id = 6"]).unwrap();
        index.insert(1, began, &record)
    };
    assert_eq!(learns(MAX_RECENT_WRITES), Ok(()));
    assert_eq!(
        learns(MAX_RECENT_WRITES + 1),
        Err(NotLearned::WrittenMeanwhile)
    );
    let record = record(&mut index, &["SELECT title FROM posts WHERE id = 6"]).unwrap();
    let long_ago = index.insert(1, begun, &record);
    assert_eq!(long_ago, Err(NotLearned::WrittenMeanwhile));
}

/// A worker that is taken over may tell any statement, and Mayfly would run it.
#[test]
fn statement_that_does_more_than_read_tables_is_never_run_again() {
    let index = Index::new(schema());
    let session = session();
    for text in [
        "SELECT title FROM posts INTO OUTFILE '/tmp/x'",
        "SELECT title FROM posts INTO DUMPFILE '/tmp/x'",
        "SELECT title INTO @a FROM posts",
        "SELECT title FROM posts LIMIT 1 INTO @a",
        "SELECT SLEEP(100) FROM posts",
        "SELECT BENCHMARK(1000000000, SHA1('a')) FROM posts",
        "SELECT LOAD_FILE('/etc/passwd') FROM posts",
        "SELECT GET_LOCK('a', 100) FROM posts",
        "SELECT blog.anything(id) FROM posts",
        "SELECT NEXTVAL(numbers) FROM posts",
        "SELECT NEXT VALUE FOR numbers FROM posts",
        "SELECT title FROM posts FOR UPDATE",
        "SELECT title FROM posts LOCK IN SHARE MODE",
        "SELECT title FROM posts PROCEDURE ANALYSE()",
        "SELECT title FROM posts; DROP TABLE posts",
        "SELECT title FROM posts /*!50000 INTO OUTFILE '/tmp/x' */",
        "SELECT title FROM posts /*M! FOR UPDATE */",
        "SELECT title FROM posts -- a\n; DROP TABLE posts",
        "EXPLAIN DELETE FROM posts",
        "ANALYZE DELETE FROM posts",
        "HANDLER posts READ FIRST",
        "CALL anything()",
        "DELETE FROM posts RETURNING id",
        "INSERT INTO posts (id) VALUES (1) RETURNING id",
        "SET STATEMENT max_statement_time = 0 FOR SELECT title FROM posts",
        "KILL 1",
        "SHUTDOWN",
    ] {
        let mut record = PageRecord::new(NOW);
        let told = SeenStatement {
            again_in: Some(TEXT),
            ..seen(text, &session)
        };
        let is_learned = record.add(&mut index.shapes().lock(), &told).is_ok();
        assert!(!is_learned || record.count() == 0, "{text}");
    }
}

#[test]
fn pages_say_why_they_are_not_learned() {
    let mut index = Index::new(schema());
    let many = vec!["SELECT 1"; MAX_STATEMENTS + 1];
    let long = format!(
        "SELECT title FROM posts WHERE title = '{}'",
        "a".repeat(MAX_RECORD_BYTES)
    );
    for (statements, expected) in [
        (
            &["SELECT title FROM posts WHERE id = 1795602000"][..],
            Some(NotLearned::Clock),
        ),
        (
            &["SELECT title FROM posts WHERE title < '2026-11-25 10:20:00'"],
            Some(NotLearned::Clock),
        ),
        (
            &["SELECT title FROM posts WHERE title < '2025-11-25 10:20:00'"],
            None,
        ),
        (&["SELECT FOUND_ROWS()"], Some(NotLearned::Connection)),
        (
            &[
                "SELECT SQL_CALC_FOUND_ROWS id FROM posts LIMIT 1",
                "SELECT FOUND_ROWS()",
            ],
            None,
        ),
        (
            &[
                "SELECT id FROM posts",
                "SET @a = 1",
                "SELECT FOUND_ROWS() AS n",
            ],
            Some(NotLearned::Connection),
        ),
        (
            &["UPDATE posts SET views = 1 WHERE id = 1"],
            Some(NotLearned::OwnWrite),
        ),
        (&["SELECT id FROM posts FOR UPDATE"], Some(NotLearned::Lock)),
        (&many, Some(NotLearned::TooManyStatements)),
        (&[&long], Some(NotLearned::RecordTooLong)),
    ] {
        let found = record(&mut index, statements).err();
        assert_eq!(
            found,
            expected,
            "{:?}",
            statements.first().map(|it| &it[..it.len().min(80)])
        );
    }
    let words: std::collections::HashSet<_> = NotLearned::ALL.map(NotLearned::word).into();
    assert_eq!(words.len(), NotLearned::ALL.len());
}

#[test]
fn pages_name_the_tables_that_they_read() {
    let mut index = Index::new(schema());
    let join = "SELECT p.id FROM posts p JOIN meta m ON m.post = p.id";
    let record = record(&mut index, &["SELECT 1", join, "SELECT id FROM posts"]).unwrap();
    assert_eq!(record.tables(&schema()), ["blog.meta", "blog.posts"]);
}

#[test]
fn found_rows_are_part_of_the_result_before() {
    let mut index = Index::new(schema());
    let session = session();
    let with = |rows: u64, index: &mut Index| {
        let mut record = PageRecord::new(NOW);
        let statement = seen(
            "SELECT SQL_CALC_FOUND_ROWS id FROM posts WHERE author = 1",
            &session,
        );
        record.add(&mut index.shapes().lock(), &statement).unwrap();
        let result = SeenStatement {
            result: rows,
            ..seen("SELECT FOUND_ROWS()", &session)
        };
        record.add(&mut index.shapes().lock(), &result).unwrap();
        assert_eq!(record.count(), 1);
        record
    };
    let (one, other) = (with(1, &mut index), with(2, &mut index));
    index.insert(1, 0, &one).unwrap();
    index.insert(2, 0, &other).unwrap();
    write(&mut index, "DELETE FROM posts WHERE author = 2");
    assert_eq!(cause(&mut index, 1), None);
    write(&mut index, "DELETE FROM posts WHERE author = 1");
    assert_eq!(cause(&mut index, 1), Some(SuspicionCause::Row));
}

#[test]
fn changed_settings_and_databases_are_purged_by_a_match() {
    let mut index = Index::new(schema());
    let mut session = session();
    let mut record = PageRecord::new(NOW);
    let mut page = 0;
    for (set, must_purge) in [
        ("SET NAMES utf8mb4", false),
        ("SET @a = 1", false),
        ("SET time_zone = '+01:00'", true),
    ] {
        session.follow(set.as_bytes());
        record
            .add(&mut index.shapes().lock(), &seen(set, &session))
            .unwrap();
        let statement = seen("SELECT title FROM posts WHERE id = 5", &session);
        record.add(&mut index.shapes().lock(), &statement).unwrap();
        page += 1;
        index.insert(page, index.writes(), &record).unwrap();
        write(&mut index, "DELETE FROM posts WHERE id = 5");
        assert_eq!(
            index.suspicion(page).unwrap().must_purge,
            must_purge,
            "{set}"
        );
    }
}

#[test]
fn transactions_and_prepared_values_are_matched() {
    let mut index = Index::new(schema());
    let session = session();
    let mut record = PageRecord::new(NOW);
    let statement = SeenStatement {
        parameters: &[Value::Integer(5)],
        ..seen("SELECT title FROM posts WHERE id = ?", &session)
    };
    record.add(&mut index.shapes().lock(), &statement).unwrap();
    let mut transaction = learned::Transaction::default();
    let text = b"UPDATE posts SET title = 'x' WHERE id = ?";
    for value in [6, 5] {
        let mut shapes = index.shapes().lock();
        let effect = shapes
            .understand(text, &[Value::Integer(value)], &session)
            .effect;
        transaction.add(&effect);
    }
    index.insert(1, 0, &record).unwrap();
    let effect = transaction.end();
    index.written(effect);
    assert_eq!(cause(&mut index, 1), Some(SuspicionCause::Row));
}

const READS: &[&str] = &[
    "SELECT title FROM posts WHERE id = {}",
    "SELECT title FROM posts WHERE id IN ({}, {})",
    "SELECT title FROM posts WHERE title = '{}'",
    "SELECT title FROM posts WHERE title = '{}' AND author = {} AND status = 'publish'",
    "SELECT title FROM posts WHERE author > {}",
    "SELECT title FROM posts WHERE title = {}",
    "SELECT title FROM posts WHERE title IN ('{}', {})",
    "SELECT p.title FROM posts p JOIN meta m ON m.post = p.id WHERE m.name = '{}'",
    "SELECT p.title FROM posts p LEFT JOIN meta m ON m.post = p.id AND m.name = '{}' WHERE p.id = {}",
    "SELECT COUNT(*) FROM posts WHERE status = 'publish'",
    "SELECT a.id FROM posts a, posts b WHERE a.id = {} AND b.author = {}",
    "SELECT id FROM posts WHERE author = NULL",
];
const WRITES: &[&str] = &[
    "UPDATE posts SET title = '{}' WHERE id = {}",
    "UPDATE posts SET views = {} WHERE id = {}",
    "UPDATE posts SET author = {} WHERE author = {}",
    "UPDATE posts SET title = '{}' WHERE title IN ('{}', '{}')",
    "DELETE FROM posts WHERE title = '{}'",
    "INSERT INTO posts (title, author, status) VALUES ('{}', {}, 'draft'), ('{}', {}, 'publish')",
    "INSERT INTO meta (post, name) VALUES ({}, '{}')",
    "DELETE FROM meta",
    "REPLACE INTO posts (id, title) VALUES ({}, '{}')",
];

fn filled(template: &str, values: &[u8]) -> String {
    let mut text = String::new();
    let mut pieces = template.split("{}");
    text.push_str(pieces.next().unwrap());
    for (piece, value) in pieces.zip(values.iter().cycle()) {
        text.push_str(&value.to_string());
        text.push_str(piece);
    }
    text
}

fn statement(templates: &'static [&'static str]) -> impl Strategy<Value = String> {
    (0..templates.len(), prop::collection::vec(0_u8..12, 4))
        .prop_map(move |(template, values)| filled(templates[template], &values))
}

#[derive(Debug, Clone)]
enum Step {
    Learn(u32, Vec<String>),
    Remove(u32),
    Write(String),
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..12, prop::collection::vec(statement(READS), 0..4)).prop_map(|(page, it)| Step::Learn(page, it)),
        1 => (0_u32..12).prop_map(Step::Remove),
        6 => statement(WRITES).prop_map(Step::Write),
        2 => Just(Step::Look),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn index_finds_what_a_look_at_all_statements_finds(steps in prop::collection::vec(step(), 1..120)) {
        let mut index = Index::new(schema());
        // Of each page its statements, and whether one was altered since.
        let mut pages: std::collections::HashMap<u32, (Vec<QueryReading>, bool)> = Default::default();
        let mut writes = 0;
        for step in &steps {
            match step {
                Step::Learn(page, statements) => {
                    let texts: Vec<_> = statements.iter().map(|it| &it[..]).collect();
                    learn(&mut index, *page, &texts);
                    let readings = statements.iter().filter_map(|text| {
                        match index.shapes().lock().understand(text.as_bytes(), &[], &session()).reading {
                            Reading::Tables(reading) => Some(reading),
                            _ => None,
                        }
                    });
                    pages.insert(*page, (readings.collect(), false));
                }
                Step::Remove(page) => {
                    index.remove(*page);
                    pages.remove(page);
                }
                Step::Write(text) => {
                    let effect = index.shapes().lock().understand(text.as_bytes(), &[], &session()).effect;
                    prop_assert_ne!(&effect, &Effect::Everything);
                    for (readings, is_altered) in pages.values_mut() {
                        *is_altered |= readings.iter().any(|it| may_alter(it, &effect));
                    }
                    index.written(effect);
                    writes += 1;
                }
                Step::Look => {}
            }
            // Before stamps are let go.
            if writes % 16 == 0 || matches!(step, Step::Look) {
                for (page, (_, is_altered)) in &pages {
                    prop_assert_eq!(index.suspicion(*page).is_some(), *is_altered, "page {}", page);
                }
            }
        }
        for page in pages.keys() {
            index.remove(*page);
        }
        prop_assert_eq!(index.count(), 0);
        prop_assert!(index.is_empty(), "something is left");
    }
}

#[test]
fn a_statement_that_returned_the_same_makes_its_pages_fresh_as_of_the_write_before_it_ran() {
    let mut index = Index::new(schema());
    let session = session();
    for page in [1, 2] {
        let mut record = PageRecord::new(NOW);
        let statement = SeenStatement {
            again_in: Some(TEXT),
            ..seen("SELECT title FROM posts WHERE id = 5", &session)
        };
        record.add(&mut index.shapes().lock(), &statement).unwrap();
        index.insert(page, index.writes(), &record).unwrap();
    }
    let update = "UPDATE posts SET title = 'x' WHERE id = 5";
    let first = write(&mut index, update);
    assert!(index.suspicion(1).unwrap().is_open);
    let to_run = index.to_run(1).remove(0);
    let expected = RunText {
        text: "SELECT title FROM posts WHERE id = 5".into(),
        values: None,
    };
    assert_eq!(to_run.again.texts, [expected]);
    let effect = index
        .shapes()
        .lock()
        .understand(update.as_bytes(), &[], &session)
        .effect;
    assert!(index.concerns(&to_run, &effect));
    // A write that came while it ran is not in what it read.
    let second = write(&mut index, update);
    index.ran(&to_run, first, true);
    assert_eq!(index.suspicion(1).unwrap().write, second);
    index.ran(&to_run, second, true);
    assert_eq!((index.suspicion(1), index.suspicion(2)), (None, None));
    let third = write(&mut index, update);
    index.ran(&to_run, third, false);
    let suspicion = index.suspicion(2).unwrap();
    assert_eq!(
        (suspicion.cause, suspicion.is_open),
        (SuspicionCause::RunAgain, false)
    );
    // Nothing else is decided by what was run: not a CALL, and not a page whose statement is not run again.
    learn(&mut index, 3, &["SELECT title FROM posts WHERE id = 5"]);
    write(&mut index, update);
    assert!(!index.suspicion(3).unwrap().is_open);
    write(&mut index, "CALL anything()");
    assert!(!index.suspicion(1).unwrap().is_open);
}

#[test]
fn prepared_statement_is_run_again_with_its_values_and_not_where_one_is_unknown() {
    let mut index = Index::new(schema());
    let session = session();
    let prepared = RunIn {
        session: 3,
        is_prepared: true,
    };
    let text = "SELECT title FROM posts WHERE id = ? AND status = ?";
    let mut learn = |page: u32, values: &[Value]| {
        let mut record = PageRecord::new(NOW);
        let statement = SeenStatement {
            again_in: Some(prepared),
            parameters: values,
            ..seen(text, &session)
        };
        record.add(&mut index.shapes().lock(), &statement)?;
        index.insert(page, index.writes(), &record)
    };
    let status = Value::Text(b"publish".to_vec());
    let [five, six] = [5, 6].map(|id| [Value::Integer(id), status.clone()]);
    learn(1, &five).unwrap();
    learn(2, &six).unwrap();
    learn(3, &[Value::Integer(5), Value::Null]).unwrap();
    learn(4, &[Value::Integer(5), Value::Text(vec![b'x'; 20_000])]).unwrap();
    let unknown = learn(5, &[Value::Integer(5), Value::Other]);
    assert_eq!(unknown, Err(NotLearned::Clock));
    write(&mut index, "UPDATE posts SET title = 'x'");
    let with_null = [Value::Integer(5), Value::Null];
    for (page, expected) in [
        (1, Some(&five)),
        (2, Some(&six)),
        (3, Some(&with_null)),
        // It is too long.
        (4, None),
    ] {
        let Some(suspicion) = index.suspicion(page) else {
            assert_eq!(page, 3, "no status is NULL");
            continue;
        };
        assert_eq!(suspicion.is_open, expected.is_some(), "{page}");
        let to_run = index.to_run(page);
        let to_run = to_run
            .first()
            .map(|it| (it.again.session, &it.again.texts[0]));
        let expected = expected.map(|it| RunText {
            text: text.into(),
            values: Some(it.as_slice().into()),
        });
        assert_eq!(to_run, expected.as_ref().map(|it| (3, it)), "{page}");
    }
}

/// A page of two statements that was made before this index was.
fn read_back(index: &mut Index, page: u32, ids: [u32; 2]) {
    let session = session();
    let mut record = PageRecord::new(NOW);
    for id in ids {
        let text = format!("SELECT title FROM posts WHERE id = {id}");
        let statement = SeenStatement {
            again_in: Some(TEXT),
            ..seen(&text, &session)
        };
        record.add(&mut index.shapes().lock(), &statement).unwrap();
    }
    index.read_back(page, &record).unwrap();
}

#[test]
fn page_that_was_read_back_is_in_doubt_until_each_statement_was_run_since() {
    let mut index = Index::new(schema());
    read_back(&mut index, 1, [1, 2]);
    assert_eq!(index.texts_of_page(1), Some(2));
    let suspicion = index.suspicion(1).expect("nothing was run");
    assert!(suspicion.is_open && suspicion.cause == SuspicionCause::ReadBack);
    let to_run = index.to_run(1);
    assert_eq!(to_run.len(), 2);
    index.ran(&to_run[0], index.writes(), true);
    assert_eq!(index.to_run(1).len(), 1);
    assert!(index.suspicion(1).is_some(), "one is left");
    index.ran(&to_run[1], index.writes(), true);
    assert_eq!(index.suspicion(1), None);
    // Statements that were run stand for another page as well, until a write concerns them.
    read_back(&mut index, 2, [1, 3]);
    assert_eq!(index.to_run(2).len(), 1, "one is known");
    write(&mut index, "UPDATE posts SET title = 'x' WHERE id = 1");
    assert_eq!(index.to_run(2).len(), 2);
    // A result is one of before what was written since.
    let as_of = index.writes();
    write(&mut index, "UPDATE posts SET title = 'y' WHERE id = 1");
    for statement in index.to_run(2) {
        index.ran(&statement, as_of, true);
    }
    assert_eq!(index.to_run(2).len(), 1);
    let suspicion = index.suspicion(2).expect("it was written since");
    assert_eq!(suspicion.cause, SuspicionCause::Row);
    // From its first "fresh" on it is as others are.
    let statement = index.to_run(2).remove(0);
    index.ran(&statement, index.writes(), true);
    assert_eq!(index.suspicion(2), None);
    write(&mut index, "UPDATE posts SET title = 'z' WHERE id = 4");
    assert_eq!(index.suspicion(2), None);
}

#[test]
fn page_that_was_read_back_ends_where_a_statement_differs_or_anything_was_written() {
    let mut index = Index::new(schema());
    read_back(&mut index, 1, [1, 2]);
    let statement = index.to_run(1).remove(0);
    index.ran(&statement, index.writes(), false);
    assert!(!index.suspicion(1).expect("it differs").is_open);
    read_back(&mut index, 2, [3, 4]);
    for statement in index.to_run(2) {
        index.ran(&statement, index.writes(), true);
    }
    index.written(Effect::Everything);
    assert!(!index.suspicion(2).expect("anything was written").is_open);
    read_back(&mut index, 3, [3, 4]);
    assert_eq!(
        index.to_run(3).len(),
        2,
        "what was run before does not count"
    );
}
