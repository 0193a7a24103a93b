//! The records of all pages, and the visitors' own requests that are under way.
//!
//! Bounded: a shard has a young and an old half. A record that is asked for moves to the young half; when that
//! is full, the old half is dropped. A forgotten record costs a comparison; whose answer was another one is in doubt
//! still ([`doubts`]), in a table of its own.

mod active;
mod doubts;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use shared_request::{LeftOut, Trait, TraitSet};

use self::active::{Active, LOST_AFTER};
use self::doubts::{Doubt, Doubts, OF_PERSON};
use crate::halves::Halves;
use crate::own_run::{OwnEnd, OwnRun, Part, TrialOrder};
use crate::page::{
    AnswerOutline, PageFindings, PageRecord, SessionStanding, Standing, named, short,
};
use crate::page_name::PageName;
use crate::shape::Shape;
use crate::trial::{Trial, TrialVerdict, may_be_keyed};
use crate::zone_budgets::ZoneBudgets;

const SHARDS: usize = 16;
/// Pages in half a shard: together some 64,000 pages, in at most 20 MB.
const MAX_PAGES: usize = 2048;
/// Shapes in half a shard.
const MAX_SHAPES: usize = 64;
/// Own requests for one page that are compared at a time; others wait for them.
const MAX_OWN_RUNS: usize = 4;
/// Pages with own requests under way, in a shard.
const MAX_ACTIVE: usize = 256;
/// Requests that are set aside for a trial of a session.
const SESSION_REQUESTS: u32 = 8;
/// For these milliseconds no trial of a page begins after one for which there was no room.
const UNTRIED_MILLIS: u64 = 500;

/// Numbers of a table since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Visitors' own requests whose answers were compared.
    pub own_runs: u64,
    /// Pairs of answers that were the same.
    pub agreed: u64,
    pub trials: u64,
    /// Requests that trials made.
    pub trial_requests: u64,
    /// Trials that found that something matters.
    pub found: u64,
}

#[derive(Debug, Default)]
struct AtomicCounts {
    own_runs: AtomicU64,
    agreed: AtomicU64,
    trials: AtomicU64,
    trial_requests: AtomicU64,
    found: AtomicU64,
}

/// The evidence about all pages.
#[derive(Debug, Default)]
pub struct Evidence {
    shards: [Mutex<Shard>; SHARDS],
    shapes: [Mutex<Halves<Shape>>; SHARDS],
    budgets: ZoneBudgets,
    counts: AtomicCounts,
    runs: AtomicU64,
    /// Rises when something that was shared no longer is.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    records: Halves<PageRecord>,
    active: HashMap<u64, Active>,
    doubts: Doubts,
}

impl Evidence {
    fn shard(&self, page: PageName) -> &Mutex<Shard> {
        &self.shards[(page.page >> 32) as usize % SHARDS]
    }

    fn shape(&self, page: PageName) -> &Mutex<Halves<Shape>> {
        &self.shapes[(page.shape >> 32) as usize % SHARDS]
    }

    /// Reads something of a page's record; its default without a record.
    fn of_record<T: Default>(&self, page: PageName, read: impl FnOnce(&PageRecord) -> T) -> T {
        let shard = self.shard(page).lock();
        shard.records.get(page.page).map(read).unwrap_or_default()
    }

    /// The traits of a page that are in its key.
    #[must_use]
    pub fn keyed(&self, page: PageName) -> TraitSet {
        let keyed = self
            .shard(page)
            .lock()
            .records
            .get(page.page)
            .map(|record| record.keyed);
        let shapes = self.shape(page).lock();
        let Some(shape) = shapes.get(page.shape) else {
            return keyed.unwrap_or_default();
        };
        let all = Trait::ALL.into_iter().filter(|it| shape.is_keyed(*it));
        all.fold(keyed.unwrap_or_default(), TraitSet::with)
    }

