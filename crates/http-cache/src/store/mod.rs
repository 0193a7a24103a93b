//! Zones: where stored responses are kept, found, counted and let go.

use crate::fields::RequestFields;
use crate::key::KeyRef;
use crate::private::GroupLimits;
use crate::purge::{PurgeMode, PurgeTarget, Purged, Stamp};
use crate::stale::StaleInfo;
use crate::storability::NoStore;
use crate::stored::StoredResponse;
use crate::time::Millis;
use std::sync::Arc;
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

/// What [`Zone::lookup`] found.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// Serve it.
    Fresh(Arc<StoredResponse>),
    /// There is one, stale: see [`crate::may_serve_stale`], [`Zone::begin_refresh`], [`Zone::join`].
    Stale(Arc<StoredResponse>, StaleInfo),
    /// The key has responses, but none for these request fields.
    VaryMiss,
    /// Nothing stored.
    Miss,
    /// Nothing stored, and the last response could not be shared: do not wait for anybody, use
    /// [`Zone::detached`].
    NotShareable(NoStore),
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
    /// Lookups answered fresh.
    pub hits: u64,
    /// Lookups answered stale.
    pub stale_hits: u64,
    /// Lookups answered with nothing.
    pub misses: u64,
    /// Responses stored.
    pub stored: u64,
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

/// One cache zone. Shared by all threads behind an [`Arc`].
#[derive(Debug)]
pub struct Zone {}

impl Zone {
    /// An empty zone.
    #[must_use]
    pub fn new(config: ZoneConfig) -> Arc<Zone> {
        let _ = config;
        unimplemented!()
    }
    /// The zone's configuration.
    #[must_use]
    pub fn config(&self) -> &ZoneConfig {
        unimplemented!()
    }
    /// Finds what is stored for a request. A fresh answer costs one shared lock, no allocation.
    #[must_use]
    pub fn lookup(&self, key: &KeyRef<'_>, request: &dyn RequestFields, now: Millis) -> Lookup {
        let _ = (key, request, now);
        unimplemented!()
    }
    /// Counts a request for `key` and says how many there were, this one included (saturating, and
    /// forgotten after `inactive` or under pressure). For `min_uses` above 1.
    #[must_use]
    pub fn count_use(&self, key: &KeyRef<'_>, now: Millis) -> u32 {
        let _ = (key, now);
        unimplemented!()
    }
    /// The purge clock: take it before a fetch begins whose response goes to [`Zone::insert`].
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        unimplemented!()
    }
    /// Stores a complete response. (Fetches led through [`Zone::join`] do this by themselves.)
    ///
    /// # Errors
    /// Too large, no room, or purged since its stamp.
    pub fn insert(
        &self,
        key: &KeyRef<'_>,
        response: StoredResponse,
        now: Millis,
    ) -> Result<Arc<StoredResponse>, NoStore> {
        let _ = (key, response, now);
        unimplemented!()
    }
    /// Remembers that a key's responses cannot be shared.
    pub fn remember_not_shareable(&self, key: &KeyRef<'_>, why: NoStore, until: Millis) {
        let _ = (key, why, until);
        unimplemented!()
    }
    /// Purges. When it returns, no lookup or join begun afterwards gives what was stored or under
    /// way before (soft: gives it as fresh).
    pub fn purge(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> Purged {
        let _ = (target, mode, now);
        unimplemented!()
    }
    /// Looks at up to `work` stored responses and removes those inactive or too stale. Call it
    /// every second or so; it goes on where it stopped.
    pub fn sweep(&self, now: Millis, work: usize) -> Swept {
        let _ = (now, work);
        unimplemented!()
    }
    /// Counters now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }
}
