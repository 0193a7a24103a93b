//! Several servers and one Redis (`cache_nodes`): a purge that returned on one holds on all of them, or the purge does
//! not return.

mod coming_and_going;

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::{Signal, send_signal};
use testkit::redis::RedisServer;
use testkit::running::RunningServer;
use testkit::wait::{until, until_or};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::start;

/// Servers in front of one PHP, whose pages have the number of their run and carry the tag `all`, but `/untagged`.
struct Cluster {
    _folder: tempfile::TempDir,
    redis: RedisServer,
    php: FakePhp,
    /// `/slow` waits for it.
    gate: Arc<Semaphore>,
    /// PHP answers 503 to all.
    fails: Arc<AtomicBool>,
    servers: Vec<RunningServer>,
    /// The content of the http block of each.
    http: String,
}

impl Cluster {
    async fn start(count: usize) -> Cluster {
        Cluster::with(count, "").await
    }

    /// Nodes that share pages.
    async fn sharing(count: usize) -> Cluster {
        Cluster::with(count, "cache_nodes_pages on;\n").await
    }

    /// With more in the http block.
    async fn with(count: usize, lines: &str) -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join("key");
        std::fs::write(&key, [7; 32]).expect("a file");
        let redis = RedisServer::start(folder.path(), true);
        let gate = Arc::new(Semaphore::new(0));
        let fails = Arc::new(AtomicBool::new(false));
        let (held, broken) = (gate.clone(), fails.clone());
        let php = FakePhp::tcp(move |request| {
            let path = request.param("REQUEST_URI");
            if broken.load(Ordering::SeqCst) {
                return Script::page("Status: 503\r\nCache-Control: no-store\r\n", "broken");
            }
            let field = match path {
                "/edit" => "X-Cache-Purge-Tags: all\r\nCache-Control: no-store\r\n",
                "/untagged" => "",
                _ => "X-Cache-Tags: all\r\n",
            };
            let fields = format!("Content-Type: text/html\r\n{field}");
            let page = Script::page(&fields, format!("{path} {}", request.number));
            match path {
                "/slow" => Script::new().wait_for(&held).then(page),
                _ => page,
            }
        })
        .await;
        let socket = redis.socket();
        let site = php.cached_site("fastcgi_cache_valid 200 1h;\nfastcgi_cache_lock on;\nfastcgi_cache_use_stale error http_503;\ncache_purge_fields on;\nfastcgi_cache_purge PURGE from unix:;\nadd_header X-Reason $cache_reason always;");
        let api = "server_name site.test;\nlocation = /purge { cache_purge_api; }\nlocation = /metrics { metrics; }\n";
        let http = format!(
            "cache_nodes unix:{} key={};\n{lines}{}",
            socket.display(),
            key.display(),
            site.replacen("server_name site.test;\n", api, 1)
        );
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(start(&http).await);
        }
        let cluster = Cluster {
            _folder: folder,
            redis,
            php,
            gate,
            fails,
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
        until_hit(&self.servers[server], path).await;
    }

    /// The value of a number in `/metrics`; `None` if it is missing.
    async fn number(&self, server: usize, name: &str) -> Option<f64> {
        metric(&self.servers[server], name).await
    }

    /// Looks until numbers have these values.
    async fn until_numbers(&self, server: usize, wanted: &[(&str, Option<f64>)]) {
        until_numbers(&self.servers[server], wanted).await;
    }

    /// Waits until this number of requests is under way, beside the one that asks for the number.
    async fn until_asked(&self, server: usize, requests: usize) {
        let name = "mayfly_open_connections{state=\"writing\"}";
        let wanted = Some(requests as f64 + 1.0);
        let mut now = None;
        for _ in 0..2000 {
            now = self.number(server, name).await;
            if now >= wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{now:?} requests, and not {wanted:?}");
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

/// Asks until the page comes from memory.
async fn metric(server: &RunningServer, name: &str) -> Option<f64> {
    let text = server.target().get("/metrics").await.text();
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next().and_then(|value| value.parse().ok())
}

async fn until_numbers(server: &RunningServer, wanted: &[(&str, Option<f64>)]) {
    for &(name, value) in wanted {
        let name = format!("mayfly_nodes_{name}");
        let mut now = None;
        for _ in 0..2000 {
            now = metric(server, &name).await;
            if now == value {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(now, value, "{name}");
    }
}

async fn until_hit(server: &RunningServer, path: &str) {
    for _ in 0..2000 {
        if server.target().get(path).await.x_cache() == "HIT" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no answer from memory: {}", server.error_log());
}

/// Returns the number on a page: how often one was made.
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
            // Its connection was lost; unconfirmed purges are asked for again.
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
    // The last known values stay.
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

#[tokio::test]
async fn without_a_lease_requests_for_a_page_share_one_fetch_after_the_other() {
    let mut cluster = Cluster::start(1).await;
    cluster.redis.stop();
    cluster.until_logged(0, "has lost its lease").await;
    let mut asking = JoinSet::new();
    for _ in 0..8 {
        let target = cluster.at(0);
        asking.spawn(async move { number(&target.get("/slow").await) });
    }
    until("a fetch", || cluster.php.running() == 1).await;
    cluster.until_asked(0, 8).await;
    cluster.gate.add_permits(100);
    let pages: BTreeSet<u64> = asking.join_all().await.into_iter().collect();
    assert_eq!(cluster.php.most_at_once(), 1, "one at a time");
    assert!(
        pages.len() <= 3,
        "most came while the first was made: {pages:?}"
    );
}

#[tokio::test]
async fn a_node_that_lost_its_lease_uses_stored_pages_where_that_is_configured_and_says_so() {
    let mut cluster = Cluster::with(1, "cache_nodes_lost stale=1h;\n").await;
    let page = number(&cluster.get(0, "/warm").await);
    cluster.redis.stop();
    cluster.until_logged(0, "has lost its lease").await;
    let lost = cluster.get(0, "/warm").await;
    assert_eq!(
        (number(&lost), lost.field("x-reason")),
        (page, "lost-lease")
    );
    let status = lost.field("cache-status");
    assert!(
        status.contains("hit") && status.contains("detail=lost-lease"),
        "{status}"
    );
    let made = cluster.get(0, "/new").await;
    assert_eq!((made.x_cache(), made.field("x-reason")), ("MISS", ""));
    assert_eq!(cluster.purge(0).await.status, 503);
    cluster.redis.start_again();
    let held = [("lease_held", Some(1.0))];
    cluster.until_numbers(0, &held).await;
    cluster.until_hit(0, "/warm").await;
    assert_eq!(cluster.get(0, "/warm").await.field("x-reason"), "");
}

#[tokio::test]
async fn what_a_new_epoch_made_void_stands_in_for_failures_alone() {
    let mut cluster = Cluster::start(1).await;
    let kept = number(&cluster.get(0, "/kept").await);
    cluster.until_hit(0, "/kept").await;
    cluster.get(0, "/gone").await;
    cluster.at(0).ask("PURGE", "/gone", "", "").await;
    cluster.redis.stop();
    cluster.until_logged(0, "has lost its lease").await;
    cluster.fails.store(true, Ordering::SeqCst);
    let page = cluster.get(0, "/kept").await;
    assert_eq!(page.status, 503, "without a lease");
    cluster.redis.start_again();
    cluster.until_logged(0, "or the engine has lost it").await;
    let held = [("lease_held", Some(1.0))];
    cluster.until_numbers(0, &held).await;
    let page = cluster.get(0, "/kept").await;
    assert_eq!((page.status, page.x_cache()), (200, "STALE"));
    assert_eq!(number(&page), kept);
    assert_eq!(cluster.get(0, "/gone").await.status, 503);
    cluster.fails.store(false, Ordering::SeqCst);
    assert!(number(&cluster.get(0, "/kept").await) > kept);
}

#[tokio::test]
async fn a_cold_page_is_made_once_for_all_nodes_that_share_pages_and_each_of_them_forgets_it_by_a_purge()
 {
    let cluster = Cluster::sharing(3).await;
    let ask_all = || async {
        let mut asking = JoinSet::new();
        for client in 0..30 {
            let target = cluster.at(client % 3);
            asking.spawn(async move { number(&target.get("/slow").await) });
        }
        until("a fetch", || cluster.php.running() == 1).await;
        for server in 0..3 {
            cluster.until_asked(server, 10).await;
        }
        cluster.gate.add_permits(1);
        asking
            .join_all()
            .await
            .into_iter()
            .collect::<BTreeSet<u64>>()
    };
    let first = ask_all().await;
    assert_eq!(first.len(), 1, "{first:?}");
    // The page in the engine is older than the purge.
    for from in 0..3 {
        assert_eq!(cluster.purge(from).await.status, 200);
        let made = ask_all().await;
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(made.first() > first.first());
    }
    assert_eq!(cluster.php.most_at_once(), 1);
}

#[tokio::test]
async fn a_node_that_joins_takes_what_others_have_fetched_unless_it_was_purged() {
    let mut cluster = Cluster::sharing(1).await;
    let mut pages = Vec::new();
    for path in ["/kept", "/purged"] {
        // Asked for twice: once by each start.
        cluster.at(0).ask("PURGE", path, "", "").await;
        cluster.get(0, path).await;
        cluster.at(0).ask("PURGE", path, "", "").await;
        pages.push(number(&cluster.get(0, path).await));
        cluster.until_hit(0, path).await;
    }
    cluster.at(0).ask("PURGE", "/purged", "", "").await;
    let late = start(&cluster.http).await;
    cluster.servers.push(late);
    cluster.until_numbers(1, &[("lease_held", Some(1.0))]).await;
    assert_eq!(number(&cluster.get(1, "/kept").await), pages[0]);
    assert!(number(&cluster.get(1, "/purged").await) > pages[1]);
}

#[tokio::test]
async fn nodes_are_listed_and_an_expelled_one_comes_back_when_it_is_restarted() {
    let mut cluster = Cluster::start(2).await;
    let conf = cluster.servers[0].path("test.conf");
    let nodes = |arguments: &[&str]| {
        let mut command = Command::new(crate::program());
        command.arg("nodes").arg("-c").arg(&conf).args(arguments);
        let output = command.output().expect("the program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.code(),
            text + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (code, text) = nodes(&["--json"]);
    let listed: Vec<serde_json::Value> = serde_json::from_str(&text).expect("a list");
    assert_eq!((code, listed.len()), (Some(0), 2), "{text}");
    let own = testkit::process::descendants(cluster.servers[1].pid());
    let is_own = |name: &str| own.iter().any(|pid| name.ends_with(&format!(" {pid}")));
    let mut names = listed.iter().filter_map(|node| node["name"].as_str());
    let name = names.find(|name| is_own(name)).expect("the other server");
    assert_eq!(nodes(&["--expel", "another"]).0, Some(1));
    let (code, text) = nodes(&["--expel", name]);
    assert_eq!(code, Some(0), "{text}");
    cluster.until_logged(1, "has expelled this node").await;
    assert_eq!(cluster.purge(0).await.status, 200);
    assert_eq!(cluster.get(1, "/warm").await.field("x-reason"), "no-lease");
    cluster.servers[1].end().await;
    cluster.servers[1].start_again(crate::program()).await;
    cluster.until_hit(1, "/warm").await;
}
