//! One fetch under way and the table of all of them. The states are drawn in `collapse/LIFECYCLE.md`.
//!
//! A flight is shared by its leader, its followers and its readers. Everything that changes sits
//! behind one short lock that is never held while waiting; each change wakes all who wait, and each of
//! them looks for itself. Received bytes are kept until the response is complete, so that a reader may
//! be slower than the leader. Only a response that outgrows the bound for storing turns into a passing
//! one: then bytes leave as soon as every reader has them, and the leader waits for the slowest
//! ([`Flight::room`]), as long as it cares to ([`Flight::break_off_slowest`]).

use crate::fields::RequestFields;
use crate::guard::{FlightGuard, Guard, GuardAnswers, GuardQuestion};
use crate::held_lock::HeldLock;
use crate::key::{CacheKey, KeyRef};
use crate::purge::Stamp;
use crate::reason::Reason;
use crate::stored::{StoredHead, StoredResponse};
use crate::time::Millis;
use crate::vary::{VaryKey, VarySpec};
use bytes::Bytes;
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes that a passing response keeps for its slowest reader.
const WINDOW_BYTES: u64 = 1 << 20;

/// Bound on fetches in the table; beyond it requests go alone. Far above the capacity of any upstream.
const MAX_FLIGHTS: u64 = 65_536;

pub(crate) struct Flight {
    pub(crate) key: CacheKey,
    /// The address by which the response can be purged; empty: by none.
    pub(crate) address: Box<[u8]>,
    /// The purge clock when the fetch began.
    pub(crate) stamp: Stamp,
    /// The variant it is expected to fetch, where the key is known to vary.
    pub(crate) expected: Option<VaryKey>,
    pub(crate) guard: FlightGuard,
    state: Mutex<FlightState>,
    /// There is something new for followers and readers.
    pub(crate) changed: Notify,
    /// A reader of a passing response has caught up or left.
    space: Notify,
    /// The urgency of the most urgent follower so far; 0: there was none.
    urgency: AtomicU8,
    /// Wakes the leader when the urgency grows.
    awaited: Notify,
    /// Requests that wait: the one that leads, and followers.
    waiting: AtomicUsize,
    /// The last of them has left.
    deserted: Notify,
}

/// The urgency of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A page that a program reads.
    Crawl = 1,
    /// A part of a page.
    Part = 2,
    /// A page.
    Page = 3,
}

/// How far a flight has come.
enum Phase {
    /// No head yet.
    Waiting,
    /// Head there, body arriving.
    Streaming,
    /// Complete and stored.
    Stored(Arc<StoredResponse>),
    /// Complete, not stored.
    Finished(Reason),
    /// May not be shared.
    Refused(Reason),
    /// Broke off, with or without a head; the status that answers for it.
    Failed(u16),
    /// Cancelled before it was sent, since no request waited for it.
    LeftOut,
}

/// The status in place of a response if a fetch ended without one (RFC 9110 §15.6.3).
const BAD_GATEWAY: u16 = 502;

pub(crate) struct FlightState {
    phase: Phase,
    head: Option<Arc<StoredHead>>,
    chunks: VecDeque<Bytes>,
    /// The number of chunks that have left `chunks`.
    first_chunk: usize,
    /// Bytes in `chunks`.
    window_bytes: u64,
    /// Bytes received in all.
    received_bytes: u64,
    /// Bytes taken from the zone's budget.
    reserved_bytes: u64,
    /// Has outgrown the bound for storing.
    is_passing: bool,
    /// None: has left.
    readers: Vec<Option<ReaderPosition>>,
    /// None: waits in line for the upstream, which is no fault of the upstream's.
    last_progress: Option<Millis>,
    /// Not later than the upstream was sent the request.
    began: Millis,
    /// Whether the upstream may have been sent the request.
    is_sent: bool,
}

/// How far a reader has come.
#[derive(Clone, Copy, Default)]
struct ReaderPosition {
    chunk: usize,
    offset: u64,
}

