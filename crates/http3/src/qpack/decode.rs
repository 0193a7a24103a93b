//! Field blocks, decoded (RFC 9204 §4.5), with the insertions of the client's encoder.

use http_semantics::Version;
use http2::hpack::{DecodedField, TABLE_BYTES, huffman, integer};
use http2::{FieldSource, HeadBuffer, HeadLimits, RequestError, RequestFacts};

use super::dynamic_table::DynamicTable;
use super::static_table::FIELDS;
use crate::error::{Code, Error};

/// Fields that fit in the table at most (§3.2.2); a field block's prefix counts modulo twice this number.
const MAX_ENTRIES: u64 = (TABLE_BYTES / http2::hpack::FIELD_OVERHEAD_BYTES) as u64;

/// Reads a request head into `buffer`. The insertions that it requires must have come.
///
/// # Errors
/// Outside, those of the connection; inside, those of the request.
pub fn read_request(
    block: &[u8],
    table: &DynamicTable,
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<RequestFacts, RequestError>, Error> {
    let mut source = Block::new(block, table)?;
    http2::read_head(&mut source, Version::Http3, limits, buffer)
}

/// Reads trailers, which are checked and otherwise left out.
///
/// # Errors
/// The errors of [`read_request`].
pub fn read_trailers(
    block: &[u8],
    table: &DynamicTable,
    limits: &HeadLimits,
) -> Result<Result<(), RequestError>, Error> {
    let mut source = Block::new(block, table)?;
    http2::read_trailer_fields(&mut source, limits, &mut HeadBuffer::new())
}

/// The prefix of a field block (§4.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionPrefix {
    /// Insertions that it needs.
    pub required: u64,
    /// The absolute index that others are relative to.
    base: u64,
}

impl SectionPrefix {
    /// Reads it, and returns the rest.
    pub fn read(block: &[u8], inserted: u64) -> Result<(SectionPrefix, &[u8]), Error> {
        let mut rest = block;
        let mut next = |prefix_bits| {
            let (&first, after) = rest.split_first().ok_or(broken(TRUNCATED))?;
            rest = after;
            let value = integer::read(first, prefix_bits, &mut rest);
            let value = value.map_err(|_| broken(BROKEN_INTEGER))?;
            Ok((first, u64::from(value)))
        };
        let (_, encoded) = next(8)?;
        let (sign, delta) = next(7)?;
        let required = required_insertions(encoded, inserted)?;
        let base = match sign & 0x80 {
            0 => required.checked_add(delta),
            _ => required.checked_sub(delta + 1),
        };
        let base = base.ok_or(broken("sent a field block with a base below zero"))?;
        Ok((SectionPrefix { required, base }, rest))
    }
}

/// §4.5.1.1: the count wraps at twice as many fields as fit in the table.
fn required_insertions(encoded: u64, inserted: u64) -> Result<u64, Error> {
    const FULL_RANGE: u64 = 2 * MAX_ENTRIES;
    let invalid = broken("sent a field block that requires impossible insertions");
    if encoded == 0 {
        return Ok(0);
    }
    if encoded > FULL_RANGE {
        return Err(invalid);
    }
    let most = inserted + MAX_ENTRIES;
    let required = most / FULL_RANGE * FULL_RANGE + encoded - 1;
    let required = match required > most {
        true => required.checked_sub(FULL_RANGE),
        false => Some(required),
    };
    required.filter(|&required| required > 0).ok_or(invalid)
}

/// A field block that is being read.
#[derive(Debug)]
pub struct Block<'a> {
    rest: &'a [u8],
    prefix: SectionPrefix,
    table: &'a DynamicTable,
}

fn broken(reason: &'static str) -> Error {
    Error::new(Code::QPACK_DECOMPRESSION_FAILED, reason)
}

const TRUNCATED: &str = "sent a field block that ends within a field";
const BROKEN_INTEGER: &str = "sent a field block with a broken integer";

