//! What purges a zone has had, by which it is known whether a stored response or a fetch is
//! older than one. What is stored under a purged key is removed in `store/removal.rs`.
//!
//! Each purge is a stamp from the zone's counter, and each fetch carries the stamp it began at. A
//! fetch begun before a purge that hits its key is neither stored nor joined by anybody who comes
//! after the purge: when a purge returns, no answer begun afterwards shows older data.
//!
//! The order that makes it true: a purge first writes its stamp down, then removes what is stored;
//! an insert looks at the stamps while it holds the shard's lock. Whichever comes first, the other
//! sees it. Stamps are kept in bounded lists; when one falls off the end, it becomes the floor
//! below which no fetch is stored, whatever its key. That errs on the side of fetching again.

use crate::key::KeyRef;
use crate::time::Millis;
use parking_lot::RwLock;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

/// A reading of a zone's purge clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub(crate) u64);

/// What to purge.
#[derive(Clone, Copy, Debug)]
pub enum PurgeTarget<'a> {
    /// All variants of one key.
    Key(KeyRef<'a>),
    /// All keys that begin with these bytes.
    Prefix(&'a [u8]),
    /// The whole zone.
    Everything,
    /// All answers that say that there is no such page (404, 410). One that is on its way is still
    /// given to those who join its fetch, as nobody knows yet what it says; it is not stored. They are removed in either mode.
    NotFound,
}

/// How to purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    /// Mark stale: it may still be served where stale responses may be.
    Soft,
    /// Remove.
    Hard,
}

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Stored responses hit (for [`PurgeTarget::Everything`]: all there were; those of
    /// [`PurgeTarget::NotFound`] are not counted).
    pub responses: usize,
    /// The purge's stamp.
    pub stamp: Stamp,
}

/// Recently purged keys that are told apart; a fetch lasts seconds, a purge storm thousands.
const KEYS: usize = 1024;

/// Recently purged prefixes that are told apart.
const PREFIXES: usize = 64;

/// A zone's purge clock and what it remembers of recent purges.
pub(crate) struct Purges {
    clock: AtomicU64,
    /// Stored responses with an earlier stamp are gone.
    removed_before: AtomicU64,
    /// Stored responses with an earlier stamp are stale, since `expired_at`.
    expired_before: AtomicU64,
    expired_at: AtomicU64,
    /// Stored answers that there is no such page, with an earlier stamp, are gone.
    not_found_before: AtomicU64,
    /// The latest of the three: nothing has happened to responses with this stamp or a later one.
    good_since: AtomicU64,
    log: RwLock<Log>,
}

struct Log {
    /// Fetches with an earlier stamp are outdated, whatever their key.
    floor: u64,
    /// By hash modulo length: hash and stamp.
    keys: Box<[(u64, u64)]>,
    prefixes: VecDeque<(Box<[u8]>, u64)>,
}

/// What purges of everything say about a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Good,
    ExpiredAt(Millis),
    Removed,
}

impl Purges {
    pub(crate) fn new() -> Purges {
        Purges {
            clock: AtomicU64::new(0),
            removed_before: AtomicU64::new(0),
            expired_before: AtomicU64::new(0),
            expired_at: AtomicU64::new(0),
            not_found_before: AtomicU64::new(0),
            good_since: AtomicU64::new(0),
            log: RwLock::new(Log {
                floor: 0,
                keys: vec![(0, 0); KEYS].into(),
                prefixes: VecDeque::new(),
            }),
        }
    }

    /// The clock, for a fetch that begins now.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp(self.clock.load(SeqCst))
    }

    /// Writes a purge down. Fetches that have begun are outdated from now on, as far as it hits.
    pub(crate) fn record(&self, target: PurgeTarget<'_>, mode: PurgeMode, now: Millis) -> Stamp {
        let mut log = self.log.write();
        // Advanced last: whoever reads the new stamp finds the purge written down.
        let stamp = self.clock.load(SeqCst) + 1;
        match target {
            PurgeTarget::Key(key) => log.add_key(key.hash(), stamp),
            PurgeTarget::Prefix(prefix) => log.add_prefix(prefix, stamp),
            PurgeTarget::Everything => {
                log.floor = stamp;
                match mode {
                    PurgeMode::Hard => self.removed_before.store(stamp, SeqCst),
                    PurgeMode::Soft => {
                        self.expired_at.store(now.0, SeqCst);
                        self.expired_before.store(stamp, SeqCst);
                    }
                }
                self.good_since.store(stamp, SeqCst);
            }
            // A fetch that has begun is stored with its own, earlier stamp.
            PurgeTarget::NotFound => {
                self.not_found_before.store(stamp, SeqCst);
                self.good_since.store(stamp, SeqCst);
            }
        }
        self.clock.store(stamp, SeqCst);
        Stamp(stamp)
    }

    /// Whether a purge has hit `key` since a fetch began.
    pub(crate) fn is_outdated(&self, key: &KeyRef<'_>, began: Stamp) -> bool {
        began.0 < self.clock.load(SeqCst) && self.log.read().hits(key, began.0)
    }

    /// What purges of many responses say about one stored with this stamp and status.
    #[inline]
    pub(crate) fn standing(&self, stamp: Stamp, status: u16) -> Standing {
        match stamp.0 >= self.good_since.load(Acquire) {
            true => Standing::Good,
            false => self.standing_of_old(stamp, status),
        }
    }

    fn standing_of_old(&self, stamp: Stamp, status: u16) -> Standing {
        let is_before = |purge: &AtomicU64| stamp.0 < purge.load(Acquire);
        let is_removed = is_before(&self.removed_before)
            || (is_not_found(status) && is_before(&self.not_found_before));
        if is_removed {
            Standing::Removed
        } else if is_before(&self.expired_before) {
            Standing::ExpiredAt(Millis(self.expired_at.load(Acquire)))
        } else {
            Standing::Good
        }
    }
}

/// Does the status say that there is no such page?
pub(crate) fn is_not_found(status: u16) -> bool {
    matches!(status, 404 | 410)
}

impl Log {
    fn add_key(&mut self, hash: u64, stamp: u64) {
        let slots = self.keys.len().max(1);
        if let Some(slot) = self.keys.get_mut(hash as usize % slots) {
            if slot.0 != hash {
                self.floor = self.floor.max(slot.1);
            }
            *slot = (hash, stamp);
        }
    }

    fn add_prefix(&mut self, prefix: &[u8], stamp: u64) {
        if self.prefixes.len() == PREFIXES
            && let Some((_, oldest)) = self.prefixes.pop_front()
        {
            self.floor = self.floor.max(oldest);
        }
        self.prefixes.push_back((prefix.into(), stamp));
    }

    fn hits(&self, key: &KeyRef<'_>, began: u64) -> bool {
        let by_key = self
            .keys
            .get(key.hash() as usize % self.keys.len().max(1))
            .is_some_and(|&(hash, stamp)| hash == key.hash() && began < stamp);
        by_key
            || began < self.floor
            || self
                .prefixes
                .iter()
                .any(|(prefix, stamp)| began < *stamp && key.bytes().starts_with(prefix))
    }
}
