//! Answers of a PostgreSQL, read and asked for. It needs postgresql.

use std::time::{Duration, Instant};

use testkit::postgres::Postgres;

use super::super::{PollResult, PolledTables, Poller};
use super::*;

fn row(fields: &[&str]) -> TextRow {
    let fields = fields.iter();
    fields.map(|it| Some(it.as_bytes().to_vec())).collect()
}

/// A row of a server, with another value at one place.
fn server(at: usize, value: &str) -> io::Result<ServerState> {
    let mut fields = ["5:7:6", "150018", "60", "f", "on", "since", "77 5"];
    fields[at] = value;
    server_state(&[row(&fields)])
}

fn usual() -> ServerState {
    server(1, "150018").unwrap()
}

const TABLES: [&str; 2] = ["public.post", "public.far"];

fn tables() -> Vec<Arc<str>> {
    TABLES.map(Arc::from).to_vec()
}

fn answer(server: &ServerState, is_held_back: bool) -> PollAnswer {
    let states = [
        row(&["public", "post", "r", "16385", "1 0 0", "16400 since"]),
        row(&["public", "far", "f", "16386", "0 0 0", "0 since"]),
    ];
    let held_back = (&tables()[..], is_held_back);
    read(server, &definitions(), &states, held_back).unwrap()
}

fn definitions() -> Definitions {
    Definitions {
        catalogs: vec![row(&["1247 1 0 0", "7"])],
        number: vec![row(&["-12"])],
    }
}

