//! Random bytes from the kernel, taken in blocks: request identifiers need to
//! be unguessable, not to cost a system call each.

use std::cell::RefCell;

const BLOCK_BYTES: usize = 1024;

thread_local! {
    static BLOCK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sixteen random bytes.
pub fn bytes16() -> [u8; 16] {
    BLOCK.with_borrow_mut(|block| {
        if block.len() < 16 {
            let mut fresh = vec![0; BLOCK_BYTES];
            let mut filled = 0;
            while filled < fresh.len() {
                match rustix::rand::getrandom(
                    &mut fresh[filled..],
                    rustix::rand::GetRandomFlags::empty(),
                ) {
                    Ok(got) => filled += got,
                    Err(rustix::io::Errno::INTR) => {}
                    // No source of randomness is left out of every kernel that runs us.
                    Err(error) => panic!("the kernel gives no random bytes: {error}"),
                }
            }
            *block = fresh;
        }
        let rest = block.len() - 16;
        let mut id = [0; 16];
        id.copy_from_slice(&block[rest..]);
        block.truncate(rest);
        id
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_identifiers_are_alike() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| super::bytes16()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
