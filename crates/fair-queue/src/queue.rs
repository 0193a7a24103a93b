//! The lines, and the turns in them.
//!
//! Each line has a virtual time: the start tag of the request that was last taken from it. A turn that
//! had nothing to do comes in at the virtual time, or at its own finish tag if it is ahead. So a turn that
//! was idle waits for at most one request of every other turn of its line: each of them is behind it once
//! it was served. A turn is at most [`MAX_LEAD`] ahead of its line, so none is shut out.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;

use crate::Millis;
use crate::class::{Class, LINE_NAMES, LINES, MAX_PASSED_OVER};
use crate::clients::{RequestFacts, Turn, TurnKind};
use crate::decaying::DecayingSum;
use crate::flow::{Flow, MAX_COST, Place, QueuedRequest, TurnUse};
use crate::php_uses::{MINUTE, PhpUse, PhpUses, UseKind, UsedTime, largest};
use crate::slots::Slots;

/// Turns that a line knows at most. Further ones share [`SHARED_TURNS`].
const MAX_TURNS: usize = 16_384;
const SHARED_TURNS: u64 = 1024;
/// How far a turn may be ahead of the virtual time of its line, in milliseconds of PHP.
pub(crate) const MAX_LEAD: u64 = 30_000;
/// A turn has used little if it has used less than this share of all PHP time lately, or less
/// than [`LITTLE`] milliseconds.
const LITTLE_SHARE: f64 = 1.0 / 8.0;
const LITTLE: f64 = 1000.0;
/// Turns of a line that are looked at for one that has used little.
const LOOKS_FOR_LIGHT: usize = 64;

/// The lines.
#[derive(Debug)]
pub struct FairQueue<T> {
    lines: [Line<T>; LINES],
    /// The line and the turn of each waiting ticket.
    tickets: HashMap<u64, (usize, u64)>,
    next_ticket: u64,
    in_flight: usize,
    /// The time of all requests under way until `counted_at`, each for its own, in milliseconds.
    in_flight_ms: u64,
    counted_at: Millis,
    /// The requests under way of turns that have used much.
    heavy: usize,
    /// The mean cost of a request, in milliseconds.
    mean_cost: f64,
    used: DecayingSum,
    uses: PhpUses,
    seed: RandomState,
    is_fair: bool,
}

#[derive(Debug)]
struct Line<T> {
    virtual_time: u64,
    turns: HashMap<u64, Flow<T>>,
    /// The turns with a request that waits.
    order: BTreeSet<Place>,
    waiting: usize,
    in_flight: usize,
    /// Slots that went to lines before this one while requests waited in it.
    passed_over: usize,
    /// Milliseconds of PHP that its requests have used.
    php_ms: u64,
    used: UsedTime,
    swept_at: Millis,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            virtual_time: 0,
            turns: HashMap::new(),
            order: BTreeSet::new(),
            waiting: 0,
            in_flight: 0,
            passed_over: 0,
            php_ms: 0,
            used: UsedTime::default(),
            swept_at: 0,
        }
    }
}

/// A request under way, with the facts that [`FairQueue::end`] needs.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its turn is charged when it ends"]
pub struct StartedRequest {
    line: usize,
    turn: u64,
    tag: u64,
    expected: u64,
    is_heavy: bool,
    request: RequestFacts,
}

/// How far a search through the lines has come.
#[derive(Debug, Default)]
pub struct Search {
    from: [Option<Place>; LINES],
    looks: [usize; LINES],
    is_over: [bool; LINES],
}

impl Search {
    /// No request of the line of `class` can be served now.
    pub fn end_line(&mut self, class: Class) {
        self.is_over[class.line()] = true;
    }

    /// Looks from the front again, after a request was taken.
    pub fn begin_again(&mut self) {
        *self = Self {
            is_over: self.is_over,
            ..Self::default()
        };
    }
}

impl StartedRequest {
    /// The expected cost of the request.
    #[must_use]
    pub fn expected(&self) -> Millis {
        self.expected
    }
}

impl<T> FairQueue<T> {
    /// Empty lines. `is_fair`: those in a line are served by turns, and otherwise in the order of arrival.
    #[must_use]
    pub fn new(is_fair: bool) -> Self {
        Self {
            lines: Default::default(),
            tickets: HashMap::new(),
            next_ticket: 0,
            in_flight: 0,
            in_flight_ms: 0,
            counted_at: 0,
            heavy: 0,
            mean_cost: 0.0,
            used: DecayingSum::default(),
            uses: PhpUses::default(),
            seed: RandomState::new(),
            is_fair,
        }
    }

