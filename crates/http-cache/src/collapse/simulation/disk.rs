//! A disk in memory for the simulation: records and purges that survive a crash once they are synced. Records reach it
//! whenever they like. A rule may be left out, to see that the simulation notices.

use super::{World, pause};
use crate::purge::OwnedPurgeTarget;
use crate::record::{self, KeptBytes};
use crate::testing::Random;
use crate::{
    CacheKey, Field, FoundResponse, KeyRef, Millis, Pattern, PurgeMode, PurgeTarget, RequestFields,
    Stamp, StoredResponse, Tier, TierBody, TierFuture, TierLook, TierPage, Zone,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A rule that keeps the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Purges are written down.
    WriteDown,
    /// They are answered when they are synced.
    WaitForSync,
    /// Purges of earlier starts are read before the first request.
    Recall,
    /// Stamps count starts.
    CountStarts,
    /// A page older than the oldest known purge is void.
    Floor,
    /// A page from disk is compared with the purges.
    Judge,
    /// A purge made while the server is stopped is later than all pages that the last start has stored.
    StoppedIsLater,
    /// Purges that were left for the next start are carried out before its first request.
    ReadLeft,
    /// While two processes serve, each sends its purges to the other.
    TellOther,
    /// A purge is answered when the other process has applied it.
    WaitForOther,
    /// The other process has applied it when it is on the disk that this one waits for.
    WaitForOthersDisk,
    /// A silent process is ended before a purge is answered without it.
    EndSilent,
    /// A page from the other process is a fetch that began with the talk.
    StampOfTalk,
    /// Purges that come while a process waits for the folder are written down once it has it.
    NoteWhileWaiting,
}

impl Rule {
    pub(super) const ALL: [Rule; 14] = [
        Rule::WriteDown,
        Rule::WaitForSync,
        Rule::Recall,
        Rule::CountStarts,
        Rule::Floor,
        Rule::Judge,
        Rule::StoppedIsLater,
        Rule::ReadLeft,
        Rule::TellOther,
        Rule::WaitForOther,
        Rule::WaitForOthersDisk,
        Rule::EndSilent,
        Rule::StampOfTalk,
        Rule::NoteWhileWaiting,
    ];
}

/// Purges that the journal keeps; the oldest go, and the floor rises.
const MAX_PURGES: usize = 1;

pub(super) struct Disk {
    left_out: Option<Rule>,
    content: Arc<Mutex<Content>>,
    answers: AtomicU64,
}

#[derive(Default)]
struct Content {
    starts: u16,
    /// The zone that has the disk.
    owner: u64,
    records: Vec<Record>,
    synced: Vec<WrittenPurge>,
    waiting: Vec<WrittenPurge>,
    floor: u64,
}

#[derive(Clone)]
struct Record {
    key: Vec<u8>,
    head: Bytes,
    body: Bytes,
    stored_at: Millis,
    stamp: Stamp,
    values: Vec<u8>,
}

#[derive(Clone)]
struct WrittenPurge {
    target: Vec<u8>,
    mode: PurgeMode,
    stamp: Stamp,
}

/// A zone's hold on the disk, once it has it.
struct SimulatedTier {
    owner: AtomicU64,
    /// Purges made before it had the disk.
    noted: Mutex<Vec<(Vec<u8>, PurgeMode)>>,
    left_out: Option<Rule>,
    content: Arc<Mutex<Content>>,
}

impl Disk {
    pub(super) fn new(left_out: Option<Rule>) -> Disk {
        Disk {
            left_out,
            content: Arc::default(),
            answers: AtomicU64::new(0),
        }
    }

    pub(super) fn leaves_out(&self, rule: Rule) -> bool {
        self.left_out == Some(rule)
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(SeqCst)
    }

    /// A zone is to have the disk once it is free.
    pub(super) fn wait(&self, zone: &Arc<Zone>) {
        zone.set_tier(Arc::new(SimulatedTier {
            owner: AtomicU64::new(0),
            noted: Mutex::default(),
            left_out: self.left_out,
            content: Arc::clone(&self.content),
        }));
    }

    /// A zone that has waited takes the disk over, and hears of the purges.
    pub(super) fn open(&self, zone: &Arc<Zone>) {
        let mut content = self.content.lock();
        content.sync();
        if !self.leaves_out(Rule::CountStarts) {
            content.starts += 1;
        }
        content.owner += 1;
        let purges = content.synced.iter().map(|purge| {
            let read = OwnedPurgeTarget::of(&purge.target, &read_pattern);
            (read, purge.mode, purge.stamp)
        });
        let floor = match self.leaves_out(Rule::Floor) {
            true => 0,
            false => content.floor,
        };
        let start = content.starts;
        if self.leaves_out(Rule::Recall) {
            zone.recall(start, Stamp::from_number(floor), std::iter::empty());
        } else {
            zone.recall(start, Stamp::from_number(floor), purges);
        }
        let tier = zone.tier().expect("it has waited");
        let tier: &SimulatedTier = tier.as_any().downcast_ref().expect("ours");
        tier.owner.store(content.owner, SeqCst);
        for (target, mode) in tier.noted.lock().drain(..) {
            let read = OwnedPurgeTarget::of(&target, &read_pattern);
            let stamp = zone.recall_one(&read, mode);
            content.waiting.push(WrittenPurge {
                target,
                mode,
                stamp,
            });
        }
    }

