//! Field blocks, encoded: whole fields and names by the static table, Huffman codes where those
//! are shorter, no dynamic table.

use http2::hpack::{huffman, integer};
use http2::{FieldError, with_sendable};

use super::static_table::{FIELDS, indexes_of};
use crate::frame;

/// Indexed field line of the static table (RFC 9204 §4.5.2).
const INDEXED: u8 = 0xc0;
/// Literal with a name of the static table (§4.5.4), with the bit that forbids to index it.
const NAME_INDEXED: u8 = 0x50;
const NEVER_NAME_INDEXED: u8 = 0x20;
/// Literal with a literal name (§4.5.6).
const LITERAL: u8 = 0x20;
/// The first `:status` of the static table.
const STATUS_INDEX: usize = 24;

/// Encoded fields of a response or of trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBlock {
    bytes: Vec<u8>,
}

impl FieldBlock {
    /// Without fields.
    pub const fn new() -> FieldBlock {
        FieldBlock { bytes: Vec::new() }
    }

    /// Adds `:status`, which comes before all other fields.
    pub fn put_status(&mut self, status: u16) {
        let index = match status {
            103 => 24,
            200 => 25,
            304 => 26,
            404 => 27,
            503 => 28,
            100 => 63,
            204 => 64,
            206 => 65,
            302 => 66,
            400 => 67,
            403 => 68,
            421 => 69,
            425 => 70,
            500 => 71,
            _ => {
                integer::write(&mut self.bytes, NAME_INDEXED, 4, STATUS_INDEX);
                self.put_string(0, 7, status.to_string().as_bytes());
                return;
            }
        };
        integer::write(&mut self.bytes, INDEXED, 6, index);
    }

    /// Adds a field; its name may be in any case.
    ///
    /// # Errors
    /// [`FieldError`]; then nothing was added.
    pub fn put(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FieldError> {
        with_sendable(name.as_ref(), value.as_ref(), |name, value| {
            self.put_lower(name, value);
        })
    }

    fn put_lower(&mut self, name: &[u8], value: &[u8]) {
        let indexes = indexes_of(name);
        let same_value = |index: &&u8| FIELDS[usize::from(**index)].1 == value;
        if let Some(&index) = indexes.iter().find(same_value) {
            return integer::write(&mut self.bytes, INDEXED, 6, usize::from(index));
        }
        match indexes.first() {
            Some(&index) => {
                let pattern = match name {
                    // Proxies keep it out of their tables, too.
                    b"set-cookie" => NAME_INDEXED | NEVER_NAME_INDEXED,
                    _ => NAME_INDEXED,
                };
                integer::write(&mut self.bytes, pattern, 4, usize::from(index));
            }
            None => self.put_string(LITERAL, 3, name),
        }
        self.put_string(0, 7, value);
    }

    fn put_string(&mut self, pattern: u8, prefix_bits: u32, text: &[u8]) {
        let length = huffman::encoded_len(text);
        if length < text.len() {
            let pattern = pattern | 1 << prefix_bits;
            integer::write(&mut self.bytes, pattern, prefix_bits, length);
            huffman::encode(text, &mut self.bytes);
        } else {
            integer::write(&mut self.bytes, pattern, prefix_bits, text.len());
            self.bytes.extend_from_slice(text);
        }
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The whole HEADERS frame.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 8);
        frame::write_head(&mut out, frame::HEADERS, self.bytes.len() as u64 + 2);
        // No field of a dynamic table is required (§4.5.1).
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.bytes);
        out
    }
}

#[cfg(test)]
mod tests {
    use http2::FieldSource;
    use proptest::prelude::*;

    use super::super::{Block, DynamicTable};
    use super::*;

    fn decode(block: &FieldBlock) -> Vec<(Vec<u8>, Vec<u8>)> {
        let whole = [&[0, 0], &block.bytes[..]].concat();
        let table = DynamicTable::default();
        let mut block = Block::new(&whole, &table).unwrap();
        let (mut fields, mut out) = (Vec::new(), Vec::new());
        while let Some(field) = block.next_field(&mut out).unwrap() {
            let value = out.split_off(field.name_len);
            fields.push((std::mem::take(&mut out), value));
        }
        fields
    }

    #[test]
    fn any_status_is_read_as_it_was_written() {
        for status in 100..1000 {
            let mut block = FieldBlock::new();
            block.put_status(status);
            let expected = (b":status".to_vec(), status.to_string().into_bytes());
            assert_eq!(decode(&block), [expected]);
        }
    }

    #[test]
    fn whole_fields_of_the_table_take_two_bytes_at_most() {
        let mut block = FieldBlock::new();
        block.put("Vary", "accept-encoding").unwrap();
        block.put("X-Frame-Options", "sameorigin").unwrap();
        assert!(block.bytes.len() <= 4);
    }

    proptest! {
        #[test]
        fn any_field_is_read_as_it_was_written(
            name in "[a-z0-9-]{1,40}|date|vary|server|content-type|set-cookie",
            value in "[!-~]{0,300}",
        ) {
            let mut block = FieldBlock::new();
            prop_assume!(block.put(&name, &value).is_ok());
            prop_assert_eq!(decode(&block), vec![(name.into_bytes(), value.into_bytes())]);
        }
    }
}
