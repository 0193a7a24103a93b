//! The servers that a request has already asked.
//!
//! Owned by the request, handed to `Group::acquire` on each attempt, so that
//! the next attempt goes to another server. Sixty-four servers fit without an
//! allocation.

/// A set of server indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriedSet {
    low: u64,
    high: Vec<u64>,
}

impl TriedSet {
    /// The empty set: a first attempt.
    pub const fn new() -> Self {
        Self {
            low: 0,
            high: Vec::new(),
        }
    }

    /// Adds the server a lease named ([`crate::Lease::server`]).
    pub fn insert(&mut self, server: usize) {
        let bit = 1 << (server % 64);
        match (server / 64).checked_sub(1) {
            None => self.low |= bit,
            Some(word) => {
                if self.high.len() <= word {
                    self.high.resize(word + 1, 0);
                }
                if let Some(bits) = self.high.get_mut(word) {
                    *bits |= bit;
                }
            }
        }
    }

    /// Was this server asked before?
    pub fn contains(&self, server: usize) -> bool {
        let bits = match (server / 64).checked_sub(1) {
            None => self.low,
            Some(word) => self.high.get(word).copied().unwrap_or(0),
        };
        bits & (1 << (server % 64)) != 0
    }

    /// Is this a first attempt?
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|bits| *bits == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_beyond_the_first_word_are_remembered() {
        let mut tried = TriedSet::new();
        assert!(tried.is_empty());
        for server in [0, 63, 64, 200] {
            tried.insert(server);
        }
        for server in 0..300 {
            assert_eq!(tried.contains(server), [0, 63, 64, 200].contains(&server));
        }
        assert!(!tried.is_empty());
    }
}
