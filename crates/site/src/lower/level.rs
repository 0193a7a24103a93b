//! One block of a configuration and the blocks around it: the answer to the two questions of
//! nginx's inheritance. Which is the nearest level with this directive, and which is the
//! nearest with any line of this list?

use std::collections::HashMap;

use crate::check::Node;

/// The directives of a block, and of the blocks around it.
pub(crate) struct Level<'t> {
    pub nodes: &'t [Node<'t>],
    by_name: HashMap<&'t str, Vec<&'t Node<'t>>>,
    parent: Option<&'t Level<'t>>,
}

impl<'t> Level<'t> {
    pub fn new(nodes: &'t [Node<'t>], parent: Option<&'t Level<'t>>) -> Self {
        let mut by_name: HashMap<&str, Vec<&Node<'_>>> = HashMap::new();
        for node in nodes {
            by_name.entry(node.name()).or_default().push(node);
        }
        Self {
            nodes,
            by_name,
            parent,
        }
    }

    /// The lines of `name` at this level itself.
    pub fn own(&self, name: &str) -> &[&'t Node<'t>] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
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
        let mut level = self;
        loop {
            if names.iter().any(|name| level.by_name.contains_key(name)) {
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
