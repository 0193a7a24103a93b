//! A zone: how it is configured, its shards and counters, and its budget, which it keeps by evicting
//! responses. Looking up, storing and removing are in the files beside this one.

use super::beside::OtherZone;
use super::notes::{Notes, Refusal, Sharing};
use super::purge_arrivals::PurgeArrivals;
use super::shard::{RemovedResponse, Shard};
use super::sites::Sites;
use crate::flight::Flights;
use crate::held_lock::CountedLock;
use crate::key::KeyRef;
use crate::memory_file::FileBytes;
use crate::private::{GroupLimits, Groups};
use crate::purge::Stamp;
use crate::purge::clock::Purges;
use crate::purge::labels::{Budget, LabelTable};
use crate::reason::Reason;
use crate::tier::Tier;
use crate::time::Millis;
use crate::vary::VarySpec;
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, Weak};
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
    /// How many purges are kept apart; none: as many as fetches under way need. A response that is kept
    /// elsewhere needs the purges of its whole life.
    pub purges_remembered: Option<usize>,
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
            purges_remembered: None,
        }
    }
}

/// Counters of a zone.
// Large: numbers that are shown one by one.
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
    /// Fetches begun in the background for a stale response ([`Zone::refresh`]).
    pub refreshes: u64,
    /// Requests that joined the fetch of another ([`Zone::collapse`]).
    pub collapsed: u64,
    /// Fetches under way.
    pub in_flight: u64,
    /// Lookups that found nothing here, and a response where the zone keeps others ([`crate::tier`]).
    /// They are among `hits`.
    pub tier_hits: u64,
    /// Responses stored again that came from there.
    pub promoted: u64,
}

/// A zone remembers one key per this many bytes of its budget, in each of its tables of notes.
const BYTES_PER_NOTE: u64 = 64 * 1024;

/// A zone remembers one purge per this many bytes of its budget for fetches that are under way.
const BYTES_PER_PURGE: u64 = 1024;

/// Bound on those tables: 65,536 entries are under 4 MB.
const MAX_NOTES: u64 = 65_536;

/// One cache zone. Shared by all threads behind an [`Arc`].
// Large: a zone has one of each, and each has a lock of its own or is an atomic; a lookup takes the shards alone.
pub struct Zone {
    /// For what outlives a call and may outlive the zone.
    pub(super) me: Weak<Zone>,
    pub(super) config: ZoneConfig,
    pub(super) shards: Box<[ShardCell]>,
    /// Bytes counted against the budget.
    used: AtomicU64,
    pub(super) responses: AtomicU64,
    pub(super) next_id: AtomicU64,
    evict_cursor: AtomicUsize,
    pub(super) sweep_cursor: Mutex<(usize, usize)>,
    pub(crate) purges: Purges,
    pub(super) labels: LabelTable,
    pub(super) groups: Groups,
    pub(crate) flights: Flights,
    pub(super) file_bytes: Arc<FileBytes>,
    habits: ApplicationHabits,
    /// The tier in which responses are kept beside memory.
    pub(super) tier: OnceLock<Arc<dyn Tier>>,
    pub(super) other: OtherZone,
    pub(crate) counters: Counters,
}

/// Habits of the applications in front of which the zone stands, as the zone has learned them.
#[derive(Default)]
struct ApplicationHabits {
    sites: Sites,
    purge_arrivals: PurgeArrivals,
}

