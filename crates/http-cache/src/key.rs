//! The cache key: the bytes that name a resource (RFC 9111 §2), hashed once.
//!
//! The caller writes the key into a buffer that it reuses, makes a [`CacheKey`] of it, which hashes
//! it, and takes the buffer back when the request is over. All else takes the key borrowed, as a
//! [`KeyRef`], with the hash that was made then. The hash is seeded at random once per process, so
//! that clients cannot aim keys at one shard. It only guides: every match compares the whole key,
//! hence 64 bits are enough and no collision can ever give one page for another.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

static SEED: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

/// The seeded hash of bytes that lie in pieces.
pub(crate) fn hash_of(pieces: &[&[u8]]) -> u64 {
    let mut hasher = SEED.build_hasher();
    pieces.iter().for_each(|piece| hasher.write(piece));
    hasher.finish()
}

/// A borrowed cache key with its hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyRef<'a> {
    hash: u64,
    bytes: &'a [u8],
}

/// An owned cache key with its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct CacheKey {
    hash: u64,
    bytes: Vec<u8>,
}

impl<'a> KeyRef<'a> {
    /// Hashes `bytes`. Do this once per request.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> KeyRef<'a> {
        let mut hasher = SEED.build_hasher();
        hasher.write(bytes);
        KeyRef {
            hash: hasher.finish(),
            bytes,
        }
    }

    /// The key itself.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The seeded hash; differs from one process to the next.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// A copy that outlives the caller's buffer.
    #[must_use]
    pub fn to_owned(&self) -> CacheKey {
        CacheKey {
            hash: self.hash,
            bytes: self.bytes.into(),
        }
    }
}

impl CacheKey {
    /// Hashes `bytes`. Do this once per request, and ask with [`CacheKey::as_ref`] from then on.
    #[inline]
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> CacheKey {
        let hash = KeyRef::new(&bytes).hash;
        CacheKey { hash, bytes }
    }

    /// The buffer with the key, to be used again.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The borrowed form, without hashing again.
    #[must_use]
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef {
            hash: self.hash,
            bytes: &self.bytes,
        }
    }

    /// The key itself.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The seeded hash; differs from one process to the next.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.bytes))
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
