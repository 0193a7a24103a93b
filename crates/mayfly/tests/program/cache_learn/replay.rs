//! `cache_learn_replay`: the answers of the database that PHP has read are compared with those that Mayfly gets from
//! the server.

use control::explain::LearnedState;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::configuration;
use super::{PAUSE, explained, number};
use crate::program;

/// Rows, NULL, letters that the session translates, nothing at all, a long text, and a number that belongs to the statement before. It
/// shows by which fetch it was made.
const PAGE: &str = "<?php
require __DIR__ . '/connect.php';
$database->set_charset('utf8mb4');
$database->query(\"SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'\");
$all = [$_SERVER['MAYFLY_FETCH']];
foreach ([
    'SELECT * FROM post WHERE id = 1',
    'SELECT version, note FROM post WHERE id = 999',
    'SELECT note, REPEAT(note, 300) FROM post ORDER BY id',
    'SELECT SQL_CALC_FOUND_ROWS id FROM post ORDER BY id LIMIT 1',
    'SELECT FOUND_ROWS()',
    'SELECT COUNT(note), MAX(version) / 3 FROM post WHERE id < 2',
] as $statement) {
    $all[] = json_encode($database->query($statement)->fetch_all());
}
echo implode(' ', $all);
";

async fn begin() -> Option<(DatabaseSite, RunningServer)> {
    let site = DatabaseSite::make()?;
    site.database.run(
        "ALTER TABLE blog.post ADD COLUMN note TEXT CHARACTER SET utf8mb4;
         INSERT INTO blog.post VALUES (2, 1, 'caf\u{e9} \u{2713}'), (3, 1, '');",
    );
    site.add("read.php", PAGE);
    let (main, http) = configuration(&site, "1ms");
    let server = RunningServer::start(program(), &main, &http).await;
    Some((site, server))
}

/// PHP writes, and Mayfly decides: this number grows.
async fn write(site: &DatabaseSite, server: &RunningServer, statement: &str, decided: &str) {
    let before = number(server, decided).await;
    site.run_by_php(&server.target(), statement).await;
    let started = std::time::Instant::now();
    while number(server, decided).await == before {
        tokio::time::sleep(PAUSE).await;
        let part = explained(server, "/read.php").await.learned;
        assert!(started.elapsed() < TIMEOUT, "{decided}: {part:?}");
    }
}

const FRESHENED: &str = "mayfly_learned_freshened_total";
const REMOVED: &str = "mayfly_learned_removals_total";
const EQUAL: &str = "mayfly_learned_replays_total{pool=\"site\",result=\"equal\"}";
const DIFFERENT: &str = "mayfly_learned_replays_total{pool=\"site\",result=\"different\"}";
const FAILED: &str = "mayfly_learned_replays_total{pool=\"site\",result=\"failed\"}";

/// It may concern each statement of the page, and finds no row.
const NO_CHANGE: &str = "DELETE FROM post WHERE version = 77";

#[tokio::test]
async fn replayed_page_is_shown_without_php_if_all_is_the_same_and_made_anew_otherwise() {
    let Some((site, server)) = begin().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    // On a busy machine the database may answer later than a visitor waits, and the page is made anew.
    for attempt in 0.. {
        until_kept(&target, &control, "/read.php").await;
        let reply = target.get("/read.php").await;
        let equal = number(&server, EQUAL).await;
        write(&site, &server, NO_CHANGE, FRESHENED).await;
        let again = target.get("/read.php").await;
        let is_same = again.x_cache() == "HIT" && again.text() == reply.text();
        if is_same && number(&server, EQUAL).await >= equal + 5 {
            break;
        }
        assert!(attempt < 20, "{}", again.x_cache());
    }
    assert_eq!(number(&server, DIFFERENT).await, 0);
    let change = "UPDATE post SET note = 'new' WHERE version = 1 AND id > 2";
    write(&site, &server, change, REMOVED).await;
    let reply = target.get("/read.php").await;
    assert_ne!(reply.x_cache(), "HIT");
    assert!(reply.text().contains("new"), "{}", reply.text());
}

#[tokio::test]
async fn visitor_of_a_page_that_may_have_changed_waits_for_its_statements_and_not_for_php() {
    let Some((site, server)) = begin().await else {
        return;
    };
    is_shown_again(&site, &server, "/read.php", 1).await;
    // As long as its application has said.
    let said = PAGE.replacen("<?php", "<?php header('Cache-Control: s-maxage=3600');", 1);
    site.add("said.php", &said);
    is_shown_again(&site, &server, "/said.php", 1).await;
}

/// A page is the same, from memory, after a write that may concern it, and at least this number of statements was run again.
async fn is_shown_again(site: &DatabaseSite, server: &RunningServer, page: &str, statements: u64) {
    let (target, control) = (server.target(), server.path("pid.control"));
    // On a busy machine the database may answer later than a visitor waits, and the page is made anew.
    for attempt in 0.. {
        until_kept(&target, &control, page).await;
        let reply = target.get(page).await;
        let equal = number(server, EQUAL).await;
        site.run_by_php(&target, NO_CHANGE).await;
        let again = target.get(page).await;
        let is_same = again.x_cache() == "HIT" && again.text() == reply.text();
        if is_same && number(server, EQUAL).await >= equal + statements {
            break;
        }
        assert!(attempt < 50, "{}", again.x_cache());
    }
}

#[tokio::test]
async fn replayed_page_is_made_anew_if_the_server_gives_other_sessions_than_php_had() {
    let Some((site, server)) = begin().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/read.php").await;
    let of_each = "SET GLOBAL init_connect = 'SET @a = 1'; KILL USER blog@localhost";
    site.database.run(of_each);
    let freshened = number(&server, FRESHENED).await;
    write(&site, &server, NO_CHANGE, FAILED).await;
    assert_eq!(number(&server, FRESHENED).await, freshened);
    assert_ne!(target.get("/read.php").await.x_cache(), "HIT");
}

/// Reads by prepared statements of mysqli and of PDO, with each kind of value that they send.
const PREPARED: &str = "<?php
require __DIR__ . '/connect.php';
$all = [$_SERVER['MAYFLY_FETCH']];
$read = $database->prepare('SELECT * FROM post WHERE id = ? AND (note <=> ? OR version = ?)');
foreach ([[2, 'caf\u{e9} \u{2713}', 7], [3, null, 1], [4, '', -1]] as [$id, $note, $version]) {
    $read->bind_param('isi', $id, $note, $version);
    $read->execute();
    $all[] = json_encode($read->get_result()->fetch_all());
}
$pdo = new PDO('mysql:unix_socket=' . explode(':', DB_HOST)[1] . ';dbname=' . DB_NAME, DB_USER, DB_PASSWORD,
    [PDO::ATTR_EMULATE_PREPARES => false]);
$read = $pdo->prepare('SELECT id, note FROM post WHERE id > ? AND version < ? AND note <> ? ORDER BY id');
$read->bindValue(1, 1, PDO::PARAM_INT);
$read->bindValue(2, 5000000000, PDO::PARAM_INT);
$read->bindValue(3, 'caf\u{e9}');
$read->execute();
$all[] = json_encode($read->fetchAll());
$read = $pdo->prepare('SELECT COUNT(*) FROM post');
$read->execute();
$all[] = json_encode($read->fetchAll());
echo implode(' ', $all);
";

#[tokio::test]
async fn prepared_statements_are_run_again_with_the_values_that_php_bound() {
    let Some((site, server)) = begin().await else {
        return;
    };
    site.add("prepared.php", PREPARED);
    let (target, control) = (server.target(), server.path("pid.control"));
    is_shown_again(&site, &server, "/prepared.php", 5).await;
    assert_eq!(number(&server, DIFFERENT).await, 0);
    until_kept(&target, &control, "/prepared.php").await;
    let change = "UPDATE post SET note = 'new' WHERE version = 1 AND id > 2";
    site.run_by_php(&target, change).await;
    let reply = target.get("/prepared.php").await;
    assert!(reply.text().contains("new"), "{}", reply.text());
}

/// It takes longer than a statement that is run again may take.
const SLOW: &str = "<?php
require __DIR__ . '/connect.php';
echo $database->query('SELECT version, (SELECT COUNT(*) FROM number a, number b, number c, number d) FROM post WHERE id = 1')
    ->fetch_row()[0];
";

/// Prints 1 as soon as `SLOW`'s statement runs, 0 if it does not within seconds. The database looks itself: a client that
/// is started for each look may see none on a busy machine.
const WATCH: &str = "DELIMITER //
BEGIN NOT ATOMIC
    DECLARE running, looks INT DEFAULT 0;
    WHILE running = 0 AND looks < 1000 DO
        DO SLEEP(0.002);
        SELECT COUNT(*) INTO running FROM information_schema.processlist WHERE info LIKE 'SELECT version, (%';
        SET looks = looks + 1;
    END WHILE;
    SELECT running;
END //
";

/// Waits until it is seen that a page may have changed.
async fn until_doubted(server: &RunningServer, page: &str) {
    let started = std::time::Instant::now();
    while let Some(part) = explained(server, page).await.learned
        && part.state == LearnedState::Fresh
    {
        assert!(started.elapsed() < TIMEOUT, "{page}: {part:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn database_that_is_killed_in_the_middle_of_a_replay_leaves_no_old_page() {
    let Some((mut site, server)) = begin().await else {
        return;
    };
    site.database.run(
        "CREATE TABLE blog.number (id INT); INSERT INTO blog.number SELECT seq FROM blog.seq_1_to_40",
    );
    site.add("slow.php", SLOW);
    let (target, control) = (server.target(), server.path("pid.control"));
    for _ in 0..3 {
        let begun = std::time::Instant::now();
        loop {
            for page in ["/slow.php", "/read.php", "/index.php"] {
                until_kept(&target, &control, page).await;
            }
            let watch = site.database.begin(WATCH);
            // It may concern all three, and finds no row.
            site.run_by_php(&target, NO_CHANGE).await;
            // One that is over before it is seen is followed by another.
            if watch.join().expect("a client").trim() == "1" {
                break;
            }
            assert!(
                begun.elapsed() < TIMEOUT,
                "no replay: {}",
                server.error_log()
            );
        }
        site.database.kill();
        site.database.start_again();
        site.write();
        // A program that Mayfly does not know: by the next poll. A page that was made again before it would count as one that
        // differs for no reason.
        for page in ["/slow.php", "/read.php", "/index.php"] {
            until_doubted(&server, page).await;
        }
        for page in ["/slow.php", "/index.php"] {
            let started = std::time::Instant::now();
            while target.get(page).await.text() != site.version() {
                assert!(
                    started.elapsed() < TIMEOUT,
                    "{page}: {}",
                    server.error_log()
                );
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Statements are run again as before.
    until_kept(&target, &control, "/read.php").await;
    let freshened = number(&server, FRESHENED).await;
    for attempt in 0.. {
        until_kept(&target, &control, "/read.php").await;
        site.run_by_php(&target, NO_CHANGE).await;
        target.get("/read.php").await;
        if number(&server, FRESHENED).await > freshened {
            break;
        }
        assert!(attempt < 50, "nothing is found unchanged");
    }
}
