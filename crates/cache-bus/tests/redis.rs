//! Nodes in one process, at Debian's redis-server: faults against which a returned purge holds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cache_bus::{
    Administration, AppliedPurges, BootMillis, Bus, BusEvent, BusSettings, EngineAddress, Epoch,
    GivenPage, HostPort, KnownNodes, Login, NodeHost, NodeSeal, SharedPages, SharedSecrets,
    TakenPage, open_secret,
};
use parking_lot::Mutex;
use testkit::redis::RedisServer;
use testkit::tls::Authority;
use testkit::wait::{TIMEOUT, until, until_or};

/// Longer than a busy machine keeps a thread waiting; a publisher waits 100 ms longer than that.
const LEASE: Duration = Duration::from_secs(2);

/// The reports that a node got.
#[derive(Default)]
struct TestHost {
    purges: Mutex<Vec<String>>,
    entries: Mutex<Vec<Vec<u8>>>,
    voids: Mutex<usize>,
    events: Mutex<Vec<BusEvent>>,
    positions: Mutex<Vec<u64>>,
    kept: Mutex<Option<AppliedPurges<Epoch>>>,
    hangs: AtomicBool,
}

impl NodeHost for TestHost {
    fn apply(&self, purges: &[Vec<u8>]) {
        while self.hangs.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let texts = purges
            .iter()
            .map(|it| String::from_utf8_lossy(it).into_owned());
        self.purges.lock().extend(texts);
        self.entries.lock().extend_from_slice(purges);
    }

    fn void(&self) {
        *self.voids.lock() += 1;
    }

    fn advanced(&self, _: &Epoch, position: u64) {
        self.positions.lock().push(position);
    }

    fn keep(&self, applied: &AppliedPurges<Epoch>) {
        *self.kept.lock() = Some(applied.clone());
    }

    fn tell(&self, event: BusEvent) {
        self.events.lock().push(event);
    }
}

impl TestHost {
    async fn until_told(&self, part: &str) {
        let told =
            || -> Vec<String> { self.events.lock().iter().map(ToString::to_string).collect() };
        let is_told = || told().iter().any(|event| event.contains(part));
        until_or(is_told, || format!("{part:?} in {:?}", told())).await;
    }
}

struct TestNode {
    bus: Bus,
    told: Arc<TestHost>,
}

fn settings(engine: EngineAddress) -> BusSettings {
    BusSettings {
        engine,
        tls: None,
        login: Login::default(),
        name: "test".to_owned(),
        lease: LEASE,
        page_key: None,
        everything: b"everything".to_vec(),
    }
}

impl TestNode {
    fn start(redis: &RedisServer, applied: Option<AppliedPurges<Epoch>>) -> TestNode {
        TestNode::start_with(settings(EngineAddress::Unix(redis.socket())), applied)
    }

    fn start_with(settings: BusSettings, applied: Option<AppliedPurges<Epoch>>) -> TestNode {
        let told = Arc::new(TestHost::default());
        let bus = Bus::start(settings, told.clone(), applied).expect("a thread");
        TestNode { bus, told }
    }

    fn pages(&self) -> &SharedPages {
        self.bus.pages().expect("it has a key")
    }

    async fn with_lease(redis: &RedisServer) -> TestNode {
        let node = TestNode::start(redis, None);
        until("a lease", || node.may_use_stored()).await;
        node
    }

    fn may_use_stored(&self) -> bool {
        self.bus.may_use_stored(BootMillis(clock::now()))
    }

    async fn purge(&self, text: &str) {
        let number = self.bus.publish(text.as_bytes().to_vec());
        let confirmed = tokio::time::timeout(TIMEOUT, self.bus.confirmed(number)).await;
        confirmed.unwrap_or_else(|_| panic!("{text}: {:?}", self.bus.state()));
    }

    fn has(&self, text: &str) -> bool {
        self.told.purges.lock().iter().any(|purge| purge == text)
    }

    fn voids(&self) -> usize {
        *self.told.voids.lock()
    }

