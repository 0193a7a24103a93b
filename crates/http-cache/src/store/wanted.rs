//! The most wanted of the responses that purges have hit: they are fetched first after a purge.
//!
//! A response is wanted by the number of seconds, of the last minutes, in which it was asked for
//! ([`Uses`]). A hit pays for that at most once a second, when it notes the time anyway.
//!
//! A response that a purge of labels has hit stays in its slot until it is swept or stored again. So
//! the walk that finds it comes after the purge, in steps, and the purge need not wait for it. A
//! response that is removed by its key leaves at once, and is looked at before ([`Zone::add_wanted`]).

use super::shard::Shard;
use super::zone::Zone;
use crate::fields::RequestFields;
use crate::key::KeyRef;
use crate::purge::PurgeTarget;
use crate::purge::clock::PurgeVerdict;
use crate::stored::StoredResponse;
use crate::time::Millis;
use crate::vary::VaryKey;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The amount that a second with a use adds to the count.
const USE: u32 = 256;

/// Uses fade: the count falls in a straight line to nothing over this many seconds without a use.
/// With uses in between, one counts for about a third after this time.
const MEMORY_SECONDS: u64 = 512;

/// A longer key or address is not remembered.
const MAX_NAME_BYTES: usize = 4096;

/// How many slots are looked at under one lock: some ten microseconds.
const STEP: usize = 256;

/// In how many seconds a response was asked for, the last ones counting most. Two threads that count
/// at the same time may count once.
#[derive(Debug)]
pub(super) struct Uses(AtomicU32);

impl Default for Uses {
    /// The request that it was stored for.
    fn default() -> Uses {
        Uses(AtomicU32::new(USE))
    }
}

impl Uses {
    /// Counts a second with a use; the last was `ago_ms` milliseconds before.
    pub fn count(&self, ago_ms: u64) {
        self.0
            .store(self.faded(ago_ms).saturating_add(USE), Relaxed);
    }

    /// Fades the count by `ago_ms`, the time since the last use, and adds none: the response was
    /// stored again.
    pub fn keep(&self, ago_ms: u64) {
        self.0.store(self.faded(ago_ms), Relaxed);
    }

    /// Returns the count in seconds, rounded up, `ago_ms` milliseconds after the last use.
    pub fn seconds(&self, ago_ms: u64) -> u32 {
        self.faded(ago_ms).div_ceil(USE)
    }

    /// Returns the rest of the count, `ago_ms` milliseconds after the last use.
    pub fn faded(&self, ago_ms: u64) -> u32 {
        let count = u64::from(self.0.load(Relaxed));
        let left = MEMORY_SECONDS.saturating_sub(ago_ms / 1000);
        u32::try_from(count * left / MEMORY_SECONDS).unwrap_or(u32::MAX)
    }
}

/// A response that a purge has hit.
#[derive(Clone, Debug)]
pub struct WantedResponse {
    /// The cache key.
    pub key: Box<[u8]>,
    /// The address by which it can be purged, see [`LabelNames::address`](crate::LabelNames::address).
    pub address: Box<[u8]>,
    /// The fields on which it varies, with the values for which it was made.
    pub vary: Option<Arc<VaryKey>>,
    uses: u32,
    last_used: Millis,
}

impl WantedResponse {
    /// Would an answer to a request with this key and these fields take its place?
    #[must_use]
    pub fn is_selected_by<F: RequestFields + ?Sized>(&self, key: &KeyRef<'_>, fields: &F) -> bool {
        let selects = |vary: &Arc<VaryKey>| vary.matches(fields);
        *self.key == *key.bytes() && self.vary.as_ref().is_none_or(selects)
    }

    /// A total order: the more wanted, the greater.
    fn rank(&self) -> impl Ord + '_ {
        (self.uses, self.last_used, &self.key, self.variant())
    }

    fn variant(&self) -> Option<&[u8]> {
        self.vary.as_ref().map(|vary| vary.values())
    }
}

/// By rank.
#[derive(Debug)]
struct RankedResponse(WantedResponse);

impl Ord for RankedResponse {
    fn cmp(&self, other: &RankedResponse) -> std::cmp::Ordering {
        self.0.rank().cmp(&other.0.rank())
    }
}

