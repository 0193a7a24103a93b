//! Purges: their targets, and the stamps that tell whether a stored response or a fetch is older
//! than a purge. The design is in `docs/design/2026-11-23-invalidation.md`.
//!
//! Each purge is a stamp from the zone's clock, and each fetch carries the stamp it began at. A
//! fetch begun before a purge that hits it is neither stored nor joined by requests that come after
//! the purge: when a purge returns, no answer begun afterwards shows older data.
//!
//! ```text
//! clock    the clock of a zone, and the verdict of its purges on a stored response
//! labels   the labels of a stored response: its address, its tags
//! recent   the purges that fetches under way may have missed
//! written  targets as bytes, for a journal
//! ```

pub(crate) mod clock;
pub(crate) mod labels;
pub(crate) mod recent;
mod tags;
#[cfg(test)]
mod tests;
pub mod written;

pub use labels::LabelNames;
pub use tags::{Tags, TooManyTags};

use crate::key::{CacheKey, KeyRef};
use std::fmt;
use std::sync::Arc;

/// A reading of a zone's purge clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub(crate) u64);

impl Stamp {
    /// Returns how many steps the clock has made, to be shown.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the reading with this number, which a record stores for the begin of its fetch.
    #[must_use]
    pub fn from_number(number: u64) -> Stamp {
        Stamp(number)
    }

    /// The first reading of a start of the server. Starts are counted where pages are kept for the
    /// next one, so that no reading comes twice, not even after a crash.
    #[must_use]
    pub fn first_of_start(start: u16) -> Stamp {
        Stamp(u64::from(start) << READING_BITS)
    }
}

/// Bits of a reading that count steps of the clock; those above count starts. At a million purges a
/// second they last for eight years.
const READING_BITS: u32 = 48;

/// The responses to purge.
#[derive(Clone, Copy, Debug)]
pub enum PurgeTarget<'a> {
    /// All variants of one key.
    Key(KeyRef<'a>),
    /// All keys that begin with these bytes.
    Prefix(&'a [u8]),
    /// The whole zone.
    Everything,
    /// All answers that say that there is no such page (404, 410). The answer to a fetch under way
    /// is still given to the requests that join the fetch, since its status is not known yet; it is
    /// not stored. They are removed in either mode.
    NotFound,
    /// All responses that carry this tag.
    Tag(&'a [u8]),
    /// All responses that carry a tag of a pattern.
    Tags(&'a Pattern),
    /// All responses for one address: host, path and arguments, see [`LabelNames::address`].
    Address(&'a [u8]),
    /// All responses for the addresses of a pattern.
    Addresses(&'a Pattern),
}

/// An owned [`PurgeTarget`], of a request to purge or a record.
#[derive(Clone, Debug)]
pub enum OwnedPurgeTarget {
    /// [`PurgeTarget::Key`]
    Key(CacheKey),
    /// [`PurgeTarget::Prefix`]
    Prefix(Box<[u8]>),
    /// [`PurgeTarget::Everything`]
    Everything,
    /// [`PurgeTarget::NotFound`]
    NotFound,
    /// [`PurgeTarget::Tag`]
    Tag(Box<[u8]>),
    /// [`PurgeTarget::Tags`]
    Tags(Pattern),
    /// [`PurgeTarget::Address`]
    Address(Box<[u8]>),
    /// [`PurgeTarget::Addresses`]
    Addresses(Pattern),
}

impl OwnedPurgeTarget {
    /// Borrows the target.
    #[must_use]
    pub fn as_target(&self) -> PurgeTarget<'_> {
        match self {
            OwnedPurgeTarget::Key(key) => PurgeTarget::Key(key.as_ref()),
            OwnedPurgeTarget::Prefix(prefix) => PurgeTarget::Prefix(prefix),
            OwnedPurgeTarget::Everything => PurgeTarget::Everything,
            OwnedPurgeTarget::NotFound => PurgeTarget::NotFound,
            OwnedPurgeTarget::Tag(tag) => PurgeTarget::Tag(tag),
            OwnedPurgeTarget::Tags(pattern) => PurgeTarget::Tags(pattern),
            OwnedPurgeTarget::Address(address) => PurgeTarget::Address(address),
            OwnedPurgeTarget::Addresses(pattern) => PurgeTarget::Addresses(pattern),
        }
    }

    /// Is a whole table looked through for it?
    #[must_use]
    pub fn is_walk(&self) -> bool {
        matches!(
            self,
            OwnedPurgeTarget::Prefix(_)
                | OwnedPurgeTarget::Tags(_)
                | OwnedPurgeTarget::Addresses(_)
        )
    }
}

/// A function that returns whether a pattern names a text.
pub type Matches = dyn Fn(&[u8]) -> bool + Send + Sync;

/// A pattern for the texts of labels. Asked for each of them, so it should be quick.
#[derive(Clone)]
pub enum Pattern {
    /// The text begins with these bytes.
    Prefix(Box<[u8]>),
    /// The addresses of this host.
    Host(Box<[u8]>),
    /// The texts for which the function returns true.
    Matching {
        /// Returns whether a text is named.
        matches: Arc<Matches>,
        /// The bytes from which the function's maker can make it again, see [`written`].
        written: Arc<[u8]>,
    },
}

impl Pattern {
    /// Creates a pattern from a function. `written`: the bytes from which the function can be made
    /// again.
    pub fn matching(
        written: &[u8],
        matches: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> Pattern {
        Pattern::Matching {
            matches: Arc::new(matches),
            written: written.into(),
        }
    }

    /// Does the pattern name `text`?
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Prefix(prefix) => text.starts_with(prefix),
            Pattern::Host(host) => text
                .strip_prefix(&**host)
                .is_some_and(|rest| rest.first() == Some(&b'/')),
            Pattern::Matching { matches, .. } => matches(text),
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Prefix(prefix) => write!(f, "Prefix({:?})", String::from_utf8_lossy(prefix)),
            Pattern::Host(host) => write!(f, "Host({:?})", String::from_utf8_lossy(host)),
            Pattern::Matching { written, .. } => {
                write!(f, "Matching({:?})", String::from_utf8_lossy(written))
            }
        }
    }
}

/// How to purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    /// Mark stale: it may still be served where stale responses may be, and while one request
    /// refreshes it.
    Soft,
    /// Remove.
    Hard,
}

/// The result of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeResult {
    /// Stored responses hit (for [`PurgeTarget::Everything`]: all there were; those of
    /// [`PurgeTarget::NotFound`] are not counted).
    pub responses: usize,
    /// The purge's stamp.
    pub stamp: Stamp,
}
