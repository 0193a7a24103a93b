//! The declaration of a directive: its entry of the table, and the type of its value.
//!
//! A directive whose value is one word is declared as a constant, through which the lowering reads
//! it. Syntax, default and inheritance come from the same line. The compiler warns of a constant
//! that is never read.

use std::borrow::Cow;
use std::time::Duration;

use nginx_conf::{ValueError, did_you_mean, either, parse_duration, parse_on_off, parse_size};

use super::{Context, Directive, DirectiveEnding, Effect, Inheritance};

/// Declares the table of a section, and a constant for each directive that is named.
macro_rules! table {
    ($($name:tt $(: $kind:ty)? = $declared:expr;)*) => {
        pub(super) const TABLE: &[Directive] = &[$($declared.entry),*];
        $($(pub(crate) const $name: Declaration<$kind> = $declared;)?)*
    };
}
pub(super) use table;

pub(super) const MAIN: &[Context] = &[Context::Main];
pub(super) const EVENTS: &[Context] = &[Context::Events];
pub(super) const HTTP: &[Context] = &[Context::Http];
pub(super) const SERVERS: &[Context] = &[Context::Http, Context::Server];
pub(super) const LEVELS: &[Context] = &[Context::Http, Context::Server, Context::Location];
#[rustfmt::skip]
pub(super) const LEVELS_AND_IF: &[Context] =
    &[Context::Http, Context::Server, Context::Location, Context::LocationIf];
pub(super) const LOCATION: &[Context] = &[Context::Location];
pub(super) const UPSTREAM: &[Context] = &[Context::Upstream];
pub(super) const POOL: &[Context] = &[Context::PhpPool];

/// The number of arguments of a list without an end.
pub(super) const MANY: usize = usize::MAX;

/// A directive with the type of its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declaration<V> {
    pub entry: Directive,
    pub value: V,
    /// The prefix that stands for the `*` of a family.
    prefix: &'static str,
}

/// The type of a value that is one word.
pub(crate) trait ValueType: Copy {
    type Value;

    fn parse(self, text: &str) -> Result<Self::Value, ValueError>;

    /// The value of the directive's default, or of an empty text where it has none.
    fn default(self, text: &str) -> Self::Value;
}

/// Arguments that the lowering of the directive reads itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines;

/// `on` or `off`
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Time;

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size;

/// A whole number from `least` to `most`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    least: u64,
    most: u64,
}

/// A whole number that fits in an `i64`, as nginx's numbers do.
pub(crate) const ANY_NUMBER: Number = Number {
    least: 0,
    most: i64::MAX as u64,
};

/// One of several words, in any case of letters, with the value of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

/// A value, or `off`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrOff<V>(V);

/// Implements [`ValueType`] where the type of the value has a default of its own.
macro_rules! value_type {
    ($kind:ty, $value:ty, $parse:expr) => {
        impl ValueType for $kind {
            type Value = $value;

            fn parse(self, text: &str) -> Result<$value, ValueError> {
                $parse(self, text)
            }

            fn default(self, text: &str) -> $value {
                self.parse(text).unwrap_or_default()
            }
        }
    };
}

value_type!(Flag, bool, |_, text| parse_on_off(text));
value_type!(Time, Duration, |_, text| parse_duration(text));
value_type!(Size, u64, |_, text| parse_size(text));
value_type!(Number, u64, parse_number);
value_type!(OrOff<Time>, Option<Duration>, or_off);
value_type!(OrOff<Number>, Option<u64>, or_off);

fn parse_number(number: Number, text: &str) -> Result<u64, ValueError> {
    let error = |expected| ValueError {
        message: format!("invalid number \"{text}\""),
        expected,
        range: 0..text.len(),
        hint: None,
    };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse::<u64>().ok().filter(|_| is_number);
    let Some(parsed) = parsed.filter(|&parsed| parsed <= ANY_NUMBER.most) else {
        return Err(error("expected a whole number".into()));
    };
    match (number.least..=number.most).contains(&parsed) {
        true => Ok(parsed),
        false if number.most == ANY_NUMBER.most => {
            Err(error(format!("expected at least {}", number.least).into()))
        }
        false => {
            let (least, most) = (number.least, number.most);
            Err(error(format!("expected {least} to {most}").into()))
        }
    }
}

