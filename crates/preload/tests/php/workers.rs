//! A worker stays as it is: its memory, its time, its end.

use std::time::{Duration, Instant};

use crate::peers::{
    Connection, Manner, Mayfly, Php, ReceivedMessage, database, pdo, processor_nanoseconds,
    resident_bytes,
};

fn rounds() -> usize {
    std::env::var("PRELOAD_ROUNDS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(300)
}

/// A page with as many reads as a page of WordPress.
fn page() -> String {
    pdo("") + "$db->exec(\"SET sql_log_off = 1\");
        for ($i = 0; $i < 37; $i++) { $db->query(\"SELECT t.*, '$i' AS x FROM t WHERE n IN (1, 2, 3) AND (name = 'one' OR name LIKE '%t%') LIMIT 10\")->fetchAll(); }
        for ($i = 0; $i < 200; $i++) { file_exists(\"/nonexistent/$i\"); }"
}

#[test]
fn worker_does_not_grow() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    php.write("page.php", &page());
    let pid = php.worker();
    let mut connection = Connection::open(&php);
    let mut run = |count: usize| {
        for _ in 0..count {
            connection
                .get(&php, "page.php", &[("MAYFLY_FETCH", "5")])
                .expect("a page");
            assert_eq!(mayfly.record().statements.len(), 38);
        }
    };
    run(50);
    let before = resident_bytes(pid);
    run(rounds());
    let after = resident_bytes(pid);
    println!("worker: {before} bytes, after {} pages {after}", rounds());
    assert_eq!(php.worker(), pid, "{}", php.log());
    assert!(after < before + (256 << 10), "{before} {after}");
}

/// Processor time of the worker, which other load does not make longer by much; the acknowledgement's way to
/// Mayfly and back comes on top. Printed, and bounded loosely.
#[test]
fn page_and_write_cost_little() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let [with, without] = [Php::with_library(&mayfly), Php::without_library()];
    let update = "$db->exec('UPDATE t SET n = n WHERE id = 96');";
    let writes = format!(
        "{} $db->exec('SET sql_log_off = 1'); for ($i = 0; $i < 50; $i++) {{ {update} }}",
        pdo("")
    );
    let mut medians = Vec::new();
    for (name, code, parts, rounds) in [
        ("page", &page(), 1, rounds()),
        ("write", &writes, 50, rounds() / 10),
    ] {
        let mut times = [Vec::new(), Vec::new()];
        for php in [&with, &without] {
            php.write("cost.php", code);
        }
        for _ in 0..rounds {
            for (php, times) in [&with, &without].iter().zip(&mut times) {
                let before = processor_nanoseconds(php.worker());
                php.get("cost.php", &[("MAYFLY_FETCH", "5")]);
                times.push((processor_nanoseconds(php.worker()) - before) / parts);
            }
        }
        times.iter_mut().for_each(|it| it.sort_unstable());
        let [with, without] = times.map(|it| it[it.len() / 2]);
        println!("{name}: {with} ns with the library, {without} ns without, median of {rounds}");
        medians.push(Duration::from_nanos(with.saturating_sub(without)));
    }
    assert!(medians[0] < Duration::from_millis(2), "{medians:?}");
    assert!(medians[1] < Duration::from_millis(1), "{medians:?}");
}

#[test]
fn killed_worker_ends_its_channel_and_the_next_one_says_hello() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let first = php.worker();
    php.run(1, "echo 1;");
    assert_eq!(
        mayfly.next(),
        ReceivedMessage::Hello {
            pid: first,
            is_again: false,
            unseen_extensions: vec![]
        }
    );
    assert_eq!(mayfly.record().fetch, 1);
    php.write("end.php", "posix_kill(getmypid(), 9);");
    assert_eq!(php.try_get("end.php", &[("MAYFLY_FETCH", "2")]), None);
    assert_eq!(mayfly.next(), ReceivedMessage::End);
    let begun = Instant::now();
    while php.try_get("1.php", &[("MAYFLY_FETCH", "3")]).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert!(
        matches!(mayfly.next(), ReceivedMessage::Hello { pid, is_again: false, .. } if pid != first)
    );
    assert_eq!(mayfly.record().fetch, 3);
}

#[test]
fn extension_that_is_not_known_is_named_in_the_hello() {
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let Some(known) = an_extension() else {
        println!("left out, there is no extension to copy");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("strange.so");
    std::fs::copy(known, &copy).unwrap();
    let php = Php::start(
        Some(&mayfly.path()),
        &[&format!("extension={}", copy.display())],
    );
    php.run(1, "echo 1;");
    let received = mayfly.next();
    let names = vec!["strange.so".to_owned()];
    assert!(
        matches!(&received, ReceivedMessage::Hello { unseen_extensions, .. } if *unseen_extensions == names),
        "{received:?} {}",
        php.log()
    );
}

fn an_extension() -> Option<std::path::PathBuf> {
    let folders = std::fs::read_dir("/usr/lib/php").ok()?.flatten();
    folders
        .map(|it| it.path().join("calendar.so"))
        .find(|it| it.is_file())
}

#[test]
fn database_that_is_gone_shows_the_same_error() {
    let _ = database();
    let code = "try { new PDO('mysql:unix_socket=/nonexistent', 'a', 'b'); } catch (PDOException $e) { echo $e->getMessage(); }";
    let mayfly = Mayfly::listen(Manner::Acknowledges);
    let php = Php::with_library(&mayfly);
    let output = php.run(7, code);
    assert_eq!(output, Php::without_library().run(7, code));
    assert!(output.contains("No such file"), "errno is kept: {output}");
    assert!(mayfly.record().has_input("connection unix:/nonexistent"));
}
