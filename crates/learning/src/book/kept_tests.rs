//! Pages that are kept until their data changes.

use super::*;

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
        // It differs, and no program has written to it.
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