fn or_off<V: ValueType>(kind: OrOff<V>, text: &str) -> Result<Option<V::Value>, ValueError> {
    match text {
        "off" => Ok(None),
        text => kind.0.parse(text).map(Some),
    }
}

impl<T: Copy> ValueType for Choice<T> {
    type Value = T;

    fn parse(self, text: &str) -> Result<T, ValueError> {
        choose(self.0, text)
    }

    fn default(self, text: &str) -> T {
        choose(self.0, text).unwrap_or(self.0[0].1)
    }
}

/// The value of the word that `text` is.
pub(crate) fn choose<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, ValueError> {
    let mut known = words.iter();
    if let Some((_, value)) = known.find(|(word, _)| text.eq_ignore_ascii_case(word)) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let meant = did_you_mean(text, known.iter().copied());
    Err(ValueError {
        message: format!("invalid value \"{text}\""),
        expected: format!("expected {}", either(&known)).into(),
        range: 0..text.len(),
        hint: meant.map(|meant| format!("did you mean \"{meant}\"?")),
    })
}

/// A directive that its own lowering reads; an inner block does not inherit it.
pub(super) const fn lines(
    name: &'static str,
    contexts: &'static [Context],
    arguments: (usize, usize),
    syntax: &'static str,
) -> Declaration<Lines> {
    Declaration::new(name, contexts, arguments, syntax, Lines)
}

pub(super) const fn flag(
    name: &'static str,
    contexts: &'static [Context],
    default: &'static str,
) -> Declaration<Flag> {
    Declaration::word(name, contexts, "on | off", Flag).default(default)
}

pub(super) const fn time(name: &'static str, contexts: &'static [Context]) -> Declaration<Time> {
    Declaration::word(name, contexts, "TIME", Time)
}

pub(super) const fn size(name: &'static str, contexts: &'static [Context]) -> Declaration<Size> {
    Declaration::word(name, contexts, "SIZE", Size)
}

pub(super) const fn number(
    name: &'static str,
    contexts: &'static [Context],
) -> Declaration<Number> {
    Declaration::word(name, contexts, "NUMBER", ANY_NUMBER)
}

pub(super) const fn time_or_off(
    name: &'static str,
    contexts: &'static [Context],
) -> Declaration<OrOff<Time>> {
    Declaration::word(name, contexts, "TIME | off", OrOff(Time)).default("off")
}

pub(super) const fn number_or_off(
    name: &'static str,
    contexts: &'static [Context],
) -> Declaration<OrOff<Number>> {
    Declaration::word(name, contexts, "NUMBER | off", OrOff(ANY_NUMBER)).default("off")
}

pub(super) const fn choice<T: Copy>(
    name: &'static str,
    contexts: &'static [Context],
    syntax: &'static str,
    words: &'static [(&'static str, T)],
) -> Declaration<Choice<T>> {
    assert!(!words.is_empty(), "a choice has words");
    Declaration::word(name, contexts, syntax, Choice(words))
}

impl Declaration<Number> {
    pub(super) const fn range(mut self, least: u64, most: u64) -> Self {
        self.value = Number { least, most };
        self
    }
}

impl<V: Copy> Declaration<V> {
    const fn new(
        name: &'static str,
        contexts: &'static [Context],
        arguments: (usize, usize),
        syntax: &'static str,
        value: V,
    ) -> Self {
        let entry = Directive {
            name,
            contexts,
            arguments,
            syntax,
            ending: DirectiveEnding::Semicolon,
            inheritance: Inheritance::None,
            repeats: false,
            handles_content: false,
            default: None,
            since: "0.1",
            effect: Effect::Works,
            short: "",
            long: "",
            example: "",
        };
        Self {
            entry,
            value,
            prefix: "",
        }
    }

    /// A value of one word. Where several levels may have it, the nearest one counts.
    const fn word(
        name: &'static str,
        contexts: &'static [Context],
        syntax: &'static str,
        value: V,
    ) -> Self {
        let declared = Self::new(name, contexts, (1, 1), syntax, value);
        match contexts.len() {
            1 => declared,
            _ => declared.inherited(),
        }
    }

