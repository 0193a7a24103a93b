//! Servers that come and go, health checks, and slow starts.

use std::sync::Arc;
use std::time::Duration;

use super::try_now;
use crate::balance::Random;
use crate::{
    AcquireError, Class, Endpoint, Group, GroupSpec, Health, Lease, Method, Millis, Outcome,
    PickKey, ServerSpec, Standing, TriedSet, Watch,
};

fn server(port: u16) -> ServerSpec {
    ServerSpec {
        name: "backend.test:80".to_owned(),
        ..ServerSpec::new(Endpoint::Tcp(([127, 0, 0, 1], port).into()))
    }
}

fn servers(ports: &[u16]) -> Vec<ServerSpec> {
    ports.iter().map(|port| server(*port)).collect()
}

fn dynamic(fixed: &[u16], method: Method) -> Arc<Group> {
    let spec = GroupSpec {
        servers: servers(fixed),
        method,
        is_dynamic: true,
        ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
    };
    Group::new(spec).unwrap()
}

fn ports(group: &Group) -> Vec<u16> {
    let shown = group.snapshot(0).into_iter();
    shown.map(|server| port(&server.endpoint)).collect()
}

fn port(endpoint: &Endpoint) -> u16 {
    match endpoint {
        Endpoint::Tcp(address) => address.port(),
        Endpoint::Unix(path) => panic!("{}", path.display()),
    }
}

fn acquire(group: &Arc<Group>, now: Millis) -> Result<Lease, AcquireError> {
    group.try_acquire(PickKey::default(), &TriedSet::new(), now)
}

#[test]
fn a_group_may_be_empty_until_its_names_are_resolved() {
    let group = dynamic(&[], Method::RoundRobin);
    assert_eq!(try_now(&group).unwrap_err(), AcquireError::NoLiveUpstreams);
    assert_eq!(group.tries(), 0);
    group.set_resolved(0, servers(&[81, 82]), 0);
    assert_eq!(group.tries(), 2);
    let asked: Vec<u16> = (0..4)
        .map(|_| port(try_now(&group).unwrap().endpoint()))
        .collect();
    assert_eq!(asked, [81, 82, 81, 82]);
    group.set_resolved(0, Vec::new(), 0);
    assert_eq!(try_now(&group).unwrap_err(), AcquireError::NoLiveUpstreams);
}

#[test]
fn each_answer_replaces_the_servers_of_its_own_line_only() {
    let group = dynamic(&[80], Method::RoundRobin);
    let steps: [(usize, &[u16], &[u16]); 5] = [
        (0, &[81, 82], &[80, 81, 82]),
        (1, &[91], &[80, 81, 82, 91]),
        (0, &[82, 83], &[80, 82, 91, 83]),
        (0, &[83, 83], &[80, 83, 91, 83]),
        (1, &[], &[80, 83, 83]),
    ];
    for (source, found, expected) in steps {
        group.set_resolved(source, servers(found), 0);
        assert_eq!(ports(&group), expected, "line {source}: {found:?}");
    }
}

#[test]
fn a_server_that_stays_keeps_its_failures_and_its_requests() {
    let group = dynamic(&[], Method::RoundRobin);
    group.set_resolved(0, servers(&[81, 82]), 100_000);
    acquire(&group, 100_000)
        .unwrap()
        .report(Outcome::Failure, 100_000);
    let held = acquire(&group, 100_000).unwrap();
    assert_eq!(port(held.endpoint()), 82);
    group.set_resolved(0, servers(&[82, 81, 83]), 100_000);
    let shown = group.snapshot(100_000);
    let facts: Vec<_> = shown
        .iter()
        .map(|it| (port(&it.endpoint), it.standing, it.in_flight))
        .collect();
    assert_eq!(
        facts,
        [
            (81, Standing::Failed, 0),
            (82, Standing::Ready, 1),
            (83, Standing::Ready, 0)
        ]
    );
}

#[test]
fn a_server_that_leaves_finishes_its_requests_before_its_place_is_taken() {
    let group = dynamic(&[], Method::RoundRobin);
    group.set_resolved(0, servers(&[81]), 0);
    let held = try_now(&group).unwrap();
    group.set_resolved(0, servers(&[82]), 0);
    let second = try_now(&group).unwrap();
    assert_eq!(port(held.endpoint()), 81, "still the one that was chosen");
    assert_eq!(port(second.endpoint()), 82);
    assert_ne!(held.server(), second.server());
    held.report(Outcome::Failure, 0);
    group.set_resolved(0, servers(&[82, 83]), 0);
    let servers = group.snapshot(0);
    assert_eq!(servers.len(), 2);
    assert!(servers.iter().all(|server| server.fails == 0));
    assert_eq!(servers[0].server, 0, "the index of the one who left");
}

