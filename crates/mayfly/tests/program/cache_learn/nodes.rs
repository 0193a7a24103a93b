//! Kept pages on several machines (`cache_nodes`): a write of PHP at one of them is shown by all of them as soon as PHP
//! knows that it has written, and without the other's look at the database, which comes once a second.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::process::{Signal, descendants, send_signal};
use testkit::redis::RedisServer;
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::{begin, configuration};
use super::{explained, number};
use crate::program;

/// Rounds of a write and a look.
const ROUNDS: usize = 12;

/// Writes the next version in one statement, or in a transaction, and answers when it knows that it has.
const COMMIT: &str = "<?php
require __DIR__ . '/connect.php';
$update = 'UPDATE post SET version = version + 1 WHERE id = 1';
if ($_SERVER['QUERY_STRING'] === 'transaction') {
    $database->begin_transaction();
    $database->query($update);
    $database->commit();
} else {
    $database->query($update);
}
touch(__DIR__ . '/flags/done');
";

/// It shows the version, under a tag.
const TAGGED: &str = "<?php
require __DIR__ . '/connect.php';
header('X-Cache-Tags: all');
echo $database->query('SELECT version FROM post WHERE id = 1')->fetch_row()[0];
";

/// Writes nothing, and purges pages with the tag.
const EDIT: &str = "<?php
header('X-Cache-Purge-Tags: all');
header('Cache-Control: no-store');
echo 'edited';
";

/// Two servers, each with a PHP of its own, and one database.
struct Cluster {
    site: DatabaseSite,
    redis: RedisServer,
    servers: Vec<RunningServer>,
    link: Link,
}

