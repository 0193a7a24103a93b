//! Regular expressions as Apache compiles them: `.` matches every byte, and `$` only the end.

use crate::anchors::anchored;
use pcre2::bytes::{Regex, RegexBuilder};

/// A longer pattern is no pattern that was written by hand.
const MAX_PATTERN_BYTES: usize = 8192;
/// How often a match may try again. A usual one needs some hundreds.
const MATCH_LIMIT: u32 = 50_000;
/// Matches that are replaced in one value, and the bytes that it may come to.
const MAX_REPLACED: usize = 1000;
const MAX_REPLACED_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// The pattern was given up, so it is not known whether it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

/// The groups of a match, the whole match first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(Vec<Option<Vec<u8>>>);

impl Groups {
    pub fn get(&self, number: usize) -> &[u8] {
        let group = self.0.get(number).and_then(Option::as_deref);
        group.unwrap_or_default()
    }
}

impl Pattern {
    /// `None` if the text is no pattern.
    pub fn new(text: &str, is_caseless: bool) -> Option<Pattern> {
        if text.len() > MAX_PATTERN_BYTES || text.contains('\0') {
            return None;
        }
        // A `$` that means the end matches before no line break.
        let text = format!(
            "(*LIMIT_MATCH={MATCH_LIMIT}){}",
            anchored(text, "^", "\\z", ".")
        );
        let mut builder = RegexBuilder::new();
        builder.caseless(is_caseless).dotall(true);
        builder.jit_if_available(true);
        builder.build(&text).ok().map(Pattern)
    }

    /// # Errors
    /// It took too long to find out.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, GaveUp> {
        self.0.is_match(subject).map_err(|_| GaveUp)
    }

    /// # Errors
    /// It took too long to find out.
    pub fn groups(&self, subject: &[u8]) -> Result<Option<Groups>, GaveUp> {
        let mut places = self.0.capture_locations();
        let found = self.0.captures_read(&mut places, subject);
        if found.map_err(|_| GaveUp)?.is_none() {
            return Ok(None);
        }
        let group = |number| {
            let (begin, end) = places.get(number)?;
            subject.get(begin..end).map(<[u8]>::to_vec)
        };
        Ok(Some(Groups((0..places.len()).map(group).collect())))
    }

    /// The subject with the first match, or each, replaced by `to`, in which `$1` stands for a group. A pattern that gave up
    /// replaces nothing.
    pub fn replaced(&self, subject: &[u8], to: &[u8], is_global: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        for found in self.0.captures_iter(subject).take(MAX_REPLACED) {
            let (Ok(groups), true) = (found, out.len() < MAX_REPLACED_BYTES) else {
                return subject.to_vec();
            };
            let group = |number| groups.get(number).map(|it| it.as_bytes().to_vec());
            let places = groups.get(0).map_or(at..at, |it| it.start()..it.end());
            let groups = Groups((0..groups.len()).map(group).collect());
            out.extend_from_slice(&subject[at..places.start]);
            out.extend(crate::rewriting::substituted(to, &groups));
            at = places.end;
            if !is_global {
                break;
            }
        }
        out.extend_from_slice(&subject[at..]);
        out
    }
}

/// Whether a shell's pattern (`*`, `?`, `[a-z]`) matches the whole of a name.
pub fn fits_glob(glob: &[u8], name: &[u8], is_caseless: bool) -> bool {
    let same = |a: u8, b: u8| a == b || is_caseless && a.eq_ignore_ascii_case(&b);
    let (mut at, mut in_name) = (0, 0);
    // The position of the last `*`, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        let byte = name[in_name];
        let step = match glob.get(at) {
            Some(b'*') => {
                star = Some((at + 1, in_name));
                at += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => match class(&glob[at..], byte, is_caseless) {
                Some((length, true)) => Some(length),
                Some((_, false)) => None,
                None => same(b'[', byte).then_some(1),
            },
            Some(b'\\') if at + 1 < glob.len() => same(glob[at + 1], byte).then_some(2),
            Some(&other) => same(other, byte).then_some(1),
            None => None,
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                in_name += 1;
            }
            (None, Some((after, taken))) => {
                star = Some((after, taken + 1));
                (at, in_name) = (after, taken + 1);
            }
            (None, None) => return false,
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

/// The bytes of a class at the begin of `glob`, and whether `byte` is in it; `None` if it has no end.
fn class(glob: &[u8], byte: u8, is_caseless: bool) -> Option<(usize, bool)> {
    let is_negated = matches!(glob.get(1), Some(b'!' | b'^'));
    let begin = if is_negated { 2 } else { 1 };
    let length = glob.iter().skip(begin + 1).position(|it| *it == b']')? + begin + 1;
    let inside = &glob[begin..length];
    let mut is_in = false;
    let mut rest = inside;
    let lower = byte.to_ascii_lowercase();
    let upper = byte.to_ascii_uppercase();
    while let [first, after @ ..] = rest {
        let (last, after) = match after {
            [b'-', last, after @ ..] => (last, after),
            _ => (first, after),
        };
        let range = *first..=*last;
        is_in |= range.contains(&byte)
            || is_caseless && (range.contains(&lower) || range.contains(&upper));
        rest = after;
    }
    Some((length + 1, is_in != is_negated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_whole_names() {
        for (glob, name, fits) in [
            ("*", "", true),
            ("*.php", "a.php", true),
            ("*.php", "a.php.x", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("*a*b", "xaab", true),
            ("a\\*", "a*", true),
            ("a[", "a[", true),
        ] {
            assert_eq!(
                fits_glob(glob.as_bytes(), name.as_bytes(), false),
                fits,
                "{glob} {name}"
            );
        }
    }

    #[test]
    fn the_end_is_no_line_break() {
        let pattern = Pattern::new("[$]?a\\$?$", false).unwrap();
        assert_eq!(pattern.is_match(b"a"), Ok(true));
        assert_eq!(pattern.is_match(b"a\n"), Ok(false));
    }

    #[test]
    fn a_pattern_that_backtracks_gives_up() {
        let pattern = Pattern::new("^(?:a+)+(?:b|(?=c)x)\\1?()$", false).unwrap();
        assert_eq!(pattern.is_match(&[b'a'; 4000]), Err(GaveUp));
    }
}
