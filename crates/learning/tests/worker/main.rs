//! A pool and a process that speaks as the library in PHP does.

mod nodes;
mod peers;
mod pools;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use learn_record::{
    FileLook, FileState, FileUse, Hello, Input, InputKind, Message, RecordPart, RecordWriter,
    Statement, WriteOutcome,
};
use learning::{Learning, PageReport, PageVerdict, Reason, StoredPage};

use peers::{
    Pool, hello, is_shown, outcome, page, rules, statement, verdict, wait, why, write, written,
};

#[test]
fn a_page_without_statements_is_learned_from_its_files_and_suspect_when_one_changes() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let part = pool.folder.path().join("part.html");
    // The folder of this test may be one whose times say nothing.
    let report = pool.make(&worker, |_| {});
    assert!(matches!(report, PageReport::Learned { statements: 0, .. }));
    let report = pool.make(&worker, |record| {
        record.file(&FileLook {
            path: part.as_os_str().as_encoded_bytes(),
            by: FileUse::Written,
            state: None,
        });
    });
    assert_eq!(why(report), Reason::OwnFile);
    let report = pool.make(&worker, |record| {
        record.file(&FileLook {
            path: b"/etc/passwd",
            by: FileUse::Opened,
            state: Some(FileState {
                is_folder: false,
                modified_nanoseconds: 1,
                size: 1,
                inode: 1,
            }),
        });
    });
    assert!(matches!(report, PageReport::Learned { .. }));
    // It is another one than the worker has seen, which the next look finds.
    wait(|| {
        let counts = pool.pool.counts();
        (counts.suspect > 0).then_some(())
    });
}

#[test]
fn inputs_that_cannot_be_known_are_the_reason() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let report = pool.make(&worker, |record| {
        record.input(&Input {
            kind: InputKind::Connection,
            detail: b"127.0.0.1:6379",
        });
    });
    let PageReport::NotLearned { why, .. } = report else {
        panic!("it is learned");
    };
    assert_eq!(
        (why.reason, &why.detail[..]),
        (Reason::Elsewhere, "127.0.0.1:6379")
    );
    assert_eq!(
        pool.pool.counts().not_learned[Reason::Elsewhere as usize],
        1
    );
}

#[test]
fn a_page_of_which_nothing_is_told_says_so() {
    let pool = Pool::begin();
    let fetch = pool.pool.begin(None);
    fetch.stored(page("page"));
    let report = wait(|| pool.pool.page(b"page"));
    assert_eq!(why(report), Reason::NoRecord);
}

/// The server shows it to no visitor earlier, since it may be for the visitor whose request has made it.
#[tokio::test]
async fn a_held_page_is_shown_once_it_is_reported_or_no_report_will_come() {
    let pool = Pool::begin();
    let worker = pool.worker();
    for is_reported in [true, false] {
        let fetch = pool.pool.begin(None);
        let (mark, number) = (fetch.mark().clone(), fetch.number());
        mark.hold();
        wait(|| (verdict(&mark) == PageVerdict::Pending).then_some(()));
        fetch.stored(page("page"));
        let decided = tokio::spawn({
            let mark = mark.clone();
            async move { mark.decided().await }
        });
        if is_reported {
            let mut writer = RecordWriter::default();
            assert!(writer.send(number, |packet| worker.0.send(packet).is_ok()));
        }
        assert!(decided.await.unwrap(), "{is_reported}");
        assert_eq!(verdict(&mark), PageVerdict::Good, "{is_reported}");
        assert_eq!(mark.is_free(), !is_reported);
    }
}

#[test]
fn a_write_is_acknowledged_once_it_counts() {
    let pool = Pool::begin();
    let worker = pool.worker();
    worker.say(&write(1));
    // It may be seen by others before it is answered.
    assert_eq!(worker.answer(), Some(1));
    worker.say(&Message::Written(WriteOutcome {
        number: 1,
        error: None,
        status_after: 2,
    }));
    assert_eq!(worker.answer(), Some(1));
    assert_eq!(pool.pool.counts().writes, 1);
    // A process that is killed between the two may have written.
    worker.say(&write(2));
    drop(worker);
    wait(|| (pool.pool.counts().writes == 2).then_some(()));
}

