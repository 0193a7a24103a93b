//! Pages that read through an object cache (Redis): kept while the keys that they read are what they were, whoever writes
//! them, and for no longer than the keys live.

use std::path::PathBuf;

use control::explain::LearnedState;
use testkit::client::Target;
use testkit::redis::RedisServer;
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::configuration;
use super::{PAUSE, learned};
use crate::program;

/// An object cache as applications have it: keys with a salt, serialised values, many keys at once, commands that are sent
/// together, a group that is flushed by naming its keys. `RESP` is the version of the protocol.
const OBJECT_CACHE: &str = r#"<?php
class ObjectCache {
    private $stream, $known = [];
    function __construct() {
        $this->stream = stream_socket_client('unix://' . __DIR__ . '/redis/redis');
        if (($_GET['resp'] ?? '2') === '3') { $this->ask([['HELLO', '3']]); }
        $this->ask([['PING'], ['SELECT', '2'], ['INFO', 'server']]);
    }
    function ask($commands) {
        $sent = '';
        foreach ($commands as $command) {
            $sent .= '*' . count($command) . "\r\n";
            foreach ($command as $word) { $sent .= '$' . strlen($word) . "\r\n$word\r\n"; }
        }
        fwrite($this->stream, $sent);
        return array_map(fn() => $this->answer(), $commands);
    }
    private function answer() {
        $line = rtrim(fgets($this->stream), "\r\n");
        [$kind, $rest] = [$line[0], substr($line, 1)];
        if ($kind === '$' && $rest !== '-1' || $kind === '=') {
            return substr(stream_get_contents($this->stream, $rest + 2), 0, -2);
        }
        if ($kind === '*') { return array_map(fn() => $this->answer(), $rest > 0 ? range(1, $rest) : []); }
        if ($kind === '%') { return array_map(fn() => $this->answer(), range(1, 2 * $rest)); }
        return $kind === ':' || $kind === '+' ? $rest : false;
    }
    function get_multiple($keys) {
        [$values] = $this->ask([['MGET', ...array_map(fn($key) => "wp:$key", $keys)]]);
        return array_combine($keys, array_map(fn($value) => $value === false ? false : unserialize($value), $values));
    }
    function set($key, $value, $seconds = 0) {
        $end = $seconds ? ['EX', (string) $seconds] : [];
        $this->ask([['SET', "wp:$key", serialize($value), ...$end]]);
    }
    function flush_group($group) {
        [[, $keys]] = $this->ask([['SCAN', '0', 'MATCH', "wp:$group:*", 'COUNT', '1000']]);
        if ($keys) { $this->ask([['UNLINK', ...$keys]]); }
    }
}
$cache = new ObjectCache;
"#;

/// Read through the cache: the row, and a heading that only the cache has.
const PAGE: &str = "<?php
require __DIR__ . '/connect.php';
require __DIR__ . '/object-cache.php';
$found = $cache->get_multiple(['posts:1', 'heading']);
if ($found['posts:1'] === false) {
    $found['posts:1'] = $database->query('SELECT version FROM post WHERE id = 1')->fetch_row()[0];
    $cache->set('posts:1', $found['posts:1']);
}
echo $found['heading'] ?: 'none', ' ', $found['posts:1'];
";

/// Writes the row and lets the group go.
const CHANGE: &str = "<?php
require __DIR__ . '/connect.php';
require __DIR__ . '/object-cache.php';
$database->query('UPDATE post SET version = version + 1 WHERE id = 1');
$cache->flush_group('posts');
echo 'written';
";

/// Does what the query says, and shows the answer.
const COMMAND: &str = "<?php
require __DIR__ . '/object-cache.php';
echo json_encode($cache->ask([explode(' ', $_GET['command'])]));
";

/// Writes a key before the cache has answered anything.
const DELETE: &str = r#"<?php
$stream = stream_socket_client('unix://' . __DIR__ . '/redis/redis');
fwrite($stream, "*2\r\n$3\r\nDEL\r\n$10\r\nwp:heading\r\n");
echo fgets($stream);
"#;

struct CacheSite {
    _site: DatabaseSite,
    redis: RedisServer,
    server: RunningServer,
}

impl CacheSite {
    async fn start() -> Option<CacheSite> {
        let site = DatabaseSite::make()?;
        site.add("object-cache.php", OBJECT_CACHE);
        site.add("page.php", PAGE);
        site.add("change.php", CHANGE);
        site.add("command.php", COMMAND);
        site.add("delete.php", DELETE);
        let folder = site.path().join("redis");
        std::fs::create_dir(&folder).unwrap();
        let redis = RedisServer::start_with(&folder, false, &["--unixsocketperm", "777"]);
        let (main, http) = configuration(&site, "1ms");
        let cache = redis.socket().display().to_string();
        let learn = format!("cache_learn on; cache_learn_object_cache unix:{cache};");
        let http = http.replace("cache_learn on;", &learn);
        let server = RunningServer::start(program(), &main, &http).await;
        Some(CacheSite {
            _site: site,
            redis,
            server,
        })
    }

