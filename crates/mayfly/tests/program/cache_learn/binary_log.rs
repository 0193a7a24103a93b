//! `cache_learn_binary_log`: writes of other programs are read from the binary log of MariaDB.

use testkit::client::Target;
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::configuration;
use super::{PAUSE, explained};
use crate::program;

const LOG: [&str; 2] = ["--log-bin=log", "--server-id=1"];
const GRANT: &str = "GRANT REPLICATION SLAVE ON *.* TO blog@localhost";

async fn start(site: &DatabaseSite) -> RunningServer {
    let (main, http) = configuration(site, "1ms");
    let http = http.replace(
        "cache_learn on;",
        "cache_learn on; cache_learn_binary_log on;",
    );
    RunningServer::start(program(), &main, &http).await
}

/// Keeps the page until `explain` reports this state of the log.
async fn until_log(server: &RunningServer, wanted: &str) {
    let started = std::time::Instant::now();
    loop {
        until_kept(&server.target(), &server.path("pid.control"), "/index.php").await;
        let log = explained(server, "/index.php")
            .await
            .learned
            .expect("a part")
            .log;
        if log.starts_with(wanted) {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{log}: {}", server.error_log());
        tokio::time::sleep(PAUSE).await;
    }
}

/// A server that follows the log.
async fn follow() -> Option<(DatabaseSite, RunningServer)> {
    let site = DatabaseSite::make_with(&LOG)?;
    site.database.run(GRANT);
    let server = start(&site).await;
    until_log(&server, "followed").await;
    Some((site, server))
}

/// Waits until a request shows the database's version.
async fn until_shown(server: &RunningServer, site: &DatabaseSite) {
    let started = std::time::Instant::now();
    while server.target().get("/index.php").await.text() != site.version() {
        assert!(started.elapsed() < TIMEOUT, "{}", server.error_log());
        tokio::time::sleep(PAUSE).await;
    }
}

async fn metrics(server: &RunningServer) -> String {
    Target(server.path("metrics")).get("/").await.text()
}

/// Another program writes, and the page ends by the log, not by a poll, which may now and then come first.
async fn is_ended_by_log(site: &DatabaseSite, server: &RunningServer, write: &str, cause: &str) {
    let (target, control) = (server.target(), server.path("pid.control"));
    for attempt in 0.. {
        until_kept(&target, &control, "/index.php").await;
        site.database.run(write);
        let started = std::time::Instant::now();
        let detail = loop {
            let part = explained(server, "/index.php")
                .await
                .learned
                .expect("a part");
            if part.sentence.contains("may have changed") {
                break part.detail;
            }
            assert!(started.elapsed() < TIMEOUT, "{write}: {part:?}");
        };
        assert_eq!(target.get("/index.php").await.text(), site.version());
        if detail.starts_with(cause) {
            return;
        }
        assert!(attempt < 20, "{write}: {detail}");
    }
}

#[tokio::test]
async fn log_ends_pages_of_the_tables_that_other_programs_write() {
    let Some((site, server)) = follow().await else {
        return;
    };
    let write = "SET binlog_format = ROW; UPDATE blog.post SET version = version + 1 WHERE id = 1";
    is_ended_by_log(&site, &server, write, "a write to blog.post (binary log)").await;
    let numbers = metrics(&server).await;
    assert!(
        numbers.contains("mayfly_learned_logs_followed{pool=\"site\"} 1"),
        "{numbers}"
    );
}

#[tokio::test]
async fn write_that_is_not_in_the_log_is_found_by_a_poll() {
    let Some((site, server)) = follow().await else {
        return;
    };
    let write = "SET sql_log_bin = 0; UPDATE blog.post SET version = version + 1 WHERE id = 1";
    site.database.run(write);
    until_shown(&server, &site).await;
}

#[tokio::test]
async fn log_that_is_not_followed_is_named_once_and_tried_again() {
    let Some(site) = DatabaseSite::make_with(&LOG) else {
        return;
    };
    let server = start(&site).await;
    until_log(&server, "not followed: Access denied").await;
    until("a line of the log", || {
        server.error_log().contains("(it needs REPLICATION SLAVE)")
    })
    .await;
    // Pages are kept all the same, and another program's write is found.
    site.write();
    until_shown(&server, &site).await;
    site.database.run(GRANT);
    until_log(&server, "followed").await;
    until("a line of the log", || {
        server.error_log().contains("is followed again")
    })
    .await;
    assert_eq!(server.error_log().matches("is not followed").count(), 1);
    let kill = "SET @id = (SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'); KILL @id";
    site.database.run(kill);
    until("a line of the log", || {
        server.error_log().matches("is not followed").count() == 2
    })
    .await;
    until_log(&server, "followed").await;
    let write = "UPDATE blog.post SET version = version + 1 WHERE id = 1";
    is_ended_by_log(&site, &server, write, "").await;
}
