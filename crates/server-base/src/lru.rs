//! A map that knows which of its keys was used longest ago.
//!
//! Nodes live in one vector and are linked by index, newest first; the map
//! leads from key to node. Every operation is O(1). Bounds are the callers'
//! business: they look at [`Lru::len`] and take out [`Lru::oldest`].

use std::collections::HashMap;
use std::sync::Arc;

/// No node.
const NONE: usize = usize::MAX;

/// Values by key, in order of last use.
pub struct Lru<V> {
    nodes: Vec<Node<V>>,
    free: Vec<usize>,
    by_key: HashMap<Arc<[u8]>, usize, foldhash::fast::RandomState>,
    newest: usize,
    oldest: usize,
}

struct Node<V> {
    key: Arc<[u8]>,
    /// `None` while the place is free.
    value: Option<V>,
    newer: usize,
    older: usize,
}

impl<V> Default for Lru<V> {
    fn default() -> Lru<V> {
        Lru {
            nodes: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            newest: NONE,
            oldest: NONE,
        }
    }
}

impl<V> Lru<V> {
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The value of `key`, which becomes the newest.
    pub fn touch(&mut self, key: &[u8]) -> Option<&mut V> {
        let index = *self.by_key.get(key)?;
        self.unlink(index);
        self.link(index);
        self.nodes.get_mut(index)?.value.as_mut()
    }

    /// The value of `key`; its place in the order stays.
    pub fn peek(&mut self, key: &[u8]) -> Option<&mut V> {
        let index = *self.by_key.get(key)?;
        self.nodes.get_mut(index)?.value.as_mut()
    }

    /// Puts `value` in as the newest.
    pub fn insert(&mut self, key: &[u8], value: V) {
        if let Some(old) = self.touch(key) {
            *old = value;
            return;
        }
        let key: Arc<[u8]> = key.into();
        let node = Node {
            key: key.clone(),
            value: Some(value),
            newer: NONE,
            older: NONE,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.by_key.insert(key, index);
        self.link(index);
    }

    /// Returns the entry that was used longest ago.
    pub fn oldest(&self) -> Option<(&Arc<[u8]>, &V)> {
        let node = self.nodes.get(self.oldest)?;
        Some((&node.key, node.value.as_ref()?))
    }

    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let index = self.by_key.remove(key)?;
        self.unlink(index);
        self.free.push(index);
        self.nodes.get_mut(index)?.value.take()
    }

    pub fn remove_oldest(&mut self) -> Option<V> {
        let key = self.oldest()?.0.clone();
        self.remove(&key)
    }

    fn unlink(&mut self, index: usize) {
        let (newer, older) = (self.nodes[index].newer, self.nodes[index].older);
        match self.nodes.get_mut(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link(&mut self, index: usize) {
        let second = self.newest;
        self.nodes[index].newer = NONE;
        self.nodes[index].older = second;
        match self.nodes.get_mut(second) {
            Some(node) => node.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lru: &mut Lru<u32>) -> Vec<u32> {
        std::iter::from_fn(|| lru.remove_oldest()).collect()
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut lru = Lru::default();
        for (key, value) in [(b"a", 1), (b"b", 2), (b"c", 3), (b"d", 4)] {
            lru.insert(key, value);
        }
        assert_eq!(lru.touch(b"a"), Some(&mut 1));
        assert_eq!(lru.peek(b"b"), Some(&mut 2));
        assert_eq!(lru.remove(b"c"), Some(3));
        lru.insert(b"e", 5);
        lru.insert(b"b", 6);
        assert_eq!(lru.len(), 4);
        assert_eq!(order(&mut lru), [4, 1, 5, 6]);
        assert_eq!(lru.len(), 0);
    }

    #[test]
    fn places_of_removed_values_are_used_again() {
        let mut lru = Lru::default();
        for round in 0..1000u32 {
            lru.insert(&round.to_be_bytes(), round);
            if lru.len() > 3 {
                lru.remove_oldest();
            }
        }
        assert!(lru.nodes.len() <= 4);
        assert_eq!(order(&mut lru), [997, 998, 999]);
        assert!(lru.oldest().is_none());
    }
}
