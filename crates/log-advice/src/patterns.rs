//! Path patterns: pages that belong together by the first part of their path.
//!
//! `/` stands alone, `/blog/2026/a` is of `/blog/*`, and `/about` is its own pattern as long as there
//! are few such. Numbers count as `*`, so that `/2026/...` and `/2025/...` are one.

use hashbrown::HashMap;

/// More patterns are not kept: later ones belong to [`REST`].
const MAX_PATTERNS: usize = 1000;
const MAX_NAME_BYTES: usize = 80;
/// Everything that has no pattern of its own.
pub const REST: &str = "/*";

/// The number of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternId(pub u16);

/// The patterns seen so far, each with its number.
#[derive(Debug)]
pub struct Patterns {
    known: HashMap<Vec<u8>, PatternId, foldhash::fast::FixedState>,
    name: Vec<u8>,
}

impl Default for Patterns {
    fn default() -> Patterns {
        let mut known = HashMap::default();
        known.insert(REST.as_bytes().to_vec(), PatternId(0));
        Patterns {
            known,
            name: Vec::new(),
        }
    }
}

impl Patterns {
    /// The pattern of a path without its query.
    pub fn of(&mut self, path: &[u8]) -> PatternId {
        write_name(path, &mut self.name);
        if let Some(id) = self.known.get(&self.name) {
            return *id;
        }
        let next = self.known.len();
        match u16::try_from(next) {
            Ok(id) if next < MAX_PATTERNS && self.name.len() <= MAX_NAME_BYTES => {
                self.known.insert(self.name.clone(), PatternId(id));
                PatternId(id)
            }
            _ => PatternId(0),
        }
    }

    /// All names, by their numbers.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.known.len()];
        for (name, id) in &self.known {
            if let Some(free) = names.get_mut(usize::from(id.0)) {
                *free = String::from_utf8_lossy(name).into_owned();
            }
        }
        names
    }
}

fn write_name(path: &[u8], name: &mut Vec<u8>) {
    name.clear();
    name.push(b'/');
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let end = memchr::memchr(b'/', path).unwrap_or(path.len());
    let (first, behind) = path.split_at_checked(end).unwrap_or((path, b""));
    if first.iter().any(u8::is_ascii_alphabetic) || first.is_empty() {
        name.extend_from_slice(first);
    } else {
        name.push(b'*');
    }
    if !behind.is_empty() {
        name.extend_from_slice(b"/*");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_the_same_first_part_belong_together() {
        let mut name = Vec::new();
        for (path, pattern) in [
            ("/", "/"),
            ("/about", "/about"),
            ("/blog/", "/blog/*"),
            ("/blog/2026/a", "/blog/*"),
            ("/2026/11/a", "/*/*"),
            ("/123", "/*"),
            ("", "/"),
            ("*", "/*"),
        ] {
            write_name(path.as_bytes(), &mut name);
            assert_eq!(String::from_utf8_lossy(&name), pattern, "{path}");
        }
    }

    #[test]
    fn strangers_cannot_make_patterns_without_end() {
        let mut patterns = Patterns::default();
        for number in 0..5000 {
            patterns.of(format!("/x{number}").as_bytes());
        }
        assert_eq!(patterns.names().len(), MAX_PATTERNS);
        assert_eq!(patterns.of(b"/another"), PatternId(0));
        assert_eq!(patterns.of(b"/x1"), PatternId(2));
    }
}