    /// After a purge has returned: this node has applied it or let go of all it had, unless it may use nothing that is
    /// stored, as after a pause that was longer than a lease.
    fn keeps_the_promise(&self, text: &str, voids_before: usize) -> bool {
        // Asked first: the state at that time holds for the pages it may use.
        let may_use_stored = self.may_use_stored();
        !may_use_stored || self.has(text) || self.voids() > voids_before
    }
}

fn redis(keeps_data: bool) -> (tempfile::TempDir, RedisServer) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = RedisServer::start(folder.path(), keeps_data);
    (folder, server)
}

#[tokio::test]
async fn a_purge_is_confirmed_once_each_node_has_applied_it() {
    let (_folder, redis) = redis(false);
    let nodes = [
        TestNode::with_lease(&redis).await,
        TestNode::with_lease(&redis).await,
        TestNode::with_lease(&redis).await,
    ];
    for round in 0..50 {
        let text = format!("purge {round}");
        let (one, others) = (round % 3, (0..3).filter(|at| *at != round % 3));
        nodes[one].purge(&text).await;
        for other in others {
            assert!(
                nodes[other].keeps_the_promise(&text, 1),
                "{text} at {other}"
            );
        }
        assert!(!nodes[one].has(&text), "its own purge is applied already");
    }
    let has_all =
        |node: &TestNode| (0..50).all(|it| it % 3 == 0 || node.has(&format!("purge {it}")));
    until("all purges of the others", || has_all(&nodes[0])).await;
    let settled = || {
        let state = nodes[0].bus.state();
        let holds_lease = state.is_member && state.lease_left.is_some_and(|left| left > 0);
        holds_lease && (state.waiting, state.position) == (0, 50)
    };
    until_or(settled, || format!("{:?}", nodes[0].bus.state())).await;
    assert!(!nodes[0].bus.state().facts.version.is_empty());
}

#[tokio::test]
async fn a_node_that_has_gone_delays_a_purge_until_its_lease_has_ended() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    // The entry that a killed node leaves behind.
    redis.say(&["HSET", "test:nodes", "node:7", "3:0"]);
    node.purge("first").await;
    let nodes = redis.say(&["HGETALL", "test:nodes"]);
    // Another node's number may begin with 7.
    assert!(!nodes.contains("node:7\r\n"), "{nodes}");
}

#[tokio::test]
async fn a_purge_does_not_wait_for_a_later_one() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    // Another one, which renews its lease.
    let other = |beat: u64, position: u64| {
        redis.say(&[
            "HSET",
            "test:nodes",
            "node:7",
            &format!("{beat}:{position}"),
        ]);
    };
    other(0, 0);
    let first = node.bus.publish(b"first".to_vec());
    let has_come = |tip: &str| redis.say(&["HGET", "test:nodes", "tip"]) == tip;
    until("the first", || has_come("$1\r\n1\r\n")).await;
    node.bus.publish(b"second".to_vec());
    until("the second", || has_come("$1\r\n2\r\n")).await;
    let renewals = async {
        for beat in 1.. {
            other(beat, 1);
            tokio::time::sleep(LEASE / 20).await;
        }
    };
    let confirmed = tokio::time::timeout(TIMEOUT, node.bus.confirmed(first));
    tokio::select! {
        confirmed = confirmed => confirmed.expect("confirmed"),
        () = renewals => {}
    }
}

