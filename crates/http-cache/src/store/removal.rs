//! Removes stored responses by purges and sweeps. (`zone.rs` evicts to make room.)

use super::shard::RemovedResponse;
use super::zone::{ShardCell, Zone};
use crate::key::KeyRef;
use crate::purge::clock::PurgeVerdict;
use crate::purge::labels::LabelKind;
use crate::purge::{PurgeMode, PurgeResult, PurgeTarget, Stamp};
use crate::stored::StoredResponse;
use crate::time::Millis;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// Responses looked at.
    pub looked_at: usize,
    /// Responses removed.
    pub removed: usize,
    /// The whole zone has been looked at since the last time this was true.
    pub round_complete: bool,
}

/// How many slots a sweep looks at under one lock: some ten microseconds.
const SWEEP_STEP: usize = 256;

impl Zone {
    /// Purges. When it returns, no lookup or join begun afterwards gives what was stored or under
    /// way before (soft: gives it as fresh).
    pub fn purge(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> PurgeResult {
        let purged = self.purge_here(target, mode, now);
        self.other.purged(&self.config.name, target, mode);
        purged
    }

    /// Purges like [`Zone::purge`], for a purge that another process has sent and therefore need not hear of.
    pub fn purge_here(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> PurgeResult {
        // First written down, then applied: see the head of `purge/clock.rs`.
        let stamp = self.purges.record(target, mode, now);
        if let Some(tier) = self.tier() {
            tier.write_down(target, mode, stamp, now);
        }
        let responses = match target {
            PurgeTarget::Key(key) => self.purge_key(&key, mode, now),
            PurgeTarget::Prefix(prefix) => self.purge_prefix(prefix, mode, now),
            PurgeTarget::Everything => self.responses.load(Relaxed) as usize,
            // They are found gone when they are asked for, and leave by the sweep.
            PurgeTarget::NotFound => 0,
            PurgeTarget::Tag(_)
            | PurgeTarget::Tags(_)
            | PurgeTarget::Address(_)
            | PurgeTarget::Addresses(_) => self.purge_labels(target, mode, stamp, now),
        };
        self.counters.purged.fetch_add(responses as u64, Relaxed);
        PurgeResult { responses, stamp }
    }

    /// Purges may have been missed: nothing that is stored or under way is used, but that a stale response stands in
    /// for a fetch that failed, where that is configured. What was purged stays so.
    pub fn void(&self, now: Millis) {
        let stamp = self.purges.void(now);
        if let Some(tier) = self.tier() {
            tier.write_down(PurgeTarget::Everything, PurgeMode::Hard, stamp, now);
        }
        let responses = self.responses.load(Relaxed);
        self.counters.purged.fetch_add(responses, Relaxed);
    }

    /// How many stored responses a purge would hit, those not counted that are gone already and
    /// have not left yet. Answers that there is no such page are counted in no way.
    #[must_use]
    pub fn count(&self, target: PurgeTarget<'_>) -> usize {
        match target {
            PurgeTarget::Key(key) => self.cell(key.hash()).shard.read().count(&key),
            PurgeTarget::Prefix(prefix) => {
                let count = |cell: &ShardCell| cell.shard.read().with_prefix(prefix).len();
                self.shards.iter().map(count).sum()
            }
            PurgeTarget::Everything => self.responses.load(Relaxed) as usize,
            PurgeTarget::NotFound => 0,
            PurgeTarget::Tag(tag) => self.labels.count(LabelKind::Tag, tag),
            PurgeTarget::Address(at) => self.labels.count(LabelKind::Address, at),
            PurgeTarget::Tags(of) => self.labels.count_all(LabelKind::Tag, of),
            PurgeTarget::Addresses(of) => self.labels.count_all(LabelKind::Address, of),
        }
    }

    fn purge_labels(
        &self,
        target: PurgeTarget<'_>,
        mode: PurgeMode,
        stamp: Stamp,
        now: Millis,
    ) -> usize {
        let one = |kind, text| self.labels.purge(kind, text, mode, stamp.0, now);
        let all = |kind, pattern| self.labels.purge_all(kind, pattern, mode, stamp.0, now);
        let hit = match target {
            PurgeTarget::Tag(tag) => one(LabelKind::Tag, tag),
            PurgeTarget::Address(address) => one(LabelKind::Address, address),
            PurgeTarget::Tags(pattern) => all(LabelKind::Tag, pattern),
            PurgeTarget::Addresses(pattern) => all(LabelKind::Address, pattern),
            PurgeTarget::Key(_)
            | PurgeTarget::Prefix(_)
            | PurgeTarget::Everything
            | PurgeTarget::NotFound => None,
        };
        if hit.is_some() {
            self.purges.labels_changed();
        }
        hit.unwrap_or_default()
    }

    fn purge_key(&self, key: &KeyRef<'_>, mode: PurgeMode, now: Millis) -> usize {
        let cell = self.cell(key.hash());
        cell.notes.lock().forget_refusal(key.hash());
        let mut shard = cell.shard.write();
        cell.generation.fetch_add(1, Release);
        match mode {
            PurgeMode::Soft => shard.expire_key(key, now),
            PurgeMode::Hard => {
                let gone = shard.remove_key(key);
                drop(shard);
                gone.iter().for_each(|gone| self.count_gone(gone));
                gone.len()
            }
        }
    }

    fn purge_prefix(&self, prefix: &[u8], mode: PurgeMode, now: Millis) -> usize {
        let expire = (mode == PurgeMode::Soft).then_some(now);
        let mut hit = 0;
        for cell in &self.shards {
            // Looking needs no exclusive lock; what is stored in between was fetched later or is
            // refused by its stamp.
            let found = cell.shard.read().with_prefix(prefix);
            for step in found.chunks(SWEEP_STEP) {
                let mut shard = cell.shard.write();
                cell.generation.fetch_add(1, Release);
                let gone: Vec<RemovedResponse> = step
                    .iter()
                    .filter_map(|&at| shard.at_with_prefix(at, prefix, expire))
                    .collect();
                drop(shard);
                hit += gone.len();
                if mode == PurgeMode::Hard {
                    gone.iter().for_each(|gone| self.count_gone(gone));
                }
            }
        }
        hit
    }

    /// Looks at up to `work` slots and removes what is inactive or too stale. Call it every second
    /// or so; it goes on where it stopped.
    pub fn sweep(&self, now: Millis, work: usize) -> SweepResult {
        let mut swept = SweepResult::default();
        // One sweep at a time; another has nothing to add.
        let Some(mut cursor) = self.sweep_cursor.try_lock() else {
            return swept;
        };
        let is_over = |response: &StoredResponse, last_used: Millis| {
            let expiry_bound = self.config.keep_stale.map(|keep| {
                let windows = response.head.stale_windows();
                response.expires_at.plus(keep.max(windows))
            });
            now.since(last_used) >= self.config.inactive
                || expiry_bound.is_some_and(|bound| bound <= now)
                || self.purges.standing(response) == PurgeVerdict::Removed
        };
        while swept.looked_at < work {
            let (at_shard, at_slot) = *cursor;
            let Some(cell) = self.shards.get(at_shard) else {
                *cursor = (0, 0);
                swept.round_complete = true;
                break;
            };
            let len = cell.shard.read().slots_len();
            let step = SWEEP_STEP
                .min(work - swept.looked_at)
                .min(len.saturating_sub(at_slot));
            if step == 0 {
                *cursor = (at_shard + 1, 0);
                continue;
            }
            // Guards are asked before, without the shard's lock. A response that is kept here is at its place in memory.
            let mut guarded = cell.shard.read().guarded(at_slot, step);
            guarded.retain(|it| self.is_over(it, now));
            let is_outdated = |it: &StoredResponse| guarded.iter().any(|one| ptr::eq(&**one, it));
            let is_over = |response: &StoredResponse, last_used: Millis| {
                is_over(response, last_used) || response.guard().is_some() && is_outdated(response)
            };
            let gone = cell.shard.write().sweep(at_slot, step, is_over);
            gone.iter().for_each(|gone| self.count_gone(gone));
            swept.looked_at += step;
            swept.removed += gone.len();
            *cursor = (at_shard, at_slot + step);
        }
        self.counters.swept.fetch_add(swept.removed as u64, Relaxed);
        swept
    }

    /// Gives back the memory of tables that hold little by now, while no request comes to the zone.
    pub fn shrink(&self) {
        for cell in &self.shards {
            cell.shard.write().shrink();
        }
        self.labels.shrink();
        self.groups.shrink();
        self.flights.shrink();
    }
}
