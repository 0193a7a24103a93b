//! Zones: where stored responses are kept, found, counted and let go.
//!
//! A zone is an array of shards, each behind its own lock; a lookup takes one shared lock for the
//! time of a table probe and clones one `Arc`. One counter holds what everything costs: memory is
//! reserved before it is used, evicting as needed, so the budget is never exceeded, not even for a
//! moment. The zone also owns the table of fetches under way ([`crate::collapse`]) and the purge
//! clock ([`crate::purge`]).
//!
//! Lock order: flights, then a shard, then groups or the purge log. Never two shards at once.

mod lookup;
mod notes;
mod shard;
#[cfg(test)]
mod tests;

use crate::collapse::Flights;
use crate::encoded::EncodedForms;
use crate::key::KeyRef;
use crate::memory_file::FileBytes;
use crate::private::{GroupLimits, Groups, Member};
use crate::purge::{PurgeMode, PurgeTarget, Purged, Purges, Stamp, Standing};
use crate::storability::NoStore;
use crate::stored::StoredResponse;
use crate::time::Millis;
pub(crate) use lookup::Worth;
pub use lookup::{Found, NotFresh, NotFreshKind};
use notes::Notes;
use parking_lot::{Mutex, RwLock};
use shard::{Gone, Shard};
use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How a zone is made.
#[derive(Clone, Debug)]
pub struct ZoneConfig {
    /// The zone's name, for statistics.
    pub name: String,
    /// Bound on everything the zone keeps, in bytes. Never exceeded.
    pub memory_budget_bytes: u64,
    /// The largest response body to store, in bytes.
    pub max_response_bytes: u64,
    /// A response not asked for this long is removed by [`Zone::sweep`].
    pub inactive: Duration,
    /// How long past its expiry (and its own stale windows) a response is kept; none: until
    /// `inactive`, so that `use_stale` and validation can still use it.
    pub keep_stale: Option<Duration>,
    /// Number of shards, rounded up to a power of two.
    pub shards: usize,
    /// Variants per key; the oldest goes when there is one more.
    pub max_variants: usize,
    /// Bounds on private groups.
    pub group_limits: Option<GroupLimits>,
}

impl Default for ZoneConfig {
    fn default() -> ZoneConfig {
        ZoneConfig {
            name: String::new(),
            memory_budget_bytes: 64 << 20,
            max_response_bytes: 16 << 20,
            inactive: Duration::from_secs(600),
            keep_stale: None,
            shards: 64,
            max_variants: 16,
            group_limits: None,
        }
    }
}

/// Counters of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stored responses.
    pub responses: u64,
    /// Bytes counted against the budget, fetches under way included.
    pub used_bytes: u64,
    /// The budget.
    pub budget_bytes: u64,
    /// Lookups that found a fresh response. A request is looked up once, however often it
    /// looks again ([`Zone::find_again`], [`Zone::collapse`]).
    pub hits: u64,
    /// Lookups that found a stale response.
    pub stale_hits: u64,
    /// Lookups that found nothing.
    pub misses: u64,
    /// Responses stored.
    pub stored: u64,
    /// Encoded forms kept beside stored responses, the useless ones included.
    pub encoded: u64,
    /// Bytes of bodies that are files as well ([`crate::memory_file`]).
    pub file_bytes: u64,
    /// Responses removed to make room.
    pub evicted: u64,
    /// Responses removed by sweeps.
    pub swept: u64,
    /// Responses removed or expired by purges.
    pub purged: u64,
    /// Variants dropped because their key had too many.
    pub variants_dropped: u64,
    /// Fetches under way.
    pub in_flight: u64,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Responses looked at.
    pub looked_at: usize,
    /// Responses removed.
    pub removed: usize,
    /// The whole zone has been looked at since the last time this was true.
    pub round_complete: bool,
}

/// A zone remembers one key per this many bytes of its budget, in each of its tables of notes.
const BYTES_PER_NOTE: u64 = 64 * 1024;

/// Bound on those tables: 65,536 places are under 4 MB.
const MAX_NOTES: u64 = 65_536;

/// How many slots a sweep looks at under one lock: some ten microseconds.
const SWEEP_STEP: usize = 256;

