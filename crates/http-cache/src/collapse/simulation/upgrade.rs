//! One process takes the place of another: for a while both answer, each sends its purges to the other, and pages go
//! over. The disk stays with the old one until it ends. It may be paused, one of the two may be killed, and the power
//! may go.

use super::disk::{Rule, read_pattern};
use super::{World, new_zone, pause};
use crate::purge::OwnedPurgeTarget;
use crate::record::{self, KeptBytes};
use crate::{KeyRef, PurgeListener, PurgeMode, PurgeTarget, Stamp, StoredResponse, Zone};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Two processes that serve.
pub(super) struct Upgrade {
    /// The zones of the process that goes; those of the world are the other's.
    pub(super) old: Vec<Arc<Zone>>,
    to_old: Arc<Channel>,
    to_new: Arc<Channel>,
    pub(super) is_paused: Cell<bool>,
    /// It takes no new requests.
    pub(super) is_draining: Cell<bool>,
    /// Requests under way there.
    pub(super) requests: Cell<usize>,
    is_over: Cell<bool>,
}

/// The messages of one process to the other.
#[derive(Default)]
struct Channel {
    purges: Mutex<VecDeque<(Vec<u8>, PurgeMode)>>,
    sent: Mutex<u64>,
    applied: Mutex<u64>,
}

impl PurgeListener for Channel {
    fn purged(&self, _: &str, target: PurgeTarget<'_>, mode: PurgeMode) {
        *self.sent.lock() += 1;
        let target = target.written().expect("short");
        self.purges.lock().push_back((target, mode));
    }
}

impl Upgrade {
    /// Begins: the new process waits for the disk.
    fn begin(world: &World) -> Rc<Upgrade> {
        let new = new_zone();
        world.disk.wait(&new);
        let old = std::mem::replace(&mut *world.zones.borrow_mut(), vec![Arc::clone(&new)]);
        let upgrade = Upgrade {
            old,
            to_old: Arc::default(),
            to_new: Arc::default(),
            is_paused: Cell::new(false),
            is_draining: Cell::new(false),
            requests: Cell::new(0),
            is_over: Cell::new(false),
        };
        if !world.disk.leaves_out(Rule::TellOther) {
            for zone in &upgrade.old {
                zone.begin_beside(upgrade.to_new.clone());
            }
            new.begin_beside(upgrade.to_old.clone());
        }
        let upgrade = Rc::new(upgrade);
        *world.upgrade.borrow_mut() = Some(Rc::clone(&upgrade));
        upgrade
    }

    pub(super) fn is_of_old(&self, zone: &Arc<Zone>) -> bool {
        self.old.iter().any(|old| Arc::ptr_eq(old, zone))
    }

    fn end(&self, world: &World) {
        self.is_over.set(true);
        for zone in self.old.iter().chain(&*world.zones.borrow()) {
            zone.end_beside();
        }
        *world.upgrade.borrow_mut() = None;
        // The one that goes on takes the disk, and hears of its purges.
        world.sent.set(world.sent.get() + 1);
    }

    /// The old process is killed; its unwritten data is lost. The other takes the disk.
    fn kill_old(&self, world: &World) {
        self.end(world);
        world.disk.crash(&mut world.random.borrow_mut());
        world.killed.borrow_mut().extend(self.old.iter().cloned());
        world.disk.open(&world.zone());
        world.disk.sync();
    }

    /// The new process dies: the old one goes on.
    fn kill_new(&self, world: &World) {
        self.end(world);
        let new = std::mem::replace(&mut *world.zones.borrow_mut(), self.old.clone());
        world.killed.borrow_mut().extend(new);
    }

    /// The old process ends once its requests have.
    fn finish(&self, world: &World) {
        self.end(world);
        world.killed.borrow_mut().extend(self.old.iter().cloned());
        world.disk.open(&world.zone());
        // Purges may wait for this sync.
        world.disk.sync();
    }

    /// One purge reaches the other process.
    fn deliver(&self, world: &World) {
        let to_old = !self.is_paused.get() && world.below(2) == 0;
        let (channel, zones) = match to_old {
            true => (&self.to_old, self.old.clone()),
            false => (&self.to_new, world.zones.borrow().clone()),
        };
        let Some((target, mode)) = channel.purges.lock().pop_front() else {
            return;
        };
        let target = OwnedPurgeTarget::of(&target, &read_pattern);
        for zone in zones {
            zone.purge_here(target.as_target(), mode, world.now.get());
        }
        if to_old && !world.disk.leaves_out(Rule::WaitForOthersDisk) {
            world.disk.sync();
        }
        *channel.applied.lock() += 1;
        world.sent.set(world.sent.get() + 1);
    }
}

