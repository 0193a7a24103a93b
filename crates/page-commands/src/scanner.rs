//! A body in text and commands, however it is cut into pieces.

use bytes::{Bytes, BytesMut};

use crate::language::{CommandSearch, Language};

/// A piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<C> {
    Text(Bytes),
    Command(C),
}

/// Bytes in, tokens out.
pub struct Scanner<L: Language> {
    /// The beginning of a command whose end has not come.
    held: BytesMut,
    inside: L::CommandContext,
}

impl<L: Language> Default for Scanner<L> {
    fn default() -> Self {
        Scanner {
            held: BytesMut::new(),
            inside: L::CommandContext::default(),
        }
    }
}

impl<L: Language> Scanner<L> {
    /// Returns the tokens that `bytes` complete.
    pub fn push(&mut self, bytes: &Bytes) -> Vec<Token<L::Command>> {
        let mut rest = if self.held.is_empty() {
            bytes.clone()
        } else {
            self.held.extend_from_slice(bytes);
            std::mem::take(&mut self.held).freeze()
        };
        let mut tokens = Vec::new();
        loop {
            match L::find(&rest, &mut self.inside) {
                CommandSearch::Command(range) => {
                    text(&mut tokens, rest.slice(..range.start));
                    tokens.push(Token::Command(L::parse(&rest[range.clone()])));
                    rest = rest.slice(range.end..);
                }
                CommandSearch::None(kept) => {
                    text(&mut tokens, rest.slice(..kept));
                    self.held.extend_from_slice(&rest[kept..]);
                    return tokens;
                }
            }
        }
    }

    /// Returns the unfinished bytes that looked like the beginning of a
    /// command.
    pub fn finish(self) -> Bytes {
        self.held.freeze()
    }
}

fn text<C>(tokens: &mut Vec<Token<C>>, bytes: Bytes) {
    if !bytes.is_empty() {
        tokens.push(Token::Text(bytes));
    }
}
