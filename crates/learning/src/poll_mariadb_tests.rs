//! MariaDB's own answers about its tables. It needs mariadb-server, as the tests of `learned` do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testkit::mariadb::MariaDb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::*;

fn account(socket: &Path) -> DatabaseAccount {
    DatabaseAccount {
        server: format!("unix:{}", socket.display()),
        user: "root".to_owned(),
        password: String::new(),
    }
}

#[tokio::test]
async fn each_change_of_a_table_is_seen_by_the_next_poll() {
    let database = MariaDb::start();
    database.run(
        "CREATE DATABASE blog; USE blog;
         CREATE TABLE post (id INT PRIMARY KEY, title TEXT) ENGINE=InnoDB;
         CREATE TABLE quiet (id INT PRIMARY KEY) ENGINE=InnoDB;
         CREATE TABLE plain (id INT PRIMARY KEY) ENGINE=MyISAM;
         CREATE TABLE late (id INT PRIMARY KEY) ENGINE=Aria;
         INSERT INTO post VALUES (1, 'a'); INSERT INTO quiet VALUES (1); INSERT INTO plain VALUES (1);",
    );
    let account = account(&database.socket());
    let tables: Vec<Arc<str>> = ["blog.late", "blog.plain", "blog.post", "blog.quiet"]
        .map(Arc::from)
        .to_vec();
    let mut polled = PolledTables::default();
    let _ = polled.want(&tables, Instant::now());
    // The clock decides which tables are recent: each answer is compared as if none were.
    let mut look = async || {
        let now = Instant::now();
        let mut answer = Poller::default()
            .ask(&account, &tables, Duration::ZERO)
            .await
            .unwrap();
        answer
            .tables
            .values_mut()
            .for_each(|it| it.is_recent = false);
        let seen = polled.compare(answer, &tables, now);
        (seen, polled.want(&tables, now))
    };
    let (first, keeps) = look().await;
    assert!(matches!(first, PollResult::Everything(_)), "{first:?}");
    assert_eq!(keeps.unwrap_err().detail, "blog.late: Aria");
    let written = |names: &[&str]| {
        // Its engine does not tell.
        let all = std::iter::once(&"blog.late").chain(names);
        PollResult::Tables(all.map(|name| Arc::from(*name)).collect())
    };
    assert_eq!(look().await.0, written(&[]), "nothing was written");
    // A second later it is another time.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    database.run("UPDATE blog.post SET title = 'b'");
    assert_eq!(look().await.0, written(&["blog.post"]));
    database.run("SELECT * FROM blog.post; BEGIN; ROLLBACK;");
    assert_eq!(look().await.0, written(&[]), "reading is no write");
    database.run("INSERT INTO blog.plain VALUES (2)");
    assert_eq!(look().await.0, written(&["blog.plain"]));
    database.run("TRUNCATE blog.quiet");
    assert_eq!(look().await.0, written(&["blog.quiet"]));
    for on in ["ON", "OFF"] {
        database.run(&format!("SET GLOBAL read_only = {on}"));
        assert_eq!(look().await.0, PollResult::Everything("read_only was set"));
    }
    for definition in [
        "ALTER TABLE blog.post ADD COLUMN more INT",
        "CREATE VIEW blog.seen AS SELECT id FROM blog.post",
        "CREATE OR REPLACE VIEW blog.seen AS SELECT id, title FROM blog.post",
        "CREATE TRIGGER blog.after_it AFTER INSERT ON blog.post FOR EACH ROW DELETE FROM blog.quiet",
        "CREATE PROCEDURE blog.p() DELETE FROM blog.post",
        "DROP TABLE blog.quiet",
    ] {
        database.run(definition);
        assert_eq!(look().await.0, PollResult::Definitions, "{definition}");
    }
    let (_, keeps) = look().await;
    assert!(keeps.is_err());
    drop(database);
    assert!(
        Poller::default()
            .ask(&account, &tables, Duration::ZERO)
            .await
            .is_err()
    );
}

/// Each of these leaves `update_time`, `create_time` and the size of some table as they were, or may do so.
#[tokio::test]
async fn statements_that_replace_rows_and_leave_the_times_are_seen_by_the_next_poll() {
    let database = MariaDb::start();
    database.run(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE sale (id INT PRIMARY KEY, price INT) ENGINE=InnoDB
           PARTITION BY RANGE (id) (PARTITION old VALUES LESS THAN (10), PARTITION new VALUES LESS THAN (20));
         CREATE TABLE other (id INT PRIMARY KEY, price INT) ENGINE=InnoDB;
         CREATE TABLE third LIKE other;
         INSERT INTO sale VALUES (1, 1), (11, 1); INSERT INTO other VALUES (12, 2); INSERT INTO third VALUES (13, 3);
         CREATE PROCEDURE forget() ALTER TABLE sale TRUNCATE PARTITION old;",
    );
    let account = account(&database.socket());
    let tables: Vec<Arc<str>> = ["shop.other", "shop.sale"].map(Arc::from).to_vec();
    let all = PollResult::Tables(tables.clone());
    let look = async || {
        let mut answer = Poller::default()
            .ask(&account, &tables, Duration::ZERO)
            .await
            .unwrap();
        // The clock would show that they are new.
        let states = answer.tables.values_mut();
        states.for_each(|it| it.is_recent = false);
        answer
    };
    for statement in [
        "ALTER TABLE shop.sale EXCHANGE PARTITION new WITH TABLE shop.other",
        "RENAME TABLE shop.other TO shop.fourth, shop.third TO shop.other, shop.fourth TO shop.third",
        "ALTER TABLE shop.other DISCARD TABLESPACE",
        "ALTER TABLE shop.sale TRUNCATE PARTITION new",
        "CALL shop.forget()",
        "EXECUTE IMMEDIATE 'ALTER TABLE shop.sale REBUILD PARTITION old'",
    ] {
        let mut polled = PolledTables::default();
        let began = Instant::now();
        polled.compare(look().await, &tables, began);
        database.run(statement);
        let seen = polled.compare(look().await, &tables, began);
        // A table that was made anew has another time, but not within one second.
        let is_seen = seen == all || seen == PollResult::Definitions;
        assert!(is_seen, "{statement}: {seen:?}");
    }
}

/// Passes all on, but numbers connections by itself, as ProxySQL and MaxScale do.
async fn proxy(listener: UnixListener, server: PathBuf, number: u32) {
    while let Ok((mut client, _)) = listener.accept().await {
        let Ok(mut server) = UnixStream::connect(&server).await else {
            return;
        };
        tokio::spawn(async move {
            let mut greeting = [0; 1024];
            let read = server.read(&mut greeting).await.unwrap();
            // Behind the head of the packet and the version, which ends with a zero.
            let version = greeting[5..].iter().position(|byte| *byte == 0).unwrap();
            greeting[6 + version..][..4].copy_from_slice(&number.to_le_bytes());
            client.write_all(&greeting[..read]).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}

#[tokio::test]
async fn nothing_is_known_of_a_server_behind_a_proxy() {
    let database = MariaDb::start();
    let tables: Vec<Arc<str>> = vec!["mysql.user".into()];
    let direct = Poller::default()
        .ask(&account(&database.socket()), &tables, Duration::ZERO)
        .await;
    assert!(direct.is_ok(), "{direct:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proxy");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(proxy(listener, database.socket(), 4_000_000));
    let proxied = Poller::default()
        .ask(&account(&path), &tables, Duration::ZERO)
        .await;
    let why = proxied.unwrap_err().to_string();
    assert_eq!(why, "a proxy stands before the database");
}
