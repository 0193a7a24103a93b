//! Objects that the allocator keeps for a thread: freed ones of every small size, so that the next requests need not go to
//! an arena (`.cargo/config.toml`). With each, the pages stay that it lies in.
//!
//! While a thread allocates, jemalloc looks at one size after the other, and gives back three quarters of what
//! the thread has not needed since the look before (`tcache_gc_incr_bytes`). A thread that has come to rest allocates
//! nothing, and would keep them: so it allocates a little before it rests.

use std::hint::black_box;

/// The longest that are kept (`tcache_max`), and how many sizes there are up to it.
const OBJECT_BYTES: usize = 4096;
const SIZES: usize = 29;
/// After so many bytes the allocator looks at the next size.
const BETWEEN_LOOKS_BYTES: usize = 64 << 10;
/// The first round only notes how many there are; of 128, the next ones leave 32, 8, 2 and none.
const ROUNDS: usize = 6;

/// Gives back what the allocator keeps for this thread, which takes about a tenth of a millisecond.
pub fn give_back() {
    for _ in 0..ROUNDS * SIZES * BETWEEN_LOOKS_BYTES / OBJECT_BYTES {
        drop(black_box(Vec::<u8>::with_capacity(OBJECT_BYTES)));
    }
}
