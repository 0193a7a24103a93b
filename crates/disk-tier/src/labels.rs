//! The labels of a record, by which it is purged: one block of bytes, walked without an allocation.
//!
//! ```text
//! kind  u8 | length of the text  u16 | hash  u64 | text        for each label
//! ```

use bytes::{BufMut, Bytes, BytesMut};

/// The longest text of a label.
pub const LABEL_BYTES_MAX: usize = 8 << 10;
const FIXED_BYTES: usize = 11;

/// One label. The text is kept beside the hash, since patterns of purges need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLabel<'a> {
    /// Which table the label belongs to (an address, a tag): the caller's numbers.
    pub kind: u8,
    /// A hash of the text that is the same in each version of the program, see [`crate::stable_hash`].
    pub hash: u64,
    /// At most [`LABEL_BYTES_MAX`].
    pub text: &'a [u8],
}

/// The labels of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLabels(Bytes);

/// A text is longer than [`LABEL_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelTooLong;

impl RecordLabels {
    /// Puts labels together.
    ///
    /// # Errors
    /// A text is too long; a record without one of its labels would outlive a purge.
    pub fn of<'a>(
        labels: impl IntoIterator<Item = RecordLabel<'a>>,
    ) -> Result<RecordLabels, LabelTooLong> {
        let mut block = BytesMut::new();
        for label in labels {
            let len = u16::try_from(label.text.len()).map_err(|_| LabelTooLong)?;
            if label.text.len() > LABEL_BYTES_MAX {
                return Err(LabelTooLong);
            }
            block.put_u8(label.kind);
            block.put_u16_le(len);
            block.put_u64_le(label.hash);
            block.put_slice(label.text);
        }
        Ok(RecordLabels(block.freeze()))
    }

    /// The labels of a block that was read, if it is whole.
    pub(crate) fn read(block: Bytes) -> Option<RecordLabels> {
        let mut rest = &block[..];
        while !rest.is_empty() {
            rest = split_label(rest)?.1;
        }
        Some(RecordLabels(block))
    }

    pub(crate) fn block(&self) -> &Bytes {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = RecordLabel<'_>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (label, behind) = split_label(rest)?;
            rest = behind;
            Some(label)
        })
    }
}

fn split_label(block: &[u8]) -> Option<(RecordLabel<'_>, &[u8])> {
    let (fixed, rest) = block.split_first_chunk::<FIXED_BYTES>()?;
    let [kind, len_low, len_high, hash @ ..] = *fixed;
    let len = usize::from(u16::from_le_bytes([len_low, len_high]));
    let (text, behind) = rest.split_at_checked(len)?;
    let hash = u64::from_le_bytes(hash);
    Some((RecordLabel { kind, hash, text }, behind))
}
