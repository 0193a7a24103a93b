//! The requests that trials may make, for each zone.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::budget::Budget;
use crate::page_name::PageName;

/// Zones whose trials are counted: more than a configuration has.
const MAX_ZONES: usize = 64;

/// The budgets of all zones.
#[derive(Debug, Default)]
pub(crate) struct ZoneBudgets(Mutex<HashMap<u64, Budgets>>);

/// The requests that trials of a zone may make: those of what visitors say, and those of sessions.
#[derive(Debug)]
struct Budgets {
    of_traits: Budget,
    of_sessions: Budget,
    /// A visitor's own answer has begun a session.
    has_sessions: bool,
}

impl ZoneBudgets {
    /// Lets `change` have the budget of the page's zone: that of sessions with `of_session`.
    pub(crate) fn with<T>(
        &self,
        (page, of_session): (PageName, bool),
        now: u64,
        change: impl FnOnce(&mut Budget) -> T,
    ) -> T {
        let mut zones = self.0.lock();
        if zones.len() >= MAX_ZONES && !zones.contains_key(&page.zone) {
            zones.clear();
        }
        let budgets = zones.entry(page.zone).or_insert_with(|| Budgets {
            of_traits: Budget::of_traits(now),
            of_sessions: Budget::of_sessions(now),
            has_sessions: false,
        });
        change(match of_session {
            true => &mut budgets.of_sessions,
            false => &mut budgets.of_traits,
        })
    }

    pub(crate) fn take(&self, of: (PageName, bool), requests: u32, now: u64) -> bool {
        self.with(of, now, |budget| budget.take(requests, now))
    }

    /// A visitor's own answer that differs, or begins a session, pays for one request of a trial: where each page
    /// differs each time, trials keep up with the visitors, and make no more requests than they do.
    pub(crate) fn earn(&self, of: (PageName, bool), now: u64) {
        self.with(of, now, |budget| budget.give_back(1));
    }

    /// Has a page of the zone begun a session?
    pub(crate) fn has_sessions(&self, page: PageName) -> bool {
        let zones = self.0.lock();
        zones.get(&page.zone).is_some_and(|it| it.has_sessions)
    }

    pub(crate) fn note_sessions(&self, page: PageName) {
        if let Some(budgets) = self.0.lock().get_mut(&page.zone) {
            budgets.has_sessions = true;
        }
    }
}