    /// Returns whether a visitor may be shown the shared answer, at `now` in milliseconds.
    #[must_use]
    pub fn standing(&self, page: PageName, left_out: &LeftOut, now: u64) -> Standing {
        if left_out.is_nothing() {
            return Standing::Shared;
        }
        let shapes = self.shape(page).lock();
        let mut shard = self.shard(page).lock();
        let Shard {
            records, doubts, ..
        } = &mut *shard;
        let Some(record) = records.get(page.page) else {
            return Standing::Unproven;
        };
        let standing = record.standing(left_out, shapes.get(page.shape), seconds(now));
        let (visitor, shared) = ((page, left_out), record.shared_answer);
        match standing == Standing::Shared && doubts.has(visitor, shared, seconds(now)) {
            true => Standing::Unproven,
            false => standing,
        }
    }

    /// Rises when a page is no longer shared with visitors with whom it was.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The part of a visitor whose standing was not [`Standing::Shared`]. `visitor` stands for who asks:
    /// a second request of the same one does not make the shared request begin. `has_copy`: there is a
    /// stored response.
    pub fn begin(
        &self,
        page: PageName,
        left_out: &LeftOut,
        (visitor, has_copy): (u64, bool),
        now: u64,
    ) -> Part {
        let shapes = self.shape(page).lock();
        let mut shard = self.shard(page).lock();
        let Shard {
            records,
            active,
            doubts,
        } = &mut *shard;
        let record = records.entry(page.page, MAX_PAGES);
        let shape = shapes.get(page.shape);
        let is_in_doubt = doubts.has((page, left_out), record.shared_answer, seconds(now));
        match record.standing(left_out, shape, seconds(now)) {
            Standing::Shared if !is_in_doubt => return Part::Shared,
            Standing::Depends(_) | Standing::Unexplained => {
                return Part::ALONE;
            }
            Standing::Shared | Standing::Unproven | Standing::NotShareable => {}
        }
        if active.len() >= MAX_ACTIVE {
            active.retain(|_, active| !active.is_idle(now));
            if active.len() >= MAX_ACTIVE && !active.contains_key(&page.page) {
                // The visitors whose answers wait are in doubt, and are compared when they come again.
                active.retain(|_, active| !active.only_waits());
            }
            if active.len() >= MAX_ACTIVE && !active.contains_key(&page.page) {
                return Part::ALONE;
            }
        }
        let under_way = active.entry(page.page).or_default();
        under_way.touched = now;
        under_way
            .own
            .retain(|(_, since, _)| now.saturating_sub(*since) < LOST_AFTER);
        // What others are given says nothing of a visitor whose answer was another one.
        let unproven = (!is_in_doubt).then(|| record.unproven(left_out, shape));
        let trial = under_way.trial.as_ref();
        let trial = trial.filter(|(since, _)| now.saturating_sub(*since) < LOST_AFTER);
        if trial.is_some_and(|(_, of)| covers([of].into_iter(), left_out, unproven)) {
            // The shared request soon shows whether this visitor differs. Many who come at once have not one
            // run each.
            return Part::Wait { shared: false };
        }
        let is_beside_trial = trial.is_some() || now < under_way.untried_until;
        if is_beside_trial || record.is_refused {
            // Each visitor has an answer of their own, until the trial has ended or may begin, or one could be stored
            // again. It is compared all the same: it may be newer than the copy.
            let run = OwnRun {
                is_beside_trial,
                ..self.own_run((page, left_out), visitor, is_in_doubt)
            };
            return Part::Own {
                compared: Some(run),
                shared: false,
            };
        }
        let begins_session = record.session == SessionStanding::Begun;
        let is_first = under_way.own.is_empty() && under_way.waiting.is_empty();
        let is_covered = !is_first && covers(under_way.compared(), left_out, unproven);
        let is_other = under_way.own.iter().all(|(_, _, who)| *who != visitor);
        let begins_shared = !is_first
            && !has_copy
            && !begins_session
            && !under_way.is_shared_under_way(now)
            && (!under_way.waiting.is_empty() || is_other);
        if begins_shared {
            under_way.shared_since = Some(now);
        }
        // An answer may wait for a copy of another variant, which no visitor asks for.
        let is_coming = !under_way.own.is_empty() || under_way.is_shared_under_way(now);
        under_way.is_awaited |= !is_first && is_other;
        if is_covered && is_coming || under_way.own.len() >= MAX_OWN_RUNS {
            return Part::Wait {
                shared: begins_shared,
            };
        }
        let run = self.own_run((page, left_out), visitor, is_in_doubt);
        under_way.own.push((run, now, visitor));
        Part::Own {
            compared: Some(run),
            shared: begins_shared,
        }
    }