    /// Does no request wait?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// How many wait in the line of `class`.
    #[must_use]
    pub fn len_of(&self, class: Class) -> usize {
        self.lines[class.line()].waiting
    }

    /// How many of them are of this turn.
    #[must_use]
    pub fn len_of_turn(&self, class: Class, turn: &Turn) -> usize {
        let flow = self.lines[class.line()].turns.get(&turn.id);
        flow.map_or(0, |flow| flow.waiters.len())
    }

    /// The requests that wait in the line of `class`.
    pub fn waiting_in(&self, class: Class) -> impl Iterator<Item = &T> {
        let turns = self.lines[class.line()].turns.values();
        turns.flat_map(|flow| flow.waiters.iter().map(|it| &it.waiter))
    }

    /// How many wait in the lines of visitors.
    #[must_use]
    pub fn visitors(&self) -> usize {
        let lines = &self.lines[..=Class::Fragment.line()];
        lines.iter().map(|line| line.waiting).sum()
    }

    /// Puts a request at the end of its turn; its ticket.
    pub fn join(&mut self, class: Class, turn: &Turn, waiter: T, now: Millis) -> u64 {
        if !self.is_fair {
            return self.join_alone(class, RequestFacts::default(), waiter, now);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.put(ticket, class, turn, waiter, now);
        ticket
    }

    /// Like [`Self::join`] with a turn of its own: for a request that has waited before, or for a queue
    /// that is not fair.
    pub fn join_alone(
        &mut self,
        class: Class,
        request: RequestFacts,
        waiter: T,
        now: Millis,
    ) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let turn = Turn {
            id: self.seed.hash_one(("alone", ticket)),
            kind: TurnKind::Other,
            is_known: true,
            request,
            ..Turn::default()
        };
        self.put(ticket, class, &turn, waiter, now);
        ticket
    }

    fn put(&mut self, ticket: u64, class: Class, turn: &Turn, waiter: T, now: Millis) {
        let at = class.line();
        let id = self.known(at, turn, now);
        let line = &mut self.lines[at];
        if line.waiting == 0 {
            line.passed_over = 0;
        }
        line.waiting += 1;
        if !self.is_fair {
            // All have the same tag, and so the earlier ticket goes first.
            line.virtual_time = 0;
        }
        if let Some(flow) = line.turns.get_mut(&id) {
            let rank = turn.rank;
            let place = flow.waiters.partition_point(|it| it.rank <= rank);
            let queued = QueuedRequest {
                ticket,
                rank,
                request: turn.request.clone(),
                waiter,
            };
            flow.waiters.insert(place, queued);
        }
        self.tickets.insert(ticket, (at, id));
        line.place(id, now);
    }

    /// The number of a turn in a line; of a shared one where there are too many.
    fn known(&mut self, at: usize, turn: &Turn, now: Millis) -> u64 {
        let line = &mut self.lines[at];
        if let Some(flow) = line.turns.get_mut(&turn.id) {
            flow.is_newcomer = !turn.is_known;
            flow.latest.clone_from(&turn.request.latest);
            return turn.id;
        }
        if line.turns.len() >= MAX_TURNS && now.saturating_sub(line.swept_at) >= 1000 {
            line.swept_at = now;
            let time = line.virtual_time;
            line.turns.retain(|_, flow| !flow.is_idle(time, now));
        }
        let (id, kind) = match line.turns.len() < MAX_TURNS {
            true => (turn.id, turn.kind.clone()),
            false => {
                let shared = self.seed.hash_one(turn.id) % SHARED_TURNS;
                (self.seed.hash_one(("shared", shared)), TurnKind::Other)
            }
        };
        let new = || Flow::new(kind, turn);
        line.turns.entry(id).or_insert_with(new);
        id
    }

    /// Takes a request out of its line without serving it.
    pub fn leave(&mut self, ticket: u64, now: Millis) -> Option<T> {
        Some(self.remove(ticket, now)?.waiter)
    }

    fn remove(&mut self, ticket: u64, now: Millis) -> Option<QueuedRequest<T>> {
        let (at, id) = self.tickets.remove(&ticket)?;
        let line = &mut self.lines[at];
        let flow = line.turns.get_mut(&id)?;
        let position = flow.waiters.iter().position(|it| it.ticket == ticket)?;
        let queued = flow.waiters.remove(position)?;
        line.waiting -= 1;
        if position == 0 {
            line.place(id, now);
        }
        self.forget_lone(at, id, now);
        Some(queued)
    }