    fn target(&self) -> Target {
        self.server.target()
    }

    fn control(&self) -> PathBuf {
        self.server.path("pid.control")
    }

    async fn until_kept(&self, path: &str) {
        until_kept(&self.target(), &self.control(), path).await;
    }

    async fn shows(&self, path: &str) -> String {
        self.target().get(path).await.text()
    }

    /// Asks until the page shows this.
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

    /// Pages that write to the cache or ask it for more than values.
    async fn learns_nothing_of_other_commands(&self) {
        for (command, reason) in [
            ("INCR+views", "own-write"),
            ("EVAL+return+0", "own-write"),
            ("SCAN+0", "cache-state"),
            ("TTL+wp:heading", "cache-state"),
            ("HGET+wp:heading", "cache-state"),
            ("SUBSCRIBE+news", "elsewhere"),
        ] {
            let path = format!("/command.php?command={command}");
            self.target().get(&path).await;
            let part = learned(&self.server, &path, LearnedState::NotLearned).await;
            assert_eq!(part.reason, reason, "{command}: {part:?}");
        }
        self.until_kept("/command.php?command=GET+wp:heading").await;
        let path = "/command.php?command=GET+wp:heading";
        let part = learned(&self.server, path, LearnedState::Fresh).await;
        let cache = format!(
            "1 keys of the object cache unix:{}",
            self.redis.socket().display()
        );
        assert_eq!(part.databases, [cache]);
    }

    /// Another program writes to the cache.
    fn say(&self, words: &[&str]) {
        let database = ["--no-auth-warning", "-n", "2", "-s"];
        let run = std::process::Command::new("redis-cli")
            .args(database)
            .arg(self.redis.socket())
            .args(words)
            .output();
        assert!(run.expect("redis-cli").status.success());
    }
}

#[tokio::test]
async fn page_that_reads_through_an_object_cache_shows_each_change() {
    let Some(site) = CacheSite::start().await else {
        return;
    };
    for path in ["/page.php", "/page.php?resp=3"] {
        site.until_kept(path).await;
        let reply = site.target().get(path).await;
        assert_eq!(reply.x_cache(), "HIT", "{path}");
        assert_eq!(reply.text(), "none 1", "{path}");
    }
    // A key that was read as missing.
    site.say(&["SET", "wp:heading", "s:3:\"new\";"]);
    site.until_shown("/page.php", "new 1").await;
    site.until_kept("/page.php").await;
    // PHP of the pool: the very next answer is current.
    for version in 2..4 {
        assert_eq!(site.shows("/change.php").await, "written");
        assert_eq!(site.shows("/page.php").await, format!("new {version}"));
        site.until_kept("/page.php").await;
    }
    site.say(&["DEL", "wp:heading"]);
    site.until_shown("/page.php", "none 3").await;
    site.until_kept("/page.php").await;
    // The server names no key where it exchanges databases.
    site.say(&["-n", "3", "SET", "wp:heading", "s:7:\"swapped\";"]);
    site.until_kept("/page.php").await;
    site.say(&["SWAPDB", "2", "3"]);
    site.until_shown("/page.php", "swapped 3").await;
    site.until_kept("/page.php").await;
    site.say(&["FLUSHALL"]);
    site.until_shown("/page.php", "none 3").await;
    // A key that ends by itself.
    site.say(&["SET", "wp:heading", "s:5:\"short\";"]);
    site.until_shown("/page.php", "short 3").await;
    site.until_kept("/page.php").await;
    site.say(&["EXPIRE", "wp:heading", "3"]);
    site.until_shown("/page.php", "none 3").await;
}

#[tokio::test]
async fn write_of_php_ends_pages_before_the_cache_has_it_and_no_page_is_kept_without_the_cache() {
    let Some(mut site) = CacheSite::start().await else {
        return;
    };
    site.learns_nothing_of_other_commands().await;
    site.until_kept("/page.php").await;
    // The cache does not answer, and names no key: what PHP sends to it counts all the same.
    let writes = site.target();
    site.redis.pause();
    let written = tokio::spawn(async move { writes.get("/delete.php").await });
    let part = learned(&site.server, "/page.php", LearnedState::Suspect).await;
    assert!(part.detail.contains("DEL wp:heading"), "{part:?}");
    site.redis.resume();
    written.await.unwrap();
    site.until_kept("/page.php").await;
    site.redis.stop();
    let started = std::time::Instant::now();
    while site.target().get("/page.php").await.x_cache() == "HIT" {
        assert!(started.elapsed() < TIMEOUT, "it is shown without the cache");
        tokio::time::sleep(PAUSE).await;
    }
    site.redis.start_again();
    site.say(&["SET", "wp:heading", "s:5:\"again\";"]);
    site.until_shown("/page.php", "again 1").await;
    site.until_kept("/page.php").await;
}