#[test]
fn a_transaction_counts_where_the_statement_that_ends_it_begins_the_next_one() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let mut number = 0;
    let mut run = |text| {
        number += 1;
        let before = pool.pool.counts().writes;
        for message in [statement(number, text), outcome(number, true)] {
            worker.say(&message);
            assert_eq!(worker.answer(), Some(number));
        }
        pool.pool.counts().writes - before
    };
    run(b"BEGIN");
    for text in [&b"COMMIT AND CHAIN"[..], b"BEGIN"] {
        for goes_on in [
            &b"DELETE FROM post"[..],
            b"SAVEPOINT a",
            b"SELECT GET_LOCK('a', 0)",
            b"RELEASE SAVEPOINT a",
        ] {
            assert_eq!(run(goes_on), 1);
        }
        // With what the transaction has written so far.
        assert!(run(text) > 1);
    }
}

#[test]
fn a_process_that_was_heard_by_another_program_makes_all_suspect_before_it_goes_on() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let report = pool.make(&worker, |_| {});
    assert!(matches!(report, PageReport::Learned { suspect: None, .. }));
    for _ in 0..2 {
        let suspect = pool.pool.counts().matched;
        // On a connection of its own, and on one that it has.
        worker.say(&Message::Hello(Hello {
            version: learn_record::VERSION,
            pid: std::process::id(),
            is_again: true,
            is_command: false,
            wants_acknowledgement: false,
            unseen_extensions: Vec::new(),
        }));
        assert_eq!(worker.answer(), Some(0));
        assert_eq!(pool.pool.counts().matched, suspect + 1);
        let report = pool.make(&worker, |_| {});
        assert!(matches!(report, PageReport::Learned { suspect: None, .. }));
    }
}

#[test]
fn a_command_is_heard_and_makes_no_pages() {
    let pool = Pool::begin();
    let report = pool.make(&pool.worker(), |_| {});
    assert!(matches!(report, PageReport::Learned { suspect: None, .. }));
    let command = pool.connect();
    command.say(&Message::Hello(Hello {
        version: learn_record::VERSION,
        pid: std::process::id(),
        is_again: false,
        is_command: true,
        wants_acknowledgement: true,
        unseen_extensions: Vec::new(),
    }));
    assert_eq!(command.answer(), Some(0));
    // The question alone alters nothing.
    assert_eq!(pool.pool.counts().suspect, 0);
    command.say(&write(1));
    assert_eq!(command.answer(), Some(1));
    command.say(&written(1));
    assert_eq!(command.answer(), Some(1));
    assert_eq!(pool.pool.counts().refused, 0);
    let part = RecordPart {
        fetch: 3,
        is_last: true,
        bytes: &[],
    };
    command.say(&Message::RecordPart(part));
    assert_eq!(command.answer(), None);
    wait(|| (pool.pool.counts().refused == 1).then_some(()));
}

#[test]
fn hostile_workers_are_refused_and_others_are_heard() {
    let pool = Pool::begin();
    let mut refused = 0;
    let unasked = Message::Written(WriteOutcome {
        number: 9,
        error: None,
        status_after: 2,
    });
    let mut unasked_bytes = Vec::new();
    unasked.encode(&mut unasked_bytes);
    for packet in [
        &b"nonsense"[..],
        &vec![0; 70_000],
        &[1, 255, 255],
        &unasked_bytes,
    ] {
        let worker = pool.connect();
        // A packet may be longer than the system takes.
        if worker.0.send(packet).is_err() {
            continue;
        }
        assert_eq!(worker.answer(), None);
        refused += 1;
        wait(|| (pool.pool.counts().refused == refused).then_some(()));
    }
    // Parts of a record that never ends, and writes that are never ended.
    let worker = pool.worker();
    let bytes = vec![1; 60_000];
    for _ in 0..5 {
        let part = RecordPart {
            fetch: 3,
            is_last: false,
            bytes: &bytes,
        };
        let mut packet = Vec::new();
        Message::RecordPart(part).encode(&mut packet);
        let _ = worker.0.send(&packet);
    }
    wait(|| (pool.pool.counts().refused == refused + 1).then_some(()));
    let worker = pool.worker();
    for number in 0..1000 {
        let mut packet = Vec::new();
        write(number).encode(&mut packet);
        let _ = worker.0.send(&packet);
    }
    wait(|| (pool.pool.counts().refused == refused + 2).then_some(()));
    // This process is alive and was refused: what it may write is not heard.
    let report = pool.make(&pool.worker(), |_| {});
    assert_eq!(why(report), Reason::Incomplete);
}

