//! The dynamic table that the client's encoder fills (RFC 9204 §3.2), and the instructions of both
//! sides about it (§4.3, §4.4). Its fields are those of HPACK's table; QPACK numbers them from the
//! first that was ever inserted, so that a block can be read while others are inserted.
//!
//! Bounds for one connection: [`TABLE_BYTES`] of fields, and an incomplete instruction of two
//! strings of at most [`MAX_STRING_BYTES`].

use bytes::{Buf, BytesMut};
use http2::hpack::{FIELD_OVERHEAD_BYTES, HpackError, TABLE_BYTES, Table, huffman, integer};

use super::decode::SectionPrefix;
use super::static_table::FIELDS;
use crate::error::{Code, Error};

/// A string of an instruction: a code of Huffman has at most 30 bits for each byte.
const MAX_STRING_BYTES: usize = 4 * TABLE_BYTES;

/// The fields that the client's encoder has inserted.
#[derive(Debug)]
pub struct DynamicTable {
    table: Table,
    capacity_bytes: usize,
    /// Insertions so far: the next field has this absolute index.
    inserted: u64,
    /// The number of inserted fields that were acknowledged to the client (§2.1.4).
    acknowledged: u64,
    /// The client's encoder has asked for a table at some time.
    is_used: bool,
}

impl Default for DynamicTable {
    fn default() -> Self {
        let mut table = Table::default();
        table.set_max_bytes(0);
        DynamicTable {
            table,
            capacity_bytes: 0,
            inserted: 0,
            acknowledged: 0,
            is_used: false,
        }
    }
}

fn broken(reason: &'static str) -> Error {
    Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason)
}

/// A string as it was sent.
struct EncodedString<'a> {
    is_huffman: bool,
    bytes: &'a [u8],
}

impl EncodedString<'_> {
    fn decode_into(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.is_huffman {
            let decoded = huffman::decode(self.bytes, out);
            return decoded.map_err(|_| broken("sent an invalid Huffman code to be inserted"));
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// An instruction that is being read. `None` of its parts: more bytes have to come.
struct Instruction<'a>(&'a [u8]);

impl<'a> Instruction<'a> {
    fn next_byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn integer(&mut self, first: u8, prefix_bits: u32) -> Result<Option<u32>, Error> {
        match integer::read(first, prefix_bits, &mut self.0) {
            Ok(value) => Ok(Some(value)),
            Err(HpackError::Truncated) => Ok(None),
            Err(_) => Err(broken("sent a broken integer to its table")),
        }
    }

    /// A string whose length has this prefix, above which is the bit of Huffman.
    fn string(&mut self, first: u8, prefix_bits: u32) -> Result<Option<EncodedString<'a>>, Error> {
        let Some(length) = self.integer(first, prefix_bits)? else {
            return Ok(None);
        };
        if length as usize > MAX_STRING_BYTES {
            return Err(broken(
                "inserts a longer string than the table has room for",
            ));
        }
        let Some((bytes, rest)) = self.0.split_at_checked(length as usize) else {
            return Ok(None);
        };
        self.0 = rest;
        Ok(Some(EncodedString {
            is_huffman: first & 1 << prefix_bits != 0,
            bytes,
        }))
    }

    fn value(&mut self) -> Result<Option<EncodedString<'a>>, Error> {
        match self.next_byte() {
            Some(first) => self.string(first, 7),
            None => Ok(None),
        }
    }
}

impl DynamicTable {
    /// How many fields were ever inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Name and value of the field with this absolute index, unless it was evicted.
    pub(super) fn field(&self, absolute: u64) -> Option<(&[u8], &[u8])> {
        let age = self.inserted.checked_sub(absolute)?.checked_sub(1)?;
        self.table.field(usize::try_from(age).ok()?)
    }

    /// Follows the whole instructions at the front of the encoder's stream (§4.3).
    ///
    /// # Errors
    /// The client broke the protocol: the connection ends.
    pub fn take(&mut self, input: &mut BytesMut) -> Result<(), Error> {
        while let Some(used_bytes) = self.follow(input)? {
            input.advance(used_bytes);
        }
        Ok(())
    }

