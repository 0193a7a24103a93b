//! Reads typed values of directives (sizes, times, numbers, words): the value of the nearest
//! level, or the default.
//!
//! A value that cannot be read is reported, and the default is used, so that the rest of the
//! file is read too.

use std::time::Duration;

use nginx_conf::{
    Diagnostic, Span, ValueError, Word, did_you_mean, either, parse_duration, parse_on_off,
    parse_size,
};

use super::Lowering;
use super::level::Level;
use crate::directives::declaration::{ANY_NUMBER, Declaration, Lines, Size, ValueType, choose};
use crate::model::Template;

/// A word, and the flag that it sets.
pub(crate) type FlagWord<F> = (&'static str, fn(&mut F) -> &mut bool);

/// `max=N [inactive=TIME] [valid=TIME] [min_uses=N]` of a cache of open files or certificates.
pub(crate) struct CacheBounds {
    pub max: usize,
    pub inactive: Duration,
    pub valid: Duration,
    pub min_uses: u32,
}

impl Lowering<'_> {
    /// The value; an error is reported.
    pub fn valid<T>(&mut self, value: Result<T, ValueError>, word: &Word) -> Option<T> {
        value.map_err(|error| self.report(error.at(word))).ok()
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    /// Reports an error with what is wrong there, or what was expected.
    pub fn refuse(&mut self, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.report(Diagnostic::error(span, message).label(label));
    }

    /// Reports an invalid value, and the expected form.
    pub fn invalid(&mut self, word: &Word, what: &str, expected: impl Into<String>) {
        let message = format!("invalid {what} \"{word}\"");
        self.refuse(word.span, message, expected);
    }

    /// Reports an invalid parameter, with the one of `known` that was probably meant.
    pub fn unknown_parameter(&mut self, word: &Word, name: &str, of: &str, known: &str) {
        let known: Vec<&str> = known.split(' ').collect();
        let message = format!("invalid parameter \"{word}\" of \"{of}\"");
        let mut error =
            Diagnostic::error(word.span, message).label(format!("expected {}", either(&known)));
        let meant = did_you_mean(name, known).filter(|meant| *meant != name);
        error.hint = meant.map(|meant| format!("did you mean \"{meant}\"?"));
        self.report(error);
    }

    /// The flags whose words stand in the lines of a list; `None` without a line. With `has_off`, the
    /// word `off` clears all of them.
    pub fn flags<F: Default>(
        &mut self,
        level: &Level<'_>,
        name: &str,
        words: &[FlagWord<F>],
        has_off: bool,
    ) -> Option<F> {
        let nodes = level.all(name).to_vec();
        let mut flags = F::default();
        let mut is_off = false;
        for word in nodes.iter().flat_map(|node| node.args()) {
            match words.iter().find(|it| word.eq_ignore_ascii_case(it.0)) {
                Some((_, flag)) => *flag(&mut flags) = true,
                None if has_off && word.text == "off" => is_off = true,
                None => {
                    let known = words.iter().map(|it| it.0);
                    let known: Vec<&str> = known.chain(has_off.then_some("off")).collect();
                    self.unknown_parameter(word, word, name, &known.join(" "));
                }
            }
        }
        let flags = if is_off { F::default() } else { flags };
        (!nodes.is_empty()).then_some(flags)
    }

    /// The bounds of a cache by `known` parameters; `None`: off. `inactive` is the default.
    pub fn cache_bounds(
        &mut self,
        level: &Level<'_>,
        name: &str,
        inactive: Duration,
        known: &str,
    ) -> Option<CacheBounds> {
        let node = level.unless_off(name)?;
        let mut max = None;
        let (mut inactive, mut valid, mut min_uses) = (inactive, seconds(60), 1);
        for word in node.args() {
            match word.split_once('=') {
                Some((parameter, text)) if known.split(' ').any(|it| it == parameter) => {
                    match parameter {
                        "max" => max = self.number_in(word, text).map(to_usize),
                        "inactive" => inactive = self.duration_in(word, text)?,
                        "valid" => valid = self.duration_in(word, text)?,
                        _ => min_uses = self.number_in(word, text).map(to_u32)?,
                    }
                }
                _ => self.unknown_parameter(word, word, name, known),
            }
        }
        if max.is_none() {
            let message = format!("\"{name}\" must have the \"max\" parameter");
            self.error(node.span(), message);
        }
        Some(CacheBounds {
            max: max?,
            inactive,
            valid,
            min_uses,
        })
    }

    /// The value of the nearest line, or the default of the directive's declaration.
    pub fn value<V: ValueType>(
        &mut self,
        level: &Level<'_>,
        directive: Declaration<V>,
    ) -> V::Value {
        let default = directive.entry.default.unwrap_or_default();
        self.given(level, directive)
            .unwrap_or_else(|| directive.value.default(default))
    }

    /// The value of the nearest line, if there is one. A line without a value is reported.
    pub fn given<V: ValueType>(
        &mut self,
        level: &Level<'_>,
        directive: Declaration<V>,
    ) -> Option<V::Value> {
        let word = level.word(&directive.name())?;
        self.valid(directive.value.parse(word), word)
    }

    pub fn flag_of(&mut self, word: &Word) -> Option<bool> {
        self.valid(parse_on_off(word), word)
    }

    pub fn duration_of(&mut self, word: &Word) -> Option<Duration> {
        self.valid(parse_duration(word), word)
    }

    /// A duration in the part of `word` after `name=`.
    pub fn duration_in(&mut self, word: &Word, text: &str) -> Option<Duration> {
        self.inner(word, text, parse_duration(text))
    }

    /// A size in the part of `word` after `name=`.
    pub fn size_in(&mut self, word: &Word, text: &str) -> Option<u64> {
        self.inner(word, text, parse_size(text))
    }

    /// Reports an error about `text`, the end of `word`, at its position in the word.
    fn inner<T>(&mut self, word: &Word, text: &str, value: Result<T, ValueError>) -> Option<T> {
        let before = word.len().saturating_sub(text.len());
        let shifted = value.map_err(|mut error| {
            error.range = error.range.start + before..error.range.end + before;
            error
        });
        self.valid(shifted, word)
    }

    pub fn size_of(&mut self, word: &Word) -> Option<u64> {
        self.valid(parse_size(word), word)
    }

    pub fn number_of(&mut self, word: &Word) -> Option<u64> {
        self.valid(ANY_NUMBER.parse(word), word)
    }

    /// A number in the part of `word` after `name=`.
    pub fn number_in(&mut self, word: &Word, text: &str) -> Option<u64> {
        self.inner(word, text, ANY_NUMBER.parse(text))
    }

    /// `NUMBER SIZE`, as of buffers.
    pub fn buffers(&mut self, level: &Level<'_>, buffers: Declaration<Lines>) -> (u64, u64) {
        let given = level.find(&buffers.name()).and_then(|node| {
            let count = self.number_of(node.arg(0)).filter(|&count| count > 0);
            let size = self.size_of(node.arg(1)).filter(|&size| size > 0);
            count.zip(size)
        });
        given.unwrap_or_else(|| {
            let mut words = buffers.default_words();
            let mut next = || words.next().unwrap_or_default();
            (ANY_NUMBER.default(next()), Size.default(next()))
        })
    }

    pub fn choice_of<T: Copy>(&mut self, word: &Word, choices: &[(&str, T)]) -> Option<T> {
        self.valid(choose(choices, word), word)
    }

    /// A template, or nothing if no level has one.
    pub fn optional_template(&mut self, level: &Level<'_>, name: &str) -> Option<Template> {
        let node = level.find(name)?;
        Some(self.template(node.arg(0)))
    }

    /// The templates of all arguments of all lines.
    pub fn templates(&mut self, level: &Level<'_>, name: &str) -> Vec<Template> {
        let words = level.all(name).iter().flat_map(|node| node.args());
        words.map(|word| self.template(word)).collect()
    }

    /// A status code between `lowest` and `highest`.
    pub fn status_of(&mut self, word: &Word, text: &str, lowest: u16, highest: u16) -> Option<u16> {
        let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = text.parse::<u16>().ok().filter(|_| digits);
        let status = status.filter(|status| (lowest..=highest).contains(status));
        if status.is_none() {
            let message = format!("invalid status \"{text}\"");
            let expected = format!("expected a status between {lowest} and {highest}");
            self.refuse(word.span, message, expected);
        }
        status
    }
}

/// The part after `NAME=`.
pub(crate) fn parameter<'w>(word: &'w Word, name: &str) -> Option<&'w str> {
    word.text.strip_prefix(name)?.strip_prefix('=')
}

/// Returns the place of a value in a list, which gets it unless it has an equal.
pub(crate) fn place_in<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    let known = list.iter().position(|known| *known == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// Seconds, for tables of defaults.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

pub(crate) fn lower_bytes(text: &str) -> Box<[u8]> {
    text.to_ascii_lowercase().into_bytes().into()
}

pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn to_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
