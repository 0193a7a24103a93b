//! Looks at stored responses for the operator: walks that search, and single responses with all
//! that is known of them. It counts no hits and no uses.
//!
//! A walk looks at a bounded number of slots under one lock for reading, so that requests wait for
//! it only briefly. What is stored or removed meanwhile may be seen or not.

use super::notes::Refusal;
use super::zone::Zone;
use crate::encoded::Encoding;
use crate::key::KeyRef;
use crate::stored::StoredResponse;
use crate::time::Millis;
use std::sync::Arc;

/// How many slots are looked at under one lock: some ten microseconds, with what is shown of each.
const STEP: usize = 64;

/// The identity of a stored response; it stays valid as long as the response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredId {
    /// The hash of its key.
    pub hash: u64,
    /// Tells it from all others that were ever stored in the zone.
    pub serial: u64,
}

/// A stored response, and what the zone knows of it.
#[derive(Clone, Debug)]
pub struct InspectedResponse {
    /// The identity of the stored response.
    pub id: StoredId,
    /// The cache key.
    pub key: Box<[u8]>,
    /// The stored response.
    pub response: Arc<StoredResponse>,
    /// Bytes that it takes of the budget, its forms included.
    pub size_bytes: u64,
    /// Bytes of what is kept beside it: encoded forms, files.
    pub forms_bytes: u64,
    /// When it was last asked for, or stored.
    pub last_used: Millis,
    /// In about how many seconds it was asked for, however often in each: this counts no hits. The
    /// longer ago the last one is, the less all of them count.
    pub seconds_used: u32,
    /// Purges have removed it; it only waits to leave.
    pub is_gone: bool,
}

/// How far a walk has come. The default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The shard that is looked at.
    pub shard: usize,
    /// The next slot in it.
    pub slot: usize,
}

impl Zone {
    /// Looks at some more of the zone, and passes each wanted response to `found`, which returns whether
    /// it takes more. Returns whether there is more to look at; the walk then stands behind the response
    /// that was passed last.
    pub fn walk(
        &self,
        walk: &mut Walk,
        now: Millis,
        is_wanted: &dyn Fn(&[u8], &StoredResponse) -> bool,
        found: &mut dyn FnMut(InspectedResponse) -> bool,
    ) -> bool {
        let Some(cell) = self.shards.get(walk.shard) else {
            return false;
        };
        let end = walk.slot.saturating_add(STEP);
        let next = |slot: &mut usize| {
            let shard = cell.shard.read();
            while *slot < end.min(shard.slots_len()) {
                let at = u32::try_from(*slot).unwrap_or(u32::MAX);
                *slot += 1;
                if let Some((key, response, ..)) = shard.used(at, now)
                    && is_wanted(key, response)
                {
                    return shard.inspected(at, now);
                }
            }
            None
        };
        while let Some(inspected) = next(&mut walk.slot) {
            if !found(self.judged_for_people(inspected, now)) {
                return true;
            }
        }
        if walk.slot >= cell.shard.read().slots_len() {
            *walk = Walk {
                shard: walk.shard + 1,
                slot: 0,
            };
        }
        walk.shard < self.shards.len()
    }

    /// One stored response.
    #[must_use]
    pub fn inspect(&self, id: StoredId, now: Millis) -> Option<InspectedResponse> {
        let shard = self.cell(id.hash).shard.read();
        let at = shard.position_of_id(id.hash, id.serial)?;
        let found = shard.inspected(at, now)?;
        drop(shard);
        Some(self.judged_for_people(found, now))
    }

    /// All variants that are stored for a key.
    #[must_use]
    pub fn variants(&self, key: &KeyRef<'_>, now: Millis) -> Vec<InspectedResponse> {
        let shard = self.cell(key.hash()).shard.read();
        let found = shard.positions_of(key).into_iter();
        let found: Vec<_> = found.filter_map(|at| shard.inspected(at, now)).collect();
        drop(shard);
        let found = found.into_iter();
        found.map(|it| self.judged_for_people(it, now)).collect()
    }

    /// Says whether it is gone. Its guard is asked, so the shard is not held.
    fn judged_for_people(&self, found: InspectedResponse, now: Millis) -> InspectedResponse {
        let worth = self.worth(&found.response, now);
        InspectedResponse {
            is_gone: matches!(worth, super::ResponseWorth::Nothing),
            ..found
        }
    }

    /// Why the last response for the key was not stored; none where one is, or where that was
    /// forgotten. It may have been the answer to another visitor's request.
    #[must_use]
    pub fn last_refusal(&self, key: &KeyRef<'_>) -> Option<Refusal> {
        let notes = self.cell(key.hash()).notes.lock();
        notes.last_refusal(key.hash())
    }

    /// How often a key was asked for, where that is counted ([`Zone::count_use`]).
    #[must_use]
    pub fn uses(&self, key: &KeyRef<'_>, now: Millis) -> u32 {
        let horizon = now.minus(self.config.inactive);
        let notes = self.cell(key.hash()).notes.lock();
        notes.uses(key.hash(), horizon)
    }
}

