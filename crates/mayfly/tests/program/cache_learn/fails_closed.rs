//! Facts that must not be known, or not any more: each row of "What fails closed" in `docs/design/2026-11-26-replay.md`
//! that takes PHP and MariaDB themselves.

use std::time::Instant;

use control::explain::{LearnedPart, LearnedState};
use testkit::mariadb::MariaDb;
use testkit::process::{Signal, children, is_root, send_signal, suspend, uid};
use testkit::running::RunningServer;
use testkit::serving::open_to_all;
use testkit::wait::{TIMEOUT, until};

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::{begin, configuration};
use super::{PAUSE, explained, learned, number};
use crate::program;

async fn start(site: &DatabaseSite) -> RunningServer {
    let (main, http) = configuration(site, "1ms");
    RunningServer::start(program(), &main, &http).await
}

async fn part(server: &RunningServer, page: &str) -> LearnedPart {
    explained(server, page).await.learned.expect("a part")
}

/// Asserts that the very next answer has the database's version.
async fn is_shown(server: &RunningServer, site: &DatabaseSite, when: &str) {
    let reply = server.target().get("/index.php").await;
    let log = server.error_log();
    assert_eq!(reply.text(), site.version(), "{when}: {log}");
}

/// Waits until a request shows the database's version.
async fn until_shown(server: &RunningServer, site: &DatabaseSite, when: &str) {
    let started = Instant::now();
    while server.target().get("/index.php").await.text() != site.version() {
        assert!(
            started.elapsed() < TIMEOUT,
            "{when}: {}",
            server.error_log()
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Notes the number of its process in a file, and writes the next version.
const KILLED: &str = "<?php
require __DIR__ . '/connect.php';
file_put_contents(__DIR__ . '/flags/process', getmypid());
touch(__DIR__ . '/flags/begun');
$database->query('UPDATE post SET version = version + 1 WHERE id = 1');
";

/// A page is kept, and a process of PHP, whose number is returned, waits to write the row that it shows: another page
/// has locked the row.
async fn begin_write() -> Option<(DatabaseSite, RunningServer, u32)> {
    let site = DatabaseSite::make()?;
    site.add("killed.php", KILLED);
    let server = start(&site).await;
    let target = server.target();
    until_kept(&target, &server.path("pid.control"), "/index.php").await;
    begin(&target, "/lock.php");
    until("a lock", || site.is_raised("held")).await;
    begin(&target, "/killed.php");
    until("PHP at work", || site.is_raised("begun")).await;
    let listed = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE%'";
    until("an UPDATE", || site.database.run(listed).trim() == "1").await;
    let process = std::fs::read_to_string(site.path().join("flags/process"));
    let process = process.expect("a file").parse().expect("a number");
    Some((site, server, process))
}

#[tokio::test]
async fn worker_that_is_killed_between_commit_and_acknowledgement_leaves_no_old_page() {
    let Some((site, server, worker)) = begin_write().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    suspend(worker).await;
    let before = site.version();
    site.raise("go");
    until("a write", || site.version() != before).await;
    is_shown(&server, &site, "the worker has not read the answer").await;
    send_signal(worker, Signal::KILL);
    is_shown(&server, &site, "the worker was killed").await;
    until_kept(&target, &control, "/index.php").await;
    is_shown(&server, &site, "it is kept again").await;
}

#[tokio::test]
async fn write_whose_worker_was_killed_stays_in_doubt_until_the_database_has_ended_it() {
    let Some((site, server, worker)) = begin_write().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    send_signal(worker, Signal::KILL);
    until("another worker", || uid(worker).is_none()).await;
    for _ in 0..20 {
        target.get("/index.php").await;
        let told = part(&server, "/index.php").await;
        assert!(!told.sentence.contains("it is kept for"), "{told:?}");
    }
    let before = site.version();
    site.raise("go");
    until("a write", || site.version() != before).await;
    is_shown(&server, &site, "the database has done it").await;
    until_kept(&target, &control, "/index.php").await;
    is_shown(&server, &site, "it is kept again").await;
}

#[tokio::test]
async fn statement_that_is_not_understood_ends_all_pages() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.database.run(
        "CREATE PROCEDURE blog.next() UPDATE blog.post SET version = version + 1 WHERE id = 1",
    );
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    for statement in [
        "CALL next()",
        "BEGIN NOT ATOMIC UPDATE post SET version = version + 1 WHERE id = 1; END",
        "EXECUTE IMMEDIATE 'UPDATE post SET version = version + 1 WHERE id = 1'",
    ] {
        until_kept(&target, &control, "/index.php").await;
        site.run_by_php(&target, statement).await;
        is_shown(&server, &site, statement).await;
    }
}

/// Connects in a way that the library does not read, and writes.
const UNREAD: &str = "<?php
require __DIR__ . '/wp-config.php';
$database = mysqli_init();
$socket = explode(':', DB_HOST)[1];
$database->real_connect('localhost', DB_USER, DB_PASSWORD, DB_NAME, 0, $socket, MYSQLI_CLIENT_COMPRESS);
$database->query('UPDATE post SET version = version + 1 WHERE id = 1');
echo 'written';
";

#[tokio::test]
async fn end_of_a_connection_that_is_not_read_ends_all_pages_of_its_database() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.add("unread.php", UNREAD);
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    for _ in 0..5 {
        until_kept(&target, &control, "/index.php").await;
        let written = target.ask("POST", "/unread.php", "", "").await;
        assert_eq!(written.text(), "written");
        is_shown(&server, &site, "a poll comes later").await;
    }
}

#[tokio::test]
async fn definition_ends_all_pages_and_they_are_learned_again() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.add(
        "all.php",
        "<?php require __DIR__ . '/connect.php';
         echo json_encode($database->query('SELECT * FROM post, seen')->fetch_all());",
    );
    let grant =
        "CREATE VIEW blog.seen AS SELECT 1 AS one; GRANT SHOW VIEW ON blog.* TO blog@localhost";
    site.database.run(grant);
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/all.php").await;
    assert_eq!(target.get("/all.php").await.text(), "[[\"1\",\"1\",\"1\"]]");
    let column = "ALTER TABLE blog.post ADD COLUMN two INT DEFAULT 2";
    site.run_by_php(&target, column).await;
    let shown = target.get("/all.php").await.text();
    assert_eq!(shown, "[[\"1\",\"1\",\"2\",\"1\"]]", "by PHP");
    // Each attempt defines something else: an equal definition is no change.
    let column = |attempt: u32| match attempt.checked_sub(1) {
        None => "ALTER TABLE blog.post ADD COLUMN three_0 INT DEFAULT 3".to_owned(),
        Some(last) => format!(
            "ALTER TABLE blog.post CHANGE COLUMN three_{last} three_{attempt} INT DEFAULT 3"
        ),
    };
    let view = |attempt| format!("CREATE OR REPLACE VIEW blog.seen AS SELECT 4 AS four_{attempt}");
    let definitions: [(&dyn Fn(u32) -> String, &str); 2] = [
        (&column, "[[\"1\",\"1\",\"2\",\"3\",\"1\"]]"),
        (&view, "[[\"1\",\"1\",\"2\",\"3\",\"4\"]]"),
    ];
    for (definition, expected) in definitions {
        is_ended_by_definition(&site, &server, definition).await;
        assert_eq!(target.get("/all.php").await.text(), expected);
    }
    until_kept(&target, &control, "/all.php").await;
}