    /// Purges while no server runs.
    pub(super) fn purge_stopped(&self, target: PurgeTarget<'_>, mode: PurgeMode) {
        let mut content = self.content.lock();
        content.sync();
        if !self.leaves_out(Rule::StoppedIsLater) {
            content.starts += 1;
        }
        let first = Stamp::first_of_start(content.starts).number();
        content.waiting.push(WrittenPurge {
            target: target.written().expect("short"),
            mode,
            stamp: Stamp::from_number(first + 1),
        });
        content.sync();
    }

    pub(super) fn sync(&self) {
        self.content.lock().sync();
    }

    /// Loses some of the writes that were not synced.
    pub(super) fn crash(&self, random: &mut Random) {
        let mut content = self.content.lock();
        let kept = random.below(content.waiting.len() + 1);
        content.waiting.truncate(kept);
        content.owner = ((content.owner >> 32) + 1) << 32;
    }
}

impl Content {
    fn sync(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.synced.extend(waiting);
        let excess = self.synced.len().saturating_sub(MAX_PURGES);
        for purge in self.synced.drain(..excess) {
            self.floor = self.floor.max(purge.stamp.number());
        }
    }
}

/// The one of the simulation: it names one text.
pub(super) fn read_pattern(written: &[u8]) -> Option<Pattern> {
    let named = written.to_vec();
    Some(Pattern::matching(written, move |text: &[u8]| {
        *text == *named
    }))
}

/// Does the zone have the disk?
pub(super) fn is_of(zone: &Arc<Zone>) -> bool {
    let tier = zone
        .tier()
        .and_then(|tier| tier.as_any().downcast_ref::<SimulatedTier>());
    tier.is_some_and(|tier| tier.own().is_some())
}

/// Returns the page on disk for a request, if it may be shown.
pub(super) async fn read(
    world: &Rc<World>,
    zone: &Arc<Zone>,
    name: &CacheKey,
    fields: &Vec<Field>,
) -> Option<Vec<u8>> {
    let tier = zone.tier()?;
    let TierLook::Here(page) = tier.look(&name.as_ref(), fields, world.now.get()) else {
        return None;
    };
    if world.below(3) == 0 {
        pause().await;
    }
    let TierBody::Bytes(body) = &page.body else {
        return None;
    };
    let (now, key) = (world.now.get(), name.as_ref());
    if world.disk.leaves_out(Rule::Judge) {
        world.disk.answers.fetch_add(1, SeqCst);
        return page.record.head.is_fresh(now).then(|| body.to_vec());
    }
    let response = page.record.with_body(body.clone(), page.stamp);
    let _ = zone.promote(&key, response, &page.record.names(), now);
    match zone.find_again(&key, fields, now) {
        FoundResponse::Fresh(response) => {
            world.disk.answers.fetch_add(1, SeqCst);
            Some(response.body.chunks().concat())
        }
        FoundResponse::NotFresh(_) => None,
    }
}

impl SimulatedTier {
    /// The content, while the zone has the disk.
    fn own(&self) -> Option<parking_lot::MutexGuard<'_, Content>> {
        let content = self.content.lock();
        (content.owner == self.owner.load(SeqCst)).then_some(content)
    }
}

impl Tier for SimulatedTier {
    fn write_down(&self, target: PurgeTarget<'_>, mode: PurgeMode, stamp: Stamp, _: Millis) {
        let Some(target) = target.written() else {
            return;
        };
        if self.owner.load(SeqCst) == 0 && self.left_out != Some(Rule::NoteWhileWaiting) {
            self.noted.lock().push((target.clone(), mode));
        }
        let Some(mut content) = self.own() else {
            return;
        };
        if self.left_out != Some(Rule::WriteDown) {
            content.waiting.push(WrittenPurge {
                target,
                mode,
                stamp,
            });
        }
    }

    fn written_down(&self) -> Option<TierFuture<bool>> {
        None
    }

    fn look(&self, key: &KeyRef<'_>, request: &dyn RequestFields, now: Millis) -> TierLook {
        let Some(content) = self.own() else {
            return TierLook::Nothing;
        };
        let of_key = content.records.iter().rev();
        for kept in of_key.filter(|kept| kept.key == key.bytes()) {
            let read = KeptBytes {
                head: &kept.head,
                body_bytes: kept.body.len() as u64,
                age: Some(now.since(kept.stored_at)),
            };
            let record = record::read(read, now).expect("what was written");
            let vary = record.head.vary.as_ref();
            if vary.is_none_or(|vary| vary.matches(request)) {
                return TierLook::Here(Arc::new(TierPage {
                    record,
                    stamp: kept.stamp,
                    body: TierBody::Bytes(kept.body.clone()),
                }));
            }
        }
        TierLook::Nothing
    }

    fn look_at(
        &self,
        page: Arc<TierPage>,
        _: &KeyRef<'_>,
        _: &dyn RequestFields,
        _: Millis,
    ) -> TierLook {
        TierLook::Here(page)
    }

    fn note_stored(&self, key: &KeyRef<'_>, response: &Arc<StoredResponse>, _: Millis) {
        let Some(mut content) = self.own() else {
            return;
        };
        let values = response
            .head
            .vary
            .as_ref()
            .map_or(Vec::new(), |vary| vary.values().to_vec());
        let is_same = |kept: &Record| kept.key == key.bytes() && kept.values == values;
        content.records.retain(|kept| !is_same(kept));
        content.records.push(Record {
            key: key.bytes().to_vec(),
            head: record::write(response, None).into(),
            body: response.body.chunks().concat().into(),
            stored_at: response.head.stored_at,
            stamp: response.stamp,
            values,
        });
    }

    fn note_wanted(&self, _: &[u8], _: &Arc<StoredResponse>, _: Millis) {}

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl std::fmt::Debug for SimulatedTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimulatedTier")
    }
}