#[tokio::test]
async fn a_node_that_hangs_can_be_expelled_and_purges_wait_for_its_lease_only() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    let hung = TestNode::with_lease(&redis).await;
    let settings = settings(EngineAddress::Unix(redis.socket()));
    let engine = Administration::connect(&settings)
        .await
        .expect("a connection");
    hung.told.hangs.store(true, Ordering::SeqCst);
    let number = node.bus.publish(b"it hangs".to_vec());
    let behind = async || {
        let KnownNodes { tip, nodes } = engine.nodes().await.expect("an answer");
        let (behind, others): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|it| it.position < tip);
        (others.len() == 1 && tip == 1).then(|| behind[0].instance)
    };
    let instance = loop {
        if let Some(instance) = behind().await {
            break instance;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(node.bus.state().waiting, 1);
    assert!(
        !engine.expel(instance + 1).await.expect("an answer"),
        "unknown"
    );
    assert!(engine.expel(instance).await.expect("an answer"));
    let confirmed = tokio::time::timeout(TIMEOUT, node.bus.confirmed(number)).await;
    // Asked first, as by a request.
    assert!(!hung.may_use_stored() && confirmed.is_ok());
    hung.told.hangs.store(false, Ordering::SeqCst);
    hung.told.until_told("has expelled this node").await;
    until("one node", || node.bus.state().nodes == 1).await;
    assert!(!hung.may_use_stored());
    // Its server was restarted.
    TestNode::with_lease(&redis).await;
}

#[tokio::test]
async fn a_node_that_leaves_delays_nothing() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    let other = TestNode::with_lease(&redis).await;
    other.bus.leave();
    assert!(!other.may_use_stored());
    let left = || redis.say(&["HLEN", "test:nodes"]) == ":3\r\n";
    until("it has left", left).await;
    node.purge("after").await;
}

#[tokio::test]
async fn a_node_that_comes_back_with_what_it_kept_reads_on_from_there() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    let first = TestNode::with_lease(&redis).await;
    node.purge("before").await;
    first.bus.leave();
    let kept = first.told.kept.lock().clone().expect("a position");
    drop(first);
    node.purge("meanwhile").await;
    let second = TestNode::start(&redis, Some(kept.clone()));
    until("a lease", || second.may_use_stored()).await;
    assert_eq!((second.voids(), second.has("before")), (0, false));
    assert!(second.has("meanwhile"));
    assert_eq!(second.bus.applied(), second.bus.applied_to_stored());

    redis.say(&["FLUSHALL"]);
    let other_epoch = TestNode::start(&redis, Some(kept));
    until("a lease", || other_epoch.may_use_stored()).await;
    assert_eq!(other_epoch.voids(), 1);
}

#[tokio::test]
async fn a_host_is_told_of_a_position_while_the_node_runs() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    node.purge("one").await;
    let kept = || node.told.kept.lock().as_ref().map(|kept| kept.position);
    until("position 1", || kept() == Some(1)).await;
}

#[tokio::test]
async fn without_an_engine_the_lease_ends_and_purges_wait_until_it_is_back() {
    let (_folder, redis) = redis(false);
    let nodes = [
        TestNode::with_lease(&redis).await,
        TestNode::with_lease(&redis).await,
    ];
    redis.pause();
    let number = nodes[0].bus.publish(b"while it is away".to_vec());
    until("no lease", || {
        nodes.iter().all(|node| !node.may_use_stored())
    })
    .await;
    nodes[0].told.until_told("has lost its lease").await;
    assert_eq!(nodes[0].bus.state().waiting, 1);
    redis.resume();
    let confirmed = tokio::time::timeout(TIMEOUT, nodes[0].bus.confirmed(number)).await;
    confirmed.expect("confirmed after all");
    until("leases", || nodes.iter().all(TestNode::may_use_stored)).await;
    assert!(nodes[1].has("while it is away"));
    assert_eq!(
        (nodes[0].voids(), nodes[1].voids()),
        (1, 1),
        "the first join alone"
    );
}

#[tokio::test]
async fn an_engine_that_was_started_again_with_its_data_has_another_epoch() {
    let (_folder, mut redis) = redis(true);
    let node = TestNode::with_lease(&redis).await;
    node.purge("before").await;
    let epoch = node.bus.state().epoch;
    redis.stop();
    until("no lease", || !node.may_use_stored()).await;
    redis.start_again();
    until("a lease", || node.may_use_stored()).await;
    assert_ne!(node.bus.state().epoch, epoch);
    assert_eq!(node.voids(), 2, "without a lease a new epoch voids");
    node.purge("after").await;
    until("the log goes on", || node.bus.state().position == 2).await;
}