/// Another program defines something, and a poll finds that, not that a table was written lately.
async fn is_ended_by_definition(
    site: &DatabaseSite,
    server: &RunningServer,
    definition: &dyn Fn(u32) -> String,
) {
    for attempt in 0.. {
        until_kept(&server.target(), &server.path("pid.control"), "/all.php").await;
        site.database.run(&definition(attempt));
        let told = learned(server, "/all.php", LearnedState::Suspect).await;
        if told
            .detail
            .starts_with("tables, views or triggers have changed")
        {
            return;
        }
        assert!(attempt < 20, "{}: {told:?}", definition(attempt));
    }
}

/// Pages of which it is not known when they are old, and the reported reason, with the beginning of its detail.
#[rustfmt::skip]
const NOT_KEPT: [(&str, &str, (&str, &str)); 19] = [
    (
        "prepared",
        "$prepared = $database->prepare('SELECT version FROM post');
         $database->query('USE shop'); $prepared->execute(); $prepared->get_result();",
        ("statement", "SELECT version FROM post"),
    ),
    (
        "counter",
        "$database->query('UPDATE post SET version = version + 1 WHERE id = 1');
         $database->query('SELECT version FROM post WHERE id = 1');",
        ("own-write", "UPDATE post"),
    ),
    ("long", "for ($i = 0; $i < 500; $i++) $database->query(\"SELECT $i FROM post\");", ("too-long", "")),
    ("clock", "$database->query('SELECT NOW() FROM post');", ("statement", "clock")),
    ("memory", "$database->query('SELECT * FROM in_memory');", ("unpolled", "blog.in_memory: MEMORY")),
    ("aria", "$database->query('SELECT * FROM in_aria');", ("unpolled", "blog.in_aria: Aria")),
    (
        "compressed",
        "$database = mysqli_init();
         $database->options(MYSQLI_OPT_SSL_VERIFY_SERVER_CERT, 0);
         $database->real_connect('localhost', DB_USER, DB_PASSWORD, DB_NAME, 0, explode(':', DB_HOST)[1],
             MYSQLI_CLIENT_COMPRESS);
         $database->query('SELECT version FROM post');",
        ("unreadable", "compression"),
    ),
    (
        "elsewhere", "@fsockopen('127.0.0.1', 9); $database->query('SELECT version FROM post');",
        ("elsewhere", "127.0.0.1:9"),
    ),
    ("program", "exec('true');", ("program", "true")),
    ("shared", "if (function_exists('shm_attach')) shm_attach(6); else apcu_fetch('a');", ("shared-memory", "")),
    ("load", "file_get_contents('/proc/loadavg');", ("file-outside", "/proc/loadavg")),
    (
        "made",
        "$made = '/tmp/made-' . getmypid(); file_put_contents($made, 'x'); file_get_contents($made); unlink($made);",
        ("file-outside", "/tmp/made-"),
    ),
    ("marker", "@fopen(__DIR__ . '/flags/marker', 'x');", ("own-file", "")),
    ("unopened", "@fopen(__DIR__ . '/flags', 'w');", ("own-file", "")),
    ("chance", "$database->query('SELECT RAND() FROM post');", ("statement", "chance")),
    ("now", "$database->query('SELECT version FROM post WHERE id <> ' . time());", ("statement", "clock")),
    (
        "variable", "$database->query('SET @a = 1'); $database->query('SELECT @a FROM post');",
        ("statement", "user-variable"),
    ),
    ("lock", "$database->query(\"SELECT GET_LOCK('a', 0)\");", ("statement", "lock")),
    ("update", "$database->query('SELECT version FROM post FOR UPDATE');", ("statement", "lock")),
];

