//! Encoded forms: the body of a stored response in a content coding (RFC 9110 §8.4), made once and
//! kept beside it.
//!
//! The caller that finds a form absent gets the one [`Claim`] to make it, and makes it elsewhere:
//! this crate compresses nothing and knows a coding by number only. The form is attached to its
//! response, counted in the zone's budget and removed together with the response. A response that
//! is freshened by a 304 or purged softly keeps its body, and with it the forms.
//!
//! ```text
//!   absent ── claim ──► being made ──┬── attach ──► ready
//!                          ▲         ├── useless ─► not worth it, remembered
//!                          └ dropped ┘
//! ```

use crate::body::Body;
use crate::memory_file::{FileOwner, Room};
use crate::size_class::allocated;
use parking_lot::RwLock;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::watch;

/// A content coding with all that its bytes depend on (level, window), as the server numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(pub u16);

/// Forms of one response. A site has two or three codings; a reload or another location may add
/// another level of each. Further forms are not kept.
const MAX_FORMS: usize = 8;

/// The bytes that the budget counts for a form beside its body: entries of the list, which grows
/// from four.
const FORM_BYTES: usize = 4 * size_of::<(Encoding, Form)>();

/// The state of a stored response's form in a coding: [`encoded`](crate::StoredResponse::encoded).
#[derive(Debug)]
pub enum EncodedLookup {
    /// Send this.
    Ready(Body),
    /// Encoding makes it no smaller: send the body as it is.
    Useless,
    /// Another task is making it.
    Busy(PendingForm),
    /// Neither made nor being made: make it, then [`Claim::attach`] it.
    Absent(Claim),
    /// No form is kept of this response: it is one session's own, or has too many forms.
    NotKept,
}

#[derive(Clone, Debug)]
enum Form {
    Making(PendingForm),
    Ready(Body),
    Useless,
}

/// A form that is being made.
#[derive(Clone, Debug)]
pub struct PendingForm(watch::Receiver<()>);

impl PendingForm {
    /// Waits until its maker is done, or has given up: then look again.
    pub async fn over(mut self) {
        // Nothing is ever sent; the channel closes with the claim.
        while self.0.changed().await.is_ok() {}
    }
}

/// The encoded forms of one body, shared by the stored responses that share the body.
#[derive(Debug, Default)]
pub struct EncodedForms {
    /// The zone that stores the response; unset until it is stored.
    home: OnceLock<Home>,
    forms: RwLock<Vec<(Encoding, Form)>>,
}

#[derive(Debug)]
struct Home {
    zone: Weak<dyn FormsHome>,
    hash: u64,
}

/// The zone that a response is stored in, as seen by the memory kept beside the response.
pub(crate) trait FormsHome: fmt::Debug + Send + Sync {
    /// Keeps an encoded form of the response with these `forms`: `put` makes it known, under the
    /// lock of the response's shard, so that it is counted wherever the response goes from there.
    /// True: it is counted. False: the response has left, and the form lasts as long as those who
    /// hold it. None: there is no room, and `put` was not called.
    fn attach(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: &mut dyn FnMut(),
    ) -> Option<bool>;

    /// Counts memory that is kept beside a stored body. Calls `put` with whether the response is
    /// still stored, under the lock of its shard; if it is not, nothing stays counted. `None`: there
    /// is no room, and `put` was not called.
    fn count_beside(
        &self,
        hash: u64,
        forms: &Arc<EncodedForms>,
        bytes: u64,
        put: &mut dyn FnMut(bool),
    ) -> Option<bool>;

    /// Takes a part of the memory that files may use.
    fn take_file_room(&self, bytes: u64) -> Option<Room>;
}

impl EncodedForms {
    /// Bytes of memory that the list takes while it is empty; each form is counted when it comes.
    pub(crate) fn empty_size_bytes() -> usize {
        allocated(size_of::<EncodedForms>() + 16)
    }

    /// Says where the response is found.
    pub(crate) fn set_home(&self, zone: Weak<dyn FormsHome>, hash: u64) {
        self.home.get_or_init(|| Home { zone, hash });
    }

    /// Returns whether the response is stored, or was.
    pub(crate) fn has_home(&self) -> bool {
        self.home.get().is_some()
    }

    /// The zone that the response is stored in, and the hash of its key.
    fn home(&self) -> Option<(Arc<dyn FormsHome>, u64)> {
        let home = self.home.get()?;
        Some((home.zone.upgrade()?, home.hash))
    }

