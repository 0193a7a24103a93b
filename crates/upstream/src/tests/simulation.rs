//! Thousands of interleavings from seeds, the invariants swept after each step.
//!
//! The futures are polled by hand, so that a waiter can go away at any moment,
//! also between being woken with a lease and running. A failure names its seed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::balance::Random;
use crate::{
    AcquireError, Admission, Class, Connection, Endpoint, Group, GroupSpec, Keepalive, Lease,
    Method, Millis, Outcome, PickKey, QueueSpec, ServerSpec, Standing, Stream, Ticket, TriedSet,
};

const SEEDS: u64 = 400;
const STEPS: u64 = 150;

type AcquireFuture = Pin<Box<dyn Future<Output = Result<Lease, AcquireError>>>>;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, Ordering::SeqCst), "woken twice");
    }
}

struct WaitingRequest {
    future: AcquireFuture,
    class: Class,
    /// A message here moves it to the line of visitors.
    raise: Option<tokio::sync::oneshot::Sender<()>>,
    tried: TriedSet,
    woken: Arc<Flag>,
}

impl WaitingRequest {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    fn poll(&mut self) -> Poll<Result<Lease, AcquireError>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

async fn wait_or_rise(
    ticket: &mut Ticket,
    mut raised: tokio::sync::oneshot::Receiver<()>,
) -> Result<Lease, AcquireError> {
    tokio::select! {
        biased;
        granted = ticket.wait() => return granted,
        // The channel closes when the waiter is dropped.
        Ok(()) = &mut raised => ticket.raise(Class::StaleVisitor),
    }
    ticket.wait().await
}

struct HeldLease {
    lease: Lease,
    connection: Option<Connection>,
}

struct Simulation {
    seed: u64,
    step: u64,
    random: Random,
    group: Arc<Group>,
    queue_length: usize,
    backups: Vec<bool>,
    now: Millis,
    held: Vec<HeldLease>,
    /// In the order of joining.
    line: Vec<WaitingRequest>,
    /// The far ends of connections; dropping one closes it.
    far_ends: Vec<std::os::unix::net::UnixStream>,
    /// In flight per server when its limit was last lowered.
    grandfathered: Vec<usize>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed + 1);
        let mut below = |bound: u64| random.draw() % bound;
        let servers: Vec<ServerSpec> = (0..1 + below(4))
            .map(|index| ServerSpec {
                weight: 1 + below(3) as u32,
                max_conns: below(4) as usize,
                max_fails: below(3) as u32,
                fail_timeout: Duration::from_millis(50),
                backup: index > 0 && below(4) == 0,
                down: below(12) == 0,
                ..ServerSpec::new(Endpoint::Tcp(([127, 0, 0, 1], 8081 + index as u16).into()))
            })
            .collect();
        let method = match below(6) {
            0 => Method::LeastConn,
            1 => Method::IpHash,
            2 => Method::Hash { consistent: false },
            3 => Method::Hash { consistent: true },
            4 => Method::Random { two: true },
            _ => Method::RoundRobin,
        };
        let queue_length = below(7) as usize;
        let spec = GroupSpec {
            method,
            queue: Some(QueueSpec {
                length: queue_length,
                timeout: Duration::from_secs(60),
            }),
            keepalive: Some(Keepalive {
                requests: 4,
                timeout: Duration::from_millis(200),
                idle_counts: true,
                ..Keepalive::new(3)
            }),
            servers,
            ..GroupSpec::single("u", Endpoint::Unix("/unused".into()))
        };
        Self {
            seed,
            step: 0,
            random,
            queue_length,
            backups: spec.servers.iter().map(|server| server.backup).collect(),
            now: 1_000,
            held: Vec::new(),
            line: Vec::new(),
            far_ends: Vec::new(),
            grandfathered: vec![0; spec.servers.len()],
            group: Group::new(spec).unwrap(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.draw() % bound.max(1) as u64) as usize
    }

    fn run(mut self) {
        for step in 0..STEPS {
            self.step = step;
            match self.below(16) {
                0..=5 => self.arrive(),
                6..=9 => self.finish(),
                10..=11 => self.resume(),
                12 if self.below(2) == 0 => self.raise(),
                12 => self.cancel(),
                13 => self.pass_time(),
                14 => self.change_limit(),
                _ => self.close_far_end(),
            }
            self.check();
        }
        self.line.clear();
        self.held.clear();
        for server in self.group.snapshot(self.now) {
            assert_eq!(server.in_flight, 0, "{}", self.describe());
        }
        assert_eq!(self.group.queue_length(), 0, "{}", self.describe());
    }