impl PartialOrd for RankedResponse {
    fn partial_cmp(&self, other: &RankedResponse) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedResponse {
    fn eq(&self, other: &RankedResponse) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RankedResponse {}

/// The `limit` most wanted of the responses that were added.
#[derive(Debug)]
pub struct MostWanted {
    limit: usize,
    /// The least wanted on top.
    found: BinaryHeap<Reverse<RankedResponse>>,
}

impl MostWanted {
    /// Keeps at most `limit` responses.
    #[must_use]
    pub fn new(limit: usize) -> MostWanted {
        MostWanted {
            limit,
            found: BinaryHeap::new(),
        }
    }

    /// Nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Adds one, and lets go of the least wanted if there are too many.
    pub fn add(&mut self, wanted: WantedResponse) {
        self.found.push(Reverse(RankedResponse(wanted)));
        if self.found.len() > self.limit {
            self.found.pop();
        }
    }

    /// Returns all wanted responses, each once, the most wanted first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<WantedResponse> {
        let sorted = self.found.into_sorted_vec().into_iter();
        let mut sorted: Vec<WantedResponse> = sorted
            .map(|Reverse(RankedResponse(wanted))| wanted)
            .collect();
        let mut seen = std::collections::HashSet::new();
        sorted.retain(|wanted| {
            let variant = wanted.variant().map(<[u8]>::to_vec);
            seen.insert((wanted.key.clone(), variant))
        });
        sorted
    }

    /// Is one with these uses among the most wanted so far?
    fn takes(&self, uses: u32) -> bool {
        self.found.len() < self.limit
            || self
                .found
                .peek()
                .is_some_and(|Reverse(RankedResponse(least))| least.uses <= uses)
    }
}

/// How far a walk through a zone has come. The default is its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedWalk {
    shard: usize,
    slot: usize,
}

impl Zone {
    /// All that is stored and may be shown, with its keys, most wanted first; at most `most` of it.
    #[must_use]
    pub fn most_wanted_stored(
        &self,
        now: Millis,
        most: usize,
    ) -> Vec<(Box<[u8]>, Arc<StoredResponse>)> {
        let mut stored = Vec::new();
        for cell in &self.shards {
            let shard = cell.shard.read();
            let slots = 0..u32::try_from(shard.slots_len()).unwrap_or(u32::MAX);
            stored.extend(slots.filter_map(|at| {
                let found = shard.inspected(at, now)?;
                let is_good = self.purges.standing(&found.response) == PurgeVerdict::Good;
                is_good.then_some((
                    found.seconds_used,
                    found.last_used,
                    found.key,
                    found.response,
                ))
            }));
        }
        stored.sort_by_key(|(seconds, last_used, ..)| Reverse((*seconds, *last_used)));
        stored.truncate(most);
        let shown = |(_, _, key, response)| (key, response);
        stored.into_iter().map(shown).collect()
    }

    /// Looks at up to `work` slots from where `walk` stands, and adds what purges have hit. Says
    /// whether there is more to look at.
    pub fn walk_wanted(
        &self,
        walk: &mut WantedWalk,
        most: &mut MostWanted,
        now: Millis,
        work: usize,
    ) -> bool {
        let is_hit = |response: &StoredResponse| {
            response.is_purged || self.purges.standing(response) != PurgeVerdict::Good
        };
        let mut left = work;
        while left > 0 {
            let Some(cell) = self.shards.get(walk.shard) else {
                return false;
            };
            let shard = cell.shard.read();
            let step = STEP
                .min(left)
                .min(shard.slots_len().saturating_sub(walk.slot));
            if step == 0 {
                *walk = WantedWalk {
                    shard: walk.shard + 1,
                    slot: 0,
                };
                continue;
            }
            shard.add_wanted(walk.slot..walk.slot + step, most, now, &is_hit);
            walk.slot += step;
            left -= step;
        }
        walk.shard < self.shards.len()
    }

