//! Collapsing under seeded interleavings: clients that come, wait and leave, leaders that finish, fail and die,
//! responses that are evicted, purges of each kind and reloads in between. It checks the promise: when a purge has
//! returned, no answer begun afterwards shows older data.
//!
//! Pages and purges go to a disk as well ([`disk`]), and the server is killed and started again: data that was not
//! synced is lost then, as after a power cut. While it is stopped, purges are written down or left for it. Now and
//! then another process takes its place ([`upgrade`]).
//!
//! A reload that changes the terms of a zone puts a new, empty one in its place. Requests that have
//! begun go on with the one that they began with, and a purge concerns all of them.
//!
//! All of it runs on one thread. A scheduler polls tasks in random order, but only those that were woken: a
//! wake-up that is lost leaves a task asleep for good, and the run ends with that task unfinished. Time is a
//! number that sometimes moves. The invariants are checked after each step; a failure names its seed.

mod disk;
mod upgrade;

use super::*;
use crate::testing::{Random, T0, fields, key, storable};
use crate::{Pattern, PurgeMode, PurgeTarget, ResponseHead, ZoneConfig};
use bytes::Bytes;
use disk::{Disk, Rule};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use upgrade::Upgrade;

const KEYS: usize = 3;
const CLIENTS: usize = 12;
const REQUESTS: usize = 6;
const SEEDS: u64 = 20_000;

/// The message of a broken promise.
const OLDER: &str = "an answer is older than a purge that came before its request";

/// The last key varies on `X`.
const VARYING: usize = KEYS - 1;

struct World {
    /// The zones of all configurations so far; the last is in force.
    zones: RefCell<Vec<Arc<Zone>>>,
    random: RefCell<Random>,
    now: Cell<Millis>,
    /// The version that the origin server would answer now, by key.
    version: [Cell<u64>; KEYS],
    /// How often each key was purged.
    purges: [Cell<u64>; KEYS],
    /// The version that the last finished purge of a key came with: nothing older may be seen.
    purged: [Cell<u64>; KEYS],
    disk: Rc<Disk>,
    /// Zones of processes that have ended: no other zone is to have the address of one.
    killed: RefCell<Vec<Arc<Zone>>>,
    /// While two processes serve.
    upgrade: RefCell<Option<Rc<Upgrade>>>,
    /// Purges sent from one process to the other, and takeovers of the disk.
    sent: Cell<u64>,
    /// Leaders under way since the last purge of the key, by zone, key and variant.
    leaders: RefCell<HashMap<LeaderKey, usize>>,
    fetches: Cell<u64>,
    answers: Cell<u64>,
}

/// Zone, key, variant, and how often the key had been purged.
type LeaderKey = (*const Zone, usize, usize, u64);

/// A leader's entry in the world's list.
struct LeaderGuard {
    world: Rc<World>,
    entry: LeaderKey,
}

impl Drop for LeaderGuard {
    fn drop(&mut self) {
        self.world.leaders.borrow_mut().remove(&self.entry);
    }
}

impl World {
    fn below(&self, bound: usize) -> usize {
        self.random.borrow_mut().below(bound)
    }

    /// The zone of the configuration in force.
    fn zone(&self) -> Arc<Zone> {
        Arc::clone(self.zones.borrow().last().expect("a configuration"))
    }

    /// The one that a request comes to: connections that were there before an upgrade stay where they are.
    fn zone_of_request(&self) -> Arc<Zone> {
        match &*self.upgrade.borrow() {
            Some(upgrade) if !upgrade.is_draining.get() && self.below(2) == 0 => {
                Arc::clone(upgrade.old.last().expect("a configuration"))
            }
            _ => self.zone(),
        }
    }

    /// The zones of a process that may be asked for a purge, and whether it is the old one of two.
    fn zones_to_purge(&self) -> (Vec<Arc<Zone>>, bool) {
        match &*self.upgrade.borrow() {
            Some(upgrade) if !upgrade.is_paused.get() && self.below(2) == 0 => {
                (upgrade.old.clone(), true)
            }
            _ => (self.zones.borrow().clone(), false),
        }
    }

    /// Is the process there that has this zone?
    fn is_alive(&self, zone: &Arc<Zone>) -> bool {
        let is_same = |other: &Arc<Zone>| Arc::ptr_eq(other, zone);
        let of_old = |upgrade: &Rc<Upgrade>| upgrade.is_of_old(zone);
        self.zones.borrow().iter().any(is_same)
            || self.upgrade.borrow().as_ref().is_some_and(of_old)
    }

    /// Another zone for the same pages. It takes the disk over.
    fn reload(&self) {
        let zone = new_zone();
        self.disk.wait(&zone);
        self.disk.open(&zone);
        self.zones.borrow_mut().push(zone);
    }

    fn versions(&self) -> [u64; KEYS] {
        self.version.each_ref().map(Cell::get)
    }

