//! Writes whose process died, and connections that are not shown.

use super::*;

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