    /// Takes a request whose turn has come.
    pub fn take(&mut self, ticket: u64, now: Millis) -> Option<(T, StartedRequest)> {
        let (at, id) = self.tickets.remove(&ticket)?;
        let (expected, is_heavy) = self.before_start(at, id, now);
        let line = &mut self.lines[at];
        let flow = line.turns.get_mut(&id)?;
        let position = flow.waiters.iter().position(|it| it.ticket == ticket)?;
        let queued = flow.waiters.remove(position)?;
        let expected = expected.max(queued.request.least_cost.min(MAX_COST));
        line.waiting -= 1;
        let tag = flow.place.map_or(line.virtual_time, |place| place.tag);
        line.begin(id, (tag, tag), expected, now);
        self.count_time(now);
        self.in_flight += 1;
        self.heavy += usize::from(is_heavy);
        self.pass_over(at);
        let started = StartedRequest {
            line: at,
            turn: id,
            tag,
            expected,
            is_heavy,
            request: queued.request,
        };
        Some((queued.waiter, started))
    }

    /// A request begins that did not wait.
    pub fn begin(&mut self, class: Class, turn: &Turn, now: Millis) -> StartedRequest {
        let at = class.line();
        let mut started = StartedRequest {
            line: at,
            turn: turn.id,
            tag: 0,
            expected: turn.request.least_cost.clamp(1, MAX_COST),
            is_heavy: false,
            request: turn.request.clone(),
        };
        if self.is_fair {
            started.turn = self.known(at, turn, now);
            self.begin_turn(&mut started, now);
        } else {
            // No turn waits for another.
            started.expected = started.expected.max(self.mean_cost as u64).min(MAX_COST);
            self.lines[at].in_flight += 1;
        }
        self.count_time(now);
        self.in_flight += 1;
        self.heavy += usize::from(started.is_heavy);
        self.pass_over(at);
        started
    }

    /// The turn of a request that did not wait begins.
    fn begin_turn(&mut self, started: &mut StartedRequest, now: Millis) {
        let (at, id) = (started.line, started.turn);
        let (expected, is_heavy) = self.before_start(at, id, now);
        let expected = expected.max(started.expected);
        let line = &mut self.lines[at];
        let finish = line.turns.get(&id).map_or(0, |flow| flow.finish);
        let tag = line.virtual_time.max(finish);
        // A request taken out of order beside other waiting ones does not move the virtual time of the
        // line.
        let reached = match line.waiting {
            0 => tag,
            _ => line.virtual_time,
        };
        line.begin(id, (tag, reached), expected, now);
        (started.tag, started.expected, started.is_heavy) = (tag, expected, is_heavy);
    }

    /// Returns the expected cost of a turn's next request, and whether the turn has used much.
    fn before_start(&self, at: usize, id: u64, now: Millis) -> (u64, bool) {
        let flow = self.lines[at].turns.get(&id);
        flow.map_or((1, false), |flow| {
            (
                flow.expected_cost(self.mean_cost),
                !self.is_light(at, flow, now),
            )
        })
    }

    /// A slot went to the line at `taken`.
    fn pass_over(&mut self, taken: usize) {
        self.lines[taken].passed_over = 0;
        for line in &mut self.lines[taken + 1..] {
            line.passed_over += usize::from(line.waiting > 0);
        }
    }

    /// A request has ended; `took` is in milliseconds.
    pub fn end(&mut self, started: StartedRequest, took: Millis, now: Millis) {
        let cost = took.clamp(1, MAX_COST);
        self.count_time(now);
        let line = &mut self.lines[started.line];
        line.in_flight = line.in_flight.saturating_sub(1);
        line.php_ms = line.php_ms.saturating_add(took);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.heavy = self.heavy.saturating_sub(usize::from(started.is_heavy));
        self.mean_cost = match self.mean_cost > 0.0 {
            true => self.mean_cost * 0.95 + cost as f64 * 0.05,
            false => cost as f64,
        };
        self.used.add(cost as f64, MINUTE, now);
        if self.is_fair {
            line.used.add(cost as f64, now);
            self.uses.note(&started.request, cost, now);
        }
        line.settle(&started, cost, now);
        self.forget_lone(started.line, started.turn, now);
    }

