//! One shard of a zone: an index of stored responses, how many variants a key may have, and the
//! order in which responses are evicted.
//!
//! Eviction is SIEVE (Zhang et al., NSDI 2024): one list in order of arrival, one bit per slot that
//! a hit sets, and a hand that walks from old to new, takes the first slot whose bit is clear and
//! clears the bits it passes. A hit therefore needs no exclusive lock and moves nothing, which is
//! what the hit path is made of; and pages asked for once leave on the hand's next pass, which is
//! what a crawler leaves behind. On skewed traces it keeps more hits than LRU (see the test);
//! S3-FIFO does about as well with three queues and a ghost table, memory that a page could use.
//!
//! ```text
//!   newest ◄── prev ── slot ── next ──► oldest        hand: from oldest towards newest
//! ```

use super::inspection::{InspectedResponse, StoredId};
use super::wanted::Uses;
use crate::encoded::EncodedForms;
use crate::fields::RequestFields;
use crate::key::KeyRef;
use crate::purge::labels::Labels;
use crate::stored::StoredResponse;
use crate::time::Millis;
use crate::vary::VarySpec;
use bytes::Bytes;
use hashbrown::HashTable;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const NONE: u32 = u32::MAX;

/// The bytes that a slot and its entry in the index cost beside the response. Both tables grow by doubling, and
/// the index when it is full to seven eighths: that is the most they can take per stored response.
const SLOT_BYTES: usize = 2 * size_of::<Slot>() + 5 * (size_of::<IndexedResponse>() + 1) / 2;

/// The bytes that the processor reads from memory at a time.
const CACHE_LINE_BYTES: usize = 64;