#[test]
fn a_lone_server_never_fails_and_one_of_two_does() {
    let group = dynamic(&[], Method::RoundRobin);
    group.set_resolved(0, servers(&[81]), 0);
    acquire(&group, 100_000)
        .unwrap()
        .report(Outcome::Failure, 100_000);
    assert_eq!(group.snapshot(100_000)[0].standing, Standing::Ready);
    group.set_resolved(0, servers(&[81, 82]), 100_000);
    assert_eq!(group.snapshot(100_000)[0].standing, Standing::Failed);
}

#[test]
fn consistent_hashing_bounds_its_table_whatever_weights_dns_names() {
    let group = dynamic(&[], Method::Hash { consistent: true });
    let heavy = servers(&[81, 82, 83, 84])
        .into_iter()
        .enumerate()
        .map(|(index, server)| ServerSpec {
            name: format!("{index}.test:80"),
            weight: u32::MAX,
            ..server
        });
    group.set_resolved(0, heavy.collect(), 0);
    let asked = (0..200u32).map(|key| {
        let key = key.to_string();
        let key = PickKey {
            hash_key: Some(key.as_bytes()),
            ..PickKey::default()
        };
        let lease = group.try_acquire(key, &TriedSet::new(), 0).unwrap();
        port(lease.endpoint())
    });
    let asked: std::collections::BTreeSet<u16> = asked.collect();
    assert_eq!(asked.len(), 4);
}

#[tokio::test]
async fn a_waiter_goes_to_a_server_that_was_just_found() {
    let spec = GroupSpec {
        servers: vec![ServerSpec {
            max_conns: 1,
            ..server(80)
        }],
        queue: Some(crate::QueueSpec {
            length: 1,
            timeout: Duration::from_secs(60),
        }),
        is_dynamic: true,
        ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
    };
    let group = Group::new(spec).unwrap();
    let held = try_now(&group).unwrap();
    let tried = TriedSet::new();
    let waiting = group.acquire(PickKey::default(), &tried, Class::Visitor, 0);
    let mut waiting = std::pin::pin!(waiting);
    let polled = tokio::time::timeout(Duration::ZERO, &mut waiting).await;
    assert!(polled.is_err(), "in line");
    group.set_resolved(0, servers(&[81]), 0);
    assert_eq!(port(waiting.await.unwrap().endpoint()), 81);
    drop(held);
}

#[test]
fn health_checks_decide_who_is_asked() {
    let group = dynamic(&[81, 82], Method::RoundRobin);
    let endpoint = |port: u16| server(port).endpoint;
    let mandatory = Watch {
        mandatory: true,
        persistent: false,
    };
    group.watch(vec![mandatory, Watch::default()], |_| true);
    assert_eq!(try_now(&group).unwrap_err(), AcquireError::NoLiveUpstreams);
    let tell = |server, port, check, health| {
        group.set_health(server, &endpoint(port), check, health, 0);
    };
    let standings = || {
        group
            .snapshot(0)
            .into_iter()
            .map(|it| it.standing)
            .collect::<Vec<_>>()
    };
    tell(0, 81, 0, Health::Healthy);
    assert_eq!(standings(), [Standing::Ready, Standing::Checking]);
    tell(1, 82, 0, Health::Healthy);
    tell(1, 82, 1, Health::Unhealthy);
    assert_eq!(standings(), [Standing::Ready, Standing::Unhealthy]);
    assert_eq!(group.healthy_endpoints(), [endpoint(81)]);
    // A finding about a server that is not at this index any more.
    tell(0, 99, 0, Health::Unhealthy);
    tell(7, 81, 0, Health::Unhealthy);
    assert_eq!(standings(), [Standing::Ready, Standing::Unhealthy]);
    group.set_resolved(0, servers(&[83]), 0);
    assert_eq!(
        standings()[2],
        Standing::Checking,
        "who comes is looked at first"
    );
}

#[test]
fn persistent_remembers_over_a_reload_who_was_well() {
    let group = dynamic(&[81, 82], Method::RoundRobin);
    let was_well = |endpoint: &Endpoint| port(endpoint) == 82;
    for (persistent, expected) in [
        (false, [Standing::Checking; 2]),
        (true, [Standing::Checking, Standing::Ready]),
    ] {
        let watch = Watch {
            mandatory: true,
            persistent,
        };
        group.watch(vec![watch], was_well);
        let standings = group.snapshot(0).into_iter().map(|it| it.standing);
        assert_eq!(
            standings.collect::<Vec<_>>(),
            expected,
            "persistent: {persistent}"
        );
    }
    group.watch(Vec::new(), |_| false);
    assert!(try_now(&group).is_ok(), "no check, nothing against it");
}

