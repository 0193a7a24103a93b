//! Visitors whose own answers were other ones than the shared answer, until a trial has said why, or the answers are the
//! same. What others are given says nothing of these visitors: one address stands for all once it was compared.

use std::hash::Hasher;

use shared_request::{LeftOut, Trait};
use twox_hash::XxHash64;

use crate::halves::Halves;
use crate::page_name::PageName;

/// Visitors in half of it: 4,000 of each shard of the table together, in some 100 KB.
const MAX_VISITORS: usize = 2048;
/// A visitor is forgotten after these seconds.
const DOUBT_SECONDS: u32 = 1800;

#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// When a visitor of a page is forgotten, in seconds.
    visitors: Halves<u32>,
}

impl Doubts {
    pub(super) fn has(&self, visitor: (PageName, &LeftOut), now: u32) -> bool {
        // Most tables have none.
        !self.visitors.is_empty()
            && (self.visitors.get(key_of(visitor))).is_some_and(|until| now < *until)
    }

    pub(super) fn note(&mut self, visitor: (PageName, &LeftOut), now: u32) {
        let until = now.saturating_add(DOUBT_SECONDS);
        self.visitors.put(key_of(visitor), until, MAX_VISITORS);
    }

    pub(super) fn forget(&mut self, visitor: (PageName, &LeftOut)) {
        self.visitors.remove(key_of(visitor));
    }
}

/// Stands for the page and all values of the visitor together, with the address.
fn key_of((page, left_out): (PageName, &LeftOut)) -> u64 {
    let mut hasher = XxHash64::with_seed(page.page);
    for it in Trait::ALL {
        hasher.write_u32(left_out.value(it));
    }
    hasher.finish()
}
