//! Tests of pages made of a PostgreSQL: a page is kept until a program writes a table that the page read.

use std::io::Write as _;

use control::explain::LearnedState;
use tempfile::TempDir;
use testkit::postgres::Postgres;
use testkit::running::RunningServer;
use testkit::serving::open_to_all;
use testkit::wait::TIMEOUT;

use super::database_site::until_kept;
use super::{PAUSE, learned, serve_scripts, write_scripts};
use crate::has_php_fpm;

const PASSWORD: &str = "se'cret\\";

const SCHEMA: &str = "CREATE TABLE post (id serial PRIMARY KEY, title text, at timestamptz);
    CREATE TABLE comment (id serial PRIMARY KEY, post int REFERENCES post ON DELETE CASCADE, text text);
    CREATE TABLE other (id int);
    CREATE TABLE log (id int, day date) PARTITION BY RANGE (day);
    CREATE TABLE log_old PARTITION OF log FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
    CREATE VIEW latest AS SELECT max(id) AS id FROM post;
    CREATE SCHEMA shop; CREATE TABLE shop.thing (name text);
    INSERT INTO post (title) VALUES ('one'); INSERT INTO comment (post, text) VALUES (1, 'first');";

/// PHP connects by each of its extensions, and shows all rows.
const SCRIPTS: [(&str, &str); 6] = [
    (
        "page.php",
        "<?php require __DIR__ . '/connect.php';
        echo pg_fetch_result(pg_query($connection, 'SELECT title FROM post ORDER BY id LIMIT 1'), 0, 0);",
    ),
    (
        "parameters.php",
        "<?php require __DIR__ . '/connect.php';
        pg_query($connection, 'BEGIN');
        $found = pg_query_params($connection, 'SELECT text FROM comment WHERE post = $1 ORDER BY id', [1]);
        echo implode(' ', pg_fetch_all_columns($found));
        pg_prepare($connection, 'title', 'SELECT title FROM post WHERE id = $1');
        echo ' ', pg_fetch_result(pg_execute($connection, 'title', ['1']), 0, 0);
        pg_query($connection, 'COMMIT');",
    ),
    (
        "pdo.php",
        "<?php require __DIR__ . '/connect.php';
        $statement = $pdo->prepare('SELECT id, name FROM latest, shop.thing WHERE name <> :name ORDER BY name');
        $statement->execute(['name' => 'none']);
        echo implode(' ', $statement->fetchAll(PDO::FETCH_COLUMN, 1)), ' ',
            $pdo->query('SELECT count(*) FROM log')->fetchColumn();",
    ),
    (
        "run.php",
        "<?php require __DIR__ . '/connect.php';
        $statement = stripcslashes(urldecode($_SERVER['QUERY_STRING']));
        $result = @pg_query($connection, $statement);
        echo $result ? 'done' : 'refused';",
    ),
    (
        "hold.php",
        "<?php require __DIR__ . '/connect.php';
        ignore_user_abort(true);
        pg_query($connection, \"BEGIN; UPDATE post SET title = 'held' WHERE id = 1\");
        touch(__DIR__ . '/flags/held');
        while (!file_exists(__DIR__ . '/flags/go')) { clearstatcache(); usleep(2000); }
        if (isset($_GET['killed'])) { posix_kill(getmypid(), 9); }
        pg_query($connection, 'COMMIT');
        echo 'written';",
    ),
    ("flags/.keep", ""),
];

struct PostgresSite {
    folder: TempDir,
    database: Postgres,
    server: RunningServer,
}

impl PostgresSite {
    async fn start() -> Option<PostgresSite> {
        if !has_php_fpm() {
            return None;
        }
        let database = Postgres::start();
        open_to_all(database.folder());
        let quoted = PASSWORD.replace('\'', "''");
        database.run(
            "postgres",
            &format!("CREATE ROLE blog LOGIN PASSWORD '{quoted}';"),
        );
        database.run("postgres", "CREATE DATABASE blog OWNER blog;");
        database.run("blog", &format!("SET ROLE blog; {SCHEMA}"));
        let quoted = PASSWORD.replace('\\', "\\\\").replace('\'', "\\'");
        let connect = format!(
            "<?php $connection = pg_connect(\"host={0} user=blog password=\" . \
             \"'\" . addslashes('{quoted}') . \"'\" . ' dbname=blog');\n\
             $pdo = new PDO('pgsql:host={0};dbname=blog', 'blog', '{quoted}');",
            database.folder().display()
        );
        let mut scripts = SCRIPTS.to_vec();
        scripts.push(("connect.php", &connect));
        let folder = write_scripts(&scripts);
        open_to_all(&folder.path().join("flags"));
        let everybody_writes = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path().join("flags"), everybody_writes).expect("a mode");
        let learn = format!(
            "cache_learn on; cache_learn_database \"postgres:unix:{}/blog\" blog \"{}\";",
            database.socket().display(),
            PASSWORD.replace('\\', "\\\\")
        );
        let server = serve_scripts(folder.path(), &learn).await;
        Some(PostgresSite {
            folder,
            database,
            server,
        })
    }

    async fn until_kept(&self, path: &str) {
        let control = self.server.path("pid.control");
        until_kept(&self.server.target(), &control, path).await;
    }

    async fn shows(&self, path: &str) -> String {
        self.server.target().get(path).await.text()
    }

    /// PHP of the pool runs a statement.
    async fn run_by_php(&self, statement: &str) -> String {
        let encoded: String = statement
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        self.shows(&format!("/run.php?{encoded}")).await
    }

    async fn until_shown(&self, path: &str, expected: &str) {
        let started = std::time::Instant::now();
        loop {
            let shown = self.shows(path).await;
            if shown == expected {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{shown} is not {expected}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks so seldom that the page is not made anew to be compared, as one of a thousand answers is.
    async fn shows_soon(&self, path: &str, expected: &str) {
        let mut shown = String::new();
        for _ in 0..150 {
            shown = self.shows(path).await;
            if shown == expected {
                return;
            }
            tokio::time::sleep(4 * PAUSE).await;
        }
        panic!("{shown} is not {expected}");
    }

    async fn until_flag(&self, name: &str) {
        let flag = self.folder.path().join("flags").join(name);
        testkit::wait::until(name, || flag.exists()).await;
    }

    fn raise(&self, name: &str) {
        std::fs::write(self.folder.path().join("flags").join(name), "").expect("a flag");
    }
}

#[tokio::test]
async fn pages_of_postgres_show_each_write_of_php_at_once_and_those_of_others_soon() {
    let Some(site) = PostgresSite::start().await else {
        return;
    };
    site.database
        .run("blog", "INSERT INTO shop.thing VALUES ('a');");
    let pages = ["/page.php", "/parameters.php", "/pdo.php"];
    for page in pages {
        site.until_kept(page).await;
    }
    assert_eq!(site.shows("/page.php").await, "one");
    assert_eq!(site.shows("/parameters.php").await, "first one");
    assert_eq!(site.shows("/pdo.php").await, "a 0");
    // PHP of the pool: the very next answer is current.
    #[rustfmt::skip]
    let own = [
        ("UPDATE post SET title = 'two' WHERE id = 1", "/page.php", "two"),
        ("DO $$ BEGIN UPDATE shop.thing SET name = 'b'; END $$", "/pdo.php", "b 0"),
        ("BEGIN; UPDATE post SET title = 'three'; COMMIT", "/page.php", "three"),
        (
            "WITH new AS (INSERT INTO comment (post, text) VALUES (1, 'next') RETURNING id) SELECT * FROM new",
            "/parameters.php", "first next three",
        ),
        ("BEGIN; UPDATE post SET title = 'four'; ROLLBACK", "/page.php", "three"),
        ("INSERT INTO log VALUES (1, '2025-05-05')", "/pdo.php", "b 1"),
        ("TRUNCATE log", "/pdo.php", "b 0"),
        (
            "ALTER TABLE post RENAME COLUMN title TO heading; ALTER TABLE post ADD COLUMN title text DEFAULT 'new'",
            "/page.php", "new",
        ),
        (
            "ALTER TABLE post DROP COLUMN title; ALTER TABLE post RENAME COLUMN heading TO title", "/page.php",
            "three",
        ),
    ];
    for (statement, page, expected) in own.into_iter().take(most(3)) {
        site.until_kept(page).await;
        assert_eq!(site.run_by_php(statement).await, "done", "{statement}");
        assert_eq!(site.shows(page).await, expected, "{statement}");
    }
    // Other programs, which come and go.
    let foreign = [
        ("COPY shop.thing FROM STDIN;\nc\n\\.\n", "/pdo.php", "b c 0"),
        (
            "INSERT INTO log_old VALUES (1, '2025-05-05');",
            "/pdo.php",
            "b c 1",
        ),
        (
            "CREATE OR REPLACE VIEW latest AS SELECT id FROM post WHERE false;",
            "/pdo.php",
            " 1",
        ),
        (
            "CREATE OR REPLACE VIEW latest AS SELECT 1 AS id;",
            "/pdo.php",
            "b c 1",
        ),
        ("TRUNCATE log_old;", "/pdo.php", "b c 0"),
        ("UPDATE post SET title = 'five';", "/page.php", "five"),
        ("DELETE FROM comment;", "/parameters.php", " five"),
    ];
    for (statement, page, expected) in foreign.into_iter().take(most(2)) {
        site.until_kept(page).await;
        site.database.run("blog", statement);
        site.until_shown(page, expected).await;
    }
    // One that stays, and holds back what it has counted: it has passed counts on a moment before, and begins a transaction.
    let mut client = site.database.client("blog");
    let mut stdin = client.stdin.take().expect("a pipe");
    for title in ["seven", "eight", "nine"].into_iter().take(most(1)) {
        site.until_kept("/page.php").await;
        let script =
            format!("INSERT INTO other VALUES (1);\nUPDATE post SET title = '{title}';\nBEGIN;\n");
        stdin.write_all(script.as_bytes()).expect("a pipe");
        site.shows_soon("/page.php", title).await;
        writeln!(stdin, "COMMIT;").expect("a pipe");
    }
    drop(stdin);
    client.wait().expect("an end");
}

/// Returns the number of cases to try: all with `LEARNED_POSTGRES=all`, else the usual number.
fn most(usual: usize) -> usize {
    match std::env::var_os("LEARNED_POSTGRES") {
        Some(_) => usize::MAX,
        None => usual,
    }
}

/// The page is made while a transaction of PHP is open, which is committed or dies with its process.
#[tokio::test]
async fn what_a_transaction_of_php_has_written_is_shown_once_it_is_committed_and_never_if_it_was_killed()
 {
    let Some(site) = PostgresSite::start().await else {
        return;
    };
    site.until_kept("/page.php").await;
    for (way, expected) in [("?killed", "one"), ("", "held")] {
        let target = site.server.target();
        let path = format!("/hold.php{way}");
        let held = tokio::spawn(async move { target.get(&path).await.text() });
        site.until_flag("held").await;
        assert_eq!(site.shows("/page.php").await, "one", "not committed");
        site.raise("go");
        let said = held.await.expect("an answer");
        assert_eq!(said == "written", way.is_empty(), "{said}");
        site.until_shown("/page.php", expected).await;
        assert_eq!(site.shows("/page.php").await, expected);
        for name in ["held", "go"] {
            let _ = std::fs::remove_file(site.folder.path().join("flags").join(name));
        }
    }
    site.until_kept("/page.php").await;
    for (statement, reason, detail) in [
        ("UPDATE other SET id = 1", "own-write", "UPDATE other"),
        ("SELECT now()", "statement", "clock"),
        ("SELECT nextval('post_id_seq')", "statement", "connection"),
        ("SELECT pg_try_advisory_lock(1)", "statement", "lock"),
        ("LISTEN news", "statement", "system-variable"),
        ("SELECT * FROM none", "unanswered", "SELECT * FROM none"),
        ("CREATE TEMP TABLE post (title text)", "statement", "syntax"),
    ] {
        site.run_by_php(statement).await;
        let encoded: String = statement
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let part = learned(
            &site.server,
            &format!("/run.php?{encoded}"),
            LearnedState::NotLearned,
        )
        .await;
        let is_so = part.reason == reason && part.detail.contains(detail);
        assert!(is_so, "{statement}: {part:?}");
    }
}
