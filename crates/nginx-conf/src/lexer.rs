//! Text to tokens, by nginx's rules.
//!
//! - Words end at space, tab, CR, LF, `;` or `{`; a `{` right after `$` does
//!   not end one, nor does any byte after a backslash. A `}`, `#` or quote
//!   inside a word is part of it.
//! - `"` or `'` at the start of a word quotes to the next one that has no
//!   backslash before it. After it must come space, `;`, `{` or `)`.
//! - `#` where a word could start begins a comment, to the end of the line.
//!
//! The lexer never fails: each problem is noted in its token and lexing goes
//! on where the author most likely meant the word to end. It always advances.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word, unescaped.
    Word {
        text: String,
        quoted: bool,
        problem: Option<QuoteProblem>,
    },
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
    /// From `#` to before the line end.
    Comment,
}

/// The mistake in a quoted word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuoteProblem {
    /// No closing quote in the rest of the text. The word was cut at the end
    /// of its line.
    Unclosed,
    /// The closing quote is on a later line and something follows it at once
    /// (the range), so it is rather the opening quote of another word. The
    /// word was cut at the end of its line.
    ClosedElsewhere(Range<usize>),
    /// This follows the closing quote without a space. It was skipped.
    Trailing(Range<usize>),
}

/// A token and the bytes it was written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
}

/// Walks over one text.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Begins at this offset; ranges still count from the start of the text.
    pub(crate) fn starting_at(text: &'a str, position: usize) -> Self {
        Self { text, position }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// First offset from `at` on where `stops` holds, or the end of the text.
    fn until(&self, at: usize, stops: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        at + rest
            .iter()
            .position(|byte| stops(*byte))
            .unwrap_or(rest.len())
    }

    /// Returns the end of the unquoted word that starts here.
    fn bare_end(&self, start: usize) -> usize {
        let mut at = start;
        let mut after_dollar = false;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'{' if after_dollar => {}
                b'\\' => {
                    after_dollar = false;
                    at += 1;
                }
                b'{' | b';' => break,
                _ if is_space(byte) => break,
                _ => after_dollar = byte == b'$',
            }
            at += 1;
        }
        // A backslash may be the last byte.
        at.min(self.text.len())
    }

    fn bare(&self, start: usize) -> Token {
        let range = start..self.bare_end(start);
        let text = unescape(self.slice(range.clone()));
        Token {
            kind: TokenKind::Word {
                text,
                quoted: false,
                problem: None,
            },
            range,
        }
    }

    /// Returns the position of the closing quote.
    fn closing_quote(&self, open: usize, quote: u8) -> Option<usize> {
        let mut at = open + 1;
        loop {
            match self.byte(at)? {
                b'\\' => at += 2,
                byte if byte == quote => return Some(at),
                _ => at += 1,
            }
        }
    }

    /// A quoted word, and where lexing goes on.
    fn quoted(&self, open: usize, quote: u8) -> (Token, usize) {
        let Some(close) = self.closing_quote(open, quote) else {
            return self.cut_at_line_end(open, QuoteProblem::Unclosed);
        };
        let end = close + 1;
        let mut next = end;
        let problem = match self.byte(end) {
            // The parser complains about the `}`.
            None | Some(b';' | b'{' | b')' | b'}') => None,
            Some(byte) if is_space(byte) => None,
            Some(byte) => {
                // A stray `#` is taken for a comment, anything else for a
                // piece of a word.
                let junk_end = if byte == b'#' {
                    end + 1
                } else {
                    self.bare_end(end)
                };
                let junk = end..junk_end.max(end + 1);
                if self.slice(open..close).contains('\n') {
                    return self.cut_at_line_end(open, QuoteProblem::ClosedElsewhere(close..end));
                }
                next = if byte == b'#' { end } else { junk.end };
                Some(QuoteProblem::Trailing(junk))
            }
        };
        let text = unescape(self.slice(open + 1..close));
        let kind = TokenKind::Word {
            text,
            quoted: true,
            problem,
        };
        (
            Token {
                kind,
                range: open..end,
            },
            next,
        )
    }

    /// The word from an opening quote to the end of its line, less a final
    /// `;` or `{`, with its problem, and where lexing goes on.
    fn cut_at_line_end(&self, open: usize, problem: QuoteProblem) -> (Token, usize) {
        let line_end = self.until(open, |byte| byte == b'\n');
        let line = self.slice(open + 1..line_end).trim_ascii_end();
        let inside = line
            .strip_suffix([';', '{'])
            .unwrap_or(line)
            .trim_ascii_end();
        let end = open + 1 + inside.len();
        let kind = TokenKind::Word {
            // The text stays as written: then its length shows `Word::part`
            // that there is no closing quote.
            text: inside.to_owned(),
            quoted: true,
            problem: Some(problem),
        };
        (
            Token {
                kind,
                range: open..end,
            },
            end,
        )
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let start = self.until(self.position, |byte| !is_space(byte));
        let byte = self.byte(start)?;
        let mark = |kind| Token {
            kind,
            range: start..start + 1,
        };
        let (token, next) = match byte {
            b';' => (mark(TokenKind::End), start + 1),
            b'{' => (mark(TokenKind::Open), start + 1),
            b'}' => (mark(TokenKind::Close), start + 1),
            b'#' => {
                let end = self.until(start, |byte| byte == b'\n');
                let comment = self.slice(start..end).trim_ascii_end();
                (
                    Token {
                        kind: TokenKind::Comment,
                        range: start..start + comment.len(),
                    },
                    end,
                )
            }
            b'"' | b'\'' => self.quoted(start, byte),
            _ => {
                let token = self.bare(start);
                let end = token.range.end;
                (token, end)
            }
        };
        self.position = next;
        Some(token)
    }
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Replaces `\"` `\'` `\\` `\t` `\r` `\n`; keeps any other backslash.
fn unescape(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    let mut chars = written.chars().peekable();
    while let Some(char) = chars.next() {
        let escaped = match (char, chars.peek()) {
            ('\\', Some('"')) => '"',
            ('\\', Some('\'')) => '\'',
            ('\\', Some('\\')) => '\\',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('n')) => '\n',
            _ => {
                text.push(char);
                continue;
            }
        };
        text.push(escaped);
        chars.next();
    }
    text
}