/// A request that is under way in the old process of an upgrade.
pub(super) struct UnderWay(Rc<Upgrade>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.requests.set(self.0.requests.get() - 1);
    }
}

/// A request comes to the process of a zone, which reads it once it is not paused.
pub(super) async fn enter(world: &World, zone: &Arc<Zone>) -> Option<UnderWay> {
    let upgrade = world.upgrade.borrow().clone()?;
    if !upgrade.is_of_old(zone) {
        return None;
    }
    upgrade.requests.set(upgrade.requests.get() + 1);
    let under_way = UnderWay(Rc::clone(&upgrade));
    while upgrade.is_paused.get() && !upgrade.is_over.get() {
        pause().await;
    }
    Some(under_way)
}

/// Ends an upgrade that a power cut has met.
pub(super) fn cut(world: &World) {
    let upgrade = world.upgrade.borrow().clone();
    if let Some(upgrade) = upgrade {
        upgrade.end(world);
        world
            .killed
            .borrow_mut()
            .extend(upgrade.old.iter().cloned());
    }
}

/// Waits until the purges of a process are applied in the other one.
pub(super) async fn settled(world: &World, is_old: bool) {
    let Some(upgrade) = world.upgrade.borrow().clone() else {
        return;
    };
    let channel = match is_old {
        true => &upgrade.to_new,
        false => &upgrade.to_old,
    };
    let sent = *channel.sent.lock();
    while !upgrade.is_over.get() && *channel.applied.lock() < sent {
        if upgrade.is_paused.get() && !is_old {
            if !world.disk.leaves_out(Rule::EndSilent) {
                upgrade.kill_old(world);
            }
            return;
        }
        pause().await;
    }
}

/// A page of the old process, stored in the new one, where it is a fetch that began at `began`.
fn take_page(
    world: &World,
    new: &Arc<Zone>,
    (key, page): &(Box<[u8]>, Arc<StoredResponse>),
    began: Stamp,
) {
    let now = world.now.get();
    let (head, body) = (
        record::write(page, None).into(),
        page.body.chunks().concat(),
    );
    let kept = KeptBytes {
        head: &head,
        body_bytes: body.len() as u64,
        age: Some(now.since(page.head.stored_at)),
    };
    let record = record::read(kept, now).expect("what was written");
    let stamp = match world.disk.leaves_out(Rule::StampOfTalk) {
        true => new.stamp(),
        false => began,
    };
    let response = record.with_body(body.into(), stamp);
    let _ = new.promote(&KeyRef::new(key), response, &record.names(), now);
}

/// The task of an upgrade may be dropped: the new process is gone then.
struct UpgradeGuard<'a> {
    world: &'a World,
    upgrade: Rc<Upgrade>,
}

impl Drop for UpgradeGuard<'_> {
    fn drop(&mut self) {
        if !self.upgrade.is_over.get() {
            self.upgrade.kill_new(self.world);
        }
    }
}

/// Runs an upgrade from its begin to any of its ends.
pub(super) async fn upgrade(world: &World) {
    let upgrade = Upgrade::begin(world);
    let _guard = UpgradeGuard {
        world,
        upgrade: Rc::clone(&upgrade),
    };
    let (old, new) = (
        Arc::clone(&upgrade.old[upgrade.old.len() - 1]),
        world.zone(),
    );
    let began = new.stamp();
    let mut pages = old
        .most_wanted_stored(world.now.get(), usize::MAX)
        .into_iter();
    for _ in 0..20 + world.below(60) {
        match world.below(4) {
            0 => upgrade.deliver(world),
            1 => {
                let page = pages.next();
                page.iter()
                    .for_each(|page| take_page(world, &new, page, began));
            }
            _ => {}
        }
        match world.below(80) {
            0 => upgrade.is_paused.set(true),
            1 | 2 => upgrade.is_paused.set(false),
            3 => return upgrade.kill_new(world),
            4 => return upgrade.kill_old(world),
            5..10 => return world.crash(),
            _ => pause().await,
        }
        if upgrade.is_over.get() {
            return;
        }
    }
    upgrade.is_draining.set(true);
    upgrade.is_paused.set(false);
    while upgrade.requests.get() > 0 {
        upgrade.deliver(world);
        pause().await;
        if upgrade.is_over.get() {
            return;
        }
    }
    upgrade.finish(world);
}