    /// The directive of a family with the prefix of a protocol.
    pub const fn of(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// The arguments of the default.
    pub fn default_words(&self) -> impl Iterator<Item = &'static str> {
        self.entry.default.unwrap_or_default().split(' ')
    }

    pub fn name(&self) -> Cow<'static, str> {
        match self.entry.name.strip_prefix('*') {
            Some(rest) => format!("{}{rest}", self.prefix).into(),
            None => self.entry.name.into(),
        }
    }

    pub(super) const fn takes(mut self, arguments: (usize, usize), syntax: &'static str) -> Self {
        self.entry.arguments = arguments;
        self.entry.syntax = syntax;
        self
    }

    pub(super) const fn block(mut self) -> Self {
        self.entry.ending = DirectiveEnding::Block;
        self
    }

    pub(super) const fn entries(mut self) -> Self {
        self.entry.ending = DirectiveEnding::Entries;
        self
    }

    pub(super) const fn inherited(mut self) -> Self {
        self.entry.inheritance = Inheritance::Value;
        self
    }

    pub(super) const fn inherited_as_a_whole(mut self) -> Self {
        self.entry.inheritance = Inheritance::Whole;
        self
    }

    pub(super) const fn inherited_and_joined(mut self) -> Self {
        self.entry.inheritance = Inheritance::Joined;
        self
    }

    pub(super) const fn repeats(mut self) -> Self {
        self.entry.repeats = true;
        self
    }

    pub(super) const fn handles_content(mut self) -> Self {
        self.entry.handles_content = true;
        self
    }

    pub(super) const fn default(mut self, default: &'static str) -> Self {
        self.entry.default = Some(default);
        self
    }

    pub(super) const fn ignored(mut self, why: &'static str) -> Self {
        self.entry.effect = Effect::Ignored(why);
        self
    }

    pub(super) const fn missing(mut self, why: &'static str) -> Self {
        self.entry.effect = Effect::Missing(why);
        self
    }

    /// The purpose in half a line, a line as an example, and the effect in Markdown.
    pub(super) const fn text(
        mut self,
        short: &'static str,
        example: &'static str,
        long: &'static str,
    ) -> Self {
        self.entry.short = short;
        self.entry.example = example;
        self.entry.long = long;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_within_its_bounds_and_the_error_names_them() {
        let level = number("gzip_comp_level", LEVELS).range(1, 9).value;
        let least = number("n", LEVELS).range(2, ANY_NUMBER.most).value;
        for (number, text, read) in [
            (level, "1", Ok(1)),
            (level, "9", Ok(9)),
            (level, "10", Err("expected 1 to 9")),
            (level, "+1", Err("expected a whole number")),
            (level, "", Err("expected a whole number")),
            (least, "1", Err("expected at least 2")),
            (ANY_NUMBER, "9223372036854775807", Ok(i64::MAX as u64)),
            (
                ANY_NUMBER,
                "9223372036854775808",
                Err("expected a whole number"),
            ),
        ] {
            let found = number.parse(text).map_err(|error| error.expected);
            assert_eq!(found, read.map_err(Cow::from), "{text}");
        }
    }

    #[test]
    fn a_choice_is_read_in_any_case_and_a_mistake_names_the_word_that_was_meant() {
        let choice = Choice(&[("bypass", 1), ("remove", 2)]);
        assert_eq!(choice.parse("Remove"), Ok(2));
        let error = choice.parse("bypas").unwrap_err();
        assert_eq!(error.expected, "expected bypass or remove");
        assert_eq!(error.hint.as_deref(), Some("did you mean \"bypass\"?"));
    }

    #[test]
    fn off_is_no_value_where_it_may_be_written() {
        let time = OrOff(Time);
        assert_eq!(time.parse("off"), Ok(None));
        assert_eq!(time.parse("2s"), Ok(Some(Duration::from_secs(2))));
        assert!(time.parse("on").is_err());
    }

    #[test]
    fn a_family_is_named_by_the_prefix_of_its_protocol() {
        let lock = flag("*_cache_lock", LEVELS, "on");
        assert_eq!(lock.of("proxy").name(), "proxy_cache_lock");
        assert_eq!(flag("gzip", LEVELS, "off").name(), "gzip");
    }
}