thread_local! {
    /// The secondary key of the request at hand; kept so that selecting a variant does not allocate.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A shard. The zone holds it behind a lock.
#[derive(Default)]
pub(super) struct Shard {
    index: HashTable<IndexedResponse>,
    slots: Vec<Slot>,
    /// Head of the list of empty slots, linked through `next`.
    free: Option<u32>,
    newest: Option<u32>,
    oldest: Option<u32>,
    hand: Option<u32>,
    /// Responses that are asked for again and again, for a tier that keeps them; none where there is no tier.
    wanted: Option<Mutex<Vec<StoredId>>>,
}

/// In so many different seconds a response was asked for that has earned a place in a tier beside memory.
const WANTED_SECONDS: u32 = 4;

/// The most responses that wait to be written to a tier. Further ones are noted at a later use.
const MAX_WANTED: usize = 256;

/// A stored response in the index. A lookup goes from here to the block and to the response at the
/// same time, and has no need to wait for the slot.
struct IndexedResponse {
    /// Begins with the key, see [`StoredResponse::laid_out`].
    block: Bytes,
    response: Arc<StoredResponse>,
    key_len: u32,
    /// Its slot.
    at: u32,
}

/// The facts about a stored response that eviction and the budget need. A slot that nothing in the index
/// belongs to is empty.
struct Slot {
    hash: u64,
    /// Tells this use of the slot from others.
    id: u64,
    size_bytes: u64,
    /// The bytes of the encoded forms and files that are kept beside the response.
    forms_bytes: u64,
    last_used: AtomicU64,
    uses: Uses,
    visited: AtomicBool,
    prev: u32,
    next: u32,
}

/// The result of selecting a response for a request.
pub(super) enum SelectedResponse<'a> {
    Found(&'a Arc<StoredResponse>),
    /// Responses for the key, which vary on this, none for these fields.
    VaryMiss(&'a Arc<VarySpec>),
    Miss,
}

/// A response that left a shard.
#[derive(Clone, Debug)]
pub(super) struct RemovedResponse {
    pub size_bytes: u64,
    pub group: Option<u64>,
    pub id: u64,
    pub labels: Labels,
    pub stamp: u64,
}

/// The responses that left because another one was stored.
#[derive(Debug, Default)]
pub(super) struct DisplacedResponses {
    /// All responses that left.
    pub gone: Vec<RemovedResponse>,
    /// How many of them were variants beyond the bound.
    pub dropped_variants: u64,
    /// Bytes of the file that came with the new response, counted nowhere yet.
    pub uncounted_bytes: u64,
}

/// Bytes that storing `response` under a key of `key_len` bytes will be counted as.
pub(super) fn cost_bytes(key_len: usize, response: &StoredResponse) -> u64 {
    let group = response.group().map_or(0, |_| crate::private::MEMBER_BYTES);
    (SLOT_BYTES + response.size_bytes(key_len) + group) as u64
}

impl Shard {
    /// The stored response a request selects. `touch`: counts as a use.
    pub(super) fn select(
        &self,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        touch: Option<Millis>,
    ) -> SelectedResponse<'_> {
        self.fetch_bucket(key);
        let mut spec: Option<&Arc<VarySpec>> = None;
        for found in self.under(key) {
            found.fetch_lines();
            let IndexedResponse { response, at, .. } = found;
            let selected = match &response.vary {
                None => true,
                Some(vary) => VALUES.with_borrow_mut(|values| {
                    if spec.is_none() {
                        values.clear();
                        vary.spec().values(request, values);
                        spec = Some(vary.spec());
                    }
                    **values == *vary.values()
                }),
            };
            if selected {
                if let Some(now) = touch {
                    self.slot(*at).touch(now, self.wanted.as_ref());
                }
                return SelectedResponse::Found(response);
            }
        }
        spec.map_or(SelectedResponse::Miss, SelectedResponse::VaryMiss)
    }

    /// Is the response that this one would replace as new?
    pub(super) fn has_newer(&self, key: &KeyRef<'_>, than: &StoredResponse) -> bool {
        self.replaced_by(key, than)
            .any(|found| than.stored_at <= found.stored_at)
    }

    /// Was the response that this one would replace asked for while this one was fetched? It may be made of newer data. The
    /// times of one that another process has fetched may lie in the future, and are not compared.
    pub(super) fn has_later(&self, key: &KeyRef<'_>, than: &StoredResponse, now: Millis) -> bool {
        self.replaced_by(key, than)
            .any(|found| than.asked_at() < found.asked_at() && found.stored_at <= now)
    }

    /// Returns the responses that this one would replace. Where the key's responses vary on other fields, each of them is.
    fn replaced_by(
        &self,
        key: &KeyRef<'_>,
        new: &StoredResponse,
    ) -> impl Iterator<Item = &StoredResponse> {
        let is_replaced = |found: &&StoredResponse| match (&found.vary, &new.vary) {
            (Some(one), Some(other)) if one.spec() == other.spec() => one == other,
            _ => true,
        };
        let under = self.under(key).map(|found| &*found.response);
        under.filter(is_replaced)
    }

    /// Returns the fields on which the key's stored responses vary, if they do.
    pub(super) fn vary_spec(&self, key: &KeyRef<'_>) -> Option<Arc<VarySpec>> {
        self.under(key)
            .find_map(|found| Some(Arc::clone(found.response.vary.as_ref()?.spec())))
    }

    /// Asks memory for the bucket of the index where the key most likely is: it comes together with
    /// the marks that say in which of a few buckets the key really is.
    fn fetch_bucket(&self, key: &KeyRef<'_>) {
        // The table alone decides where a key is stored: if it is another bucket, nothing is lost.
        let bucket = key.hash() as usize & self.index.num_buckets().wrapping_sub(1);
        std::hint::black_box(self.index.get_bucket(bucket).map(|found| found.at));
    }

    /// Returns the responses that are stored under this key, without others that have the same hash.
    fn under(&self, key: &KeyRef<'_>) -> impl Iterator<Item = &IndexedResponse> {
        self.index
            .iter_hash(key.hash())
            .filter(move |found| found.key() == key.bytes())
    }

    /// The response of a slot, unless it is empty.
    fn response(&self, at: u32) -> Option<&Arc<StoredResponse>> {
        Some(&self.indexed(at)?.response)
    }

    fn indexed(&self, at: u32) -> Option<&IndexedResponse> {
        let hash = self.slots.get(at as usize)?.hash;
        self.index.find(hash, |found| found.at == at)
    }

    fn indexed_mut(&mut self, at: u32) -> Option<&mut IndexedResponse> {
        let hash = self.slots.get(at as usize)?.hash;
        self.index.find_mut(hash, |found| found.at == at)
    }

    /// Stores a response, laid out under `key`, instead of the one it replaces. All variants of a
    /// key vary on the same fields, those of the newest response: what varied on others leaves.
    /// Beyond `max_variants`, a variant that was never asked for again leaves, or else the least
    /// recently used one: clients choose the values, and one who sends a new one with each request
    /// shall not drive out what visitors use. Gives what left.
    pub(super) fn insert(
        &mut self,
        key: &KeyRef<'_>,
        (block, response): (Bytes, Arc<StoredResponse>),
        id: u64,
        now: Millis,
        max_variants: usize,
    ) -> DisplacedResponses {
        debug_assert!(block.starts_with(key.bytes()));
        let size_bytes = cost_bytes(key.bytes().len(), &response);
        let mut displaced = DisplacedResponses::default();
        let gone = &mut displaced.gone;
        let mut same = None;
        let mut others: Vec<(bool, u64, u64, u32)> = Vec::new();
        for at in self.positions_of(key) {
            let Some(old) = self.response(at) else {
                continue;
            };
            let old_spec = old.vary.as_ref().map(|v| v.spec());
            if old.vary == response.vary && same.is_none() {
                same = Some(at);
            } else if old_spec != response.vary.as_ref().map(|v| v.spec()) {
                gone.extend(self.remove(at));
            } else {
                let slot = self.slot(at);
                let is_used = slot.visited.load(Relaxed);
                others.push((is_used, slot.last_used.load(Relaxed), slot.id, at));
            }
        }
        if others.len() >= max_variants.max(1) {
            others.sort_unstable();
            let excess = others.len() + 1 - max_variants.max(1);
            displaced.dropped_variants = excess as u64;
            for (.., at) in others.into_iter().take(excess) {
                gone.extend(self.remove(at));
            }
        }
        // Freshened: the same body, so its forms stay and stay counted. Freshened after it had left:
        // they are counted nowhere.
        let old = same.and_then(|at| self.response(at));
        let is_freshened =
            old.is_some_and(|old| Arc::ptr_eq(&old.encoded_forms, &response.encoded_forms));
        if !is_freshened {
            displaced.uncounted_bytes = response.drop_forms();
        }
        match same {
            Some(at) => {
                let forms_bytes = match is_freshened {
                    true => std::mem::take(&mut self.slot_mut(at).forms_bytes),
                    false => 0,
                };
                gone.extend(self.replace(at, (block, response), size_bytes, id, now));
                self.slot_mut(at).forms_bytes = forms_bytes;
            }
            None => self.add(key, (block, response), size_bytes, id, now),
        }
        displaced
    }

    /// Replaces the response in slot `at`.
    fn replace(
        &mut self,
        at: u32,
        (block, response): (Bytes, Arc<StoredResponse>),
        size_bytes: u64,
        id: u64,
        now: Millis,
    ) -> Option<RemovedResponse> {
        let indexed = self.indexed_mut(at)?;
        indexed.block = block;
        let old = std::mem::replace(&mut indexed.response, response);
        let slot = self.slot_mut(at);
        let gone = slot.gone(&old);
        slot.size_bytes = size_bytes;
        slot.id = id;
        slot.uses.keep(slot.unused_for(now));
        slot.last_used = AtomicU64::new(now.0);
        Some(gone)
    }

    fn add(
        &mut self,
        key: &KeyRef<'_>,
        (block, response): (Bytes, Arc<StoredResponse>),
        size_bytes: u64,
        id: u64,
        now: Millis,
    ) {
        let slot = Slot {
            hash: key.hash(),
            id,
            size_bytes,
            forms_bytes: 0,
            last_used: AtomicU64::new(now.0),
            uses: Uses::default(),
            visited: AtomicBool::new(false),
            prev: NONE,
            next: self.newest.unwrap_or(NONE),
        };
        let at = match self.free {
            Some(at) => {
                self.free = some(self.slot(at).next);
                *self.slot_mut(at) = slot;
                at
            }
            None => {
                // The budget keeps a zone far below 2^32 slots of at least 300 bytes.
                let at = u32::try_from(self.slots.len()).unwrap_or(NONE);
                assert!(at != NONE, "a shard holds fewer than 2^32 stored responses");
                self.slots.push(slot);
                at
            }
        };
        match self.newest {
            Some(newest) => self.slot_mut(newest).prev = at,
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
        let indexed = IndexedResponse {
            block,
            response,
            // A request has no longer one; it would never be found.
            key_len: u32::try_from(key.bytes().len()).unwrap_or(u32::MAX),
            at,
        };
        let slots = &self.slots;
        let hash_of = |found: &IndexedResponse| slots[found.at as usize].hash;
        self.index.insert_unique(key.hash(), indexed, hash_of);
    }

    fn remove(&mut self, at: u32) -> Option<RemovedResponse> {
        let slot = self.slots.get(at as usize)?;
        let (hash, prev, next) = (slot.hash, some(slot.prev), some(slot.next));
        let entry = self.index.find_entry(hash, |found| found.at == at).ok()?;
        let gone = slot.gone(&entry.remove().0.response);
        match prev {
            Some(prev) => self.slot_mut(prev).next = next.unwrap_or(NONE),
            None => self.newest = next,
        }
        match next {
            Some(next) => self.slot_mut(next).prev = prev.unwrap_or(NONE),
            None => self.oldest = prev,
        }
        if self.hand == Some(at) {
            self.hand = prev;
        }
        self.slot_mut(at).next = self.free.unwrap_or(NONE);
        self.free = Some(at);
        Some(gone)
    }

    /// Lets one response go, the one the hand finds.
    pub(super) fn evict(&mut self) -> Option<RemovedResponse> {
        let mut at = self.hand.or(self.oldest)?;
        // Ends within two rounds: the first clears every bit.
        loop {
            let slot = self.slot_mut(at);
            let prev = some(slot.prev);
            if !std::mem::take(slot.visited.get_mut()) {
                self.hand = prev;
                return self.remove(at);
            }
            at = prev.or(self.oldest)?;
        }
    }

    /// Removes all variants of a key.
    pub(super) fn remove_key(&mut self, key: &KeyRef<'_>) -> Vec<RemovedResponse> {
        let found = self.positions_of(key);
        found.into_iter().filter_map(|at| self.remove(at)).collect()
    }

    /// Marks all variants of a key stale.
    pub(super) fn expire_key(&mut self, key: &KeyRef<'_>, now: Millis) -> usize {
        let found = self.positions_of(key);
        found.iter().for_each(|&at| self.expire(at, now));
        found.len()
    }

    /// How many variants of a key there are.
    pub(super) fn count(&self, key: &KeyRef<'_>) -> usize {
        self.under(key).count()
    }

    fn expire(&mut self, at: u32, now: Millis) {
        if let Some(found) = self.indexed_mut(at) {
            found.response = Arc::new(found.response.expired(now));
        }
    }

    /// Keeps a response for longer, where it is still the one that is stored.
    pub(super) fn keep(
        &mut self,
        key: &KeyRef<'_>,
        response: &Arc<StoredResponse>,
        until: Millis,
    ) -> bool {
        let places = self.positions_of(key).into_iter();
        let is_it = |at: &u32| {
            self.response(*at)
                .is_some_and(|it| Arc::ptr_eq(it, response))
        };
        let Some(at) = places.filter(is_it).last() else {
            return false;
        };
        let found = self.indexed_mut(at);
        let kept = found.map(|found| found.response = Arc::new(response.kept_until(until)));
        kept.is_some()
    }

    pub(super) fn positions_of(&self, key: &KeyRef<'_>) -> Vec<u32> {
        self.under(key).map(|found| found.at).collect()
    }

    /// Returns when the response stored with this id was used last, to the second.
    pub(super) fn last_used(&self, hash: u64, id: u64) -> Option<Millis> {
        let at = self.position_of_id(hash, id)?;
        Some(Millis(self.slot(at).last_used.load(Relaxed)))
    }

    /// Removes the response stored with this id.
    pub(super) fn remove_id(&mut self, hash: u64, id: u64) -> Option<RemovedResponse> {
        let at = self.position_of_id(hash, id)?;
        self.remove(at)
    }

    /// Counts `bytes` for a form of the response that has these. False: it is not here any more.
    pub(super) fn add_form(&mut self, hash: u64, forms: &Arc<EncodedForms>, bytes: u64) -> bool {
        let has = |found: &&IndexedResponse| Arc::ptr_eq(&found.response.encoded_forms, forms);
        let at = self.index.iter_hash(hash).find(has).map(|found| found.at);
        if let Some(at) = at {
            self.slot_mut(at).forms_bytes += bytes;
        }
        at.is_some()
    }

    /// The slots of those whose keys begin with `prefix`. Needs only a shared lock; [`Self::at_with_prefix`]
    /// checks again under the exclusive one.
    pub(super) fn with_prefix(&self, prefix: &[u8]) -> Vec<u32> {
        self.index
            .iter()
            .filter(|found| found.key().starts_with(prefix))
            .map(|found| found.at)
            .collect()
    }

    /// Removes (or expires, given a time) the slot if its key still begins with `prefix`.
    pub(super) fn at_with_prefix(
        &mut self,
        at: u32,
        prefix: &[u8],
        expire: Option<Millis>,
    ) -> Option<RemovedResponse> {
        let found = self.indexed(at)?;
        if !found.key().starts_with(prefix) {
            return None;
        }
        match expire {
            None => self.remove(at),
            Some(now) => {
                let gone = self.slot(at).gone(&found.response);
                self.expire(at, now);
                Some(gone)
            }
        }
    }

    /// Removes those of the slots `from..from + work` for which `is_over` is true.
    pub(super) fn sweep(
        &mut self,
        from: usize,
        work: usize,
        is_over: impl Fn(&StoredResponse, Millis) -> bool,
    ) -> Vec<RemovedResponse> {
        let to = self.slots.len().min(from.saturating_add(work));
        (from..to)
            .filter_map(|at| {
                let at = u32::try_from(at).ok()?;
                let last_used = self.slot(at).last_used.load(Relaxed);
                match is_over(self.response(at)?, Millis(last_used)) {
                    true => self.remove(at),
                    false => None,
                }
            })
            .collect()
    }

    /// The responses of these slots that have a guard.
    pub(super) fn guarded(&self, from: usize, work: usize) -> Vec<Arc<StoredResponse>> {
        let to = self.slots.len().min(from.saturating_add(work));
        let slots = (from..to).filter_map(|at| self.response(u32::try_from(at).ok()?));
        let guarded = slots.filter(|response| response.guard().is_some());
        guarded.cloned().collect()
    }

    /// Gives back the memory of the tables where nothing is stored any more.
    pub(super) fn shrink(&mut self) {
        if self.index.is_empty() {
            self.index = HashTable::new();
            self.slots = Vec::new();
            (self.free, self.hand) = (None, None);
        }
    }

    /// The key and the response of a slot, unless it is empty, how much it was used as of `now`, and
    /// when last.
    pub(super) fn used(
        &self,
        at: u32,
        now: Millis,
    ) -> Option<(&[u8], &StoredResponse, u32, Millis)> {
        let found = self.indexed(at)?;
        let slot = self.slot(at);
        let uses = slot.uses.faded(slot.unused_for(now));
        let last_used = Millis(slot.last_used.load(Relaxed));
        Some((found.key(), &found.response, uses, last_used))
    }

    /// The response of a slot with all that is known of it here.
    pub(super) fn inspected(&self, at: u32, now: Millis) -> Option<InspectedResponse> {
        let found = self.indexed(at)?;
        let slot = self.slot(at);
        Some(InspectedResponse {
            id: StoredId {
                hash: slot.hash,
                serial: slot.id,
            },
            key: found.key().into(),
            response: Arc::clone(&found.response),
            size_bytes: slot.size_bytes + slot.forms_bytes,
            forms_bytes: slot.forms_bytes,
            last_used: Millis(slot.last_used.load(Relaxed)),
            seconds_used: slot.uses.seconds(slot.unused_for(now)),
            is_gone: false,
        })
    }

    /// Begins to note the responses that are asked for again and again.
    pub(super) fn note_wanted(&mut self) {
        self.wanted = Some(Mutex::default());
    }

    /// Returns the responses that were noted since the last call, with their keys.
    pub(super) fn take_wanted(&self) -> Vec<(Box<[u8]>, Arc<StoredResponse>)> {
        let taken = self
            .wanted
            .as_ref()
            .map(|wanted| std::mem::take(&mut *wanted.lock()));
        let found = taken.unwrap_or_default().into_iter().filter_map(|id| {
            let at = self.position_of_id(id.hash, id.serial)?;
            let found = self.indexed(at)?;
            Some((found.key().into(), Arc::clone(&found.response)))
        });
        found.collect()
    }

    /// Returns the slot of the response that was stored with this id.
    pub(super) fn position_of_id(&self, hash: u64, id: u64) -> Option<u32> {
        let mut found = self.index.iter_hash(hash).map(|found| found.at);
        found.find(|&at| self.slot(at).id == id)
    }

    /// Number of slots, empty ones included.
    pub(super) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, at: u32) -> &Slot {
        &self.slots[at as usize]
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot {
        &mut self.slots[at as usize]
    }
}

impl IndexedResponse {
    fn key(&self) -> &[u8] {
        self.block.get(..self.key_len as usize).unwrap_or_default()
    }

    /// Asks memory for all that a hit is about to send, so that its lines come at the same time and
    /// not one after the other. In a store that fits the processor's caches it costs next to nothing.
    fn fetch_lines(&self) {
        let lines = self.block.chunks(CACHE_LINE_BYTES);
        let firsts = lines.filter_map(<[u8]>::first);
        std::hint::black_box(firsts.fold(0, |seen, byte| seen | byte));
    }
}

impl Slot {
    /// Loads before stores: on a popular page the line stays shared between the cores.
    fn touch(&self, now: Millis, wanted: Option<&Mutex<Vec<StoredId>>>) {
        if !self.visited.load(Relaxed) {
            self.visited.store(true, Relaxed);
        }
        // A second is fine enough for `inactive`.
        let unused_for = self.unused_for(now);
        if unused_for >= 1000 {
            self.uses.count(unused_for);
            self.last_used.store(now.0, Relaxed);
            if let Some(wanted) = wanted {
                self.note_wanted(wanted);
            }
        }
    }

    /// Notes at some of its uses that it is wanted: at the first that is enough, and later where that was
    /// not heard.
    fn note_wanted(&self, wanted: &Mutex<Vec<StoredId>>) {
        let seconds = self.uses.seconds(0);
        if seconds >= WANTED_SECONDS && seconds.is_power_of_two() {
            let mut wanted = wanted.lock();
            if wanted.len() < MAX_WANTED {
                wanted.push(StoredId {
                    hash: self.hash,
                    serial: self.id,
                });
            }
        }
    }

    /// Milliseconds since the last use.
    fn unused_for(&self, now: Millis) -> u64 {
        now.0.saturating_sub(self.last_used.load(Relaxed))
    }

    fn gone(&self, response: &StoredResponse) -> RemovedResponse {
        RemovedResponse {
            size_bytes: self.size_bytes + self.forms_bytes,
            group: response.group(),
            id: self.id,
            labels: response.labels.clone(),
            stamp: response.stamp.0,
        }
    }
}

fn some(at: u32) -> Option<u32> {
    (at != NONE).then_some(at)
}
