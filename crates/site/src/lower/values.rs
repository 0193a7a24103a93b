//! Reads typed values of directives (sizes, times, numbers, words): the value of the nearest
//! level, or the default.
//!
//! A value that cannot be read is reported, and the default is used, so that the rest of the
//! file is read too.

use std::time::Duration;

use nginx_conf::{
    Diagnostic, Span, ValueError, Word, did_you_mean, parse_duration, parse_on_off, parse_size,
};

use super::Lowering;
use super::level::Level;
use crate::check::either;
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

    /// `on` or `off`.
    pub fn flag(&mut self, level: &Level<'_>, name: &str, default: bool) -> bool {
        let Some(node) = level.find(name) else {
            return default;
        };
        self.flag_of(node.arg(0)).unwrap_or(default)
    }

    pub fn flag_of(&mut self, word: &Word) -> Option<bool> {
        self.valid(parse_on_off(word), word)
    }

    pub fn duration(&mut self, level: &Level<'_>, name: &str, default: Duration) -> Duration {
        let Some(node) = level.find(name) else {
            return default;
        };
        self.duration_of(node.arg(0)).unwrap_or(default)
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

    pub fn size(&mut self, level: &Level<'_>, name: &str, default: u64) -> u64 {
        let Some(node) = level.find(name) else {
            return default;
        };
        self.size_of(node.arg(0)).unwrap_or(default)
    }

    pub fn size_of(&mut self, word: &Word) -> Option<u64> {
        self.valid(parse_size(word), word)
    }

    pub fn number(&mut self, level: &Level<'_>, name: &str, default: u64) -> u64 {
        let Some(node) = level.find(name) else {
            return default;
        };
        self.number_of(node.arg(0)).unwrap_or(default)
    }

    pub fn number_of(&mut self, word: &Word) -> Option<u64> {
        self.number_in(word, word)
    }

    /// A whole number that fits in an `i64`, as nginx's numbers do.
    pub fn number_in(&mut self, word: &Word, text: &str) -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<i64>().ok().filter(|_| is_number);
        if number.is_none() {
            let start = word.len().saturating_sub(text.len());
            let span = word.part(start..word.len());
            self.report(
                Diagnostic::error(span, format!("invalid number \"{text}\""))
                    .label("expected a whole number"),
            );
        }
        number.and_then(|number| u64::try_from(number).ok())
    }

    /// `NUMBER SIZE`, as of buffers.
    pub fn buffers(&mut self, level: &Level<'_>, name: &str, default: (u64, u64)) -> (u64, u64) {
        let Some(node) = level.find(name) else {
            return default;
        };
        let count = self.number_of(node.arg(0)).filter(|&count| count > 0);
        let size = self.size_of(node.arg(1)).filter(|&size| size > 0);
        match (count, size) {
            (Some(count), Some(size)) => (count, size),
            _ => default,
        }
    }

    /// One of several words.
    pub fn choice<T: Copy>(
        &mut self,
        level: &Level<'_>,
        name: &str,
        choices: &[(&str, T)],
        default: T,
    ) -> T {
        let Some(node) = level.find(name) else {
            return default;
        };
        self.choice_of(node.arg(0), choices).unwrap_or(default)
    }

    pub fn choice_of<T: Copy>(&mut self, word: &Word, choices: &[(&str, T)]) -> Option<T> {
        let found = choices
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name));
        if let Some((_, value)) = found {
            return Some(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("invalid value \"{word}\"");
        let mut diagnostic =
            Diagnostic::error(word.span, message).label(format!("expected {}", either(&names)));
        if let Some(meant) = did_you_mean(word, names.iter().copied()) {
            diagnostic = diagnostic.hint(format!("did you mean \"{meant}\"?"));
        }
        self.report(diagnostic);
        None
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