    /// Follows one instruction, and returns its length in bytes. `None`: it is not whole.
    fn follow(&mut self, input: &[u8]) -> Result<Option<usize>, Error> {
        let mut rest = Instruction(input);
        let Some(first) = rest.next_byte() else {
            return Ok(None);
        };
        let is_whole = match first {
            0x80.. => self.insert_with_known_name(first, &mut rest)?,
            0x40.. => self.insert_literal(first, &mut rest)?,
            0x20.. => self.set_capacity(first, &mut rest)?,
            _ => self.duplicate(first, &mut rest)?,
        };
        Ok(is_whole.then(|| input.len() - rest.0.len()))
    }

    /// §4.3.2.
    fn insert_with_known_name(
        &mut self,
        first: u8,
        rest: &mut Instruction<'_>,
    ) -> Result<bool, Error> {
        let Some(index) = rest.integer(first, 6)? else {
            return Ok(false);
        };
        let Some(value) = rest.value()? else {
            return Ok(false);
        };
        let name = match first & 0x40 {
            0 => self.by_age(index)?.0,
            _ => match FIELDS.get(index as usize) {
                Some((name, _)) => name,
                None => return Err(broken("names an invalid index of the static table")),
            },
        };
        let (mut field, name_len) = (name.to_vec(), name.len());
        value.decode_into(&mut field)?;
        self.insert(&field, name_len)
    }

    /// §4.3.3.
    fn insert_literal(&mut self, first: u8, rest: &mut Instruction<'_>) -> Result<bool, Error> {
        let Some(name) = rest.string(first, 5)? else {
            return Ok(false);
        };
        let Some(value) = rest.value()? else {
            return Ok(false);
        };
        let mut field = Vec::new();
        name.decode_into(&mut field)?;
        let name_len = field.len();
        value.decode_into(&mut field)?;
        self.insert(&field, name_len)
    }

    /// §4.3.1.
    fn set_capacity(&mut self, first: u8, rest: &mut Instruction<'_>) -> Result<bool, Error> {
        let Some(capacity) = rest.integer(first, 5)? else {
            return Ok(false);
        };
        let capacity = capacity as usize;
        if capacity > TABLE_BYTES {
            return Err(broken("asks for a larger table than was offered"));
        }
        self.is_used |= capacity > 0;
        self.capacity_bytes = capacity;
        self.table.set_max_bytes(capacity);
        Ok(true)
    }

    /// §4.3.4.
    fn duplicate(&mut self, first: u8, rest: &mut Instruction<'_>) -> Result<bool, Error> {
        let Some(index) = rest.integer(first, 5)? else {
            return Ok(false);
        };
        let (name, value) = self.by_age(index)?;
        let (field, name_len) = ([name, value].concat(), name.len());
        self.insert(&field, name_len)
    }

    /// The field that this many others were inserted after (§3.2.5).
    fn by_age(&self, age: u32) -> Result<(&[u8], &[u8]), Error> {
        let field = self.table.field(age as usize);
        field.ok_or(broken("names a field that its table does not have"))
    }

    /// Inserts a field. One that is larger than the table ends the connection (§3.2.2), where
    /// HPACK empties the table.
    fn insert(&mut self, field: &[u8], name_len: usize) -> Result<bool, Error> {
        if field.len() + FIELD_OVERHEAD_BYTES > self.capacity_bytes {
            return Err(broken("inserts a field larger than its table"));
        }
        self.table.insert(field, name_len);
        self.inserted += 1;
        Ok(true)
    }

    /// Reports to the client the insertions that it does not know to have come yet (§4.4.3).
    pub fn acknowledge_insertions(&mut self, out: &mut Vec<u8>) {
        let unknown = self.inserted.saturating_sub(self.acknowledged);
        if unknown > 0 {
            integer::write(out, 0x00, 6, usize::try_from(unknown).unwrap_or(0));
            self.acknowledged = self.inserted;
        }
    }

    /// Reports to the client that a field block of this stream was read (§4.4.1), unless it
    /// referred to nothing here.
    pub fn acknowledge_block(&mut self, block: &[u8], stream: u64, out: &mut Vec<u8>) {
        if let Ok((prefix, _)) = SectionPrefix::read(block, self.inserted)
            && prefix.required > 0
        {
            integer::write(out, 0x80, 7, usize::try_from(stream).unwrap_or(0));
            self.acknowledged = self.acknowledged.max(prefix.required);
        }
    }

    /// Reports to the client that nothing more of this stream is read (§4.4.2), if it has a table.
    pub fn cancel_stream(&self, stream: u64, out: &mut Vec<u8>) {
        if self.is_used {
            integer::write(out, 0x40, 6, usize::try_from(stream).unwrap_or(0));
        }
    }

