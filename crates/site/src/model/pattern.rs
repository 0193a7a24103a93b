//! A regular expression (PCRE, as in nginx), with the slots that its named groups fill.
//!
//! A large configuration has thousands of expressions of which a server needs few, and machine code takes four
//! times as long as the check of the text. So an expression gets its machine code with its first match.

use std::sync::OnceLock;

use pcre2::Error;
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::ids::SlotId;

/// The largest stack of a match. The library's default of 32 KB is enough for a few thousand
/// repetitions of a group, which a long path exceeds.
const LARGE_STACK_BYTES: usize = 1024 * 1024;
/// `PCRE2_ERROR_JIT_STACKLIMIT`
const STACK_USED_UP: i32 = -46;

/// A compiled pattern.
pub struct Pattern {
    pub source: String,
    /// Named groups: group number and the slot it is written to.
    pub named: Vec<(usize, SlotId)>,
    is_caseless: bool,
    /// The checked text, without machine code.
    interpreted: Regex,
    /// The expression as machine code, once there was a match.
    machine_code: OnceLock<Regex>,
    /// The expression with a large stack, once that was needed. A stack costs two system calls for each match,
    /// which the usual one does without.
    with_large_stack: OnceLock<Result<Regex, Error>>,
}

impl Pattern {
    /// Creates a pattern. `interpreted` was compiled from `source`, without machine code.
    pub(crate) fn new(
        source: &str,
        is_caseless: bool,
        interpreted: Regex,
        named: Vec<(usize, SlotId)>,
    ) -> Pattern {
        Pattern {
            source: source.to_owned(),
            named,
            is_caseless,
            interpreted,
            machine_code: OnceLock::new(),
            with_large_stack: OnceLock::new(),
        }
    }

    /// Returns the expression, for callers that treat a match that gives up as the unsafe answer.
    pub(crate) fn regex(&self) -> &Regex {
        self.machine_code.get_or_init(|| {
            self.builder()
                .build(&self.source)
                .unwrap_or_else(|_| self.interpreted.clone())
        })
    }

    /// Compiles to machine code.
    fn builder(&self) -> RegexBuilder {
        let mut builder = RegexBuilder::new();
        builder.jit_if_available(true).caseless(self.is_caseless);
        builder
    }

    /// The number of groups, with the whole match.
    pub fn group_count(&self) -> usize {
        self.interpreted.captures_len()
    }

    /// Does it match `subject`?
    ///
    /// # Errors
    /// The library gave up: whether the pattern matches is not known.
    pub fn is_match(&self, subject: &[u8]) -> Result<bool, Error> {
        match self.regex().is_match(subject) {
            Err(error) if error.code() == STACK_USED_UP => {
                self.with_large_stack()?.is_match(subject)
            }
            decided => decided,
        }
    }

    /// Returns the positions of its groups in `subject`; `None` if it does not match.
    ///
    /// # Errors
    /// The errors of [`Self::is_match`].
    pub fn captures(&self, subject: &[u8]) -> Result<Option<CaptureLocations>, Error> {
        match captures(self.regex(), subject) {
            Err(error) if error.code() == STACK_USED_UP => {
                captures(self.with_large_stack()?, subject)
            }
            decided => decided,
        }
    }

    #[cold]
    fn with_large_stack(&self) -> Result<&Regex, Error> {
        let built = self.with_large_stack.get_or_init(|| {
            self.builder()
                .max_jit_stack_size(Some(LARGE_STACK_BYTES))
                .build(&self.source)
        });
        built.as_ref().map_err(Error::clone)
    }
}

fn captures(regex: &Regex, subject: &[u8]) -> Result<Option<CaptureLocations>, Error> {
    let mut locations = regex.capture_locations();
    let found = regex.captures_read(&mut locations, subject)?;
    Ok(found.map(|_| locations))
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(source: &str, is_caseless: bool) -> Pattern {
        let built = RegexBuilder::new().caseless(is_caseless).build(source);
        Pattern::new(source, is_caseless, built.unwrap(), Vec::new())
    }

    #[test]
    fn a_match_that_uses_up_the_small_stack_is_made_with_a_large_one() {
        let subject = format!("{}END", "ab".repeat(4000));
        for (source, is_caseless, wanted) in [
            ("^(?:(a)|(b))*END$", false, true),
            ("^(?:(a)|(b))*aEND$", false, false),
            ("^(?:(a)|(b))*end$", true, true),
        ] {
            let pattern = pattern(source, is_caseless);
            let found = pattern.captures(subject.as_bytes()).unwrap();
            assert_eq!(found.is_some(), wanted, "{source}");
            let last = found.and_then(|groups| groups.get(2));
            assert_eq!(last, wanted.then_some((7999, 8000)), "{source}");
            assert_eq!(pattern.is_match(subject.as_bytes()).unwrap(), wanted);
            assert!(pattern.with_large_stack.get().is_some(), "{source}");
        }
    }

    #[test]
    fn an_expression_gets_its_machine_code_with_its_first_match() {
        let pattern = pattern("^/(?<name>a+)\\.PHP$", true);
        assert_eq!(pattern.group_count(), 2);
        assert!(pattern.machine_code.get().is_none());
        let groups = pattern.captures(b"/aa.php").unwrap().unwrap();
        assert_eq!(groups.get(1), Some((1, 3)));
        assert!(pattern.machine_code.get().is_some());
    }

    #[test]
    fn what_takes_too_many_steps_is_an_error() {
        let pattern = pattern("(?:(a+)+!|end)", false);
        let subject = format!("{}end", "a".repeat(40));
        assert!(pattern.is_match(subject.as_bytes()).is_err());
        assert!(pattern.captures(subject.as_bytes()).is_err());
        assert!(pattern.is_match(b"aa!").unwrap());
    }
}