impl<'a> Block<'a> {
    /// Begins with a whole field block.
    ///
    /// # Errors
    /// Its prefix is broken, or requires insertions that have not come (§2.2.1).
    pub fn new(block: &'a [u8], table: &'a DynamicTable) -> Result<Block<'a>, Error> {
        let (prefix, rest) = SectionPrefix::read(block, table.inserted())?;
        if prefix.required > table.inserted() {
            return Err(broken("refers to fields that were not inserted"));
        }
        Ok(Block {
            rest,
            prefix,
            table,
        })
    }

    #[inline]
    fn next_byte(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.rest.split_first().ok_or(broken(TRUNCATED))?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    fn integer(&mut self, first: u8, prefix_bits: u32) -> Result<u32, Error> {
        let read = integer::read(first, prefix_bits, &mut self.rest);
        read.map_err(|_| broken(BROKEN_INTEGER))
    }

    /// Appends a string whose length has this prefix, above which is the bit of Huffman.
    fn string(&mut self, first: u8, prefix_bits: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let length = self.integer(first, prefix_bits)? as usize;
        let (text, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(broken(TRUNCATED))?;
        self.rest = rest;
        if first & 1 << prefix_bits != 0 {
            let decoded = huffman::decode(text, out);
            return decoded.map_err(|_| broken("sent an invalid Huffman code"));
        }
        out.extend_from_slice(text);
        Ok(())
    }

    fn value(&mut self, name_len: usize, out: &mut Vec<u8>) -> Result<DecodedField, Error> {
        let start = out.len();
        let first = self.next_byte()?;
        self.string(first, 7, out)?;
        Ok(DecodedField {
            name_len,
            value_len: out.len() - start,
        })
    }

    /// A field of the dynamic table that the block may refer to (§2.2.3): `None` refers to no such field.
    fn inserted(&self, absolute: Option<u64>) -> Result<(&'a [u8], &'a [u8]), Error> {
        let absolute = absolute.filter(|&absolute| absolute < self.prefix.required);
        let field = absolute.and_then(|absolute| self.table.field(absolute));
        field.ok_or(broken("refers to a field that its table does not have"))
    }

    /// Counted back from the base (§3.2.5).
    fn before_base(&mut self, first: u8, bits: u32) -> Result<(&'a [u8], &'a [u8]), Error> {
        let index = u64::from(self.integer(first, bits)?);
        self.inserted(self.prefix.base.checked_sub(index + 1))
    }

    /// Counted on from the base (§3.2.6).
    fn after_base(&mut self, first: u8, bits: u32) -> Result<(&'a [u8], &'a [u8]), Error> {
        let index = u64::from(self.integer(first, bits)?);
        self.inserted(self.prefix.base.checked_add(index))
    }

    fn of_static(&mut self, first: u8, bits: u32) -> Result<(&'a [u8], &'a [u8]), Error> {
        let field = FIELDS.get(self.integer(first, bits)? as usize);
        let field = field.ok_or(broken("sent an invalid index of the static table"))?;
        Ok((field.0, field.1))
    }

    fn read_field(&mut self, first: u8, out: &mut Vec<u8>) -> Result<DecodedField, Error> {
        let name = match first {
            // Indexed field lines (§4.5.2, §4.5.3).
            0x80.. | 0x10..=0x1f => {
                let (name, value) = match first {
                    0xc0.. => self.of_static(first, 6)?,
                    0x80.. => self.before_base(first, 6)?,
                    _ => self.after_base(first, 4)?,
                };
                out.extend_from_slice(name);
                out.extend_from_slice(value);
                return Ok(DecodedField {
                    name_len: name.len(),
                    value_len: value.len(),
                });
            }
            // Literals with a known name (§4.5.4, §4.5.5).
            0x50..=0x5f | 0x70..=0x7f => self.of_static(first, 4)?.0,
            0x40..=0x7f => self.before_base(first, 4)?.0,
            0x00..=0x0f => self.after_base(first, 3)?.0,
            // Literal with a literal name (§4.5.6).
            _ => {
                let start = out.len();
                self.string(first, 3, out)?;
                let name_len = out.len() - start;
                return self.value(name_len, out);
            }
        };
        out.extend_from_slice(name);
        self.value(name.len(), out)
    }
}

impl FieldSource for Block<'_> {
    type Error = Error;

    fn next_field(&mut self, out: &mut Vec<u8>) -> Result<Option<DecodedField>, Error> {
        let Some((&first, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        self.read_field(first, out).map(Some)
    }

    fn too_large() -> Error {
        Error::new(Code::EXCESSIVE_LOAD, "sent too large a field block")
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;

    type Fields = Result<Vec<(String, String)>, Code>;

    /// The fields of a block, after these instructions.
    fn fields(instructions: &[u8], block: &[u8]) -> Fields {
        let mut table = DynamicTable::default();
        table.take(&mut BytesMut::from(instructions)).unwrap();
        let mut block = Block::new(block, &table).map_err(|error| error.code)?;
        let (mut fields, mut out) = (Vec::new(), Vec::new());
        while let Some(field) = block.next_field(&mut out).map_err(|error| error.code)? {
            let value = String::from_utf8(out.split_off(field.name_len)).unwrap();
            fields.push((String::from_utf8(std::mem::take(&mut out)).unwrap(), value));
        }
        Ok(fields)
    }

    /// `a: 1`, `b: 2` and `c: 3`, of which the first is evicted.
    const INSERTED: &[u8] = b"\x3f\x29\x41a\x011\x41b\x012\x41c\x013";

    #[test]
    fn fields_of_all_representations_are_read() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (block, expected) in [
            // RFC 9204 §B.1.
            (
                &b"\x00\x00\x51\x0b/index.html"[..],
                field(":path", "/index.html"),
            ),
            (b"\x00\x00\xc1", field(":path", "/")),
            (b"\x00\x00\x21n\x01v", field("n", "v")),
            // Relative to the base: the newest, one before it, with another value.
            (b"\x04\x00\x80", field("c", "3")),
            (b"\x04\x00\x81", field("b", "2")),
            (b"\x04\x00\x40\x01x", field("c", "x")),
            (b"\x04\x00\x61\x01x", field("b", "x")),
            (b"\x03\x00\x80", field("b", "2")),
            // The base is beyond the required insertions.
            (b"\x04\x02\x82", field("c", "3")),
            // Behind the base, which is before the required insertions.
            (b"\x04\x80\x10", field("c", "3")),
            (b"\x04\x81\x11", field("c", "3")),
            (b"\x04\x80\x00\x01x", field("c", "x")),
            (b"\x04\x81\x09\x01x", field("c", "x")),
        ] {
            assert_eq!(fields(INSERTED, block), Ok(vec![expected]), "{block:x?}");
        }
    }

    #[test]
    fn references_to_what_is_not_there_are_refused() {
        for block in [
            // Required, and not inserted; counts that no encoder can mean.
            &b"\x05\x00"[..],
            b"\x01\x00",
            b"\xff\x02\x00",
            // A base below zero.
            b"\x04\x83",
            // Evicted; not among the required insertions; beyond the newest.
            b"\x04\x00\x82",
            b"\x03\x00\x10",
            b"\x00\x00\x80",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x00",
            b"\x04\x00\x10",
            b"\x04\x00\x83",
            // Beyond the static table.
            b"\x00\x00\xff\x24",
            b"\x00\x00\x51\x05/",
            b"\x00",
            b"",
        ] {
            let failed = Err(Code::QPACK_DECOMPRESSION_FAILED);
            assert_eq!(fields(INSERTED, block), failed, "{block:x?}");
        }
    }

    #[test]
    fn required_insertions_wrap() {
        for inserted in [0, 1, 100, 127, 128, 129, 255, 256, 1000, 1 << 40] {
            let lowest = inserted.max(MAX_ENTRIES) - MAX_ENTRIES + 1;
            for required in lowest..=inserted + MAX_ENTRIES {
                let encoded = required % (2 * MAX_ENTRIES) + 1;
                assert_eq!(required_insertions(encoded, inserted), Ok(required));
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (mut table, limits) = (DynamicTable::default(), HeadLimits::default());
            table.take(&mut BytesMut::from(INSERTED)).unwrap();
            let _ = read_request(&block, &table, &limits, &mut HeadBuffer::new());
            let _ = read_trailers(&block, &table, &limits);
        }
    }
}
