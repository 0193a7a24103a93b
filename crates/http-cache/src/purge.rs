//! Purging: removing or expiring stored responses, also those that are only on their way.
//!
//! Each purge is a stamp from the zone's counter, and each fetch carries the stamp it began at. A
//! fetch begun before a purge that hits its key is neither stored nor joined by anybody who comes
//! after the purge: when a purge returns, no answer begun afterwards shows older data.
//!
//! The order that makes it true: a purge first writes its stamp down, then removes what is stored;
//! an insert looks at the stamps while it holds the shard's lock. Whichever comes first, the other
//! sees it. Stamps are kept in bounded lists; when one falls off the end, it becomes the floor
//! below which no fetch is stored, whatever its key. That errs on the side of fetching again.

/// A reading of a zone's purge clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub(crate) u64);

/// What to purge.
#[derive(Clone, Copy, Debug)]
pub enum PurgeTarget<'a> {
    /// All variants of one key.
    Key(crate::KeyRef<'a>),
    /// All keys that begin with these bytes.
    Prefix(&'a [u8]),
    /// The whole zone.
    Everything,
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
    /// Stored responses hit (for [`PurgeTarget::Everything`]: all there were).
    pub responses: usize,
    /// The purge's stamp.
    pub stamp: Stamp,
}