/// One cache zone. Shared by all threads behind an [`Arc`].
pub struct Zone {
    /// For what outlives a call and may outlive the zone.
    me: Weak<Zone>,
    config: ZoneConfig,
    shards: Box<[ShardCell]>,
    /// Bytes counted against the budget.
    used: AtomicU64,
    responses: AtomicU64,
    next_id: AtomicU64,
    evict_cursor: AtomicUsize,
    sweep_cursor: Mutex<(usize, usize)>,
    pub(crate) purges: Purges,
    groups: Groups,
    pub(crate) flights: Flights,
    file_bytes: Arc<FileBytes>,
    counters: Counters,
}

/// A pair of cache lines, which processors fetch together, belongs to one shard: its lock
/// and its counters are written by every lookup, and must not take neighbours' lines away.
#[derive(Default)]
#[repr(align(128))]
struct ShardCell {
    shard: RwLock<Shard>,
    notes: Mutex<Notes>,
    hits: AtomicU64,
    stale_hits: AtomicU64,
    misses: AtomicU64,
    /// How often something happened here that makes an earlier lookup out of date: a response
    /// was stored or purged, or it was noted that one cannot be shared.
    generation: AtomicU64,
}

#[derive(Default)]
struct Counters {
    stored: AtomicU64,
    encoded: AtomicU64,
    evicted: AtomicU64,
    swept: AtomicU64,
    purged: AtomicU64,
    variants_dropped: AtomicU64,
}

impl Zone {
    /// An empty zone.
    #[must_use]
    pub fn new(config: ZoneConfig) -> Arc<Zone> {
        let count = config.shards.clamp(1, 1024).next_power_of_two();
        let notes = (config.memory_budget_bytes / BYTES_PER_NOTE).min(MAX_NOTES) as usize;
        let notes_per_shard = (notes / count).max(4);
        let shards = (0..count)
            .map(|_| ShardCell {
                notes: Mutex::new(Notes::new(notes_per_shard)),
                ..Default::default()
            })
            .collect();
        let fixed = count * (size_of::<ShardCell>() + Notes::size_bytes(notes_per_shard));
        Arc::new_cyclic(|me| Zone {
            me: Weak::clone(me),
            config,
            shards,
            used: AtomicU64::new(fixed as u64),
            responses: AtomicU64::new(0),
            next_id: AtomicU64::new(0),
            evict_cursor: AtomicUsize::new(0),
            sweep_cursor: Mutex::new((0, 0)),
            purges: Purges::new(),
            groups: Groups::default(),
            flights: Flights::new(count),
            file_bytes: Arc::default(),
            counters: Counters::default(),
        })
    }

    /// The zone's configuration.
    #[must_use]
    pub fn config(&self) -> &ZoneConfig {
        &self.config
    }

    /// Counts a request for `key` and says how many there were, this one included (saturating, and
    /// forgotten after `inactive` or under pressure). For `min_uses` above 1.
    #[must_use]
    pub fn count_use(&self, key: &KeyRef<'_>, now: Millis) -> u32 {
        let horizon = now.minus(self.config.inactive);
        self.cell(key.hash())
            .notes
            .lock()
            .count_use(key.hash(), horizon, now)
    }

    /// May a write that anybody may send remove what is stored for `key`? Not twice within
    /// `pause`. (A key that was forgotten under pressure counts as one that was not written to.)
    #[must_use]
    pub fn may_invalidate(&self, key: &KeyRef<'_>, now: Millis, pause: Duration) -> bool {
        let notes = &self.cell(key.hash()).notes;
        notes
            .lock()
            .may_invalidate(key.hash(), now, now.plus(pause))
    }

