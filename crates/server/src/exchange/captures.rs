//! Results of pattern matching that are kept with a request: the groups of the last pattern
//! that matched, and whether one has given up.

/// The handling of patterns that gave up on a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Failures {
    #[default]
    None,
    /// A pattern gave up, and the request is not refused for it yet.
    Found,
    /// The request was refused for one.
    Refused,
    /// Another has while an error page was looked for.
    FoundAgain,
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
