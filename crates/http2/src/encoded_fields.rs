//! Fields that were encoded before: responses of one server have most of them in common, and a
//! field without the dynamic table has the same bytes in each block.
//!
//! ```text
//! name and value ─► hash ─► one slot of SLOTS: the same field? its bytes are copied
//!                                              another?        it is encoded, and takes the slot
//! ```

use crate::field_block::{FieldBlock, FieldError};

/// Enough for the fields of some pages beside those that all of them have.
const SLOTS: usize = 128;
/// Longer fields are encoded each time: with all slots full this is 64 KB.
const MAX_FIELD_BYTES: usize = 256;
/// Odd, with bits everywhere: the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bytes of fields that were encoded lately. Its content changes no block, only the time to
/// make one. Fields with secrets of one client do not come into it.
#[derive(Debug, Default)]
pub struct EncodedFields {
    slots: Vec<Slot>,
}

/// A field as it was given, and behind it as it was encoded.
#[derive(Clone, Debug, Default)]
struct Slot {
    name_len: usize,
    value_len: usize,
    bytes: Vec<u8>,
}

impl Slot {
    fn holds(&self, name: &[u8], value: &[u8]) -> bool {
        self.name_len == name.len()
            && self.value_len == value.len()
            && self.bytes.get(..name.len()) == Some(name)
            && self.bytes.get(name.len()..name.len() + value.len()) == Some(value)
    }

    fn encoded(&self) -> &[u8] {
        let from = self.name_len + self.value_len;
        self.bytes.get(from..).unwrap_or_default()
    }

    fn set(&mut self, name: &[u8], value: &[u8], encoded: &[u8]) {
        (self.name_len, self.value_len) = (name.len(), value.len());
        self.bytes.clear();
        for part in [name, value, encoded] {
            self.bytes.extend_from_slice(part);
        }
    }
}

impl EncodedFields {
    /// Creates a cache without memory yet.
    pub const fn new() -> Self {
        EncodedFields { slots: Vec::new() }
    }

    /// Adds a field to `block`, as [`FieldBlock::put`] does.
    ///
    /// # Errors
    /// [`FieldError`]; then nothing was added.
    pub fn put(
        &mut self,
        block: &mut FieldBlock,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), FieldError> {
        if name.len() + value.len() > MAX_FIELD_BYTES || is_secret(name) {
            return block.put(name, value);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Slot::default);
        }
        let Some(slot) = self.slots.get_mut(slot_of(name, value)) else {
            return block.put(name, value);
        };
        // The empty name of a slot that was never set is the name of no field.
        if !name.is_empty() && slot.holds(name, value) {
            block.append(slot.encoded());
            return Ok(());
        }
        let from = block.len();
        block.put(name, value)?;
        slot.set(
            name,
            value,
            block.as_bytes().get(from..).unwrap_or_default(),
        );
        Ok(())
    }
}

/// Returns whether a field may carry a secret of one client.
fn is_secret(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"set-cookie")
}

fn slot_of(name: &[u8], value: &[u8]) -> usize {
    let hash = hash(hash(value.len() as u64, name), value);
    (hash >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}

fn hash(seed: u64, text: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    let (words, rest) = text.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    mix(hash, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_field_that_was_encoded_before_is_copied() {
        let (mut fields, mut block) = (EncodedFields::new(), FieldBlock::new());
        fields.put(&mut block, b"X-Cache", b"HIT").unwrap();
        let slot = &mut fields.slots[slot_of(b"X-Cache", b"HIT")];
        assert_eq!(slot.encoded(), block.as_bytes());
        slot.set(b"X-Cache", b"HIT", b"copied");
        block.clear();
        fields.put(&mut block, b"X-Cache", b"HIT").unwrap();
        assert_eq!(block.as_bytes(), b"copied");
    }

    #[test]
    fn cookies_long_fields_and_refused_ones_are_not_kept() {
        let (mut fields, mut block) = (EncodedFields::new(), FieldBlock::new());
        let long = [b'x'; MAX_FIELD_BYTES];
        fields.put(&mut block, b"Set-Cookie", b"a=b").unwrap();
        fields.put(&mut block, b"X-Long", &long).unwrap();
        assert!(fields.put(&mut block, b"", b"").is_err());
        assert!(fields.put(&mut block, b"X-Split", b"a\r\nb").is_err());
        assert!(fields.slots.iter().all(|slot| slot.bytes.is_empty()));
    }

    proptest! {
        #[test]
        fn a_block_is_the_same_with_and_without_what_was_encoded_before(
            given in proptest::collection::vec(
                ("[aBc]{0,2}|date|set-cookie|connection", "[ab:\r]{0,3}|x{300}"), 0..200),
        ) {
            let mut fields = EncodedFields::new();
            let (mut with, mut without) = (FieldBlock::new(), FieldBlock::new());
            for (name, value) in &given {
                let (name, value) = (name.as_bytes(), value.as_bytes());
                prop_assert_eq!(fields.put(&mut with, name, value), without.put(name, value));
            }
            prop_assert_eq!(with, without);
        }
    }
}
