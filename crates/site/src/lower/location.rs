//! What stands after `location`: which paths it takes, and where it may stand.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use crate::check::Node;
use crate::model::Pattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matched {
    /// `=`
    Exact,
    Prefix,
    /// `^~`
    PrefixOnly,
    /// `~`, `~*`
    Pattern,
    /// `@name`
    Named,
}

/// The paths a location takes.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    pub matched: Matched,
    /// Path, pattern, or name with its `@`.
    pub text: String,
    pub pattern: Option<Arc<Pattern>>,
    modifier: &'static str,
}

impl Matcher {
    pub fn server_level() -> Self {
        Self {
            matched: Matched::Prefix,
            text: String::new(),
            pattern: None,
            modifier: "",
        }
    }

    /// As written, for messages.
    pub fn shown(&self) -> String {
        match self.modifier {
            "" => self.text.clone(),
            modifier => format!("{modifier} {}", self.text),
        }
    }

    pub fn is_pattern(&self) -> bool {
        self.matched == Matched::Pattern
    }

    pub fn is_named(&self) -> bool {
        self.matched == Matched::Named
    }

    /// What `alias` replaces.
    pub fn prefix_bytes(&self) -> Option<usize> {
        match self.matched {
            Matched::Exact | Matched::Prefix | Matched::PrefixOnly => Some(self.text.len()),
            Matched::Pattern | Matched::Named => None,
        }
    }

    /// May the same path without its last slash be redirected here?
    pub fn may_add_slash(&self) -> bool {
        self.prefix_bytes().is_some() && self.text.ends_with('/')
    }

    /// Two locations of one level with the same key exclude each other.
    pub fn duplicate_key(&self) -> Option<(bool, String)> {
        match self.matched {
            Matched::Exact => Some((true, self.text.clone())),
            Matched::Prefix | Matched::PrefixOnly | Matched::Named => {
                Some((false, self.text.clone()))
            }
            Matched::Pattern => None,
        }
    }
}

const MODIFIERS: [(&str, Matched); 4] = [
    ("=", Matched::Exact),
    ("^~", Matched::PrefixOnly),
    ("~*", Matched::Pattern),
    ("~", Matched::Pattern),
];

impl Lowering<'_> {
    /// Reads `[MODIFIER] PATH` or `@NAME`.
    pub fn matcher(&mut self, node: &Node<'_>) -> Option<Matcher> {
        let (modifier, matched, word, text) = match node.args() {
            [modifier, path] => {
                let Some((name, matched)) =
                    MODIFIERS.iter().find(|(name, _)| *name == modifier.text)
                else {
                    self.report(
                        Diagnostic::error(
                            modifier.span,
                            format!("invalid location modifier \"{modifier}\""),
                        )
                        .label("expected =, ^~, ~ or ~*"),
                    );
                    return None;
                };
                (*name, *matched, path, path.text.as_str())
            }
            // `location =/path` without a space.
            _ => one_word(node.arg(0)),
        };
        let pattern = match matched {
            Matched::Pattern => Some(self.pattern(word, text, modifier == "~*")?),
            _ => None,
        };
        if matched == Matched::Prefix && !text.starts_with('/') {
            self.report(
                Diagnostic::warning(word.span, format!("location \"{text}\" matches no request"))
                    .label("paths begin with /")
                    .hint(format!("write /{text}, or ~ before a pattern")),
            );
        }
        Some(Matcher {
            matched,
            text: text.to_owned(),
            pattern,
            modifier,
        })
    }

    /// nginx's rules for locations inside locations.
    pub fn may_stand_in(&mut self, node: &Node<'_>, inner: &Matcher, outer: &Matcher) -> bool {
        let at_server_level = outer.matched == Matched::Prefix && outer.text.is_empty();
        if at_server_level {
            return true;
        }
        let (text, around) = (&inner.text, &outer.text);
        let message = if outer.matched == Matched::Exact {
            format!("location \"{text}\" cannot be inside the exact location \"{around}\"")
        } else if outer.matched == Matched::Named {
            format!("location \"{text}\" cannot be inside the named location \"{around}\"")
        } else if inner.matched == Matched::Named {
            format!("named location \"{text}\" can be on the server level only")
        } else if inner.matched != Matched::Pattern && !text.starts_with(around.as_str()) {
            format!("location \"{text}\" is outside location \"{around}\"")
        } else {
            return true;
        };
        self.error(node.span(), message);
        false
    }
}

fn one_word(word: &Word) -> (&'static str, Matched, &Word, &str) {
    let text = word.text.as_str();
    for (modifier, matched) in MODIFIERS {
        if let Some(rest) = text.strip_prefix(modifier) {
            return (modifier, matched, word, rest);
        }
    }
    let matched = if text.starts_with('@') {
        Matched::Named
    } else {
        Matched::Prefix
    };
    ("", matched, word, text)
}
