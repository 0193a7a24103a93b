//! Reads the arguments of `location`: which paths it matches, and in which other locations it
//! may be written.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use crate::check::Node;
use crate::model::Pattern;

/// How a location compares its text with a path: nginx's modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchKind {
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

/// The paths that a location matches.
#[derive(Debug, Clone)]
pub(crate) struct LocationMatcher {
    pub kind: MatchKind,
    /// Path, pattern, or name with its `@`.
    pub text: String,
    pub pattern: Option<Arc<Pattern>>,
    modifier: &'static str,
}

impl LocationMatcher {
    pub fn server_level() -> Self {
        Self {
            kind: MatchKind::Prefix,
            text: String::new(),
            pattern: None,
            modifier: "",
        }
    }

    /// Returns modifier and text of the location, for messages.
    pub fn shown(&self) -> String {
        match self.modifier {
            "" => self.text.clone(),
            modifier => format!("{modifier} {}", self.text),
        }
    }

    pub fn is_pattern(&self) -> bool {
        self.kind == MatchKind::Pattern
    }

    pub fn is_named(&self) -> bool {
        self.kind == MatchKind::Named
    }

    /// The length of the prefix that `alias` replaces.
    pub fn prefix_bytes(&self) -> Option<usize> {
        match self.kind {
            MatchKind::Exact | MatchKind::Prefix | MatchKind::PrefixOnly => Some(self.text.len()),
            MatchKind::Pattern | MatchKind::Named => None,
        }
    }

    /// May a path be redirected here if only the last slash is missing?
    pub fn may_add_slash(&self) -> bool {
        self.prefix_bytes().is_some() && self.text.ends_with('/')
    }

    /// Two locations of one level must not have the same key.
    pub fn duplicate_key(&self) -> Option<(bool, String)> {
        match self.kind {
            MatchKind::Exact => Some((true, self.text.clone())),
            MatchKind::Prefix | MatchKind::PrefixOnly | MatchKind::Named => {
                Some((false, self.text.clone()))
            }
            MatchKind::Pattern => None,
        }
    }
}

const MODIFIERS: [(&str, MatchKind); 4] = [
    ("=", MatchKind::Exact),
    ("^~", MatchKind::PrefixOnly),
    ("~*", MatchKind::Pattern),
    ("~", MatchKind::Pattern),
];

impl Lowering<'_> {
    /// Reads `[MODIFIER] PATH` or `@NAME`.
    pub fn matcher(&mut self, node: &Node<'_>) -> Option<LocationMatcher> {
        let (modifier, kind, word, text) = match node.args() {
            [modifier, path] => {
                let Some((name, kind)) = MODIFIERS.iter().find(|(name, _)| *name == modifier.text)
                else {
                    self.refuse(
                        modifier.span,
                        format!("invalid location modifier \"{modifier}\""),
                        "expected =, ^~, ~ or ~*",
                    );
                    return None;
                };
                (*name, *kind, path, path.text.as_str())
            }
            // `location =/path` without a space.
            _ => one_word(node.arg(0)),
        };
        let pattern = match kind {
            MatchKind::Pattern => Some(self.pattern(word, text, modifier == "~*")?),
            _ => None,
        };
        if kind == MatchKind::Prefix && !text.starts_with('/') {
            self.report(
                Diagnostic::warning(word.span, format!("location \"{text}\" matches no request"))
                    .label("paths begin with /")
                    .hint(format!("write /{text}, or ~ before a pattern")),
            );
        }
        Some(LocationMatcher {
            kind,
            text: text.to_owned(),
            pattern,
            modifier,
        })
    }

    /// nginx's rules for locations inside locations.
    pub fn may_stand_in(
        &mut self,
        node: &Node<'_>,
        inner: &LocationMatcher,
        outer: &LocationMatcher,
    ) -> bool {
        let at_server_level = outer.kind == MatchKind::Prefix && outer.text.is_empty();
        if at_server_level {
            return true;
        }
        let (text, around) = (&inner.text, &outer.text);
        let message = if outer.kind == MatchKind::Exact {
            format!("location \"{text}\" cannot be inside the exact location \"{around}\"")
        } else if outer.kind == MatchKind::Named {
            format!("location \"{text}\" cannot be inside the named location \"{around}\"")
        } else if inner.kind == MatchKind::Named {
            format!("named location \"{text}\" can be on the server level only")
        } else if inner.kind != MatchKind::Pattern && !text.starts_with(around.as_str()) {
            format!("location \"{text}\" is outside location \"{around}\"")
        } else {
            return true;
        };
        self.error(node.span(), message);
        false
    }
}

fn one_word(word: &Word) -> (&'static str, MatchKind, &Word, &str) {
    let text = word.text.as_str();
    for (modifier, kind) in MODIFIERS {
        if let Some(rest) = text.strip_prefix(modifier) {
            return (modifier, kind, word, rest);
        }
    }
    let kind = if text.starts_with('@') {
        MatchKind::Named
    } else {
        MatchKind::Prefix
    };
    ("", kind, word, text)
}