    /// Forgets a turn that was one request's alone, once it has ended.
    fn forget_lone(&mut self, at: usize, id: u64, now: Millis) {
        let line = &mut self.lines[at];
        let is_over = line.turns.get(&id).is_some_and(|flow| {
            let is_lone = matches!(flow.kind, TurnKind::Other);
            flow.waiters.is_empty()
                && flow.in_flight == 0
                && (is_lone || flow.is_idle(line.virtual_time, now))
        });
        if is_over {
            line.turns.remove(&id);
        }
    }

    /// Moves a request to the line of `class`, as a turn of its own; its new ticket.
    pub fn raise(
        &mut self,
        ticket: u64,
        class: Class,
        change: impl FnOnce(T) -> T,
        now: Millis,
    ) -> Option<u64> {
        let queued = self.remove(ticket, now)?;
        Some(self.join_alone(class, queued.request, change(queued.waiter), now))
    }

    /// The next request to look at: of the first line, unless one was passed over for long enough, and in
    /// a line of the turn that has the lowest tag. Turns that have used much are left out if the free
    /// places are not for them.
    pub fn next(&self, slots: Slots, search: &mut Search, now: Millis) -> Option<(u64, &T)> {
        if slots.limit.is_some() && self.in_flight >= slots.for_light() {
            return None;
        }
        let only_light = slots.limit.is_some() && !self.has_place_for_heavy(slots);
        let due = (1..LINES).find(|&at| self.lines[at].passed_over >= MAX_PASSED_OVER);
        for at in due.into_iter().chain(0..LINES) {
            while !search.is_over[at] {
                let Some(place) = self.lines[at].after(search.from[at]) else {
                    search.is_over[at] = true;
                    break;
                };
                search.from[at] = Some(place);
                search.looks[at] += 1;
                if only_light && search.looks[at] > LOOKS_FOR_LIGHT || self.is_shut(at, slots) {
                    search.is_over[at] = true;
                    break;
                }
                let Some(flow) = self.lines[at].turns.get(&place.turn) else {
                    continue;
                };
                if only_light && !self.is_light(at, flow, now) {
                    continue;
                }
                if let Some(first) = flow.waiters.front() {
                    return Some((first.ticket, &first.waiter));
                }
            }
        }
        None
    }

    /// Whether a request that did not wait may begin. Servers with room are not asked for here.
    #[must_use]
    pub fn has_place(&self, class: Class, turn: &Turn, slots: Slots, now: Millis) -> bool {
        let at = class.line();
        if slots.limit.is_none() {
            return true;
        }
        if self.is_shut(at, slots) {
            return false;
        }
        let flow = self.lines[at].turns.get(&turn.id);
        let is_light = class.is_visitors() && flow.is_none_or(|it| self.is_light(at, it, now));
        self.in_flight < slots.for_light() && (is_light || self.has_place_for_heavy(slots))
    }

    /// Whether a request of a turn that has used much may begin.
    fn has_place_for_heavy(&self, slots: Slots) -> bool {
        let light = self.in_flight.saturating_sub(self.heavy);
        self.heavy < slots.for_heavy(light)
    }

    /// Crawlers have their share at most while visitors wait.
    fn is_shut(&self, at: usize, slots: Slots) -> bool {
        at == Class::Crawler.line()
            && slots.limit.is_some()
            && self.visitors() > 0
            && self.lines[at].in_flight >= slots.for_crawlers()
    }

    /// Whether the turn has nothing under way, and used little lately.
    fn is_light(&self, at: usize, flow: &Flow<T>, now: Millis) -> bool {
        let little = (self.used.value(MINUTE, now) * LITTLE_SHARE).max(LITTLE);
        at <= Class::Fragment.line() && flow.in_flight == 0 && flow.used(now) <= little
    }

    /// Would a request of this turn find a place that is kept for those who have used little?
    #[must_use]
    pub fn has_used_little(&self, class: Class, turn: &Turn, now: Millis) -> bool {
        let at = class.line();
        let flow = self.lines[at].turns.get(&turn.id);
        class.is_visitors() && flow.is_none_or(|flow| self.is_light(at, flow, now))
    }

    /// Requests under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds the time since the last change to that of the requests under way.
    fn count_time(&mut self, now: Millis) {
        let passed = now.saturating_sub(self.counted_at);
        self.in_flight_ms += passed.saturating_mul(self.in_flight as u64);
        self.counted_at = self.counted_at.max(now);
    }

    /// Returns the time of all requests until now, each for its own, in milliseconds.
    pub fn in_flight_ms(&mut self, now: Millis) -> u64 {
        self.count_time(now);
        self.in_flight_ms
    }

