//! The digest of bytes: the same in each version of each program, since it goes to disk.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// A digest of bytes, which are read piece by piece.
#[derive(Default)]
pub struct Digest(XxHash3_64);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.read(bytes);
        digest.finish()
    }

    pub fn read(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_bytes_is_the_one_that_is_on_disks() {
        // XXH3 with 64 bits and no seed, as its authors give it.
        assert_eq!(Digest::of(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(Digest::of(b"a"), 0xe6c6_32b6_1e96_4e1f);
    }
}
