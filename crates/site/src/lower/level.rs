//! One block of a configuration and the blocks around it: the answer to the two questions of
//! nginx's inheritance. Which is the nearest level with this directive, and which is the
//! nearest with any line of this list?

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::check::Node;
use crate::directives::{PREFIXES, by_name};

/// The directives of a block, and of the blocks around it.
pub(crate) struct Level<'t> {
    pub nodes: &'t [Node<'t>],
    lines: HashMap<&'t str, Vec<&'t Node<'t>>, RandomState>,
    parent: Option<&'t Level<'t>>,
}

impl<'t> Level<'t> {
    pub fn new(nodes: &'t [Node<'t>], parent: Option<&'t Level<'t>>) -> Self {
        let mut lines: HashMap<&str, Vec<&Node<'_>>, RandomState> = HashMap::default();
        for node in nodes {
            lines.entry(node.name()).or_default().push(node);
        }
        Self {
            nodes,
            lines,
            parent,
        }
    }

    /// The lines of `name` at this level itself.
    ///
    /// # Panics
    /// In debug builds, if the table of directives has no entry of that name: the caller has
    /// misspelled it, and no line could ever be found.
    pub fn own(&self, name: &str) -> &[&'t Node<'t>] {
        assert_is_in_the_table(name);
        self.lines.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether a block around this one says the same of a protocol to upstreams: no line here has
    /// its prefix or concerns the cache, so that there is neither a target nor a new mistake.
    pub fn only_inherits(&self, prefix: &str) -> bool {
        let concerns = |name: &str| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('_')) || name.starts_with("cache_")
        };
        self.parent.is_some() && !self.nodes.iter().any(|node| concerns(node.name()))
    }

    /// The line of `name` at the nearest level that has one.
    pub fn find(&self, name: &str) -> Option<&'t Node<'t>> {
        self.all(name).last().copied()
    }

    /// The lines of `name` at the nearest level that has any. Lines further out have no effect.
    pub fn all(&self, name: &str) -> &[&'t Node<'t>] {
        let mut level = self;
        loop {
            let own = level.own(name);
            match level.parent {
                Some(parent) if own.is_empty() => level = parent,
                _ => return own,
            }
        }
    }

    /// The lines of all `names` together, in order, at the nearest level that
    /// has any of them: `allow` and `deny` are one list.
    pub fn list(&self, names: &[&str]) -> Vec<&'t Node<'t>> {
        names.iter().copied().for_each(assert_is_in_the_table);
        let mut level = self;
        loop {
            if names.iter().any(|name| !level.own(name).is_empty()) {
                return level
                    .nodes
                    .iter()
                    .filter(|node| names.contains(&node.name()))
                    .collect();
            }
            match level.parent {
                Some(parent) => level = parent,
                None => return Vec::new(),
            }
        }
    }
}

/// Is there an entry for the name? memcached does not have all directives of the families that are
/// asked for with the prefix of each protocol.
fn assert_is_in_the_table(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let families = name.strip_prefix("memcached").into_iter();
    let mut names = families.flat_map(|rest| PREFIXES.iter().map(move |it| format!("{it}{rest}")));
    let is_there = !by_name(name).is_empty() || names.any(|name| !by_name(&name).is_empty());
    assert!(is_there, "no directive is called \"{name}\"");
}