    /// The own request of a visitor who has waited in vain for others' answers. `visitor` stands for who asks.
    pub fn late_run(&self, page: PageName, left_out: &LeftOut, visitor: u64, now: u64) -> OwnRun {
        let of = (page, left_out);
        let mut shard = self.shard(page).lock();
        let record = shard.records.get(page.page);
        let shared = record.map_or(0, |record| record.shared_answer);
        let is_in_doubt = shard.doubts.has(of, shared, seconds(now));
        drop(shard);
        OwnRun {
            is_beside_trial: true,
            ..self.own_run(of, visitor, is_in_doubt)
        }
    }

    fn own_run(
        &self,
        (page, left_out): (PageName, &LeftOut),
        visitor: u64,
        is_in_doubt: bool,
    ) -> OwnRun {
        OwnRun {
            page,
            left_out: *left_out,
            number: self.runs.fetch_add(1, Ordering::Relaxed),
            who: visitor as u32,
            is_coded: false,
            is_beside_trial: false,
            is_in_doubt,
        }
    }

    /// Should this visitor, with whom the page is shared, be compared all the same? Seldom true, for values
    /// that were not compared on this page.
    pub fn takes_audit(&self, page: PageName, left_out: &LeftOut, now: u64) -> Option<OwnRun> {
        let mut shard = self.shard(page).lock();
        let record = shard.records.entry(page.page, MAX_PAGES);
        let is_due = record.is_known() && record.is_audit_due(left_out, seconds(now));
        // One that cannot be paid stays due.
        if !is_due || !self.budgets.take((page, false), 1, now) {
            return None;
        }
        record.note_audit(left_out, seconds(now));
        drop(shard);
        // It may be asked by many: the address tells them apart.
        let visitor = u64::from(left_out.value(Trait::Network));
        Some(self.own_run((page, left_out), visitor, false))
    }

