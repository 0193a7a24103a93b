//! Suspect pages whose statements are run again: which round may make a page fresh.

use super::super::tests::{SECOND_POST, SERVER, book, end, reads, state, write};
use super::*;
use crate::book::{LearnedEnd, PageEnd};
use crate::pages::PageReport;
use crate::record::RunRecord;

const UPDATE: &str = "UPDATE post SET title = 'b' WHERE id = 2";

/// Reads the second post, in a session of which another connection can have one.
fn record() -> RunRecord {
    let session = Arc::new(ReplaySession {
        seed: None,
        collation: 45,
        database: Some("blog".to_owned()),
        settings: Vec::new(),
    });
    let mut record = reads(&[SECOND_POST]);
    for statement in &mut record.statements {
        statement.again_in = Some(session.clone());
    }
    record
}

/// A book with a page that is kept.
fn with_page(now: Instant) -> Book {
    let mut book = book(now);
    book.set_replays(true);
    keep(&mut book, now);
    book
}

fn keep(book: &mut Book, now: Instant) {
    let end: PageEnd = end(book, 1);
    let LearnedEnd::Known(number, _) = book.learn(&end, Some(record()), now) else {
        panic!("it is learned");
    };
    book.note_kept(number, end.mark.fetch(), now + Duration::from_secs(60));
}

fn is_fresh(book: &mut Book, now: Instant) -> bool {
    state(book, now).is_none()
}

#[test]
fn while_a_visitor_waits_statements_of_that_page_alone_are_run() {
    let now = Instant::now();
    let mut book = with_page(now);
    let mut other = end(&book, 1);
    other.page.name = b"pages\0/other".as_slice().into();
    let LearnedEnd::Known(number, _) = book.learn(&other, Some(record()), now) else {
        panic!("it is learned");
    };
    let fetch = other.mark.fetch();
    book.note_kept(number, fetch, now + Duration::from_secs(60));
    let good = Confirmation::Good(book.moves());
    assert_eq!(book.await_replay(number, fetch, now), good);
    assert!(book.awaited.is_empty());
    book.written(&write(UPDATE));
    assert_eq!(book.await_replay(number, fetch, now), Confirmation::Open);
    let round = book.next_replays(now).unwrap();
    assert_eq!(round.awaited, BTreeSet::from([number]));
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    let good = Confirmation::Good(book.moves());
    assert_eq!(book.await_replay(number, fetch, now), good);
    // The statement is that of both pages.
    assert!(book.next_replays(now).is_none() && is_fresh(&mut book, now));
}

#[test]
fn equal_results_make_the_page_fresh_and_others_end_it() {
    let now = Instant::now();
    let mut book = with_page(now);
    assert!(book.next_replays(now).is_none());
    for result in [Some(7), Some(8)] {
        keep(&mut book, now);
        book.written(&write(UPDATE));
        let round = book.next_replays(now).unwrap();
        assert_eq!(round.statements.len(), 1);
        assert!(!is_fresh(&mut book, now));
        book.replayed(&round, &[result], (Duration::ZERO, now));
        assert_eq!(is_fresh(&mut book, now), result == Some(7));
        assert!(book.next_replays(now).is_none());
    }
    let counts = book.snapshot();
    assert_eq!(
        (counts.replays, counts.freshened, counts.removed),
        ([1, 1, 0], 1, 1)
    );
    // A page that cannot be looked at ends as well, and so does one where nothing is run again.
    keep(&mut book, now);
    book.written(&write(UPDATE));
    let round = book.next_replays(now).unwrap();
    book.replayed(&round, &[None], (Duration::ZERO, now));
    assert!(!is_fresh(&mut book, now) && book.next_replays(now).is_none());
    keep(&mut book, now);
    book.set_replays(false);
    book.written(&write(UPDATE));
    assert!(book.next_replays(now).is_none());
    book.set_replays(true);
    assert!(!is_fresh(&mut book, now));
}

/// Writes went on after the last visitor had left, and so did the replays of 100 pages.
#[test]
fn statements_of_a_page_are_run_again_once_until_a_visitor_asks_for_it() {
    let now = Instant::now();
    let mut book = book(now);
    book.set_replays(true);
    let made = end(&book, 1);
    let LearnedEnd::Known(number, _) = book.learn(&made, Some(record()), now) else {
        panic!("it is learned");
    };
    book.note_kept(number, made.mark.fetch(), now + Duration::from_secs(60));
    for is_asked in [true, false, true] {
        if is_asked {
            made.mark.verdict(0);
        }
        book.written(&write(UPDATE));
        let round = book.next_replays(now);
        assert_eq!(round.is_some(), is_asked);
        if let Some(round) = round {
            book.replayed(&round, &[Some(7)], (Duration::from_secs(3), now));
            assert!(is_fresh(&mut book, now));
        }
    }
    // A visitor who waits has asked.
    book.written(&write(UPDATE));
    assert!(book.next_replays(now).is_none());
    let report = book.report(&made.page.name, now);
    let Some(PageReport::Learned { replay_percent, .. }) = report else {
        panic!("{report:?}");
    };
    assert_eq!(replay_percent, Some(10));
    book.await_replay(number, made.mark.fetch(), now);
    assert!(book.next_replays(now).is_some());
}

#[test]
fn a_write_that_is_announced_or_answered_while_statements_run_keeps_the_page_suspect() {
    let now = Instant::now();
    let mut book = with_page(now);
    let writes: Arc<[_]> = vec![write(UPDATE)].into();
    book.written(&write(UPDATE));
    let round = book.next_replays(now).unwrap();
    book.announced((1, 1), &writes, now);
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert!(!is_fresh(&mut book, now), "the next write is under way");
    assert!(book.next_replays(now).is_none(), "it waits for its end");
    book.answered((1, 1), &writes);
    let round = book.next_replays(now).unwrap();
    book.written(&write(UPDATE));
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert!(!is_fresh(&mut book, now), "written after the round began");
    let round = book.next_replays(now).unwrap();
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert!(is_fresh(&mut book, now));
}

#[test]
fn a_write_whose_process_was_killed_keeps_the_page_suspect_until_its_connection_has_gone() {
    let now = Instant::now();
    let mut book = with_page(now);
    let writes: Arc<[_]> = vec![write(UPDATE)].into();
    book.announced((1, 1), &writes, now);
    book.left_in_doubt(1, writes.to_vec(), now);
    assert!(book.next_replays(now).is_none());
    let asked = book.last_doubt();
    let listed = crate::doubts::AskedServer {
        server: SERVER,
        identifiers: &[],
        account: b"blog",
        shows_all: false,
    };
    book.connections_listed(asked, &listed, now);
    let round = book.next_replays(now).unwrap();
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert!(is_fresh(&mut book, now));
}

#[test]
fn what_no_statement_tells_ends_the_page() {
    let now = Instant::now();
    for what in ["CALL anything()", "ALTER TABLE post ADD COLUMN a INT"] {
        let mut book = with_page(now);
        book.written(&write(UPDATE));
        let round = book.next_replays(now).unwrap();
        book.written(&write(what));
        book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
        assert!(!is_fresh(&mut book, now), "{what}");
        assert!(book.next_replays(now).is_none(), "{what}");
    }
    let mut book = with_page(now);
    book.written(&write(UPDATE));
    let round = book.next_replays(now).unwrap();
    book.suspect_all("a file has changed", now, |_| true);
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert!(!is_fresh(&mut book, now));
}