#[tokio::test]
async fn a_flushed_engine_voids_nothing_at_a_node_that_holds_a_lease() {
    let (_folder, redis) = redis(false);
    let nodes = [
        TestNode::with_lease(&redis).await,
        TestNode::with_lease(&redis).await,
    ];
    nodes[0].purge("before").await;
    let epoch = nodes[0].bus.state().epoch;
    redis.say(&["FLUSHALL"]);
    nodes[0].purge("after").await;
    assert!(nodes[1].keeps_the_promise("after", 1));
    assert_ne!(nodes[0].bus.state().epoch, epoch);
    until("leases", || nodes.iter().all(TestNode::may_use_stored)).await;
}

#[tokio::test]
async fn a_trimmed_log_voids_what_a_node_has_that_missed_entries() {
    let (_folder, redis) = redis(false);
    let node = TestNode::with_lease(&redis).await;
    let late = TestNode::with_lease(&redis).await;
    let position = node.bus.state();
    let applied = AppliedPurges {
        epoch: position.epoch.expect("it has joined"),
        position: 0,
    };
    drop(late);
    for text in ["one", "two", "three"] {
        node.purge(text).await;
    }
    let back = TestNode::start(&redis, Some(applied.clone()));
    until("a lease", || back.may_use_stored()).await;
    assert_eq!(back.voids(), 0, "the log is whole");
    assert!(back.has("one") && back.has("three"));
    redis.say(&["XTRIM", "test:log", "MAXLEN", "1"]);
    let late = TestNode::start(&redis, Some(applied));
    until("a lease", || late.may_use_stored()).await;
    assert_eq!(late.voids(), 1);
    // The log is gone, and the hash that all agree on is there.
    redis.say(&["DEL", "test:log"]);
    node.purge("four").await;
    assert!(late.keeps_the_promise("four", 1));
}

#[tokio::test]
async fn accounts_need_few_rights_and_a_replica_and_a_cluster_are_refused() {
    let (folder, redis) = redis(false);
    redis.say(&[
        "ACL",
        "SETUSER",
        "mayfly",
        "on",
        ">secret",
        "resetkeys",
        "~test:*",
        "resetchannels",
        "-@all",
        "+eval",
        "+evalsha",
        "+script|load",
        "+info",
        "+xread",
        "+xadd",
        "+xrange",
        "+hget",
        "+hset",
        "+hdel",
        "+hlen",
        "+hgetall",
        "+hincrby",
        "+del",
        "+select",
        // For shared pages.
        "+get",
        "+set",
        "+pttl",
        "+time",
    ]);
    let mut settings = settings(EngineAddress::Unix(redis.socket()));
    settings.login.user = Some("mayfly".to_owned());
    settings.login.password = Some("wrong".to_owned());
    let refused = TestNode::start_with(settings.clone(), None);
    refused.told.until_told("authentication failed").await;
    settings.login.password = Some("secret".to_owned());
    settings.page_key = Some(vec![7; 32]);
    let node = TestNode::start_with(settings, None);
    until("a lease", || node.may_use_stored()).await;
    let epoch = node.bus.applied().expect("a member").epoch;
    let lock = (Duration::from_secs(1), &b""[..]);
    let TakenPage::Fetch(turn) = node.pages().take("page", &epoch, lock).await else {
        panic!("the account lacks a right");
    };
    node.pages().give_up("page", &turn).await;
    let asked = redis.say(&["GET", "test:fetch:page"]);
    assert!(asked.contains("asked"), "{asked}");
    node.purge("one").await;
    node.bus.leave();
    until("left", || redis.say(&["HLEN", "test:nodes"]) == ":2\r\n").await;
    redis.say(&["REPLICAOF", "127.0.0.1", "1"]);
    let late = TestNode::start(&redis, None);
    late.told.until_told("is a replica").await;
    drop(late);
    clusters_are_refused(folder.path()).await;
}