    /// A visitor's own request has ended. `copy`: the digest of the stored response that the visitor could
    /// have been shown, if there is one. Gives the trial that is to be made, if any.
    pub fn own_ended(
        &self,
        run: &OwnRun,
        end: OwnEnd,
        copy: Option<u64>,
        now: u64,
    ) -> Option<TrialOrder> {
        self.counts.own_runs.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(run.page).lock();
        let Shard {
            records,
            active,
            doubts,
        } = &mut *shard;
        let visitor = (run.page, &run.left_out);
        let record = records.entry(run.page.page, MAX_PAGES);
        let under_way = active.entry(run.page.page).or_default();
        under_way.touched = now;
        under_way.own.retain(|(it, _, _)| it.number != run.number);
        let begins_session = match (end, record.session) {
            (_, SessionStanding::Indifferent) => false,
            (OwnEnd::OfSession(_), _) | (OwnEnd::Storable(_), SessionStanding::Begun) => true,
            // It may write into the session that the visitor has.
            (OwnEnd::Storable(_), _) => run.left_out.value(Trait::Session) != 0,
            _ => false,
        };
        if let Some(copy) = copy {
            record.shared_answer = short(copy);
        }
        let mut agrees = false;
        let mut order = None;
        match (end, copy) {
            (OwnEnd::Storable(_) | OwnEnd::OfSession(_), _) if begins_session => {
                if record.session == SessionStanding::None {
                    self.epoch.fetch_add(1, Ordering::Release);
                }
                self.earn(run, true, now);
                self.budgets.note_sessions(run.page);
                if record.begin_session(run.who, under_way.is_awaited, seconds(now)) {
                    order = self.order(run, (true, None), under_way, now);
                }
            }
            (OwnEnd::Storable(own) | OwnEnd::OfSession(own), Some(copy)) if own == copy => {
                record.agree(&run.left_out, seconds(now));
                doubts.forget(visitor);
                agrees = true;
            }
            (OwnEnd::Storable(own) | OwnEnd::OfSession(own), Some(_)) => {
                record.is_refused = false;
                self.doubt(record, doubts, (visitor, Doubt::Differs), now);
                let of_session = record.session == SessionStanding::Indifferent;
                self.earn(run, of_session, now);
                let own = (!run.is_coded).then_some(own);
                order = self.order(run, (of_session, own), under_way, now);
            }
            (OwnEnd::Storable(own) | OwnEnd::OfSession(own), None) => {
                record.note_shared(seconds(now));
                // Others may share the page before this answer is compared, if it ever is.
                self.doubt(
                    record,
                    doubts,
                    (visitor, Doubt::NotCompared(short(own))),
                    now,
                );
                if under_way.waiting.len() < MAX_OWN_RUNS {
                    under_way.waiting.push((run.left_out, own));
                }
            }
            // It may be this visitor alone who is refused: visitors who are shown the copy go on being shown it.
            (OwnEnd::NotStorable | OwnEnd::Personal, Some(_)) => {
                self.doubt(record, doubts, (visitor, Doubt::Refused), now);
                let of_session = record.session == SessionStanding::Indifferent;
                order = self.order(run, (of_session, None), under_way, now);
            }
            (OwnEnd::NotStorable, None) => {
                under_way.waiting.clear();
                self.doubt(record, doubts, (visitor, Doubt::Refused), now);
                self.refuse_record(record, now);
            }
            // Guests who see it are guests still, if it leaves their sessions as they were.
            (OwnEnd::Personal, None) => {
                under_way.waiting.clear();
                let is_known = record.is_known_to_leave(seconds(now));
                if !is_known && record.begin_session(run.who, false, seconds(now)) {
                    self.earn(run, true, now);
                    order = self.order(run, (true, None), under_way, now);
                }
                self.refuse_record(record, now);
            }
            // Visitors do not wait for one another where the application fails.
            (OwnEnd::Failed, _) => {
                let _ = record.is_known() || record.refuse(seconds(now));
            }
            (OwnEnd::Left, _) => {}
        }
        if under_way.is_idle(now) {
            active.remove(&run.page.page);
        }
        drop(shard);
        if agrees {
            self.note_shape(run.page, &run.left_out);
        }
        order
    }

    /// The shared request begins, for any reason.
    pub fn shared_began(&self, page: PageName, now: u64) {
        let mut shard = self.shard(page).lock();
        if let Some(under_way) = shard.active.get_mut(&page.page) {
            under_way.shared_since = Some(now);
            under_way.touched = now;
        }
    }

    /// Are there answers that wait to be compared with the shared one?
    #[must_use]
    pub fn awaits_shared(&self, page: PageName) -> bool {
        let shard = self.shard(page).lock();
        shard
            .active
            .get(&page.page)
            .is_some_and(|under_way| !under_way.waiting.is_empty())
    }