    /// Kills all processes, and starts one again. Their waiting clients get no answer. Meanwhile purges are
    /// written down for the start, or left for it.
    fn crash(&self) {
        upgrade::cut(self);
        self.disk.crash(&mut self.random.borrow_mut());
        self.killed
            .borrow_mut()
            .append(&mut self.zones.borrow_mut());
        let zone = new_zone();
        self.disk.wait(&zone);
        let (page, way) = (self.below(KEYS), self.below(3));
        if way < 2 {
            self.version[page].set(self.version[page].get() + 1);
            self.purged[page].set(self.version[page].get());
        }
        let name = key(&format!("/{page}"));
        let target = PurgeTarget::Key(name.as_ref());
        match way {
            0 => self.disk.purge_stopped(target, PurgeMode::Hard),
            1 if !self.disk.leaves_out(Rule::ReadLeft) => {
                zone.purge(target, PurgeMode::Hard, self.now.get());
            }
            _ => {}
        }
        self.disk.open(&zone);
        self.disk.sync();
        self.zones.borrow_mut().push(zone);
    }

    fn lead(self: &Rc<World>, zone: &Arc<Zone>, page: usize, variant: usize) -> LeaderGuard {
        let purges = self.purges[page].get() + self.sent.get();
        let entry = (Arc::as_ptr(zone), page, variant, purges);
        let mut leaders = self.leaders.borrow_mut();
        let count = leaders.entry(entry).or_default();
        *count += 1;
        assert_eq!(*count, 1, "one leader at a time for a key and variant");
        LeaderGuard {
            world: Rc::clone(self),
            entry,
        }
    }
}

/// Lets other tasks run.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

const LINES: usize = 4;

fn line(page: usize, variant: usize, version: u64) -> String {
    format!("{page}/{variant}/{version:06};")
}

/// Checks that a text is a whole page and returns its version.
fn version_of(text: &[u8], page: usize, variant: usize) -> u64 {
    let text = std::str::from_utf8(text).expect("text");
    let first = text.split(';').next().expect("a line");
    let version = first
        .rsplit('/')
        .next()
        .and_then(|v| v.parse().ok())
        .expect("a version");
    let shown_variant = if page == VARYING { variant } else { 0 };
    assert_eq!(
        text,
        line(page, shown_variant, version).repeat(LINES),
        "whole, and the right page"
    );
    version
}

async fn client(world: Rc<World>) {
    for _ in 0..REQUESTS {
        let (page, variant) = (world.below(KEYS), world.below(2));
        request(&world, page, variant).await;
        pause().await;
    }
}

async fn request(world: &Rc<World>, page: usize, variant: usize) {
    let name = key(&format!("/{page}"));
    let fields = fields(&[&format!("X: {variant}")]);
    let zone = world.zone_of_request();
    let at_least = world.purged[page].get();
    let _under_way = upgrade::enter(world, &zone).await;
    let came_at = zone.stamp();
    let address = format!("host/{page}");
    let show = |text: &[u8]| {
        if !world.is_alive(&zone) {
            return;
        }
        let version = version_of(text, page, variant);
        if version < at_least {
            std::panic::panic_any(OLDER);
        }
        world.answers.set(world.answers.get() + 1);
    };
    let join_request = |now| JoinRequest {
        key: name.as_ref(),
        fields: &fields,
        now,
        lock_age: None,
        group: None,
        address: address.as_bytes(),
        came_at,
        may_have_tags: true,
        urgency: Urgency::Page,
        expects: None,
    };
    // A client whose leader failed tries again, but not for ever.
    for round in 0..4 {
        let (now, key) = (world.now.get(), name.as_ref());
        let found = match round {
            0 => zone.find(&key, &fields, now),
            _ => zone.find_again(&key, &fields, now),
        };
        let found = match found {
            FoundResponse::Fresh(response) => return show(&response.body.chunks().concat()),
            FoundResponse::NotFresh(found) => found,
        };
        if let NotFreshKind::Miss | NotFreshKind::VaryMiss = found.kind
            && let Some(text) = disk::read(world, &zone, &name, &fields).await
        {
            return show(&text);
        }
        // The lookup's result is used now or after other tasks have run.
        if world.below(4) == 0 {
            pause().await;
        }
        let now = world.now.get();
        match found.kind {
            NotFreshKind::Stale(..) => {
                let Some(leader) = zone.refresh(&join_request(now), &found) else {
                    return;
                };
                let leading = world.lead(&zone, page, variant);
                return fetch(world, leader, Some(leading), page, variant).await;
            }
            NotFreshKind::NotShareable(_) => {
                let leader = zone.detached(&join_request(now));
                return fetch(world, leader, None, page, variant).await;
            }
            NotFreshKind::Miss | NotFreshKind::VaryMiss => {}
        }
        match zone.collapse(&join_request(now), &found) {
            Join::Fresh(response) => return show(&response.body.chunks().concat()),
            Join::Alone(_) | Join::After(_) | Join::Pending => return,
            Join::Lead(leader) => {
                let leading = world.lead(&zone, page, variant);
                return fetch(world, leader, Some(leading), page, variant).await;
            }
            Join::Follow(mut follower) => {
                if world.below(8) == 0 {
                    // The client left while it waited.
                    pause().await;
                    return;
                }
                match follower.wait(&fields).await {
                    FollowerOutcome::Complete(response) => {
                        return show(&response.body.chunks().concat());
                    }
                    FollowerOutcome::Streaming(reader) => match read(world, reader).await {
                        Some(text) => return show(&text),
                        None => return,
                    },
                    FollowerOutcome::NotShareable(_) => return,
                    FollowerOutcome::VaryMismatch
                    | FollowerOutcome::Failed(_)
                    | FollowerOutcome::LeftOut => {}
                }
            }
        }
    }
}

