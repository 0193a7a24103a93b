//! Lowers `server_name`: exact names, wildcards and patterns
//! (<https://nginx.org/en/docs/http/server_names.html>).

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::listen::show;
use super::values::bytes;
use crate::check::Node;
use crate::model::*;

/// A name of `server_name`, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostName {
    Exact(String),
    /// A name with its leading dot.
    Leading(String),
    /// A name with its trailing dot.
    Trailing(String),
    /// `.example.org`, with its dot: the name itself and all names that end in it.
    Both(String),
}

/// A name or pattern, and the word that contains it. There is no word for the empty name of a
/// server without `server_name`.
pub(crate) struct WrittenName<'a> {
    word: Option<&'a Word>,
    kind: NameKind,
}

enum NameKind {
    Host(HostName),
    Pattern(Arc<Pattern>),
}

impl Lowering<'_> {
    pub fn names_of<'n>(&mut self, server: &'n Node<'_>) -> Vec<WrittenName<'n>> {
        let lines = server
            .children
            .iter()
            .filter(|node| node.name() == "server_name");
        let words: Vec<&Word> = lines.flat_map(Node::args).collect();
        if words.is_empty() {
            return vec![WrittenName {
                word: None,
                kind: NameKind::Host(HostName::Exact(String::new())),
            }];
        }
        words
            .into_iter()
            .filter_map(|word| {
                Some(WrittenName {
                    word: Some(word),
                    kind: self.server_name(word)?,
                })
            })
            .collect()
    }

    fn server_name(&mut self, word: &Word) -> Option<NameKind> {
        if let Some(pattern) = word.strip_prefix('~') {
            if pattern.is_empty() {
                self.error(word.span, format!("empty regex in server name \"{word}\""));
                return None;
            }
            // Host names compare without case.
            return self.pattern(word, pattern, true).map(NameKind::Pattern);
        }
        let text = match word.text.as_str() {
            "$hostname" => self.options.hostname.clone(),
            text => text.to_ascii_lowercase(),
        };
        if text.contains('/') {
            let message = format!("server name \"{word}\" has suspicious symbols");
            self.report(
                Diagnostic::warning(word.span, message).hint("a name has neither scheme nor path"),
            );
        }
        let name = parse_name(&text);
        if name.is_none() {
            self.refuse(
                word.span,
                format!("invalid server name or wildcard \"{word}\""),
                "expected a name, *.name, name.*, .name or ~pattern",
            );
        }
        name.map(NameKind::Host)
    }

    /// Adds the names of a server to a listener. The first server with a name keeps it.
    pub fn add_names(
        &mut self,
        listener: &mut Listener,
        names: &[WrittenName<'_>],
        server: ServerId,
    ) {
        let address = show(&listener.address);
        for named in names {
            let into = &mut listener.names;
            let added = match &named.kind {
                NameKind::Host(HostName::Exact(name)) => add_exact(into, name, server),
                NameKind::Host(HostName::Leading(name)) => {
                    add_wildcard(&mut into.leading_wildcard, name, server)
                }
                NameKind::Host(HostName::Trailing(name)) => {
                    add_wildcard(&mut into.trailing_wildcard, name, server)
                }
                NameKind::Host(HostName::Both(name)) => {
                    let bare = name.strip_prefix('.').unwrap_or(name);
                    let exact = add_exact(into, bare, server);
                    add_wildcard(&mut into.leading_wildcard, name, server) && exact
                }
                NameKind::Pattern(pattern) => {
                    into.patterns.push((pattern.clone(), server));
                    true
                }
            };
            if let (false, Some(word)) = (added, named.word) {
                let message = format!("conflicting server name \"{word}\" on {address}, ignored");
                self.report(
                    Diagnostic::warning(word.span, message)
                        .label("an earlier server has this name at the same address"),
                );
            }
        }
        // Longest first; equal lengths stay in order.
        listener
            .names
            .leading_wildcard
            .sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        listener
            .names
            .trailing_wildcard
            .sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }
}

fn add_exact(names: &mut ServerNames, name: &str, server: ServerId) -> bool {
    // One server may have a name twice, as in `.example.org example.org`.
    *names.exact.entry(bytes(name)).or_insert(server) == server
}

fn add_wildcard(list: &mut Vec<(Box<[u8]>, ServerId)>, name: &str, server: ServerId) -> bool {
    match list.iter().find(|(known, _)| **known == *name.as_bytes()) {
        Some((_, first)) => *first == server,
        None => {
            list.push((bytes(name), server));
            true
        }
    }
}

/// The kind of the name; `None` if nginx does not accept it.
pub(crate) fn parse_name(text: &str) -> Option<HostName> {
    let is_plain = |name: &str| !name.contains('*') && !name.contains("..") && !name.contains('\0');
    if let Some(rest) = text.strip_prefix("*.") {
        return (is_plain(rest) && !rest.is_empty() && !rest.starts_with('.'))
            .then(|| HostName::Leading(format!(".{rest}")));
    }
    if let Some(rest) = text.strip_suffix(".*") {
        return (is_plain(rest) && !rest.is_empty())
            .then(|| HostName::Trailing(format!("{rest}.")));
    }
    if let Some(rest) = text.strip_prefix('.') {
        return (is_plain(rest) && !rest.is_empty()).then(|| HostName::Both(text.to_owned()));
    }
    is_plain(text).then(|| HostName::Exact(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{HostName, parse_name};

    #[test]
    fn names_are_told_apart_by_their_stars_and_dots() {
        let cases = [
            ("example.org", Some(HostName::Exact("example.org".into()))),
            ("", Some(HostName::Exact(String::new()))),
            ("_", Some(HostName::Exact("_".into()))),
            (
                "*.example.org",
                Some(HostName::Leading(".example.org".into())),
            ),
            (
                "www.example.*",
                Some(HostName::Trailing("www.example.".into())),
            ),
            (".example.org", Some(HostName::Both(".example.org".into()))),
            ("www.*.org", None),
            ("*", None),
            ("*.", None),
            ("*example.org", None),
            ("a..b", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_name(text), expected, "{text}");
        }
    }
}