    /// The shared request has ended with an answer of this digest; `None`: it could not be stored, and that is
    /// due to the page. An answer of a visitor's own that differs is forgotten: the next one is compared with
    /// the response stored now. Returns whether one differs.
    pub fn shared_ended(&self, page: PageName, end: Option<u64>, now: u64) -> bool {
        let mut shard = self.shard(page).lock();
        let Shard {
            records,
            active,
            doubts,
        } = &mut *shard;
        let waiting = match active.get_mut(&page.page) {
            Some(under_way) => {
                under_way.shared_since = None;
                under_way.touched = now;
                std::mem::take(&mut under_way.waiting)
            }
            None => Vec::new(),
        };
        let mut agreed = Vec::new();
        let mut differs = false;
        match end {
            None => {
                self.refuse_record(records.entry(page.page, MAX_PAGES), now);
            }
            Some(shared) => {
                let record = records.entry(page.page, MAX_PAGES);
                (record.is_refused, record.shared_answer) = (false, short(shared));
                for (left_out, own) in waiting {
                    if own == shared {
                        record.agree(&left_out, seconds(now));
                        doubts.forget((page, &left_out));
                        agreed.push(left_out);
                    } else {
                        // By another link, too.
                        self.doubt(record, doubts, ((page, &left_out), Doubt::Differs), now);
                        differs = true;
                    }
                }
            }
        }
        if active
            .get(&page.page)
            .is_some_and(|under_way| under_way.is_idle(now))
        {
            active.remove(&page.page);
        }
        drop(shard);
        for left_out in &agreed {
            self.note_shape(page, left_out);
        }
        differs
    }

