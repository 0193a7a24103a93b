//! Writes of programs to a database behind several machines (`cache_learn on` and `cache_nodes`): an entry of the log
//! that is no purge, and concerns pages that are learned.
//!
//! ```text
//! W, the node that published it (8 bytes), an entry in the form of `learning`
//! ```
//!
//! A server that does not know such entries takes each for a purge of everything.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use learning::Learning;
use parking_lot::Mutex;

/// The first byte of an entry about a write.
const WRITE_ENTRY: u8 = b'W';
const HEAD_BYTES: usize = 9;

/// The exchange of writes with other nodes, in both directions.
pub struct WriteExchange {
    /// The number by which this node's entries are recognized. It has counted them already.
    teller: u64,
    /// The state of learning in all configurations that are in force, or were a moment ago.
    learnings: Mutex<Vec<Weak<Learning>>>,
}

impl Default for WriteExchange {
    fn default() -> WriteExchange {
        WriteExchange {
            teller: RandomState::new().hash_one(()),
            learnings: Mutex::default(),
        }
    }
}

impl WriteExchange {
    /// Takes an entry of the log; `false`: it is about no write. A write of another node counts when this returns.
    pub fn take(&self, entry: &[u8]) -> bool {
        let Some((head, payload)) = split(entry) else {
            return false;
        };
        if *head == self.head() {
            return true;
        }
        let learnings: Vec<_> = {
            let mut learnings = self.learnings.lock();
            learnings.retain(|it| it.strong_count() > 0);
            learnings.iter().filter_map(Weak::upgrade).collect()
        };
        for learning in learnings {
            learning.written_elsewhere(payload);
        }
        true
    }

    /// How each entry of this node begins.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [WRITE_ENTRY; HEAD_BYTES];
        if let Some((_, teller)) = head.split_first_mut() {
            teller.copy_from_slice(&self.teller.to_le_bytes());
        }
        head
    }

    /// Lets the writes of other nodes concern the pages of `learning` from now on.
    pub fn watch(&self, learning: &Arc<Learning>) {
        let mut learnings = self.learnings.lock();
        if !learnings
            .iter()
            .any(|it| it.as_ptr() == Arc::as_ptr(learning))
        {
            learnings.push(Arc::downgrade(learning));
        }
    }
}

/// Returns two entries in one; `None`: one of them is about no write of this node.
pub fn merged(one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let ((head, one), (other_head, other)) = (split(one)?, split(other)?);
    (head == other_head).then(|| [&head[..], &learning::merged(one, other)].concat())
}

fn split(entry: &[u8]) -> Option<(&[u8; HEAD_BYTES], &[u8])> {
    let (head, payload) = entry.split_first_chunk()?;
    (head.first() == Some(&WRITE_ENTRY)).then_some((head, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_from_purges_and_go_together_with_those_of_this_node() {
        let (own, other) = (WriteExchange::default(), WriteExchange::default());
        let entry = |of: &WriteExchange, payload: &[u8]| [&of.head()[..], payload].concat();
        for (bytes, is_write) in [
            (entry(&own, b""), true),
            (entry(&other, b"\x01\x00"), true),
            (b"W1234567".to_vec(), false),
            (b"P12345678".to_vec(), false),
        ] {
            assert_eq!(own.take(&bytes), is_write, "{bytes:?}");
        }
        let payload = [1, 0];
        let both = merged(&entry(&own, &payload), &entry(&own, &payload));
        assert_eq!(both, Some(entry(&own, &payload)));
        assert_eq!(
            merged(&entry(&own, &payload), &entry(&other, &payload)),
            None
        );
        assert_eq!(merged(b"P12345678", &entry(&own, &payload)), None);
    }
}
