//! The hash of keys: XXH3 with 64 bits, which is the same in each version of each program.

use twox_hash::XxHash3_64;

/// A hash that may be written to disk.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}