#[test]
fn a_server_that_counts_is_read_and_others_are_not() {
    let read = answer(&usual(), false);
    assert_eq!((read.uptime, &*read.identity), (60, "77 5"));
    assert!(!read.holds_counts_back);
    let state = &read.tables["public.post"];
    assert_eq!(state.size.as_deref(), Some(&b"16400 since"[..]));
    assert!(state.is_polled_engine() && !read.tables["public.far"].is_polled_engine());
    assert_eq!(read.definitions.len(), 1);
    assert!(answer(&usual(), true).holds_counts_back);
    assert!(!counts_are_held_back(&usual(), &[]));
    assert!(counts_are_held_back(&usual(), &[row(&["4711"])]));
    assert!(counts_are_held_back(&server(1, "140012").unwrap(), &[]));
    for (at, value, why) in [(3, "t", "standby"), (4, "off", "track_counts")] {
        let error = server(at, value).err().unwrap();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(server_state(&[row(&["150018"])]).is_err());
}

#[test]
fn the_former_answer_stands_while_the_same_server_has_committed_nothing() {
    let kept = KeptAnswer {
        server: usual(),
        tables: tables(),
        answer: answer(&usual(), false),
        definitions: definitions(),
    };
    for (at, value, expected) in [
        (2, "60", true),
        (2, "61", true),
        (2, "59", false),
        (0, "5:8:6", false),
        (0, "5:7:", false),
        (1, "150019", false),
        (5, "later", false),
        (6, "77 6", false),
    ] {
        let server = server(at, value).unwrap();
        let stands = server.continues(&kept.server) && kept.stands(&server, &tables());
        assert_eq!(stands, expected, "{at} {value}");
    }
    assert!(!kept.stands(&usual(), &tables()[..1]));
}

#[test]
fn tables_are_asked_for_by_schema_and_name() {
    assert_eq!(question(&[]), None);
    let question = question(&[Arc::from("a.b"), Arc::from("c.D")]).unwrap();
    assert!(
        question.ends_with("IN (('a', 'b'), ('c', 'D'))"),
        "{question}"
    );
}

/// The connection of the poll, as another program sees it: its process, and what it asked last.
const KEPT: &str =
    "SELECT pid, starts_with(query, 'SELECT pg_current_snapshot') FROM pg_stat_activity
    WHERE application_name = 'mayfly'";

fn times_asked_for_definitions(database: &Postgres) -> usize {
    let log = std::fs::read_to_string(database.folder().join("log"));
    let log = log.expect("a log");
    log.matches("SELECT sum(hashtextextended(it").count()
}

#[tokio::test]
async fn a_server_that_stands_still_is_asked_little_on_a_connection_that_is_kept() {
    let database = Postgres::start();
    database.run("postgres", "ALTER SYSTEM SET autovacuum = off");
    database.run("postgres", "ALTER SYSTEM SET log_statement = 'all'");
    database.run(
        "postgres",
        "SELECT pg_reload_conf(); CREATE ROLE blog LOGIN PASSWORD 'secret'; CREATE DATABASE blog OWNER blog;",
    );
    let made = "SET ROLE blog; CREATE TABLE post (id int); CREATE TABLE far (id int)";
    database.run("blog", made);
    let account = DatabaseAccount {
        server: format!("postgres:unix:{}/blog", database.socket().display()),
        user: "blog".to_owned(),
        password: "secret".to_owned(),
    };
    let (mut poller, mut polled) = (Poller::default(), PolledTables::default());
    let mut look = async || {
        let answer = poller.ask(&account, &tables(), Duration::ZERO).await;
        polled.compare(answer.unwrap(), &tables(), Instant::now())
    };
    let nothing = PollResult::Tables(Vec::new());
    let first = look().await;
    assert!(matches!(first, PollResult::Everything(_)), "{first:?}");
    let connection = database.run("blog", KEPT);
    let process = connection.trim().strip_suffix("|f").expect("a table");
    // Nothing is written: the third poll asks one question.
    assert_eq!(look().await, nothing);
    assert_eq!(database.run("blog", KEPT).trim(), format!("{process}|t"));
    database.run("blog", "INSERT INTO post VALUES (1)");
    let written = PollResult::Tables(vec![TABLES[0].into()]);
    assert_eq!(look().await, written);
    assert_eq!(database.run("blog", KEPT).trim(), format!("{process}|f"));
    // The connection is closed after the last poll: others may drop the database.
    assert_eq!(look().await, nothing);
    assert_eq!(look().await, nothing);
    let another = database.run("blog", KEPT);
    assert!(another.trim().ends_with("|t"), "{another}");
    assert!(!another.starts_with(process), "{another}");
    assert_eq!(times_asked_for_definitions(&database), 1);
    for (database_of_it, definition) in [
        ("blog", "ALTER TABLE far ADD COLUMN text text"),
        ("blog", "CREATE VIEW seen AS SELECT * FROM far"),
        (
            "blog",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        ),
        (
            "blog",
            "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2'",
        ),
        (
            "blog",
            "CREATE RULE it AS ON UPDATE TO far DO ALSO SELECT 1",
        ),
        ("blog", "CREATE POLICY it ON far"),
        ("blog", "ALTER TABLE post ADD CHECK (id > 0)"),
        ("blog", "ALTER TABLE far ALTER text SET DEFAULT 'a'"),
        ("blog", "DROP VIEW seen"),
        (
            "postgres",
            "ALTER ROLE blog IN DATABASE blog SET work_mem = '1MB'",
        ),
    ] {
        database.run(database_of_it, definition);
        assert_eq!(look().await, PollResult::Definitions, "{definition}");
    }
    let before = times_asked_for_definitions(&database);
    database.run("blog", "TRUNCATE post");
    assert_eq!(look().await, written);
    // A table that gets another file is a row of pg_class.
    let after = times_asked_for_definitions(&database);
    assert_eq!(after, before + 1);
    database.run("blog", "INSERT INTO post VALUES (1)");
    assert_eq!(look().await, written);
    assert_eq!(times_asked_for_definitions(&database), after);
    database.run("postgres", "DROP DATABASE blog WITH (FORCE)");
    assert!(
        poller
            .ask(&account, &tables(), Duration::ZERO)
            .await
            .is_err()
    );
}
