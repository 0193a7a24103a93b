//! Lowers the locations of a server: the tree against which paths are matched, and the settings
//! of each location.
//!
//! An `if` in a location and a `limit_except` also become locations.

use std::collections::HashMap;
use std::sync::Arc;

use nginx_conf::{Diagnostic, Span};

use super::Lowering;
use super::level::Level;
use super::location::{LocationMatcher, MatchKind};
use crate::check::Node;
use crate::model::*;

/// The kind of block whose settings are lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Http,
    Server,
    Location,
    /// `if` in a location, or its `limit_except`.
    LocationIf,
}

/// The facts of the enclosing location that a nested block needs.
#[derive(Clone)]
pub(crate) struct EnclosingLocation {
    pub matcher: LocationMatcher,
    pub settings: Arc<Settings>,
    /// The prefix length of the location whose `root` or `alias` is in force.
    pub prefix_bytes: Option<usize>,
    pub is_pattern: bool,
    pub internal: bool,
}

/// The locations of one server while they are collected.
#[derive(Default)]
pub(crate) struct LocationList {
    pub locations: Vec<Location>,
}

impl LocationList {
    pub fn add(&mut self, location: Location) -> LocationId {
        self.locations.push(location);
        LocationId(self.locations.len() - 1)
    }
}

impl Lowering<'_> {
    /// All locations of a server, its own level first, and the tree's top.
    pub fn location_tree(&mut self, server: &Level<'_>) -> (Vec<Location>, Locations) {
        let matcher = LocationMatcher::server_level();
        let settings = Arc::new(self.settings(server, BlockKind::Server, &matcher, None));
        let root = EnclosingLocation {
            matcher,
            settings: settings.clone(),
            prefix_bytes: Some(0),
            is_pattern: false,
            internal: false,
        };
        let mut list = LocationList::default();
        list.add(Location {
            name: String::new(),
            rewrite: Vec::new(),
            settings,
            limit_except: None,
            inner: Locations::default(),
            prefix_bytes: Some(0),
            internal: false,
            named: false,
            auto_redirect: false,
            is_pattern: false,
        });
        let top = self.inner_locations(server, &root, &mut list);
        (list.locations, top)
    }

    fn inner_locations(
        &mut self,
        level: &Level<'_>,
        outer: &EnclosingLocation,
        list: &mut LocationList,
    ) -> Locations {
        let mut tree = Locations::default();
        let mut seen: HashMap<(bool, String), Span> = HashMap::new();
        for node in level.own("location") {
            let Some(matcher) = self.matcher(node) else {
                continue;
            };
            if !self.may_stand_in(node, &matcher, &outer.matcher) {
                continue;
            }
            if let Some(key) = matcher.duplicate_key()
                && let Some(first) = seen.insert(key, node.span())
            {
                self.report(
                    Diagnostic::error(
                        node.span(),
                        format!("duplicate location \"{}\"", matcher.text),
                    )
                    .label("the second")
                    .note_at(first, "the first"),
                );
                continue;
            }
            let id = self.location(node, level, &matcher, outer, list);
            insert(&mut tree, &matcher, id);
        }
        // Longest first, so that the first match is the longest.
        tree.prefixes
            .sort_by_key(|it| std::cmp::Reverse(it.prefix.len()));
        tree
    }

    fn location(
        &mut self,
        node: &Node<'_>,
        around: &Level<'_>,
        matcher: &LocationMatcher,
        outer: &EnclosingLocation,
        list: &mut LocationList,
    ) -> LocationId {
        let level = Level::new(&node.children, Some(around));
        let settings = Arc::new(self.settings(&level, BlockKind::Location, matcher, None));
        self.health_checks(&level, &settings);
        let own_files = level.own("root").first().or(level.own("alias").first());
        self.check_alias(&level, matcher);
        let (prefix_bytes, is_pattern) = match own_files {
            // `alias` replaces the prefix of the location in which it is written.
            None if matches!(settings.files.root, Root::Alias(_)) => {
                (outer.prefix_bytes, outer.is_pattern)
            }
            _ => (matcher.prefix_bytes(), matcher.is_pattern()),
        };
        let inner = EnclosingLocation {
            matcher: matcher.clone(),
            settings: settings.clone(),
            prefix_bytes,
            is_pattern,
            internal: outer.internal || !level.own("internal").is_empty(),
        };
        let passes_on = !matches!(settings.content, Content::Files);
        let id = list.add(Location {
            name: matcher.shown(),
            rewrite: Vec::new(),
            settings,
            limit_except: None,
            inner: Locations::default(),
            prefix_bytes,
            internal: inner.internal,
            named: matcher.kind == MatchKind::Named,
            auto_redirect: passes_on && matcher.may_add_slash(),
            is_pattern,
        });
        let rewrite = self.rewrite_ops(&level, Some((&inner, list)));
        let limit_except = self.limit_except(&level, &inner, list);
        let tree = self.inner_locations(&level, &inner, list);
        if let Some(location) = list.locations.get_mut(id.0) {
            location.rewrite = rewrite;
            location.limit_except = limit_except;
            location.inner = tree;
        }
        id
    }

    /// The location that holds where the condition of an `if` is true.
    pub fn if_location(
        &mut self,
        node: &Node<'_>,
        level: &Level<'_>,
        outer: &EnclosingLocation,
        list: &mut LocationList,
    ) -> LocationId {
        if outer.settings.files.try_files.is_some() && !level.nodes.iter().any(leaves_location) {
            self.report(
                Diagnostic::warning(
                    node.span(),
                    "\"try_files\" is not used where this condition is true",
                )
                .label(
                    "as in nginx, the block becomes a location of its own and does not inherit try_files",
                )
                .hint("use `map` and variables, or `return` and `rewrite` in the block"),
            );
        }
        let sets_nothing = level
            .nodes
            .iter()
            .all(|node| ["set", "rewrite", "return", "break"].contains(&node.name()));
        let settings = if sets_nothing && outer.settings.files.try_files.is_none() {
            outer.settings.clone()
        } else {
            Arc::new(self.settings(
                level,
                BlockKind::LocationIf,
                &outer.matcher,
                Some(&outer.settings),
            ))
        };
        let own_root = !level.own("root").is_empty();
        list.add(Location {
            name: format!("{} (if)", outer.matcher.shown()),
            rewrite: Vec::new(),
            settings,
            limit_except: None,
            inner: Locations::default(),
            prefix_bytes: if own_root {
                outer.matcher.prefix_bytes()
            } else {
                outer.prefix_bytes
            },
            internal: outer.internal,
            named: outer.matcher.kind == MatchKind::Named,
            auto_redirect: false,
            is_pattern: outer.is_pattern && !own_root,
        })
    }

    fn check_alias(&mut self, level: &Level<'_>, matcher: &LocationMatcher) {
        let Some(alias) = level.own("alias").first() else {
            return;
        };
        if matcher.kind == MatchKind::Named {
            self.error(
                alias.span(),
                "the \"alias\" directive cannot be used inside the named location",
            );
        }
        if let Some(root) = level.own("root").first() {
            self.report(
                Diagnostic::error(alias.span(), "\"alias\" and \"root\" exclude each other")
                    .label("expected one of the two")
                    .note_at(root.span(), "the other"),
            );
        }
        let path = alias.arg(0);
        if matcher.text.ends_with('/')
            && matcher.prefix_bytes().is_some()
            && !path.ends_with('/')
            && !path.contains('$')
        {
            self.report(
                Diagnostic::warning(
                    path.span,
                    "the location ends in \"/\" and its alias does not",
                )
                .label(format!("{}name becomes {path}name", matcher.text))
                .hint(format!("write alias {path}/;")),
            );
        }
        if !matcher.text.ends_with('/') && path.ends_with('/') && matcher.kind == MatchKind::Prefix
        {
            self.report(
                Diagnostic::warning(
                    path.span,
                    "the alias ends in \"/\" and its location does not",
                )
                .label(format!("{}../x leads out of {path}", matcher.text))
                .hint(format!("write location {}/ ", matcher.text)),
            );
        }
    }
}