#[test]
fn a_process_that_goes_on_without_a_word_makes_all_suspect() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let report = pool.make(&worker, |_| {});
    assert!(matches!(report, PageReport::Learned { suspect: None, .. }));
    // This process is alive: what it writes from now on is not told.
    drop(worker);
    wait(|| (pool.pool.counts().suspect == 1).then_some(()));
    let report = pool.make(&pool.worker(), |_| {});
    assert_eq!(why(report), Reason::Incomplete);
    // Until it is heard again.
    let again = pool.connect();
    again.say(&Message::Hello(Hello {
        is_again: true,
        ..hello()
    }));
    assert_eq!(again.answer(), Some(0));
    let report = pool.make(&again, |_| {});
    assert!(matches!(report, PageReport::Learned { suspect: None, .. }));
}

#[test]
fn a_page_of_a_fetch_is_shown_only_while_nothing_was_announced_since() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let before = pool.pool.begin(None);
    is_shown(before.mark());
    worker.say(&write(1));
    assert_eq!(worker.answer(), Some(1));
    assert_eq!(verdict(before.mark()), PageVerdict::Outdated);
    // Others may see the write at any moment.
    let meanwhile = pool.pool.begin(None);
    assert_eq!(verdict(meanwhile.mark()), PageVerdict::Outdated);
    worker.say(&written(1));
    assert_eq!(worker.answer(), Some(1));
    let after = pool.pool.begin(None);
    assert_eq!(verdict(after.mark()), PageVerdict::Good);
    // It stood in line until now.
    before.mark().begin();
    assert_eq!(verdict(before.mark()), PageVerdict::Good);
    // A thread that stands still does not count what it is told.
    let much_later = after.mark().verdict(clock::now() + 3_600_000);
    assert_eq!(much_later, PageVerdict::Unknown);
}

#[test]
fn page_made_with_a_database_of_addresses_is_withdrawn_and_not_kept() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let fetch = pool.pool.begin(None);
    let (number, mark) = (fetch.number(), fetch.mark().clone());
    let mut writer = RecordWriter::default();
    writer.file(&FileLook {
        path: b"/srv/data/GeoLite2-City.mmdb",
        by: FileUse::Opened,
        state: Some(FileState {
            is_folder: false,
            modified_nanoseconds: 1,
            size: 1,
            inode: 1,
        }),
    });
    assert!(writer.send(number, |packet| worker.0.send(packet).is_ok()));
    let (tell, told) = std::sync::mpsc::channel();
    fetch.stored(StoredPage {
        keep: Some(Box::new(|_, _| panic!("it is kept"))),
        withdraw: Box::new(move |path, _| tell.send(path.to_owned()).expect("a test")),
        ..page("page")
    });
    let path = told.recv_timeout(Duration::from_secs(30));
    assert_eq!(path.as_deref(), Ok("/srv/data/GeoLite2-City.mmdb"));
    wait(|| (verdict(&mark) == PageVerdict::Outdated).then_some(()));
    let report = wait(|| pool.pool.page(b"page"));
    assert_eq!(why(report), Reason::AddressDatabase);
}

