//! Pages that are read from disk: what has to be known before one may be shown, and what keeps it from being so.

use super::super::tests::{
    SECOND_POST, SERVER, book, end, kept, poll, polled_book, read_again, reads, see, state, write,
};
use super::*;
use crate::book::{Confirmation, LearnedEnd, PageEnd};
use crate::record::{Reason, WhyNot};
use crate::replay::ReplaySession;

const BEGAN: i64 = 1_700_000_000_000_000_000;

fn run() -> RunRecord {
    let session = Arc::new(ReplaySession {
        seed: Some(1),
        collation: 45,
        database: Some("blog".to_owned()),
        settings: Vec::new(),
    });
    let mut run = reads(&[SECOND_POST]);
    for statement in &mut run.statements {
        statement.again_in = Some(session.clone());
    }
    run.files = vec![file("/srv/part.html", 5)];
    run
}

fn file(path: &str, modified: i64) -> SeenFile {
    SeenFile {
        path: path.into(),
        state: Some(FileState {
            modified,
            bytes: 1,
            inode: 2,
        }),
    }
}

fn page() -> PageReadBack {
    PageReadBack {
        name: b"pages\0/".as_slice().into(),
        fetch: 7,
        digest: 1,
        address: String::new(),
        age: Duration::from_secs(10),
        left: Duration::from_secs(50),
        server: 1,
        began: BEGAN,
        scripts: vec![file("/srv/index.php", 5)],
        asked: Arc::new(AtomicBool::new(true)),
    }
}

/// A book of which the tables are known and polled, where statements are run again.
fn known_book(now: Instant) -> Book {
    let mut book = polled_book(now);
    book.set_replays(true);
    // One more look: what was asked for the first time counts as written.
    see(&mut book, poll(1, "10:00:00", false), now);
    book
}

fn run_all(book: &mut Book, result: u64, now: Instant) {
    let round = book.next_replays(now).expect("a statement is in doubt");
    let results = vec![Some(result); round.statements.len()];
    book.replayed(&round, &results, (Duration::ZERO, now));
}

#[test]
fn page_is_shown_once_its_server_is_known_and_its_statements_returned_the_same() {
    let now = Instant::now();
    let mut book = Book::default();
    book.set_replays(true);
    assert_eq!(book.read_back(&page(), &run(), now), Err(Missing::Schema));
    read_again(&mut book, now);
    assert_eq!(book.read_back(&page(), &run(), now), Err(Missing::Poll));
    see(&mut book, poll(1, "10:00:00", false), now);
    // The tables may have changed between the reading and the poll.
    assert_eq!(book.read_back(&page(), &run(), now), Err(Missing::Schema));
    read_again(&mut book, now);
    let number = book.read_back(&page(), &run(), now).unwrap();
    assert_eq!(book.confirm(number, 7, now), Confirmation::Open);
    let why = state(&mut book, now).unwrap();
    assert_eq!(why, "it was read from disk");
    run_all(&mut book, 7, now);
    let good = Confirmation::Good(book.moves());
    assert_eq!(book.confirm(number, 7, now), good);
    // For as long as was left.
    let later = now + Duration::from_secs(50);
    assert_eq!(book.confirm(number, 7, later), Confirmation::Outdated);
    // From here on it is as others are.
    book.files_changed(
        &[crate::files::ChangedFile {
            number: 1,
            state: None,
        }],
        now,
    );
    assert_eq!(book.confirm(number, 7, now), Confirmation::Outdated);
}

#[test]
fn result_of_before_a_write_does_not_count_and_another_result_ends_the_page() {
    let now = Instant::now();
    let mut book = known_book(now);
    let number = book.read_back(&page(), &run(), now).unwrap();
    let round = book.next_replays(now).unwrap();
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    book.replayed(&round, &[Some(7)], (Duration::ZERO, now));
    assert_eq!(book.confirm(number, 7, now), Confirmation::Open);
    let under_way: Arc<[_]> = [write("UPDATE post SET title = 'b' WHERE id = 2")].into();
    book.announced((1, 1), &under_way, now);
    assert!(book.next_replays(now).is_none(), "it is under way");
    book.answered((1, 1), &under_way);
    run_all(&mut book, 7, now);
    let good = Confirmation::Good(book.moves());
    assert_eq!(book.confirm(number, 7, now), good);
    let other = PageReadBack {
        name: b"pages\0/other".as_slice().into(),
        ..page()
    };
    let other = book.read_back(&other, &run(), now).unwrap();
    let is_other_good = book.confirm(other, 7, now);
    assert_eq!(is_other_good, good, "the statement was run a moment ago");
    book.remove(other);
    book.remove(number);
    let number = book.read_back(&page(), &run(), now).unwrap();
    run_all(&mut book, 8, now);
    assert_eq!(book.confirm(number, 7, now), Confirmation::Outdated);
}