async fn clusters_are_refused(folder: &Path) {
    let folder = folder.join("cluster");
    std::fs::create_dir(&folder).expect("a folder");
    let redis =
        RedisServer::start_with(&folder, false, &["--cluster-enabled", "yes", "--port", "1"]);
    let node = TestNode::start(&redis, None);
    node.told
        .until_told("is a Redis Cluster, which is refused")
        .await;
}

#[tokio::test]
async fn a_page_is_fetched_by_one_node_and_opened_by_those_with_the_key_alone() {
    let (_folder, redis) = redis(false);
    let with_key = |byte: u8| BusSettings {
        page_key: Some(vec![byte; 32]),
        ..settings(EngineAddress::Unix(redis.socket()))
    };
    let nodes = [7, 7, 8].map(|byte| TestNode::start_with(with_key(byte), None));
    until("leases", || nodes.iter().all(TestNode::may_use_stored)).await;
    let [one, two, _] = &nodes;
    let applied = |node: &TestNode| node.bus.applied().expect("a member");
    let epoch = applied(one).epoch;
    let name = one.pages().name(&[b"page"]);
    assert_eq!(name, two.pages().name(&[b"page"]));
    assert_ne!(name, nodes[2].pages().name(&[b"page"]));
    let lock = (Duration::from_secs(60), &b""[..]);
    let TakenPage::Fetch(turn) = one.pages().take(&name, &epoch, lock).await else {
        panic!("nobody has it");
    };
    assert!(!turn.was_asked);
    let waits = two.pages().take(&name, &epoch, lock).await;
    assert!(matches!(waits, TakenPage::Wait(_)), "{waits:?}");
    // It is not for others after all.
    one.pages().give_up(&name, &turn).await;
    let TakenPage::Fetch(turn) = two.pages().take(&name, &epoch, lock).await else {
        panic!("the turn is given back");
    };
    assert!(turn.was_asked);
    let page = GivenPage {
        epoch: &epoch,
        position: 5,
        received: turn.engine_time - 2000,
        lifetime: Duration::from_secs(60),
        bytes: b"the page",
    };
    two.pages().give(&name, &turn, &page).await;
    let TakenPage::Page(taken) = one.pages().take(&name, &epoch, lock).await else {
        panic!("it is there");
    };
    assert_eq!((taken.position, &taken.bytes[..]), (5, &b"the page"[..]));
    assert!(taken.age >= Duration::from_secs(2));
    let is_plain = "return string.find(redis.call('GET', KEYS[1]), 'the page', 1, true) and 1 or 0";
    let stored = format!("test:page:{name}");
    assert_eq!(
        redis.say(&["EVAL", is_plain, "1", &stored]),
        ":0\r\n",
        "sealed"
    );
    // A page of another epoch counts as none, and a page that is refused goes.
    let other = one.pages().take(&name, &"another".into(), lock).await;
    assert!(matches!(other, TakenPage::Fetch(_)), "{other:?}");
    let refused = (Duration::ZERO, &taken.mark[..]);
    let gone = one.pages().take(&name, &epoch, refused).await;
    assert!(matches!(gone, TakenPage::Fetch(_)), "{gone:?}");
    assert_eq!(redis.say(&["EXISTS", &stored]), ":0\r\n");
}

#[tokio::test]
async fn where_pages_are_shared_a_node_that_joins_reads_the_log_and_its_own_purges() {
    let (_folder, redis) = redis(false);
    let with_key = || BusSettings {
        page_key: Some(vec![7; 32]),
        ..settings(EngineAddress::Unix(redis.socket()))
    };
    let node = TestNode::start_with(with_key(), None);
    until("a lease", || node.may_use_stored()).await;
    node.purge("one").await;
    node.purge("two").await;
    assert!(
        node.has("one"),
        "a page of another may have come since it was purged here"
    );
    let late = TestNode::start_with(with_key(), None);
    until("a lease", || late.may_use_stored()).await;
    assert_eq!(late.told.positions.lock()[..3], [0, 1, 2]);
    assert!(late.has("one") && late.has("two"));
}

