//! The clients that have loaded a file of a page (a style sheet, a script, a picture) lately. Browsers
//! do, and programs that only read pages do not.
//!
//! A mark is one store of an atomic, since files are sent by every thread and often. Two clients may fall
//! on one slot: the later one takes it, and the earlier one is unmarked until its next file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Millis;

const SLOTS: usize = 1 << 14;
/// How long a mark holds: a browser that has all files of a site asks for none for a while.
const VALID_MINUTES: u64 = 60;
const MINUTE: Millis = 60_000;

/// A slot for each of many clients: the high bits of its hash, and the minute.
#[derive(Debug)]
pub struct AssetMarks(Box<[AtomicU64]>);

impl Default for AssetMarks {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }
}

const MINUTE_BITS: u64 = 0xffff_ffff;

impl AssetMarks {
    /// The client with this hash has loaded a file.
    pub fn mark(&self, client: u64, now: Millis) {
        if let Some(slot) = self.0.get(client as usize % SLOTS) {
            slot.store(tag(client) | ((now / MINUTE) & MINUTE_BITS), Relaxed);
        }
    }

    /// Whether the client has loaded a file lately.
    #[must_use]
    pub fn is_marked(&self, client: u64, now: Millis) -> bool {
        let slot = self.0.get(client as usize % SLOTS);
        let mark = slot.map_or(0, |slot| slot.load(Relaxed));
        let minute = (now / MINUTE) & MINUTE_BITS;
        mark & !MINUTE_BITS == tag(client)
            && minute.wrapping_sub(mark & MINUTE_BITS) & MINUTE_BITS <= VALID_MINUTES
    }
}

/// Never zero, as an empty slot is.
fn tag(client: u64) -> u64 {
    (client | 1 << 63) & !MINUTE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_for_an_hour_and_for_its_client() {
        let marks = AssetMarks::default();
        let (one, other) = (0x1234_5678_9abc_def0, 0x0234_5678_9abc_def0);
        assert!(!marks.is_marked(one, 0));
        marks.mark(one, 1000);
        assert!(marks.is_marked(one, 1000) && marks.is_marked(one, 60 * MINUTE));
        assert!(!marks.is_marked(one, 62 * MINUTE));
        assert!(!marks.is_marked(other, 1000), "the same slot");
        marks.mark(other, 2000);
        assert!(marks.is_marked(other, 2000) && !marks.is_marked(one, 2000));
    }
}