    /// The shared request was answered with a session, and it has not been seen that the page does not depend on it.
    pub fn shared_begins_session(&self, page: PageName, now: u64) {
        self.shared_failed(page, now);
        let mut shard = self.shard(page).lock();
        let record = shard.records.entry(page.page, MAX_PAGES);
        if record.session == SessionStanding::None {
            record.begin_session(0, false, seconds(now));
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Does the page leave a visitor's session as it was, by the evidence so far? `answer`: the outline of the
    /// visitor's answer, once it is there.
    #[must_use]
    pub fn leaves_session(&self, page: PageName, answer: Option<AnswerOutline>, now: u64) -> bool {
        self.of_record(page, |record| record.leaves_session(answer, seconds(now)))
    }

    /// The answers of this page could not be stored lately.
    #[must_use]
    pub fn is_refused(&self, page: PageName) -> bool {
        self.of_record(page, |record| record.is_refused)
    }

    /// Is the page shared with anybody, as far as was seen?
    #[must_use]
    pub fn is_shared(&self, page: PageName) -> bool {
        self.of_record(page, |record| record.is_agreed)
    }

    /// Returns the evidence about the session that the page begins.
    #[must_use]
    pub fn session(&self, page: PageName) -> SessionStanding {
        self.of_record(page, |record| record.session)
    }

    /// Do visitors wait for a trial of the page that begins a session, or for the answer that such a trial follows?
    #[must_use]
    pub fn awaits_session_trial(&self, page: PageName) -> bool {
        let shard = self.shard(page).lock();
        let begins = shard.records.get(page.page);
        let begins = begins.is_some_and(|record| record.session == SessionStanding::Begun);
        let under_way = shard.active.get(&page.page);
        let may_end = |it: &Active| match it.trial {
            Some(_) => begins,
            None => it.is_awaited && !it.own.is_empty(),
        };
        under_way.is_some_and(may_end)
    }

    /// A page that did not depend on its session may do so now: answers have another form.
    pub fn doubt_session(&self, page: PageName, now: u64) {
        let mut shard = self.shard(page).lock();
        let record = shard.records.entry(page.page, MAX_PAGES);
        self.refuse_record(record, now);
        record.put_off_session(seconds(now));
    }

    /// Ends a shared request that gave no evidence about the page.
    pub fn shared_failed(&self, page: PageName, now: u64) {
        let mut shard = self.shard(page).lock();
        if let Some(under_way) = shard.active.get_mut(&page.page) {
            under_way.shared_since = None;
            if under_way.is_idle(now) {
                shard.active.remove(&page.page);
            }
        }
    }

    /// A visitor's own request pays for trials to come.
    fn earn(&self, run: &OwnRun, of_session: bool, now: u64) {
        if !run.is_beside_trial {
            self.budgets.earn((run.page, of_session), now);
        }
    }

    /// A trial, where the budget of the zone has room for one.
    fn order(
        &self,
        run: &OwnRun,
        (of_session, own): (bool, Option<u64>),
        under_way: &mut Active,
        now: u64,
    ) -> Option<TrialOrder> {
        let OwnRun {
            page,
            left_out,
            who,
            ..
        } = *run;
        let traits = left_out.traits();
        if run.is_beside_trial || under_way.trial.is_some() || now < under_way.untried_until {
            return None;
        }
        if !self
            .budgets
            .take((page, of_session), set_aside(traits, of_session), now)
        {
            under_way.untried_until = now + UNTRIED_MILLIS;
            return None;
        }
        under_way.trial = Some((now, left_out));
        let is_awaited = std::mem::take(&mut under_way.is_awaited);
        self.counts.trials.fetch_add(1, Ordering::Relaxed);
        Some(TrialOrder {
            page,
            left_out,
            traits,
            of_session,
            is_awaited,
            who,
            own,
        })
    }

    /// Has a page of the zone begun a session, so that others will?
    #[must_use]
    pub fn has_sessions(&self, page: PageName) -> bool {
        self.budgets.has_sessions(page)
    }

    /// A trial under way found that guests without a session can share the page: they need not wait for its end.
    pub fn share_with_new_guests(&self, order: &TrialOrder, now: u64) {
        let mut shard = self.shard(order.page).lock();
        shard.doubts.forget((order.page, &order.left_out));
        let record = shard.records.entry(order.page.page, MAX_PAGES);
        record.share_with_new(&order.left_out, seconds(now));
    }

    /// A trial has ended, after `requests` requests. `None`: it was broken off.
    pub fn trial_ended(
        &self,
        order: &TrialOrder,
        verdict: Option<TrialVerdict>,
        requests: u32,
        now: u64,
    ) {
        let counts = &self.counts;
        counts
            .trial_requests
            .fetch_add(u64::from(requests), Ordering::Relaxed);
        let set_aside = set_aside(order.traits, order.of_session);
        self.budgets
            .with((order.page, order.of_session), now, |budget| {
                budget.give_back(set_aside.saturating_sub(requests));
                budget.owe(requests.saturating_sub(set_aside));
            });
        let mut shard = self.shard(order.page).lock();
        let Shard {
            records,
            active,
            doubts,
        } = &mut *shard;
        let record = records.entry(order.page.page, MAX_PAGES);
        let left_out = &order.left_out;
        match verdict {
            Some(TrialVerdict::Agree { .. }) => doubts.forget((order.page, left_out)),
            // The doubt remains, should the record be dropped: it is of these values, not of the person.
            Some(TrialVerdict::Depends(found)) if !OF_PERSON.iter().any(|it| found.has(*it)) => {
                doubts.forget_person((order.page, left_out));
            }
            _ => {}
        }
        let mut found = TraitSet::NONE;
        match verdict {
            Some(TrialVerdict::Agree { each_time }) => {
                record.differs_each_time = each_time;
                record.agree(left_out, seconds(now));
                if order.of_session {
                    record.note_indifferent();
                }
            }
            Some(TrialVerdict::Depends(traits)) => {
                if order.of_session {
                    record.note_indifferent();
                }
                found = traits;
                record.differ(left_out, traits, seconds(now));
                let may_all = traits.iter().all(may_be_keyed);
                if may_all {
                    record.keyed = traits.iter().fold(record.keyed, TraitSet::with);
                }
                counts.found.fetch_add(1, Ordering::Relaxed);
                self.epoch.fetch_add(1, Ordering::Release);
            }
            Some(TrialVerdict::Unexplained) => {
                let is_second = record.note_unexplained(order.who, seconds(now));
                counts
                    .found
                    .fetch_add(u64::from(is_second), Ordering::Relaxed);
                self.epoch
                    .fetch_add(u64::from(is_second), Ordering::Release);
            }
            Some(TrialVerdict::NotShareable) => {
                self.refuse_record(record, now);
                if order.of_session {
                    record.put_off_session(seconds(now));
                }
            }
            Some(TrialVerdict::LeavesSession {
                answer,
                is_storable,
            }) => {
                self.refuse_record(record, now);
                record.note_left(answer, is_storable, seconds(now));
            }
            None => {}
        }
        if record.withdraw_from_new() {
            self.epoch.fetch_add(1, Ordering::Release);
        }
        if let Some(under_way) = active.get_mut(&order.page.page) {
            under_way.trial = None;
            if verdict.is_none() {
                under_way.untried_until = now + UNTRIED_MILLIS;
            }
            if under_way.is_idle(now) {
                active.remove(&order.page.page);
            }
        }
        drop(shard);
        match verdict {
            Some(TrialVerdict::Agree { .. }) => self.note_shape(order.page, left_out),
            Some(TrialVerdict::Depends(_)) => {
                let mut shapes = self.shape(order.page).lock();
                let shape = shapes.entry(order.page.shape, MAX_SHAPES);
                for it in found.iter() {
                    shape.note_difference(it, named(it, left_out.value(it)));
                    if found.iter().all(may_be_keyed) {
                        shape.note_keyed(it, order.page.url);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_shape(&self, page: PageName, left_out: &LeftOut) {
        self.counts.agreed.fetch_add(1, Ordering::Relaxed);
        let mut shapes = self.shape(page).lock();
        let shape = shapes.entry(page.shape, MAX_SHAPES);
        for it in left_out.traits().iter().filter(|it| *it != Trait::Network) {
            let value = named(it, left_out.value(it));
            shape.note(it, value, page.url, left_out.network_group());
        }
    }

    /// Refuses to share the page: a cause beside its answers makes it personal.
    pub fn refuse(&self, page: PageName, now: u64) {
        let mut shard = self.shard(page).lock();
        self.refuse_record(shard.records.entry(page.page, MAX_PAGES), now);
    }

    fn refuse_record(&self, record: &mut PageRecord, now: u64) {
        if record.refuse(seconds(now)) {
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// A visitor's own answer was another one than the shared answer, or was not compared. Where the page differs each time,
    /// this says nothing, unless the visitor was refused.
    fn doubt(
        &self,
        record: &PageRecord,
        doubts: &mut Doubts,
        (visitor, why): ((PageName, &LeftOut), Doubt),
        now: u64,
    ) {
        if record.differs_each_time && why != Doubt::Refused {
            return;
        }
        let is_new = doubts.note(visitor, (why, record.shared_answer), seconds(now));
        if is_new && record.is_agreed {
            // The visitor may have been shown the shared answer until now.
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the findings about a page; `None` if there are none.
    #[must_use]
    pub fn findings(&self, page: PageName, now: u64) -> Option<PageFindings> {
        self.of_record(page, |record| {
            record.is_known().then(|| record.findings(seconds(now)))
        })
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        Counts {
            own_runs: of(&counts.own_runs),
            agreed: of(&counts.agreed),
            trials: of(&counts.trials),
            trial_requests: of(&counts.trial_requests),
            found: of(&counts.found),
        }
    }
}

/// Returns how many requests are set aside for a trial.
fn set_aside(traits: TraitSet, of_session: bool) -> u32 {
    match of_session {
        true => SESSION_REQUESTS,
        false => Trial::usual_requests(traits),
    }
}

fn seconds(now: u64) -> u32 {
    // 0 stands for never.
    u32::try_from(now / 1000).unwrap_or(u32::MAX).max(1)
}

/// Will these visitors' answers say whether these values of a visitor matter? `None`: only answers to the same visitor do.
fn covers<'v>(
    mut known: impl Iterator<Item = &'v LeftOut>,
    left_out: &LeftOut,
    unproven: Option<TraitSet>,
) -> bool {
    let Some(unproven) = unproven else {
        return known.any(|of| of == left_out);
    };
    let known: Vec<&LeftOut> = known.collect();
    unproven.iter().all(|it| {
        // Any address is as good as another: it is compared with the neutral one.
        let is_alike = |of: &&LeftOut| match it {
            Trait::Network => of.value(it) != 0,
            _ => of.value(it) == left_out.value(it),
        };
        known.iter().any(is_alike)
    })
}

#[cfg(test)]
mod tests;
