//! A table of bounded size that forgets entries that were not used for long: a young half and an old
//! one. When the young half is full it becomes the old one, and the entries of the old one are
//! forgotten. Each operation takes constant time, whatever keys clients choose.

use std::collections::HashMap;

/// The table; keys are hashes.
#[derive(Debug)]
pub(crate) struct Generations<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
    half: usize,
}

impl<V> Generations<V> {
    /// A table of at most twice `half` values.
    pub fn new(half: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half,
        }
    }

    pub fn get(&self, key: u64) -> Option<&V> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }

    /// The value of `key`, which counts as used.
    pub fn entry(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        let young = self.young.entry(key);
        young.or_insert_with(|| old.remove(&key).unwrap_or_else(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_table_is_bounded() {
        let mut table = Generations::new(4);
        for key in 0..100 {
            *table.entry(key, || 0) += 1;
            *table.entry(1000, || 0) += 1;
            assert!(table.young.len() + table.old.len() <= 8);
        }
        assert_eq!(table.get(1000), Some(&100));
        assert_eq!(table.get(0), None);
    }
}