/// The answer of a flight to a request that would follow it.
pub(crate) enum FlightAcceptance {
    Yes,
    /// It would, but has made no progress for too long.
    TooOld,
    /// It fetches another variant (of this, where known), or nothing that can be shared.
    OtherVariant(Option<Arc<VarySpec>>),
}

/// The state of a flight as a follower sees it.
pub(crate) enum FlightView {
    Nothing,
    Streaming(Arc<StoredHead>, usize),
    Complete(Arc<StoredResponse>),
    NotShareable(Reason),
    VaryMismatch,
    Failed(u16),
    LeftOut,
}

/// How a flight has ended, for a request that only waits for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightEnd {
    /// Its response may not be shared.
    Refused(Reason),
    /// In another way.
    Over,
}

/// The result of a reader's request for the next chunk.
pub(crate) enum NextChunk {
    Chunk(Bytes),
    Wait,
    End,
    Broken,
}

/// The effect of pushed bytes. `release`: bytes to give back to the budget.
pub(crate) enum Growth {
    Kept,
    Outgrew { why: Reason, release: u64 },
    Passing { release: u64 },
    Unwanted { release: u64 },
}

impl Flight {
    pub(crate) fn new(
        key: CacheKey,
        address: Box<[u8]>,
        stamp: Stamp,
        expected: Option<VaryKey>,
        now: Millis,
    ) -> Flight {
        Flight {
            key,
            address,
            stamp,
            expected,
            guard: FlightGuard::default(),
            state: Mutex::new(FlightState {
                phase: Phase::Waiting,
                head: None,
                chunks: VecDeque::new(),
                first_chunk: 0,
                window_bytes: 0,
                received_bytes: 0,
                reserved_bytes: 0,
                is_passing: false,
                readers: Vec::new(),
                last_progress: Some(now),
                began: now,
                is_sent: true,
            }),
            changed: Notify::new(),
            space: Notify::new(),
            urgency: AtomicU8::new(0),
            awaited: Notify::new(),
            waiting: AtomicUsize::new(0),
            deserted: Notify::new(),
        }
    }

    /// Returns whether a request with these fields may follow.
    pub(crate) fn accepts(
        &self,
        request: &dyn RequestFields,
        now: Millis,
        lock_age: Option<Duration>,
    ) -> FlightAcceptance {
        let state = self.state.lock();
        let vary = match &state.phase {
            Phase::Waiting => self.expected.as_ref(),
            Phase::Streaming if !state.is_passing && !state.needs_validation() => {
                state.head.as_ref().and_then(|head| head.vary.as_deref())
            }
            _ => return FlightAcceptance::OtherVariant(None),
        };
        match vary {
            Some(vary) if !vary.matches(request) => {
                FlightAcceptance::OtherVariant(Some(Arc::clone(vary.spec())))
            }
            _ if state.is_stuck(now, lock_age) => FlightAcceptance::TooOld,
            _ => FlightAcceptance::Yes,
        }
    }

    /// The fetch stands in line for the upstream (none), or was sent to it at this time.
    pub(crate) fn note_progress(&self, at: Option<Millis>) {
        let mut state = self.state.lock();
        state.last_progress = at;
        state.began = at.unwrap_or(state.began);
        state.is_sent = at.is_some();
    }

    /// Sets the guard, which decides from now on. The leader reports when the request is sent to the
    /// upstream.
    pub(crate) fn set_guard(&self, guard: Box<dyn Guard>) {
        self.guard.set(guard);
        self.state.lock().is_sent = false;
    }

    /// Will the upstream be sent the request, or was it sent, later than at this time?
    pub(crate) fn begins_after(&self, time: Millis) -> bool {
        let state = self.state.lock();
        !state.is_sent || state.began > time
    }

    /// Have the inputs of the response not changed since the upstream was sent the request?
    ///
    /// # Errors
    /// Its guard must be asked first.
    pub(crate) fn is_current(&self, answers: &GuardAnswers) -> Result<bool, GuardQuestion> {
        // One that is not sent yet will read what is there then.
        match self.state.lock().is_sent {
            true => self.guard.is_good(answers),
            false => Ok(true),
        }
    }