    /// The purge clock: take it before a fetch begins whose response goes to [`Zone::insert`].
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.purges.stamp()
    }

    /// Stores a complete response. (Fetches led through [`Zone::collapse`] do this by themselves.)
    ///
    /// # Errors
    /// Too large, no room, or purged since its stamp.
    pub fn insert(
        &self,
        key: &KeyRef<'_>,
        response: StoredResponse,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NoStore> {
        if response.body.len() > self.config.max_response_bytes {
            return Err(NoStore::TooLarge);
        }
        let cost = shard::cost_bytes(key.bytes().len(), &response);
        if !self.reserve(cost) {
            return Err(NoStore::NoRoom);
        }
        response.settle(&self.me, key.hash());
        let (block, response) = response.laid_out(key.bytes());
        let response = Arc::new(response);
        let cell = self.cell(key.hash());
        let id = self.next_id.fetch_add(1, Relaxed);
        let member = Member {
            hash: key.hash(),
            id,
            size_bytes: cost,
        };
        let mut surplus = Vec::new();
        let displaced = {
            let mut shard = cell.shard.write();
            // Under the lock: a purge that is not written down yet will find what we store.
            if self.purges.is_outdated(key, response.stamp) {
                drop(shard);
                self.release(cost);
                return Err(NoStore::Purged);
            }
            if let (Some(group), Some(limits)) = (response.group, self.config.group_limits) {
                surplus = self.groups.enter(group, member, limits);
            }
            let stored = (block, Arc::clone(&response));
            self.responses.fetch_add(1, Relaxed);
            cell.generation.fetch_add(1, Release);
            shard.insert(key, stored, id, now, self.config.max_variants)
        };
        self.counters
            .variants_dropped
            .fetch_add(displaced.surplus_variants, Relaxed);
        displaced.gone.iter().for_each(|gone| self.count_gone(gone));
        if displaced.uncounted_bytes > 0 {
            self.count_file(&response, member, displaced.uncounted_bytes);
        }
        for member in surplus {
            self.remove(member);
        }
        cell.notes.lock().forget_refusal(key.hash());
        self.counters.stored.fetch_add(1, Relaxed);
        Ok(response)
    }

    fn remove(&self, member: Member) {
        let mut shard = self.cell(member.hash).shard.write();
        let gone = shard.remove_id(member.hash, member.id);
        drop(shard);
        gone.iter().for_each(|gone| self.count_gone(gone));
    }

    /// Counts the file that a response brought along; one that there is no room for leaves again.
    fn count_file(&self, response: &StoredResponse, member: Member, bytes: u64) {
        let forms = &response.encoded_forms;
        if self
            .count_beside(member.hash, forms, bytes, |_| ())
            .is_none()
        {
            self.remove(member);
        }
    }

    /// The bytes of all files of this zone's bodies.
    pub(crate) fn file_bytes(&self) -> &Arc<FileBytes> {
        &self.file_bytes
    }

    /// Keeps an encoded form of a stored response: `put` brings it into place, under the lock of
    /// the response's shard, so that it is counted wherever the response goes from there. True: it
    /// is counted. False: the response has left, and the form lasts as long as those who hold it.
    /// None: there is no room, and `put` was not called.
    pub(crate) fn attach(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: impl FnOnce(),
    ) -> Option<bool> {
        let kept = self.count_beside(hash, forms, bytes, |_| put());
        if kept == Some(true) {
            self.counters.encoded.fetch_add(1, Relaxed);
        }
        kept
    }

    /// Counts what is kept beside a stored body. `put` is told whether the response is still here,
    /// under the lock of its shard; without it nothing stays counted. None: there is no room,
    /// and `put` was not called.
    pub(crate) fn count_beside(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: impl FnOnce(bool),
    ) -> Option<bool> {
        // May let the response itself go.
        if !self.reserve(bytes) {
            return None;
        }
        let mut shard = self.cell(hash).shard.write();
        let is_here = shard.add_form(hash, forms, bytes);
        put(is_here);
        drop(shard);
        if !is_here {
            self.release(bytes);
        }
        Some(is_here)
    }

    /// Remembers that a key's responses cannot be shared.
    pub fn remember_not_shareable(&self, key: &KeyRef<'_>, why: NoStore, until: Millis) {
        let cell = self.cell(key.hash());
        cell.notes.lock().refuse(key.hash(), why, until);
        cell.generation.fetch_add(1, Release);
    }

    /// Why the key's responses cannot be shared, if that is remembered.
    pub(crate) fn refused(&self, key: &KeyRef<'_>, now: Millis) -> Option<NoStore> {
        self.cell(key.hash()).notes.lock().refused(key.hash(), now)
    }

    /// Purges. When it returns, no lookup or join begun afterwards gives what was stored or under
    /// way before (soft: gives it as fresh).
    pub fn purge(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> Purged {
        // First written down, then applied: see the head of `purge.rs`.
        let stamp = self.purges.record(target, mode, now);
        let responses = match target {
            PurgeTarget::Key(key) => self.purge_key(&key, mode, now),
            PurgeTarget::Prefix(prefix) => self.purge_prefix(prefix, mode, now),
            PurgeTarget::Everything => self.responses.load(Relaxed) as usize,
            // They are found gone when they are asked for, and leave by the sweep.
            PurgeTarget::NotFound => 0,
        };
        self.counters.purged.fetch_add(responses as u64, Relaxed);
        Purged { responses, stamp }
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
                let gone: Vec<Gone> = step
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
    pub fn sweep(&self, now: Millis, work: usize) -> Swept {
        let mut swept = Swept::default();
        // One sweep at a time; another has nothing to add.
        let Some(mut cursor) = self.sweep_cursor.try_lock() else {
            return swept;
        };
        let is_over = |response: &StoredResponse, last_used: Millis| {
            let expiry_bound = self.config.keep_stale.map(|keep| {
                let windows = response.stale_while_revalidate.max(response.stale_if_error);
                response.expires_at.plus(keep.max(windows))
            });
            now.since(last_used) >= self.config.inactive
                || expiry_bound.is_some_and(|bound| bound <= now)
                || self.purges.standing(response.stamp, response.head.status) == Standing::Removed
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
            let gone = cell.shard.write().sweep(at_slot, step, is_over);
            gone.iter().for_each(|gone| self.count_gone(gone));
            swept.looked_at += step;
            swept.removed += gone.len();
            *cursor = (at_shard, at_slot + step);
        }
        self.counters.swept.fetch_add(swept.removed as u64, Relaxed);
        swept
    }

    /// Bytes counted against the budget now.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Counters now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let sum = |counter: fn(&ShardCell) -> &AtomicU64| {
            self.shards
                .iter()
                .map(|cell| counter(cell).load(Relaxed))
                .sum()
        };
        Stats {
            responses: self.responses.load(Relaxed),
            used_bytes: self.used.load(Relaxed),
            budget_bytes: self.config.memory_budget_bytes,
            hits: sum(|cell| &cell.hits),
            stale_hits: sum(|cell| &cell.stale_hits),
            misses: sum(|cell| &cell.misses),
            stored: self.counters.stored.load(Relaxed),
            encoded: self.counters.encoded.load(Relaxed),
            file_bytes: self.file_bytes.now(),
            evicted: self.counters.evicted.load(Relaxed),
            swept: self.counters.swept.load(Relaxed),
            purged: self.counters.purged.load(Relaxed),
            variants_dropped: self.counters.variants_dropped.load(Relaxed),
            in_flight: self.flights.len(),
        }
    }

    /// Takes `bytes` from the budget, evicting as needed. False: there is nothing left to evict.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let budget = self.config.memory_budget_bytes;
        if bytes > budget {
            return false;
        }
        loop {
            let used = self.used.load(Relaxed);
            let fits = used.checked_add(bytes).filter(|&sum| sum <= budget);
            match fits {
                Some(sum) => {
                    if self
                        .used
                        .compare_exchange_weak(used, sum, Relaxed, Relaxed)
                        .is_ok()
                    {
                        return true;
                    }
                }
                None if self.evict_one() => {}
                None => return false,
            }
        }
    }

    /// Gives bytes back to the budget.
    pub(crate) fn release(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "no more is released than was reserved");
    }

    /// Shards take turns, so that none has to be large enough for the largest response.
    fn evict_one(&self) -> bool {
        for _ in 0..self.shards.len() {
            let turn = self.evict_cursor.fetch_add(1, Relaxed) % self.shards.len();
            let gone = self
                .shards
                .get(turn)
                .and_then(|cell| cell.shard.write().evict());
            if let Some(gone) = gone {
                self.count_gone(&gone);
                self.counters.evicted.fetch_add(1, Relaxed);
                return true;
            }
        }
        false
    }

    fn count_gone(&self, gone: &Gone) {
        self.release(gone.size_bytes);
        self.responses.fetch_sub(1, Relaxed);
        if let Some(group) = gone.group {
            self.groups.leave(group, gone.id);
        }
    }

    fn cell(&self, hash: u64) -> &ShardCell {
        // The table inside uses the lowest bits and the highest seven: these are in between.
        // The number of shards is a power of two and not zero.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("name", &self.config.name)
            .finish_non_exhaustive()
    }
}
