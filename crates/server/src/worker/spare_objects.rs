//! Objects that the allocator keeps for a thread: freed ones of every small size, so that the next requests need not go to
//! an arena (`.cargo/config.toml`). With each, the pages stay that it lies in.
//!
//! While a thread allocates, jemalloc looks at one size after the other, and gives back three quarters of the objects
//! that the thread has not needed since the previous look (`tcache_gc_incr_bytes`). A thread that has come to rest
//! allocates nothing, and would keep them: so it allocates a little before it rests.

use std::hint::black_box;

use parking_lot::Mutex;

/// The longest that are kept (`tcache_max`), and how many sizes there are up to it.
const OBJECT_BYTES: usize = 4096;
const SIZES: usize = 29;
/// After this many bytes the allocator looks at the next size.
const BETWEEN_LOOKS_BYTES: usize = 64 << 10;
/// The first round only notes how many there are; of 128, the next ones leave 32, 8, 2 and none.
const ROUNDS: usize = 6;

/// Gives back the objects that the allocator keeps for this thread, which takes about a tenth of a millisecond.
pub fn give_back() {
    for _ in 0..ROUNDS * SIZES * BETWEEN_LOOKS_BYTES / OBJECT_BYTES {
        drop(black_box(Vec::<u8>::with_capacity(OBJECT_BYTES)));
    }
}

/// The size of blocks that are asked for; the blocks together have the size of the stores' former content.
const BLOCK_BYTES: usize = 4 << 20;
/// Then blocks that fit between those. The allocator keeps a note of 128 bytes for each: so not more than are usual.
const SMALL_BLOCKS: [(usize, usize); 2] = [(256 << 10, 128), (32 << 10, 256)];

/// One thread at a time asks for blocks: together they would get more than there is.
static ASKING: Mutex<()> = Mutex::new(());

/// Gives back memory that huge pages have brought along in the regions of this thread's arena, where stores held so
/// many `bytes`.
///
/// The kernel gives a huge page whole when its first bytes are used, and the allocator cannot give back the rest, which
/// it has not used. It gives back memory that it has handed out and taken back, a moment later. The blocks are not
/// written to, so that they cost no memory.
pub fn give_back_regions(bytes: u64) {
    let _asking = ASKING.lock();
    let large = usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .div_ceil(BLOCK_BYTES);
    let blocks = [(BLOCK_BYTES, large)].into_iter().chain(SMALL_BLOCKS);
    let blocks = blocks.flat_map(|(size, count)| {
        (0..count).map_while(move |_| {
            let mut block: Vec<u8> = Vec::new();
            block.try_reserve_exact(size).ok()?;
            Some(black_box(block))
        })
    });
    // All at once: those that are there already are not given again.
    drop(blocks.collect::<Vec<_>>());
}