    /// How many insertions have to come before this field block can be read.
    ///
    /// # Errors
    /// Its prefix is broken: the connection ends.
    pub fn required_insertions(&self, block: &[u8]) -> Result<u64, Error> {
        let (prefix, _) = SectionPrefix::read(block, self.inserted)?;
        Ok(prefix.required)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table after these instructions, which arrive in pieces of `step` bytes.
    fn table(bytes: &[u8], step: usize) -> Result<DynamicTable, &'static str> {
        let (mut table, mut input) = (DynamicTable::default(), BytesMut::new());
        for piece in bytes.chunks(step) {
            input.extend_from_slice(piece);
            table.take(&mut input).map_err(|error| {
                assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR);
                error.reason
            })?;
        }
        Ok(table)
    }

    #[test]
    fn the_examples_of_the_standard_fill_the_table() {
        // RFC 9204 §B.2 to §B.5.
        let bytes = [
            &b"\x3f\xbd\x01"[..],
            b"\xc0\x0fwww.example.com",
            b"\xc1\x0c/sample/path",
            b"\x4acustom-key\x0ccustom-value",
            b"\x02",
            b"\x81\x0dcustom-value2",
        ];
        for step in [1, 7, 1000] {
            let mut table = table(&bytes.concat(), step).unwrap();
            assert_eq!(table.inserted(), 5);
            assert_eq!(table.field(0), None, "evicted by the last one");
            for (absolute, name, value) in [
                (1, &b":path"[..], &b"/sample/path"[..]),
                (2, b"custom-key", b"custom-value"),
                (3, b":authority", b"www.example.com"),
                (4, b"custom-key", b"custom-value2"),
            ] {
                assert_eq!(table.field(absolute), Some((name, value)), "{absolute}");
            }
            let mut out = Vec::new();
            table.acknowledge_insertions(&mut out);
            table.acknowledge_insertions(&mut out);
            table.acknowledge_block(b"\x05\x00\x80", 8, &mut out);
            table.acknowledge_block(b"\x00\x00\xc1", 12, &mut out);
            table.cancel_stream(8, &mut out);
            assert_eq!(out, b"\x05\x88\x48");
        }
    }

    #[test]
    fn instructions_that_break_the_rules_are_named() {
        let literal = |length: usize| {
            let mut bytes = b"\x3f\xe1\x1f\x41n".to_vec();
            integer::write(&mut bytes, 0, 7, length);
            bytes.extend(vec![b'v'; length]);
            bytes
        };
        #[rustfmt::skip]
        let cases = [
            // 4,096 bytes are offered.
            (&b"\x3f\xe1\x1f"[..], None),
            (b"\x3f\xe2\x1f", Some("asks for a larger table than was offered")),
            (b"\x20", None),
            // Without a capacity nothing fits.
            (b"\x41n\x01v", Some("inserts a field larger than its table")),
            (b"\x3f\x03\x41n\x01v", None),
            (b"\x3f\x02\x41n\x01v", Some("inserts a field larger than its table")),
            (b"\x3f\x03\x00", Some("names a field that its table does not have")),
            (b"\x3f\x03\x80\x01v", Some("names a field that its table does not have")),
            (b"\xff\x24\x01v", Some("names an invalid index of the static table")),
            (b"\x3f\xff\xff\xff\xff\xff\xff", Some("sent a broken integer to its table")),
            (b"\x3f\xe1\x1f\x5f\xff\xff\x7f", Some("inserts a longer string than the table has room for")),
            (b"\x3f\xe1\x1f\x41n\x81\x00", Some("sent an invalid Huffman code to be inserted")),
            (&literal(4096 - 32 - 1), None),
            (&literal(4096 - 32), Some("inserts a field larger than its table")),
        ];
        for (bytes, expected) in cases {
            for step in [1, 1 << 20] {
                assert_eq!(table(bytes, step).err(), expected, "{bytes:x?}");
            }
        }
    }

    #[test]
    fn a_table_of_no_bytes_has_nothing_to_cancel() {
        let (table, mut out) = (table(b"\x20", 1).unwrap(), Vec::new());
        table.cancel_stream(8, &mut out);
        assert!(out.is_empty() && !table.is_used);
    }
}