    /// Returns the finished forms with their sizes; no size for a coding that saves nothing.
    pub(crate) fn ready(&self) -> Vec<(Encoding, Option<u64>)> {
        let forms = self.forms.read();
        let ready = forms.iter().filter_map(|(encoding, form)| match form {
            Form::Making(_) => None,
            Form::Ready(body) => Some((*encoding, Some(body.len()))),
            Form::Useless => Some((*encoding, None)),
        });
        ready.collect()
    }

    /// Drops the finished forms; forms being made go on.
    pub(crate) fn clear(&self) {
        let mut forms = self.forms.write();
        forms.retain(|(_, form)| matches!(form, Form::Making(_)));
    }

    /// The body in `encoding`, or the right to make it.
    #[inline]
    pub(crate) fn look_or_claim(self: &Arc<Self>, encoding: Encoding) -> EncodedLookup {
        match self.look(encoding) {
            Some(found) => found,
            None => self.claim(encoding),
        }
    }

    #[inline]
    fn look(&self, encoding: Encoding) -> Option<EncodedLookup> {
        let forms = self.forms.read();
        let (_, form) = forms.iter().find(|(other, _)| *other == encoding)?;
        Some(match form {
            Form::Making(making) => EncodedLookup::Busy(making.clone()),
            Form::Ready(body) => EncodedLookup::Ready(body.clone()),
            Form::Useless => EncodedLookup::Useless,
        })
    }

    #[cold]
    fn claim(self: &Arc<Self>, encoding: Encoding) -> EncodedLookup {
        let (ends, making) = watch::channel(());
        {
            let mut forms = self.forms.write();
            // Another task may have been faster.
            let is_there = forms.iter().any(|(other, _)| *other == encoding);
            if !is_there && forms.len() >= MAX_FORMS {
                return EncodedLookup::NotKept;
            }
            if !is_there {
                forms.push((encoding, Form::Making(PendingForm(making))));
                drop(forms);
                return EncodedLookup::Absent(Claim {
                    forms: Arc::clone(self),
                    encoding,
                    is_finished: false,
                    ends,
                });
            }
        }
        self.look(encoding).unwrap_or(EncodedLookup::NotKept)
    }

    /// Puts `form` where it was being made. Called with the response's shard locked.
    fn put(&self, encoding: Encoding, form: Form) {
        let mut forms = self.forms.write();
        if let Some(entry) = forms.iter_mut().find(|(other, _)| *other == encoding) {
            entry.1 = form;
        }
    }

    fn give_up(&self, encoding: Encoding) {
        let mut forms = self.forms.write();
        forms.retain(|(other, form)| *other != encoding || !matches!(form, Form::Making(_)));
    }
}

impl FileOwner for EncodedForms {
    fn take_room(&self, bytes: u64) -> Option<Room> {
        let (zone, _) = self.home()?;
        zone.take_file_room(bytes)
    }

    fn count_file(self: Arc<Self>, bytes: u64, put: &mut dyn FnMut(bool)) {
        if let Some((zone, hash)) = self.home() {
            zone.count_beside(hash, &self, bytes, put);
        }
    }
}

/// The right to make one encoded form. Dropping it leaves the form absent.
#[derive(Debug)]
pub struct Claim {
    forms: Arc<EncodedForms>,
    encoding: Encoding,
    is_finished: bool,
    /// Dropped once the form is in its place, which wakes the tasks that wait for it.
    ends: watch::Sender<()>,
}

impl Claim {
    /// Returns a future for tasks that wait for the form.
    #[must_use]
    pub fn making(&self) -> PendingForm {
        PendingForm(self.ends.subscribe())
    }

    /// Keeps the form that was made. True: it is counted in the zone's budget and stays with the
    /// response. False: the response has left the zone, and only the tasks that wait for the form
    /// get it; or the budget has no room, and the form is dropped.
    pub fn attach(self, body: Body) -> bool {
        let bytes = body.size_bytes() + FORM_BYTES;
        if let Some(slot) = body.file_slot() {
            let owner = Arc::downgrade(&self.forms);
            slot.set_owner(owner);
        }
        self.finish(bytes, Form::Ready(body))
    }

    /// Remembers that the form would be no smaller than the body.
    pub fn useless(self) {
        self.finish(FORM_BYTES, Form::Useless);
    }

