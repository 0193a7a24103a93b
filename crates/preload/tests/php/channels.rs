//! PHP answers as without the library, whatever becomes of the channel.

use std::time::{Duration, Instant};

use crate::peers::{HOLD_MILLISECONDS, Manner, Mayfly, Php, ReceivedMessage, pdo};

fn page() -> String {
    pdo("") + "for ($i = 0; $i < 20; $i++) { $db->exec('UPDATE t SET n = n WHERE id = 97'); }
               print_r($db->query('SELECT 5')->fetchAll()); echo str_repeat('x', 30000); error_log('said');"
}

#[test]
fn page_is_the_same_whatever_the_channel_does() {
    let plain = Php::without_library();
    let expected = plain.run(7, &page());
    assert!(expected.contains("xxx"));
    for manner in [
        Manner::Acknowledges,
        Manner::Silent,
        Manner::Garbage,
        Manner::Flood,
        Manner::Closes,
        Manner::Ends,
        Manner::Deaf,
    ] {
        let mayfly = Mayfly::listen(manner);
        let php = Php::with_library(&mayfly);
        for _ in 0..3 {
            let begun = Instant::now();
            assert_eq!(php.run(7, &page()), expected, "{manner:?}");
            // One acknowledgement is waited for in vain, then the channel is closed for a second.
            assert!(begun.elapsed() < Duration::from_secs(3), "{manner:?}");
        }
        assert!(
            !php.log().contains("exited on signal"),
            "{manner:?}: {}",
            php.log()
        );
    }
}

#[test]
fn page_is_the_same_without_anybody_at_the_channel() {
    let expected = Php::without_library().run(7, &page());
    let missing = std::path::Path::new("/nonexistent/learn");
    let long = std::path::PathBuf::from(format!("/{}", "x".repeat(200)));
    for path in [missing, &long] {
        let php = Php::start(Some(path), &[]);
        assert_eq!(php.run(7, &page()), expected, "{}", path.display());
    }
}

#[test]
fn silence_ends_the_channel_and_a_later_request_says_hello_again() {
    let mayfly = Mayfly::listen(Manner::Silent);
    let php = Php::with_library(&mayfly);
    php.run(1, &page());
    let mut received = Vec::new();
    while received.last() != Some(&ReceivedMessage::End) {
        received.push(mayfly.next());
    }
    let pid = php.worker();
    assert_eq!(
        received[0],
        ReceivedMessage::Hello {
            pid,
            is_again: false,
            unseen_extensions: vec![]
        }
    );
    assert!(
        received.contains(&ReceivedMessage::Doubt("acknowledgement")),
        "{received:?}"
    );
    let begun = Instant::now();
    while mayfly.has_nothing_to_tell() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        php.run(2, "echo 1;");
        std::thread::sleep(Duration::from_millis(50));
    }
    php.run(3, "echo 1;");
    // The first thing on the new connection has been taken by the look above: a record follows.
    assert!(mayfly.record().is_complete);
}

/// MediaWiki's `load.php` looks at a thousand files, and commits a transaction afterwards.
#[test]
fn what_does_not_fit_into_the_channel_waits_until_it_is_read() {
    let mayfly = Mayfly::listen(Manner::Slow);
    let php = Php::with_library(&mayfly);
    let code = "for ($i = 0; $i < 1000; $i++) { file_exists('/srv/' . str_repeat('a', 200) . $i); }
                fastcgi_finish_request(); $db->exec('UPDATE t SET n = n WHERE id = 97');";
    php.run(1, &(pdo("") + code));
    let (before, record) = mayfly.until_record();
    assert!(record.is_complete);
    assert!(
        matches!(before[..], [ReceivedMessage::Hello { .. }]),
        "{before:?}"
    );
    assert!(matches!(mayfly.next(), ReceivedMessage::Write { .. }));
    assert!(matches!(mayfly.next(), ReceivedMessage::Written { .. }));
}

/// The second Mayfly listens where the first did: after an upgrade, and after a crash of the process that serves.
#[test]
fn a_mayfly_in_the_place_of_another_is_told_of_a_write_before_php_knows_its_end() {
    let mayfly = Mayfly::listen(Manner::Ends);
    let php = Php::with_library(&mayfly);
    php.run(
        1,
        &(pdo("") + "$db->exec('UPDATE t SET n = n WHERE id = 97'); sleep(1);"),
    );
    let begun = Instant::now();
    assert!(matches!(
        mayfly.next(),
        ReceivedMessage::Hello {
            is_again: false,
            ..
        }
    ));
    let mut received = Vec::new();
    while !matches!(
        received.last(),
        Some(ReceivedMessage::Hello { is_again: true, .. })
    ) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{received:?}");
        received.push(mayfly.next());
    }
    assert!(
        received.contains(&ReceivedMessage::End)
            && !received
                .iter()
                .any(|it| matches!(it, ReceivedMessage::Doubt(_))),
        "{received:?}"
    );
    // The record of the same request follows, on the new connection.
    assert_eq!(mayfly.record().fetch, 1);
}

/// Answers for how many milliseconds PHP waited for the end of its write.
fn timed_write() -> String {
    pdo("")
        + "$begun = hrtime(true); $db->exec('UPDATE t SET n = n WHERE id = 97');
               echo 'took ', intdiv(hrtime(true) - $begun, 1000000);"
}

#[test]
fn php_waits_for_other_machines_longer_than_for_mayfly_alone() {
    let mayfly = Mayfly::listen(Manner::TellsNodes);
    let php = Php::with_library(&mayfly);
    php.run(1, &timed_write());
    let (before, record) = mayfly.until_record();
    assert!(record.is_complete);
    let is_doubt =
        |it: &ReceivedMessage| matches!(it, ReceivedMessage::Doubt(_) | ReceivedMessage::End);
    assert!(!before.iter().any(is_doubt), "{before:?}");
}

#[test]
fn write_that_other_machines_may_not_know_of_returns_after_they_have_asked_the_database() {
    let mayfly = Mayfly::listen(Manner::LosesNodes);
    let php = Php::with_library(&mayfly);
    let output = php.run(1, &timed_write());
    let took = output.rsplit_once("took ").expect("it says so").1;
    let took: u32 = took.trim().parse().expect("a number");
    // The clock of the library has steps of a few milliseconds.
    assert!(took >= HOLD_MILLISECONDS - 20, "{took}");
}

#[test]
fn library_leaves_no_trace_in_the_environment() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::start(Some(&mayfly.path()), &["variables_order=EGPCS"]);
    let output = php.run(7, "echo shell_exec('env'), file_get_contents('/proc/self/environ') === false, json_encode(getenv());");
    assert!(
        output.contains("PATH=") || output.contains("PWD="),
        "{output}"
    );
    for name in ["LD_PRELOAD", "MAYFLY_LEARN"] {
        assert!(!output.contains(name), "{output}");
    }
}
