//! Purges of this node on their way to the others, in the order in which they were made.
//!
//! ```text
//! add ─► waiting ─► taken, published ─► entry of the log ─► confirmed
//!           ▲                                  └ another epoch
//!           └──────────────────────────────────┘
//! ```

use std::collections::VecDeque;

/// Purges that are kept; beyond, one purge of everything stands for them.
const MAX_KEPT: usize = 65_536;
/// Purges of one publishing, and their bytes.
const MAX_AT_ONCE: usize = 256;
const MAX_BYTES_AT_ONCE: usize = 1 << 20;

/// A purge that is not confirmed.
struct KeptPurge {
    /// Less than `number` where it stands for others as well.
    first: u64,
    number: u64,
    bytes: Vec<u8>,
    /// Its entry in the log of the epoch.
    entry: Option<u64>,
}

/// All of them.
pub struct Outbox {
    everything: Vec<u8>,
    last: u64,
    /// The number up to which they were taken to be published.
    taken: u64,
    /// The purges of the outbox: first those with an entry.
    kept: VecDeque<KeptPurge>,
}

impl Outbox {
    /// Makes an outbox in which `everything` stands for purges that are too many.
    pub fn new(everything: Vec<u8>) -> Outbox {
        Outbox {
            everything,
            last: 0,
            taken: 0,
            kept: VecDeque::new(),
        }
    }

