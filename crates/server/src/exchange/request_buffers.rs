//! The buffers of a request, kept per thread for the next one, so that a hit allocates none.

use std::cell::RefCell;

/// The memory that nearly every request needs, handed on from one to the next
/// of a thread; empty.
#[derive(Default)]
pub struct RequestBuffers {
    pub path: Vec<u8>,
    pub args: Vec<u8>,
    pub key: Vec<u8>,
}

/// Kept per thread: requests that are answered at once need one set.
const KEPT_BUFFERS: usize = 16;
/// A buffer that grew beyond this is not kept.
const KEPT_BUFFER_BYTES: usize = 4 * 1024;

thread_local! {
    static BUFFERS: RefCell<Vec<RequestBuffers>> = const { RefCell::new(Vec::new()) };
}

impl RequestBuffers {
    pub fn take() -> RequestBuffers {
        BUFFERS
            .try_with(|kept| kept.borrow_mut().pop())
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    pub fn give(mut self) {
        let all = [&mut self.path, &mut self.args, &mut self.key];
        for buffer in all {
            if buffer.capacity() > KEPT_BUFFER_BYTES {
                return;
            }
            buffer.clear();
        }
        // A thread that is ending drops them.
        let _ = BUFFERS.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_BUFFERS {
                kept.push(self);
            }
        });
    }
}