#[tokio::test]
async fn an_engine_is_reached_over_tls_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("engines");
    let identity = authority.identity("localhost");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let certificate = file("certificate", identity.certificate_pem());
    let key = file("key", identity.key_pem());
    let port = testkit::process::free_port();
    let tls_port = port.to_string();
    let arguments = ["--tls-port", &tls_port, "--tls-cert-file", &certificate]
        .into_iter()
        .chain(["--tls-key-file", &key, "--tls-auth-clients", "no"]);
    let arguments: Vec<&str> = arguments.collect();
    let _redis = RedisServer::start_with(folder.path(), false, &arguments);
    let at = EngineAddress::Tcp(HostPort {
        host: "localhost".to_owned(),
        port,
    });
    let trusting = |authority: &Authority| BusSettings {
        tls: Some(Arc::new(
            cache_bus::tls(Some(authority.pem().as_bytes())).expect("an authority"),
        )),
        ..settings(at.clone())
    };
    let node = TestNode::start_with(trusting(&authority), None);
    until("a lease", || node.may_use_stored()).await;
    node.purge("one").await;
    let stranger = TestNode::start_with(trusting(&Authority::new("others")), None);
    stranger.told.until_told("certificate").await;
    assert!(!stranger.may_use_stored());
}

#[tokio::test]
async fn secrets_are_read_by_nodes_with_the_key_file_alone_and_turns_are_one_at_a_time() {
    let (_folder, redis) = redis(false);
    let of_key = |key: u8| BusSettings {
        page_key: Some(vec![key; 32]),
        ..settings(EngineAddress::Unix(redis.socket()))
    };
    let minute = Duration::from_secs(60);
    let secrets = SharedSecrets::connect(&of_key(1))
        .await
        .expect("a connection");
    let name: [&[u8]; 2] = [b"issuer", b"a.example"];
    assert_eq!(secrets.read(&name).await.expect("an answer"), None);
    let written = secrets.write(&name, b"certificate", minute).await;
    written.expect("written");
    let read = secrets.read(&name).await.expect("an answer");
    assert_eq!(read.as_deref(), Some(&b"certificate"[..]));
    let other: [&[u8]; 2] = [b"issuer", b"b.example"];
    assert_eq!(secrets.read(&other).await.expect("an answer"), None);
    let stranger = SharedSecrets::connect(&of_key(2))
        .await
        .expect("a connection");
    assert_eq!(stranger.read(&name).await.expect("an answer"), None);
    let without = settings(EngineAddress::Unix(redis.socket()));
    assert!(SharedSecrets::connect(&without).await.is_err(), "no key");

    for (token, is_taken) in [(7, true), (8, false), (7, true)] {
        let taken = secrets.take_turn(&name, token, minute).await;
        assert_eq!(taken.expect("an answer"), is_taken, "{token}");
    }
    assert!(
        secrets
            .take_turn(&other, 8, minute)
            .await
            .expect("an answer")
    );

    // The first node makes the log. The process that sends to the nodes is not one of them.
    assert!(secrets.tell_all(b"answer", minute).await.expect("told"));
    let nodes = [
        TestNode::with_lease(&redis).await,
        TestNode::with_lease(&redis).await,
    ];
    assert!(secrets.tell_all(b"answer", TIMEOUT).await.expect("told"));
    for node in &nodes {
        let entries = node.told.entries.lock().clone();
        let told = |key: u8| {
            let seal = NodeSeal::new(&[key; 32]).expect("long enough");
            entries.iter().find_map(|entry| open_secret(&seal, entry))
        };
        assert_eq!(told(1).as_deref(), Some(&b"answer"[..]));
        assert_eq!(told(2), None);
    }
    nodes[0].told.hangs.store(true, Ordering::SeqCst);
    let within = Duration::from_millis(100);
    assert!(!secrets.tell_all(b"another", within).await.expect("told"));
    nodes[0].told.hangs.store(false, Ordering::SeqCst);
}
