//! Whether a response has earned a place on the disk: how often its key was used lately.
//!
//! Uses are counted in a sketch: each key has four counters of four bits in one line of memory, and the smallest of them
//! is its count. Two keys may share some of their counters, seldom all. One word of counters is halved every few uses,
//! so that a key which is not used any more is forgotten.
//!
//! Measured over Zipf 0.8 to 1.0 (`tests/admission.rs`): writing at the second use saves nothing over writing all;
//! at the fourth it is half, and the ring then beats an LRU of its size.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A response is written at this use of its key, once the ring is full.
pub const MIN_USES: u32 = 4;

/// The words of one line.
const LINE_WORDS: usize = 8;
/// The average size of a record, to choose the size of a sketch.
const RECORD_BYTES_USUAL: u64 = 8 << 10;
const MIN_LINES: u64 = 1 << 6;
/// 32 MB of counters.
const MAX_LINES: u64 = 1 << 19;
/// Uses after which one word is halved.
const USES_OF_WORD: usize = 16;

/// Each counter's highest bit, and the bits that a halving leaves.
const HALVED_MASK: u64 = 0x7777_7777_7777_7777;
const MAX_COUNT: u64 = 15;

/// Counts uses of keys, roughly, and forgets.
#[derive(Debug)]
pub struct UseSketch {
    words: Box<[AtomicU64]>,
    uses: AtomicUsize,
}

impl UseSketch {
    /// A sketch for a ring of this size.
    #[must_use]
    pub fn for_bytes(max_bytes: u64) -> UseSketch {
        UseSketch::for_records(max_bytes / RECORD_BYTES_USUAL)
    }

    /// A sketch for this number of records.
    #[must_use]
    pub fn for_records(records: u64) -> UseSketch {
        let lines = (records / (2 * LINE_WORDS as u64)).clamp(MIN_LINES, MAX_LINES);
        let words = usize::try_from(lines).unwrap_or(0) * LINE_WORDS;
        UseSketch {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            uses: AtomicUsize::new(0),
        }
    }

    /// Counts a use of a key; how many there were lately, this one included, at most 15.
    pub fn add(&self, key_hash: u64) -> u32 {
        self.halve_one();
        let lines = self.words.len() / LINE_WORDS;
        let line =
            usize::try_from(((key_hash >> 32) * lines as u64) >> 32).unwrap_or(0) * LINE_WORDS;
        let mut choice = key_hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The four counters are in four pairs of words: one bit for the word, four for the counter.
        let counters: [(usize, u32); LINE_WORDS / 2] = std::array::from_fn(|pair| {
            let [.., byte] = choice.to_le_bytes();
            choice <<= 8;
            (
                line + 2 * pair + usize::from(byte >> 7),
                4 * u32::from(byte & 15),
            )
        });
        let count_of =
            |(word, shift): (usize, u32)| self.words[word].load(Relaxed) >> shift & MAX_COUNT;
        let least = counters
            .into_iter()
            .map(count_of)
            .min()
            .unwrap_or(MAX_COUNT);
        if least == MAX_COUNT {
            return u32::try_from(least).unwrap_or(u32::MAX);
        }
        // Only the smallest ones count: the others have counted uses of other keys already.
        for (word, shift) in counters {
            let all = self.words[word].load(Relaxed);
            if all >> shift & MAX_COUNT == least {
                // A use that another thread counts in the same word meanwhile may be lost.
                self.words[word].store(all + (1 << shift), Relaxed);
            }
        }
        u32::try_from(least + 1).unwrap_or(u32::MAX)
    }

    fn halve_one(&self) {
        let uses = self.uses.fetch_add(1, Relaxed);
        if uses.is_multiple_of(USES_OF_WORD) {
            let word = &self.words[uses / USES_OF_WORD % self.words.len()];
            word.store(word.load(Relaxed) >> 1 & HALVED_MASK, Relaxed);
        }
    }
}