    /// Adds what a purge of keys is about to remove. What other purges hit is there afterwards as well.
    pub fn add_wanted(&self, target: PurgeTarget<'_>, most: &mut MostWanted, now: Millis) {
        match target {
            PurgeTarget::Key(key) => {
                let shard = self.cell(key.hash()).shard.read();
                let at = shard.positions_of(&key);
                at.into_iter()
                    .for_each(|at| add(&shard, at, most, now, &|_| true));
            }
            PurgeTarget::Prefix(prefix) => {
                for cell in &self.shards {
                    let shard = cell.shard.read();
                    let at = shard.with_prefix(prefix);
                    at.into_iter()
                        .for_each(|at| add(&shard, at, most, now, &|_| true));
                }
            }
            PurgeTarget::Everything
            | PurgeTarget::NotFound
            | PurgeTarget::Tag(_)
            | PurgeTarget::Tags(_)
            | PurgeTarget::Address(_)
            | PurgeTarget::Addresses(_) => {}
        }
    }
}

impl Shard {
    fn add_wanted(
        &self,
        slots: std::ops::Range<usize>,
        most: &mut MostWanted,
        now: Millis,
        is_hit: &dyn Fn(&StoredResponse) -> bool,
    ) {
        for at in slots {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            add(self, at, most, now, is_hit);
        }
    }
}

