//! Tests of the entries of one node, and of their effect in the book of another.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use learned::{SchemaBuilder, SchemaQuery};

use crate::book::LearnedEnd;
use crate::book::tests::{SECOND_POST, SERVER, book, end, reads, state, write};
use crate::poll::PollAnswer;
use crate::record::ServerName;
use crate::schema_reader::ReadSchema;

const ELSEWHERE: &str = "10.0.0.1:3306";

fn post() -> WrittenPart {
    WrittenPart::Tables(BTreeSet::from([("blog".to_owned(), "post".to_owned())]))
}

fn entry(name: &str, identity: &str, part: WrittenPart) -> WrittenEntry {
    WrittenEntry {
        servers: vec![WrittenServer {
            name: name.to_owned(),
            identity: identity.to_owned(),
            part,
        }],
    }
}

/// Polls the server, which has the identity `one`.
fn polled(book: &mut Book, now: Instant) {
    let server: ServerName = SERVER.into();
    let answer = PollAnswer::of_one("blog.post", (1, "2026-11-26 10:00:00", false));
    book.polled(&server, answer, (&["blog.post".into()], now));
}

/// A book that knows a page, and has polled.
fn begin(now: Instant) -> Book {
    let mut book = book(now);
    for _ in 0..2 {
        polled(&mut book, now);
    }
    let (server, _, definitions) = book.servers().remove(0);
    let schema = crate::book::tests::schema(1);
    book.set_schema(&server, Ok(schema), definitions, now);
    book.learn(&end(&book, 1), Some(reads(&[SECOND_POST])), now);
    assert_eq!(state(&mut book, now), None);
    book
}

#[test]
fn tables_are_told_and_no_statement_or_value() {
    let now = Instant::now();
    let mut book = begin(now);
    let told = |book: &mut Book, text: &str| book.entry_of(&[write(text)], now);
    let update = "UPDATE post SET title = 'secret' WHERE id = 8";
    let expected = entry(SERVER, "one", post());
    assert_eq!(told(&mut book, update), Some(expected.clone()));
    let everything = entry(SERVER, "one", WrittenPart::Everything);
    for text in ["UPDATE unknown SET a = 1", "DELETE FROM post; SELECT 1"] {
        assert_eq!(told(&mut book, text), Some(everything.clone()), "{text}");
    }
    let definitions = entry(SERVER, "one", WrittenPart::Definitions);
    assert_eq!(told(&mut book, "DROP TABLE post"), Some(definitions));
    for text in ["BEGIN", "SET NAMES utf8mb4", "SELECT title FROM post"] {
        assert_eq!(told(&mut book, text), None, "{text}");
    }
    let all = [
        write("BEGIN"),
        write(update),
        write(update),
        write("COMMIT"),
    ];
    assert_eq!(book.entry_of(&all, now), Some(expected));
    // An identity of the server that was polled long ago counts no more.
    let later = now + Duration::from_secs(2);
    let unnamed = book.entry_of(&[write(update)], later);
    assert_eq!(unnamed, Some(entry(SERVER, "", post())));
}

#[test]
fn a_write_to_tables_that_an_account_does_not_see_is_in_none_of_its_pages() {
    let now = Instant::now();
    let (mut book, mut of_shop) = (begin(now), Book::default());
    of_shop.database(&SERVER.into());
    let mut builder = SchemaBuilder::default();
    for (query, row) in [
        (
            SchemaQuery::Tables,
            &["shop", "item", "BASE TABLE", "InnoDB"][..],
        ),
        (
            SchemaQuery::Columns,
            &["shop", "item", "id", "int", "int(11)", "0", "", "NO", ""],
        ),
        (SchemaQuery::Rights, &["%", "%"]),
    ] {
        assert!(builder.row(query, row));
    }
    let schema = ReadSchema {
        schema: Arc::new(builder.finish().unwrap()),
        ..crate::book::tests::schema(2)
    };
    of_shop.set_schema(&SERVER.into(), Ok(schema), 0, now);
    let change = SentWrite {
        session: learned::Session::new(Some("shop".to_owned()), 45),
        ..write("UPDATE item SET id = 2")
    };
    assert!(
        book.by_tables(&change).is_none(),
        "it may be anything there"
    );
    let named = of_shop.by_tables(&change).expect("its tables");
    assert_eq!(named.len(), 1);
    for write in book.understood(&change, &named) {
        book.written(&write);
    }
    assert_eq!(state(&mut book, now), None, "no page of it reads the table");
    // A write whose tables both see is understood by its statement.
    let own = write("UPDATE post SET title = 'b' WHERE id = 3");
    let named = book.by_tables(&own).expect("its tables");
    assert!(
        book.understood(&own, &named)
            .iter()
            .all(|it| it.rows_of.is_none())
    );
    book.written(&change);
    assert!(state(&mut book, now).is_some(), "nothing is said of it");
}

