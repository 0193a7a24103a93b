//! Matching a request against patterns, and keeping what was captured.

use site::Pattern;

use crate::extras::put_value;
use crate::request::Request;

/// What `$1` to `$9` stand for: groups of the last pattern that matched.
#[derive(Debug, Clone, Default)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Captures {
    pub const fn new() -> Captures {
        Captures {
            subject: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub fn group(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(number)?)?;
        self.subject.get(start..end)
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Does `pattern` match `subject`? A match fills the request's captures and
/// the slots of named groups. A pattern that gives up (match limit) does not
/// match.
pub fn matches(request: &mut Request, pattern: &Pattern, subject: &[u8]) -> bool {
    if pattern.regex.captures_len() <= 1 {
        return pattern.regex.is_match(subject).unwrap_or(false);
    }
    let mut locations = pattern.regex.capture_locations();
    if !matches!(
        pattern.regex.captures_read(&mut locations, subject),
        Ok(Some(_))
    ) {
        return false;
    }
    let captures = &mut request.extras.captures;
    captures.subject.clear();
    captures.subject.extend_from_slice(subject);
    captures.groups.clear();
    captures
        .groups
        .extend((0..locations.len()).map(|group| locations.get(group)));
    for &(group, slot) in &pattern.named {
        let value = locations
            .get(group)
            .and_then(|(start, end)| subject.get(start..end));
        let value = value.unwrap_or_default().to_vec();
        put_value(&mut request.extras.slots, slot.0, Some(value));
    }
    true
}