/// The whole text; none when it broke off or the client left.
async fn read(world: &Rc<World>, mut reader: Reader) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        if world.below(20) == 0 {
            return None;
        }
        match reader.next_chunk().await {
            Ok(Some(bytes)) => text.extend_from_slice(&bytes),
            Ok(None) => return Some(text),
            Err(TruncatedResponse) => return None,
        }
        if world.below(3) == 0 {
            pause().await;
        }
    }
}

async fn fetch(
    world: &Rc<World>,
    leader: Leader,
    leading: Option<LeaderGuard>,
    page: usize,
    variant: usize,
) {
    world.fetches.set(world.fetches.get() + 1);
    let version = world.version[page].get();
    for _ in 0..world.below(4) {
        pause().await;
    }
    // Ended in this order: first the flight, then the entry in the list of leaders.
    let _leading = leading;
    match world.below(10) {
        0 => return drop(leader),
        1 => return leader.failed(),
        2 => {
            let remember = Duration::from_millis(world.below(3) as u64 * 100);
            return leader.not_shareable(Reason::Private, remember, world.now.get());
        }
        _ => {}
    }
    // Some are over soon, and some outlive a crash of the server.
    let lifetime = ["Cache-Control: max-age=1", "Cache-Control: max-age=60"][world.below(2)];
    let lines: &[&str] = match page {
        VARYING => &[lifetime, "Vary: X"],
        _ => &[lifetime],
    };
    let decided = storable(lines, &fields(&[&format!("X: {variant}")]));
    let mut filling = leader.publish_head(&ResponseHead::OK, &decided, world.now.get());
    let line = line(page, if page == VARYING { variant } else { 0 }, version);
    let tags_come_behind = world.below(LINES);
    for number in 0..LINES {
        if world.below(2) == 0 {
            pause().await;
        }
        if world.below(40) == 0 {
            return drop(filling);
        }
        filling.push(Bytes::from(line.clone()), world.now.get());
        if number == tags_come_behind {
            filling.tags().add(format!("page:{page}").as_bytes());
            filling.tags().add(b"every");
        }
    }
    let _ = filling.complete(world.now.get());
}

async fn purger(world: Rc<World>) {
    for _ in 0..6 {
        for _ in 0..world.below(20) {
            pause().await;
        }
        let page = world.below(KEYS);
        let name = key(&format!("/{page}"));
        let (tag, address) = (format!("page:{page}"), format!("host/{page}"));
        let suffix = address.clone();
        let (host, page_of) = (
            Pattern::Host(b"host"[..].into()),
            Pattern::matching(suffix.clone().as_bytes(), move |text: &[u8]| {
                *text == *suffix.as_bytes()
            }),
        );
        let (one, all) = (page..page + 1, 0..KEYS);
        let (target, hit) = match world.below(8) {
            0 => (PurgeTarget::Key(name.as_ref()), one),
            1 => (PurgeTarget::Prefix(name.bytes()), one),
            2 => (PurgeTarget::Everything, all),
            3 => (PurgeTarget::Tag(tag.as_bytes()), one),
            4 => (PurgeTarget::Tag(b"every"), all),
            5 => (PurgeTarget::Address(address.as_bytes()), one),
            6 => (PurgeTarget::Addresses(&host), all),
            _ => (PurgeTarget::Addresses(&page_of), one),
        };
        let mode = if world.below(2) == 0 {
            PurgeMode::Hard
        } else {
            PurgeMode::Soft
        };
        for page in hit.clone() {
            world.version[page].set(world.version[page].get() + 1);
        }
        if world.below(4) == 0 {
            // The data has changed, and the purge is on its way.
            pause().await;
        }
        let (zones, is_old) = world.zones_to_purge();
        for zone in &zones {
            zone.purge(target, mode, world.now.get());
        }
        for page in hit.clone() {
            world.purges[page].set(world.purges[page].get() + 1);
        }
        let versions = world.versions();
        if !world.disk.leaves_out(Rule::WaitForOther) {
            upgrade::settled(&world, is_old).await;
        }
        if !world.disk.leaves_out(Rule::WaitForSync) && zones.iter().any(disk::is_of) {
            // A slow disk: pages fetched meanwhile may be on it before.
            for _ in 0..world.below(60) {
                pause().await;
            }
            world.disk.sync();
        }
        if !zones.iter().all(|zone| world.is_alive(zone)) {
            // It was not answered.
            continue;
        }
        for page in hit {
            let purged = world.purged[page].get().max(versions[page]);
            world.purged[page].set(purged);
        }
    }
}

