//! Writes that are under way: announced before their statement went to the server, and not answered yet.
//!
//! From the announcement on, others may see what is written at any moment. So a page that is learned
//! meanwhile is compared with these writes as well, though they were counted before it was fetched.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::record::SentWrite;

/// A statement that takes longer keeps requests no more from sharing a fetch that began meanwhile: they would all
/// be fetched alone for as long as it takes.
pub const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// A write by the number of its process and its own.
pub type WriteNumber = (u64, u64);

struct UnansweredWrite {
    /// With those of a transaction that it may end.
    writes: Arc<[SentWrite]>,
    since: Instant,
}

#[derive(Default)]
pub struct UnansweredWriteTable {
    /// A process has few.
    all: HashMap<WriteNumber, UnansweredWrite>,
}

impl UnansweredWriteTable {
    pub fn add(&mut self, number: WriteNumber, writes: Arc<[SentWrite]>, now: Instant) {
        let announced = UnansweredWrite { writes, since: now };
        self.all.insert(number, announced);
    }

    pub fn remove(&mut self, number: WriteNumber) {
        self.all.remove(&number);
    }

    /// Removes the writes of a process that is not heard any more.
    pub fn remove_all_of(&mut self, process: u64) {
        self.all.retain(|(of, _), _| *of != process);
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn writes(&self) -> impl Iterator<Item = &SentWrite> {
        self.all.values().flat_map(|it| &*it.writes)
    }

    /// Is none of them so young that a page which is fetched now may be older than what others see?
    pub fn are_slow(&self, now: Instant) -> bool {
        let is_slow = |it: &UnansweredWrite| now.saturating_duration_since(it.since) >= SEEN_WITHIN;
        self.all.values().all(is_slow)
    }
}
