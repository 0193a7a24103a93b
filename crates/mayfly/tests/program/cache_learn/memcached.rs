//! Pages that read through a memcached: kept while the keys that they read are what they were, whoever writes them.

use control::explain::LearnedState;
use tempfile::TempDir;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use super::database_site::until_kept;
use super::{PAUSE, learned, serve_scripts, write_scripts};
use crate::has_php_fpm;
use crate::memcached::Memcached;

/// As PHP's extensions speak: a page reads two keys, and others do what the query says.
const SCRIPTS: [(&str, &str); 2] = [
    (
        "page.php",
        r#"<?php
$cache = stream_socket_client('unix://' . __DIR__ . '/memcached');
fwrite($cache, "get heading text\r\n");
$found = [];
while (($line = rtrim(fgets($cache))) !== 'END') {
    [, $key, , $length] = explode(' ', $line);
    $found[$key] = substr(stream_get_contents($cache, $length + 2), 0, -2);
}
echo $found['heading'] ?? 'none', ' ', $found['text'] ?? 'none';
"#,
    ),
    (
        "say.php",
        r#"<?php
$cache = stream_socket_client('unix://' . __DIR__ . '/memcached');
fwrite($cache, stripcslashes(urldecode($_SERVER['QUERY_STRING'])));
echo fgets($cache);
"#,
    ),
];

struct MemcachedSite {
    folder: TempDir,
    memcached: Option<Memcached>,
    server: RunningServer,
}

impl MemcachedSite {
    async fn start() -> Option<MemcachedSite> {
        if !has_php_fpm() {
            return None;
        }
        let folder = write_scripts(&SCRIPTS);
        let socket = folder.path().join("memcached");
        let memcached = Memcached::start_at(socket.clone()).await?;
        let learn = format!(
            "cache_learn on; cache_learn_object_cache unix:{};",
            socket.display()
        );
        let server = serve_scripts(folder.path(), &learn).await;
        Some(MemcachedSite {
            folder,
            memcached: Some(memcached),
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

    async fn until_shown(&self, expected: &str) {
        let started = std::time::Instant::now();
        loop {
            let shown = self.shows("/page.php").await;
            if shown == expected {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{shown} is not {expected}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Another program says this to the cache.
    async fn say(&self, command: &str, answer: &str) {
        let memcached = self.memcached.as_ref().expect("it runs");
        assert_eq!(memcached.say(command.as_bytes()).await, answer);
    }
}

#[tokio::test]
async fn page_that_reads_through_memcached_shows_each_change_and_is_not_shown_without_it() {
    let Some(mut site) = MemcachedSite::start().await else {
        return;
    };
    site.until_kept("/page.php").await;
    assert_eq!(site.shows("/page.php").await, "none none");
    // A key that was read as missing.
    site.say("set heading 0 0 3\r\nnew\r\n", "STORED\r\n").await;
    site.until_shown("new none").await;
    site.until_kept("/page.php").await;
    // PHP of the pool: the very next answer is current.
    for text in ["one", "two"] {
        let path = format!("/say.php?set+text+0+0+3%5Cr%5Cn{text}%5Cr%5Cn");
        assert_eq!(site.shows(&path).await, "STORED\r\n");
        assert_eq!(site.shows("/page.php").await, format!("new {text}"));
        site.until_kept("/page.php").await;
    }
    // The same value is written again, and another one of the same length in its place.
    site.say("set heading 0 0 3\r\nnew\r\n", "STORED\r\n").await;
    site.say("set heading 0 0 3\r\nold\r\n", "STORED\r\n").await;
    site.until_shown("old two").await;
    site.until_kept("/page.php").await;
    site.say("flush_all\r\n", "OK\r\n").await;
    site.until_shown("none none").await;
    // A key that ends by itself.
    site.say("set heading 0 4 5\r\nshort\r\n", "STORED\r\n")
        .await;
    site.until_shown("short none").await;
    site.until_kept("/page.php").await;
    site.until_shown("none none").await;
    for (command, reason) in [
        ("incr+views+1", "own-write"),
        ("flush_all", "own-write"),
        ("stats", "cache-state"),
        ("lru_crawler+metadump+all", "elsewhere"),
    ] {
        let path = format!("/say.php?{command}%5Cr%5Cn");
        site.shows(&path).await;
        let part = learned(&site.server, &path, LearnedState::NotLearned).await;
        assert_eq!(part.reason, reason, "{command}: {part:?}");
    }
    site.until_kept("/page.php").await;
    let path = site.folder.path().join("memcached");
    site.memcached = None;
    let started = std::time::Instant::now();
    while site.server.target().get("/page.php").await.x_cache() == "HIT" {
        assert!(started.elapsed() < TIMEOUT, "it is shown without the cache");
        tokio::time::sleep(PAUSE).await;
    }
    // The numbers of its writes begin again.
    std::fs::remove_file(&path).expect("its socket");
    site.memcached = Memcached::start_at(path).await;
    site.say("set heading 0 0 5\r\nagain\r\n", "STORED\r\n")
        .await;
    site.until_shown("again none").await;
    site.until_kept("/page.php").await;
}
