//! The requests under way for one page.

use shared_request::LeftOut;

use crate::own_run::OwnRun;

/// After these milliseconds a request under way no longer counts: its end was lost.
pub(super) const LOST_AFTER: u64 = 60_000;

/// The requests under way for a page, and the answer that waits for another.
#[derive(Debug, Default)]
pub(super) struct Active {
    pub(super) own: Vec<(OwnRun, u64, u64)>,
    /// The start of the shared request under way.
    pub(super) shared_since: Option<u64>,
    /// The answers of visitors' own that wait for the shared one.
    pub(super) waiting: Vec<(LeftOut, u64)>,
    /// The start of a trial under way, and the traits that it tries.
    pub(super) trial: Option<(u64, LeftOut)>,
    /// Visitors wait for the result.
    pub(super) is_awaited: bool,
    /// Until this time no trial begins, because there was no room for one: visitors do not wait for one either.
    pub(super) untried_until: u64,
    pub(super) touched: u64,
}

impl Active {
    pub(super) fn is_idle(&self, now: u64) -> bool {
        let is_old = |since: u64| now.saturating_sub(since) > LOST_AFTER;
        is_old(self.touched)
            || self.own.is_empty()
                && self.waiting.is_empty()
                && self.shared_since.is_none()
                && self.trial.is_none()
                && now >= self.untried_until
    }

    /// Are there answers that wait for the shared one, and is nothing else under way?
    pub(super) fn only_waits(&self) -> bool {
        self.own.is_empty() && self.shared_since.is_none() && self.trial.is_none()
    }

    /// The visitors whose answers are compared.
    pub(super) fn compared(&self) -> impl Iterator<Item = &LeftOut> {
        let running = self.own.iter().map(|(run, _, _)| &run.left_out);
        running.chain(self.waiting.iter().map(|(left_out, _)| left_out))
    }

    pub(super) fn is_shared_under_way(&self, now: u64) -> bool {
        self.shared_since
            .is_some_and(|since| now.saturating_sub(since) < LOST_AFTER)
    }
}