#[test]
fn of_a_server_that_is_not_known_each_statement_that_writes_is_everything() {
    let now = Instant::now();
    let mut book = Book::default();
    assert!(!book.knows_tables_of(&[write("COMMIT")]));
    let everything = entry(SERVER, "", WrittenPart::Everything);
    let update = "UPDATE post SET title = 'a' WHERE id = 8";
    assert_eq!(book.entry_of(&[write(update)], now), Some(everything));
    for text in ["BEGIN", "SET NAMES utf8mb4", "COMMIT"] {
        assert_eq!(book.entry_of(&[write(text)], now), None, "{text}");
    }
    assert!(begin(now).knows_tables_of(&[write("COMMIT")]));
}

#[test]
fn a_write_of_another_node_concerns_each_row_of_its_tables_on_the_same_server() {
    let now = Instant::now();
    let table =
        |name: &str| WrittenPart::Tables(BTreeSet::from([("blog".to_owned(), name.to_owned())]));
    let other_database =
        WrittenPart::Tables(BTreeSet::from([("shop".to_owned(), "post".to_owned())]));
    for (what, told, is_suspect) in [
        ("its table", entry(SERVER, "one", post()), true),
        ("by another address", entry(ELSEWHERE, "one", post()), true),
        (
            "which server is not known",
            entry(ELSEWHERE, "", post()),
            true,
        ),
        ("the same address", entry(SERVER, "other", post()), true),
        ("a new table", entry(SERVER, "one", table("new")), true),
        (
            "a database of which no page is made",
            entry(SERVER, "one", other_database),
            false,
        ),
        (
            "everything",
            entry(SERVER, "one", WrittenPart::Everything),
            true,
        ),
        ("everything anywhere", WrittenEntry::default(), true),
        (
            "heard of for the first time",
            entry(ELSEWHERE, "other", post()),
            true,
        ),
    ] {
        let mut book = begin(now);
        let moves = book.moves();
        book.written_elsewhere(&told, now);
        assert!(book.moves() > moves, "{what}");
        assert_eq!(state(&mut book, now).is_some(), is_suspect, "{what}");
    }
    let mut book = begin(now);
    book.written_elsewhere(&entry(SERVER, "one", post()), now);
    let cause = state(&mut book, now).unwrap();
    assert!(
        cause.starts_with("a write of another node to blog.post"),
        "{cause}"
    );
}

#[test]
fn a_server_that_is_known_to_be_another_one_concerns_no_page() {
    let now = Instant::now();
    let mut book = begin(now);
    let other = entry(ELSEWHERE, "other", WrittenPart::Everything);
    book.written_elsewhere(&other, now);
    let later = now + Duration::from_secs(10);
    polled(&mut book, later);
    book.learn(&end(&book, 2), Some(reads(&[SECOND_POST])), later);
    assert_eq!(state(&mut book, later), None);
    book.written_elsewhere(&other, later);
    assert_eq!(state(&mut book, later), None);
    // Without a poll it is not known which server the own one is.
    let unpolled = later + Duration::from_secs(2);
    book.written_elsewhere(&other, unpolled);
    assert!(state(&mut book, unpolled).is_some());
}

#[test]
fn a_page_that_was_begun_before_another_node_had_written_is_not_learned() {
    let now = Instant::now();
    let mut book = begin(now);
    let begun = end(&book, 2);
    book.written_elsewhere(&entry(SERVER, "one", post()), now);
    let learned = book.learn(&begun, Some(reads(&[SECOND_POST])), now);
    assert_eq!(learned, LearnedEnd::Gone);
    let again = end(&book, 2);
    let learned = book.learn(&again, Some(reads(&[SECOND_POST])), now);
    assert!(matches!(learned, LearnedEnd::Known(..)), "{learned:?}");
}

#[test]
fn definitions_of_another_node_are_read_before_the_next_page_is_learned() {
    let now = Instant::now();
    let mut book = begin(now);
    book.written_elsewhere(&entry(SERVER, "one", WrittenPart::Definitions), now);
    let (_, is_in_doubt, _) = book.servers().remove(0);
    assert!(is_in_doubt);
    book.learn(&end(&book, 2), Some(reads(&[SECOND_POST])), now);
    let state = state(&mut book, now).unwrap();
    assert!(state.starts_with("no-schema"), "{state}");
}