    /// Whether a request of this line may begin at all, if its turn has used much.
    #[cfg(test)]
    pub(crate) fn is_open(&self, class: Class, slots: Slots) -> bool {
        self.has_place_for_heavy(slots) && !self.is_shut(class.line(), slots)
    }

    /// Returns for each line: waiting requests, requests under way, milliseconds of PHP used.
    #[must_use]
    pub fn by_line(&self) -> [(usize, usize, u64); LINES] {
        self.lines
            .each_ref()
            .map(|line| (line.waiting, line.in_flight, line.php_ms))
    }

    /// How long a request of `class` would wait, in milliseconds, if it had to wait for all before it
    /// and `at_once` are served at a time.
    #[must_use]
    pub fn expected_wait(&self, class: Class, at_once: usize) -> Millis {
        let lines = &self.lines[..=class.line()];
        let before: usize = lines.iter().map(|line| line.waiting).sum();
        ((before + 1) as f64 * self.mean_cost.max(1.0) / at_once.max(1) as f64) as Millis
    }

    /// The turns that have used most in the last minute, `most` of them.
    #[must_use]
    pub fn top(&self, most: usize, now: Millis) -> Vec<TurnUse> {
        let mut all: Vec<TurnUse> = Vec::new();
        if most == 0 {
            return all;
        }
        for (at, line) in self.lines.iter().enumerate() {
            all.extend(line.turns.values().map(|flow| flow.describe(at, now)));
        }
        all.retain(|turn| turn.minute_ms >= 1.0 || turn.waiting > 0 || turn.in_flight > 0);
        all.sort_by(|one, other| other.minute_ms.total_cmp(&one.minute_ms));
        all.truncate(most);
        all
    }

    /// Returns the use of PHP by class, network, program and kind of page, `most` of each.
    #[must_use]
    pub fn uses(&self, most: usize, now: Millis) -> Vec<PhpUse> {
        let lines = LINE_NAMES.iter().zip(&self.lines);
        let lines = lines
            .map(|(name, line)| line.used.describe(UseKind::Class, (*name).into(), now))
            .collect();
        let mut all = largest(lines, most);
        all.extend(self.uses.top(most, now));
        all
    }
}

impl<T> Line<T> {
    /// The first turn behind `place`.
    fn after(&self, place: Option<Place>) -> Option<Place> {
        match place {
            None => self.order.first().copied(),
            Some(place) => {
                let rest = self.order.range((Bound::Excluded(place), Bound::Unbounded));
                rest.copied().next()
            }
        }
    }

    /// Puts a turn where its first waiting request belongs, or nowhere.
    fn place(&mut self, id: u64, now: Millis) {
        let Some(flow) = self.turns.get_mut(&id) else {
            return;
        };
        if let Some(place) = flow.place.take() {
            self.order.remove(&place);
        }
        if let Some(first) = flow.waiters.front() {
            let place = Place {
                tag: flow.finish.max(self.virtual_time),
                is_newcomer: flow.is_newcomer,
                used: flow.used(now) as u64,
                ticket: first.ticket,
                turn: id,
            };
            flow.place = Some(place);
            self.order.insert(place);
        }
    }

    /// A request of a turn begins, at its start tag; the line is then at least as far as `reached`.
    fn begin(&mut self, id: u64, (tag, reached): (u64, u64), expected: u64, now: Millis) {
        self.virtual_time = self.virtual_time.max(reached);
        self.in_flight += 1;
        if let Some(flow) = self.turns.get_mut(&id) {
            flow.in_flight += 1;
            flow.finish = (tag + expected).min(self.virtual_time + MAX_LEAD);
        }
        self.place(id, now);
    }

    /// Corrects the turn by the real cost of a request.
    fn settle(&mut self, started: &StartedRequest, cost: u64, now: Millis) {
        let Some(flow) = self.turns.get_mut(&started.turn) else {
            return;
        };
        flow.in_flight = flow.in_flight.saturating_sub(1);
        flow.note_cost(cost, now);
        let cost = cost.max(started.request.least_cost.min(MAX_COST));
        let settled = (flow.finish + cost).saturating_sub(started.expected);
        let settled = settled.min(self.virtual_time + MAX_LEAD);
        // Never back to where it was served: the bound of waiting rests on that.
        flow.finish = settled.max(started.tag + 1);
        if flow.place.is_some() {
            self.place(started.turn, now);
        }
    }
}
