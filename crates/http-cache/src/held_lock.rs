//! Locks of a zone that its lookups wait for: those of shards and of the table of flights. A debug build counts for each
//! thread how many it holds, so that whatever may wait or make system calls can expect none ([`expect_none`]).

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Counts as a lock for as long as it is there.
pub(crate) struct HeldLock(());

impl HeldLock {
    #[inline]
    pub(crate) fn begin() -> HeldLock {
        #[cfg(debug_assertions)]
        HELD.set(HELD.get() + 1);
        HeldLock(())
    }
}

impl Drop for HeldLock {
    #[inline]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        HELD.set(HELD.get() - 1);
    }
}

/// The thread holds no lock of a zone. Only a debug build checks it.
#[inline]
pub(crate) fn expect_none() {
    #[cfg(debug_assertions)]
    assert_eq!(HELD.get(), 0, "a guard is asked while a zone is locked");
}

/// A lock that is counted.
#[derive(Default)]
pub(crate) struct CountedLock<T>(RwLock<T>);

/// A [`CountedLock`] that is held.
pub(crate) struct CountedGuard<G> {
    guard: G,
    _held: HeldLock,
}

impl<T> CountedLock<T> {
    #[inline]
    pub(crate) fn read(&self) -> CountedGuard<RwLockReadGuard<'_, T>> {
        CountedGuard {
            guard: self.0.read(),
            _held: HeldLock::begin(),
        }
    }

    #[inline]
    pub(crate) fn write(&self) -> CountedGuard<RwLockWriteGuard<'_, T>> {
        CountedGuard {
            guard: self.0.write(),
            _held: HeldLock::begin(),
        }
    }
}

impl<G: Deref> Deref for CountedGuard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for CountedGuard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_under_a_lock_is_found_by_a_debug_build() {
        let lock = CountedLock::<u32>::default();
        drop(lock.write());
        expect_none();
        let held = lock.read();
        let asked = std::panic::catch_unwind(expect_none);
        assert_eq!(asked.is_err(), cfg!(debug_assertions));
        drop(held);
        expect_none();
    }
}