    /// Returns why nothing was shared, once it has ended.
    pub(crate) fn ending(&self) -> Option<FlightEnd> {
        match self.state.lock().phase {
            Phase::Waiting | Phase::Streaming => None,
            Phase::Refused(why) => Some(FlightEnd::Refused(why)),
            _ => Some(FlightEnd::Over),
        }
    }

    /// Returns when something last happened at the upstream; none while the fetch waits in line for it.
    pub(crate) fn last_progress(&self) -> Option<Millis> {
        self.state.lock().last_progress
    }

    /// A follower waits from now on.
    pub(crate) fn note_follower(&self, urgency: Urgency) {
        let urgency = urgency as u8;
        if self.urgency.fetch_max(urgency, Relaxed) < urgency {
            // Kept for a leader that does not listen yet.
            self.awaited.notify_one();
        }
    }

    pub(crate) fn urgency(&self) -> Option<Urgency> {
        match self.urgency.load(Relaxed) {
            0 => None,
            1 => Some(Urgency::Crawl),
            2 => Some(Urgency::Part),
            _ => Some(Urgency::Page),
        }
    }

    /// Returns once a follower waits for something more urgent than `known`. For the leader alone.
    pub(crate) async fn awaited_beyond(&self, known: Option<Urgency>) -> Urgency {
        loop {
            match self.urgency() {
                Some(urgency) if Some(urgency) > known => return urgency,
                _ => self.awaited.notified().await,
            }
        }
    }

    /// A request waits from now on, until [`Flight::leave`].
    pub(crate) fn join(&self) {
        self.waiting.fetch_add(1, AcqRel);
    }

    /// A request waits no longer.
    pub(crate) fn leave(&self) {
        if self.waiting.fetch_sub(1, AcqRel) == 1 {
            // Kept for a leader that does not listen yet.
            self.deserted.notify_one();
        }
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.waiting.load(Acquire) == 0
    }

    /// Returns once no request waits. For the leader alone.
    pub(crate) async fn deserted(&self) {
        while !self.is_deserted() {
            self.deserted.notified().await;
        }
    }