/// Does the request end with this step, or continue in another location?
fn leaves_location(node: &Node<'_>) -> bool {
    let flag = node.args().get(2).map(|word| word.text.as_str());
    match node.name() {
        "return" => true,
        "rewrite" => {
            let is_redirect = node.arg(1).starts_with("http://")
                || node.arg(1).starts_with("https://")
                || node.arg(1).starts_with("$scheme");
            is_redirect || matches!(flag, Some("last" | "redirect" | "permanent"))
        }
        _ => false,
    }
}

fn insert(tree: &mut Locations, matcher: &LocationMatcher, id: LocationId) {
    let text: Box<[u8]> = matcher.text.as_bytes().into();
    match (&matcher.kind, &matcher.pattern) {
        (MatchKind::Exact, _) => {
            tree.exact.insert(text, id);
        }
        (MatchKind::Named, _) => {
            tree.named.insert(text, id);
        }
        (MatchKind::Pattern, Some(pattern)) => tree.patterns.push((pattern.clone(), id)),
        (MatchKind::Pattern, None) => {}
        (MatchKind::Prefix | MatchKind::PrefixOnly, _) => tree.prefixes.push(PrefixLocation {
            prefix: text,
            skips_patterns: matcher.kind == MatchKind::PrefixOnly,
            location: id,
        }),
    }
}
