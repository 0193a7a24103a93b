//! The tree of a configuration: directives with their words and blocks.
//!
//! The tree holds the written text and its positions, and knows no meaning of
//! it. Every `include` that could be followed has been replaced by the
//! directives of its files (after [`crate::load()`]); nesting is bounded by
//! [`crate::MAX_BLOCK_DEPTH`].

use crate::source::Span;

/// A whole configuration: the directives of the main context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ast {
    pub directives: Vec<Directive>,
}

/// `name args... ;` or `name args... { block }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    pub name: Word,
    pub args: Vec<Word>,
    /// `None` when the directive ends in `;`.
    pub block: Option<Vec<Directive>>,
    /// From the name to the `;` or the `}`.
    pub span: Span,
}

impl Directive {
    /// From the name to the last argument, without `;` and block.
    pub fn head(&self) -> Span {
        self.args
            .last()
            .map_or(self.name.span, |last| self.name.span.to(last.span))
    }

    /// Whether both have the same words, wherever they are written.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let same_word = |(one, two): (&Word, &Word)| one.says_the_same(two);
        self.name.says_the_same(&other.name)
            && self.args.len() == other.args.len()
            && self.args.iter().zip(&other.args).all(same_word)
            && match (&self.block, &other.block) {
                (None, None) => true,
                (Some(one), Some(two)) => all_say_the_same(one, two),
                _ => false,
            }
    }
}

impl Ast {
    /// Whether both have the same words, wherever they are written.
    pub fn says_the_same(&self, other: &Self) -> bool {
        all_say_the_same(&self.directives, &other.directives)
    }
}

fn all_say_the_same(one: &[Directive], two: &[Directive]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.says_the_same(b))
}

/// A name or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The value: without quotes, and with `\"` `\'` `\\` `\t` `\r` `\n`
    /// replaced by their characters. Any other backslash is kept, as are
    /// variables.
    pub text: String,
    /// With the quotes.
    pub span: Span,
    /// Whether it was written in `"` or `'`.
    pub quoted: bool,
}

impl Word {
    fn says_the_same(&self, other: &Self) -> bool {
        self.text == other.text && self.quoted == other.quoted
    }

    /// The span of a part of `text`, given as a byte range; the whole word
    /// where escapes keep the two from lining up.
    pub fn part(&self, range: std::ops::Range<usize>) -> Span {
        let quote = u32::from(self.quoted);
        let written = (self.span.end - self.span.start).saturating_sub(2 * quote) as usize;
        let fits = range.start <= range.end
            && self.text.is_char_boundary(range.start)
            && self.text.is_char_boundary(range.end);
        if written != self.text.len() || !fits {
            return self.span;
        }
        let start = self.span.start as usize + quote as usize;
        Span::new(self.span.source, start + range.start, start + range.end)
    }
}

impl std::ops::Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}
