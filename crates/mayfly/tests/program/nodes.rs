//! Several servers and one Redis (`cache_nodes`): a purge that returned on one holds on all of them, or the purge does
//! not return.

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::{Signal, send_signal};
use testkit::redis::RedisServer;
use testkit::running::RunningServer;
use testkit::wait::until_or;

use crate::start;

/// Servers in front of one PHP, whose pages say how often one was made and carry the tag `all`.
struct Cluster {
    _folder: tempfile::TempDir,
    redis: RedisServer,
    _php: FakePhp,
    servers: Vec<RunningServer>,
    /// The content of the http block of each.
    http: String,
}

impl Cluster {
    async fn start(count: usize) -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let redis = RedisServer::start(folder.path(), true);
        let php = FakePhp::tcp(|request| {
            let path = request.param("REQUEST_URI");
            let field = match path {
                "/edit" => "X-Cache-Purge-Tags: all\r\nCache-Control: no-store\r\n",
                _ => "X-Cache-Tags: all\r\n",
            };
            let fields = format!("Content-Type: text/html\r\n{field}");
            Script::page(&fields, format!("{path} {}", request.number))
        })
        .await;
        let socket = redis.socket();
        let site = php.cached_site("fastcgi_cache_valid 200 1h;\ncache_purge_fields on;\nfastcgi_cache_purge PURGE from unix:;\nadd_header X-Reason $cache_reason always;");
        let api = "server_name site.test;\nlocation = /purge { cache_purge_api; }\nlocation = /metrics { metrics; }\n";
        let http = format!(
            "cache_nodes unix:{};\n{}",
            socket.display(),
            site.replacen("server_name site.test;\n", api, 1)
        );
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(start(&http).await);
        }
        let cluster = Cluster {
            _folder: folder,
            redis,
            _php: php,
            servers,
            http,
        };
        for at in 0..count {
            cluster.until_hit(at, "/warm").await;
        }
        cluster
    }

    fn at(&self, server: usize) -> Target {
        self.servers[server].target()
    }

    async fn get(&self, server: usize, path: &str) -> Reply {
        self.at(server).get(path).await
    }

    /// Asks until the page comes from memory: the node holds a lease.
    async fn until_hit(&self, server: usize, path: &str) {
        for _ in 0..2000 {
            if self.get(server, path).await.x_cache() == "HIT" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("server {server} does not answer from memory");
    }

    /// The value of a number in `/metrics`; `None` where it is missing.
    async fn number(&self, server: usize, name: &str) -> Option<f64> {
        let text = self.get(server, "/metrics").await.text();
        let mut values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        values.next().and_then(|value| value.parse().ok())
    }

    /// Looks until numbers have these values.
    async fn until_numbers(&self, server: usize, wanted: &[(&str, Option<f64>)]) {
        for &(name, value) in wanted {
            let name = format!("mayfly_nodes_{name}");
            let mut now = None;
            for _ in 0..2000 {
                now = self.number(server, &name).await;
                if now == value {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            assert_eq!(now, value, "{name} of server {server}");
        }
    }

    async fn until_logged(&self, server: usize, part: &str) {
        let log = || self.servers[server].read("error.log");
        until_or(|| log().contains(part), || format!("{part:?} in {}", log())).await;
    }

    async fn purge(&self, server: usize) -> Reply {
        let fields = "Content-Type: application/json\r\n";
        let target = self.at(server);
        target
            .ask("POST", "/purge", fields, r#"{"tags":["all"]}"#)
            .await
    }
}

/// What a page says: how often one was made.
fn number(reply: &Reply) -> u64 {
    let last = reply.text().rsplit(' ').next().map(str::to_owned);
    last.and_then(|last| last.parse().ok()).expect("a number")
}

#[tokio::test]
async fn a_purge_by_each_way_is_seen_at_once_on_all_nodes() {
    let cluster = Cluster::start(3).await;
    for round in 0..12 {
        let before: Vec<u64> = [
            number(&cluster.get(0, "/a").await),
            number(&cluster.get(1, "/a").await),
            number(&cluster.get(2, "/a").await),
        ]
        .into();
        let newest = *before.iter().max().expect("three");
        let from = round % 3;
        let status = match round % 4 {
            0 => cluster.purge(from).await.status,
            1 => cluster.get(from, "/edit").await.status,
            2 => cluster.at(from).ask("PURGE", "/a", "", "").await.status,
            // A write of a visitor.
            _ => {
                cluster
                    .at(from)
                    .ask("POST", "/a", "Content-Length: 0\r\n", "")
                    .await
                    .status
            }
        };
        assert_eq!(status, 200, "round {round}");
        for server in 0..3 {
            let page = cluster.get(server, "/a").await;
            assert!(number(&page) > newest, "round {round}, server {server}");
        }
    }
}

#[tokio::test]
async fn without_the_engine_pages_come_from_php_and_purges_are_refused_until_it_is_back() {
    let cluster = Cluster::start(2).await;
    cluster.redis.pause();
    cluster.until_logged(0, "has lost its lease").await;
    let page = cluster.get(0, "/warm").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.field("x-reason"), "no-lease");
    let refused = cluster.purge(0).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    cluster
        .until_logged(0, "is not confirmed by all nodes")
        .await;
    assert_eq!(cluster.get(0, "/edit").await.status, 200, "a visitor");
    cluster.until_logged(0, "by all nodes after 2300 ms").await;
    cluster.redis.resume();
    cluster.until_hit(0, "/warm").await;
    cluster.until_hit(1, "/warm").await;
    assert_eq!(cluster.purge(1).await.status, 200);
}

#[tokio::test]
async fn a_stopped_node_shows_nothing_old_when_it_goes_on() {
    let cluster = Cluster::start(2).await;
    let old = number(&cluster.get(1, "/warm").await);
    let pids = testkit::process::descendants(cluster.servers[1].pid());
    pids.iter().for_each(|pid| send_signal(*pid, Signal::STOP));
    // It returns once the other's lease has certainly ended.
    assert_eq!(cluster.purge(0).await.status, 200);
    pids.iter().for_each(|pid| send_signal(*pid, Signal::CONT));
    assert!(number(&cluster.get(1, "/warm").await) > old);
    cluster.until_hit(1, "/warm").await;
}

#[tokio::test]
async fn an_engine_that_lost_its_data_or_its_log_makes_nothing_old_appear() {
    let mut cluster = Cluster::start(2).await;
    for fault in [
        "flushed",
        "trimmed",
        "restarted with data",
        "restarted without data",
    ] {
        let old = number(&cluster.get(1, "/warm").await);
        match fault {
            "flushed" => drop(cluster.redis.say(&["FLUSHALL"])),
            "trimmed" => drop(cluster.redis.say(&["XTRIM", "mayfly:log", "MAXLEN", "0"])),
            _ => {
                if fault == "restarted without data" {
                    cluster.redis.say(&["FLUSHALL"]);
                }
                cluster.redis.stop();
                cluster.redis.start_again();
            }
        }
        let purged = cluster.purge(0).await;
        if purged.status == 503 {
            // Its connection was lost; what is not confirmed is asked for again.
            assert_eq!(cluster.purge(0).await.status, 200, "{fault}");
        }
        assert!(number(&cluster.get(1, "/warm").await) > old, "{fault}");
        cluster.until_hit(0, "/warm").await;
        cluster.until_hit(1, "/warm").await;
    }
}

#[tokio::test]
async fn metrics_tell_how_a_node_stands_with_the_others() {
    let mut cluster = Cluster::start(2).await;
    let members = ("members", Some(2.0));
    let held = [("connected", Some(1.0)), ("lease_held", Some(1.0)), members];
    cluster.until_numbers(0, &held).await;
    cluster.until_numbers(1, &held).await;
    let [lost, voids] = ["mayfly_nodes_lost_leases_total", "mayfly_nodes_voids_total"];
    assert!(cluster.number(0, voids).await >= Some(1.0), "the start");
    let lost_before = cluster.number(0, lost).await.expect("a number");
    assert_eq!(cluster.purge(1).await.status, 200);
    let applied = [
        ("applied_purges_total", Some(1.0)),
        ("entries_behind", Some(0.0)),
    ];
    cluster.until_numbers(0, &applied).await;
    let confirmed = [
        ("confirmed_purges_total", Some(1.0)),
        ("waiting_purges", Some(0.0)),
    ];
    cluster.until_numbers(1, &confirmed).await;
    let renewal = cluster.number(0, "mayfly_nodes_renewal_seconds").await;
    assert!(renewal.is_some_and(|renewal| renewal > 0.0), "{renewal:?}");

    cluster.redis.stop();
    // What was known last stays.
    let gone = [("connected", Some(0.0)), ("lease_held", Some(0.0)), members];
    cluster.until_numbers(0, &gone).await;
    assert_eq!(cluster.purge(0).await.status, 503);
    cluster
        .until_numbers(0, &[("waiting_purges", Some(1.0))])
        .await;
    assert!(cluster.number(0, lost).await > Some(lost_before));

    cluster.redis.start_again();
    cluster.until_numbers(0, &held).await;
    cluster.until_numbers(0, &confirmed).await;

    let without = cluster.http.split_once('\n').expect("lines").1;
    cluster.servers[0].rewrite("", without);
    cluster.servers[0].signal(Signal::HUP);
    let missing = ["connected", "lease_held", "confirmed_purges_total"].map(|name| (name, None));
    cluster.until_numbers(0, &missing).await;
}
