//! The inputs of a kept page, in the bytes that stand beside it on disk.
//!
//! ```text
//! form 1 │ hash of the rest 8 │ fields of MadeOf
//! ```
//!
//! The record is the one that the library sent. A change of what is written here, in a record, or of how results or pages
//! are hashed counts `FORM` up: what another program has written is then not read.

use crate::encoding::{Decode, Encode, ListEntry, Reader, fields};
use crate::limits::{MAX_MADE_OF_BYTES, MAX_SCRIPTS};

/// The form that is written and read. The version of records is another part of it.
const FORM: u8 = 2;

const HEAD_BYTES: usize = 1 + size_of::<u64>();

/// The inputs of a page, and the facts that have to be the same as then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeOf<'a> {
    /// The name of the pool.
    pub pool: &'a [u8],
    /// Stands for its PHP: settings, program, extensions.
    pub php: u64,
    /// Stands for the database server, its tables and definitions; 0: none was asked.
    pub server: u64,
    /// The seed of the hashes of results.
    pub seed: u64,
    /// When the fetch began, in Unix nanoseconds.
    pub began: i64,
    /// The digest of the page.
    pub digest: u64,
    /// For how long it may be kept, from the moment at which it was stored.
    pub lasts_seconds: u32,
    /// The URL, for people.
    pub address: &'a [u8],
    /// All that the pool knew, in the order of their paths.
    pub scripts: Vec<Script<'a>>,
    /// The record of the reads that PHP did for it: a [`crate::Record`].
    pub record: &'a [u8],
}
fields!(MadeOf<'a> {
    pool, php, server, seed, began, digest, lasts_seconds, address, scripts, record
});

/// A script as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script<'a> {
    /// So many bytes of its path are those of the script before.
    pub shared: u16,
    pub rest: &'a [u8],
    /// Whether it was there; otherwise the other fields mean nothing.
    pub is_there: bool,
    pub modified_nanoseconds: i64,
    pub size: u64,
    pub inode: u64,
}
fields!(Script<'a> {
    shared, rest, is_there, modified_nanoseconds, size, inode
});

impl ListEntry for Script<'_> {
    const MOST: usize = MAX_SCRIPTS;
}

impl<'a> MadeOf<'a> {
    /// `None`: it is too long to be kept. `hash` stands for bytes.
    pub fn encode(&self, hash: impl Fn(&[u8]) -> u64) -> Option<Vec<u8>> {
        if self.scripts.len() > MAX_SCRIPTS {
            return None;
        }
        let mut out = vec![0; HEAD_BYTES];
        u64::from(crate::VERSION).put(&mut out);
        self.put(&mut out);
        let (head, rest) = out.split_at_mut(HEAD_BYTES);
        head[0] = FORM;
        head[1..].copy_from_slice(&hash(rest).to_le_bytes());
        (out.len() <= MAX_MADE_OF_BYTES).then_some(out)
    }

    /// `None`: the bytes are of another form, or damaged.
    pub fn decode(bytes: &'a [u8], hash: impl Fn(&[u8]) -> u64) -> Option<MadeOf<'a>> {
        if bytes.len() > MAX_MADE_OF_BYTES {
            return None;
        }
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let (form, sum) = head.split_first()?;
        if *form != FORM || *sum != hash(rest).to_le_bytes() {
            return None;
        }
        let reader = &mut Reader(rest);
        if u64::take(reader).ok()? != u64::from(crate::VERSION) {
            return None;
        }
        let made_of = MadeOf::take(reader).ok()?;
        reader.end().ok()?;
        Some(made_of)
    }
}