    fn describe(&self) -> String {
        format!("seed {}, step {}", self.seed, self.step)
    }

    fn arrive(&mut self) {
        let mut tried = TriedSet::new();
        if self.below(4) == 0 {
            tried.insert(self.below(self.backups.len()));
        }
        let class = match self.below(6) {
            0 | 1 => Class::Refresh,
            2 => Class::Mirror,
            3 => Class::StaleVisitor,
            _ => Class::Visitor,
        };
        let (raise, raised) = tokio::sync::oneshot::channel();
        let address = [10, 0, self.below(250) as u8, 1].into();
        let (group, asked, now) = (Arc::clone(&self.group), tried.clone(), self.now);
        let future = Box::pin(async move {
            let key = PickKey {
                client_addr: Some(address),
                hash_key: Some(b"key"),
                ..PickKey::default()
            };
            match group.enter(key, &asked, class, now)? {
                Admission::Granted(lease) => Ok(lease),
                Admission::InLine(mut ticket) => wait_or_rise(&mut ticket, raised).await,
            }
        });
        let mut waiting = WaitingRequest {
            future,
            class,
            raise: Some(raise),
            tried,
            woken: Arc::default(),
        };
        match waiting.poll() {
            Poll::Pending => self.line.push(waiting),
            Poll::Ready(Ok(lease)) => {
                assert!(
                    !self.someone_waits_for_any(class),
                    "jumped the line, {}",
                    self.describe()
                );
                self.hold(lease);
            }
            Poll::Ready(Err(AcquireError::QueueFull)) => {
                assert!(!class.is_background(), "{}", self.describe());
                assert!(
                    self.in_line(class) >= self.queue_length,
                    "{}",
                    self.describe()
                );
            }
            Poll::Ready(Err(AcquireError::LeftOut)) => {
                assert!(class.is_background(), "{}", self.describe());
                assert_eq!(self.in_line(class), 16, "{}", self.describe());
            }
            Poll::Ready(Err(_)) => {}
        }
    }

    fn hold(&mut self, mut lease: Lease) {
        let connection = match self.below(3) {
            0 => None,
            _ => Some(lease.take_idle(self.now, false).unwrap_or_else(|| {
                let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                self.far_ends.push(far);
                Connection {
                    stream: Stream::Unix(tokio::net::UnixStream::from_std(near).unwrap()),
                    requests: 0,
                    born: self.now,
                }
            })),
        };
        self.held.push(HeldLease { lease, connection });
    }

    fn finish(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let index = self.below(self.held.len());
        let HeldLease {
            mut lease,
            connection,
        } = self.held.swap_remove(index);
        if let Some(connection) = connection
            && self.below(3) != 0
        {
            lease.keep(connection, self.now);
        }
        match self.below(4) {
            0 => drop(lease),
            1 => lease.report(Outcome::Failure, self.now),
            2 => lease.report(Outcome::Neutral, self.now),
            _ => lease.report(Outcome::Success, self.now),
        }
    }

    /// A woken waiter runs.
    fn resume(&mut self) {
        let Some(index) = self.line.iter().position(WaitingRequest::is_woken) else {
            return;
        };
        let mut waiting = self.line.remove(index);
        match waiting.poll() {
            Poll::Ready(Ok(lease)) => self.hold(lease),
            other => panic!("woken for nothing: {other:?}, {}", self.describe()),
        }
    }

    /// A visitor comes to wait for a refresh in line.
    fn raise(&mut self) {
        let is_refresh =
            |waiting: &WaitingRequest| waiting.class == Class::Refresh && !waiting.is_woken();
        let Some(index) = self.line.iter().position(is_refresh) else {
            return;
        };
        let mut waiting = self.line.remove(index);
        waiting.class = Class::StaleVisitor;
        let _ = waiting.raise.take().map(|raise| raise.send(()));
        // To be woken for this is no lease.
        waiting.woken = Arc::default();
        match waiting.poll() {
            // It may have been its share that it waited for.
            Poll::Ready(Ok(lease)) => self.hold(lease),
            Poll::Ready(Err(error)) => panic!("raised for nothing: {error:?}, {}", self.describe()),
            Poll::Pending => self.line.push(waiting),
        }
    }

