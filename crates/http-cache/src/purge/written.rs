//! Targets of purges as bytes, for a journal that outlives the process.
//!
//! ```text
//! target    kind 1 byte │ text, or pattern
//! pattern   form 1 byte │ text
//! ```
//!
//! No hash is written: those of this crate differ from one start to the next. A text longer than names of
//! kept responses ([`MAX_NAME_BYTES`]) names nothing there.

use super::{OwnedPurgeTarget, Pattern, PurgeTarget};
use crate::key::CacheKey;

/// Keys, addresses and tags of responses that are kept elsewhere have at most this many bytes.
pub const MAX_NAME_BYTES: usize = 8 << 10;

/// A target in bytes.
pub const MAX_TARGET_BYTES: usize = 16 << 10;

const KEY: u8 = 1;
const PREFIX: u8 = 2;
const EVERYTHING: u8 = 3;
const NOT_FOUND: u8 = 4;
const TAG: u8 = 5;
const TAGS: u8 = 6;
const ADDRESS: u8 = 7;
const ADDRESSES: u8 = 8;

const STARTS_WITH: u8 = 1;
const OF_HOST: u8 = 2;
const MATCHING: u8 = 3;

/// Makes a pattern again from the text of [`Pattern::Matching`]; `None` if it cannot be read.
pub type ReadPattern = dyn Fn(&[u8]) -> Option<Pattern>;

impl OwnedPurgeTarget {
    /// Reads the target that `bytes` name. Unreadable bytes name everything: more may be purged than was
    /// asked for, never less.
    #[must_use]
    pub fn of(bytes: &[u8], read_pattern: &ReadPattern) -> OwnedPurgeTarget {
        OwnedPurgeTarget::try_of(bytes, read_pattern).unwrap_or(OwnedPurgeTarget::Everything)
    }

    fn try_of(bytes: &[u8], read_pattern: &ReadPattern) -> Option<OwnedPurgeTarget> {
        let (kind, text) = bytes.split_first()?;
        let pattern = || pattern(text, read_pattern);
        Some(match *kind {
            KEY => OwnedPurgeTarget::Key(CacheKey::new(text.to_vec())),
            PREFIX => OwnedPurgeTarget::Prefix(text.into()),
            NOT_FOUND => OwnedPurgeTarget::NotFound,
            TAG => OwnedPurgeTarget::Tag(text.into()),
            TAGS => OwnedPurgeTarget::Tags(pattern()?),
            ADDRESS => OwnedPurgeTarget::Address(text.into()),
            ADDRESSES => OwnedPurgeTarget::Addresses(pattern()?),
            _ => OwnedPurgeTarget::Everything,
        })
    }
}

fn pattern(bytes: &[u8], read_pattern: &ReadPattern) -> Option<Pattern> {
    let (form, text) = bytes.split_first()?;
    match *form {
        STARTS_WITH => Some(Pattern::Prefix(text.into())),
        OF_HOST => Some(Pattern::Host(text.into())),
        MATCHING => read_pattern(text),
        _ => None,
    }
}

impl PurgeTarget<'_> {
    /// The target in bytes; `None` if it names nothing that may be kept elsewhere.
    #[must_use]
    pub fn written(&self) -> Option<Vec<u8>> {
        let named = |kind: u8, text: &[u8]| {
            (text.len() <= MAX_NAME_BYTES).then(|| [&[kind], text].concat())
        };
        match self {
            PurgeTarget::Key(key) => named(KEY, key.bytes()),
            PurgeTarget::Prefix(prefix) => named(PREFIX, prefix),
            PurgeTarget::Everything => Some(vec![EVERYTHING]),
            PurgeTarget::NotFound => Some(vec![NOT_FOUND]),
            PurgeTarget::Tag(tag) => named(TAG, tag),
            PurgeTarget::Address(address) => named(ADDRESS, address),
            PurgeTarget::Tags(pattern) => written_pattern(TAGS, pattern),
            PurgeTarget::Addresses(pattern) => written_pattern(ADDRESSES, pattern),
        }
    }
}

fn written_pattern(kind: u8, pattern: &Pattern) -> Option<Vec<u8>> {
    let (form, text): (u8, &[u8]) = match pattern {
        Pattern::Prefix(prefix) => (STARTS_WITH, prefix),
        Pattern::Host(host) => (OF_HOST, host),
        Pattern::Matching { written, .. } => (MATCHING, written),
    };
    let written = [&[kind, form], text].concat();
    match form {
        // It may match any text.
        MATCHING if written.len() > MAX_TARGET_BYTES => Some(vec![EVERYTHING]),
        MATCHING => Some(written),
        _ => (text.len() <= MAX_NAME_BYTES).then_some(written),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;

    fn read_pattern(written: &[u8]) -> Option<Pattern> {
        let end = written.strip_prefix(b"ends in ")?.to_vec();
        let again = written.to_vec();
        Some(Pattern::matching(&again, move |text: &[u8]| {
            text.ends_with(&end)
        }))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let a = key("/a");
        let ends = read_pattern(b"ends in =2").expect("a pattern");
        let (host, start) = (
            Pattern::Host(b"host"[..].into()),
            Pattern::Prefix(b"host/n"[..].into()),
        );
        for target in [
            PurgeTarget::Key(a.as_ref()),
            PurgeTarget::Prefix(b""),
            PurgeTarget::Prefix(b"/n"),
            PurgeTarget::Everything,
            PurgeTarget::NotFound,
            PurgeTarget::Tag(b"news"),
            PurgeTarget::Tags(&ends),
            PurgeTarget::Tags(&start),
            PurgeTarget::Address(b"host/news"),
            PurgeTarget::Addresses(&host),
            PurgeTarget::Addresses(&ends),
        ] {
            let written = target.written().expect("short enough");
            let read = OwnedPurgeTarget::of(&written, &read_pattern);
            assert_eq!(format!("{:?}", read.as_target()), format!("{target:?}"));
            assert_eq!(read.as_target().written(), Some(written));
        }
    }

    #[test]
    fn what_cannot_be_read_names_everything() {
        for bytes in [
            &b""[..],
            &[0],
            &[99, 1],
            &[TAGS],
            &[TAGS, 9, 1],
            b"\x08\x03?",
        ] {
            let read = OwnedPurgeTarget::of(bytes, &read_pattern);
            assert!(matches!(read, OwnedPurgeTarget::Everything), "{bytes:?}");
        }
    }

    #[test]
    fn a_text_that_nothing_kept_elsewhere_has_is_not_written() {
        let long = vec![b'x'; MAX_NAME_BYTES + 1];
        assert_eq!(PurgeTarget::Tag(&long).written(), None);
        assert_eq!(PurgeTarget::Address(&long).written(), None);
        // A function may match other texts.
        let pattern = Pattern::matching(&[b'x'; MAX_TARGET_BYTES], |_| true);
        let written = PurgeTarget::Tags(&pattern).written();
        assert_eq!(written, Some(vec![EVERYTHING]));
    }
}