/// A pair of cache lines, which processors fetch together, belongs to one shard: its lock
/// and its counters are written by every lookup, and must not take neighbours' lines away.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ShardCell {
    pub(super) shard: CountedLock<Shard>,
    pub(super) notes: Mutex<Notes>,
    pub(super) hits: AtomicU64,
    pub(super) stale_hits: AtomicU64,
    pub(super) misses: AtomicU64,
    /// How often something happened here that makes an earlier lookup out of date: a response
    /// was stored or purged, or it was noted that one cannot be shared.
    pub(super) generation: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(super) stored: AtomicU64,
    pub(super) encoded: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) swept: AtomicU64,
    pub(super) purged: AtomicU64,
    pub(super) variants_dropped: AtomicU64,
    pub(crate) refreshes: AtomicU64,
    pub(crate) collapsed: AtomicU64,
    pub(super) tier_hits: AtomicU64,
    pub(super) promoted: AtomicU64,
    /// Responses that came back when there was no room for them.
    pub(super) came_back: AtomicU64,
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
        let of_fetches = (config.memory_budget_bytes / BYTES_PER_PURGE).min(MAX_NOTES) as usize;
        let recent = config.purges_remembered.unwrap_or(of_fetches);
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
            purges: Purges::new(recent),
            labels: LabelTable::default(),
            groups: Groups::default(),
            flights: Flights::new(count),
            file_bytes: Arc::default(),
            habits: ApplicationHabits::default(),
            tier: OnceLock::new(),
            other: OtherZone::default(),
            counters: Counters::default(),
        })
    }

    /// The zone's configuration.
    #[must_use]
    pub fn config(&self) -> &ZoneConfig {
        &self.config
    }

    /// Counts a request for `key` and returns how many there were, this one included (saturating, and
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

    /// Remembers who may share the responses for a key that stands for a page and a kind of
    /// visitors; `None`: forgets it. Nothing is stored or found by it.
    pub fn note_sharing(&self, key: &KeyRef<'_>, sharing: Option<Sharing>, until: Millis) {
        let notes = &self.cell(key.hash()).notes;
        notes.lock().note_sharing(key.hash(), sharing, until);
    }

    /// Who may share them, if that is remembered.
    #[must_use]
    pub fn sharing(&self, key: &KeyRef<'_>, now: Millis) -> Option<Sharing> {
        self.cell(key.hash()).notes.lock().sharing(key.hash(), now)
    }

    /// A page of a site was stored that varies on these fields (lower case). `site` stands for the site;
    /// nothing is stored or found by it.
    pub fn note_page_of_site(&self, site: &KeyRef<'_>, varies_on: &[String]) {
        self.habits.sites.note_page(site, varies_on);
    }

    /// Returns the fields on which the pages of a site are known to vary, for addresses of which nothing is known.
    #[must_use]
    pub fn site_varies_on(&self, site: &KeyRef<'_>) -> Option<Arc<VarySpec>> {
        self.habits.sites.varies_on(site)
    }

    /// Whether the application's purges arrive.
    #[must_use]
    pub fn purge_arrivals(&self) -> &PurgeArrivals {
        &self.habits.purge_arrivals
    }

    /// The purge clock: take it before a fetch begins whose response goes to [`Zone::insert`].
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.purges.stamp()
    }

    /// Remembers that a key's responses cannot be shared.
    pub fn remember_not_shareable(&self, key: &KeyRef<'_>, why: Reason, until: Millis) {
        let cell = self.cell(key.hash());
        cell.notes.lock().refuse(key.hash(), why, until);
        cell.generation.fetch_add(1, Release);
    }

    /// Notes why a response for the key was not stored, to show it to the operator. Decides
    /// nothing.
    pub fn note_refusal(&self, key: &KeyRef<'_>, refusal: Refusal) {
        let mut notes = self.cell(key.hash()).notes.lock();
        notes.note_refusal(key.hash(), refusal);
    }

    /// Why the key's responses cannot be shared, if that is remembered.
    #[must_use]
    pub fn refused(&self, key: &KeyRef<'_>, now: Millis) -> Option<Reason> {
        self.cell(key.hash()).notes.lock().refused(key.hash(), now)
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
            refreshes: self.counters.refreshes.load(Relaxed),
            collapsed: self.counters.collapsed.load(Relaxed),
            in_flight: self.flights.len(),
            tier_hits: self.counters.tier_hits.load(Relaxed),
            promoted: self.counters.promoted.load(Relaxed),
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

    pub(super) fn count_gone(&self, gone: &RemovedResponse) {
        self.release(gone.size_bytes);
        self.responses.fetch_sub(1, Relaxed);
        self.labels.leave(&gone.labels, gone.stamp, self);
        if let Some(group) = gone.group {
            self.groups.leave(group, gone.id);
        }
    }

    pub(super) fn cell(&self, hash: u64) -> &ShardCell {
        // The table inside uses the lowest bits and the highest seven: these are in between.
        // The number of shards is a power of two and not zero.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl Budget for Zone {
    fn reserve(&self, bytes: u64) -> bool {
        Zone::reserve(self, bytes)
    }

    fn release(&self, bytes: u64) {
        Zone::release(self, bytes);
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("name", &self.config.name)
            .finish_non_exhaustive()
    }
}