/// By which the first server reaches the engine.
struct Link {
    from: PathBuf,
    to: PathBuf,
    task: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Link {
    fn new(to: PathBuf) -> Link {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("redis");
        let mut link = Link {
            from,
            to,
            task: None,
            _folder: folder,
        };
        link.mend();
        link
    }

    /// Connections end, and there are no new ones.
    fn cut(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        let _ = std::fs::remove_file(&self.from);
    }

    fn mend(&mut self) {
        let listener = UnixListener::bind(&self.from).expect("a socket");
        let to = self.to.clone();
        self.task = Some(tokio::spawn(async move {
            // Its connections end with it.
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let to = to.clone();
                connections.spawn(async move {
                    let mut far = UnixStream::connect(&to).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        }));
    }
}

impl Cluster {
    /// `None` without PHP.
    async fn start() -> Option<Cluster> {
        let site = DatabaseSite::make()?;
        for (name, text) in [
            ("commit.php", COMMIT),
            ("tagged.php", TAGGED),
            ("edit.php", EDIT),
        ] {
            site.add(name, text);
        }
        let folder = site.path().join("engine");
        std::fs::create_dir(&folder).expect("a folder");
        let redis = RedisServer::start(&folder, true);
        let link = Link::new(redis.socket());
        let (main, http) = configuration(&site, "1ms");
        // With replays, no page would be in question for long.
        let with = "cache_learn on; cache_learn_replay off; cache_purge_fields on;";
        let http = http.replace("cache_learn on;", with);
        let mut servers = Vec::new();
        for socket in [link.from.clone(), redis.socket()] {
            let http = format!("cache_nodes unix:{};\n{http}", socket.display());
            servers.push(RunningServer::start(program(), &main, &http).await);
        }
        Some(Cluster {
            site,
            redis,
            servers,
            link,
        })
    }

    async fn until_kept(&self, server: usize, path: &str) {
        let server = &self.servers[server];
        until_kept(&server.target(), &server.path("pid.control"), path).await;
    }

    /// PHP of a server writes the next version. The answer to its request is not waited for: the purge of its own address
    /// holds it up while nodes are away.
    async fn write(&self, server: usize, is_transaction: bool) -> String {
        self.site.lower_all();
        let before: u32 = self.site.version().parse().expect("a number");
        let path = match is_transaction {
            true => "/commit.php?transaction",
            false => "/commit.php",
        };
        begin(&self.servers[server].target(), path);
        until_flag(&self.site, "done").await;
        (before + 1).to_string()
    }

    /// Asserts that the very next answer has PHP's version.
    async fn is_shown(&self, server: usize, version: &str, when: &str) {
        let reply = self.servers[server].target().get("/index.php").await;
        let log = self.servers[server].error_log();
        assert_eq!(
            (reply.status, &reply.text()[..]),
            (200, version),
            "{when}: {log}"
        );
    }

    async fn until_logged(&self, server: usize, part: &str) {
        let server = &self.servers[server];
        until(part, || server.error_log().contains(part)).await;
    }
}

/// Waits in short steps: the next event has to come soon.
async fn until_flag(site: &DatabaseSite, name: &str) {
    let started = Instant::now();
    while !site.is_raised(name) {
        assert!(started.elapsed() < TIMEOUT, "{name}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn write_of_php_at_one_node_is_shown_at_once_by_the_other() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let mut causes = Vec::new();
    for round in 0..ROUNDS {
        let (writer, reader) = (round % 2, 1 - round % 2);
        cluster.until_kept(reader, "/index.php").await;
        let version = cluster.write(writer, round / 2 % 2 == 1).await;
        cluster
            .is_shown(reader, &version, &format!("round {round}"))
            .await;
        cluster.until_kept(reader, "/index.php").await;
        cluster
            .site
            .run_by_php(
                &cluster.servers[writer].target(),
                "DELETE FROM post WHERE id = 7",
            )
            .await;
        let part = explained(&cluster.servers[reader], "/index.php").await;
        causes.push(part.learned.expect("a part").detail);
    }
    // A look at the database may have come in between now and then.
    let told = causes
        .iter()
        .filter(|it| it.contains("a write of another node to blog.post"));
    assert!(told.count() > ROUNDS / 2, "{causes:?}");
    assert!(
        !cluster.servers[0]
            .error_log()
            .contains("not all nodes confirm")
    );
}

#[tokio::test]
async fn page_that_has_a_tag_ends_by_a_purge_at_another_node_as_well() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    cluster.until_kept(1, "/tagged.php").await;
    let target = cluster.servers[0].target();
    let edited = target
        .ask("POST", "/edit.php", "Content-Length: 0\r\n", "")
        .await;
    assert_eq!(edited.text(), "edited");
    let reply = cluster.servers[1].target().get("/tagged.php").await;
    assert_eq!(reply.x_cache(), "MISS");
    cluster.until_kept(1, "/tagged.php").await;
    let version = cluster.write(0, false).await;
    let reply = cluster.servers[1].target().get("/tagged.php").await;
    assert_eq!(reply.text(), version);
}

#[tokio::test]
async fn node_that_was_stopped_while_another_wrote_shows_nothing_old() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    cluster.until_kept(1, "/index.php").await;
    let processes = descendants(cluster.servers[1].pid());
    processes
        .iter()
        .for_each(|pid| send_signal(*pid, Signal::STOP));
    let version = cluster.write(0, false).await;
    processes
        .iter()
        .for_each(|pid| send_signal(*pid, Signal::CONT));
    cluster.is_shown(1, &version, "it goes on").await;
    cluster.until_kept(1, "/index.php").await;
    cluster.is_shown(1, &version, "it is kept again").await;
}

#[tokio::test]
async fn without_the_engine_no_node_shows_what_was_kept_and_php_goes_on() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    for server in [0, 1] {
        cluster.until_kept(server, "/index.php").await;
    }
    cluster.redis.pause();
    let version = cluster.write(0, false).await;
    cluster
        .until_logged(0, "not all nodes confirm what PHP writes")
        .await;
    for server in [0, 1] {
        cluster
            .is_shown(server, &version, "without the engine")
            .await;
    }
    cluster.redis.resume();
    for server in [0, 1] {
        cluster.until_kept(server, "/index.php").await;
        cluster.is_shown(server, &version, "with the engine").await;
    }
    cluster.write(0, false).await;
    cluster
        .until_logged(0, "all nodes confirm what PHP writes again")
        .await;
}

#[tokio::test]
async fn write_at_a_node_that_cannot_reach_the_engine_is_shown_by_one_that_can() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    for round in 0..3 {
        for server in [0, 1] {
            cluster.until_kept(server, "/index.php").await;
        }
        cluster.link.cut();
        let version = cluster.write(0, round % 2 == 1).await;
        // It holds a lease, and has heard nothing of the write.
        for server in [1, 0] {
            cluster
                .is_shown(server, &version, &format!("round {round}"))
                .await;
        }
        cluster.link.mend();
    }
    // The reports that the node could not send in time have been sent since.
    let applied = number(&cluster.servers[1], "mayfly_nodes_applied_purges_total").await;
    assert!(applied > 0);
}
