//! Tests that statements which are run again read, and cannot write. They need mariadb-server, as the tests of `learned` do.

use learned::{RunAgain, RunText, Value};
use testkit::mariadb::MariaDb;

use super::*;

const SEED: u64 = 7;

struct Replays {
    database: MariaDb,
    account: (DatabaseAccount, u64),
    session: Arc<ReplaySession>,
    connection: Connection,
}

impl Replays {
    /// By an account that may do anything.
    fn begin() -> Replays {
        let database = MariaDb::start();
        database.run(
            "CREATE DATABASE blog; CREATE TABLE blog.post (id INT PRIMARY KEY, title TEXT) ENGINE=InnoDB;
             CREATE TABLE blog.plain (id INT) ENGINE=MyISAM; INSERT INTO blog.post VALUES (1, 'a');",
        );
        let account = DatabaseAccount {
            server: format!("unix:{}", database.socket().display()),
            user: "root".to_owned(),
            password: String::new(),
        };
        let session = ReplaySession {
            seed: None,
            collation: 45,
            database: Some("blog".to_owned()),
            settings: vec!["SET autocommit = 0".to_owned()],
        };
        Replays {
            database,
            account: (account, SEED),
            session: Arc::new(session),
            connection: Connection::default(),
        }
    }

    async fn run(&mut self, text: &str) -> Option<u64> {
        self.run_with(text, None).await
    }

    /// Prepared, if there are values.
    async fn run_with(&mut self, text: &str, values: Option<&[Value]>) -> Option<u64> {
        let again = RunAgain {
            session: 0,
            texts: vec![RunText {
                text: text.into(),
                values: values.map(Into::into),
            }],
        };
        let (account, session) = (&self.account, &self.session);
        let result = self.connection.run(&again, account, session).await;
        result.map(|it| it.hash)
    }
}

#[tokio::test]
async fn each_replay_reads_what_is_there_when_it_begins_though_the_connection_is_the_same() {
    let mut replays = Replays::begin();
    let connection = replays.run("SELECT CONNECTION_ID()").await;
    let mut results = Vec::new();
    for title in ["a", "b", "c"] {
        let update = format!("UPDATE blog.post SET title = '{title}'");
        replays.database.run(&update);
        let result = replays.run("SELECT title FROM post").await;
        assert_eq!(replays.run("SELECT title FROM post").await, result);
        results.push(result);
    }
    assert!(results.iter().all(Option::is_some));
    assert_ne!(results[0], results[1]);
    assert_ne!(results[1], results[2]);
    assert_eq!(replays.run("SELECT CONNECTION_ID()").await, connection);
}

#[tokio::test]
async fn replay_that_writes_waits_or_returns_no_rows_has_no_result() {
    let mut replays = Replays::begin();
    let content = "SELECT COUNT(*) FROM blog.post; SELECT COUNT(*) FROM blog.plain";
    let before = replays.database.run(content);
    for text in [
        "DELETE FROM post",
        "INSERT INTO post VALUES (2, 'b')",
        "INSERT INTO plain VALUES (1)",
        "DELETE FROM post RETURNING id",
        "CREATE TABLE more (id INT)",
        "DROP TABLE post",
        "SELECT SLEEP(100)",
        "SELECT * FROM missing",
        "SET @a = 1",
        "BEGIN",
        "SELECT title FROM post; SELECT title FROM post",
        "SELECT REPEAT('x', 2000000)",
    ] {
        assert_eq!(replays.run(text).await, None, "{text}");
        assert!(
            replays.run("SELECT title FROM post").await.is_some(),
            "{text}"
        );
    }
    assert_eq!(replays.database.run(content), before);
}

#[tokio::test]
async fn replay_of_a_database_that_is_killed_has_no_result_until_it_is_there_again() {
    let mut replays = Replays::begin();
    let first = replays.run("SELECT title FROM post").await;
    assert!(first.is_some());
    replays.database.kill();
    assert_eq!(replays.run("SELECT title FROM post").await, None);
    replays.database.start_again();
    let update = "REPLACE INTO blog.post VALUES (1, 'a')";
    replays.database.run(update);
    assert_eq!(replays.run("SELECT title FROM post").await, first);
}

#[tokio::test]
async fn prepared_statement_is_run_with_its_values_over_one_connection() {
    let mut replays = Replays::begin();
    let long = "x".repeat(300);
    let rows = format!("INSERT INTO blog.post VALUES (2, '{long}'), (3, NULL), (-4, 'caf\u{e9}')");
    replays.database.run(&rows);
    let connection = replays.run("SELECT CONNECTION_ID()").await;
    let text = |text: &str| Value::Text(text.as_bytes().to_vec());
    let ids = "SELECT id, title FROM post WHERE id = ?";
    let titles = "SELECT id, title FROM post WHERE title <=> ?";
    let same = [
        (Value::Integer(2), text(&long)),
        (Value::Integer(3), Value::Null),
        (Value::Integer(-4), text("caf\u{e9}")),
        (text("1"), text("a")),
    ];
    let mut seen = Vec::new();
    for (id, title) in same {
        let first = replays.run_with(ids, Some(&[id])).await;
        assert!(first.is_some_and(|it| !seen.contains(&it)), "{title:?}");
        assert_eq!(replays.run_with(titles, Some(&[title])).await, first);
        seen.extend(first);
    }
    // Rows in binary form are not those in text.
    let plain = "SELECT id, title FROM post WHERE id = 1";
    let (as_text, prepared) = (
        replays.run(plain).await,
        replays.run_with(plain, Some(&[])).await,
    );
    assert!(as_text.is_some() && prepared.is_some() && as_text != prepared);
    assert_eq!(prepared, seen.last().copied());
    let update = "UPDATE blog.post SET title = 'b' WHERE id = 1";
    replays.database.run(update);
    let values = [Value::Integer(1)];
    assert_ne!(replays.run_with(ids, Some(&values)).await, prepared);
    // Each is closed, before the next statement.
    assert_eq!(replays.run("SELECT CONNECTION_ID()").await, connection);
    let open = "SHOW GLOBAL STATUS WHERE Variable_name = 'Prepared_stmt_count'";
    assert_eq!(replays.database.run(open).trim(), "Prepared_stmt_count\t0");
    for (text, values) in [
        ("DELETE FROM post WHERE id = ?", &[Value::Integer(1)][..]),
        (ids, &[]),
        (ids, &[Value::Integer(1), Value::Integer(2)]),
        (ids, &[Value::Other]),
        ("SELECT * FROM missing WHERE id = ?", &[Value::Integer(1)]),
        ("SELECT SLEEP(?)", &[Value::Integer(100)]),
    ] {
        assert_eq!(replays.run_with(text, Some(values)).await, None, "{text}");
        assert!(replays.run(plain).await.is_some(), "{text}");
    }
}
