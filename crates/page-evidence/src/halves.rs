//! A bounded map that forgets entries that are not used.

use std::collections::HashMap;

/// A map from numbers with a young and an old half. Entries written to are in the young half; when that is full, the
/// old half is dropped.
#[derive(Debug)]
pub struct Halves<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
}

impl<V> Default for Halves<V> {
    fn default() -> Self {
        Halves {
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }
}

impl<V> Halves<V> {
    #[must_use]
    pub fn get(&self, of: u64) -> Option<&V> {
        self.young.get(&of).or_else(|| self.old.get(&of))
    }

    /// Like [`Halves::get`]; the entry is in the young half from then on, which has room for `most`.
    pub fn touch(&mut self, of: u64, most: usize) -> Option<&V> {
        if let Some(value) = self.old.remove(&of) {
            self.put(of, value, most);
        }
        self.young.get(&of)
    }

    /// Puts a value into the young half, which has room for `most`.
    pub fn put(&mut self, of: u64, value: V, most: usize) {
        self.old.remove(&of);
        if self.young.len() >= most && !self.young.contains_key(&of) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(of, value);
    }

    pub fn remove(&mut self, of: u64) -> Option<V> {
        let young = self.young.remove(&of);
        young.or_else(|| self.old.remove(&of))
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

impl<V: Default> Halves<V> {
    /// The value in the young half, which has room for `most`.
    pub fn entry(&mut self, of: u64, most: usize) -> &mut V {
        if !self.young.contains_key(&of) {
            let known = self.old.remove(&of).unwrap_or_default();
            self.put(of, known, most);
        }
        self.young.entry(of).or_default()
    }
}