    /// Makes the head known.
    pub(crate) fn publish(&self, head: Arc<StoredHead>, now: Millis) {
        let mut state = self.state.lock();
        state.phase = Phase::Streaming;
        state.head = Some(head);
        state.last_progress = Some(now);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Adds bytes. `reserved`: they could be taken from the budget.
    pub(crate) fn push(&self, bytes: Bytes, reserved: bool, max_bytes: u64, now: Millis) -> Growth {
        let growth = self.state.lock().push(bytes, reserved, max_bytes, now);
        self.changed.notify_waiters();
        growth
    }

    /// Waits until a passing response may grow.
    pub(crate) async fn room(&self) {
        loop {
            // Made before looking: it hears of each change from here on (`notify_waiters`).
            let space = self.space.notified();
            if self.state.lock().has_room() {
                return;
            }
            space.await;
        }
    }

    /// Returns the received chunks, and their total length.
    pub(crate) fn received(&self) -> (u64, Vec<Bytes>) {
        let state = self.state.lock();
        (state.received_bytes, state.chunks.iter().cloned().collect())
    }

    /// The bytes that were taken from the budget, to be given back now.
    pub(crate) fn give_back(&self) -> u64 {
        std::mem::take(&mut self.state.lock().reserved_bytes)
    }

    /// Ends the flight and wakes all tasks that wait. Returns the bytes to release.
    pub(crate) fn end(&self, ending: impl FnOnce(&mut FlightState)) -> u64 {
        let mut state = self.state.lock();
        ending(&mut state);
        let release = std::mem::take(&mut state.reserved_bytes);
        drop(state);
        self.changed.notify_waiters();
        self.space.notify_waiters();
        release
    }

    /// Returns the state for a follower; a stream comes with the number of its reader.
    pub(crate) fn look(&self, matches: &dyn Fn(&VaryKey) -> bool) -> FlightView {
        let mut state = self.state.lock();
        let mismatch = |head: &StoredHead| {
            head.vary
                .as_ref()
                .is_some_and(|vary| !matches(vary.as_ref()))
        };
        match (&state.phase, &state.head) {
            // Each use of it asks the upstream (RFC 9111 §5.2.2.4).
            (Phase::Stored(response), _) if response.needs_validation() => {
                FlightView::NotShareable(Reason::NoCache)
            }
            (Phase::Streaming | Phase::Finished(_), Some(head)) if head.needs_validation() => {
                FlightView::NotShareable(Reason::NoCache)
            }
            (Phase::Stored(response), _) if mismatch(&response.head) => FlightView::VaryMismatch,
            (Phase::Stored(response), _) => FlightView::Complete(Arc::clone(response)),
            (Phase::Refused(why), _) => FlightView::NotShareable(*why),
            (Phase::Streaming | Phase::Finished(_), Some(head)) if mismatch(head) => {
                FlightView::VaryMismatch
            }
            (Phase::Streaming | Phase::Finished(_), Some(_)) if state.first_chunk > 0 => {
                FlightView::NotShareable(Reason::TooLarge)
            }
            (Phase::Streaming | Phase::Finished(_), Some(head)) => {
                let head = Arc::clone(head);
                FlightView::Streaming(head, state.add_reader())
            }
            (Phase::Failed(status), _) => FlightView::Failed(*status),
            (Phase::LeftOut, _) => FlightView::LeftOut,
            (Phase::Waiting, _) | (_, None) => FlightView::Nothing,
        }
    }

    /// Like [`Flight::look`], for a follower who has to know the tags of the response first, or what its guard says: both are
    /// known once it is stored. `is_outdated`: a purge that the follower came after names one of the
    /// tags.
    pub(crate) fn look_at_end(
        &self,
        matches: &dyn Fn(&VaryKey) -> bool,
        is_outdated: &dyn Fn(&StoredResponse) -> bool,
    ) -> FlightView {
        let state = self.state.lock();
        match &state.phase {
            Phase::Stored(response) if is_outdated(response) => return FlightView::LeftOut,
            Phase::Waiting | Phase::Streaming if state.is_passing => {
                return FlightView::NotShareable(Reason::TooLarge);
            }
            Phase::Waiting | Phase::Streaming => return FlightView::Nothing,
            // Its tags are unknown, and its guard will not say more.
            Phase::Finished(_) => return FlightView::LeftOut,
            Phase::Stored(_) | Phase::Refused(_) | Phase::Failed(_) | Phase::LeftOut => {}
        }
        drop(state);
        self.look(matches)
    }

    /// Readers for whom others wait who have everything get no more: those who are further
    /// behind than a passing response is kept.
    pub(crate) fn break_off_slowest(&self) {
        self.state.lock().break_off_slowest();
        self.changed.notify_waiters();
        self.space.notify_waiters();
    }

    pub(crate) fn add_reader(&self) -> usize {
        self.state.lock().add_reader()
    }

    pub(crate) fn remove_reader(&self, reader: usize) {
        let mut state = self.state.lock();
        if let Some(position) = state.readers.get_mut(reader) {
            *position = None;
        }
        if state.is_passing {
            state.trim();
            drop(state);
            self.space.notify_waiters();
        }
    }

    /// The next bytes for a reader.
    pub(crate) fn next(&self, reader: usize) -> NextChunk {
        let mut state = self.state.lock();
        let next = state.next(reader);
        let gave_room = state.is_passing && matches!(next, NextChunk::Chunk(_));
        drop(state);
        if gave_room {
            self.space.notify_waiters();
        }
        next
    }

    /// Returns why a response that was read to its end is not stored.
    pub(crate) fn why_not_stored(&self) -> Option<Reason> {
        match &self.state.lock().phase {
            Phase::Finished(why) => Some(*why),
            _ => None,
        }
    }

    pub(crate) fn stored(&self) -> Option<Arc<StoredResponse>> {
        match &self.state.lock().phase {
            Phase::Stored(response) => Some(Arc::clone(response)),
            _ => None,
        }
    }
}

impl FlightState {
    fn needs_validation(&self) -> bool {
        self.head
            .as_ref()
            .is_some_and(|head| head.needs_validation())
    }

