//! Results of pattern matching that are kept with a request: the groups of the last pattern
//! that matched, and whether one has given up.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

/// A pattern gave up on the request, and the request is not refused for it yet.
const FOUND: u8 = 1;
/// The request was refused for one.
const REFUSED: u8 = 2;

/// The handling of patterns that gave up on a request.
#[derive(Debug, Default)]
pub struct PatternFailures(AtomicU8);

impl PatternFailures {
    /// Notes that a pattern gave up.
    pub fn note(&self) {
        self.0.fetch_or(FOUND, Relaxed);
    }

    /// Has a pattern given up on the request since it was refused for one?
    #[inline]
    pub fn is_any(&self) -> bool {
        self.0.load(Relaxed) & FOUND != 0
    }

    /// The request is refused; true if it was before, and a pattern gave up while an error page was
    /// looked for.
    pub fn refuse(&self) -> bool {
        self.0.swap(REFUSED, Relaxed) == FOUND | REFUSED
    }
}

/// The values of `$1` to `$9`: groups of the last pattern that matched.
#[derive(Debug, Clone, Default)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Captures {
    pub fn group(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(number)?)?;
        self.subject.get(start..end)
    }

    /// Makes them the groups of a match in `subject`.
    pub fn set(&mut self, subject: &[u8], groups: impl Iterator<Item = Option<(usize, usize)>>) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.groups.clear();
        self.groups.extend(groups);
    }

    /// The text that the groups are parts of.
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// Returns the positions of the groups in the subject, the whole match first.
    pub fn ranges(&self) -> &[Option<(usize, usize)>] {
        &self.groups
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}
