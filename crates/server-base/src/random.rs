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

/// A random number below `bound`, or 0 if that is 0. All are about equally likely.
pub fn below(bound: usize) -> usize {
    let [a, b, c, d, e, f, g, h, ..] = bytes16();
    let number = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let rest = number.checked_rem(bound as u64).unwrap_or(0);
    usize::try_from(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_identifiers_are_alike() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| super::bytes16()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
