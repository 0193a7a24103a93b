//! What a statement that is run again can read, and that it cannot write. It needs mariadb-server, as the tests of `learned` do.

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
        let again = RunAgain {
            session: 0,
            texts: vec![text.into()],
        };
        let (account, session) = (&self.account, &self.session);
        self.connection.run(&again, account, session).await
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