    fn is_stuck(&self, now: Millis, lock_age: Option<Duration>) -> bool {
        match (self.last_progress, lock_age) {
            (Some(progress), Some(age)) => now.since(progress) >= age,
            _ => false,
        }
    }

    /// Complete and stored: readers go on from the stored body, the received bytes are free.
    pub(crate) fn complete(&mut self, response: Arc<StoredResponse>) {
        self.phase = Phase::Stored(response);
        self.chunks = VecDeque::new();
        self.window_bytes = 0;
    }

    /// Complete, but not stored.
    pub(crate) fn finish(&mut self, why: Reason) {
        self.phase = Phase::Finished(why);
    }

    /// May not be shared.
    pub(crate) fn refuse(&mut self, why: Reason) {
        self.phase = Phase::Refused(why);
    }

    /// Broke off.
    pub(crate) fn fail(&mut self) {
        self.fail_as(BAD_GATEWAY);
    }

    /// Broke off; `status` answers for it.
    pub(crate) fn fail_as(&mut self, status: u16) {
        self.phase = Phase::Failed(status);
    }

    /// Ends a fetch that was not sent, since no request waited for it.
    pub(crate) fn leave_out(&mut self) {
        self.phase = Phase::LeftOut;
    }

    fn push(&mut self, bytes: Bytes, reserved: bool, max_bytes: u64, now: Millis) -> Growth {
        let counted = bytes.len() as u64;
        let release = if reserved { counted } else { 0 };
        self.last_progress = Some(now);
        self.received_bytes += counted;
        self.window_bytes += counted;
        self.chunks.push_back(bytes);
        if self.is_passing {
            self.trim();
            return match self.readers.iter().any(Option::is_some) {
                true => Growth::Passing { release },
                false => Growth::Unwanted { release },
            };
        }
        let why = match reserved {
            false => Reason::NoRoom,
            true if self.received_bytes > max_bytes => Reason::TooLarge,
            true => {
                self.reserved_bytes += counted;
                return Growth::Kept;
            }
        };
        self.is_passing = true;
        self.trim();
        Growth::Outgrew {
            why,
            release: release + std::mem::take(&mut self.reserved_bytes),
        }
    }

    fn has_room(&self) -> bool {
        !self.is_passing
            || self.window_bytes <= WINDOW_BYTES
            || self.readers.iter().all(Option::is_none)
    }

    fn break_off_slowest(&mut self) {
        let end = self.first_chunk + self.chunks.len();
        let has_all = |position: &ReaderPosition| position.chunk == end;
        if !self.is_passing || !self.readers.iter().flatten().any(has_all) {
            return;
        }
        let mut kept_bytes = 0;
        let newest = self.chunks.iter().rev().take_while(|chunk| {
            kept_bytes += chunk.len() as u64;
            kept_bytes <= WINDOW_BYTES
        });
        let oldest_kept = end - newest.count();
        for reader in &mut self.readers {
            reader.take_if(|position| position.chunk < oldest_kept);
        }
        self.trim();
    }

    fn add_reader(&mut self) -> usize {
        self.readers.push(Some(ReaderPosition::default()));
        self.readers.len() - 1
    }

