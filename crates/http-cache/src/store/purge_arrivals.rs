//! Whether the purges of an application arrive. A page that an application is known to purge may be kept for the lifetime
//! that the application gives it; otherwise a page that has changed would be shown for that long.
//!
//! ```text
//! unknown ── purge ──► arriving ── edit without a purge ──► missed ── purge ──► arriving
//! ```

use parking_lot::Mutex;

use crate::time::Millis;

/// The state of the purges that arrive for one zone.
#[derive(Default)]
pub struct PurgeArrivals(Mutex<ArrivalState>);

#[derive(Default)]
struct ArrivalState {
    last: Option<Millis>,
    /// An edit was followed by no purge, and no purge has come since.
    is_missed: bool,
    /// The beginning of an edit that no purge has followed yet.
    awaited_since: Option<Millis>,
}

/// An edit that a purge has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedPurge(Millis);

impl PurgeArrivals {
    /// A purge has come from the application.
    pub fn note_purge(&self, now: Millis) {
        let mut state = self.0.lock();
        *state = ArrivalState {
            last: Some(now),
            ..ArrivalState::default()
        };
    }

    /// Do they arrive? `is_expected`: they are taken to arrive until one is missed.
    pub fn is_known(&self, is_expected: bool) -> bool {
        let state = self.0.lock();
        !state.is_missed && (is_expected || state.last.is_some())
    }

    /// An edit succeeded whose request came at `began`. A purge has to follow, unless one came meanwhile, or
    /// another edit waits for one already. Once one was missed, nothing is stored for long: no other need be.
    pub fn note_edit(&self, began: Millis) -> Option<AwaitedPurge> {
        let mut state = self.0.lock();
        let has_come = state.last.is_some_and(|last| last >= began);
        if has_come || state.is_missed || state.awaited_since.is_some() {
            return None;
        }
        state.awaited_since = Some(began);
        Some(AwaitedPurge(began))
    }

    /// The time for the purge is over. Returns whether it was missed: what is stored may be out of date.
    pub fn end_wait(&self, awaited: AwaitedPurge) -> bool {
        let mut state = self.0.lock();
        if state.awaited_since != Some(awaited.0) {
            return false;
        }
        state.awaited_since = None;
        state.is_missed = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(arrivals: &PurgeArrivals) -> (bool, bool) {
        (arrivals.is_known(false), arrivals.is_known(true))
    }

    #[test]
    fn purges_are_known_by_the_first_until_one_is_missed() {
        let arrivals = PurgeArrivals::default();
        assert_eq!(known(&arrivals), (false, true));
        arrivals.note_purge(Millis(10));
        assert_eq!(known(&arrivals), (true, true));
        let awaited = arrivals.note_edit(Millis(20)).expect("none came");
        assert_eq!(arrivals.note_edit(Millis(21)), None, "one wait at a time");
        assert_eq!(known(&arrivals), (true, true));
        assert!(arrivals.end_wait(awaited));
        assert_eq!(known(&arrivals), (false, false));
        assert_eq!(arrivals.note_edit(Millis(25)), None, "all is removed once");
        arrivals.note_purge(Millis(30));
        assert_eq!(known(&arrivals), (true, true));
    }

    #[test]
    fn a_purge_during_the_edit_or_behind_it_is_the_one_that_was_awaited() {
        let arrivals = PurgeArrivals::default();
        arrivals.note_purge(Millis(10));
        assert_eq!(arrivals.note_edit(Millis(10)), None);
        let awaited = arrivals.note_edit(Millis(11)).expect("none came");
        arrivals.note_purge(Millis(12));
        assert!(!arrivals.end_wait(awaited));
        assert_eq!(known(&arrivals), (true, true));
    }
}
