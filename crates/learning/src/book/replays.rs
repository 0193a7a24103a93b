//! Pages that are decided by running their suspect statements again.
//!
//! A statement that is run again begins to read after the write by which the round is numbered could be seen. A write
//! that is counted later makes the page suspect once more. One that is announced or in doubt at the end of
//! the round may be seen at any moment: a statement that it concerns is not decided.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use learned::{Effect, RunIn, StatementToRun};

use super::Book;
use crate::counts::ReplayEnd;
use crate::pages::LearnedPage;
use crate::record::{SentStatement, ServerName};
use crate::replay::ReplaySession;

/// Sessions of one server in which statements are run again. Applications have one or two.
const MAX_SESSIONS: usize = 32;

/// Statements of one round. Others have their turn in the next.
const MAX_IN_ROUND: usize = 256;

/// Whether a page may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// While the pool has moved so often.
    Good(u64),
    /// Not before its statements were run again.
    Open,
    Outdated,
}

/// Statements that are run again now.
pub struct ReplayRound {
    pub server: ServerName,
    /// The last write that was counted before.
    as_of: u64,
    pub statements: Vec<(StatementToRun, Arc<ReplaySession>)>,
    /// The pages for which visitors wait, where it is run for these alone.
    awaited: BTreeSet<u32>,
}

/// The session in which a statement can be run again, with the number of its session among those that are known.
pub fn run_in(statement: &SentStatement, known: &mut Vec<Arc<ReplaySession>>) -> Option<RunIn> {
    let session = statement.again_in.as_ref()?;
    let at = known.iter().position(|it| it == session);
    let at = at.or_else(|| {
        (known.len() < MAX_SESSIONS).then(|| {
            known.push(session.clone());
            known.len() - 1
        })
    });
    Some(RunIn {
        session: u32::try_from(at?).ok()?,
        is_prepared: statement.is_prepared,
    })
}

impl Book {
    pub fn set_replays(&mut self, replays: bool) {
        self.replays = replays;
    }

    /// Is a page still good?
    pub fn confirm(&mut self, number: u32, fetch: u64, now: Instant) -> Confirmation {
        let is_it = |page: &LearnedPage| page.fetch == fetch;
        let is_of_caches = self.caches.count() > 1 && self.has_cache(number);
        let is_unfollowed = self.databases.len() > 1 || is_of_caches;
        if is_unfollowed || !self.pages.get(number).is_some_and(is_it) {
            return Confirmation::Outdated;
        }
        self.ask_index(number, now);
        match self.pages.get(number) {
            Some(page) if page.is_fresh(now) => Confirmation::Good(self.moves),
            Some(page) if page.is_open(now) => Confirmation::Open,
            _ => Confirmation::Outdated,
        }
    }

    /// Like `confirm`, for a visitor, who waits for the next round if the page is open.
    pub fn await_replay(&mut self, number: u32, fetch: u64, now: Instant) -> Confirmation {
        let confirmation = self.confirm(number, fetch, now);
        if confirmation == Confirmation::Open {
            self.awaited.insert(number);
        }
        confirmation
    }

    /// Statements of suspect pages to be run now, each once, those of one session behind each other: of the pages for which
    /// visitors wait, or of those that were asked for since they were decided last.
    pub fn next_replays(&mut self, now: Instant) -> Option<ReplayRound> {
        let awaited = std::mem::take(&mut self.awaited);
        if !self.replays {
            return None;
        }
        if awaited.is_empty() {
            self.note_suspects(now);
        }
        let under_way = self.effects_under_way();
        let [database] = &mut self.databases[..] else {
            return None;
        };
        let index = database.index.as_mut()?;
        let open: Vec<u32> = match awaited.is_empty() {
            true => {
                let open = self.pages.iter().filter(|(_, page)| page.is_wanted(now));
                open.map(|(number, _)| number).collect()
            }
            false => awaited.iter().copied().collect(),
        };
        let mut statements: Vec<(StatementToRun, Arc<ReplaySession>)> = Vec::new();
        for statement in open.iter().flat_map(|number| index.to_run(*number)) {
            let is_known = statements.iter().any(|(it, _)| it.is(&statement));
            // It waits for a write that is under way.
            let may_change = || under_way.iter().any(|it| index.concerns(&statement, it));
            if is_known || may_change() {
                continue;
            }
            if let Some(session) = database.sessions.get(statement.again.session as usize) {
                statements.push((statement, session.clone()));
            }
            if statements.len() >= MAX_IN_ROUND {
                break;
            }
        }
        statements.sort_by_key(|(statement, _)| statement.again.session);
        (!statements.is_empty() && self.unheard.is_empty()).then(|| ReplayRound {
            server: database.server.clone(),
            as_of: index.writes(),
            statements,
            awaited,
        })
    }

    /// The statements of a round were run in a time; `None`: one gave no result.
    pub fn replayed(
        &mut self,
        round: &ReplayRound,
        results: &[Option<u64>],
        (ran, now): (Duration, Instant),
    ) {
        self.replay_time.add(ran, now);
        let under_way = self.effects_under_way();
        let is_heard = self.unheard.is_empty();
        let mut databases = self.databases.iter_mut();
        let database = databases.find(|it| it.server == round.server);
        let Some(index) = database.and_then(|it| it.index.as_mut()) else {
            return;
        };
        for ((statement, _), result) in round.statements.iter().zip(results) {
            let end = match result {
                Some(result) if *result == statement.result => ReplayEnd::Equal,
                Some(_) => ReplayEnd::Different,
                None => ReplayEnd::Failed,
            };
            self.counts.note_replay(end);
            let is_equal = end == ReplayEnd::Equal;
            let may_change = under_way.iter().any(|it| index.concerns(statement, it));
            if !is_equal || is_heard && !may_change {
                index.ran(statement, round.as_of, is_equal);
            }
        }
        match round.awaited.is_empty() {
            true => self.note_suspects(now),
            false => round
                .awaited
                .iter()
                .for_each(|page| self.ask_index(*page, now)),
        }
    }

    /// The effects of writes that others may see at any moment.
    fn effects_under_way(&mut self) -> Vec<Effect> {
        let writes = self.doubts.writes().chain(self.announced.writes());
        let writes = writes.filter(|write| write.cache.is_none());
        let Some(database) = self.databases.first_mut() else {
            return Vec::new();
        };
        writes.map(|write| database.effect(write)).collect()
    }

    /// Nothing speaks against a page any more.
    pub(super) fn freshen(&mut self, number: u32) {
        let page = self.pages.get_mut(number);
        if let Some(page) = page.filter(|page| page.suspect.is_some()) {
            page.suspect = None;
            page.asked.store(false, Ordering::Relaxed);
            self.counts.freshened += 1;
        }
    }
}

#[cfg(test)]
#[path = "../replays_tests.rs"]
mod tests;