    /// Takes a purge, which was applied here already. Its number.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        self.last += 1;
        let (first, bytes) = match self.kept.len() < MAX_KEPT {
            true => (self.last, bytes),
            false => {
                let first = self.confirmed_before(self.last) + 1;
                self.kept.clear();
                (first, self.everything.clone())
            }
        };
        self.kept.push_back(KeptPurge {
            first,
            number: self.last,
            bytes,
            entry: None,
        });
        self.last
    }

    /// Adds a purge that `merge` combines with the last one, unless that was taken to be published
    /// already.
    pub fn add_merged(
        &mut self,
        bytes: Vec<u8>,
        merge: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>,
    ) -> u64 {
        let last = self.kept.back_mut().filter(|it| it.number > self.taken);
        let merged = last.and_then(|last| Some((merge(&last.bytes, &bytes)?, last)));
        let Some((both, last)) = merged else {
            return self.add(bytes);
        };
        self.last += 1;
        (last.bytes, last.number) = (both, self.last);
        self.last
    }

    /// The number of the last purge.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number up to which all are confirmed.
    pub fn confirmed(&self) -> u64 {
        self.confirmed_before(self.last + 1)
    }

    fn confirmed_before(&self, next: u64) -> u64 {
        self.kept.front().map_or(next, |purge| purge.first) - 1
    }

    /// How many are not confirmed.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is one that the engine has not got in this epoch.
    pub fn has_unpublished(&self) -> bool {
        self.kept.back().is_some_and(|purge| purge.entry.is_none())
    }

    /// Takes the purges to be published next: the number of the last one, and all of them.
    pub fn take_to_publish(&mut self) -> Option<(u64, Vec<Vec<u8>>)> {
        let mut bytes = 0;
        let mut last = None;
        let mut purges = Vec::new();
        let waiting = self.kept.iter().filter(|purge| purge.entry.is_none());
        for purge in waiting.take(MAX_AT_ONCE) {
            bytes += purge.bytes.len();
            if last.is_some() && bytes > MAX_BYTES_AT_ONCE {
                break;
            }
            last = Some(purge.number);
            purges.push(purge.bytes.clone());
        }
        self.taken = self.taken.max(last?);
        Some((last?, purges))
    }

    /// Gives `entry` to the purges up to `number` that had no entry.
    pub fn published(&mut self, number: u64, entry: u64) {
        for purge in &mut self.kept {
            if purge.number <= number && purge.entry.is_none() {
                purge.entry = Some(entry);
            }
        }
    }

    /// The first entry that the nodes have not confirmed.
    pub fn first_entry(&self) -> Option<u64> {
        self.kept.front()?.entry
    }

    /// The last entry that the nodes must confirm.
    pub fn last_entry(&self) -> Option<u64> {
        self.kept.iter().rev().find_map(|purge| purge.entry)
    }

    /// All members have applied the log up to `entry`.
    pub fn confirm(&mut self, entry: u64) {
        while let Some(first) = self.kept.front()
            && first.entry.is_some_and(|of_first| of_first <= entry)
        {
            self.kept.pop_front();
        }
    }

    /// The log is no longer in force: all are published again.
    pub fn publish_again(&mut self) {
        self.kept.iter_mut().for_each(|purge| purge.entry = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        Outbox::new(b"all".to_vec())
    }

    #[test]
    fn purges_are_published_in_their_order_and_confirmed_up_to_an_entry() {
        let mut outbox = outbox();
        assert_eq!((outbox.take_to_publish(), outbox.confirmed()), (None, 0));
        for purge in [b"a", b"b"] {
            outbox.add(purge.to_vec());
        }
        let (last, purges) = outbox.take_to_publish().unwrap();
        assert_eq!((last, purges), (2, vec![b"a".to_vec(), b"b".to_vec()]));
        outbox.add(b"c".to_vec());
        outbox.published(last, 17);
        assert_eq!(outbox.take_to_publish(), Some((3, vec![b"c".to_vec()])));
        assert_eq!(
            (outbox.first_entry(), outbox.last_entry()),
            (Some(17), Some(17))
        );
        outbox.confirm(16);
        assert_eq!(outbox.confirmed(), 0);
        outbox.confirm(17);
        assert_eq!((outbox.confirmed(), outbox.len()), (2, 1));
        assert_eq!(outbox.last_entry(), None);
    }

    #[test]
    fn what_was_published_in_another_epoch_is_published_again() {
        let mut outbox = outbox();
        outbox.add(b"a".to_vec());
        outbox.published(1, 4);
        outbox.publish_again();
        assert_eq!(outbox.take_to_publish(), Some((1, vec![b"a".to_vec()])));
        outbox.confirm(4);
        assert_eq!(outbox.confirmed(), 0);
    }

    #[test]
    fn one_purge_of_everything_stands_for_too_many() {
        let mut outbox = outbox();
        for _ in 0..=MAX_KEPT {
            outbox.add(b"x".to_vec());
        }
        let last = MAX_KEPT as u64 + 1;
        assert_eq!(
            outbox.take_to_publish(),
            Some((last, vec![b"all".to_vec()]))
        );
        assert_eq!(outbox.confirmed(), 0, "the others wait for it as well");
        outbox.published(last, 5);
        outbox.confirm(5);
        assert_eq!(outbox.confirmed(), last);
    }

    #[test]
    fn entries_that_go_together_are_one_until_they_are_taken() {
        let both = |one: &[u8], other: &[u8]| (one[0] == b'w').then(|| [one, other].concat());
        let mut outbox = outbox();
        outbox.add(b"purge".to_vec());
        for (bytes, number) in [(b"w1", 2), (b"w2", 3)] {
            assert_eq!(outbox.add_merged(bytes.to_vec(), both), number);
        }
        let expected = vec![b"purge".to_vec(), b"w1w2".to_vec()];
        assert_eq!(outbox.take_to_publish(), Some((3, expected)));
        // It may have been sent.
        assert_eq!(outbox.add_merged(b"w3".to_vec(), both), 4);
        outbox.published(3, 7);
        outbox.confirm(7);
        assert_eq!((outbox.confirmed(), outbox.len()), (3, 1));
        assert_eq!(outbox.take_to_publish(), Some((4, vec![b"w3".to_vec()])));
        outbox.publish_again();
        assert_eq!(outbox.add_merged(b"w4".to_vec(), both), 5);
        let expected = vec![b"w3".to_vec(), b"w4".to_vec()];
        assert_eq!(outbox.take_to_publish(), Some((5, expected)));
    }

    #[test]
    fn one_publishing_is_bounded() {
        let mut outbox = outbox();
        for _ in 0..3 {
            outbox.add(vec![0; MAX_BYTES_AT_ONCE]);
        }
        assert_eq!(outbox.take_to_publish().unwrap().0, 1);
        let mut outbox = self::outbox();
        for _ in 0..1000 {
            outbox.add(vec![0]);
        }
        assert_eq!(outbox.take_to_publish().unwrap().0, MAX_AT_ONCE as u64);
    }
}
