//! Measures the bus alone: nodes in one process, a redis-server, and purges at a steady rate.
//!
//! ```text
//! cargo run --release -p cache-bus --example bus_purges -- [NODES [PURGES-A-SECOND [SECONDS]]]
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache_bus::{
    AppliedPurges, BootMillis, Bus, BusEvent, BusSettings, EngineAddress, Epoch, Login, NodeHost,
};
use testkit::redis::RedisServer;
use tokio::task::JoinSet;

/// In a second of the kernel's account.
const TICKS: f64 = 100.0;

struct Host;

impl NodeHost for Host {
    fn apply(&self, _: &[Vec<u8>]) {}
    fn void(&self) {}
    fn advanced(&self, _: &Epoch, _: u64) {}
    fn keep(&self, _: &AppliedPurges<Epoch>) {}
    fn tell(&self, _: BusEvent) {}
}

fn node(socket: PathBuf) -> Bus {
    let settings = BusSettings {
        engine: EngineAddress::Unix(socket),
        tls: None,
        login: Login::default(),
        name: "example".to_owned(),
        lease: Duration::from_secs(2),
        page_key: None,
        everything: Vec::new(),
    };
    Bus::start(settings, Arc::new(Host), None).expect("a thread")
}

/// Ticks of the processor that a process, or a thread of this one, has used.
fn ticks(stat: &str) -> Option<u64> {
    let text = std::fs::read_to_string(stat).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Returns the ticks of all nodes together.
fn ticks_of_nodes() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux");
    let of = |thread: std::fs::DirEntry| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        let is_node = name.starts_with("cache-nodes");
        ticks(thread.path().join("stat").to_str().filter(|_| is_node)?)
    };
    threads.flatten().filter_map(of).sum()
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"));
    let mut number = |default| numbers.next().unwrap_or(default);
    let (nodes, rate, seconds) = (number(3u64), number(1000), number(10));
    let folder = tempfile::tempdir().expect("a folder");
    let redis = RedisServer::start(folder.path(), false);
    let nodes: Vec<Arc<Bus>> = (0..nodes).map(|_| Arc::new(node(redis.socket()))).collect();
    while !nodes
        .iter()
        .all(|bus| bus.may_use_stored(BootMillis(clock::now())))
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    // A purge that was confirmed in a new epoch waits.
    std::thread::sleep(Duration::from_millis(2200));
    let before = (
        ticks_of_nodes(),
        ticks(&format!("/proc/{}/stat", redis.pid())),
    );
    let began = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut took = runtime
        .expect("a runtime")
        .block_on(purge(&nodes, rate, seconds));
    let measured = began.elapsed().as_secs_f64();
    let after = (
        ticks_of_nodes(),
        ticks(&format!("/proc/{}/stat", redis.pid())),
    );
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let percent = |ticks: u64| ticks as f64 / TICKS / measured * 100.0;
    println!(
        "{} nodes, {} purges in {measured:.1} s: p50 {:.2} ms, p99 {:.2} ms, p999 {:.2} ms; a node {:.1} % of a core, \
         redis-server {:.1} %",
        nodes.len(),
        took.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        percent(after.0 - before.0) / nodes.len() as f64,
        percent(
            after
                .1
                .zip(before.1)
                .map_or(0, |(after, before)| after - before)
        ),
    );
}

/// How long each purge took.
async fn purge(nodes: &[Arc<Bus>], rate: u64, seconds: u64) -> Vec<Duration> {
    let began = tokio::time::Instant::now();
    let mut purges = JoinSet::new();
    for number in 0..rate * seconds {
        let at = began + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(at).await;
        let bus = nodes[number as usize % nodes.len()].clone();
        purges.spawn(async move {
            let began = Instant::now();
            let purge = bus.publish(format!("a purge of the size of a usual one: {number}").into());
            bus.confirmed(purge).await;
            began.elapsed()
        });
    }
    purges.join_all().await
}
