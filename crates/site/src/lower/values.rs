//! Reads typed values of directives (sizes, times, numbers, words): the value of the nearest
//! level, or the default.
//!
//! A value that cannot be read is reported, and the default is used, so that the rest of the
//! file is read too.

use std::time::Duration;

use nginx_conf::{Diagnostic, Span, ValueError, Word, parse_duration, parse_on_off, parse_size};

use super::Lowering;
use super::level::Level;
use crate::directives::declared::{ANY_NUMBER, Declared, Lines, Size, ValueType, choose};
use crate::model::Template;

impl Lowering<'_> {
    /// The value; an error is reported.
    pub fn valid<T>(&mut self, value: Result<T, ValueError>, word: &Word) -> Option<T> {
        value.map_err(|error| self.report(error.at(word))).ok()
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    /// Reports an invalid value, and the expected form.
    pub fn invalid(&mut self, word: &Word, what: &str, expected: impl Into<String>) {
        let message = format!("invalid {what} \"{word}\"");
        self.report(Diagnostic::error(word.span, message).label(expected));
    }

    /// The value of the nearest line, or the default of the directive's declaration.
    pub fn value<V: ValueType>(&mut self, level: &Level<'_>, directive: Declared<V>) -> V::Value {
        let default = directive.entry.default.unwrap_or_default();
        self.given(level, directive)
            .unwrap_or_else(|| directive.value.default(default))
    }

    /// The value of the nearest line, if there is one. A line without a value is reported.
    pub fn given<V: ValueType>(
        &mut self,
        level: &Level<'_>,
        directive: Declared<V>,
    ) -> Option<V::Value> {
        let word = level.find(&directive.name())?.arg(0);
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
    pub fn buffers(&mut self, level: &Level<'_>, buffers: Declared<Lines>) -> (u64, u64) {
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
            self.report(Diagnostic::error(word.span, message).label(expected));
        }
        status
    }
}

/// The part after `NAME=`.
pub(crate) fn parameter<'w>(word: &'w Word, name: &str) -> Option<&'w str> {
    word.text.strip_prefix(name)?.strip_prefix('=')
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