    fn finish(mut self, bytes: usize, form: Form) -> bool {
        let Some((zone, hash)) = self.forms.home() else {
            return false;
        };
        let mut form = Some(form);
        let mut put = || {
            if let Some(form) = form.take() {
                self.forms.put(self.encoding, form);
            }
        };
        let kept = zone.attach(hash, &self.forms, bytes as u64, &mut put);
        self.is_finished = kept.is_some();
        kept == Some(true)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_finished {
            self.forms.give_up(self.encoding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NO_FIELDS, Random, T0, key, response, storable};
    use crate::{
        FoundResponse, JoinRequest, Leader, PurgeMode, PurgeTarget, Reason, StoredResponse,
        Urgency, Zone, ZoneConfig,
    };
    use bytes::Bytes;
    use std::time::Duration;

    const BR: Encoding = Encoding(1);
    const GZIP: Encoding = Encoding(2);

    fn zone(memory_budget_bytes: u64) -> Arc<Zone> {
        Zone::new(ZoneConfig {
            memory_budget_bytes,
            shards: 4,
            ..ZoneConfig::default()
        })
    }

    fn put(zone: &Zone, name: &str, len: usize) -> Result<Arc<StoredResponse>, Reason> {
        let stored = response(60, len, T0, zone.stamp());
        zone.insert(&key(name).as_ref(), stored, T0)
    }

    fn find(zone: &Zone, name: &str) -> Option<Arc<StoredResponse>> {
        match zone.find(&key(name).as_ref(), NO_FIELDS, T0) {
            FoundResponse::Fresh(stored) => Some(stored),
            FoundResponse::NotFresh(found) => found.stale().map(|(stored, _)| Arc::clone(stored)),
        }
    }

    fn claim(stored: &StoredResponse, encoding: Encoding) -> Option<Claim> {
        match stored.encoded(encoding) {
            EncodedLookup::Absent(claim) => Some(claim),
            _ => None,
        }
    }

    fn body(len: usize) -> Body {
        Body::pack(&[Bytes::from(vec![b'z'; len])])
    }

    fn ready_len(stored: &StoredResponse, encoding: Encoding) -> Option<u64> {
        match stored.encoded(encoding) {
            EncodedLookup::Ready(body) => Some(body.len()),
            _ => None,
        }
    }

    /// Nothing is counted that is not there: an emptied zone is as small as a new one.
    fn assert_empties(zone: &Zone, budget: u64) {
        zone.purge(PurgeTarget::Prefix(b""), PurgeMode::Hard, T0);
        let untouched = self::zone(budget).stats().used_bytes;
        assert_eq!(zone.stats().used_bytes, untouched);
    }

    #[test]
    fn a_form_has_one_maker_and_is_counted() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        let before = zone.stats().used_bytes;
        let made = claim(&stored, BR).expect("the first may");
        assert!(matches!(stored.encoded(BR), EncodedLookup::Busy(_)));
        assert!(matches!(stored.encoded(GZIP), EncodedLookup::Absent(_)));
        assert!(made.attach(body(3000)));
        let found = find(&zone, "a").expect("stored");
        assert_eq!(ready_len(&found, BR), Some(3000));
        let grown = zone.stats().used_bytes - before;
        assert_eq!(grown, (body(3000).size_bytes() + FORM_BYTES) as u64);
        assert_eq!(zone.stats().encoded, 1);
        assert_empties(&zone, 1 << 20);
    }

    #[test]
    fn a_dropped_claim_lets_the_next_try_and_wakes_those_who_wait() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        let first = claim(&stored, BR).expect("the first may");
        let EncodedLookup::Busy(making) = stored.encoded(BR) else {
            panic!("somebody is making it");
        };
        drop(first);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(making.over());
        assert!(claim(&stored, BR).is_some());
    }

