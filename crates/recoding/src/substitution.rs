//! `sub_filter`: strings of a body that are replaced while it is sent
//! (<https://nginx.org/en/docs/http/ngx_http_sub_module.html>).
//!
//! ```text
//! push ─► pending ─► step: text | string number N is here | more is needed
//! ```
//!
//! The first occurrence counts, and of several that begin at the same byte the one that is written first. ASCII
//! letters are compared without their case. Only the beginning of a string whose rest has not come yet is kept
//! back. The replacement of a string is known to the caller alone.

use bytes::{Buf, Bytes};

/// Strings that are looked for in one body.
pub struct Substitution {
    /// An empty one is never found.
    strings: Vec<SearchedString>,
    /// With which bytes one of the strings begins.
    begins: Box<[bool; 256]>,
    /// Each string is replaced once.
    once: bool,
    pending: Bytes,
    has_ended: bool,
}

struct SearchedString {
    bytes: Box<[u8]>,
    is_done: bool,
}

/// The next part of a substituted body.
#[derive(Debug, PartialEq, Eq)]
pub enum SubstitutionStep {
    Text(Bytes),
    /// The string of this number has been found and taken out.
    Found(usize),
    /// Nothing, until more is pushed. After [`Substitution::end`]: the body has ended.
    NeedsMore,
}

enum StringSearch {
    Whole(usize),
    /// It has only begun.
    Begun,
    None,
}

impl Substitution {
    /// `None` if all strings are empty.
    pub fn new(strings: impl IntoIterator<Item = Vec<u8>>, once: bool) -> Option<Substitution> {
        let mut begins = Box::new([false; 256]);
        let mut searched = Vec::new();
        for bytes in strings {
            if let Some(&first) = bytes.first() {
                for byte in [first.to_ascii_lowercase(), first.to_ascii_uppercase()] {
                    begins[usize::from(byte)] = true;
                }
            }
            searched.push(SearchedString {
                is_done: bytes.is_empty(),
                bytes: bytes.into(),
            });
        }
        let is_any = searched.iter().any(|string| !string.is_done);
        is_any.then_some(Substitution {
            strings: searched,
            begins,
            once,
            pending: Bytes::new(),
            has_ended: false,
        })
    }

    /// Takes in the next piece. All steps of the one before have been taken.
    pub fn push(&mut self, bytes: Bytes) {
        self.pending = match self.pending.is_empty() {
            true => bytes,
            false => [&self.pending[..], &bytes[..]].concat().into(),
        };
    }

    /// The body has ended: a string that has begun stays as it is.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    pub fn step(&mut self) -> SubstitutionStep {
        if self.strings.iter().all(|string| string.is_done) {
            return text(std::mem::take(&mut self.pending));
        }
        for (at, byte) in self.pending.iter().enumerate() {
            if !self.begins[usize::from(*byte)] {
                continue;
            }
            let found = self.look(self.pending.get(at..).unwrap_or_default());
            if at > 0 && !matches!(found, StringSearch::None) {
                return SubstitutionStep::Text(self.pending.split_to(at));
            }
            match found {
                StringSearch::Whole(number) => return self.take(number),
                StringSearch::Begun => return SubstitutionStep::NeedsMore,
                StringSearch::None => {}
            }
        }
        text(std::mem::take(&mut self.pending))
    }

    /// Looks whether one of the strings begins where `bytes` do.
    fn look(&self, bytes: &[u8]) -> StringSearch {
        for (number, string) in self.strings.iter().enumerate() {
            if string.is_done {
                continue;
            }
            let length = string.bytes.len().min(bytes.len());
            let (there, wanted) = (&bytes[..length], &string.bytes[..length]);
            if !there.eq_ignore_ascii_case(wanted) {
                continue;
            }
            if length == string.bytes.len() {
                return StringSearch::Whole(number);
            }
            if !self.has_ended {
                return StringSearch::Begun;
            }
        }
        StringSearch::None
    }

    fn take(&mut self, number: usize) -> SubstitutionStep {
        if let Some(string) = self.strings.get_mut(number) {
            self.pending.advance(string.bytes.len());
            string.is_done = self.once;
        }
        SubstitutionStep::Found(number)
    }
}

fn text(bytes: Bytes) -> SubstitutionStep {
    match bytes.is_empty() {
        true => SubstitutionStep::NeedsMore,
        false => SubstitutionStep::Text(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: [&str; 3] = ["+", "-", "*"];

    /// `text` in pieces of `size` bytes, with each string that is found replaced by a sign.
    fn replaced(strings: &[&str], once: bool, text: &str, size: usize) -> String {
        let strings = strings.iter().map(|string| string.as_bytes().to_vec());
        let mut substitution = Substitution::new(strings, once).unwrap();
        let mut out = Vec::new();
        let mut pieces = text.as_bytes().chunks(size);
        loop {
            match substitution.step() {
                SubstitutionStep::Text(bytes) => out.extend_from_slice(&bytes),
                SubstitutionStep::Found(number) => out.extend_from_slice(WITH[number].as_bytes()),
                SubstitutionStep::NeedsMore => match pieces.next() {
                    Some(piece) => substitution.push(Bytes::copy_from_slice(piece)),
                    None if substitution.has_ended => return String::from_utf8(out).unwrap(),
                    None => substitution.end(),
                },
            }
        }
    }

    #[test]
    fn strings_are_replaced_however_the_body_is_cut() {
        for (strings, once, text, wanted) in [
            (&["foo"][..], true, "foofoo", "+foo"),
            (&["foo"], false, "FOOfoofo", "++fo"),
            (&["abac"], true, "abaabac", "aba+"),
            (&["aab"], false, "aaaab", "aa+"),
            (&["aabb", "aaabb"], false, "aabbaaabbaabb", "+-+"),
            (&["aacbb", "aadbb"], false, "aadbbaacbb", "-+"),
            (&["AAB", "yyz"], true, "yyzyyzaabaabyyz", "-yyz+aabyyz"),
            (
                &["abpatternyz", "abpa", "tter"],
                false,
                "abpatternyABabpatternyz",
                "-*nyAB+",
            ),
            // The one that is written first, although a shorter one ends before it.
            (&["abc", "ab"], false, "abcab", "+-"),
            (&["", "x"], false, "axb", "a-b"),
            (&["é", "x"], false, "aéx", "a+-"),
        ] {
            for size in 1..=text.len() {
                let found = replaced(strings, once, text, size);
                assert_eq!(found, wanted, "{strings:?} in {text}, cut at {size}");
            }
        }
    }

    #[test]
    fn only_what_may_be_a_string_is_kept_back() {
        let mut substitution = Substitution::new([b"zab".to_vec()], true).unwrap();
        substitution.push(Bytes::from_static(b"xyz"));
        assert_eq!(substitution.step(), SubstitutionStep::Text("xy".into()));
        assert_eq!(substitution.step(), SubstitutionStep::NeedsMore);
        substitution.push(Bytes::from_static(b"w"));
        assert_eq!(substitution.step(), SubstitutionStep::Text("zw".into()));
        assert_eq!(substitution.step(), SubstitutionStep::NeedsMore);
    }

    #[test]
    fn empty_strings_are_never_found() {
        assert!(Substitution::new([Vec::new(), Vec::new()], false).is_none());
    }
}