async fn operator(world: Rc<World>) {
    for _ in 0..world.below(6) {
        for _ in 0..world.below(40) {
            pause().await;
        }
        match world.below(4) {
            0 => world.reload(),
            1 => upgrade::upgrade(&world).await,
            _ => world.crash(),
        }
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.0.store(true, SeqCst);
    }
}

fn spawn(future: impl Future<Output = ()> + 'static) -> Task {
    Task {
        future: Box::pin(future),
        woken: Arc::new(Flag(AtomicBool::new(true))),
    }
}

fn new_zone() -> Arc<Zone> {
    Zone::new(ZoneConfig {
        memory_budget_bytes: 9_000,
        shards: 2,
        ..ZoneConfig::default()
    })
}

/// Runs one world to its end; gives fetches, answers, and those from the disk among them.
fn run(seed: u64, left_out: Option<Rule>) -> (u64, u64, u64) {
    let base = new_zone().stats().used_bytes;
    let world = Rc::new(World {
        zones: RefCell::default(),
        disk: Rc::new(Disk::new(left_out)),
        random: RefCell::new(Random(seed)),
        now: Cell::new(T0),
        version: Default::default(),
        purges: Default::default(),
        purged: Default::default(),
        killed: RefCell::default(),
        upgrade: RefCell::default(),
        sent: Cell::new(0),
        leaders: RefCell::default(),
        fetches: Cell::new(0),
        answers: Cell::new(0),
    });
    world.reload();
    let mut tasks: Vec<Task> = (0..CLIENTS)
        .map(|_| spawn(client(Rc::clone(&world))))
        .collect();
    tasks.push(spawn(purger(Rc::clone(&world))));
    tasks.push(spawn(operator(Rc::clone(&world))));
    while !tasks.is_empty() {
        let ready: Vec<usize> = (0..tasks.len())
            .filter(|&at| tasks[at].woken.0.load(SeqCst))
            .collect();
        assert!(!ready.is_empty(), "{} tasks wait for ever", tasks.len());
        let at = ready[world.below(ready.len())];
        let task = &mut tasks[at];
        task.woken.0.store(false, SeqCst);
        let waker = Waker::from(Arc::clone(&task.woken));
        if task
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            drop(tasks.swap_remove(at));
        } else if world.below(200) == 0 {
            // A client leaves at any point; with it a leader, perhaps.
            drop(tasks.swap_remove(at));
        }
        if world.below(10) == 0 {
            world
                .now
                .set(world.now.get().plus(Duration::from_millis(150)));
        }
        for zone in world.zones.borrow().iter() {
            assert!(zone.stats().used_bytes <= zone.config().memory_budget_bytes);
        }
    }
    for zone in world.zones.borrow().iter() {
        assert_eq!(zone.stats().in_flight, 0, "no flight outlives its leader");
        zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
        assert_eq!(zone.stats().used_bytes, base, "every byte was given back");
    }
    (
        world.fetches.get(),
        world.answers.get(),
        world.disk.answers(),
    )
}

#[test]
fn nobody_waits_for_ever_and_nobody_sees_what_was_purged() {
    let (mut fetches, mut answers, mut from_disk) = (0, 0, 0);
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| run(seed, None));
        let (fetched, answered, read) = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        fetches += fetched;
        answers += answered;
        from_disk += read;
    }
    // The simulation is worth something only if all of these happen often.
    assert!(
        fetches > SEEDS * 10 && answers > SEEDS * 10 && from_disk > SEEDS / 2,
        "{fetches} {answers} {from_disk}"
    );
}

#[test]
fn each_rule_of_the_disk_that_is_left_out_lets_somebody_see_what_was_purged() {
    for rule in Rule::ALL {
        let shows_older_data = |seed: &u64| {
            let outcome = std::panic::catch_unwind(|| run(*seed, Some(rule)));
            let said = outcome.err();
            said.is_some_and(|said| said.downcast_ref::<&str>() == Some(&OLDER))
        };
        assert!((0..SEEDS).any(|seed| shows_older_data(&seed)), "{rule:?}");
    }
}