    fn next(&mut self, reader: usize) -> NextChunk {
        let Some(Some(position)) = self.readers.get_mut(reader) else {
            return NextChunk::Broken;
        };
        if let Phase::Stored(response) = &self.phase {
            let Some(chunk) = response.body.slice(position.offset..u64::MAX).next() else {
                return NextChunk::End;
            };
            position.offset += chunk.len() as u64;
            return NextChunk::Chunk(chunk);
        }
        let Some(at) = position.chunk.checked_sub(self.first_chunk) else {
            return NextChunk::Broken;
        };
        let Some(chunk) = self.chunks.get(at).cloned() else {
            return match self.phase {
                Phase::Waiting | Phase::Streaming => NextChunk::Wait,
                Phase::Stored(_) | Phase::Finished(_) => NextChunk::End,
                Phase::Refused(_) | Phase::Failed(_) | Phase::LeftOut => NextChunk::Broken,
            };
        };
        position.chunk += 1;
        position.offset += chunk.len() as u64;
        if self.is_passing && at == 0 {
            self.trim();
        }
        NextChunk::Chunk(chunk)
    }

    /// Lets go of chunks that every reader has.
    fn trim(&mut self) {
        let end = self.first_chunk + self.chunks.len();
        let slowest = self
            .readers
            .iter()
            .flatten()
            .map(|position| position.chunk)
            .min()
            .unwrap_or(end);
        while self.first_chunk < slowest {
            let Some(chunk) = self.chunks.pop_front() else {
                break;
            };
            self.first_chunk += 1;
            self.window_bytes -= chunk.len() as u64;
        }
    }
}

/// All fetches under way that can be followed, in shards by key.
pub(crate) struct Flights {
    shards: Box<[Mutex<HashTable<Arc<Flight>>>]>,
    count: AtomicU64,
}

/// One shard, locked.
pub(crate) struct Table<'a> {
    flights: MutexGuard<'a, HashTable<Arc<Flight>>>,
    count: &'a AtomicU64,
    _held: HeldLock,
}

impl Flights {
    /// `shards` is a power of two.
    pub(crate) fn new(shards: usize) -> Flights {
        Flights {
            shards: (0..shards.max(1)).map(|_| Mutex::default()).collect(),
            count: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(crate) fn shard(&self, key: &KeyRef<'_>) -> Table<'_> {
        let at = (key.hash() >> 32) as usize & (self.shards.len() - 1);
        Table {
            flights: self.shards[at].lock(),
            count: &self.count,
            _held: HeldLock::begin(),
        }
    }

    /// Gives back the memory of tables beyond the flights that there are.
    pub(crate) fn shrink(&self) {
        for shard in &self.shards {
            shard.lock().shrink_to_fit(|flight| flight.key.hash());
        }
    }

    /// Takes a flight out, if it is still there.
    pub(crate) fn remove(&self, flight: &Arc<Flight>) {
        self.shard(&flight.key.as_ref()).remove(flight);
    }
}

impl Table<'_> {
    /// The flights of a key.
    pub(crate) fn of<'a>(&'a self, key: &'a KeyRef<'a>) -> impl Iterator<Item = &'a Arc<Flight>> {
        self.flights
            .iter_hash(key.hash())
            .filter(|flight| flight.key.bytes() == key.bytes())
    }

    /// Adds a flight. False: there are too many.
    pub(crate) fn add(&mut self, flight: &Arc<Flight>) -> bool {
        if self.count.fetch_add(1, Relaxed) >= MAX_FLIGHTS {
            self.count.fetch_sub(1, Relaxed);
            return false;
        }
        let hash = flight.key.hash();
        self.flights
            .insert_unique(hash, Arc::clone(flight), |flight| flight.key.hash());
        true
    }

    pub(crate) fn remove(&mut self, flight: &Arc<Flight>) {
        let found = self.flights.find_entry(flight.key.hash(), |candidate| {
            Arc::ptr_eq(candidate, flight)
        });
        if let Ok(entry) = found {
            entry.remove();
            self.count.fetch_sub(1, Relaxed);
        }
    }
}

/// Shows those who hold a flight by its key.
macro_rules! debug_by_key {
    ($($type:ty => $flight:ident $(. $more:ident)?),*) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let key = &self.$flight$(.$more)?.key;
                f.debug_struct(stringify!($type)).field("key", key).finish_non_exhaustive()
            }
        }
    )*};
}
pub(crate) use debug_by_key;