impl StoredResponse {
    /// The codings that its body is kept in, with their bytes; none where the coding saves nothing.
    #[must_use]
    pub fn forms(&self) -> Vec<(Encoding, Option<u64>)> {
        self.encoded_forms.ready()
    }

    /// The address by which it can be purged.
    #[must_use]
    pub fn address(&self) -> Option<&[u8]> {
        self.labels.address()
    }

    /// It named more tags than are kept, and is fresh for a short time only.
    #[must_use]
    pub fn lacks_tags(&self) -> bool {
        self.head.lacks_tags
    }

    /// A purge has marked it stale.
    #[must_use]
    pub fn was_purged_softly(&self) -> bool {
        self.head.is_purged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::{LabelNames, PurgeMode, PurgeTarget, Tags};
    use crate::reason::Reason;
    use crate::store::ZoneConfig;
    use crate::testing::{NO_FIELDS, T0, key, response};

    fn zone(count: usize) -> Arc<Zone> {
        let zone = Zone::new(ZoneConfig {
            shards: 4,
            ..ZoneConfig::default()
        });
        for number in 0..count {
            let mut tags = Tags::default();
            tags.add(if number % 2 == 0 { b"even" } else { b"odd" });
            let name = format!("/page/{number}");
            let names = LabelNames {
                address: name.as_bytes(),
                tags: Some(&tags),
            };
            let response = response(60, 10, T0, zone.stamp());
            let stored = zone.insert_named(&key(&name).as_ref(), response, &names, T0);
            stored.expect("stored");
        }
        zone
    }

    fn found(
        zone: &Zone,
        most: usize,
        walk: &mut Walk,
        is_wanted: &dyn Fn(&[u8], &StoredResponse) -> bool,
    ) -> Vec<InspectedResponse> {
        let mut all = Vec::new();
        let mut steps = 0;
        while all.len() < most
            && zone.walk(walk, T0, is_wanted, &mut |one| {
                all.push(one);
                all.len() < most
            })
        {
            steps += 1;
            assert!(steps < 10_000, "a walk ends");
        }
        all
    }

    #[test]
    fn a_walk_finds_each_that_is_wanted_once_in_pieces_of_any_size() {
        let zone = zone(1000);
        let is_even =
            |_: &[u8], response: &StoredResponse| response.tags().any(|tag| tag == b"even");
        for most in [1, 7, 1000] {
            let (mut walk, mut keys) = (Walk::default(), Vec::new());
            loop {
                let piece = found(&zone, most, &mut walk, &is_even);
                keys.extend(piece.iter().map(|it| it.key.clone()));
                if piece.len() < most {
                    break;
                }
            }
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), 500, "{most} at a time");
        }
    }

    #[test]
    fn one_is_opened_by_its_id_until_it_leaves() {
        let zone = zone(3);
        let is_it = |key: &[u8], _: &StoredResponse| key == b"/page/1";
        let one = found(&zone, 10, &mut Walk::default(), &is_it).remove(0);
        let opened = zone.inspect(one.id, T0).expect("it is there");
        assert_eq!(opened.response.address(), Some(&b"/page/1"[..]));
        assert_eq!((opened.forms_bytes, opened.is_gone), (0, false));
        assert!(opened.size_bytes > 10);
        zone.purge(PurgeTarget::Tag(b"odd"), PurgeMode::Hard, T0);
        assert!(zone.inspect(one.id, T0).is_none_or(|it| it.is_gone));
        zone.purge(
            PurgeTarget::Key(key("/page/1").as_ref()),
            PurgeMode::Hard,
            T0,
        );
        assert!(zone.inspect(one.id, T0).is_none());
        assert!(zone.variants(&key("/page/1").as_ref(), T0).is_empty());
    }

    #[test]
    fn looking_is_no_use_and_is_counted_nowhere() {
        let zone = zone(3);
        let before = zone.stats();
        let id = zone.variants(&key("/page/1").as_ref(), T0)[0].id;
        let _ = zone.inspect(id, T0);
        let _ = found(&zone, 10, &mut Walk::default(), &|_, _| true);
        assert_eq!(zone.stats(), before);
        let _ = zone.find(&key("/page/1").as_ref(), NO_FIELDS, T0);
        assert_eq!(zone.stats().hits, before.hits + 1);
    }

    #[test]
    fn a_refusal_is_forgotten_when_a_response_is_stored() {
        let zone = zone(0);
        let name = key("a");
        let refusal = Refusal {
            why: Reason::Private,
            status: 200,
            at: T0,
        };
        zone.note_refusal(&name.as_ref(), refusal);
        assert_eq!(zone.last_refusal(&name.as_ref()), Some(refusal));
        let stored = zone.insert(&name.as_ref(), response(60, 10, T0, zone.stamp()), T0);
        stored.expect("stored");
        assert_eq!(zone.last_refusal(&name.as_ref()), None);
        assert_eq!(zone.uses(&name.as_ref(), T0), 0);
        let _ = zone.count_use(&name.as_ref(), T0);
        assert_eq!(zone.uses(&name.as_ref(), T0), 1);
    }
}