#[test]
fn page_is_refused_whose_past_is_not_known_in_full() {
    let now = Instant::now();
    let refused = |name: &str, change: &dyn Fn(&mut Book, &mut PageReadBack, &mut RunRecord)| {
        let (mut book, mut page, mut run) = (known_book(now), page(), run());
        change(&mut book, &mut page, &mut run);
        let read = book.read_back(&page, &run, now);
        assert_eq!(read, Err(Missing::Refused), "{name}");
        assert!(book.pages.named(b"pages\0/x").is_none());
    };
    refused("other tables", &|_, page, _| page.server = 2);
    refused("nothing is run again", &|book, _, _| {
        book.set_replays(false)
    });
    refused("a worker is not heard", &|book, _, _| {
        book.note_unheard(1, "")
    });
    refused("a worker was not heard", &|book, _, _| {
        book.note_heard_again(1, now)
    });
    refused("another server", &|_, _, run| {
        run.statements[0].server = "10.0.0.1:3306".into()
    });
    refused("two servers", &|book, _, _| {
        book.database(&"10.0.0.1:3306".into());
    });
    refused("a statement that cannot be run", &|_, _, run| {
        run.statements[0].again_in = None;
    });
    refused("a statement that is not understood", &|_, _, run| {
        run.statements[0].text = b"SELECT RAND()".to_vec();
    });
    refused("an obstacle", &|_, _, run| {
        run.obstacle = Some(WhyNot::new(Reason::Program, ""));
    });
    refused("a file is another", &|book, _, _| {
        book.files.see(&file("/srv/part.html", 6));
    });
    refused("a script is another", &|book, _, _| {
        book.files.see(&file("/srv/index.php", 6));
    });
    refused("a script has changed a moment ago", &|book, _, _| {
        book.code_changed_at = Some(now);
    });
    refused("PHP has made it anew", &|book, page, _| {
        let end: PageEnd = end(book, 1);
        kept(book, &end, reads(&[SECOND_POST]), now);
        page.fetch = 0;
    });
}

#[test]
fn page_is_written_if_all_of_it_can_be_known_again() {
    let now = Instant::now();
    let mut book = known_book(now);
    let keep = |book: &mut Book, run: RunRecord| {
        let end = end(book, 1);
        match kept(book, &end, run, now) {
            LearnedEnd::Known(number, _) => number,
            other => panic!("{other:?}"),
        }
    };
    let number = keep(&mut book, run());
    let written = book.page_to_write((number, 1)).unwrap();
    assert_eq!((written.server, written.texts, written.digest), (1, 1, 1));
    assert_eq!(written.lasts, Duration::from_secs(60));
    assert!(book.page_to_write((number, 2)).is_none(), "another fetch");
    assert!(book.scripts().is_empty(), "the part is no script");
    book.see_code(&[file("/srv/index.php", 5)], now);
    assert_eq!(book.scripts().len(), 1);
    book.note_heard_again(1, now);
    let written = book.page_to_write((number, 1));
    assert!(written.is_none(), "a script may be missing");
    let mut book = known_book(now);
    let number = keep(&mut book, reads(&[SECOND_POST]));
    let written = book.page_to_write((number, 1));
    assert!(written.is_none(), "it cannot be run again");
}

#[test]
fn page_that_ended_after_a_short_time_is_known() {
    let now = Instant::now();
    let mut book = known_book(now);
    let name = b"pages\0/";
    let end = end(&book, 1);
    let LearnedEnd::Known(number, _) = kept(&mut book, &end, run(), now) else {
        panic!("it is kept");
    };
    book.note_kept(number, 1, now + Duration::from_secs(60));
    assert!(!book.ended_early(name, now), "it is good");
    book.written(&write("UPDATE post SET title = 'b' WHERE id = 2"));
    assert!(book.ended_early(name, now));
    assert!(!book.ended_early(name, now + LIVED_SHORT));
    assert!(!book.ended_early(b"pages\0/other", now));
}

#[test]
fn page_of_files_alone_is_good_at_once() {
    let now = Instant::now();
    let mut book = book(now);
    book.set_replays(true);
    let (mut page, mut run) = (page(), run());
    run.statements.clear();
    page.server = 0;
    let number = book.read_back(&page, &run, now).unwrap();
    let good = Confirmation::Good(book.moves());
    assert_eq!(book.confirm(number, 7, now), good);
    assert_eq!(&*book.databases[0].server, SERVER);
}