    fn cancel(&mut self) {
        if !self.line.is_empty() {
            let index = self.below(self.line.len());
            drop(self.line.remove(index));
        }
    }

    fn pass_time(&mut self) {
        self.now += self.below(80) as Millis;
        // Half of the time the next call is the first to notice.
        if self.below(2) == 0 {
            self.group.sweep(self.now);
        }
    }

    fn change_limit(&mut self) {
        let server = self.below(self.backups.len());
        let limit = self.below(4);
        self.grandfathered[server] = self.group.snapshot(self.now)[server].in_flight;
        self.group.set_max_conns(server, Some(limit));
    }

    fn close_far_end(&mut self) {
        if !self.far_ends.is_empty() {
            let index = self.below(self.far_ends.len());
            self.far_ends.swap_remove(index);
        }
    }

    fn check(&mut self) {
        let step = self.describe();
        // The snapshot is of the latest time that the group knows.
        let servers = self.group.snapshot(0);
        let handed = self
            .line
            .iter()
            .filter(|waiting| waiting.is_woken())
            .count();
        let in_flight: usize = servers.iter().map(|server| server.in_flight).sum();
        assert_eq!(in_flight, self.held.len() + handed, "slots, {step}");
        assert_eq!(
            self.group.queue_length(),
            self.in_line(Class::Visitor),
            "length of the line, {step}"
        );
        assert!(self.in_line(Class::Refresh) <= 16, "refreshes, {step}");
        assert!(self.in_line(Class::Mirror) <= 16, "mirrors, {step}");
        for (server, grandfathered) in servers.iter().zip(&mut self.grandfathered) {
            *grandfathered = server.in_flight.min(*grandfathered);
            let Some(limit) = server.max_conns else {
                continue;
            };
            let bound = limit.max(*grandfathered);
            assert!(server.in_flight <= bound, "in flight, {step}");
            assert!(server.in_flight + server.idle <= bound, "idle, {step}");
        }
        self.check_line(&servers, &step);
    }

    /// First come, first served, and no request waits beside a free slot.
    fn check_line(&self, servers: &[crate::ServerSnapshot], step: &str) {
        let mut someone_waits_for_any = [false; fair_queue::LINES];
        for waiting in &self.line {
            let line = waiting.class.line();
            if waiting.is_woken() {
                assert!(!someone_waits_for_any[line], "overtaken in line, {step}");
                continue;
            }
            someone_waits_for_any[line] |= waiting.tried.is_empty();
            if waiting.class.is_background() {
                // It may wait for its share: `a_visitor_never_waits_behind_refreshes`.
                continue;
            }
            let on_backups = (0..servers.len())
                .any(|server| self.backups[server] && waiting.tried.contains(server));
            for (index, server) in servers.iter().enumerate() {
                let is_asked = !waiting.tried.contains(index) && (server.is_backup || !on_backups);
                assert!(
                    !is_asked || server.standing != Standing::Ready,
                    "a waiter stands beside a free slot, {step}"
                );
            }
        }
    }

    /// Does anybody wait, in this class's line or one before it, who would take any server?
    fn someone_waits_for_any(&self, class: Class) -> bool {
        let mut line = self.line.iter();
        line.any(|waiting| {
            let is_before = match class.is_background() {
                // Requests of its own line may wait for their share.
                true => waiting.class.line() < class.line() && !waiting.class.is_background(),
                false => !waiting.class.is_background(),
            };
            is_before && !waiting.is_woken() && waiting.tried.is_empty()
        })
    }

    fn in_line(&self, class: Class) -> usize {
        let line = self.line.iter();
        line.filter(|other| !other.is_woken() && other.class.line() == class.line())
            .count()
    }
}

#[tokio::test(start_paused = true)]
async fn bounds_order_and_liveness_hold_in_any_interleaving() {
    // One task polls thousands of futures: without this, tokio would make it
    // yield by leaving ready futures pending.
    tokio::task::unconstrained(async {
        for seed in 0..SEEDS {
            Simulation::new(seed).run();
        }
    })
    .await;
}