/// Adds the response of a slot, if it is a page that others than one visitor's session may see.
fn add(
    shard: &Shard,
    at: u32,
    most: &mut MostWanted,
    now: Millis,
    is_hit: &dyn Fn(&StoredResponse) -> bool,
) {
    let Some((key, response, uses, last_used)) = shard.used(at, now) else {
        return;
    };
    let address = response.labels.address().unwrap_or_default();
    let is_page = response.status == 200 && response.group().is_none() && !address.is_empty();
    if !is_page
        || key.len().max(address.len()) > MAX_NAME_BYTES
        || !most.takes(uses)
        || !is_hit(response)
    {
        return;
    }
    most.add(WantedResponse {
        key: key.into(),
        address: address.into(),
        vary: response.vary.clone(),
        uses,
        last_used,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::{LabelNames, PurgeMode, Tags};
    use crate::store::ZoneConfig;
    use crate::testing::{NO_FIELDS, T0, fields, key, response, storable};
    use crate::{Reason, ResponseHead, StoredHead};
    use std::time::Duration;

    fn zone() -> Arc<Zone> {
        Zone::new(ZoneConfig {
            memory_budget_bytes: 8 << 20,
            shards: 4,
            ..ZoneConfig::default()
        })
    }

    fn put_response(zone: &Zone, name: &str, response: StoredResponse) -> Result<(), Reason> {
        let mut tags = Tags::default();
        tags.add(b"every");
        let names = LabelNames {
            address: name.as_bytes(),
            tags: Some(&tags),
        };
        let stored = zone.insert_named(&key(name).as_ref(), response, &names, T0);
        stored.map(drop)
    }

    fn put(zone: &Zone, name: &str) {
        put_response(zone, name, response(3600, 10, T0, zone.stamp())).expect("stored");
    }

    fn after(seconds: u64) -> Millis {
        T0.plus(Duration::from_secs(seconds))
    }

    fn use_at(zone: &Zone, name: &str, seconds: u64) {
        let _ = zone.find(&key(name).as_ref(), NO_FIELDS, after(seconds));
    }

    fn walked(zone: &Zone, limit: usize, now: Millis) -> Vec<String> {
        let (mut walk, mut most) = (WantedWalk::default(), MostWanted::new(limit));
        let mut steps = 0;
        while zone.walk_wanted(&mut walk, &mut most, now, 7) {
            steps += 1;
            assert!(steps < 10_000, "a walk ends");
        }
        names(most)
    }

    fn names(most: MostWanted) -> Vec<String> {
        let sorted = most.into_sorted().into_iter();
        sorted
            .map(|wanted| String::from_utf8_lossy(&wanted.key).into_owned())
            .collect()
    }

    #[test]
    fn what_was_asked_for_in_more_seconds_comes_first() {
        let zone = zone();
        for name in ["never", "once", "often", "burst", "long ago"] {
            put(&zone, name);
        }
        (1..60).for_each(|second| use_at(&zone, "long ago", second));
        use_at(&zone, "once", 990);
        (0..100).for_each(|_| use_at(&zone, "burst", 995));
        (980..990).for_each(|second| use_at(&zone, "often", second));
        assert!(
            walked(&zone, 10, after(1000)).is_empty(),
            "nothing was purged"
        );
        zone.purge(PurgeTarget::Tag(b"every"), PurgeMode::Hard, after(1000));
        let expected = ["often", "burst", "once", "long ago", "never"];
        let found = walked(&zone, 10, after(1000));
        assert_eq!(found[..3], expected[..3]);
        assert_eq!(walked(&zone, 2, after(1000)), expected[..2]);
    }

    #[test]
    fn a_page_that_is_stored_again_stays_wanted_and_leaves_the_list() {
        let zone = zone();
        put(&zone, "a");
        put(&zone, "b");
        (1..30).for_each(|second| use_at(&zone, "a", second));
        let every = PurgeTarget::Everything;
        zone.purge(every, PurgeMode::Hard, after(30));
        put(&zone, "a");
        assert_eq!(walked(&zone, 10, after(30)), ["b"]);
        zone.purge(every, PurgeMode::Hard, after(31));
        assert_eq!(walked(&zone, 10, after(31)), ["a", "b"]);
    }

    #[test]
    fn soft_purges_of_labels_and_keys_are_found_too() {
        let zone = zone();
        for name in ["a", "b", "c"] {
            put(&zone, name);
        }
        let soft = PurgeMode::Soft;
        zone.purge(PurgeTarget::Address(b"a"), soft, after(1));
        zone.purge(PurgeTarget::Key(key("b").as_ref()), soft, after(1));
        let mut found = walked(&zone, 10, after(1));
        found.sort();
        assert_eq!(found, ["a", "b"]);
    }

    #[test]
    fn what_is_removed_by_its_key_is_found_before() {
        let zone = zone();
        for name in ["/a", "/b", "/b/c"] {
            put(&zone, name);
        }
        let found = |target: PurgeTarget<'_>| {
            let mut most = MostWanted::new(10);
            zone.add_wanted(target, &mut most, after(1));
            let mut names = names(most);
            names.sort();
            names
        };
        assert_eq!(found(PurgeTarget::Key(key("/a").as_ref())), ["/a"]);
        assert_eq!(found(PurgeTarget::Prefix(b"/b")), ["/b", "/b/c"]);
        assert!(
            found(PurgeTarget::Tag(b"every")).is_empty(),
            "those stay where they are"
        );
    }

    #[test]
    fn no_page_of_a_session_and_no_error_is_fetched_again() {
        let zone = zone();
        let mut private = response(3600, 10, T0, zone.stamp());
        private.set_group(Some(1));
        let mut missing = response(3600, 10, T0, zone.stamp());
        missing.head.status = 404;
        put_response(&zone, "private", private).expect("stored");
        put_response(&zone, "missing", missing).expect("stored");
        let unnamed = response(3600, 10, T0, zone.stamp());
        zone.insert(&key("unnamed").as_ref(), unnamed, T0)
            .expect("stored");
        put(&zone, "page");
        zone.purge(PurgeTarget::Everything, PurgeMode::Hard, after(1));
        assert_eq!(walked(&zone, 10, after(1)), ["page"]);
    }

    #[test]
    fn a_variant_is_selected_by_its_own_fields() {
        let zone = zone();
        let request = fields(&["Accept-Language: de"]);
        let storable = storable(
            &["Cache-Control: max-age=60", "Vary: Accept-Language"],
            &request,
        );
        let mut response = response(60, 10, T0, zone.stamp());
        response.head = StoredHead::new(&ResponseHead::OK, &storable, T0);
        put_response(&zone, "a", response).expect("stored");
        zone.purge(PurgeTarget::Everything, PurgeMode::Hard, after(1));
        let mut most = MostWanted::new(1);
        zone.walk_wanted(&mut WantedWalk::default(), &mut most, after(1), 1000);
        let wanted = most.into_sorted().remove(0);
        let (own, other) = (key("a"), key("b"));
        assert!(wanted.is_selected_by(&own.as_ref(), &request));
        assert!(!wanted.is_selected_by(&own.as_ref(), NO_FIELDS));
        assert!(!wanted.is_selected_by(&other.as_ref(), &request));
        let vary = wanted.vary.expect("it varies");
        assert_eq!(
            vary.negotiated(),
            Some(vec![("accept-language".to_owned(), b"de".to_vec())])
        );
    }
}