    #[test]
    fn what_is_useless_is_remembered() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        claim(&stored, BR).expect("the first may").useless();
        assert!(matches!(stored.encoded(BR), EncodedLookup::Useless));
        assert_empties(&zone, 1 << 20);
    }

    #[test]
    fn a_replaced_response_takes_its_forms_along() {
        let zone = zone(1 << 20);
        let old = put(&zone, "a", 10_000).expect("stored");
        assert!(claim(&old, BR).expect("the first may").attach(body(3000)));
        let late = claim(&old, GZIP).expect("the first may");
        let new = put(&zone, "a", 10_000).expect("stored");
        assert!(matches!(new.encoded(BR), EncodedLookup::Absent(_)));
        assert!(!late.attach(body(4000)), "its response has left");
        assert_eq!(ready_len(&old, GZIP), Some(4000), "for those who wait");
        assert!(matches!(new.encoded(GZIP), EncodedLookup::Absent(_)));
        assert_empties(&zone, 1 << 20);
    }

    fn refresh(zone: &Arc<Zone>, name: &str) -> Option<Leader> {
        let named = key(name);
        // Is no use of it, so that it may be evicted.
        let FoundResponse::NotFresh(found) = zone.find_again(&named.as_ref(), NO_FIELDS, T0) else {
            return None;
        };
        let request = JoinRequest {
            key: named.as_ref(),
            fields: NO_FIELDS,
            now: T0,
            lock_age: None,
            group: None,
            address: b"",
            came_at: zone.stamp(),
            may_have_tags: false,
            urgency: Urgency::Page,
            expects: None,
        };
        zone.refresh(&request, &found)
    }

    fn answer_304(leader: Leader) -> Result<Arc<StoredResponse>, Reason> {
        leader.freshen(
            &[],
            None,
            &storable(&["Cache-Control: max-age=60"], &[]),
            T0,
        )
    }

    #[test]
    fn a_response_freshened_after_it_had_left_has_no_forms() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        assert!(
            claim(&stored, BR)
                .expect("the first may")
                .attach(body(3000))
        );
        let named = key("a");
        zone.purge(PurgeTarget::Key(named.as_ref()), PurgeMode::Soft, T0);
        let leader = refresh(&zone, "a").expect("a leader");
        for other in 0..200 {
            put(&zone, &format!("other {other}"), 20_000).expect("stored");
        }
        assert!(find(&zone, "a").is_none(), "it was evicted");
        let fresh = answer_304(leader).expect("freshened");
        assert!(matches!(fresh.encoded(BR), EncodedLookup::Absent(_)));
        assert_empties(&zone, 1 << 20);
    }

    #[test]
    fn a_freshened_or_softly_purged_response_keeps_its_forms() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        assert!(
            claim(&stored, BR)
                .expect("the first may")
                .attach(body(3000))
        );
        let late = claim(&stored, GZIP).expect("the first may");
        let used = zone.stats().used_bytes;
        let named = key("a");
        zone.purge(PurgeTarget::Key(named.as_ref()), PurgeMode::Soft, T0);
        let stale = find(&zone, "a").expect("stored");
        assert_eq!(ready_len(&stale, BR), Some(3000));
        let fresh = answer_304(refresh(&zone, "a").expect("a leader")).expect("freshened");
        assert_eq!(ready_len(&fresh, BR), Some(3000));
        assert_eq!(zone.stats().used_bytes, used);
        assert!(late.attach(body(4000)), "it is the same body");
        assert_eq!(ready_len(&fresh, GZIP), Some(4000));
        assert_empties(&zone, 1 << 20);
    }

    #[test]
    fn only_so_many_forms_are_kept() {
        let zone = zone(1 << 20);
        let stored = put(&zone, "a", 10_000).expect("stored");
        for level in 0..MAX_FORMS as u16 {
            let claim = claim(&stored, Encoding(level)).expect("room");
            assert!(claim.attach(body(100)));
        }
        assert!(matches!(
            stored.encoded(Encoding(99)),
            EncodedLookup::NotKept
        ));
        assert_empties(&zone, 1 << 20);
    }

    /// Asks for a body until it has a file, if it may have one.
    fn ask_often(body: &Body) {
        for _ in 0..16 {
            let _ = body.file();
        }
    }

    fn ask_for_file_of(zone: &Zone, name: &str) {
        if let Some(stored) = find(zone, name) {
            ask_often(&stored.body);
        }
    }

    fn file_bytes(body: &Body) -> u64 {
        body.file_slot().map_or(0, |slot| slot.file_bytes())
    }

    /// Returns the bytes of everything found in the zone: responses, their forms and their files.
    fn there(zone: &Zone) -> u64 {
        let names = (0..12).map(|name| format!("k{name}"));
        let stored = names.filter_map(|name| Some((find(zone, &name)?, key(&name))));
        let bytes = stored.map(|(stored, key)| {
            let forms = (0..3).filter_map(|encoding| match stored.encoded(Encoding(encoding)) {
                EncodedLookup::Ready(body) => Some(body.size_bytes() as u64 + file_bytes(&body)),
                _ => None,
            });
            let own = stored.size_bytes(key.bytes().len()) as u64;
            own + file_bytes(&stored.body) + forms.sum::<u64>()
        });
        bytes.sum()
    }

    /// A zone and its tasks under way, driven by a seed.
    struct Run {
        zone: Arc<Zone>,
        random: Random,
        claims: Vec<Claim>,
        leaders: Vec<Leader>,
    }

    impl Run {
        /// One step: a response comes, is freshened, purged or asked for, or a form of it ends.
        fn step(&mut self) {
            let Self { zone, random, .. } = self;
            let name = format!("k{}", random.below(12));
            match random.below(12) {
                10 => ask_for_file_of(zone, &name),
                11 => {
                    let encoding = Encoding(random.below(3) as u16);
                    let stored = find(zone, &name);
                    if let Some(EncodedLookup::Ready(form)) = stored.map(|it| it.encoded(encoding))
                    {
                        ask_often(&form);
                    }
                }
                0 | 1 => drop(put(zone, &name, random.below(40_000))),
                2..=4 => {
                    let encoding = Encoding(random.below(3) as u16);
                    let stored = find(zone, &name);
                    let claim = stored.and_then(|stored| claim(&stored, encoding));
                    self.claims.extend(claim);
                }
                5 | 6 if !self.claims.is_empty() => self.end_a_claim(),
                7 => self.leaders.extend(refresh(zone, &name)),
                8 if !self.leaders.is_empty() => {
                    let leader = self.leaders.swap_remove(random.below(self.leaders.len()));
                    drop(answer_304(leader));
                }
                _ => {
                    let named = key(&name);
                    let modes = [PurgeMode::Soft, PurgeMode::Soft, PurgeMode::Hard];
                    let mode = modes[random.below(3)];
                    zone.purge(PurgeTarget::Key(named.as_ref()), mode, T0);
                }
            }
        }

        fn end_a_claim(&mut self) {
            let random = &mut self.random;
            let claim = self.claims.swap_remove(random.below(self.claims.len()));
            match random.below(5) {
                0 => drop(claim),
                1 => claim.useless(),
                _ => drop(claim.attach(body(random.below(60_000)))),
            }
        }
    }

    /// Responses come, are freshened, purged and evicted while forms and files are made of them.
    #[test]
    fn forms_are_counted_whatever_happens_to_their_responses() {
        const BUDGET: u64 = 400_000;
        let mut most_in_files = 0;
        for seed in 0..200 {
            let mut run = Run {
                zone: zone(BUDGET),
                random: Random(seed),
                claims: Vec::new(),
                leaders: Vec::new(),
            };
            for _ in 0..300 {
                run.step();
                let used = run.zone.stats().used_bytes;
                assert!(used <= BUDGET, "seed {seed}");
                assert!(
                    there(&run.zone) <= used,
                    "seed {seed}: some are not counted"
                );
                most_in_files = most_in_files.max(run.zone.stats().file_bytes);
            }
            let zone = run.zone;
            drop((run.leaders, run.claims));
            assert_empties(&zone, BUDGET);
            assert_eq!(zone.stats().file_bytes, 0);
        }
        assert!(most_in_files > 0, "some got a file");
    }

    /// Runs one of several threads on a zone that they share.
    fn make_forms(zone: &Arc<Zone>, budget: u64, mut random: Random) {
        for _ in 0..2000 {
            let name = format!("k{}", random.below(40));
            match random.below(4) {
                0 => drop(put(zone, &name, random.below(20_000))),
                1 => drop(refresh(zone, &name).map(answer_304)),
                2 => ask_for_file_of(zone, &name),
                _ => {
                    let stored = find(zone, &name);
                    let claim = stored.and_then(|stored| claim(&stored, BR));
                    let _ = claim.map(|claim| claim.attach(body(random.below(10_000))));
                }
            }
            assert!(zone.stats().used_bytes <= budget);
        }
    }

    #[test]
    fn the_budget_holds_while_threads_make_forms() {
        const BUDGET: u64 = 600_000;
        let zone = zone(BUDGET);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let zone = &zone;
                scope.spawn(move || make_forms(zone, BUDGET, Random(thread)));
            }
        });
        assert!(zone.stats().encoded > 0 && zone.stats().evicted > 0);
        zone.sweep(T0.plus(Duration::from_secs(1 << 20)), usize::MAX);
        assert_empties(&zone, BUDGET);
    }
}