/// Pages that write files which they do not read, and are kept.
const KEPT: &[(&str, &str)] = &[
    // WordPress tries in this way whether it may write there, also where a plug-in only asks for its access to files.
    (
        "probe",
        "$probe = __DIR__ . '/flags/temp-write-test-' . str_replace('.', '-', uniqid('', true));
         $file = @fopen($probe, 'w'); fileowner($probe); fclose($file); @unlink($probe);",
    ),
    (
        "log",
        "file_put_contents(__DIR__ . '/flags/log', \"seen\\n\", FILE_APPEND | LOCK_EX);",
    ),
];

#[tokio::test]
async fn pages_of_which_it_is_not_known_when_they_are_old_say_why() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.database.run(
        "CREATE DATABASE shop; CREATE TABLE shop.post (version INT); GRANT ALL ON shop.* TO blog@localhost;
         CREATE TABLE blog.in_memory (id INT) ENGINE=MEMORY;
         CREATE TABLE blog.in_aria (id INT) ENGINE=Aria TRANSACTIONAL=1;",
    );
    let not_kept = NOT_KEPT.iter().map(|(name, code, _)| (name, code));
    for (name, code) in not_kept.chain(KEPT.iter().map(|(name, code)| (name, code))) {
        let text = format!("<?php require __DIR__ . '/connect.php'; {code} echo 'done';");
        site.add(&format!("{name}.php"), &text);
    }
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/index.php").await;
    for (name, _) in KEPT {
        until_kept(&target, &control, &format!("/{name}.php")).await;
    }
    for (name, _, (reason, detail)) in NOT_KEPT {
        let page = format!("/{name}.php");
        let started = Instant::now();
        // At first, a table may be unknown, and the write of a page before may keep it from being learned.
        let mut as_expected = 0;
        while as_expected < 5 {
            assert_eq!(target.get(&page).await.text(), "done");
            let told = part(&server, &page).await;
            assert!(!told.sentence.contains("it is kept for"), "{told:?}");
            as_expected += u32::from(told.reason == reason && told.detail.starts_with(detail));
            assert!(started.elapsed() < TIMEOUT, "{name}: {told:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[tokio::test]
async fn page_that_reads_a_replica_is_not_kept_by_a_pool_that_writes_the_primary() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let primary = MariaDb::start();
    open_to_all(primary.socket().parent().expect("its folder"));
    primary.run(
        "CREATE DATABASE blog; CREATE TABLE blog.post (id INT PRIMARY KEY, version INT);
         INSERT INTO blog.post VALUES (1, 1);
         CREATE USER writer@localhost IDENTIFIED BY 'x'; GRANT ALL ON blog.* TO writer@localhost;",
    );
    let write = format!(
        "<?php $primary = new mysqli('localhost', 'writer', 'x', 'blog', null, '{}');
         $primary->query('UPDATE post SET version = version + 1 WHERE id = 1'); echo 'written';",
        primary.socket().display()
    );
    site.add("primary.php", &write);
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/index.php").await;
    for _ in 0..10 {
        let written = target.ask("POST", "/primary.php", "", "").await;
        assert_eq!(written.text(), "written");
        target.get("/index.php").await;
        // The record of a page is complete a moment after its answer.
        let started = Instant::now();
        while part(&server, "/index.php").await.reason != "several-servers" {
            assert!(started.elapsed() < TIMEOUT, "{}", server.error_log());
            tokio::time::sleep(PAUSE).await;
        }
        // The replica follows.
        let version = primary.run("SELECT version FROM blog.post");
        site.database
            .run(&format!("UPDATE blog.post SET version = {version}"));
        tokio::time::sleep(PAUSE).await;
        is_shown(&server, &site, "the replica has it").await;
    }
}

/// A server that asks about tables by an account of its own, not by PHP's.
async fn start_watched(site: &DatabaseSite) -> RunningServer {
    let (main, http) = configuration(site, "1ms");
    assert!(http.contains(" blog \""), "{http}");
    let http = http.replace(" blog \"", " watcher \"");
    RunningServer::start(program(), &main, &http).await
}

/// An account with the password of PHP's, and no rights but to a table that no page reads.
const WATCHER: &str =
    "CREATE USER watcher@localhost; GRANT SELECT ON blog.other TO watcher@localhost;
    UPDATE mysql.global_priv AS a, mysql.global_priv AS b SET a.Priv = b.Priv
    WHERE a.User = 'watcher' AND b.User = 'blog'; FLUSH PRIVILEGES;";
const GRANT: &str = "GRANT SELECT, TRIGGER ON blog.* TO watcher@localhost";

#[tokio::test]
async fn what_the_account_cannot_see_is_not_kept() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.database.run("CREATE TABLE blog.other (id INT)");
    site.database.run(WATCHER);
    let server = start_watched(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    let started = Instant::now();
    let mut told = part(&server, "/index.php").await;
    while told.reason != "statement" {
        target.get("/index.php").await;
        told = part(&server, "/index.php").await;
        assert!(!told.sentence.contains("it is kept for"), "{told:?}");
        assert!(started.elapsed() < TIMEOUT, "{told:?}");
        tokio::time::sleep(PAUSE).await;
    }
    assert!(told.detail.starts_with("unknown-table"), "{told:?}");
    site.database.run(GRANT);
    // Its tables are read again once a minute, or when a definition is reported.
    site.run_by_php(&target, "ALTER TABLE other ADD COLUMN a INT")
        .await;
    until_kept(&target, &control, "/index.php").await;
}

#[tokio::test]
async fn page_is_not_shown_by_what_is_known_while_other_programs_are_not_seen() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.database.run("CREATE TABLE blog.other (id INT)");
    let server = start_watched(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    for attempt in 0.. {
        site.database.run(WATCHER);
        site.database.run(GRANT);
        until_kept(&target, &control, "/index.php").await;
        let removed = number(&server, "mayfly_learned_removals_total").await;
        site.database.run("DROP USER watcher@localhost");
        let started = Instant::now();
        while target.get("/index.php").await.x_cache() == "HIT" {
            assert!(started.elapsed() < TIMEOUT, "it is shown without a poll");
            tokio::time::sleep(PAUSE).await;
        }
        // The last poll may have found a write.
        if number(&server, "mayfly_learned_removals_total").await == removed {
            break;
        }
        assert!(attempt < 20, "a write ended it");
    }
    for _ in 0..10 {
        site.write();
        // Longer than its ordinary lifetime.
        tokio::time::sleep(PAUSE).await;
        is_shown(&server, &site, "nothing is polled").await;
    }
    let told = part(&server, "/index.php").await;
    assert!(!told.sentence.contains("it is kept for"), "{told:?}");
}

#[tokio::test]
async fn database_that_is_killed_ends_what_was_known_and_is_learned_again_after_its_restart() {
    let Some(mut site) = DatabaseSite::make() else {
        return;
    };
    let server = start(&site).await;
    let (target, control) = (server.target(), server.path("pid.control"));
    for way in ["PHP", "another program"] {
        until_kept(&target, &control, "/index.php").await;
        site.database.kill();
        site.database.start_again();
        match way {
            "PHP" => {
                site.run_by_php(&target, "UPDATE post SET version = version + 1")
                    .await;
                is_shown(&server, &site, way).await;
            }
            _ => {
                site.write();
                until_shown(&server, &site, way).await;
            }
        }
    }
    until_kept(&target, &control, "/index.php").await;
    is_shown(&server, &site, "it is kept again").await;
}

#[tokio::test]
async fn what_workers_tell_is_heard_by_a_process_without_rights() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    let (main, http) = configuration(&site, "1ms");
    let server = RunningServer::start_divided(program(), &main, &http).await;
    until_kept(&server.target(), &server.path("pid.control"), "/index.php").await;
    let of_server = std::iter::once(server.pid()).chain(children(server.pid()));
    let learns = |pid: &u32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        let mut tasks = tasks.into_iter().flatten().flatten();
        tasks.any(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "learn-site")
        })
    };
    let learning: Vec<_> = of_server.filter(learns).collect();
    let [learning] = learning[..] else {
        panic!("one process learns, not {learning:?}");
    };
    assert_ne!(uid(learning), Some(0));
}
