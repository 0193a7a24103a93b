//! Sets of names, each with `*` for anything: `wordpress_logged_in_*`, `*UserID`.

use std::fmt;

/// A set of patterns of names, asked about names as PHP sees them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NameSet {
    /// Globs by their first byte; those that begin with `*` last.
    globs: Box<[Glob]>,
    /// The index at which the globs of a first byte begin; one more for the end of the
    /// last.
    starts: Box<[u16]>,
}

/// The parts of a pattern between its `*`.
#[derive(Clone, PartialEq, Eq)]
struct Glob {
    parts: Box<[Box<[u8]>]>,
}

impl NameSet {
    /// A set of these patterns, each taken as PHP would see such a name.
    #[must_use]
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p [u8]>) -> NameSet {
        NameSet::of(patterns.into_iter().map(Glob::new).collect())
    }

    /// The patterns of both sets.
    #[must_use]
    pub fn or(&self, other: &NameSet) -> NameSet {
        NameSet::of([&self.globs[..], &other.globs[..]].concat())
    }

    fn of(mut globs: Vec<Glob>) -> NameSet {
        if globs.is_empty() {
            return NameSet::default();
        }
        globs.truncate(usize::from(u16::MAX));
        globs.sort_by_key(Glob::bucket);
        let starts = (0..=257)
            .map(|bucket| globs.partition_point(|glob| glob.bucket() < bucket) as u16)
            .collect();
        NameSet {
            globs: globs.into(),
            starts,
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Is one of the patterns this very name?
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        let of = |bucket: usize| {
            let start = self.starts.get(bucket).copied().unwrap_or_default();
            let end = self.starts.get(bucket + 1).copied().unwrap_or_default();
            self.globs
                .get(usize::from(start)..usize::from(end))
                .unwrap_or_default()
        };
        let first = name.first().map_or(&[][..], |&byte| of(usize::from(byte)));
        first
            .iter()
            .chain(of(ANYWHERE))
            .any(|glob| glob.matches(name))
    }
}

/// The bucket of patterns that begin with `*`.
const ANYWHERE: usize = 256;

impl Glob {
    fn new(pattern: &[u8]) -> Glob {
        let pattern: Vec<u8> = pattern
            .iter()
            .map(|&byte| match byte {
                b'.' | b' ' => b'_',
                byte => byte,
            })
            .collect();
        Glob {
            parts: pattern.split(|&byte| byte == b'*').map(Box::from).collect(),
        }
    }

    fn bucket(&self) -> usize {
        self.parts
            .first()
            .and_then(|part| part.first())
            .map_or(ANYWHERE, |&byte| usize::from(byte))
    }

    fn matches(&self, name: &[u8]) -> bool {
        let Some((first, rest)) = self.parts.split_first() else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return **first == *name;
        };
        let Some(mut name) = name
            .strip_prefix(&**first)
            .and_then(|rest| rest.strip_suffix(&**last))
        else {
            return false;
        };
        for part in middle {
            match memchr::memmem::find(name, part) {
                Some(at) => name = name.get(at + part.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        true
    }
}

impl fmt::Debug for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.globs.iter().map(|glob| {
            let parts: Vec<_> = glob
                .parts
                .iter()
                .map(|part| String::from_utf8_lossy(part))
                .collect();
            parts.join("*")
        });
        f.debug_set().entries(texts).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_patterns() {
        let set = NameSet::new(
            [
                "_ga",
                "_ga_*",
                "*UserID",
                "a*b*c",
                "pll.language",
                "DW*",
                "",
            ]
            .map(str::as_bytes),
        );
        for (name, wanted) in [
            ("_ga", true),
            ("_gax", false),
            ("_ga_X", true),
            ("wikiUserID", true),
            ("UserID", true),
            ("UserIDs", false),
            ("abc", true),
            ("axxbxxc", true),
            ("acb", false),
            ("ac", false),
            ("pll_language", true),
            ("DW", true),
            ("DW0", true),
            ("dw", false),
            ("", true),
        ] {
            assert_eq!(set.has(name.as_bytes()), wanted, "{name}");
        }
        assert!(!NameSet::default().has(b""));
        assert!(!NameSet::default().has(b"a"));
        assert!(NameSet::new([&b"*"[..]]).has(b"anything"));
        let both = set.or(&NameSet::new([&b"z*"[..]]));
        assert!(both.has(b"zone") && both.has(b"_ga") && !both.has(b"other"));
    }

    #[test]
    fn the_parts_of_a_pattern_do_not_overlap() {
        let set = NameSet::new([&b"ab*ba"[..]]);
        assert!(!set.has(b"aba"));
        assert!(set.has(b"abba"));
    }

    #[test]
    fn more_patterns_than_can_be_numbered_leave_the_first_in_force() {
        let many: Vec<String> = (0..=u16::MAX).map(|number| format!("a{number}")).collect();
        let set = NameSet::new(many.iter().chain(&many).map(String::as_bytes));
        assert!(set.has(b"a0") && set.has(b"a9999"));
        assert!(!set.has(b"b"));
    }
}
