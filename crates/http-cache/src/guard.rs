//! Something beside the purge clock that decides whether a stored response may be shown: the state of the data that it
//! was made from (`cache_learn on`).
//!
//! A guard is asked for each lookup, and while no lock of the zone is held ([`ask`]): it may wait for a lock of its own,
//! and make system calls. Who needs an answer under a lock lets it go, asks, and begins again with the
//! [answers](GuardAnswers).

use crate::held_lock;
use crate::purge::Stamp;
use crate::time::Millis;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// Whether a fetch's response may be shown to a request that comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardVerdict {
    /// Nothing that it was made of has changed.
    Good,
    /// It is not known at the moment. It may stand in for a fetch that failed.
    Unknown,
    /// Something has changed, or may have.
    Outdated,
    /// Nothing has changed, but it may be for one client: [`Guard::decided`] waits until that is known. Only a guard that
    /// [holds followers](Guard::holds_followers) says so.
    Pending,
}

/// An observer of a page's inputs, while its fetch is under way and once its response is stored.
pub trait Guard: fmt::Debug + Send + Sync {
    /// The fetch is about to be sent to the upstream: earlier changes are in its response.
    fn begin(&self);

    /// Called for each lookup, without a lock of the zone.
    fn verdict(&self, now: Millis) -> GuardVerdict;

    /// Returns whether the response is over, for sweeps: no visitor asks, and an undecided response stays. Called without
    /// a lock of the zone.
    fn is_over(&self, now: Millis) -> bool {
        self.verdict(now) == GuardVerdict::Outdated
    }

    /// Returns whether requests that join the fetch wait until its response is stored and the guard has decided. Otherwise they
    /// read it as it arrives.
    fn holds_followers(&self) -> bool {
        false
    }

    /// Returns the stamp from which it hears of changes, if that is later than its fetch: the response was kept
    /// elsewhere.
    fn holds_since(&self) -> Option<Stamp> {
        None
    }

    /// Waits for the inputs of an outdated or pending response: returns `true` once another lookup may find it good, `false`
    /// if none will. If it was pending, `true` also means that requests which have waited may be shown it.
    fn decided(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(ready(false))
    }
}

/// A guard of a fetch and of the response that it gave.
pub(crate) type SharedGuard = Arc<Box<dyn Guard>>;

/// A guard in one pointer, whether or not there is one.
pub(crate) type StoredGuard = Option<SharedGuard>;

/// Asks a guard. No thread does so that holds a lock of a zone.
pub(crate) fn ask(guard: &SharedGuard, now: Millis) -> GuardVerdict {
    held_lock::expect_none();
    guard.verdict(now)
}

/// Returns whether a guard takes its response for over. No thread asks that holds a lock of a zone.
pub(crate) fn is_over(guard: &SharedGuard, now: Millis) -> bool {
    held_lock::expect_none();
    guard.is_over(now)
}

/// Guards that one request asks: a flight, and what is stored, for each of a few responses that come meanwhile. A guard
/// beyond that counts as one whose verdict is `Outdated`.
const MAX_ASKED: usize = 8;

/// Verdicts of the guards that one request has asked.
#[derive(Debug, Default)]
pub(crate) struct GuardAnswers(Vec<(SharedGuard, GuardVerdict)>);

/// A guard that must be asked once the lock at hand is let go.
#[derive(Debug)]
pub(crate) struct GuardQuestion(SharedGuard);

impl GuardAnswers {
    /// Returns the verdict of the guard. A guard past the bound counts as outdated.
    ///
    /// # Errors
    /// The guard has not been asked yet.
    pub(crate) fn of(&self, guard: &SharedGuard) -> Result<GuardVerdict, GuardQuestion> {
        match self.0.iter().find(|(asked, _)| Arc::ptr_eq(asked, guard)) {
            Some((_, verdict)) => Ok(*verdict),
            None if self.0.len() >= MAX_ASKED => Ok(GuardVerdict::Outdated),
            None => Err(GuardQuestion(guard.clone())),
        }
    }

    pub(crate) fn ask(&mut self, GuardQuestion(guard): GuardQuestion, now: Millis) {
        let verdict = ask(&guard, now);
        self.0.push((guard, verdict));
    }
}

/// The guard of a fetch, which its leader may set.
#[derive(Default)]
pub(crate) struct FlightGuard(OnceLock<Arc<Box<dyn Guard>>>);

impl FlightGuard {
    pub(crate) fn set(&self, guard: Box<dyn Guard>) {
        let _ = self.0.set(Arc::new(guard));
    }

    pub(crate) fn begin(&self) {
        if let Some(guard) = self.0.get() {
            guard.begin();
        }
    }

    /// May a request that comes now be answered by the fetch?
    pub(crate) fn is_good(&self, answers: &GuardAnswers) -> Result<bool, GuardQuestion> {
        let Some(guard) = self.0.get() else {
            return Ok(true);
        };
        let verdict = answers.of(guard)?;
        Ok(matches!(
            verdict,
            GuardVerdict::Good | GuardVerdict::Pending
        ))
    }

    pub(crate) fn holds_followers(&self) -> bool {
        self.0.get().is_some_and(|guard| guard.holds_followers())
    }

    pub(crate) fn stored(&self) -> StoredGuard {
        self.0.get().cloned()
    }
}