/// Who comes after a voter would see that vote.
#[test]
fn page_that_looks_up_the_visitors_address_is_withdrawn() {
    let pool = Pool::begin();
    let worker = pool.worker();
    for (name, client, is_withdrawn) in [("mine", 9, true), ("other", 8, false)] {
        let fetch = pool.pool.begin(None);
        let (number, mark) = (fetch.number(), fetch.mark().clone());
        let mut writer = RecordWriter::default();
        let text = b"SELECT 1 FROM votes WHERE ip = '203.0.113.9'";
        let Message::Write(sent) = statement(1, text) else {
            panic!("it is a write");
        };
        let session = writer.session(&sent.session);
        writer.statement(&Statement {
            session,
            kind: sent.kind,
            text,
            is_complete: true,
            parameters: Vec::new(),
            outcomes: Vec::new(),
            status_before: 2,
            status_after: 2,
            write: 0,
        });
        assert!(writer.send(number, |packet| worker.0.send(packet).is_ok()));
        let (tell, told) = std::sync::mpsc::channel();
        fetch.stored(StoredPage {
            clients: vec![std::net::Ipv4Addr::new(203, 0, 113, client).into()],
            withdraw: Box::new(move |why, _| tell.send(why.to_owned()).expect("a test")),
            ..page(name)
        });
        let report = wait(|| pool.pool.page(name.as_bytes()));
        assert_eq!(why(report) == Reason::AddressDatabase, is_withdrawn);
        let statement = told.recv_timeout(Duration::from_secs(30)).ok();
        let expected = is_withdrawn
            .then(|| "SELECT ? FROM votes WHERE ip = ? (statements are not run again)".to_owned());
        assert_eq!(statement, expected);
        wait(|| ((verdict(&mark) == PageVerdict::Outdated) == is_withdrawn).then_some(()));
    }
}

#[test]
fn a_page_that_is_known_is_kept_once_and_shown_until_something_may_have_changed() {
    let pool = Pool::begin();
    let worker = pool.worker();
    let kept = Arc::new(AtomicUsize::new(0));
    let make = |most: Duration, inputs: &[Input<'static>]| {
        let fetch = pool.pool.begin(None);
        let (number, mark, kept) = (fetch.number(), fetch.mark().clone(), kept.clone());
        let mut writer = RecordWriter::default();
        inputs.iter().for_each(|input| writer.input(input));
        assert!(writer.send(number, |packet| worker.0.send(packet).is_ok()));
        let name = format!("page {number}");
        fetch.stored(StoredPage {
            most,
            keep: Some(Box::new(move |time, _| {
                (kept.fetch_add(1, Ordering::Relaxed) == 0).then_some(time)
            })),
            ..page(&name)
        });
        wait(|| pool.pool.page(name.as_bytes()));
        mark
    };
    let hour = Duration::from_secs(3600);
    let known = make(hour, &[]);
    is_shown(&known);
    wait(|| (pool.pool.counts().kept == 1).then_some(()));
    // It reads no table.
    worker.say(&write(1));
    assert_eq!(worker.answer(), Some(1));
    worker.say(&written(1));
    assert_eq!(worker.answer(), Some(1));
    is_shown(&known);
    // Of this one nothing is known: it has its ordinary lifetime, whatever happens.
    let free = make(
        hour,
        &[Input {
            kind: InputKind::Connection,
            detail: b"127.0.0.1:6379",
        }],
    );
    is_shown(&free);
    // This process is alive: what it writes from now on is not told.
    drop(worker);
    wait(|| (verdict(&known) == PageVerdict::Outdated).then_some(()));
    assert_eq!(verdict(&free), PageVerdict::Good);
    assert_eq!(kept.load(Ordering::Relaxed), 1);
    assert_eq!(pool.pool.counts().removed, 1);
}

#[test]
fn pages_of_a_pool_that_a_reload_has_ended_are_not_shown() {
    let pool = Pool::begin();
    let fetch = pool.pool.begin(None);
    is_shown(fetch.mark());
    let mark = fetch.mark().clone();
    drop(fetch);
    let next = Learning::renew(Some(&*pool.learning), HashMap::new(), |_| rules()).unwrap();
    assert_eq!(verdict(&mark), PageVerdict::Outdated);
    assert!(next.pool("site").is_none());
}