/// Slow start: the share of 100 requests in each second that the returning server is given grows.
#[test]
fn slow_start_gives_a_returning_server_more_and_more() {
    for method in [Method::RoundRobin, Method::LeastConn] {
        let listed = servers(&[81, 82]).into_iter().map(|server| ServerSpec {
            slow_start: Duration::from_secs(10),
            ..server
        });
        let spec = GroupSpec {
            servers: listed.collect(),
            method,
            ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
        };
        let group = Group::new(spec).unwrap();
        group.watch(vec![Watch::default()], |_| false);
        let endpoint = server(82).endpoint;
        group.set_health(1, &endpoint, 0, Health::Unhealthy, 0);
        group.set_health(1, &endpoint, 0, Health::Healthy, 1_000_000);
        let given: Vec<usize> = (0..12)
            .map(|second| {
                let now = 1_000_000 + second * 1_000;
                let leases = (0..100).map(|_| acquire(&group, now).unwrap());
                leases.filter(|lease| lease.server() == 1).count()
            })
            .collect();
        let pairs = given.iter().zip(&given[1..]);
        assert!(pairs.clone().all(|(one, next)| one <= next), "{given:?}");
        assert!(given[0] <= 1, "{given:?}");
        assert!(
            (30..=36).contains(&given[5]),
            "a half against one: {given:?}"
        );
        assert_eq!(given[10..], [50, 50], "{given:?}");
    }
}

type AcquireFuture = std::pin::Pin<Box<dyn Future<Output = Result<Lease, AcquireError>>>>;

/// A group whose servers come and go, and its requests, driven by a seed.
struct ChangingGroup {
    random: Random,
    group: Arc<Group>,
    line: Vec<AcquireFuture>,
    held: Vec<Lease>,
}

impl ChangingGroup {
    fn seeded(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let methods = [
            Method::RoundRobin,
            Method::LeastConn,
            Method::Hash { consistent: true },
            Method::Random { two: true },
        ];
        let spec = GroupSpec {
            method: methods[(random.draw() % 4) as usize],
            queue: Some(crate::QueueSpec {
                length: 5,
                timeout: Duration::from_secs(3600),
            }),
            is_dynamic: true,
            servers: Vec::new(),
            ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
        };
        let group = Group::new(spec).unwrap();
        group.watch(vec![Watch::default()], |_| false);
        Self {
            random,
            group,
            line: Vec::new(),
            held: Vec::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.draw() % bound as u64) as usize
    }

    /// One of the things that can happen to a group.
    fn step(&mut self, number: usize) {
        match self.below(8) {
            0 | 1 => {
                let found = (0..self.below(5)).map(|_| self.some_server()).collect();
                self.group.set_resolved(number % 2, found, 0);
            }
            2 => {
                let shown = self.group.snapshot(0);
                let Some(it) = shown.get(self.below(4)) else {
                    return;
                };
                let health = [Health::Healthy, Health::Unhealthy][self.below(2)];
                self.group.set_health(it.server, &it.endpoint, 0, health, 0);
            }
            3 if !self.held.is_empty() => {
                let index = self.below(self.held.len());
                self.held.swap_remove(index).report(Outcome::Success, 0);
            }
            4 if !self.line.is_empty() => {
                let index = self.below(self.line.len());
                drop(self.line.remove(index));
            }
            _ => self.line.push(Box::pin(ask(Arc::clone(&self.group)))),
        }
    }

    fn some_server(&mut self) -> ServerSpec {
        ServerSpec {
            max_conns: 1 + self.below(2),
            weight: 1 + self.below(3) as u32,
            backup: self.below(4) == 0,
            ..server(81 + self.below(5) as u16)
        }
    }

    /// Takes the leases that have been given; the refused leave the line.
    async fn take_leases(&mut self) {
        for mut request in std::mem::take(&mut self.line) {
            match tokio::time::timeout(Duration::ZERO, &mut request).await {
                Err(_) => self.line.push(request),
                Ok(Ok(lease)) => self.held.push(lease),
                Ok(Err(_)) => {}
            }
        }
    }
}

async fn ask(group: Arc<Group>) -> Result<Lease, AcquireError> {
    let key = PickKey {
        hash_key: Some(b"key"),
        ..PickKey::default()
    };
    let tried = TriedSet::new();
    group.acquire(key, &tried, Class::Visitor, 0).await
}

/// Servers come, go, fall ill and recover while requests are under way and others wait. After each
/// step, each request that could be served has been.
#[tokio::test(start_paused = true)]
async fn nobody_is_forgotten_while_servers_come_and_go() {
    for seed in 1..=150 {
        let mut changing = ChangingGroup::seeded(seed);
        for step in 0..80 {
            changing.step(step);
            changing.take_leases().await;
            let ChangingGroup {
                group, held, line, ..
            } = &changing;
            let shown = group.snapshot(0);
            let step = format!("seed {seed}, step {step}: {shown:?}");
            assert_eq!(group.queue_length(), line.len(), "{step}");
            if !line.is_empty() {
                assert!(
                    shown.iter().all(|it| it.standing != Standing::Ready),
                    "{step}"
                );
            }
            let in_flight: usize = shown.iter().map(|it| it.in_flight).sum();
            assert!(in_flight <= held.len(), "{step}");
        }
        let group = Arc::clone(&changing.group);
        drop(changing);
        let left: usize = group.snapshot(0).iter().map(|it| it.in_flight).sum();
        assert_eq!((left, group.queue_length()), (0, 0), "seed {seed}");
    }
}
