//! The large read buffer of a thread, handed on from one response to the next: the
//! allocator keeps no memory of that size at hand.

use std::cell::Cell;

use bytes::{Bytes, BytesMut};

/// Bytes in it at least.
pub(crate) const MIN_BYTES: usize = 32 * 1024;

thread_local! {
    static SPARE: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// Takes back a part of a body that was sent. Large memory without another owner serves the
/// thread's next large read.
pub fn recycle(part: Bytes) {
    if part.len() < MIN_BYTES / 2 {
        return;
    }
    let Ok(mut buffer) = part.try_into_mut() else {
        return;
    };
    buffer.clear();
    if buffer.try_reclaim(MIN_BYTES) {
        SPARE.set(Some(buffer));
    }
}

/// The buffer that was taken back; empty.
pub(crate) fn take() -> Option<BytesMut> {
    SPARE.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_memory_that_nobody_holds_is_used_again() {
        let part = |bytes: usize| Bytes::from(vec![1; bytes]);
        recycle(part(MIN_BYTES / 4));
        assert!(take().is_none(), "small");
        let held = part(MIN_BYTES);
        recycle(held.clone());
        assert!(take().is_none(), "held");
        recycle(held.slice(1..));
        assert!(take().is_none(), "held");
        recycle(held);
        let buffer = take().expect("large and free");
        assert!(buffer.is_empty() && buffer.capacity() >= MIN_BYTES);
        assert!(take().is_none(), "there is one");
    }
}
